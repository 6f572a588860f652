//! One thread of JavaScript: where it runs, the connection to its inspector, its scripts, its pause.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_base::sync::lock;
use tether_cdp::debugger::PausedEvent;
use tether_cdp::types::RemoteObject;
use tether_cdp::{CdpCommand, CdpError, CdpSession};

use super::inspector_queue::ConnectionEvents;
use super::isolate_host::IsolateHost;
use super::lane::Lane;
use super::scripts::ScriptTable;
use super::slowed_functions::SlowedFunctions;
use super::source_maps::ScriptMap;

/// How long an inspector may take to answer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// One thread of JavaScript; its id is that of a thread of DAP.
pub(crate) struct Isolate {
    pub id: i64,
    /// How it is called: `app.js [123]`, `worker 1 [123]`.
    pub name: String,
    pub host: IsolateHost,
    /// The port and the path of its own inspector; a worker has none.
    pub inspector: Option<(u16, String)>,
    /// Of a worker of Node: its `threadId`.
    pub worker_thread: Option<u64>,
    pub session: CdpSession,
    /// That of its process, or its page.
    pub connection: Arc<ConnectionEvents>,
    /// Its events, its moves, its breakpoints.
    pub lane: Lane,
    pub state: Mutex<IsolateState>,
}

/// What changes of an isolate.
#[derive(Default)]
pub(crate) struct IsolateState {
    pub scripts: ScriptTable,
    /// How much the maps of a page's scripts have, in bytes.
    pub map_bytes: usize,
    /// How many entries all maps have.
    pub map_entries: usize,
    /// The maps of scripts that are about to be compiled.
    pub prepared_maps: HashMap<PathBuf, Arc<ScriptMap>>,
    pub pause: Option<Arc<IsolatePause>>,
    last_pause: u64,
    /// The failed assertion that was reported last, with its stack.
    pub last_failure: Option<String>,
    /// What the client has requested last: the reason of the next stop without a cause.
    pub requested: RequestedMove,
    /// How many steps the last one has gone on for in code without a source.
    pub steps_without_source: usize,
    /// Where the last step began.
    pub step_start: StepStart,
    /// The step has paused deeper than it may end, and is going back.
    pub is_stepping_back: bool,
    /// The functions that it has paused in since it ran last.
    pub slowed: SlowedFunctions,
    /// It was started, or needs no start.
    pub is_started: bool,
}

/// What a client has requested of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestedMove {
    #[default]
    Run,
    Pause,
    Step(StepKind),
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    Into,
    Over,
    Out,
}

/// Where a step began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepStart {
    /// How many frames there were.
    pub depth: usize,
    /// The line of the script, 0-based.
    pub line: i64,
}

/// A pause of the engine.
pub(crate) struct IsolatePause {
    /// Unique within the isolate.
    pub number: u64,
    pub event: PausedEvent,
}

impl Isolate {
    /// Sends a command and waits for its result.
    pub(crate) async fn call<C: CdpCommand>(&self, command: &C) -> Result<C::Response, CdpError> {
        self.call_within(command, CALL_TIMEOUT).await
    }

    /// As [`Isolate::call`], with a deadline of its own. Nothing is sent to a process that has finished and waits for us to
    /// leave: Node 20 is ended by a signal when it evaluates then.
    pub(crate) async fn call_within<C: CdpCommand>(
        &self,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Response, CdpError> {
        self.check_connected()?;
        self.session.call(command, deadline).await
    }

    /// Sends a command whose result does not matter, in order with all others.
    pub(crate) async fn send<C: CdpCommand>(&self, command: &C) -> Result<(), CdpError> {
        self.check_connected()?;
        self.session.send(command).await
    }

    fn check_connected(&self) -> Result<(), CdpError> {
        if self.connection.is_left() {
            return Err(CdpError::Closed(format!("{} has finished, or is left", self.name)));
        }
        Ok(())
    }

    /// Reads or changes what changes.
    pub(crate) fn with_state<T>(&self, access: impl FnOnce(&mut IsolateState) -> T) -> T {
        access(&mut lock(&self.state))
    }

    /// Whether it is the main thread of a process, or a page: its workers and frames share its connection.
    pub(crate) fn is_main(&self) -> bool {
        self.id == self.connection.isolate
    }

    /// Whether it runs in a browser.
    pub(crate) fn is_web(&self) -> bool {
        self.host != IsolateHost::Node
    }

    /// Whether the engine knows nothing of it yet, and does not answer.
    pub(crate) fn is_unprepared(&self) -> bool {
        self.host == IsolateHost::ServiceWorker && !self.with_state(|state| state.is_started)
    }

    /// The pause that it is in.
    pub(crate) fn pause(&self) -> Option<Arc<IsolatePause>> {
        self.with_state(|state| state.pause.clone())
    }
}

impl StepStart {
    /// Of a step that is made at a pause.
    pub(crate) fn of(event: &PausedEvent) -> StepStart {
        let frames = &event.call_frames;
        StepStart { depth: frames.len(), line: frames.first().map_or(-1, |frame| frame.location.line_number) }
    }
}

impl IsolateState {
    /// The function of the top frame will return this.
    pub(crate) fn set_return_value(&mut self, value: &RemoteObject) {
        let Some(pause) = &self.pause else { return };
        let mut event = pause.event.clone();
        if let Some(top) = event.call_frames.first_mut() {
            top.return_value = Some(value.clone());
        }
        self.pause = Some(Arc::new(IsolatePause { number: pause.number, event }));
    }

    /// The engine has paused.
    pub(crate) fn enter_pause(&mut self, event: PausedEvent) -> Arc<IsolatePause> {
        self.last_pause = self.last_pause.saturating_add(1);
        let pause = Arc::new(IsolatePause { number: self.last_pause, event });
        self.pause = Some(Arc::clone(&pause));
        pause
    }
}
