//! One debug session with its adapter process, from its start until nothing of it is left.
//!
//! ```text
//! locate ─▶ plan ─▶ start (process, connection) ─▶ DebugSession ─▶ … ─▶ its last target ends ─▶ session_end's steps
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::FutureExt;
use tokio::sync::mpsc;
use tracing::warn;

use super::session_end::StopMode;
use super::session_lifetime::{SessionEnding, SessionRun, drive_to_end};
use super::session_request::SessionRequest;
use crate::adapters::{self, Adapter, ConnectMethod, DebugTargetKind, LaunchPlan, OutputPiece};
use crate::clock::now_ms;
use crate::dap::types::InitializeArguments;
use crate::debug::breakpoints::BreakpointStore;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::event_log::EventLog;
use crate::debug::session::snapshot::RunState;
use crate::debug::session::target::TargetPlan;
use crate::error::{Error, Result};
use crate::process::{self, OutputPipes, Process};
use crate::ring::RingQuery;
use crate::sync::lock;

/// For each single request to an adapter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// For an adapter to be connected, and then for its first response: from a slow disk lldb-dap loads for 10 s and more.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an operation waits for the exit of a program whose end has been reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many pieces of output the error of a failed start has.
const LAST_OUTPUT_PIECES: usize = 10;
/// For the response to `launch` or `attach`: Delve compiles first.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);

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
    /// The process that was started for it, if any: its adapter, or the program itself.
    pub pid: Option<u32>,
    /// Whether that process is the program itself.
    is_program: bool,
    /// The launch id in the environment of its processes.
    pub(in crate::debug) launch_id: String,
    /// What its caller should know of its start.
    pub note: Option<String>,
    ending: Arc<SessionEnding>,
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

    /// The signal that ended the program, if one did and that is known.
    pub fn exit_signal(&self) -> Option<i32> {
        self.ending.exit_signal.get().copied()
    }

    /// The process of the program, where it is known.
    pub fn program_pid(&self) -> Option<u32> {
        let attached = match self.request.debug_target.kind {
            DebugTargetKind::Pid(pid) => Some(pid),
            _ => None,
        };
        let reported = || self.session.snapshot().targets.iter().find_map(|target| target.pid);
        self.pid.filter(|_| self.is_program).or(attached).or_else(reported)
    }

    /// The process of its adapter, if one was started.
    pub fn adapter_pid(&self) -> Option<u32> {
        self.pid.filter(|_| !self.is_program)
    }

    /// What it is doing.
    pub fn run_state(&self) -> RunState {
        self.session.snapshot().run_state()
    }

    /// Whether it is attached to a program that was running already.
    pub fn is_attached(&self) -> bool {
        self.request.debug_target.is_attach()
    }

    /// Whether it is attached to the next launch of what it follows, ended or not: until it is stopped by request.
    pub fn is_following(&self) -> bool {
        self.request.follows.is_some() && lock(&self.ending.stop).is_none()
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
        *lock(&self.ending.stop) == Some(StopMode::Detach) && !self.is_attached()
    }

    /// Ends it and waits until nothing of it is left; with `detach` the program runs on. May be called again.
    pub async fn stop(&self, detach: bool) -> RunState {
        let mode = if detach { StopMode::Detach } else { StopMode::Terminate };
        *lock(&self.ending.stop) = Some(mode);
        if detach && !self.is_attached() && !self.is_ended() {
            self.prepare_release().await;
        }
        if !detach && !self.is_attached() && self.adapter.quirks.may_leave_debuggee {
            process::kill_launch_except(self.pid, &self.launch_id);
        }
        let state = self.session.stop(!detach).await;
        self.wait_until_ended().await;
        state
    }

    /// Ends the connection to a program that is gone, where its adapter has not noticed that. It still follows the window.
    pub async fn disconnect(&self) {
        self.session.stop(false).await;
        self.wait_until_ended().await;
    }

    /// What is to be known of a program that was detached from.
    pub fn release_note(&self) -> Option<String> {
        self.ending.release_note.get().cloned()
    }

    /// Readies a launched program for a life without its debugger: its output stays open, and gdb lets go of it.
    async fn prepare_release(&self) {
        let (debugger, launch_id) = (self.pid, self.launch_id.clone());
        let copied = tokio::task::spawn_blocking(move || copy_program_output(debugger, &launch_id)).await;
        *lock(&self.ending.released_output) = copied.ok();
        let Some(command) = self.adapter.quirks.detach_command else { return };
        if self.run_state() == RunState::Running && self.session.pause(None).await.is_ok() {
            self.session.wait_for_stop(REQUEST_TIMEOUT).await;
        }
        if let Err(error) = self.session.evaluate(command, None, "repl").await {
            warn!("{}: {error}", self.id);
        }
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

/// The ends of the output of a launch's programs that their debugger holds. None where what was started is the program
/// itself, whose output is read here. Blocks.
fn copy_program_output(debugger: Option<u32>, launch_id: &str) -> std::io::Result<OutputPipes> {
    let programs = process::find_launch_processes(launch_id)?;
    let programs: Vec<u32> = programs.iter().map(Process::pid).filter(|pid| Some(*pid) != debugger).collect();
    debugger.map_or_else(|| Ok(OutputPipes::default()), |debugger| OutputPipes::copy_from_debugger(debugger, &programs))
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
    /// What its caller should know of its start.
    pub note: Option<String>,
}

impl PreparedSession {
    /// Why the session is lost if the supervisor exits.
    pub fn loss_message(&self) -> String {
        let name = self.row.name;
        let gone = |which: &str| format!("{name}, {which}, went with it, and so did its program");
        let loss = match (&self.request.debug_target.kind, &self.plan.connect, self.plan.is_program) {
            _ if self.request.debug_target.is_listener() => {
                "what was attached to could not be attached to again".to_owned()
            }
            (DebugTargetKind::Pid(pid), ..) => format!("{name} has let go of process {pid}: attach to it again"),
            (_, _, true) => format!("{name}'s program went with its connection"),
            (_, ConnectMethod::Pipes, _) => gone("which spoke over its pipes"),
            (_, ConnectMethod::ConnectBack, _) => gone("which takes one connection only"),
            _ => format!("{name} went with it, and so did the program that it had launched"),
        };
        format!("the supervisor died, and {loss}")
    }
}

/// Starts a session. The returned future drives it to its end, and must be spawned.
pub(super) async fn start_adapter(
    prepared: PreparedSession,
) -> Result<(ManagedSession, impl Future<Output = ()> + Send)> {
    let PreparedSession { id, request, row, plan, launch_id, breakpoints, event_log, note } = prepared;
    let (by_pipe, is_program, allows_run_in_terminal) =
        (plan.output_by_pipe, plan.is_program, plan.allows_run_in_terminal());
    adapters::verify_target_listener(&request.debug_target).await?;
    let mut host = adapters::start_adapter(row.name, plan, &launch_id, CONNECT_TIMEOUT).await?;
    let plan = TargetPlan {
        initialize: initialize_request(row.id, allows_run_in_terminal),
        start: host.start.clone(),
        quirks: row.quirks,
        stop_on_entry: request.debug_target.stop_on_entry(),
        initialize_deadline: CONNECT_TIMEOUT,
        deadline: REQUEST_TIMEOUT,
        start_deadline: LAUNCH_TIMEOUT,
        launch_id: launch_id.clone(),
        allows_run_in_terminal,
    };
    let (session, driver) = DebugSession::open(plan, Arc::clone(&host.connect), breakpoints, event_log);
    let ending = Arc::new(SessionEnding::default());
    let (pid, started_at) = (host.pid(), now_ms());
    let output = std::mem::replace(&mut host.output, mpsc::channel(1).1);
    let output = copy_output(output, Arc::clone(session.event_log()), by_pipe);
    let (snapshots, request) = (session.watch(), Arc::new(request));
    let run = SessionRun { session: Some(driver.boxed()), snapshots, host: Some(host), ending: Arc::clone(&ending) };
    let lifetime = drive_to_end(run, output, is_program);
    let managed =
        ManagedSession { id, request, adapter: row, session, started_at, pid, is_program, launch_id, note, ending };
    Ok((managed, lifetime))
}

/// A session that has already ended: only what is known of it is left.
pub(in crate::debug) fn lost_session(
    id: String,
    request: SessionRequest,
    adapter: &'static Adapter,
    session: DebugSession,
    (started_at, launch_id): (u64, String),
) -> ManagedSession {
    let request = Arc::new(request);
    let ending = Arc::new(SessionEnding::default());
    ending.ended_at.send_replace(Some(now_ms()));
    let (pid, is_program, note) = (None, false, None);
    ManagedSession { id, request, adapter, session, started_at, pid, is_program, launch_id, note, ending }
}

/// Logs what the started process prints: the program's output, or its adapter's.
async fn copy_output(mut output: mpsc::Receiver<OutputPiece>, event_log: Arc<EventLog>, is_program: bool) {
    while let Some(piece) = output.recv().await {
        match piece {
            OutputPiece::Stdout(text) => event_log.push_output(if is_program { "stdout" } else { "adapter" }, &text),
            OutputPiece::Stderr(text) => event_log.push_output(if is_program { "stderr" } else { "adapter" }, &text),
            OutputPiece::Dropped(count) => event_log.push_event("lost", format!("{count} pieces of output")),
        }
    }
}

fn initialize_request(adapter: &str, supports_run_in_terminal_request: bool) -> InitializeArguments {
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
        supports_run_in_terminal_request,
        supports_start_debugging_request: true,
    }
}

/// The error of a start that has failed, with the last output of the adapter.
pub(in crate::debug) fn start_error(managed: &ManagedSession) -> Error {
    let what = if managed.is_attached() { "attach to" } else { "launch" };
    let error = Error::other(format!("cannot {what} {} with {}", managed.request.name, managed.adapter.name));
    let error = error.because(managed.problem().unwrap_or_else(|| "it ended at once".to_owned()));
    let query = RingQuery { limit: LAST_OUTPUT_PIECES, ..RingQuery::default() };
    let output = managed.session.event_log().read_output(&query).entries;
    let output = output.into_iter().map(|it| it.text).collect::<String>();
    let error =
        if output.trim_end().is_empty() { error } else { error.hint(format!("it printed:\n{}", output.trim_end())) };
    error.hint("`tether adapters` lists the installed adapters; `tether logs` has more")
}
