//! A handle to a debug session: its targets, what they are doing, and waiting for a change of that.
//!
//! ```text
//!  commands ───────┐             ┌─▶ targets (a task each) ── step ──▶ snapshot (watch) ─▶ waiting callers
//!  startDebugging ─┴─▶ task ─────┴─▶ calls (resume, stop, breakpoints)
//! ```
//! It has one program or several, each with a task and at least one target. It stops when any target stops, and ends when its
//! last target has ended. Does not depend on adapters: it is given a function that connects to one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_dap::DapError;
use tether_dap::types::{CaptureEventsArguments, DapRequest};
use tokio::sync::{mpsc, watch};

use super::command::SessionCommand;
use super::event_log::EventLog;
use super::session_shared::SessionShared;
use super::snapshot::{SessionSnapshot, TargetSnapshot, WaitOutcome};
use super::target_handle::{TargetGuard, TargetHandle};
use super::target_state::{TargetEnd, TargetInput, TargetPhase};
use super::task::{SessionProgram, SessionTask};
use crate::adapters::Quirks;
use crate::debug::breakpoints::sync::{ChangedBreakpoints, send_changed_breakpoints};
use crate::debug::breakpoints::{BindingStatus, BreakpointStore};
use crate::vocabulary::RunState;

/// How long the binding of a breakpoint that was set in a running program may take, before it is returned as it is.
const BINDING_TIMEOUT: Duration = Duration::from_millis(500);
/// How long an adapter may take to ask for breakpoints after it has answered the start, and to take them.
const CONFIGURATION_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle to a session; clones are the same session. The session ends when the last one is dropped.
#[derive(Clone)]
pub struct DebugSession {
    pub(in crate::debug) shared: Arc<SessionShared>,
    /// In the order of their start.
    pub(super) programs: Arc<Mutex<Vec<ProgramHandle>>>,
}

/// The task of one program.
pub(super) struct ProgramHandle {
    commands: mpsc::UnboundedSender<SessionCommand>,
    /// As the adapter's quirk of that name.
    binds_late: bool,
    /// A resume is of one thread.
    pub(super) resumes_one_thread: bool,
    pub(super) is_core: bool,
}

impl DebugSession {
    /// A session, and the future that drives it, to be spawned. Dropping that closes all connections. Output and events
    /// are appended to the log.
    pub fn open(
        program: SessionProgram,
        breakpoints: BreakpointStore,
        event_log: Arc<EventLog>,
    ) -> (DebugSession, impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::new(SessionShared::new(breakpoints, event_log, program.plan.deadline));
        let session = DebugSession { shared, programs: Arc::default() };
        let (_, driver) = session.add_program(program);
        (session, driver)
    }

    /// Adds a program. Returns its index, and the future that drives it, to be spawned.
    pub fn add_program(&self, program: SessionProgram) -> (usize, impl Future<Output = ()> + Send + 'static + use<>) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let weak = commands.downgrade();
        let Quirks { binds_late, resumes_one_thread, .. } = program.plan.quirks;
        let mut programs = lock(&self.programs);
        let index = programs.len();
        programs.push(ProgramHandle { commands, binds_late, resumes_one_thread, is_core: program.is_core });
        drop(programs);
        let (name, pid) = (program.plan.target_name(), program.pid);
        let handle = self.shared.add_target(TargetSnapshot { name, program: index, pid, ..TargetSnapshot::default() });
        let first = TargetGuard { handle, commands: weak.clone() };
        let task = SessionTask { shared: Arc::clone(&self.shared), index, program, commands: weak };
        (index, task.run(first, inbox))
    }

    /// Whether further programs are being started: until then it does not end.
    pub fn set_awaits_programs(&self, awaits: bool) {
        self.shared
            .snapshot
            .send_if_modified(|snapshot| std::mem::replace(&mut snapshot.awaits_programs, awaits) != awaits);
    }

    /// A session that has already ended, for that reason.
    pub(in crate::debug) fn open_lost(
        name: String,
        reason: String,
        breakpoints: BreakpointStore,
        event_log: Arc<EventLog>,
    ) -> DebugSession {
        // No request is ever sent.
        let shared = Arc::new(SessionShared::new(breakpoints, event_log, Duration::ZERO));
        shared
            .add_target(TargetSnapshot { name, ..TargetSnapshot::default() })
            .apply_input(TargetInput::Closed(reason));
        DebugSession { shared, programs: Arc::default() }
    }

    /// Whether it was opened by [`DebugSession::open_lost`].
    pub(in crate::debug) fn is_lost(&self) -> bool {
        lock(&self.programs).is_empty()
    }

    /// The program of a session whose connection was lost has ended since.
    pub(in crate::debug) fn end_lost_program(&self) {
        self.shared.snapshot.send_modify(|snapshot| {
            snapshot.generation = snapshot.generation.saturating_add(1);
            for target in &mut snapshot.targets {
                if let TargetPhase::Ended(TargetEnd::Disconnected(_)) = target.state.phase {
                    target.state.phase = TargetPhase::Ended(TargetEnd::Terminated { exit: None });
                }
            }
        });
    }

    /// The state of all targets.
    pub fn snapshot(&self) -> SessionSnapshot {
        self.shared.snapshot.borrow().clone()
    }

    /// Receives each change of the snapshot.
    pub fn watch(&self) -> watch::Receiver<SessionSnapshot> {
        self.shared.snapshot.subscribe()
    }

    /// Output and events.
    pub fn event_log(&self) -> &Arc<EventLog> {
        &self.shared.event_log
    }

    /// Waits until a target stops or all have ended; at most that long. Never returns the stop that a
    /// resume has left.
    pub async fn wait_for_stop(&self, timeout: Duration) -> WaitOutcome {
        let settled = |snapshot: &SessionSnapshot| snapshot.run_state() == RunState::Stopped || snapshot.is_ended();
        self.wait_until(timeout, settled).await
    }

    /// Waits until a program runs with its breakpoints, has stopped or has ended; at most that long. Returns what it is doing
    /// then.
    pub async fn wait_for_start(&self, program: usize, timeout: Duration) -> RunState {
        let started = self.wait_until(timeout, |snapshot| snapshot.program_state(program) != RunState::Starting).await;
        let left = timeout.saturating_sub(started.waited);
        self.wait_until_configured(program, left.min(CONFIGURATION_TIMEOUT)).await;
        self.snapshot().program_state(program)
    }

    /// Waits until the targets of a program have their breakpoints, at most that long: an adapter may answer an attach before.
    /// A stop, or the end, ends the wait.
    async fn wait_until_configured(&self, program: usize, timeout: Duration) {
        let own = self.shared.program_targets(program);
        let configured = join_all(own.iter().map(TargetHandle::wait_until_configured));
        tokio::select! {
            biased; // nothing is waited for where all have them
            _ = configured => {}
            _ = self.wait_until(timeout, |it| it.program_state(program) != RunState::Running) => {}
        }
    }

    async fn wait_until(&self, timeout: Duration, settled: impl Fn(&SessionSnapshot) -> bool) -> WaitOutcome {
        let began = Instant::now();
        let mut seen = self.shared.snapshot.subscribe();
        let snapshot = match tokio::time::timeout(timeout, seen.wait_for(|it| settled(it))).await {
            Ok(Ok(snapshot)) => snapshot.clone(),
            _ => self.snapshot(),
        };
        let state = snapshot.run_state();
        let stop = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone()));
        let message = matches!(state, RunState::Starting | RunState::Running).then(|| {
            // What is left of a longer timeout is not a round number.
            let rounded = Duration::from_millis((timeout.as_secs_f64() * 1000.0).round() as u64);
            format!("nothing stopped within {rounded:?}")
        });
        WaitOutcome { stop, state, waited: began.elapsed(), message }
    }

    /// When the task has ended, the command is dropped.
    pub(super) fn send_command(&self, program: usize, command: SessionCommand) {
        let programs = lock(&self.programs);
        let _ = programs.get(program).map(|program| program.commands.send(command));
    }

    /// Ends every target, children first, and waits until they have ended. May be called again.
    pub async fn stop(&self, terminate: bool) -> RunState {
        let count = lock(&self.programs).len();
        self.stop_programs(&(0..count).map(|program| (program, terminate)).collect::<Vec<_>>()).await
    }

    /// As [`DebugSession::stop`], of some programs by their index; whether each is ended itself. Waits for these only.
    pub async fn stop_programs(&self, programs: &[(usize, bool)]) -> RunState {
        self.set_awaits_programs(false);
        for (program, terminate) in programs {
            self.send_command(*program, SessionCommand::Stop { terminate: *terminate });
        }
        let is_ended = |it: &SessionSnapshot| programs.iter().all(|(program, _)| it.is_program_ended(*program));
        let mut seen = self.shared.snapshot.subscribe();
        let ended = seen.wait_for(is_ended).await;
        ended.map_or(RunState::Disconnected, |snapshot| snapshot.run_state())
    }

    /// Sends the breakpoints of one kind to every target that has been sent breakpoints before, and waits for the
    /// responses.
    pub async fn send_breakpoints(&self, changed: ChangedBreakpoints<'_>) {
        send_changed_breakpoints(&self.shared.targets(), changed).await;
    }

    /// How a breakpoint is bound. Waits until it is, at most `BINDING_TIMEOUT`, and longer while scripts are being read.
    pub async fn wait_for_binding(&self, breakpoint: u32) -> BindingStatus {
        let mut changes = self.shared.bindings_changed.subscribe();
        let bound = changes.wait_for(|_| !matches!(self.binding_status(breakpoint), BindingStatus::Unbound(_)));
        let given_up = async {
            let loaded = async {
                if self.binds_late() {
                    self.shared.wait_until_loaded().await;
                }
            };
            tokio::join!(tokio::time::sleep(BINDING_TIMEOUT), loaded);
        };
        tokio::select! {
            _ = bound => {}
            () = given_up => {}
        }
        self.binding_status(breakpoint)
    }

    /// Waits until the breakpoints in scripts that are loaded are bound, where the adapter binds them late. A stop, or the
    /// end, ends the wait.
    pub async fn wait_until_bound(&self) {
        if !self.binds_late() {
            return;
        }
        let breakpoints = self.shared.breakpoints.current();
        let bound = join_all(breakpoints.breakpoints.iter().map(|spec| self.wait_for_binding(spec.id)));
        tokio::select! {
            _ = bound => {}
            _ = self.wait_for_stop(Duration::MAX) => {}
        }
    }

    /// Whether an adapter of it binds breakpoints late.
    fn binds_late(&self) -> bool {
        lock(&self.programs).iter().any(|program| program.binds_late)
    }

    /// How the targets have bound a breakpoint.
    pub fn binding_status(&self, breakpoint: u32) -> BindingStatus {
        self.shared.with_state(|state| state.bindings.status(breakpoint))
    }

    /// How often a breakpoint has been hit.
    pub fn hit_count(&self, breakpoint: u32) -> u64 {
        self.shared.with_state(|state| state.bindings.hit_count(breakpoint))
    }

    /// Captures these kinds of monitor events from now on, and no others, where an adapter can. Returns the kinds.
    /// Errors: it cannot, there is no such kind.
    pub async fn capture_events(&self, kinds: Vec<String>) -> Result<Vec<String>> {
        let cannot = |cause: String| Error::usage("cannot choose which events are captured").because(cause);
        let able = |target: &TargetHandle| target.capabilities().can("supportsCaptureEvents");
        let targets: Vec<TargetHandle> = self.shared.targets().into_iter().filter(able).collect();
        if targets.is_empty() {
            return Err(cannot("only the adapter for Java can".to_owned()));
        }
        let request = CaptureEventsArguments { kinds: kinds.into_iter().filter(|kind| !kind.is_empty()).collect() };
        let mut captured = Vec::new();
        for target in targets {
            captured = self.request(target.id, &request).await.map_err(|cause| cannot(cause.to_string()))?.kinds;
        }
        Ok(captured)
    }

    /// Sends a request to a target.
    pub async fn request<R: DapRequest>(&self, target: usize, request: &R) -> Result<R::Response, DapError> {
        let gone = || DapError::Closed("the target is gone".to_owned());
        self.shared.client(target).ok_or_else(gone)?.request(request, self.shared.request_timeout).await
    }

    /// The error of a request that an adapter has refused or not answered, with what to do next. `what` completes
    /// "cannot …".
    pub(in crate::debug) fn request_error(&self, what: &str, cause: DapError) -> Error {
        let timed_out = matches!(cause, DapError::TimedOut { .. });
        let kind = if timed_out { ErrorKind::TimedOut } else { ErrorKind::Other };
        let error = Error::new(kind, format!("cannot {what}")).because(cause);
        match self.snapshot().run_state() {
            RunState::Terminated | RunState::Disconnected => {
                error.hint("the session has ended; `tether debug launch PROGRAM` starts one")
            }
            RunState::Running => error.hint("the program runs: `tether debug pause` stops it in a frame"),
            _ if timed_out => error.hint("the program may be busy: `tether debug status` shows its state"),
            _ => error,
        }
    }
}
