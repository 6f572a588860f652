//! One DAP conversation, from `initialize` to the end of its connection.
//!
//! ```text
//! initialize ─▶ launch / attach ─▶ inspector connected ─▶ `initialized` ─▶ breakpoints ─▶ configurationDone ─▶ it runs
//!   ─▶ events of its inspectors, requests, output, more processes ─▶ its end ─▶ `exited`, `terminated` ─▶ disconnect
//! ```
//! Requests are answered in order, but those that may run code of the program: these run beside.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::attach_target::{attach_error, find_target};
use super::connection::{InspectorAddress, process_name};
use super::isolate::{Isolate, IsolateHost};
use super::isolate_events::{IsolateEvent, IsolateEvents};
use super::launch_arguments::{NodeAttach, NodeLaunch, SourceSettings, websocket_address};
use super::module_announcements::announcing_script;
use super::node_program::{LaunchedProgram, NodeProgram, OpenedInspector, OpenedInspectors, launch_program};
use super::requests::{capabilities, is_evaluating};
use super::session::NodeSession;
use crate::adapters::ServeContext;
use crate::adapters::conversation::{
    NextMove, next_start, output_event, requested_termination, respond_to_start, wait_for_disconnect,
};
use crate::adapters::output_reader::OutputPiece;
use crate::adapters::request_failure::RequestFailure;
use crate::cdp::debugger::EvaluateInGlobalScope;
use crate::cdp::types::ClosePage;
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
    /// Drive the connections to the inspectors; evaluations.
    tasks: JoinSet<()>,
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
    let mut conversation = NodeConversation::new(dap, &attach.settings, binding, hook);
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
        NodeConversation {
            session,
            events,
            queue,
            program: None,
            inspectors: None,
            has_exited: false,
            output,
            tasks: JoinSet::new(),
        }
    }

    async fn connect(&mut self, address: &InspectorAddress) -> std::result::Result<Arc<Isolate>, RequestFailure> {
        self.session.connect_process(address, &self.events, &mut self.tasks).await
    }

    /// A process of the program has opened its inspector: the port must be one of our user.
    async fn connect_opened(&mut self, opened: &OpenedInspector) -> std::result::Result<Arc<Isolate>, RequestFailure> {
        let (port, path) = websocket_address(&opened.url)?;
        let (name, host) = (process_name(&opened.program, opened.pid), IsolateHost::Node);
        self.connect(&InspectorAddress { port, path, name, host, allows_foreign: false }).await
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
            Some(event) = self.queue.recv() => self.handle_event(event).await,
            incoming = inbox.next() => match incoming {
                Some(DapIncoming::Request(request)) => self.handle_request(request).await,
                Some(_) => NextMove::GoOn,
                None => NextMove::ClientGone,
            },
            Some(opened) = next_inspector(&mut self.inspectors) => {
                self.add_process(&opened).await;
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
            Some(_) = self.tasks.join_next() => NextMove::GoOn,
        }
    }

    /// The program has ended when its process has exited, and all its other processes have; one that was attached to, when
    /// its connection has ended.
    fn next_unless_ended(&self) -> NextMove {
        let is_gone = self.session.isolates().is_empty() && (self.has_exited || self.program.is_none());
        if is_gone { NextMove::Ended } else { NextMove::GoOn }
    }

    async fn handle_event(&mut self, event: IsolateEvent) -> NextMove {
        let handled = match event {
            IsolateEvent::Sent { isolate, event } => match self.session.isolate(isolate) {
                Ok(isolate) if event.method == "NodeRuntime.waitingForDisconnect" => {
                    self.release(&isolate).await;
                    Ok(())
                }
                Ok(isolate) => self.session.handle_event(&isolate, event).await,
                // It has ended since.
                Err(_) => Ok(()),
            },
            IsolateEvent::ChildStarted(child) => self.session.connect_child(child).await,
            IsolateEvent::Ended { isolate } => {
                if self.session.remove_isolate(isolate).is_some() {
                    self.session.report_thread("exited", isolate).await;
                }
                return self.next_unless_ended();
            }
        };
        if let Err(failure) = handled {
            // An isolate that ends meanwhile is no failure.
            tracing::debug!("an event of an inspector could not be handled: {failure}");
        }
        NextMove::GoOn
    }

    /// A process has finished, and waits for its debugger to leave.
    async fn release(&self, process: &Isolate) {
        if let Some(client) = &process.client {
            self.session.release_workers(process).await;
            client.close();
        }
    }

    async fn add_process(&mut self, opened: &OpenedInspector) {
        let connected = self.connect_opened(opened).await;
        match connected {
            Ok(isolate) => {
                self.session.report_thread("started", isolate.id).await;
                let started = self.session.start_isolate(&isolate).await;
                if let Err(failure) = started {
                    tracing::debug!("a process of the program could not be started: {failure}");
                }
                self.repeat_start(isolate);
            }
            Err(failure) => {
                let name = process_name(&opened.program, opened.pid);
                self.session.print("important", &format!("{name} is not debugged: {failure}\n")).await;
            }
        }
    }

    fn repeat_start(&mut self, isolate: Arc<Isolate>) {
        let session = Arc::clone(&self.session);
        self.tasks.spawn(async move { session.repeat_start(&isolate).await });
    }

    async fn handle_request(&mut self, request: IncomingRequest) -> NextMove {
        match request.command.as_str() {
            "disconnect" | "terminate" => return NextMove::Disconnect(request),
            "configurationDone" => {
                self.session.with_settings(|settings| settings.is_configured = true);
                let mut started = Ok(());
                for isolate in self.session.isolates() {
                    started = started.and(self.session.start_isolate(&isolate).await);
                    self.repeat_start(isolate);
                }
                match started {
                    Ok(()) => request.respond(&json!({})),
                    Err(failure) => request.respond_error(ErrorResponse::new(failure.0)),
                }
            }
            command if is_evaluating(command) => {
                let session = Arc::clone(&self.session);
                self.tasks.spawn(async move { session.answer_request(request).await });
            }
            "pause" => {
                self.session.answer_request(request).await;
                let session = Arc::clone(&self.session);
                self.tasks.spawn(async move { session.repeat_pauses().await });
            }
            _ => self.session.answer_request(request).await,
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
        let limit = Instant::now() + LAST_OUTPUT_LIMIT;
        loop {
            tokio::select! {
                biased; // what has been read is sent
                () = sleep_until(limit) => return None,
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
        let isolates = self.session.isolates();
        let is_stopped = isolates.iter().any(|isolate| isolate.pause().is_some());
        match (self.program.take(), terminate) {
            (Some(program), Some(true) | None) => return program.debuggee.stop(is_stopped).await,
            (Some(program), Some(false)) => {
                self.session.remove_all_data_breakpoints().await;
                program.detach();
            }
            (None, Some(true)) => {
                for isolate in isolates.iter().filter(|isolate| isolate.client.is_some()) {
                    end_attached(isolate).await;
                }
            }
            (None, Some(false) | None) => {
                for isolate in isolates.iter().filter(|isolate| isolate.client.is_some()) {
                    self.session.stop_announcing_modules(isolate).await;
                }
                self.session.remove_all_data_breakpoints().await;
            }
        }
        // An evaluation that still goes on could reach a process that ends meanwhile.
        self.session.leave_connections();
        // A main thread that is paused runs on when its last client has left.
        for (isolate, client) in isolates.iter().filter_map(|isolate| Some((isolate, isolate.client.clone()?))) {
            self.session.release_workers(isolate).await;
            client.close();
            client.wait_closed().await;
        }
    }
}

/// Ends a program that was attached to, or closes a page.
async fn end_attached(isolate: &Isolate) {
    let expression = "process.kill(process.pid)".to_owned();
    let end = EvaluateInGlobalScope { expression, ..EvaluateInGlobalScope::default() };
    // Each fails when it has ended.
    if isolate.is_web() {
        let _ = isolate.call(&ClosePage {}).await;
    } else {
        let _ = isolate.call(&end).await;
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
