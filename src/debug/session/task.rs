//! Who owns the tasks of a session: targets are born here, resumed, and ended.
//!
//! Must not know what any of them is doing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::debug_session::{SessionCommand, TargetGuard};
use super::output_flush;
use super::target::{DISCONNECT_TIMEOUT, Resume, TargetPlan, drive_target, send_disconnect, target_name};
use super::target_handle::{SessionShared, TargetHandle};
use super::target_state::{TargetInput, TargetPhase};
use crate::adapters::Connector;
use crate::dap::types::{EmptyResponse, StartDebuggingArguments};
use crate::dap::{DapError, ErrorResponse, IncomingRequest};
use crate::debug::breakpoints::sync::send_line_breakpoints;
use crate::sync::lock;

/// Who owns the tasks of a session.
pub(in crate::debug) struct SessionTask {
    pub shared: Arc<SessionShared>,
    pub plan: TargetPlan,
    pub dial: Connector,
    pub orders: mpsc::WeakUnboundedSender<SessionCommand>,
}

/// How long an answer may take that comes after the end.
const LATE_RESPONSE_GRACE: Duration = Duration::from_millis(250);

/// Resolves when a target has told its end.
async fn wait_until_ended(shared: &SessionShared, id: usize) {
    let mut seen = shared.published.subscribe();
    let _ = seen.wait_for(|snapshot| matches!(snapshot.targets[id].state.phase, TargetPhase::Ended(_))).await;
}

impl SessionTask {
    pub async fn run(self, first: TargetGuard, mut inbox: mpsc::UnboundedReceiver<SessionCommand>) {
        let (mut targets, mut calls, mut stopping) = (JoinSet::new(), JoinSet::new(), false);
        targets.spawn(self.connect_and_drive(first, self.plan.clone(), None));
        loop {
            tokio::select! {biased; // a child that is wanted is born before its parent's end ends the session
             order = inbox.recv() => match order {Some(SessionCommand::SpawnChild {asked,..}) if stopping => asked.respond_error(ErrorResponse::new("the session is ending")), Some(SessionCommand::SpawnChild {parent, asked}) => self.spawn_child_target(&mut targets, parent, asked), Some(SessionCommand::Resume {target, how, thread, reply}) => {calls.spawn(self.send_resume(target, how, thread, reply));} Some(SessionCommand::RemoveTemporary) => {if let Some(sweeping) = self.remove_temporary_breakpoints() {calls.spawn(sweeping);}} Some(SessionCommand::Stop {terminate}) => {stopping = true; calls.spawn(self.stop_targets(terminate));}
            // Nobody is left to debug for.
             None => return self.stop_targets(true).await}, ended = targets.join_next() => if ended.is_none() {return}, Some(_) = calls.join_next() => {}}
        }
    }

    fn spawn_child_target(&self, targets: &mut JoinSet<()>, parent: usize, asked: IncomingRequest) {
        let wanted: StartDebuggingArguments = match asked.read_arguments() {
            Ok(wanted) => wanted,
            Err(cause) => return asked.respond_error(ErrorResponse::new(format!("startDebugging: {cause}"))),
        };
        // The first child is the program; those after it are its own.
        let first = self.shared.published.borrow().targets.len() == 1;
        let stop_on_entry = self.plan.stop_on_entry && first;
        let plan = TargetPlan { start: wanted.into(), stop_on_entry, ..self.plan.clone() };
        let member =
            TargetGuard::new(self.shared.add_target(Some(parent), target_name(&plan.start)), self.orders.clone());
        targets.spawn(self.connect_and_drive(member, plan, Some(asked)));
    }

    fn connect_and_drive(
        &self,
        member: TargetGuard,
        plan: TargetPlan,
        asked: Option<IncomingRequest>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let dial = Arc::clone(&self.dial);
        async move {
            match dial().await {
                Ok(connection) => {
                    if let Some(asked) = asked {
                        asked.respond(&EmptyResponse {});
                    }
                    drive_target(member, plan, connection).await;
                }
                Err(cause) => {
                    if let Some(asked) = asked {
                        asked.respond_error(ErrorResponse::new(cause.to_string()));
                    }
                    member.step(TargetInput::Closed(cause.to_string()));
                }
            }
        }
    }

    fn send_resume(
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
                shared.step_target(target, TargetInput::Refused);
            }
            // The one who wished may have gone away.
            let _ = reply.send(outcome);
        }
    }

    /// Takes away what was wanted only until this stop.
    fn remove_temporary_breakpoints(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let removed = std::mem::take(&mut *lock(&self.shared.goals));
        if removed.is_empty() {
            return None;
        }
        let (shared, deadline) = (Arc::clone(&self.shared), self.plan.deadline);
        Some(async move {
            let count = shared.published.borrow().targets.len();
            for wanted in removed {
                let Some(file) = wanted.file() else { continue };
                for seat in (0..count).map(|id| TargetHandle { id, shared: Arc::clone(&shared) }) {
                    let Some(client) = seat.client().filter(|_| seat.are_breakpoints_sent()) else { continue };
                    let _turn = seat.lock_breakpoint_requests().await;
                    send_line_breakpoints(&client, &seat, &seat.capabilities(), file, deadline).await;
                }
                lock(&shared.standings).remove_breakpoint(wanted.id);
            }
        })
    }

    /// The youngest first: a parent takes its children along, and their last words would be lost.
    fn stop_targets(&self, terminate: bool) -> impl Future<Output = ()> + Send + 'static {
        let clients = self.shared.close_to_new_clients();
        let shared = Arc::clone(&self.shared);
        // What was printed last comes out first.
        let after_end = LATE_RESPONSE_GRACE
            + self.plan.quirks.drain_command.map_or(Duration::ZERO, |_| output_flush::FLUSH_TIMEOUT);
        async move {
            for (id, client) in clients.iter().enumerate().rev() {
                let Some(client) = client else { continue };
                let goodbye = async {
                    if shared.claim_disconnect(id) {
                        send_disconnect(client, terminate).await;
                    } else {
                        // The target itself does, or another stop: the connection ends behind that.
                        let _ = timeout(DISCONNECT_TIMEOUT, client.wait_closed()).await;
                    }
                };
                tokio::pin!(goodbye);
                tokio::select! {() = &mut goodbye => {}
                // Some do not answer any more once they have told the end.
                 () = wait_until_ended(&shared, id) => drop(timeout(after_end, goodbye).await)}
                // Whether it has answered or not: it was asked to end, and what is left of it is ended behind it.
                shared.step_target(id, TargetInput::Terminated);
                client.close();
            }
        }
    }
}
