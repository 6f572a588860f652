//! The task that owns all other tasks of one program of a session: it connects, resumes and ends targets.
//!
//! Does not depend on what any target does.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tether_dap::types::{EmptyResponse, StartDebuggingArguments, StartRequest};
use tether_dap::{DapClient, DapConnection, DapError, ErrorResponse, IncomingRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::warn;

use super::awaited_children::{AwaitedChildren, wait_for_last_child};
use super::child_process::release_child;
use super::command::SessionCommand;
use super::disconnect::{DISCONNECT_TIMEOUT, send_disconnect};
use super::output_flush::FLUSH_TIMEOUT;
use super::resume::send_resume;
use super::session_shared::SessionShared;
use super::snapshot::{SessionSnapshot, TargetSnapshot};
use super::target::{TargetPlan, drive_target};
use super::target_handle::{TargetGuard, TargetHandle};
use super::target_state::{TargetInput, TargetPhase};
use super::undebugged_processes::UndebuggedProcess;
use crate::adapters::{
    ChildListener, Connector, OpenedChild, ProcessReport, ProcessReports, ProcessRuntime, UndebuggedChild,
};
use crate::debug::breakpoints::sync::{ChangedBreakpoints, send_changed_breakpoints};

/// The targets of a session that are connected at one time; each has a descriptor.
pub const MAX_CONNECTED_TARGETS: usize = 128;
/// All targets of a session, with those that have ended.
const MAX_TARGETS: usize = 4096;
/// How long a child target may take to be connected, and then to respond for the first time.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a response may take that comes after the target's end.
const LATE_RESPONSE_GRACE: Duration = Duration::from_millis(250);

/// A program of a session: how it is started, and connected to.
pub struct SessionProgram {
    /// How its first target is started.
    pub plan: TargetPlan,
    /// Connects to the adapter, once for each target. For our own adapters the other end is in this process:
    /// `tether_backend::serve_backend`.
    pub connector: Connector,
    /// Accepts the connections of its children, where they are debugged.
    pub children: Option<ChildListener>,
    /// Receives what its processes report of what is not debugged.
    pub process_reports: Option<ProcessReports>,
    /// It is the core dump of a program that has ended.
    pub is_core: bool,
    /// The process of the program, where it was started for the session and serves the adapter's protocol itself.
    pub pid: Option<u32>,
}

/// The tasks of the targets; one that has identified a child returns it.
type TargetTasks = JoinSet<Option<OpenedChild>>;

/// The owner of all tasks of one program of a session.
pub struct SessionTask {
    /// The session's shared part.
    pub shared: Arc<SessionShared>,
    /// The index of the program.
    pub index: usize,
    /// The program.
    pub program: SessionProgram,
    /// For the targets to send commands; weak, so that the last handle ends the session.
    pub commands: mpsc::WeakUnboundedSender<SessionCommand>,
}

impl SessionTask {
    /// Runs the program until its last target has ended, or no handle to the session is left.
    pub async fn run(mut self, first: TargetGuard, mut inbox: mpsc::UnboundedReceiver<SessionCommand>) {
        let (mut targets, mut calls, mut has_refused) = (TargetTasks::new(), JoinSet::new(), false);
        let mut reports = self.program.process_reports.take();
        // Whether the programs are ended too.
        let (mut stopping, mut accepts_children): (Option<bool>, bool) = (None, true);
        // The session runs until it is known that no more children come.
        let mut awaited = self.program.children.as_ref().map(|children| AwaitedChildren {
            shared: Arc::clone(&self.shared),
            program: self.index,
            launch_id: self.program.plan.launch_id.clone(),
            may_connect: children.plan.may_connect,
        });
        awaited.iter().for_each(|it| it.publish(true));
        targets.spawn(self.connect_and_drive(first, self.program.plan.clone(), None));
        loop {
            tokio::select! {
                biased; // a requested child is spawned before its parent's end ends the session
                command = inbox.recv() => match command {
                    Some(SessionCommand::SpawnChild { request, .. }) if stopping.is_some() => {
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
                        stopping = Some(terminate);
                        awaited = None;
                        calls.spawn(self.stop_targets(terminate));
                    }
                    // The last handle has been dropped.
                    None => return self.stop_targets(true).await,
                },
                // Before the end of the last target: a child may outlive its parent.
                accepted = accept_child(self.program.children.as_ref()), if accepts_children => match accepted {
                    Ok(connection) => drop(targets.spawn(self.identify_child(connection))),
                    Err(cause) => {
                        warn!("cannot accept the connection of a child: {cause}");
                        // The end of a target frees a descriptor.
                        accepts_children = false;
                    }
                },
                () = wait_for_last_child(&awaited) => awaited = None,
                reported = next_report(&mut reports) => match reported {
                    Ok((ProcessReport::Undebugged(child), reason)) => self.report_undebugged(child, reason),
                    Ok((ProcessReport::Blind { pid, reason }, _)) => self.shared.report_unfollowed_code(pid, reason),
                    Err(cause) => {
                        warn!("cannot read the reports of the program's processes: {cause}");
                        reports = None;
                    }
                },
                ended = targets.join_next(), if awaited.is_none() || !targets.is_empty() => {
                    accepts_children = true;
                    match ended {
                        None => return,
                        Some(Ok(Some(child))) => self.add_child_process(&mut targets, child, stopping, &mut has_refused),
                        Some(_) => {}
                    }
                }
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

    fn refuse_child(&self, limit: &str, request: IncomingRequest, has_refused: &mut bool) {
        self.report_refusal(limit, has_refused);
        request.respond_error(ErrorResponse::new(limit));
    }

    /// Only the first refusal is reported to the user, too.
    fn report_refusal(&self, limit: &str, has_refused: &mut bool) {
        if !std::mem::replace(has_refused, true) {
            let notice = format!("{limit}: one more was started, and it is not debugged");
            self.shared.event_log.push_notice("targetRefused", notice);
        }
    }

    fn report_undebugged(&self, UndebuggedChild { pid, command }: UndebuggedChild, reason: &str) {
        let runtime = tether_process::program_path(pid).and_then(|it| ProcessRuntime::of_interpreter(&it));
        let reason = Some(reason.to_owned());
        self.shared.report_undebugged(UndebuggedProcess { pid, command, reason, runtime }, true);
    }

    /// Finds out which process a child is. What closes its connection meanwhile has exited.
    fn identify_child(&self, connection: DapConnection) -> impl Future<Output = Option<OpenedChild>> + Send + 'static {
        let identified = self.program.children.as_ref().map(|children| children.identify(connection));
        let event_log = Arc::clone(&self.shared.event_log);
        async move {
            match identified?.await {
                Ok(child) => Some(child),
                Err(DapError::Closed(_)) => None,
                Err(error) => {
                    event_log.push_notice("targetRefused", format!("a child process is not debugged: {error}"));
                    None
                }
            }
        }
    }

    /// Debugs a child that has connected by itself. It waits for that, and so is let go where it is not debugged.
    fn add_child_process(
        &self,
        targets: &mut TargetTasks,
        child: OpenedChild,
        stopping: Option<bool>,
        has_refused: &mut bool,
    ) {
        let Some(children) = &self.program.children else { return };
        let plan = TargetPlan {
            start: children.plan.start.clone(),
            name: format!("child process {}", child.identity.pid),
            is_attached: false,
            stop_on_entry: false,
            is_child_process: true,
            ..self.program.plan.clone()
        };
        match (stopping, self.find_exceeded_limit(targets.len())) {
            // It is ended with the others.
            (Some(true), _) => return,
            (None, None) => {}
            (_, limit) => {
                if let Some(limit) = limit {
                    self.report_refusal(&limit, has_refused);
                }
                targets.spawn(async move {
                    release_child(child, plan).await;
                    None
                });
                return;
            }
        }
        let handle = self.add_process_target(&plan, &child);
        let guard = TargetGuard { handle, commands: self.commands.clone() };
        targets.spawn(async move {
            drive_target(guard, plan, (child.client, child.inbox, child.driver)).await;
            None
        });
    }

    /// A process that has taken the place of a target's is beside that, and not below it.
    fn add_process_target(&self, plan: &TargetPlan, child: &OpenedChild) -> TargetHandle {
        let (pid, snapshot) = (child.identity.pid, self.shared.snapshot.borrow().clone());
        let before = snapshot.find_process(pid).and_then(|before| snapshot.targets.get(before));
        let parent = match before {
            Some(before) => before.parent,
            None => child.identity.parent_pid.and_then(|parent| snapshot.find_process(parent)),
        };
        let (name, program) = (before.map_or_else(|| plan.target_name(), |before| before.name.clone()), self.index);
        self.shared.add_target(TargetSnapshot { name, program, parent, pid: Some(pid), ..TargetSnapshot::default() })
    }

    fn spawn_child_target(&self, targets: &mut TargetTasks, parent: usize, request: IncomingRequest) {
        let arguments: StartDebuggingArguments = match request.read_arguments() {
            Ok(arguments) => arguments,
            Err(cause) => return request.respond_error(ErrorResponse::new(format!("startDebugging: {cause}"))),
        };
        // The first child is the program; further ones are its own children.
        let own = |it: &&TargetSnapshot| it.program == self.index;
        let is_first = self.shared.snapshot.borrow().targets.iter().filter(own).count() == 1;
        let of_program = &self.program.plan;
        let plan = TargetPlan {
            start: arguments.into(),
            stop_on_entry: of_program.stop_on_entry && is_first,
            initialize_deadline: of_program.initialize_deadline.min(REACH_TIMEOUT),
            ..of_program.clone()
        };
        let (name, program) = (plan.target_name(), self.index);
        let pid = named_process(&name).filter(|_| of_program.quirks.names_processes && is_node(&plan.start));
        let added = TargetSnapshot { name, program, parent: Some(parent), pid, ..TargetSnapshot::default() };
        let handle = self.shared.add_target(added);
        let guard = TargetGuard { handle, commands: self.commands.clone() };
        targets.spawn(self.connect_and_drive(guard, plan, Some(request)));
    }

    /// `request` is the reverse request for the target; it is answered once the target is connected.
    fn connect_and_drive(
        &self,
        guard: TargetGuard,
        plan: TargetPlan,
        request: Option<IncomingRequest>,
    ) -> impl Future<Output = Option<OpenedChild>> + Send + 'static {
        let connector = Arc::clone(&self.program.connector);
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
                Ok(connection) => drive_target(guard, plan, DapClient::over(connection)).await,
                Err(cause) => {
                    guard.report_unreached(&cause.to_string());
                    guard.apply_and_clean_up(TargetInput::Closed(cause.to_string()));
                }
            }
            None
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
        let mut clients = self.shared.with_state(|state| state.begin_stop());
        let shared = Arc::clone(&self.shared);
        // A program that is started meanwhile is stopped by its own task.
        let own =
            shared.snapshot.borrow().targets.iter().map(|target| target.program == self.index).collect::<Vec<_>>();
        clients.iter_mut().zip(own).filter(|(_, own)| !own).for_each(|(client, _)| *client = None);
        // The last output is flushed first.
        let flush = self.program.plan.quirks.drain_command.map_or(Duration::ZERO, |_| FLUSH_TIMEOUT);
        let grace = LATE_RESPONSE_GRACE.saturating_add(flush);
        async move {
            for (target, client) in clients.iter().enumerate().rev() {
                let Some(client) = client else { continue };
                stop_target(&shared, target, client, terminate, grace).await;
            }
        }
    }
}

/// Whether a target is a Node process, as js-debug calls it; the title of a page may be anything.
fn is_node(start: &StartRequest) -> bool {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = start;
    fields.get("type").and_then(Value::as_str) == Some("pwa-node")
}

/// The process in the name of a target: `app.js [123]`.
fn named_process(name: &str) -> Option<u32> {
    name.strip_suffix(']')?.rsplit_once(" [")?.1.parse().ok()
}

fn not_connected_error() -> DapError {
    let cause = format!("not connected within {REACH_TIMEOUT:?}");
    DapError::Unreachable { address: "its adapter".to_owned(), cause }
}

/// Resolves with the next connection of a child; never where children are not debugged.
async fn accept_child(children: Option<&ChildListener>) -> io::Result<DapConnection> {
    match children {
        Some(children) => children.accept().await,
        None => std::future::pending().await,
    }
}

/// Resolves with the next report, and why processes that are not debugged are not; never where there are none.
async fn next_report(reports: &mut Option<ProcessReports>) -> io::Result<(ProcessReport, &'static str)> {
    match reports {
        Some(reports) => Ok((reports.next().await?, reports.reason)),
        None => std::future::pending().await,
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
    let mut snapshots = shared.snapshot.subscribe();
    let is_ended = |it: &SessionSnapshot| {
        it.targets.get(target).is_none_or(|target| matches!(target.state.phase, TargetPhase::Ended(_)))
    };
    tokio::select! {
        () = &mut disconnect => {}
        () = async { drop(snapshots.wait_for(is_ended).await) } => drop(timeout(grace, disconnect).await),
    }
    // Whether it has responded or not: the owner of the processes ends what is left of them.
    shared.apply_input(target, TargetInput::Terminated);
    client.close();
}
