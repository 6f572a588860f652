//! The task that owns all other tasks of a session: it connects, resumes and ends targets.
//!
//! Does not depend on what any target does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::command::{SessionCommand, TargetGuard};
use super::output_flush::FLUSH_TIMEOUT;
use super::requests::{DISCONNECT_TIMEOUT, Resume, send_disconnect};
use super::snapshot::SessionSnapshot;
use super::target::{TargetPlan, drive_target};
use super::target_handle::SessionShared;
use super::target_state::{TargetInput, TargetPhase};
use crate::adapters::Connector;
use crate::dap::types::{EmptyResponse, StartDebuggingArguments};
use crate::dap::{DapClient, DapError, ErrorResponse, IncomingRequest};
use crate::debug::breakpoints::sync::{ChangedBreakpoints, send_changed_breakpoints};

/// The targets of a session that are connected at one time; each has a descriptor.
pub const MAX_CONNECTED_TARGETS: usize = 128;
/// All targets of a session, with those that have ended.
const MAX_TARGETS: usize = 4096;
/// How long a child target may take to be connected, and then to respond for the first time.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
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
        let (mut targets, mut calls, mut stopping, mut has_refused) = (JoinSet::new(), JoinSet::new(), false, false);
        targets.spawn(self.connect_and_drive(first, self.plan.clone(), None));
        loop {
            tokio::select! {
                biased; // a requested child is spawned before its parent's end ends the session
                command = inbox.recv() => match command {
                    Some(SessionCommand::SpawnChild { request, .. }) if stopping => {
                        request.respond_error(ErrorResponse::new("the session is ending"));
                    }
                    Some(SessionCommand::SpawnChild { parent, request }) => match self.find_exceeded_limit(targets.len()) {
                        Some(limit) => self.refuse_child(&limit, request, &mut has_refused),
                        None => self.spawn_child_target(&mut targets, parent, request),
                    },
                    Some(SessionCommand::Resume { target, how, thread, reply }) => {
                        let outcome = send_resume(Arc::clone(&self.shared), target, how, thread);
                        // The caller may have been cancelled.
                        calls.spawn(async move { drop(reply.send(outcome.await)) });
                    }
                    Some(SessionCommand::RemoveTemporary) => drop(calls.spawn(self.remove_temporary_breakpoints())),
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

    /// The limit that one more target would exceed.
    fn find_exceeded_limit(&self, connected: usize) -> Option<String> {
        if connected >= MAX_CONNECTED_TARGETS {
            return Some(format!("a session has at most {MAX_CONNECTED_TARGETS} targets at one time"));
        }
        let is_full = self.shared.snapshot.borrow().targets.len() >= MAX_TARGETS;
        is_full.then(|| format!("a session has at most {MAX_TARGETS} targets"))
    }

    /// The first refusal is reported to the user, too.
    fn refuse_child(&self, limit: &str, request: IncomingRequest, has_refused: &mut bool) {
        if !std::mem::replace(has_refused, true) {
            let notice = format!("{limit}: the adapter requested one more, and it is not debugged");
            self.shared.event_log.push_notice("targetRefused", notice);
        }
        request.respond_error(ErrorResponse::new(limit));
    }

    fn spawn_child_target(&self, targets: &mut JoinSet<()>, parent: usize, request: IncomingRequest) {
        let arguments: StartDebuggingArguments = match request.read_arguments() {
            Ok(arguments) => arguments,
            Err(cause) => return request.respond_error(ErrorResponse::new(format!("startDebugging: {cause}"))),
        };
        // The first child is the program; further ones are its own children.
        let is_first = self.shared.snapshot.borrow().targets.len() == 1;
        let stop_on_entry = self.plan.stop_on_entry && is_first;
        let initialize_deadline = self.plan.initialize_deadline.min(REACH_TIMEOUT);
        let plan = TargetPlan { start: arguments.into(), stop_on_entry, initialize_deadline, ..self.plan.clone() };
        let handle = self.shared.add_target(Some(parent), plan.target_name());
        let guard = TargetGuard { handle, commands: self.commands.clone() };
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
            let connected = match request {
                Some(_) => timeout(REACH_TIMEOUT, connector()).await.unwrap_or_else(|_| Err(not_connected_error())),
                None => connector().await,
            };
            if let Some(request) = request {
                match &connected {
                    Ok(_) => request.respond(&EmptyResponse {}),
                    Err(cause) => request.respond_error(ErrorResponse::new(cause.to_string())),
                }
            }
            match connected {
                Ok(connection) => drive_target(guard, plan, connection).await,
                Err(cause) => {
                    guard.report_unreached(&cause.to_string());
                    guard.step(TargetInput::Closed(cause.to_string()));
                }
            }
        }
    }

    /// Removes the breakpoints that were set until this stop.
    fn remove_temporary_breakpoints(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        let removed = shared.with_state(|state| std::mem::take(&mut state.temporary));
        async move {
            for spec in removed {
                let Some(file) = spec.file() else { continue };
                send_changed_breakpoints(&shared.targets(), ChangedBreakpoints::File(file)).await;
                shared.with_state(|state| state.bindings.remove_breakpoint(spec.id));
            }
        }
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

fn not_connected_error() -> DapError {
    let cause = format!("not connected within {REACH_TIMEOUT:?}");
    DapError::Unreachable { address: "its adapter".to_owned(), cause }
}

async fn send_resume(shared: Arc<SessionShared>, target: usize, how: Resume, thread: i64) -> Result<(), DapError> {
    let outcome = match shared.client(target) {
        Some(client) => how.send(&client, thread, shared.request_timeout).await,
        None => Err(DapError::Closed("the target is gone".to_owned())),
    };
    if let Err(DapError::Refused { .. } | DapError::Unsendable { .. }) = &outcome {
        shared.step_target(target, TargetInput::Refused);
    }
    outcome
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
    let mut snapshots = shared.snapshot.subscribe();
    let is_ended = |it: &SessionSnapshot| matches!(it.targets[target].state.phase, TargetPhase::Ended(_));
    tokio::select! {
        () = &mut disconnect => {}
        () = async { drop(snapshots.wait_for(is_ended).await) } => drop(timeout(grace, disconnect).await),
    }
    // Whether it has responded or not: the owner of the processes ends what is left of them.
    shared.step_target(target, TargetInput::Terminated);
    client.close();
}
