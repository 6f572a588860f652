//! The task that owns all other tasks of a session: it connects, resumes and ends targets.
//!
//! Does not depend on what any target does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::command::{SessionCommand, TargetGuard};
use super::output_flush::FLUSH_TIMEOUT;
use super::requests::{DISCONNECT_TIMEOUT, Resume, send_disconnect};
use super::target::drive_target;
use super::target_handle::SessionShared;
use super::target_plan::TargetPlan;
use super::target_state::{TargetInput, TargetPhase};
use crate::adapters::Connector;
use crate::dap::types::{EmptyResponse, StartDebuggingArguments};
use crate::dap::{DapClient, DapError, ErrorResponse, IncomingRequest};
use crate::debug::breakpoints::sync::send_line_breakpoints;

/// How long a response may take that comes after the target's end.
const LATE_RESPONSE_GRACE: Duration = Duration::from_millis(250);

/// The owner of all tasks of a session.
pub struct SessionTask {
    /// The session's shared part.
    pub shared: Arc<SessionShared>,
    /// How the first target is started.
    pub plan: TargetPlan,
    /// Connects to the adapter, once for each target.
    pub connector: Connector,
    /// For the targets to send commands; weak, so that the last handle ends the session.
    pub commands: mpsc::WeakUnboundedSender<SessionCommand>,
}

impl SessionTask {
    /// Runs the session until its last target has ended, or no handle to it is left.
    pub async fn run(self, first: TargetGuard, mut inbox: mpsc::UnboundedReceiver<SessionCommand>) {
        let (mut targets, mut calls, mut stopping) = (JoinSet::new(), JoinSet::new(), false);
        targets.spawn(self.connect_and_drive(first, self.plan.clone(), None));
        loop {
            tokio::select! {
                biased; // a requested child is spawned before its parent's end ends the session
                command = inbox.recv() => match command {
                    Some(SessionCommand::SpawnChild { request, .. }) if stopping => {
                        request.respond_error(ErrorResponse::new("the session is ending"));
                    }
                    Some(SessionCommand::SpawnChild { parent, request }) => {
                        self.spawn_child_target(&mut targets, parent, request);
                    }
                    Some(SessionCommand::Resume { target, how, thread, reply }) => {
                        calls.spawn(self.send_resume(target, how, thread, reply));
                    }
                    Some(SessionCommand::RemoveTemporary) => {
                        if let Some(removal) = self.remove_temporary_breakpoints() {
                            calls.spawn(removal);
                        }
                    }
                    Some(SessionCommand::Stop { terminate }) => {
                        stopping = true;
                        calls.spawn(self.stop_targets(terminate));
                    }
                    // The last handle has been dropped.
                    None => return self.stop_targets(true).await,
                },
                ended = targets.join_next() => if ended.is_none() { return },
                Some(_) = calls.join_next() => {}
            }
        }
    }

    fn spawn_child_target(&self, targets: &mut JoinSet<()>, parent: usize, request: IncomingRequest) {
        let arguments: StartDebuggingArguments = match request.read_arguments() {
            Ok(arguments) => arguments,
            Err(cause) => return request.respond_error(ErrorResponse::new(format!("startDebugging: {cause}"))),
        };
        // The first child is the program; further ones are its own children.
        let is_first = self.shared.snapshot.borrow().targets.len() == 1;
        let stop_on_entry = self.plan.stop_on_entry && is_first;
        let plan = TargetPlan { start: arguments.into(), stop_on_entry, ..self.plan.clone() };
        let handle = self.shared.add_target(Some(parent), plan.target_name());
        let guard = TargetGuard::new(handle, self.commands.clone());
        targets.spawn(self.connect_and_drive(guard, plan, Some(request)));
    }

    /// `request` is the reverse request for the target; it is answered once the target is connected.
    fn connect_and_drive(
        &self,
        guard: TargetGuard,
        plan: TargetPlan,
        request: Option<IncomingRequest>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let connector = Arc::clone(&self.connector);
        async move {
            match connector().await {
                Ok(connection) => {
                    if let Some(request) = request {
                        request.respond(&EmptyResponse {});
                    }
                    drive_target(guard, plan, connection).await;
                }
                Err(cause) => {
                    if let Some(request) = request {
                        request.respond_error(ErrorResponse::new(cause.to_string()));
                    }
                    guard.step(TargetInput::Closed(cause.to_string()));
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
            // The caller may have been cancelled.
            let _ = reply.send(outcome);
        }
    }

    /// Removes the breakpoints that were set until this stop.
    fn remove_temporary_breakpoints(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let removed = self.shared.with_state(|state| state.take_temporary());
        if removed.is_empty() {
            return None;
        }
        let (shared, deadline) = (Arc::clone(&self.shared), self.plan.deadline);
        Some(async move {
            let targets = shared.targets();
            for spec in removed {
                let Some(file) = spec.file() else { continue };
                for target in &targets {
                    let Some(client) = target.client().filter(|_| target.are_breakpoints_sent()) else { continue };
                    let _turn = target.lock_breakpoint_requests().await;
                    send_line_breakpoints(&client, target, &target.capabilities(), file, deadline).await;
                }
                shared.with_state(|state| state.bindings.remove_breakpoint(spec.id));
            }
        })
    }

    /// Ends all targets, the newest first: a parent ends its children, and their last output would be lost.
    fn stop_targets(&self, terminate: bool) -> impl Future<Output = ()> + Send + 'static {
        let clients = self.shared.with_state(|state| state.begin_stop());
        let shared = Arc::clone(&self.shared);
        // The last output is flushed first.
        let grace = LATE_RESPONSE_GRACE + self.plan.quirks.drain_command.map_or(Duration::ZERO, |_| FLUSH_TIMEOUT);
        async move {
            for (target, client) in clients.iter().enumerate().rev() {
                let Some(client) = client else { continue };
                stop_target(&shared, target, client, terminate, grace).await;
            }
        }
    }
}

/// `grace`: how long the response to `disconnect` may take once the target has ended; some adapters send none then.
async fn stop_target(shared: &Arc<SessionShared>, target: usize, client: &DapClient, terminate: bool, grace: Duration) {
    let disconnect = async {
        if shared.target(target).claim_disconnect() {
            send_disconnect(client, terminate).await;
        } else {
            // The target itself has sent `disconnect`, or another stop has: the connection is closed after it.
            let _ = timeout(DISCONNECT_TIMEOUT, client.wait_closed()).await;
        }
    };
    tokio::pin!(disconnect);
    tokio::select! {
        () = &mut disconnect => {}
        () = wait_until_ended(shared, target) => drop(timeout(grace, disconnect).await),
    }
    // Whether it has responded or not: the owner of the processes ends what is left of them.
    shared.step_target(target, TargetInput::Terminated);
    client.close();
}

/// Resolves when a target has ended.
async fn wait_until_ended(shared: &SessionShared, target: usize) {
    let mut snapshots = shared.snapshot.subscribe();
    let _ = snapshots.wait_for(|snapshot| matches!(snapshot.targets[target].state.phase, TargetPhase::Ended(_))).await;
}
