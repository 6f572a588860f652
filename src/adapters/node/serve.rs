//! One DAP conversation, from `initialize` to the end of its connection.
//!
//! ```text
//! initialize ─▶ launch / attach ─▶ inspector connected ─▶ `initialized` ─▶ breakpoints ─▶ configurationDone ─▶ it runs
//!   ─▶ events of its inspectors, requests, output, more processes ─▶ its end ─▶ `exited`, `terminated` ─▶ disconnect
//! ```
//! The loop waits for no program: what asks an isolate runs in its lane. Requests are answered in order, except those whose
//! order does not matter: these run concurrently.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::attach_target::{attach_error, find_target};
use super::connection::{InspectorAddress, process_name};
use super::isolate::Isolate;
use super::isolate_events::{ConnectionEvents, IsolateEvent, IsolateEvents};
use super::isolate_host::IsolateHost;
use super::lane::{Lane, LaneFull, SessionTasks};
use super::launch_arguments::{NodeAttach, NodeLaunch, SourceSettings, websocket_address};
use super::module_announcements::announcing_script;
use super::node_program::{LaunchedProgram, NodeProgram, OpenedInspector, OpenedInspectors, launch_program};
use super::release::Leaving;
use super::requests::{capabilities, is_concurrent};
use super::session::NodeSession;
use crate::adapters::ServeContext;
use crate::adapters::conversation::{
    NextMove, next_start, output_event, requested_termination, respond_to_start, wait_for_disconnect,
};
use crate::adapters::output_reader::OutputPiece;
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{
    AttachArguments, ExitedEvent, InitializedEvent, LaunchArguments, ProcessEvent, TerminatedEvent, ThreadsResponse,
};
use crate::dap::{DapConnection, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use crate::error::{Error, Result};
use crate::process::ProcessExit;

/// How long the output is read after the exit of the program, at most.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_secs(10);

/// Serves DAP on a connection until it ends.
pub fn serve_node(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (dap, inbox, driver) = DapServer::over(connection);
        // The connection ends when the conversation has dropped its handle, and what was queued is written.
        tokio::join!(converse(dap, inbox, context), driver);
    })
}

/// What a started session consists of.
struct NodeConversation {
    session: Arc<NodeSession>,
    events: IsolateEvents,
    queue: mpsc::Receiver<IsolateEvent>,
    program: Option<NodeProgram>,
    /// Its other processes.
    inspectors: Option<OpenedInspectors>,
    has_exited: bool,
    output: mpsc::Receiver<OutputPiece>,
    /// Drive the connections to the inspectors, and the lanes; evaluations.
    tasks: SessionTasks,
    /// Processes of the program that are being connected to.
    connecting: JoinSet<()>,
    /// Requests that are answered in order.
    requests: Lane,
}

async fn converse(dap: DapServer, mut inbox: DapInbox, context: ServeContext) {
    let Some(started) = start_conversation(&dap, &mut inbox, &context.launch_id).await else { return };
    // A client that leaves at once has left.
    if dap.send_event(&InitializedEvent {}).await.is_ok() {
        started.run(&mut inbox, &context).await;
    }
}

/// Handles requests until a program is launched or attached to. `None`: the client has left.
async fn start_conversation(dap: &DapServer, inbox: &mut DapInbox, launch_id: &str) -> Option<NodeConversation> {
    loop {
        let request = next_start(inbox, &capabilities()).await?;
        let starting = async {
            match request.command.as_str() {
                "launch" => launch(dap, &request, launch_id).await,
                _ => attach(dap, &request).await,
            }
        };
        let started = tokio::select! {
            started = starting => started,
            _ = dap.wait_closed() => return None,
        };
        if let Some(started) = respond_to_start(request, started) {
            return Some(started);
        }
    }
}

async fn launch(dap: &DapServer, request: &IncomingRequest, launch_id: &str) -> Result<NodeConversation> {
    let usage = |cause: String| Error::usage("cannot launch a Node program").because(cause);
    let LaunchArguments(fields) = request.read_arguments().map_err(usage)?;
    let launch = NodeLaunch::from_fields(&fields).map_err(usage)?;
    let binding = random_name();
    let LaunchedProgram { program, output, first, inspectors } = launch_program(&launch, launch_id, &binding).await?;
    let mut conversation = NodeConversation::new(dap, &launch.settings, binding, Some(program.script.clone()));
    (conversation.output, conversation.inspectors) = (output, Some(inspectors));
    let failed = |failure: RequestFailure| Error::other("cannot debug the program").because(failure.0);
    conversation.connect_opened(&first).await.map_err(failed)?;
    if let (true, Some(program)) = (launch.stop_on_entry, &launch.program) {
        conversation.session.stop_at_entry(program).await.map_err(failed)?;
    }
    report_unknown(&conversation.session, &launch.settings).await;
    let name = process_name(&first.program, first.pid);
    let system_process_id = Some(i64::from(program.debuggee.process.pid()));
    // Fails when the client has gone, which ends the session.
    let _ = dap.send_event(&ProcessEvent { name, system_process_id }).await;
    conversation.program = Some(program);
    Ok(conversation)
}

async fn attach(dap: &DapServer, request: &IncomingRequest) -> Result<NodeConversation> {
    let usage = |cause: String| Error::usage("cannot attach to a Node program").because(cause);
    let AttachArguments(fields) = request.read_arguments().map_err(usage)?;
    let attach = NodeAttach::from_fields(&fields).map_err(usage)?;
    let target = find_target(&attach).await?;
    let failed = |failure: RequestFailure| attach_error(&attach, target.port, failure.0);
    let binding = random_name();
    let hook = Some(announcing_script(&binding));
    let conversation = NodeConversation::new(dap, &attach.settings, binding, hook);
    let isolate = conversation.connect(&target).await.map_err(failed)?;
    conversation.session.announce_modules(&isolate).await;
    conversation.session.follow_console(&isolate).await.map_err(failed)?;
    report_unknown(&conversation.session, &attach.settings).await;
    Ok(conversation)
}

async fn report_unknown(session: &NodeSession, settings: &SourceSettings) {
    for name in &settings.unknown {
        session.print("important", &format!("the argument `{name}` is not known to this adapter\n")).await;
    }
}

impl NodeConversation {
    fn new(dap: &DapServer, settings: &SourceSettings, binding: String, hook: Option<PathBuf>) -> NodeConversation {
        let (events, queue) = IsolateEvents::new();
        let SourceSettings { maps, skip, .. } = settings.clone();
        let session = Arc::new(NodeSession::new(dap.clone(), maps, skip, binding, hook));
        let output = mpsc::channel(1).1;
        let tasks = SessionTasks::default();
        NodeConversation {
            session,
            events,
            queue,
            program: None,
            inspectors: None,
            has_exited: false,
            output,
            connecting: JoinSet::new(),
            requests: Lane::start(&tasks),
            tasks,
        }
    }

    async fn connect(&self, address: &InspectorAddress) -> std::result::Result<Arc<Isolate>, RequestFailure> {
        self.session.connect_process(address, &self.events, &self.tasks).await
    }

    async fn connect_opened(&self, opened: &OpenedInspector) -> std::result::Result<Arc<Isolate>, RequestFailure> {
        self.connect(&opened_address(opened)?).await
    }

    async fn run(mut self, inbox: &mut DapInbox, context: &ServeContext) {
        loop {
            match self.next_message(inbox).await {
                NextMove::GoOn => {}
                NextMove::Ended => return self.report_end(inbox, context).await,
                NextMove::Disconnect(request) => return self.disconnect(request).await,
                NextMove::ClientGone => return self.leave(None).await,
            }
        }
    }

    async fn next_message(&mut self, inbox: &mut DapInbox) -> NextMove {
        tokio::select! {
            biased; // what the program did comes before what is requested of it
            Some(event) = self.queue.recv() => self.handle_event(event),
            incoming = inbox.next() => match incoming {
                Some(DapIncoming::Request(request)) => self.handle_request(request),
                Some(_) => NextMove::GoOn,
                None => NextMove::ClientGone,
            },
            Some(opened) = next_inspector(&mut self.inspectors) => {
                self.add_process(opened);
                NextMove::GoOn
            }
            Some(piece) = self.output.recv() => {
                self.send_output(piece).await;
                NextMove::GoOn
            }
            () = wait_for_exit(&self.program), if !self.has_exited => {
                self.has_exited = true;
                self.next_unless_ended()
            }
            Some(_) = self.connecting.join_next() => self.next_unless_ended(),
            () = self.session.isolate_removed.notified() => self.next_unless_ended(),
        }
    }

    /// The program has ended when its process has exited, and all its other processes have; one that was attached to, when
    /// its connection has ended.
    fn next_unless_ended(&self) -> NextMove {
        let is_unconnected = self.session.isolates().is_empty() && self.connecting.is_empty();
        let is_gone = is_unconnected && (self.has_exited || self.program.is_none());
        if is_gone { NextMove::Ended } else { NextMove::GoOn }
    }

    /// Hands an event to the lane of its isolate.
    fn handle_event(&self, event: IsolateEvent) -> NextMove {
        let session = Arc::clone(&self.session);
        match event {
            IsolateEvent::Sent { isolate, event } => {
                // It has ended since.
                let Ok(isolate) = self.session.isolate(isolate) else { return NextMove::GoOn };
                let own = Arc::clone(&isolate);
                let added = isolate.lane.add(async move {
                    if let Err(failure) = session.handle_event(&own, event).await {
                        // An isolate that ends meanwhile is no failure.
                        tracing::debug!("an event of {} could not be handled: {failure}", own.name);
                    }
                });
                close_when_full(&isolate.connection, added);
            }
            IsolateEvent::ChildStarted(child) => {
                let connection = Arc::clone(&child.connection);
                close_when_full(&connection, self.session.add_child(child, &self.tasks));
            }
            IsolateEvent::Ended { isolate } => {
                let Ok(isolate) = self.session.isolate(isolate) else { return self.next_unless_ended() };
                let id = isolate.id;
                let ending = isolate.lane.add(async move {
                    session.report_thread("exited", id).await;
                    session.remove_isolate(id);
                });
                if ending.is_err() {
                    self.session.remove_isolate(id);
                }
            }
        }
        NextMove::GoOn
    }

    fn add_process(&mut self, opened: OpenedInspector) {
        let (session, events, tasks) = (Arc::clone(&self.session), self.events.clone(), self.tasks.clone());
        self.connecting.spawn(async move {
            let connected = match opened_address(&opened) {
                Ok(address) => session.connect_process(&address, &events, &tasks).await,
                Err(failure) => Err(failure),
            };
            match connected {
                Ok(isolate) => {
                    session.report_thread("started", isolate.id).await;
                    // Fails when it has ended.
                    let _ = session.request_start(&isolate).await;
                    tasks.spawn(async move { session.repeat_start(&isolate).await });
                }
                Err(failure) => {
                    let name = process_name(&opened.program, opened.pid);
                    session.print("important", &format!("{name} is not debugged: {failure}\n")).await;
                }
            }
        });
    }

    fn handle_request(&mut self, request: IncomingRequest) -> NextMove {
        let session = Arc::clone(&self.session);
        match request.command.as_str() {
            "disconnect" | "terminate" => return NextMove::Disconnect(request),
            "threads" => request.respond(&ThreadsResponse { threads: self.session.list_threads() }),
            "pause" => self.tasks.spawn(async move {
                session.answer_request(request).await;
                session.repeat_pauses().await;
            }),
            "configurationDone" => {
                let configuring = Arc::clone(&session);
                let configured = self.requests.request(async move { configuring.answer_request(request).await });
                self.tasks.spawn(async move {
                    configured.await;
                    let isolates = session.isolates();
                    join_all(isolates.iter().map(|isolate| session.repeat_start(isolate))).await;
                });
            }
            command if is_concurrent(command) => {
                self.tasks.spawn(async move { session.answer_request(request).await });
            }
            // Without room it is dropped, which refuses it.
            _ => drop(self.requests.add(async move { session.answer_in_lane(request).await })),
        }
        NextMove::GoOn
    }

    async fn send_output(&self, piece: OutputPiece) {
        let mut event = output_event(piece);
        if event.category.as_deref() == Some("stderr") {
            event.output = without_inspector_lines(event.output);
        }
        if event.output.is_empty() {
            return;
        }
        // Fails when the client has gone, which ends the session.
        let _ = self.session.dap.send_event(&event).await;
    }

    /// The program has ended: reports how, then waits for the client to leave.
    async fn report_end(mut self, inbox: &mut DapInbox, context: &ServeContext) {
        let dap = self.session.dap.clone();
        // Kept until the client has left.
        let program = self.program.take();
        if let Some(program) = &program {
            let exit = program.debuggee.process.wait_for_exit().await;
            let leaving = self.send_last_output(program, inbox).await;
            context.exit.send_replace(Some(exit));
            // A signal has no code; the session is told of it by the context.
            if let ProcessExit::Code(code) = exit {
                let _ = dap.send_event(&ExitedEvent { exit_code: code.into(), ..ExitedEvent::default() }).await;
            }
            if let Some(leaving) = leaving {
                let _ = dap.send_event(&TerminatedEvent {}).await;
                return leaving.respond(&json!({}));
            }
        }
        // Each of these fails when the client has gone.
        let _ = dap.send_event(&TerminatedEvent {}).await;
        wait_for_disconnect(inbox).await;
    }

    /// Sends what is left of the output, until its streams have ended. A daemon of the program may keep them open: then until it
    /// prints nothing for a moment, or for [`LAST_OUTPUT_LIMIT`]. Returns the request by which the client leaves meanwhile.
    async fn send_last_output(&mut self, program: &NodeProgram, inbox: &mut DapInbox) -> Option<IncomingRequest> {
        let mut limit = pin!(sleep(LAST_OUTPUT_LIMIT));
        loop {
            tokio::select! {
                biased; // what has been read is sent
                () = &mut limit => return None,
                incoming = inbox.next() => match incoming {
                    Some(DapIncoming::Request(request)) => match request.command.as_str() {
                        "disconnect" | "terminate" => return Some(request),
                        "threads" => request.respond(&ThreadsResponse::default()),
                        _ => request.respond_error(ErrorResponse::new("the program has ended")),
                    },
                    Some(_) => {}
                    None => return None,
                },
                Some(piece) = self.output.recv() => self.send_output(piece).await,
                () = program.debuggee.wait_for_last_output() => {
                    while let Ok(piece) = self.output.try_recv() {
                        self.send_output(piece).await;
                    }
                    return None;
                }
            }
        }
    }

    async fn disconnect(self, request: IncomingRequest) {
        self.leave(requested_termination(&request)).await;
        request.respond(&json!({}));
    }

    /// Ends a launched program, lets one that was attached to run on; or as `terminate` says.
    async fn leave(mut self, terminate: Option<bool>) {
        let is_stopped = self.session.isolates().iter().any(|isolate| isolate.pause().is_some());
        match (self.program.take(), terminate) {
            (Some(program), Some(true) | None) => program.debuggee.stop(is_stopped).await,
            (Some(program), Some(false)) => {
                self.session.leave_processes(Leaving::Launched).await;
                program.detach();
            }
            (None, Some(true)) => self.session.leave_processes(Leaving::Ended).await,
            (None, Some(false) | None) => self.session.leave_processes(Leaving::Attached).await,
        }
    }
}

/// Where a process of the program listens: the port must be one of our user.
fn opened_address(opened: &OpenedInspector) -> std::result::Result<InspectorAddress, RequestFailure> {
    let (port, path) = websocket_address(&opened.url)?;
    let (name, host) = (process_name(&opened.program, opened.pid), IsolateHost::Node);
    Ok(InspectorAddress { port, path, name, host, allows_foreign: false, is_launched: true })
}

/// A full lane ends the connection: nothing may be lost unnoticed.
fn close_when_full(connection: &ConnectionEvents, added: std::result::Result<(), LaneFull>) {
    if added.is_err() {
        connection.close();
    }
}

/// The name of the function by which breakpoints report: one that the program does not know.
fn random_name() -> String {
    let mut bytes = [0; 8];
    // On failure they stay zero, which names the function all the same.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("__tether_{}", hex::encode(bytes))
}

async fn next_inspector(inspectors: &mut Option<OpenedInspectors>) -> Option<OpenedInspector> {
    inspectors.as_mut()?.next().await
}

async fn wait_for_exit(program: &Option<NodeProgram>) {
    match program {
        Some(program) => drop(program.debuggee.process.wait_for_exit().await),
        None => std::future::pending().await,
    }
}

/// Without the lines that Node itself prints about its inspector.
fn without_inspector_lines(text: String) -> String {
    const LINES: [&str; 5] = [
        "Debugger attached.",
        "Waiting for the debugger to disconnect...",
        "Debugger listening on ws://",
        "Debugger ending on ws://",
        "For help, see: https://nodejs.org/en/docs/inspector",
    ];
    let is_own = |line: &str| LINES.iter().any(|start| line.starts_with(start));
    if text.lines().any(is_own) { text.split_inclusive('\n').filter(|line| !is_own(line)).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_inspector_are_not_the_programs() {
        let check = |text: &str, left: &str| assert_eq!(without_inspector_lines(text.to_owned()), left);
        check("Debugger attached.\n", "");
        check("a\nWaiting for the debugger to disconnect...\nb", "a\nb");
        check("the Debugger attached.\n", "the Debugger attached.\n");
    }
}
