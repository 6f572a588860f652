//! One hosted session: what it debugs, with what, and how it begins and ends with its adapter.
//!
//! ```text
//! locate ─▶ begin ─▶ run (process, connection) ─▶ Session ─▶ … ─▶ its last target ends ─▶ the process and all it left end
//! ```

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::{FusedFuture, FutureExt};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tracing::warn;

use crate::adapters::{
    self, Adapter, AdapterHost, AdapterQuery, AdapterSearch, ConnectMethod, DebugTarget, DebugTargetKind, FoundAdapter,
    LaunchPlan, OutputPiece,
};
use crate::clock::now_ms;
use crate::dap::types::InitializeArguments;
use crate::debug::breakpoints::BreakpointStore;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::event_log::EventLog;
use crate::debug::session::snapshot::{RunState, SessionSnapshot};
use crate::debug::session::target::TargetPlan;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{self, ProcessExit};
use crate::sync::lock;

/// For each single request to an adapter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// For an adapter to be there, and then for its first answer: from a slow disk lldb-dap loads for 10 s and more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a program may take to exit after it has told its end.
const ENDS: Duration = Duration::from_secs(2);
/// How long a process may live on that has closed its connection by dying.
const DIES: Duration = Duration::from_secs(1);
/// How long an answer waits for the exit of a program that has told its end.
const EXITS: Duration = Duration::from_secs(10);
/// For the answer of `launch` or `attach`: Delve compiles first.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);

/// What is to be debugged, and with what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The session's name, for readers.
    pub name: String,
    /// The program, process or port to debug.
    #[serde(rename = "wanted")]
    pub debug_target: DebugTarget,
    /// An adapter, by name.
    pub adapter: Option<String>,
    /// The `type` of a configuration of launch.json.
    #[serde(rename = "kind")]
    pub launch_type: Option<String>,
    pub language: Option<String>,
    /// What the session follows, in its caller's words: stored with it, and not interpreted here.
    #[serde(default, rename = "tie")]
    pub follows: Option<String>,
}

/// One session of the table; clones are the same.
#[derive(Clone)]
pub struct ManagedSession {
    pub id: String,
    pub request: Arc<SessionRequest>,
    pub adapter: &'static Adapter,
    pub session: DebugSession,
    /// Epoch ms.
    pub started_at: u64,
    pub pid: Option<u32>,
    /// What its processes carry.
    pub(in crate::debug) mark: String,
    pub(in crate::debug) ending: Arc<Ending>,
}

/// How it ends.
#[derive(Default)]
pub(in crate::debug) struct Ending {
    /// The program is to live on.
    lets_go: AtomicBool,
    /// Nothing of it is left; when that was, in epoch ms.
    done: watch::Sender<Option<u64>>,
    /// What the adapter said when it ended by itself.
    last_words: OnceLock<String>,
    /// Somebody ends it: its exit is not its own.
    stopped: AtomicBool,
    exit_code: OnceLock<i64>,
}

impl ManagedSession {
    pub fn is_ended(&self) -> bool {
        self.ended_at().is_some() || self.session.snapshot().is_ended()
    }

    pub fn ended_at(&self) -> Option<u64> {
        *self.ending.done.borrow()
    }

    /// How the program exited, if it did by itself and that is known.
    pub fn exit_code(&self) -> Option<i64> {
        self.session.snapshot().exit_code().or(self.ending.exit_code.get().copied())
    }

    pub fn run_state(&self) -> RunState {
        self.session.snapshot().run_state()
    }

    /// Whether something that ran already is debugged.
    pub fn is_attached(&self) -> bool {
        self.request.debug_target.is_attach()
    }

    /// Whether its program, or a file with a breakpoint, has changed since it began.
    pub fn is_stale(&self) -> bool {
        let files = lock(&self.session.shared.book).files();
        let program = self.request.debug_target.program();
        let changed = |file: &PathBuf| {
            let modified = std::fs::metadata(file).and_then(|it| it.modified()).ok();
            let modified = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            modified.is_some_and(|at| at.as_millis() as u64 > self.started_at)
        };
        files.iter().chain(&program).any(changed)
    }

    /// How it ended, where that was not the program's own end.
    pub fn problem(&self) -> Option<String> {
        let snapshot = self.session.snapshot();
        let reason = snapshot.disconnect_reason().map(str::to_owned);
        match (reason, self.ending.last_words.get()) {
            (Some(reason), Some(words)) if !reason.contains(words.as_str()) => Some(format!("{reason}; {words}")),
            (reason, _) => reason,
        }
    }

    /// Whether a program that it launched was to live on without it.
    pub(in crate::debug) fn has_released_program(&self) -> bool {
        self.ending.lets_go.load(Ordering::SeqCst) && !self.is_attached()
    }

    /// Ends it and waits until nothing of it is left; `detach` lets the program live on. Twice is once.
    pub async fn stop(&self, detach: bool) -> RunState {
        self.ending.stopped.store(true, Ordering::SeqCst);
        self.ending.lets_go.store(detach, Ordering::SeqCst);
        if !detach && !self.is_attached() && self.adapter.quirks.may_leave_debuggee {
            process::kill_launch_except(self.pid, &self.mark);
        }
        let state = self.session.stop(!detach).await;
        self.wait_until_ended().await;
        state
    }

    /// How the program exited; one that has just ended, or whose connection has, gets a moment to do so.
    pub async fn wait_for_exit_code(&self) -> Option<i64> {
        if self.exit_code().is_none() && self.session.snapshot().is_ended() {
            let _ = tokio::time::timeout(EXITS, self.wait_until_ended()).await;
        }
        self.exit_code()
    }

    /// Resolves when nothing of it is left.
    pub async fn wait_until_ended(&self) {
        let mut done = self.ending.done.subscribe();
        // The sender lives as long as this does.
        let _ = done.wait_for(Option::is_some).await;
    }
}

/// The adapter of a request, and where it lies. Errors: nobody debugs this, or who does is not there.
pub(in crate::debug) fn locate_adapter(
    request: &SessionRequest,
    search: &AdapterSearch,
) -> Result<(&'static Adapter, FoundAdapter)> {
    let program = request.debug_target.program();
    let module = request.debug_target.module().map(|_| "python");
    let ask = AdapterQuery {
        adapter: request.adapter.as_deref(),
        kind: request.launch_type.as_deref(),
        language: request.language.as_deref().or(module),
        program: program.as_deref(),
    };
    adapters::locate_adapter(ask, search)
}

/// A session that can be begun: nothing has been started.
pub(in crate::debug) struct PreparedSession {
    pub id: String,
    pub request: SessionRequest,
    pub row: &'static Adapter,
    pub begin: LaunchPlan,
    /// What its processes are to be found by.
    pub mark: String,
    pub book: Arc<Mutex<BreakpointStore>>,
    /// What it says goes on in this one.
    pub record: Arc<EventLog>,
}

impl PreparedSession {
    /// What becomes of it when we die.
    pub fn loss_message(&self) -> String {
        let name = self.row.name;
        let dead = "the supervisor died";
        match (&self.request.debug_target.kind, &self.begin.connect, self.begin.is_program) {
            _ if self.request.debug_target.is_listener() => {
                format!("{dead}, and what was attached to could not be attached to again")
            }
            (DebugTargetKind::Pid(pid), ..) => {
                format!("{dead}, and {name} has let go of process {pid}: attach to it again")
            }
            (_, _, true) => format!("{dead}, and {name}'s program went with its connection"),
            (_, ConnectMethod::Pipes, _) => {
                format!("{dead}, and {name}, which spoke over its pipes, went with it, and so did its program")
            }
            (_, ConnectMethod::ConnectBack, _) => {
                format!("{dead}, and {name}, which takes one connection only, went with it, and so did its program")
            }
            _ => format!("{dead}, and {name} went with it, and so did the program that it had launched"),
        }
    }
}

/// Begins a session. The future that it gives drives it to its end, and must be spawned.
pub(in crate::debug) async fn start_adapter(
    ready: PreparedSession,
) -> Result<(ManagedSession, impl Future<Output = ()> + Send + 'static)> {
    let PreparedSession { id, request, row, begin, mark, book, record } = ready;
    let (by_pipe, is_program) = (begin.output_by_pipe, begin.is_program);
    let mut running = adapters::start_adapter(row.name, begin, &mark, CONNECT_TIMEOUT).await?;
    let plan = TargetPlan {
        initialize: initialize_request(row.id),
        start: running.start.clone(),
        quirks: row.quirks,
        stop_on_entry: request.debug_target.stop_on_entry(),
        initialize_deadline: CONNECT_TIMEOUT,
        deadline: REQUEST_TIMEOUT,
        start_deadline: LAUNCH_TIMEOUT,
        launch_id: mark.clone(),
    };
    let (session, driver) = DebugSession::open_with_log(plan, Arc::clone(&running.connect), book, record);
    let ending = Arc::new(Ending::default());
    let (pid, started_at) = (running.pid(), now_ms());
    let output = std::mem::replace(&mut running.output, mpsc::channel(1).1);
    let record = Arc::clone(session.event_log());
    let seen = session.watch();
    let life = live(driver, seen, running, Arc::clone(&ending), copy_output(output, record, by_pipe), is_program);
    Ok((ManagedSession { id, request: Arc::new(request), adapter: row, session, started_at, pid, mark, ending }, life))
}

/// One of which nothing is left but what is known of it.
pub(in crate::debug) fn lost_session(
    id: String,
    request: SessionRequest,
    row: &'static Adapter,
    session: DebugSession,
    started_at: u64,
) -> ManagedSession {
    let ending = Arc::new(Ending::default());
    ending.done.send_replace(Some(now_ms()));
    ManagedSession {
        id,
        request: Arc::new(request),
        adapter: row,
        session,
        started_at,
        pid: None,
        mark: String::new(),
        ending,
    }
}

async fn live(
    driver: impl Future<Output = ()>,
    seen: watch::Receiver<SessionSnapshot>,
    running: AdapterHost,
    ending: Arc<Ending>,
    following: impl Future<Output = ()>,
    is_program: bool,
) {
    // It may have come to its end before the session does: then it must not be asked again.
    let following = following.fuse();
    tokio::pin!(following);
    let mut ends = seen.clone();
    // A program that is ended by us is not left the time that its debugger takes to say goodbye (debugpy half a second).
    let ended_by_us = async {
        let told = ends.wait_for(SessionSnapshot::is_ended).await.is_ok();
        let by_us = ending.stopped.load(Ordering::SeqCst) && !ending.lets_go.load(Ordering::SeqCst);
        if !(told && by_us && is_program) {
            std::future::pending().await
        }
    };
    tokio::select! {() = driver => {} () = ended_by_us => {} () = async {(&mut following).await; std::future::pending().await} => {}}
    if seen.borrow().run_state() == RunState::Disconnected && running.pid().is_some() {
        // A process that dies closes its connection a moment before it is dead.
        let _ = tokio::time::timeout(DIES, running.exited()).await;
    }
    if seen.borrow().run_state() == RunState::Disconnected
        && let Some(words) = running.exit_summary().await
    {
        let _ = ending.last_words.set(words);
    }
    if is_program && seen.borrow().run_state() == RunState::Terminated && !ending.stopped.load(Ordering::SeqCst) {
        // It ends by itself: with what, its own exit tells.
        if let Ok(ProcessExit::Code(code)) = tokio::time::timeout(ENDS, running.exited()).await {
            let _ = ending.exit_code.set(i64::from(code));
        }
    }
    if ending.lets_go.load(Ordering::SeqCst) {
        running.detach().await;
    } else {
        if let Err(error) = running.stop().await {
            warn!("{error}");
        }
        // All writers are gone: what is left in the pipes comes to its end.
        if !following.is_terminated() {
            let _ = tokio::time::timeout(Duration::from_secs(1), following).await;
        }
    }
    ending.done.send_replace(Some(now_ms()));
}

/// Keeps what the started process prints: the program's output, or what its adapter has to say.
async fn copy_output(mut output: mpsc::Receiver<OutputPiece>, record: Arc<EventLog>, is_program: bool) {
    while let Some(said) = output.recv().await {
        match said {
            OutputPiece::Stdout(text) => record.push_output(if is_program { "stdout" } else { "adapter" }, &text),
            OutputPiece::Stderr(text) => record.push_output(if is_program { "stderr" } else { "adapter" }, &text),
            OutputPiece::Dropped(count) => record.push_event("lost", format!("{count} pieces of output")),
        }
    }
}

fn initialize_request(adapter: &str) -> InitializeArguments {
    InitializeArguments {
        adapter_id: adapter.to_owned(),
        client_id: Some("devtether".to_owned()),
        client_name: Some("devtether".to_owned()),
        locale: Some("en".to_owned()),
        lines_start_at1: true,
        columns_start_at1: true,
        path_format: Some("path".to_owned()),
        supports_variable_type: true,
        supports_variable_paging: true,
        supports_run_in_terminal_request: true,
        supports_start_debugging_request: true,
        ..InitializeArguments::default()
    }
}

/// A start that has failed, with what the adapter has to say.
pub(in crate::debug) fn start_error(hosted: &ManagedSession) -> Error {
    let what = if hosted.is_attached() { "attach to" } else { "launch" };
    let error = Error::other(format!("cannot {what} {} with {}", hosted.request.name, hosted.adapter.name));
    let error = error.because(hosted.problem().unwrap_or_else(|| "it ended at once".to_owned()));
    let output = last_output(hosted);
    let error = if output.is_empty() {
        error
    } else {
        Error { kind: ErrorKind::Other, ..error }.hint(format!("it printed:\n{output}"))
    };
    error.hint("`tether adapters` tells which adapters are there; `tether logs` has more")
}

fn last_output(hosted: &ManagedSession) -> String {
    const LINES: usize = 10;
    let query = crate::ring::RingQuery { since: None, limit: LINES, filter: None };
    let said = hosted.session.event_log().read_output(&query).entries;
    let text: String = said.into_iter().map(|it| it.text).collect();
    text.trim_end().to_owned()
}
