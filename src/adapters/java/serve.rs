//! One DAP conversation, from `initialize` to the end of its connection.
//!
//! ```text
//! initialize ─▶ launch / attach ─▶ virtual machine connected ─▶ `initialized` ─▶ breakpoints ─▶ configurationDone
//!   ─▶ events of the virtual machine, requests, output ─▶ its end ─▶ `exited`, `terminated` ─▶ disconnect
//! ```
//! Requests are answered in order, but those that may run code of the program: these run beside, and so does the decision
//! whether a thread that has reached a breakpoint stops.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::attach::{OpenedVm, open_attached};
use super::breakpoint_table::{BreakpointPlace, StopConditions};
use super::breakpoints::WantedStop;
use super::code_origin::CodeOrigin;
use super::java_program::{JavaProgram, launch_program};
use super::java_vm::JavaVm;
use super::launch_arguments::{JavaAttach, JavaLaunch};
use super::requests::{capabilities, is_evaluating};
use super::session::JavaSession;
use super::sources::SourceFolders;
use crate::adapters::ServeContext;
use crate::adapters::conversation::{
    NextMove, next_start, output_event, requested_termination, respond_to_start, wait_for_disconnect,
};
use crate::adapters::output_reader::OutputPiece;
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{
    AttachArguments, DapModule, ExitedEvent, InitializedEvent, LaunchArguments, ModuleEvent, ProcessEvent,
    TerminatedEvent, VIRTUAL_MACHINE,
};
use crate::dap::{DapConnection, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use crate::error::{Error, Result};
use crate::jdwp::commands::virtual_machine::{Dispose, Exit, Version, VmVersion};
use crate::jdwp::{JdwpClient, JdwpEvent, JdwpEvents};
use crate::process::ProcessExit;
use crate::sync::lock;

/// Serves DAP on a connection until it ends.
pub fn serve_java(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (dap, inbox, driver) = DapServer::over(connection);
        // The connection ends when the conversation has dropped its handle, and what was queued is written.
        tokio::join!(converse(dap, inbox, context), driver);
    })
}

/// What a started session consists of.
struct StartedSession {
    session: Arc<JavaSession>,
    events: JdwpEvents,
    program: Option<JavaProgram>,
    output: mpsc::Receiver<OutputPiece>,
    /// Drives the connection to the virtual machine; evaluations; decisions at stops.
    tasks: JoinSet<()>,
}

async fn converse(dap: DapServer, mut inbox: DapInbox, context: ServeContext) {
    let Some(started) = start_session(&dap, &mut inbox, &context.launch_id).await else { return };
    // A client that leaves at once has left.
    if dap.send_event(&InitializedEvent {}).await.is_ok() {
        started.run(&mut inbox, &context).await;
    }
}

/// Handles requests until a program is launched or attached to. `None`: the client has left.
async fn start_session(dap: &DapServer, inbox: &mut DapInbox, launch_id: &str) -> Option<StartedSession> {
    loop {
        let request = next_start(inbox, &capabilities()).await?;
        let starting = async {
            match request.command.as_str() {
                "launch" => launch(dap, &request, launch_id).await,
                _ => attach(dap, &request, launch_id).await,
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

async fn launch(dap: &DapServer, request: &IncomingRequest, launch_id: &str) -> Result<StartedSession> {
    let usage = |cause: String| Error::usage("cannot launch a Java program").because(cause);
    let LaunchArguments(fields) = request.read_arguments().map_err(usage)?;
    let launch = JavaLaunch::from_fields(&fields).map_err(usage)?;
    // What is written from here on may not be what runs.
    let since = SystemTime::now();
    let (program, output, stream) = launch_program(&launch, launch_id).await?;
    let sources = SourceFolders::new(launch.source_paths.clone(), &launch.cwd);
    if let super::launch_arguments::JavaProgramKind::Source(source) = &launch.program {
        sources.add_named_file(source);
    }
    let opened = JdwpClient::open_tcp(stream).await;
    let opened = opened.map_err(|error| Error::other("cannot debug the virtual machine").because(error.to_string()))?;
    let mut started = begin_session(dap, opened, sources, launch_id).await?;
    started.output = output;
    started.wait_for_start().await?;
    if let (true, Some(class)) = (launch.stop_on_entry, &program.main_class) {
        let kind = BreakpointPlace::Entry { class: class.clone() };
        let wanted = WantedStop { kind, conditions: Ok(StopConditions::default()) };
        let set = started.session.replace_breakpoints(|_| false, vec![wanted]).await;
        set.map_err(|failure| Error::other("cannot stop at the entry").because(failure.0))?;
    }
    report_unknown(&started.session, &launch.unknown).await;
    *lock(&started.session.code_origin) = CodeOrigin {
        folders: program.class_paths.clone(),
        compiled: program.compiled_folder(),
        launch: Some(launch),
        since,
        ..CodeOrigin::default()
    };
    let name = program.main_class.clone().unwrap_or_else(|| "java".to_owned());
    let system_process_id = Some(i64::from(program.debuggee.process.pid()));
    // Fails when the client has gone, which ends the session.
    let _ = dap.send_event(&ProcessEvent { name, system_process_id }).await;
    started.program = Some(program);
    Ok(started)
}

async fn attach(dap: &DapServer, request: &IncomingRequest, launch_id: &str) -> Result<StartedSession> {
    let usage = |cause: String| Error::usage("cannot attach to a Java program").because(cause);
    let AttachArguments(fields) = request.read_arguments().map_err(usage)?;
    let attach = JavaAttach::from_fields(&fields).map_err(usage)?;
    let is_host_named = fields.contains_key("hostName") || fields.contains_key("host");
    let opened = open_attached(&attach.target, is_host_named).await?;
    let sources = SourceFolders::new(attach.source_paths.clone(), Path::new(&attach.cwd));
    let started = begin_session(dap, opened, sources, launch_id).await?;
    let failed = |failure: RequestFailure| Error::other("cannot list the threads").because(failure.0);
    started.session.list_threads().await.map_err(failed)?;
    started.session.with_tables(|tables| tables.reports_vm_start = attach.stop_on_entry);
    report_unknown(&started.session, &attach.unknown).await;
    Ok(started)
}

async fn report_unknown(session: &JavaSession, unknown: &[String]) {
    for name in unknown {
        session.print("important", &format!("the argument `{name}` is not known to this adapter\n")).await;
    }
}

/// A session over the connection to a virtual machine.
async fn begin_session(
    dap: &DapServer,
    (client, events, driver): OpenedVm,
    sources: SourceFolders,
    launch_id: &str,
) -> Result<StartedSession> {
    let failed = |cause: String| Error::other("cannot debug the virtual machine").because(cause);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(driver.await) });
    let vm = JavaVm::open(client).await.map_err(|error| failed(error.to_string()))?;
    let VmVersion { vm_name: name, vm_version, .. } =
        vm.request(&Version {}).await.map_err(|error| failed(error.to_string()))?;
    let (id, version) = (VIRTUAL_MACHINE.into(), Some(vm_version));
    let module = DapModule { id, name, path: None, version };
    // Fails when the client has gone, which ends the session.
    let _ = dap.send_event(&ModuleEvent { reason: "new".to_owned(), module }).await;
    let session = Arc::new(JavaSession {
        vm,
        dap: dap.clone(),
        sources,
        tables: Default::default(),
        code_origin: Default::default(),
        scratch: format!("tether-{launch_id}-"),
    });
    session.capture_first_events().await.map_err(|failure| failed(failure.0))?;
    Ok(StartedSession { session, events, program: None, output: mpsc::channel(1).1, tasks })
}

impl StartedSession {
    /// Waits until a launched virtual machine reports that it has started, and is suspended.
    async fn wait_for_start(&mut self) -> Result<()> {
        loop {
            let failed = |cause: String| Error::other("the virtual machine did not start").because(cause);
            let Some(composite) = self.events.next().await else {
                return Err(failed("it has closed the connection".to_owned()));
            };
            let composite = composite.map_err(|error| failed(error.to_string()))?;
            let is_start = |event: &JdwpEvent| matches!(event, JdwpEvent::VmStart { .. });
            if composite.events.iter().any(is_start) {
                self.session.with_tables(|tables| tables.is_vm_suspended = true);
                return self.session.list_threads().await.map(drop).map_err(|failure| failed(failure.0));
            }
        }
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
            composite = self.events.next() => match composite {
                None => NextMove::Ended,
                Some(Err(error)) => {
                    self.session.print("important", &format!("{error}\n")).await;
                    NextMove::GoOn
                }
                Some(Ok(composite)) => {
                    let handled = self.session.handle_events(composite).await;
                    let session = Arc::clone(&self.session);
                    match handled {
                        Ok(Some((thread, reached))) => {
                            self.tasks.spawn(async move {
                                let settled = session.settle_thread(thread, reached).await;
                                print_failure(&session, settled).await;
                            });
                        }
                        Ok(None) => {}
                        failed => print_failure(&session, failed.map(drop)).await,
                    }
                    NextMove::GoOn
                }
            },
            incoming = inbox.next() => match incoming {
                Some(DapIncoming::Request(request)) => self.handle_request(request).await,
                Some(_) => NextMove::GoOn,
                None => NextMove::ClientGone,
            },
            Some(piece) = self.output.recv() => {
                self.send_output(piece).await;
                NextMove::GoOn
            }
            Some(_) = self.tasks.join_next() => NextMove::GoOn,
        }
    }

    async fn handle_request(&mut self, request: IncomingRequest) -> NextMove {
        match request.command.as_str() {
            "disconnect" | "terminate" => return NextMove::Disconnect(request),
            "configurationDone" => {
                let started = self.configuration_done().await;
                match started {
                    Ok(()) => request.respond(&json!({})),
                    Err(failure) => request.respond_error(ErrorResponse::new(failure.0)),
                }
            }
            command if is_evaluating(command) => {
                let session = Arc::clone(&self.session);
                self.tasks.spawn(async move { session.answer_request(request).await });
            }
            _ => self.session.answer_request(request).await,
        }
        NextMove::GoOn
    }

    async fn configuration_done(&self) -> std::result::Result<(), RequestFailure> {
        let reports_vm_start = self.session.with_tables(|tables| {
            tables.is_configured = true;
            tables.reports_vm_start
        });
        match reports_vm_start {
            true => self.session.report_vm_start().await,
            false => self.session.start_program().await,
        }
    }

    async fn send_output(&self, piece: OutputPiece) {
        let event = output_event(piece);
        // Fails when the client has gone, which ends the session.
        let _ = self.session.dap.send_event(&event).await;
    }

    /// The program has ended: reports how, then waits for the client to leave.
    async fn report_end(mut self, inbox: &mut DapInbox, context: &ServeContext) {
        let dap = self.session.dap.clone();
        if let Some(program) = &self.program {
            let exit = program.debuggee.wait_for_end().await;
            context.exit.send_replace(Some(exit));
            while let Ok(piece) = self.output.try_recv() {
                self.send_output(piece).await;
            }
            let exit_code = match exit {
                ProcessExit::Code(code) => i64::from(code),
                ProcessExit::Signal(signal) => 128 + i64::from(signal),
                _ => -1,
            };
            let _ = dap.send_event(&ExitedEvent { exit_code, ..ExitedEvent::default() }).await;
        }
        // Each of these fails when the client has gone.
        let _ = dap.send_event(&TerminatedEvent {}).await;
        wait_for_disconnect(inbox).await;
    }

    async fn disconnect(self, request: IncomingRequest) {
        self.leave(requested_termination(&request)).await;
        request.respond(&json!({}));
    }

    /// Ends a launched program, lets one that was attached to run on; or as `terminate` says.
    async fn leave(mut self, terminate: Option<bool>) {
        let vm = &self.session.vm;
        let is_stopped = self.session.with_tables(|tables| tables.is_vm_suspended || !tables.stopped.is_empty());
        // An error means that the virtual machine has ended.
        match (self.program.take(), terminate) {
            (Some(program), Some(true) | None) => program.debuggee.stop(is_stopped).await,
            (Some(program), Some(false)) => {
                let _ = vm.request(&Dispose {}).await;
                program.detach();
            }
            (None, Some(true)) => drop(vm.request(&Exit { exit_code: 1 }).await),
            (None, Some(false) | None) => drop(vm.request(&Dispose {}).await),
        }
    }
}

async fn print_failure(session: &JavaSession, settled: std::result::Result<(), RequestFailure>) {
    if let Err(failure) = settled {
        session.print("important", &format!("the debugger failed at an event: {failure}\n")).await;
    }
}
