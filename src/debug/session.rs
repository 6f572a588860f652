//! A session: the tree of its targets, what they are doing, and the waiting for any of them.
//!
//! ```text
//!  orders ─┐                      ┌─▶ targets (a task each) ── step ──▶ published (watch) ─▶ whoever waits
//!  births ─┴─▶ drive ─────────────┴─▶ calls (resume, stop)
//! ```
//! It stops when any target stops, and ends when its last target has. Must not know adapters: it is handed what dials
//! theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::state::{Effect, End, Input, Phase, TargetState, step};
use super::stop::Stop;
use super::target::{Plan, Resume, drive, name_of, say_goodbye};
use crate::dap::types::{Nothing, StartDebugging};
use crate::dap::{Asked, Client, Connection, Error as DapError, Refusal};
use crate::error::{Error, Kind, Result};

/// Opens another connection to the same adapter, within a deadline of its own.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<Connection, DapError>> + Send + Sync>;

/// What a session is doing, in the API's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    Starting,
    Running,
    Stopped,
    Terminated,
    Disconnected,
}

/// One target as it is published.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub name: String,
    /// The target whose adapter asked for it.
    pub parent: Option<usize>,
    pub state: TargetState,
    /// The generation in which it stopped first since it last ran.
    stopped_in: u64,
}

/// All targets, in the order of their birth; the place of one is its id.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub generation: u64,
    pub targets: Vec<Seen>,
}

impl Snapshot {
    pub fn state(&self) -> State {
        let any = |is: fn(&Phase) -> bool| self.targets.iter().any(|target| is(&target.state.phase));
        if any(|phase| matches!(phase, Phase::Stopped(_))) {
            State::Stopped
        } else if any(|phase| matches!(phase, Phase::Running { .. })) {
            State::Running
        } else if any(|phase| matches!(phase, Phase::Starting)) {
            State::Starting
        } else if any(|phase| matches!(phase, Phase::Ended(End::Disconnected(_)))) {
            State::Disconnected
        } else {
            State::Terminated
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state(), State::Terminated | State::Disconnected)
    }

    /// Every stop with its target, the primary one first.
    pub fn stops(&self) -> Vec<(usize, &Stop)> {
        let mut targets: Vec<(usize, &Seen)> = self.targets.iter().enumerate().collect();
        targets.sort_by_key(|(_, target)| target.stopped_in);
        targets.into_iter().flat_map(|(id, target)| target.state.stops().iter().map(move |stop| (id, stop))).collect()
    }

    /// Why the connection of a target ended, where that was not the program's end.
    pub fn reason(&self) -> Option<&str> {
        self.targets.iter().find_map(|target| match &target.state.phase {
            Phase::Ended(End::Disconnected(reason)) => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// What a waiting for a stop came to; that it came to nothing is an answer, too.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The primary stop, and its target.
    pub stop: Option<(usize, Stop)>,
    pub state: State,
    pub waited: Duration,
    /// Why there is no stop.
    pub message: Option<String>,
}

enum Order {
    Birth { parent: usize, asked: Asked },
    Resume { target: usize, how: Resume, thread: i64, reply: oneshot::Sender<Result<(), DapError>> },
    Stop { terminate: bool },
}

struct Shared {
    published: watch::Sender<Snapshot>,
    reached: Mutex<Reached>,
}

#[derive(Default)]
struct Reached {
    /// By target; none before it is dialled and after its end.
    clients: Vec<Option<Client>>,
    /// Whoever is reached from now on is left at once.
    stopping: bool,
}

/// A handle to a session; clones are the same session. The session ends when the last one is dropped.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
}

/// A target's own place in its session.
pub(super) struct Member {
    id: usize,
    shared: Arc<Shared>,
    orders: mpsc::WeakUnboundedSender<Order>,
}

impl Member {
    pub fn step(&self, input: Input) -> Effect {
        self.shared.step(self.id, input)
    }

    pub fn is_reached_by(&self, client: &Client) {
        let mut reached = self.shared.reached();
        if reached.stopping {
            client.close();
        }
        reached.clients[self.id] = Some(client.clone());
    }

    /// The adapter wants another connection.
    pub fn birth(&self, asked: Asked) {
        // When nobody is left who gives orders, it is dropped, and so refused.
        if let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(Order::Birth { parent: self.id, asked });
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // However its task has ended: nobody waits for a target that is gone.
        self.step(Input::Closed("it was given up".to_owned()));
        self.shared.reached().clients[self.id] = None;
    }
}

impl Shared {
    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, id: usize, input: Input) -> Effect {
        let mut effect = Effect::Nothing;
        self.published.send_if_modified(|snapshot| {
            let (next, does) = step(&snapshot.targets[id].state, input);
            effect = does;
            let Some(next) = next else { return false };
            snapshot.generation += 1;
            let target = &mut snapshot.targets[id];
            if !matches!(target.state.phase, Phase::Stopped(_)) {
                target.stopped_in = snapshot.generation;
            }
            target.state = next;
            true
        });
        effect
    }

    fn client(&self, id: usize) -> Option<Client> {
        self.reached().clients.get(id).cloned().flatten()
    }

    fn add(
        self: &Arc<Shared>,
        parent: Option<usize>,
        name: String,
        orders: &mpsc::WeakUnboundedSender<Order>,
    ) -> Member {
        let mut id = 0;
        self.reached().clients.push(None);
        self.published.send_modify(|snapshot| {
            id = snapshot.targets.len();
            snapshot.generation += 1;
            snapshot.targets.push(Seen { name, parent, ..Seen::default() });
        });
        Member { id, shared: Arc::clone(self), orders: orders.clone() }
    }
}

impl Session {
    /// A session, and the future that drives it: spawn it. Dropping that cuts all connections.
    pub fn open(plan: Plan, dial: Dial) -> (Session, impl Future<Output = ()> + Send + 'static) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { published: watch::Sender::default(), reached: Mutex::default() });
        let first = shared.add(None, name_of(&plan.start), &orders.downgrade());
        let house = House { shared: Arc::clone(&shared), plan, dial, orders: orders.downgrade() };
        (Session { shared, orders }, house.drive(first, inbox))
    }

    pub fn snapshot(&self) -> Snapshot {
        self.shared.published.borrow().clone()
    }

    /// Waits until a target stops or all have ended; at most that long. Never answers a stop that a resume has left.
    pub async fn wait_for_stop(&self, timeout: Duration) -> Waited {
        let began = Instant::now();
        let mut seen = self.shared.published.subscribe();
        let settled = |snapshot: &Snapshot| snapshot.state() == State::Stopped || snapshot.is_ended();
        let snapshot = match tokio::time::timeout(timeout, seen.wait_for(settled)).await {
            Ok(Ok(snapshot)) => snapshot.clone(),
            _ => self.snapshot(),
        };
        let state = snapshot.state();
        let stop = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone()));
        let message = match state {
            State::Stopped => None,
            State::Terminated => Some("the program has ended".to_owned()),
            State::Disconnected => snapshot.reason().map(|reason| format!("the connection ended: {reason}")),
            State::Starting | State::Running => Some(format!("nothing stopped within {timeout:?}")),
        };
        Waited { stop, state, waited: began.elapsed(), message }
    }

    /// Lets a stopped thread, or that of the primary stop, go on. When this returns without an error, the adapter has
    /// accepted it. A caller that goes away meanwhile does not take it back.
    pub async fn resume(&self, how: Resume, thread: Option<i64>) -> Result<()> {
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

    fn choose(&self, thread: Option<i64>) -> Result<(usize, i64)> {
        let snapshot = self.snapshot();
        let stops = snapshot.stops();
        let named = stops.iter().find(|(_, stop)| thread.is_none() || stop.thread_id == thread);
        // A thread that has no stop of its own has stopped along with one that has.
        let (target, stop) =
            named.or_else(|| stops.iter().find(|(_, stop)| stop.all_threads)).ok_or_else(|| self.not_stopped())?;
        Ok((*target, thread.or(stop.thread_id).unwrap_or_default()))
    }

    fn not_stopped(&self) -> Error {
        let state = self.snapshot().state();
        let error = Error::new(Kind::Usage, "the program is not stopped, so it cannot go on");
        let state = serde_json::to_value(state).unwrap_or_default();
        error
            .because(format!("its state is {}", state.as_str().unwrap_or_default()))
            .hint("`tether debug pause` stops it; `tether debug wait` waits until it stops by itself")
    }
}

/// Who owns the tasks of a session.
struct House {
    shared: Arc<Shared>,
    plan: Plan,
    dial: Dial,
    orders: mpsc::WeakUnboundedSender<Order>,
}

impl House {
    async fn drive(self, first: Member, mut inbox: mpsc::UnboundedReceiver<Order>) {
        let (mut targets, mut calls, mut stopping) = (JoinSet::new(), JoinSet::new(), false);
        targets.spawn(self.live(first, self.plan.clone(), None));
        loop {
            tokio::select! {
                biased; // a child that is wanted is born before its parent's end ends the session
                order = inbox.recv() => match order {
                    Some(Order::Birth { asked, .. }) if stopping => asked.refuse(Refusal::new("the session is ending")),
                    Some(Order::Birth { parent, asked }) => self.bear(&mut targets, parent, asked),
                    Some(Order::Resume { target, how, thread, reply }) => {
                        calls.spawn(self.resume(target, how, thread, reply));
                    }
                    Some(Order::Stop { terminate }) => {
                        stopping = true;
                        calls.spawn(self.stop(terminate));
                    }
                    // Nobody is left to debug for.
                    None => return self.stop(true).await,
                },
                ended = targets.join_next() => if ended.is_none() { return },
                Some(_) = calls.join_next() => {}
            }
        }
    }

    fn bear(&self, targets: &mut JoinSet<()>, parent: usize, asked: Asked) {
        let wanted: StartDebugging = match asked.read() {
            Ok(wanted) => wanted,
            Err(cause) => return asked.refuse(Refusal::new(format!("startDebugging: {cause}"))),
        };
        let plan = Plan { start: wanted.into(), ..self.plan.clone() };
        let member = self.shared.add(Some(parent), name_of(&plan.start), &self.orders);
        targets.spawn(self.live(member, plan, Some(asked)));
    }

    fn live(&self, member: Member, plan: Plan, asked: Option<Asked>) -> impl Future<Output = ()> + Send + 'static {
        let dial = Arc::clone(&self.dial);
        async move {
            match dial().await {
                Ok(connection) => {
                    if let Some(asked) = asked {
                        asked.answer(&Nothing {});
                    }
                    drive(member, plan, connection).await;
                }
                Err(cause) => {
                    if let Some(asked) = asked {
                        asked.refuse(Refusal::new(cause.to_string()));
                    }
                    member.step(Input::Closed(cause.to_string()));
                }
            }
        }
    }

    fn resume(
        &self,
        target: usize,
        how: Resume,
        thread: i64,
        reply: oneshot::Sender<Result<(), DapError>>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (shared, deadline) = (Arc::clone(&self.shared), self.plan.deadline);
        async move {
            let outcome = match shared.client(target) {
                Some(client) => how.send(&client, thread, deadline).await,
                None => Err(DapError::Closed("the target is gone".to_owned())),
            };
            if let Err(DapError::Refused { .. } | DapError::Unsendable { .. }) = &outcome {
                shared.step(target, Input::Refused);
            }
            // The one who wished may have gone away.
            let _ = reply.send(outcome);
        }
    }

    /// The youngest first: a parent takes its children along, and their last words would be lost.
    fn stop(&self, terminate: bool) -> impl Future<Output = ()> + Send + 'static {
        let clients = {
            let mut reached = self.shared.reached();
            reached.stopping = true;
            reached.clients.clone()
        };
        let shared = Arc::clone(&self.shared);
        async move {
            for (id, client) in clients.iter().enumerate().rev() {
                let Some(client) = client else { continue };
                if say_goodbye(client, terminate).await && terminate {
                    shared.step(id, Input::Terminated);
                }
                client.close();
            }
        }
    }
}

#[cfg(test)]
mod tests;
