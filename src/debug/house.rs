//! Who owns the tasks of a session: targets are born here, resumed, and ended.
//!
//! Must not know what any of them is doing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::configure::send_file;
use super::drain;
use super::seat::{Seat, Shared};
use super::session::{Member, Order};
use super::state::{Input, Phase};
use super::target::{GOODBYE, Plan, Resume, drive, name_of, say_goodbye};
use crate::adapters::Connector;
use crate::dap::types::{EmptyResponse, StartDebuggingArguments};
use crate::dap::{DapError, ErrorResponse, IncomingRequest};
use crate::sync::lock;

/// Who owns the tasks of a session.
pub(super) struct House {
    pub shared: Arc<Shared>,
    pub plan: Plan,
    pub dial: Connector,
    pub orders: mpsc::WeakUnboundedSender<Order>,
}

/// How long an answer may take that comes after the end.
const MOMENT: Duration = Duration::from_millis(250);

/// Resolves when a target has told its end.
async fn ended(shared: &Shared, id: usize) {
    let mut seen = shared.published.subscribe();
    let _ = seen.wait_for(|snapshot| matches!(snapshot.targets[id].state.phase, Phase::Ended(_))).await;
}

impl House {
    pub async fn drive(self, first: Member, mut inbox: mpsc::UnboundedReceiver<Order>) {
        let (mut targets, mut calls, mut stopping) = (JoinSet::new(), JoinSet::new(), false);
        targets.spawn(self.live(first, self.plan.clone(), None));
        loop {
            tokio::select! {
                biased; // a child that is wanted is born before its parent's end ends the session
                order = inbox.recv() => match order {
                    Some(Order::Birth { asked, .. }) if stopping => asked.respond_error(ErrorResponse::new("the session is ending")),
                    Some(Order::Birth { parent, asked }) => self.bear(&mut targets, parent, asked),
                    Some(Order::Resume { target, how, thread, reply }) => {
                        calls.spawn(self.resume(target, how, thread, reply));
                    }
                    Some(Order::Stopped) => {
                        if let Some(sweeping) = self.sweep() {
                            calls.spawn(sweeping);
                        }
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

    fn bear(&self, targets: &mut JoinSet<()>, parent: usize, asked: IncomingRequest) {
        let wanted: StartDebuggingArguments = match asked.read_arguments() {
            Ok(wanted) => wanted,
            Err(cause) => return asked.respond_error(ErrorResponse::new(format!("startDebugging: {cause}"))),
        };
        // The first child is the program; those after it are its own.
        let first = self.shared.published.borrow().targets.len() == 1;
        let stop_on_entry = self.plan.stop_on_entry && first;
        let plan = Plan { start: wanted.into(), stop_on_entry, ..self.plan.clone() };
        let member = Member::new(self.shared.add(Some(parent), name_of(&plan.start)), self.orders.clone());
        targets.spawn(self.live(member, plan, Some(asked)));
    }

    fn live(
        &self,
        member: Member,
        plan: Plan,
        asked: Option<IncomingRequest>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let dial = Arc::clone(&self.dial);
        async move {
            match dial().await {
                Ok(connection) => {
                    if let Some(asked) = asked {
                        asked.respond(&EmptyResponse {});
                    }
                    drive(member, plan, connection).await;
                }
                Err(cause) => {
                    if let Some(asked) = asked {
                        asked.respond_error(ErrorResponse::new(cause.to_string()));
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

    /// Takes away what was wanted only until this stop.
    fn sweep(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let removed = std::mem::take(&mut *lock(&self.shared.goals));
        if removed.is_empty() {
            return None;
        }
        let (shared, deadline) = (Arc::clone(&self.shared), self.plan.deadline);
        Some(async move {
            let count = shared.published.borrow().targets.len();
            for wanted in removed {
                let Some(file) = wanted.file() else { continue };
                for seat in (0..count).map(|id| Seat { id, shared: Arc::clone(&shared) }) {
                    let Some(client) = seat.client().filter(|_| seat.is_told()) else { continue };
                    let _turn = seat.turn().await;
                    send_file(&client, &seat, &seat.able(), file, deadline).await;
                }
                lock(&shared.standings).forget(wanted.id);
            }
        })
    }

    /// The youngest first: a parent takes its children along, and their last words would be lost.
    fn stop(&self, terminate: bool) -> impl Future<Output = ()> + Send + 'static {
        let clients = self.shared.part();
        let shared = Arc::clone(&self.shared);
        // What was printed last comes out first.
        let after_end = MOMENT + self.plan.quirks.drain_command.map_or(Duration::ZERO, |_| drain::PATIENCE);
        async move {
            for (id, client) in clients.iter().enumerate().rev() {
                let Some(client) = client else { continue };
                let goodbye = async {
                    if shared.leaves_first(id) {
                        say_goodbye(client, terminate).await;
                    } else {
                        // The target itself does, or another stop: the connection ends behind that.
                        let _ = timeout(GOODBYE, client.wait_closed()).await;
                    }
                };
                tokio::pin!(goodbye);
                tokio::select! {
                    () = &mut goodbye => {}
                    // Some do not answer any more once they have told the end.
                    () = ended(&shared, id) => drop(timeout(after_end, goodbye).await),
                }
                // Whether it has answered or not: it was asked to end, and what is left of it is ended behind it.
                shared.step(id, Input::Terminated);
                client.close();
            }
        }
    }
}
