//! A session: the tree of its targets, what they are doing, and the waiting for any of them.
//!
//! ```text
//!  orders ─┐                      ┌─▶ targets (a task each) ── step ──▶ published (watch) ─▶ whoever waits
//!  births ─┴─▶ house ─────────────┴─▶ calls (resume, stop, breakpoints)
//! ```
//! It stops when any target stops, and ends when its last target has. Must not know adapters: it is handed what dials
//! theirs.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::event_log::EventLog;
use super::snapshot::{RunState, SessionSnapshot, WaitOutcome};
use super::target::{Resume, TargetPlan, target_name};
use super::target_handle::{SessionShared, TargetHandle};
use super::target_state::{TargetEffect, TargetInput, TargetPhase};
use super::task::SessionTask;
use crate::adapters::Connector;
use crate::dap::types::DapRequest;
use crate::dap::{DapClient, DapError, IncomingRequest};
use crate::debug::breakpoints::sync;
use crate::debug::breakpoints::{BindingStatus, BreakpointSpec, BreakpointStore};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long a breakpoint that was set in a living program may take to be bound, before its answer is taken as it is.
const BINDING_TIMEOUT: Duration = Duration::from_millis(500);

pub(in crate::debug) enum SessionCommand {
    SpawnChild {
        parent: usize,
        asked: IncomingRequest,
    },
    Resume {
        target: usize,
        how: Resume,
        thread: i64,
        reply: oneshot::Sender<Result<(), DapError>>,
    },
    /// What was wanted only until the next stop is over.
    RemoveTemporary,
    Stop {
        terminate: bool,
    },
}

/// A handle to a session; clones are the same session. The session ends when the last one is dropped.
#[derive(Clone)]
pub struct DebugSession {
    pub(in crate::debug) shared: Arc<SessionShared>,
    orders: mpsc::UnboundedSender<SessionCommand>,
}

/// A kind of breakpoints that has changed.
#[derive(Clone, Copy, Debug)]
pub enum ChangedBreakpoints<'a> {
    File(&'a Path),
    /// Whether one was removed.
    Functions(bool),
    Exceptions,
    Data,
}

/// A target's own place in its session, and the right to end it.
pub(in crate::debug) struct TargetGuard {
    seat: TargetHandle,
    orders: mpsc::WeakUnboundedSender<SessionCommand>,
}

impl std::ops::Deref for TargetGuard {
    type Target = TargetHandle;

    fn deref(&self) -> &TargetHandle {
        &self.seat
    }
}

impl TargetGuard {
    pub fn new(seat: TargetHandle, orders: mpsc::WeakUnboundedSender<SessionCommand>) -> TargetGuard {
        TargetGuard { seat, orders }
    }

    pub fn step(&self, input: TargetInput) -> TargetEffect {
        let stops = matches!(input, TargetInput::Stopped(_));
        let effect = self.seat.step(input);
        // When nobody is left who gives orders, the session is ending.
        if stops && let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(SessionCommand::RemoveTemporary);
        }
        effect
    }

    /// The adapter wants another connection.
    pub fn request_child(&self, asked: IncomingRequest) {
        // When nobody is left who gives orders, it is dropped, and so refused.
        if let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(SessionCommand::SpawnChild { parent: self.seat.id, asked });
        }
    }
}

impl Drop for TargetGuard {
    fn drop(&mut self) {
        // However its task has ended: nobody waits for a target that is gone.
        self.seat.step(TargetInput::Closed("it was given up".to_owned()));
        self.seat.clear_client();
    }
}

impl DebugSession {
    /// A session, and the future that drives it: spawn it. Dropping that cuts all connections.
    pub fn open(
        plan: TargetPlan,
        dial: Connector,
        book: Arc<Mutex<BreakpointStore>>,
    ) -> (DebugSession, impl Future<Output = ()> + Send + 'static) {
        DebugSession::open_with_log(plan, dial, book, Arc::default())
    }

    /// As [`Session::open`], and what it says goes on in a record that there is already.
    pub(in crate::debug) fn open_with_log(
        plan: TargetPlan,
        dial: Connector,
        book: Arc<Mutex<BreakpointStore>>,
        record: Arc<EventLog>,
    ) -> (DebugSession, impl Future<Output = ()> + Send + 'static) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(SessionShared::new(book, record, plan.deadline));
        let first = TargetGuard::new(shared.add_target(None, target_name(&plan.start)), orders.downgrade());
        let house = SessionTask { shared: Arc::clone(&shared), plan, dial, orders: orders.downgrade() };
        (DebugSession { shared, orders }, house.run(first, inbox))
    }

    /// One that has ended before anybody here knew of it.
    pub(in crate::debug) fn open_lost(
        name: String,
        reason: String,
        book: Arc<Mutex<BreakpointStore>>,
        record: Arc<EventLog>,
    ) -> DebugSession {
        let (orders, _) = mpsc::unbounded_channel();
        // Nobody is left to be asked.
        let shared = Arc::new(SessionShared::new(book, record, Duration::ZERO));
        shared.add_target(None, name).step(TargetInput::Closed(reason));
        DebugSession { shared, orders }
    }

    pub fn snapshot(&self) -> SessionSnapshot {
        self.shared.published.borrow().clone()
    }

    /// Told of each change of the snapshot.
    pub fn watch(&self) -> tokio::sync::watch::Receiver<SessionSnapshot> {
        self.shared.published.subscribe()
    }

    pub fn event_log(&self) -> &Arc<EventLog> {
        &self.shared.record
    }

    /// Waits until a target stops or all have ended; at most that long. Never answers a stop that a resume has left.
    pub async fn wait_for_stop(&self, timeout: Duration) -> WaitOutcome {
        let settled = |snapshot: &SessionSnapshot| snapshot.run_state() == RunState::Stopped || snapshot.is_ended();
        self.wait_until(timeout, settled).await
    }

    /// As [`Session::wait_for_stop`], and ends as soon as the program runs, too.
    pub async fn wait_for_start(&self, timeout: Duration) -> WaitOutcome {
        self.wait_until(timeout, |snapshot| snapshot.run_state() != RunState::Starting).await
    }

    async fn wait_until(&self, timeout: Duration, settled: impl Fn(&SessionSnapshot) -> bool) -> WaitOutcome {
        let began = Instant::now();
        let mut seen = self.shared.published.subscribe();
        let snapshot = match tokio::time::timeout(timeout, seen.wait_for(|it| settled(it))).await {
            Ok(Ok(snapshot)) => snapshot.clone(),
            _ => self.snapshot(),
        };
        let state = snapshot.run_state();
        let stop = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone()));
        let message = match state {
            RunState::Stopped => None,
            RunState::Terminated => Some(match snapshot.exit_code() {
                Some(code) => format!("the program has ended with code {code}"),
                None => "the program has ended".to_owned(),
            }),
            RunState::Disconnected => {
                snapshot.disconnect_reason().map(|reason| format!("the connection ended: {reason}"))
            }
            RunState::Starting | RunState::Running => Some(format!("nothing stopped within {timeout:?}")),
        };
        WaitOutcome { stop, state, waited: began.elapsed(), message }
    }

    /// Lets a stopped thread, or that of the primary stop, go on. When this returns without an error, the adapter has

    /// accepted it. A caller that goes away meanwhile does not take it back.
    pub async fn resume(&self, how: Resume, thread: Option<(usize, i64)>) -> Result<()> {
        let (target, thread) = self.resolve_thread(thread)?;
        if self.shared.step_target(target, TargetInput::Resume(Some(thread))) != TargetEffect::Send {
            return Err(self.not_stopped_error());
        }
        let (reply, answer) = oneshot::channel();
        let _ = self.orders.send(SessionCommand::Resume { target, how, thread, reply });
        let gone = || DapError::Closed("the session has ended".to_owned());
        let outcome = answer.await.unwrap_or_else(|_| Err(gone()));
        outcome.map_err(|cause| Error::other("cannot let the program go on").because(cause))
    }

    /// Ends every target, children first, and waits until they are gone. Calling it twice is calling it once.
    pub async fn stop(&self, terminate: bool) -> RunState {
        let _ = self.orders.send(SessionCommand::Stop { terminate });
        let mut seen = self.shared.published.subscribe();
        let ended = seen.wait_for(SessionSnapshot::is_ended).await;
        ended.map_or(RunState::Disconnected, |snapshot| snapshot.run_state())
    }

    /// Tells every living target that breakpoints of one kind have changed, and waits for their answers.
    pub async fn send_breakpoints(&self, changed: ChangedBreakpoints<'_>) {
        let mut calls = Vec::new();
        for seat in self.targets() {
            let Some(client) = seat.client().filter(|_| seat.are_breakpoints_sent()) else { continue };
            calls.push(async move {
                let (able, deadline) = (seat.wait_for_capabilities().await, self.shared.deadline);
                let _turn = seat.lock_breakpoint_requests().await;
                match changed {
                    ChangedBreakpoints::File(file) => {
                        sync::send_line_breakpoints(&client, &seat, &able, file, deadline).await
                    }
                    ChangedBreakpoints::Functions(removed) => {
                        sync::send_function_breakpoints(&client, &seat, &able, removed, deadline).await;
                    }
                    ChangedBreakpoints::Exceptions => {
                        sync::send_exception_filters(&client, &seat, &able, deadline).await
                    }
                    ChangedBreakpoints::Data => sync::send_data_breakpoints(&client, &seat, deadline).await,
                }
            });
        }
        futures_util::future::join_all(calls).await;
    }

    /// Wants a line until the next stop, and waits until every target knows.
    pub(in crate::debug) async fn set_temporary_breakpoint(&self, goal: BreakpointSpec) {
        let file = goal.file().map(Path::to_owned);
        lock(&self.shared.goals).push(goal);
        if let Some(file) = file {
            self.send_breakpoints(ChangedBreakpoints::File(&file)).await;
        }
    }

    /// Where a wanted breakpoint stands, once its binding had a moment's time.
    pub async fn wait_for_binding(&self, wanted: u32) -> BindingStatus {
        let mut stood = self.shared.stood.subscribe();
        let bound = stood.wait_for(|_| !matches!(self.binding_status(wanted), BindingStatus::Unbound(_)));
        let _ = tokio::time::timeout(BINDING_TIMEOUT, bound).await;
        self.binding_status(wanted)
    }

    pub fn binding_status(&self, wanted: u32) -> BindingStatus {
        lock(&self.shared.standings).status(wanted)
    }

    pub fn hit_count(&self, wanted: u32) -> u64 {
        lock(&self.shared.standings).hit_count(wanted)
    }

    /// It is wanted no more.
    pub fn forget_breakpoint(&self, wanted: u32) {
        lock(&self.shared.standings).remove_breakpoint(wanted);
        lock(&self.shared.data).retain(|(_, id), _| *id != wanted);
    }

    /// Asks a target.
    pub async fn request<R: DapRequest>(&self, target: usize, request: &R) -> Result<R::Response, DapError> {
        let gone = || DapError::Closed("the target is gone".to_owned());
        self.client(target).ok_or_else(gone)?.request(request, self.shared.deadline).await
    }

    pub(in crate::debug) fn client(&self, target: usize) -> Option<DapClient> {
        self.shared.client(target)
    }

    pub(in crate::debug) fn targets(&self) -> Vec<TargetHandle> {
        let count = self.snapshot().targets.len();
        (0..count).map(|id| TargetHandle { id, shared: Arc::clone(&self.shared) }).collect()
    }

    pub(in crate::debug) fn target(&self, id: usize) -> TargetHandle {
        TargetHandle { id, shared: Arc::clone(&self.shared) }
    }

    /// The target and the thread that are meant: a named one that has stopped, or that of the primary stop.
    pub(in crate::debug) fn resolve_thread(&self, thread: Option<(usize, i64)>) -> Result<(usize, i64)> {
        let snapshot = self.snapshot();
        let stops = snapshot.stops();
        let Some((target, id)) = thread else {
            let (target, stop) = stops.first().ok_or_else(|| self.not_stopped_error())?;
            return Ok((*target, stop.thread_id.unwrap_or_default()));
        };
        // A thread that has no stop of its own has stopped along with one that has.
        let stopped = |(of, stop): &&(usize, &super::stop::ThreadStop)| {
            *of == target && (stop.thread_id == Some(id) || stop.all_threads)
        };
        stops.iter().find(stopped).map(|_| (target, id)).ok_or_else(|| self.not_stopped_error())
    }

    pub(in crate::debug) fn not_stopped_error(&self) -> Error {
        let snapshot = self.snapshot();
        let error = Error::new(ErrorKind::Usage, "the program is not stopped");
        let error = error.because(format!("its state is {}", snapshot.run_state().name()));
        if snapshot.is_ended() {
            return error.hint("`tether debug launch` starts a session");
        }
        let some = snapshot.targets.iter().any(|target| matches!(target.state.phase, TargetPhase::Stopped(_)));
        if some {
            return error.hint("that thread runs: `tether debug status` lists the ones that are stopped");
        }
        error.hint("`tether debug pause` stops it; `tether debug wait` waits until it stops by itself")
    }
}
