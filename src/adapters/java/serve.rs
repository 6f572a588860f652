//! One DAP conversation: from `initialize` to the start of the session, which `session_loop` carries on.
//!
//! ```text
//! initialize ─▶ launch / attach ─▶ virtual machine connected ─▶ `initialized` ─▶ breakpoints ─▶ configurationDone
//!   ─▶ events of the virtual machine, requests, output ─▶ its end ─▶ `exited`, `terminated` ─▶ disconnect
//! ```
//! The client is read while a program starts: it can leave at any time.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::attach::{OpenedVm, open_attached};
use super::breakpoint_table::{BreakpointPlace, StopConditions};
use super::breakpoints::WantedStop;
use super::code_origin::CodeOrigin;
use super::java_program::launch_program;
use super::java_vm::JavaVm;
use super::launch_arguments::{JavaAttach, JavaLaunch};
use super::requests::capabilities;
use super::session::JavaSession;
use super::session_loop::RunningSession;
use super::sources::SourceFolders;
use crate::adapters::ServeContext;
use crate::adapters::conversation::{next_start, respond_to_start};
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{
    AttachArguments, DapModule, InitializedEvent, LaunchArguments, ModuleEvent, ProcessEvent, VIRTUAL_MACHINE,
};
use crate::dap::{DapConnection, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use crate::error::{Error, Result};
use crate::jdwp::commands::virtual_machine::{Version, VmVersion};
use crate::jdwp::{JdwpClient, JdwpEvent, JdwpEvents};
use crate::sync::lock;

/// How many requests may wait for the start of the program.
const MAX_WAITING: usize = 1000;

/// Serves DAP on a connection until it ends.
pub fn serve_java(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (dap, inbox, driver) = DapServer::over(connection);
        // The connection ends when the conversation has dropped its handle, and what was queued is written.
        tokio::join!(converse(dap, inbox, context), driver);
    })
}

/// A session that has started, and the events that it will handle.
type StartedSession = (RunningSession, JdwpEvents);

async fn converse(dap: DapServer, mut inbox: DapInbox, context: ServeContext) {
    let started = start_session(&dap, &mut inbox, &context.launch_id).await;
    let Some(((session, events), waiting)) = started else { return };
    // A client that leaves at once has left.
    if dap.send_event(&InitializedEvent {}).await.is_ok() {
        session.run(events, &mut inbox, &context, waiting).await;
    }
}

/// Handles requests until a program is launched or attached to. `None`: the client has left.
async fn start_session(
    dap: &DapServer,
    inbox: &mut DapInbox,
    launch_id: &str,
) -> Option<(StartedSession, Vec<IncomingRequest>)> {
    loop {
        let request = next_start(inbox, &capabilities()).await?;
        let starting = async {
            match request.command.as_str() {
                "launch" => launch(dap, &request, launch_id).await,
                _ => attach(dap, &request, launch_id).await,
            }
        };
        let (started, waiting) = listen_during_start(dap, inbox, starting).await?;
        if let Some(started) = respond_to_start(request, started) {
            return Some((started, waiting));
        }
        for request in waiting {
            request.respond_error(ErrorResponse::new("the program has not started"));
        }
    }
}

/// Reads the client while a program starts; returns the requests that have come meanwhile, too. `None`: the client has left.
/// Dropping the start ends what it has begun.
async fn listen_during_start(
    dap: &DapServer,
    inbox: &mut DapInbox,
    starting: impl Future<Output = Result<StartedSession>>,
) -> Option<(Result<StartedSession>, Vec<IncomingRequest>)> {
    let (mut starting, mut waiting) = (Box::pin(starting), Vec::new());
    loop {
        let incoming = tokio::select! {
            started = &mut starting => return Some((started, waiting)),
            _ = dap.wait_closed() => return None,
            incoming = inbox.next() => incoming,
        };
        match incoming {
            None => return None,
            Some(DapIncoming::Request(request)) => match request.command.as_str() {
                "disconnect" | "terminate" => {
                    drop(starting);
                    request.respond(&json!({}));
                    return None;
                }
                "threads" | "pause" => request.respond_error(ErrorResponse::new("the program has not started yet")),
                _ if waiting.len() < MAX_WAITING => waiting.push(request),
                _ => request.respond_error(ErrorResponse::new("too many requests before the program has started")),
            },
            Some(_) => {}
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
    let (mut started, mut events) = begin_session(dap, opened, sources, launch_id).await?;
    started.output = output;
    wait_for_start(&started.session, &mut events).await?;
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
    Ok((started, events))
}

async fn attach(dap: &DapServer, request: &IncomingRequest, launch_id: &str) -> Result<StartedSession> {
    let usage = |cause: String| Error::usage("cannot attach to a Java program").because(cause);
    let AttachArguments(fields) = request.read_arguments().map_err(usage)?;
    let attach = JavaAttach::from_fields(&fields).map_err(usage)?;
    let is_host_named = fields.contains_key("hostName") || fields.contains_key("host");
    let opened = open_attached(&attach.target, is_host_named).await?;
    let sources = SourceFolders::new(attach.source_paths.clone(), Path::new(&attach.cwd));
    let (started, events) = begin_session(dap, opened, sources, launch_id).await?;
    let failed = |failure: RequestFailure| Error::other("cannot list the threads").because(failure.0);
    started.session.list_threads().await.map_err(failed)?;
    started.session.with_tables(|tables| tables.reports_vm_start = attach.stop_on_entry);
    report_unknown(&started.session, &attach.unknown).await;
    Ok((started, events))
}

async fn report_unknown(session: &JavaSession, unknown: &[String]) {
    for name in unknown {
        session.print("important", &format!("the argument `{name}` is not known to this adapter\n")).await;
    }
}

/// A session over the connection to a virtual machine.
pub async fn begin_session(
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
    let (beside_sender, beside) = mpsc::unbounded_channel();
    let session = Arc::new_cyclic(|own| JavaSession {
        vm,
        dap: dap.clone(),
        sources,
        tables: Default::default(),
        code_origin: Default::default(),
        scratch: format!("tether-{launch_id}-"),
        own: Weak::clone(own),
        order: Default::default(),
        beside: beside_sender,
    });
    session.capture_first_events().await.map_err(|failure| failed(failure.0))?;
    Ok((RunningSession { session, program: None, output: mpsc::channel(1).1, tasks, beside }, events))
}

/// Waits until a launched virtual machine reports that it has started, and is suspended.
async fn wait_for_start(session: &JavaSession, events: &mut JdwpEvents) -> Result<()> {
    loop {
        let failed = |cause: String| Error::other("the virtual machine did not start").because(cause);
        let Some(composite) = events.next().await else {
            return Err(failed("it has closed the connection".to_owned()));
        };
        let composite = composite.map_err(|error| failed(error.to_string()))?;
        let is_start = |event: &JdwpEvent| matches!(event, JdwpEvent::VmStart { .. });
        if composite.events.iter().any(is_start) {
            session.with_tables(|tables| tables.suspends.suspend_all_by_event());
            return session.list_threads().await.map(drop).map_err(|failure| failed(failure.0));
        }
    }
}
