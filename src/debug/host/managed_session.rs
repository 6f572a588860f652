//! One debug session with its adapter process, from its start until nothing of it is left. A session of several programs has
//! one of these for each: the first is listed, and has the others.
//!
//! ```text
//! locate ─▶ plan ─▶ start (process, connection) ─▶ DebugSession ─▶ … ─▶ its last target ends ─▶ session_end's steps
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use tether_base::clock::now_ms;
use tether_base::sync::lock;
use tether_process::{OutputPipes, Process};
use tracing::warn;

use super::process_survey::ProcessSurvey;
use super::reconnect::Reconnection;
use super::session_end::StopMode;
use super::session_end_driver::SessionEnding;
use super::session_request::SessionRequest;
use crate::adapters::{Adapter, DebugTargetKind};
use crate::debug::file_names::FileNames;
use crate::debug::inspect;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::snapshot::TargetSnapshot;
use crate::debug::session::target_state::ProgramExit;
use crate::vocabulary::RunState;

/// For each single request to an adapter.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a program that was attached to may take to stop for its detach: one that waits in the system does not.
const ATTACHED_PAUSE_TIMEOUT: Duration = Duration::from_secs(3);
/// For a program to be prepared for its detach, where that was not possible before.
const PREPARE_DETACH_TIMEOUT: Duration = Duration::from_secs(1);
/// For an adapter to be connected, and then for its first response: from a slow disk lldb-dap loads for 10 s and more.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an operation waits for the exit of a program whose end has been reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// One session of the registry, or a further program of one; clones are the same session.
#[derive(Clone)]
pub struct ManagedSession {
    /// Unique in the workspace: `d1`, `d2`, …; of a further program `d1.2`.
    pub id: String,
    /// What it was started with.
    pub request: Arc<SessionRequest>,
    /// Its adapter.
    pub adapter: &'static Adapter,
    /// The session itself.
    pub session: DebugSession,
    /// Epoch ms.
    pub started_at: u64,
    /// When its code was last known to be that of its files, after the start; epoch ms, 0: never.
    pub(super) code_swapped_at: Arc<AtomicU64>,
    /// The process that was started for it, if any: its adapter, or the program itself.
    pub pid: Option<u32>,
    /// Whether that process is the program itself.
    pub(super) is_program: bool,
    /// Its index among the programs of the session.
    pub(super) program: usize,
    /// The further programs of the session, in the order of their start.
    pub(super) companions: Arc<Mutex<Vec<ManagedSession>>>,
    /// The process that was attached to, where it is known.
    pub(super) attached_process: Option<Process>,
    /// The launch id in the environment of its processes.
    pub(in crate::debug) launch_id: String,
    /// What its caller should know of its start.
    pub note: Option<String>,
    pub(super) ending: Arc<SessionEnding>,
    /// Finds its processes that are not debugged. `None`: it has ended before this process began.
    pub(super) survey: Option<Arc<ProcessSurvey>>,
}

impl ManagedSession {
    /// Its programs, in the order of their start, itself first.
    pub fn programs(&self) -> Vec<ManagedSession> {
        std::iter::once(self.clone()).chain(lock(&self.companions).iter().cloned()).collect()
    }

    /// Adds a further program, which has been started.
    pub(super) fn add_companion(&self, companion: ManagedSession) {
        lock(&self.companions).push(companion);
    }

    /// The user's names for its files, as absolute paths.
    pub fn absolute_file_names(&self) -> FileNames {
        FileNames::of_workspace(Path::new(""), self.session.shared.breakpoints.clone())
    }

    /// Finds which of its processes are not debugged, as far as they run still.
    pub async fn find_undebugged_processes(&self) {
        for program in self.programs() {
            if let Some(survey) = &program.survey {
                survey.run().await;
            }
        }
    }

    /// Whether all its targets have ended.
    pub fn is_ended(&self) -> bool {
        self.ended_at().is_some() || self.session.snapshot().is_ended()
    }

    /// When the last of it was gone, in epoch ms.
    pub fn ended_at(&self) -> Option<u64> {
        let ends: Option<Vec<u64>> = self.programs().iter().map(|it| *it.ending.ended_at.borrow()).collect();
        ends?.into_iter().max()
    }

    /// The launch id in the environment of the processes of this program.
    pub fn launch_id(&self) -> &str {
        &self.launch_id
    }

    /// Whether nothing of this program is left.
    pub fn is_program_gone(&self) -> bool {
        self.ending.ended_at.borrow().is_some()
    }

    /// How each of its programs ended.
    pub fn program_ends(&self) -> Vec<ProgramEnd> {
        let snapshot = self.session.snapshot();
        let end = |it: ManagedSession| ProgramEnd {
            name: it.request.name.clone(),
            code: snapshot.exit_code(it.program).or(it.ending.exit_code.get().copied()),
            signal: match snapshot.exit(it.program) {
                Some(ProgramExit::Signal(signal)) => Some(signal),
                _ => it.ending.exit_signal.get().copied(),
            },
            was_stopped: lock(&it.ending.stop).is_some(),
        };
        self.programs().into_iter().map(end).collect()
    }

    /// How the program exited, if it did by itself and that is known; of several programs the first code that is no success.
    pub fn exit_code(&self) -> Option<i64> {
        let codes: Vec<Option<i64>> = self.program_ends().iter().map(|end| end.code).collect();
        let failed = codes.iter().flatten().find(|code| **code != 0).copied();
        failed.or_else(|| codes.into_iter().min().flatten())
    }

    /// The process of the program, where it is known.
    pub fn program_pid(&self) -> Option<u32> {
        let attached = match self.request.debug_target.kind {
            DebugTargetKind::Pid(pid) => Some(pid),
            _ => None,
        };
        let own = |target: &TargetSnapshot| target.pid.filter(|_| target.program == self.program);
        let reported = || self.session.snapshot().targets.iter().find_map(own);
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

    /// Whether any breakpoint is set.
    pub fn has_breakpoints(&self) -> bool {
        !self.session.shared.breakpoints.current().breakpoints.is_empty()
    }

    /// Whether its program, or a file with a breakpoint, has changed since it was started, or has loaded that file again.
    pub fn is_stale(&self) -> bool {
        let loaded_at = self.started_at.max(self.code_swapped_at.load(Ordering::Acquire));
        let files = self.session.shared.breakpoints.current().files();
        let programs: Vec<PathBuf> =
            self.programs().iter().filter_map(|it| it.request.debug_target.program()).collect();
        let sources = &self.session.shared.sources;
        let changed = |file: &PathBuf| {
            let Ok(modified) = std::fs::metadata(file).and_then(|it| it.modified()) else { return false };
            let is_newer = modified.duration_since(UNIX_EPOCH).is_ok_and(|at| at.as_millis() as u64 > loaded_at);
            is_newer && sources.last_loaded(file).is_none_or(|loaded| loaded < modified)
        };
        files.iter().chain(&programs).any(changed)
    }

    /// Why it ended, where that was not the program's own end.
    pub fn problem(&self) -> Option<String> {
        self.programs().iter().find_map(ManagedSession::program_problem)
    }

    fn program_problem(&self) -> Option<String> {
        let problem = self.connection_problem()?;
        match self.ending.reconnection.borrow().describe() {
            Some(then) => Some(format!("{problem}; {then}")),
            None => Some(problem),
        }
    }

    /// Why its connection has ended.
    pub(super) fn connection_problem(&self) -> Option<String> {
        let snapshot = self.session.snapshot();
        let reason = snapshot.disconnect_reason(self.program).map(str::to_owned);
        match (reason, self.ending.exit_reason.get()) {
            (Some(reason), Some(exit)) if !reason.contains(exit.as_str()) => Some(format!("{reason}; {exit}")),
            (reason, _) => reason,
        }
    }

    /// Whether somebody has asked for its end.
    pub(super) fn is_stop_requested(&self) -> bool {
        lock(&self.ending.stop).is_some()
    }

    /// Records that its program has started, with its breakpoints.
    pub(super) fn record_start(&self) {
        self.ending.has_started.store(true, Ordering::Release);
    }

    /// Whether its program has started.
    pub(super) fn has_started(&self) -> bool {
        self.ending.has_started.load(Ordering::Acquire)
    }

    /// Whether it was detached from a program that it had launched, which runs on.
    pub fn has_released_program(&self) -> bool {
        *lock(&self.ending.stop) == Some(StopMode::Detach) && !self.is_attached()
    }

    /// Ends it and waits until nothing of it is left; with `detach` its programs run on, by default those that it was attached
    /// to. May be called again.
    pub async fn stop(&self, detach: Option<bool>) -> RunState {
        let mut stops = Vec::new();
        for program in self.programs() {
            let detach = detach.unwrap_or_else(|| program.is_attached());
            program.prepare_stop(detach).await;
            stops.push((program.program, !detach));
        }
        let state = self.session.stop_programs(&stops).await;
        self.wait_until_ended().await;
        state
    }

    async fn prepare_stop(&self, detach: bool) {
        let mode = if detach { StopMode::Detach } else { StopMode::Terminate };
        *lock(&self.ending.stop) = Some(mode);
        // It is not attached to again.
        self.ending.reconnection.send_if_modified(|now| {
            let is_open = matches!(now, Reconnection::Undecided | Reconnection::Trying { .. });
            if is_open {
                *now = Reconnection::GivenUp(None);
            }
            is_open
        });
        if detach && !self.is_program_ended() {
            self.prepare_detach().await;
            match self.is_attached() {
                false => self.prepare_release().await,
                // One that listens by itself was started with its debugger.
                true if self.request.debug_target.is_listener() => {}
                true => self.release_children(ATTACHED_PAUSE_TIMEOUT).await,
            }
        }
        if !detach && !self.is_attached() && self.adapter.quirks.may_leave_debuggee {
            tether_process::kill_launch_except(self.pid, &self.launch_id);
        }
    }

    /// Waits until this program runs, has stopped or has ended; at most that long. Returns what it is doing then.
    pub(super) async fn wait_for_start(&self, within: Duration) -> RunState {
        self.session.wait_for_start(self.program, within).await
    }

    /// Whether all targets of this program have ended.
    pub(super) fn is_program_ended(&self) -> bool {
        self.session.snapshot().is_program_ended(self.program)
    }

    /// Ends the connection to a program that is gone, where its adapter has not noticed that. It still follows the window.
    pub async fn disconnect(&self) {
        self.session.stop(false).await;
        self.wait_until_ended().await;
    }

    /// What is to be known of a program that was detached from.
    pub fn release_note(&self) -> Option<String> {
        self.programs().iter().find_map(|it| it.ending.release_note.get().cloned())
    }

    /// Sees to it that the program runs on from its breakpoints, which some debuggers keep.
    async fn prepare_detach(&self) {
        let Some(hook) = self.adapter.quirks.detach_hook else { return };
        if !self.session.prepare_detach(self.program, hook, PREPARE_DETACH_TIMEOUT).await {
            let note = format!(
                "the program did not stop within {PREPARE_DETACH_TIMEOUT:?} to be prepared for the end of its debugger: {} \
                 keeps the breakpoints, and the program may end at the next one; attach to it again, and detach while it is \
                 stopped",
                self.adapter.name
            );
            let _ = self.ending.release_note.set(note);
        }
    }

    /// Readies a launched program for a life without its debugger: its output stays open, and gdb lets go of it.
    async fn prepare_release(&self) {
        let (debugger, launch_id) = (self.pid, self.launch_id.clone());
        let copied = tokio::task::spawn_blocking(move || copy_program_output(debugger, &launch_id)).await;
        *lock(&self.ending.released_output) = copied.ok();
        self.release_children(REQUEST_TIMEOUT).await;
        let Some(command) = self.adapter.quirks.detach_command else { return };
        self.pause_for_release(REQUEST_TIMEOUT).await;
        if let Err(error) = inspect::evaluate(&self.session, command, None, "repl").await {
            warn!("{}: {error}", self.id);
        }
    }

    /// Lets a program start children that are not debugged, where its debugger has changed how it starts them.
    async fn release_children(&self, pause_timeout: Duration) {
        let Some(expression) = self.adapter.quirks.release_expression else { return };
        self.pause_for_release(pause_timeout).await;
        if self.is_attached() && self.session.snapshot().program_state(self.program) == RunState::Running {
            let note = "the program did not stop in time to be released: a child that it starts may still look for the debugger, \
                        and fail; attach to it again, and detach while it is stopped";
            let _ = self.ending.release_note.set(note.to_owned());
            return;
        }
        inspect::evaluate_in_targets(&self.session, self.program, expression).await;
    }

    /// What is evaluated in a program that runs may crash it (debugpy, just before it disconnects).
    async fn pause_for_release(&self, limit: Duration) {
        if self.run_state() == RunState::Running && inspect::pause_thread(&self.session, None).await.is_ok() {
            self.session.wait_for_stop(limit).await;
        }
    }

    /// The exit code of the program, waited for a short time once it, or its connection, has ended; `None` before.
    pub async fn exit_code_once_ended(&self) -> Option<i64> {
        if self.exit_code().is_none() && self.session.snapshot().is_ended() {
            let _ = tokio::time::timeout(EXIT_TIMEOUT, self.wait_until_ended()).await;
        }
        self.exit_code()
    }

    /// Resolves when nothing of it is left.
    pub async fn wait_until_ended(&self) {
        // Further programs may be added until then. The sender exists as long as `self`.
        let _ = self.session.watch().wait_for(|snapshot| !snapshot.awaits_programs).await;
        for program in self.programs() {
            program.wait_until_program_ended().await;
        }
    }

    /// Resolves when nothing of this program is left.
    pub(super) async fn wait_until_program_ended(&self) {
        let mut ended = self.ending.ended_at.subscribe();
        // The sender exists as long as `self`.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

/// How one program of a session ended, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// The program's name, for readers.
    pub name: String,
    /// Its exit code, if it exited by itself.
    pub code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was ended, or detached from, by request.
    pub was_stopped: bool,
}

/// The ends of the output of a launch's programs that their debugger holds. None where what was started is the program
/// itself, whose output is read here. Blocks.
fn copy_program_output(debugger: Option<u32>, launch_id: &str) -> std::io::Result<OutputPipes> {
    let programs = tether_process::find_launch_processes(launch_id)?;
    let programs: Vec<u32> = programs.iter().map(Process::pid).filter(|pid| Some(*pid) != debugger).collect();
    debugger.map_or_else(|| Ok(OutputPipes::default()), |debugger| OutputPipes::copy_from_debugger(debugger, &programs))
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
    ending.reconnection.send_replace(Reconnection::GivenUp(None));
    ManagedSession {
        id,
        request,
        adapter,
        session,
        started_at,
        code_swapped_at: Arc::default(),
        pid: None,
        is_program: false,
        program: 0,
        companions: Arc::default(),
        attached_process: None,
        launch_id,
        note: None,
        ending,
        survey: None,
    }
}
