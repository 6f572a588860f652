//! One debug session with its adapter process, from its start until nothing of it is left.
//!
//! ```text
//! locate ─▶ plan ─▶ start (process, connection) ─▶ DebugSession ─▶ … ─▶ its last target ends ─▶ session_end's steps
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FusedFuture, FutureExt};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::warn;

use super::session_end::{EndEvent, EndFacts, EndStep, StopMode, next_step};
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
use crate::debug::session::target_plan::TargetPlan;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{self, ProcessExit};
use crate::sync::lock;

/// For each single request to an adapter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// For an adapter to be connected, and then for its first response: from a slow disk lldb-dap loads for 10 s and more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an operation waits for the exit of a program whose end has been reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the response to `launch` or `attach`: Delve compiles first.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);

/// What is to be debugged, and with what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The session's name, for readers.
    pub name: String,
    /// The program, process or port to debug.
    #[serde(rename = "wanted")]
    pub debug_target: DebugTarget,
    /// The name of an adapter; none: chosen by the other fields.
    pub adapter: Option<String>,
    /// The `type` of a configuration of launch.json.
    #[serde(rename = "kind")]
    pub launch_type: Option<String>,
    /// The language of the program.
    pub language: Option<String>,
    /// What the session follows, in its caller's words: stored with it, and not interpreted here.
    #[serde(default, rename = "tie")]
    pub follows: Option<String>,
}

/// One session of the registry; clones are the same session.
#[derive(Clone)]
pub struct ManagedSession {
    /// Unique in the workspace: `d1`, `d2`, …
    pub id: String,
    /// What it was started with.
    pub request: Arc<SessionRequest>,
    /// Its adapter.
    pub adapter: &'static Adapter,
    /// The session itself.
    pub session: DebugSession,
    /// Epoch ms.
    pub started_at: u64,
    /// The process that was started for it, if any.
    pub pid: Option<u32>,
    /// The launch id in the environment of its processes.
    pub(in crate::debug) launch_id: String,
    ending: Arc<SessionEnding>,
}

/// How a session ends.
#[derive(Default)]
struct SessionEnding {
    /// The newest stop request.
    stop: Mutex<Option<StopMode>>,
    /// When the last of it was gone, in epoch ms.
    ended_at: watch::Sender<Option<u64>>,
    /// Why the adapter exited by itself.
    exit_reason: OnceLock<String>,
    /// The exit code of a program that ended by itself.
    exit_code: OnceLock<i64>,
}

impl SessionEnding {
    fn stop_mode(&self) -> Option<StopMode> {
        *lock(&self.stop)
    }
}

impl ManagedSession {
    /// Whether all its targets have ended.
    pub fn is_ended(&self) -> bool {
        self.ended_at().is_some() || self.session.snapshot().is_ended()
    }

    /// When the last of it was gone, in epoch ms.
    pub fn ended_at(&self) -> Option<u64> {
        *self.ending.ended_at.borrow()
    }

    /// How the program exited, if it did by itself and that is known.
    pub fn exit_code(&self) -> Option<i64> {
        self.session.snapshot().exit_code().or(self.ending.exit_code.get().copied())
    }

    /// What it is doing.
    pub fn run_state(&self) -> RunState {
        self.session.snapshot().run_state()
    }

    /// Whether it is attached to a program that was running already.
    pub fn is_attached(&self) -> bool {
        self.request.debug_target.is_attach()
    }

    /// Whether its program, or a file with a breakpoint, has changed since it was started.
    pub fn is_stale(&self) -> bool {
        let files = self.session.shared.breakpoints.current().files();
        let program = self.request.debug_target.program();
        let changed = |file: &PathBuf| {
            let modified = std::fs::metadata(file).and_then(|it| it.modified()).ok();
            let modified = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            modified.is_some_and(|at| at.as_millis() as u64 > self.started_at)
        };
        files.iter().chain(&program).any(changed)
    }

    /// Why it ended, where that was not the program's own end.
    pub fn problem(&self) -> Option<String> {
        let snapshot = self.session.snapshot();
        let reason = snapshot.disconnect_reason().map(str::to_owned);
        match (reason, self.ending.exit_reason.get()) {
            (Some(reason), Some(exit)) if !reason.contains(exit.as_str()) => Some(format!("{reason}; {exit}")),
            (reason, _) => reason,
        }
    }

    /// Whether it was detached from a program that it had launched, which runs on.
    pub(in crate::debug) fn has_released_program(&self) -> bool {
        self.ending.stop_mode() == Some(StopMode::Detach) && !self.is_attached()
    }

    /// Ends it and waits until nothing of it is left; with `detach` the program runs on. May be called again.
    pub async fn stop(&self, detach: bool) -> RunState {
        let mode = if detach { StopMode::Detach } else { StopMode::Terminate };
        *lock(&self.ending.stop) = Some(mode);
        if !detach && !self.is_attached() && self.adapter.quirks.may_leave_debuggee {
            process::kill_launch_except(self.pid, &self.launch_id);
        }
        let state = self.session.stop(!detach).await;
        self.wait_until_ended().await;
        state
    }

    /// The exit code of the program. Waits a short time if it, or its connection, has just ended.
    pub async fn wait_for_exit_code(&self) -> Option<i64> {
        if self.exit_code().is_none() && self.session.snapshot().is_ended() {
            let _ = tokio::time::timeout(EXIT_TIMEOUT, self.wait_until_ended()).await;
        }
        self.exit_code()
    }

    /// Resolves when nothing of it is left.
    pub async fn wait_until_ended(&self) {
        let mut ended = self.ending.ended_at.subscribe();
        // The sender exists as long as `self`.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

/// The adapter of a request, and where it is installed. Errors: no adapter debugs this, or it is not installed.
pub(in crate::debug) fn locate_adapter(
    request: &SessionRequest,
    search: &AdapterSearch,
) -> Result<(&'static Adapter, FoundAdapter)> {
    let program = request.debug_target.program();
    let module = request.debug_target.module().map(|_| "python");
    let query = AdapterQuery {
        adapter: request.adapter.as_deref(),
        kind: request.launch_type.as_deref(),
        language: request.language.as_deref().or(module),
        program: program.as_deref(),
    };
    adapters::locate_adapter(query, search)
}

/// A session that can be started. Nothing of it runs yet.
pub(in crate::debug) struct PreparedSession {
    /// The session's id.
    pub id: String,
    /// What it is started with.
    pub request: SessionRequest,
    /// Its adapter.
    pub row: &'static Adapter,
    /// How the adapter is started and connected.
    pub plan: LaunchPlan,
    /// The launch id for its processes.
    pub launch_id: String,
    /// Its breakpoints.
    pub breakpoints: BreakpointStore,
    /// The log to which output and events are appended.
    pub event_log: Arc<EventLog>,
}

impl PreparedSession {
    /// Why the session is lost if the supervisor exits.
    pub fn loss_message(&self) -> String {
        let name = self.row.name;
        let dead = "the supervisor died";
        match (&self.request.debug_target.kind, &self.plan.connect, self.plan.is_program) {
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

/// Starts a session. The returned future drives it to its end, and must be spawned.
pub(in crate::debug) async fn start_adapter(
    prepared: PreparedSession,
) -> Result<(ManagedSession, impl Future<Output = ()> + Send + 'static)> {
    let PreparedSession { id, request, row, plan, launch_id, breakpoints, event_log } = prepared;
    let (by_pipe, is_program) = (plan.output_by_pipe, plan.is_program);
    let mut host = adapters::start_adapter(row.name, plan, &launch_id, CONNECT_TIMEOUT).await?;
    let plan = TargetPlan {
        initialize: initialize_request(row.id),
        start: host.start.clone(),
        quirks: row.quirks,
        stop_on_entry: request.debug_target.stop_on_entry(),
        initialize_deadline: CONNECT_TIMEOUT,
        deadline: REQUEST_TIMEOUT,
        start_deadline: LAUNCH_TIMEOUT,
        launch_id: launch_id.clone(),
    };
    let (session, driver) = DebugSession::open_with_log(plan, Arc::clone(&host.connect), breakpoints, event_log);
    let ending = Arc::new(SessionEnding::default());
    let (pid, started_at) = (host.pid(), now_ms());
    let output = std::mem::replace(&mut host.output, mpsc::channel(1).1);
    let output = copy_output(output, Arc::clone(session.event_log()), by_pipe);
    let lifetime = drive_to_end(driver, session.watch(), output, host, Arc::clone(&ending), is_program);
    let request = Arc::new(request);
    Ok((ManagedSession { id, request, adapter: row, session, started_at, pid, launch_id, ending }, lifetime))
}

/// A session that has already ended: only what is known of it is left.
pub(in crate::debug) fn lost_session(
    id: String,
    request: SessionRequest,
    row: &'static Adapter,
    session: DebugSession,
    started_at: u64,
) -> ManagedSession {
    let ending = Arc::new(SessionEnding::default());
    ending.ended_at.send_replace(Some(now_ms()));
    ManagedSession {
        id,
        request: Arc::new(request),
        adapter: row,
        session,
        started_at,
        pid: None,
        launch_id: String::new(),
        ending,
    }
}

/// Performs the steps of a session's end, from its start on. Output is copied meanwhile.
async fn drive_to_end(
    session: impl Future<Output = ()> + Send + 'static,
    snapshots: watch::Receiver<SessionSnapshot>,
    output: impl Future<Output = ()> + Send,
    host: AdapterHost,
    ending: Arc<SessionEnding>,
    is_program: bool,
) {
    let mut run = SessionRun { session: Some(session.boxed()), snapshots, host: Some(host), ending };
    let has_process = run.pid().is_some();
    let output = output.fuse();
    tokio::pin!(output);
    let mut step = EndStep::AwaitEnd;
    while step != EndStep::Done {
        let event = match step {
            EndStep::DrainOutput(limit) => {
                if !output.is_terminated() {
                    let _ = timeout(limit, &mut output).await;
                }
                EndEvent::Completed
            }
            step => {
                let performed = run.perform(step);
                tokio::pin!(performed);
                loop {
                    tokio::select! {
                        event = &mut performed => break event,
                        () = &mut output, if !output.is_terminated() => {}
                    }
                }
            }
        };
        let run_state = run.snapshots.borrow().run_state();
        step = next_step(step, event, &EndFacts { run_state, stop: run.ending.stop_mode(), is_program, has_process });
        if step != EndStep::AwaitDriver {
            // Closes the connections of a session that is not waited for.
            run.session = None;
        }
    }
    run.ending.ended_at.send_replace(Some(now_ms()));
}

/// What the steps of a session's end work on.
struct SessionRun {
    /// Drives the session; dropping it closes all connections.
    session: Option<BoxFuture<'static, ()>>,
    snapshots: watch::Receiver<SessionSnapshot>,
    /// None once the process has been ended or released.
    host: Option<AdapterHost>,
    ending: Arc<SessionEnding>,
}

impl SessionRun {
    fn pid(&self) -> Option<u32> {
        self.host.as_ref().and_then(AdapterHost::pid)
    }

    /// Performs a step, and returns what ended it.
    async fn perform(&mut self, step: EndStep) -> EndEvent {
        match step {
            EndStep::AwaitEnd | EndStep::AwaitDriver => return self.await_session(step).await,
            EndStep::AwaitExit(limit) => drop(wait_for_exit(self.host.as_ref().map(AdapterHost::exited), limit).await),
            EndStep::ReadExitReason => {
                if let Some(host) = &self.host
                    && let Some(reason) = host.exit_summary().await
                {
                    let _ = self.ending.exit_reason.set(reason);
                }
            }
            EndStep::ReadExitCode(limit) => {
                if let Some(ProcessExit::Code(code)) =
                    wait_for_exit(self.host.as_ref().map(AdapterHost::exited), limit).await
                {
                    let _ = self.ending.exit_code.set(i64::from(code));
                }
            }
            EndStep::ReleaseProgram => {
                if let Some(host) = self.host.take() {
                    host.detach().await;
                }
            }
            EndStep::EndAdapter => {
                if let Some(host) = self.host.take()
                    && let Err(error) = host.stop().await
                {
                    warn!("{error}");
                }
            }
            EndStep::DrainOutput(_) | EndStep::Done => {}
        }
        EndEvent::Completed
    }

    async fn await_session(&mut self, step: EndStep) -> EndEvent {
        let Some(session) = &mut self.session else { return EndEvent::DriverEnded };
        let event = tokio::select! {
            () = session => EndEvent::DriverEnded,
            Ok(_) = self.snapshots.wait_for(SessionSnapshot::is_ended), if step == EndStep::AwaitEnd => {
                EndEvent::TargetsEnded
            }
        };
        event
    }
}

/// How the process exited, if there is one and it exits in time.
async fn wait_for_exit(exited: Option<impl Future<Output = ProcessExit>>, limit: Duration) -> Option<ProcessExit> {
    timeout(limit, exited?).await.ok()
}

/// Logs what the started process prints: the program's output, or its adapter's.
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

/// The error of a start that has failed, with the last output of the adapter.
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
    error.hint("`tether adapters` lists the installed adapters; `tether logs` has more")
}

fn last_output(hosted: &ManagedSession) -> String {
    const LINES: usize = 10;
    let query = crate::ring::RingQuery { since: None, limit: LINES, filter: None };
    let said = hosted.session.event_log().read_output(&query).entries;
    let text: String = said.into_iter().map(|it| it.text).collect();
    text.trim_end().to_owned()
}
