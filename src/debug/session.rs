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

use super::breakpoints::{Book, Standing, Wanted};
use super::configure;
use super::house::House;
use super::published::{Snapshot, State, Waited};
use super::record::Record;
use super::seat::{Seat, Shared};
use super::state::{Effect, Input, Phase};
use super::target::{Plan, Resume, name_of};
use crate::adapters::Connector;
use crate::dap::types::DapRequest;
use crate::dap::{DapClient, DapError, IncomingRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long a breakpoint that was set in a living program may take to be bound, before its answer is taken as it is.
const BOUND_WITHIN: Duration = Duration::from_millis(500);

pub(super) enum Order {
    Birth {
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
    Stopped,
    Stop {
        terminate: bool,
    },
}

/// A handle to a session; clones are the same session. The session ends when the last one is dropped.
#[derive(Clone)]
pub struct Session {
    pub(super) shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
}

/// A kind of breakpoints that has changed.
#[derive(Clone, Copy, Debug)]
pub enum Changed<'a> {
    File(&'a Path),
    /// Whether one was removed.
    Functions(bool),
    Exceptions,
    Data,
}

/// A target's own place in its session, and the right to end it.
pub(super) struct Member {
    seat: Seat,
    orders: mpsc::WeakUnboundedSender<Order>,
}

impl std::ops::Deref for Member {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        &self.seat
    }
}

impl Member {
    pub fn new(seat: Seat, orders: mpsc::WeakUnboundedSender<Order>) -> Member {
        Member { seat, orders }
    }

    pub fn step(&self, input: Input) -> Effect {
        let stops = matches!(input, Input::Stopped(_));
        let effect = self.seat.step(input);
        // When nobody is left who gives orders, the session is ending.
        if stops && let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(Order::Stopped);
        }
        effect
    }

    /// The adapter wants another connection.
    pub fn birth(&self, asked: IncomingRequest) {
        // When nobody is left who gives orders, it is dropped, and so refused.
        if let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(Order::Birth { parent: self.seat.id, asked });
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // However its task has ended: nobody waits for a target that is gone.
        self.seat.step(Input::Closed("it was given up".to_owned()));
        self.seat.leave();
    }
}

impl Session {
    /// A session, and the future that drives it: spawn it. Dropping that cuts all connections.
    pub fn open(
        plan: Plan,
        dial: Connector,
        book: Arc<Mutex<Book>>,
    ) -> (Session, impl Future<Output = ()> + Send + 'static) {
        Session::recorded(plan, dial, book, Arc::default())
    }

    /// As [`Session::open`], and what it says goes on in a record that there is already.
    pub(super) fn recorded(
        plan: Plan,
        dial: Connector,
        book: Arc<Mutex<Book>>,
        record: Arc<Record>,
    ) -> (Session, impl Future<Output = ()> + Send + 'static) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(book, record, plan.deadline));
        let first = Member::new(shared.add(None, name_of(&plan.start)), orders.downgrade());
        let house = House { shared: Arc::clone(&shared), plan, dial, orders: orders.downgrade() };
        (Session { shared, orders }, house.drive(first, inbox))
    }

    /// One that has ended before anybody here knew of it.
    pub(super) fn lost(name: String, reason: String, book: Arc<Mutex<Book>>, record: Arc<Record>) -> Session {
        let (orders, _) = mpsc::unbounded_channel();
        // Nobody is left to be asked.
        let shared = Arc::new(Shared::new(book, record, Duration::ZERO));
        shared.add(None, name).step(Input::Closed(reason));
        Session { shared, orders }
    }

    pub fn snapshot(&self) -> Snapshot {
        self.shared.published.borrow().clone()
    }

    /// Told of each change of the snapshot.
    pub fn watch(&self) -> tokio::sync::watch::Receiver<Snapshot> {
        self.shared.published.subscribe()
    }

    pub fn record(&self) -> &Arc<Record> {
        &self.shared.record
    }

    /// Waits until a target stops or all have ended; at most that long. Never answers a stop that a resume has left.
    pub async fn wait_for_stop(&self, timeout: Duration) -> Waited {
        let settled = |snapshot: &Snapshot| snapshot.state() == State::Stopped || snapshot.is_ended();
        self.wait_until(timeout, settled).await
    }

    /// As [`Session::wait_for_stop`], and ends as soon as the program runs, too.
    pub async fn wait_for_start(&self, timeout: Duration) -> Waited {
        self.wait_until(timeout, |snapshot| snapshot.state() != State::Starting).await
    }

    async fn wait_until(&self, timeout: Duration, settled: impl Fn(&Snapshot) -> bool) -> Waited {
        let began = Instant::now();
        let mut seen = self.shared.published.subscribe();
        let snapshot = match tokio::time::timeout(timeout, seen.wait_for(|it| settled(it))).await {
            Ok(Ok(snapshot)) => snapshot.clone(),
            _ => self.snapshot(),
        };
        let state = snapshot.state();
        let stop = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone()));
        let message = match state {
            State::Stopped => None,
            State::Terminated => Some(match snapshot.exit_code() {
                Some(code) => format!("the program has ended with code {code}"),
                None => "the program has ended".to_owned(),
            }),
            State::Disconnected => snapshot.reason().map(|reason| format!("the connection ended: {reason}")),
            State::Starting | State::Running => Some(format!("nothing stopped within {timeout:?}")),
        };
        Waited { stop, state, waited: began.elapsed(), message }
    }

    /// Lets a stopped thread, or that of the primary stop, go on. When this returns without an error, the adapter has
    /// accepted it. A caller that goes away meanwhile does not take it back.
    pub async fn resume(&self, how: Resume, thread: Option<(usize, i64)>) -> Result<()> {
        let (target, thread) = self.choose(thread)?;
        if self.shared.step(target, Input::Resume(Some(thread))) != Effect::Send {
            return Err(self.not_stopped());
        }
        let (reply, answer) = oneshot::channel();
        let _ = self.orders.send(Order::Resume { target, how, thread, reply });
        let gone = || DapError::Closed("the session has ended".to_owned());
        let outcome = answer.await.unwrap_or_else(|_| Err(gone()));
        outcome.map_err(|cause| Error::other("cannot let the program go on").because(cause))
    }

    /// Ends every target, children first, and waits until they are gone. Calling it twice is calling it once.
    pub async fn stop(&self, terminate: bool) -> State {
        let _ = self.orders.send(Order::Stop { terminate });
        let mut seen = self.shared.published.subscribe();
        let ended = seen.wait_for(Snapshot::is_ended).await;
        ended.map_or(State::Disconnected, |snapshot| snapshot.state())
    }

    /// Tells every living target that breakpoints of one kind have changed, and waits for their answers.
    pub async fn apply(&self, changed: Changed<'_>) {
        let mut calls = Vec::new();
        for seat in self.seats() {
            let Some(client) = seat.client().filter(|_| seat.is_told()) else { continue };
            calls.push(async move {
                let (able, deadline) = (seat.greeted().await, self.shared.deadline);
                let _turn = seat.turn().await;
                match changed {
                    Changed::File(file) => configure::send_file(&client, &seat, &able, file, deadline).await,
                    Changed::Functions(removed) => {
                        configure::send_functions(&client, &seat, &able, removed, deadline).await;
                    }
                    Changed::Exceptions => configure::send_exceptions(&client, &seat, &able, deadline).await,
                    Changed::Data => configure::send_data(&client, &seat, deadline).await,
                }
            });
        }
        futures_util::future::join_all(calls).await;
    }

    /// Wants a line until the next stop, and waits until every target knows.
    pub(super) async fn runs_to(&self, goal: Wanted) {
        let file = goal.file().map(Path::to_owned);
        lock(&self.shared.goals).push(goal);
        if let Some(file) = file {
            self.apply(Changed::File(&file)).await;
        }
    }

    /// Where a wanted breakpoint stands, once its binding had a moment's time.
    pub async fn settled(&self, wanted: u32) -> Standing {
        let mut stood = self.shared.stood.subscribe();
        let bound = stood.wait_for(|_| !matches!(self.standing(wanted), Standing::Unbound(_)));
        let _ = tokio::time::timeout(BOUND_WITHIN, bound).await;
        self.standing(wanted)
    }

    pub fn standing(&self, wanted: u32) -> Standing {
        lock(&self.shared.standings).standing(wanted)
    }

    pub fn hits(&self, wanted: u32) -> u64 {
        lock(&self.shared.standings).hits(wanted)
    }

    /// It is wanted no more.
    pub fn forget(&self, wanted: u32) {
        lock(&self.shared.standings).forget(wanted);
        lock(&self.shared.data).retain(|(_, id), _| *id != wanted);
    }

    /// Asks a target.
    pub async fn ask<R: DapRequest>(&self, target: usize, request: &R) -> Result<R::Response, DapError> {
        let gone = || DapError::Closed("the target is gone".to_owned());
        self.client(target).ok_or_else(gone)?.request(request, self.shared.deadline).await
    }

    pub(super) fn client(&self, target: usize) -> Option<DapClient> {
        self.shared.client(target)
    }

    pub(super) fn seats(&self) -> Vec<Seat> {
        let count = self.snapshot().targets.len();
        (0..count).map(|id| Seat { id, shared: Arc::clone(&self.shared) }).collect()
    }

    pub(super) fn seat(&self, id: usize) -> Seat {
        Seat { id, shared: Arc::clone(&self.shared) }
    }

    /// The target and the thread that are meant: a named one that has stopped, or that of the primary stop.
    pub(super) fn choose(&self, thread: Option<(usize, i64)>) -> Result<(usize, i64)> {
        let snapshot = self.snapshot();
        let stops = snapshot.stops();
        let Some((target, id)) = thread else {
            let (target, stop) = stops.first().ok_or_else(|| self.not_stopped())?;
            return Ok((*target, stop.thread_id.unwrap_or_default()));
        };
        // A thread that has no stop of its own has stopped along with one that has.
        let stopped = |(of, stop): &&(usize, &super::stop::Stop)| {
            *of == target && (stop.thread_id == Some(id) || stop.all_threads)
        };
        stops.iter().find(stopped).map(|_| (target, id)).ok_or_else(|| self.not_stopped())
    }

    pub(super) fn not_stopped(&self) -> Error {
        let snapshot = self.snapshot();
        let error = Error::new(ErrorKind::Usage, "the program is not stopped");
        let error = error.because(format!("its state is {}", snapshot.state().name()));
        if snapshot.is_ended() {
            return error.hint("`tether debug launch` starts a session");
        }
        let some = snapshot.targets.iter().any(|target| matches!(target.state.phase, Phase::Stopped(_)));
        if some {
            return error.hint("that thread runs: `tether debug status` lists the ones that are stopped");
        }
        error.hint("`tether debug pause` stops it; `tether debug wait` waits until it stops by itself")
    }
}

#[cfg(test)]
mod tests;
