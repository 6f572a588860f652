//! The backend for Java: how a program is launched or attached to, its events and requests, how it is let go.
//!
//! ```text
//! client ─▶ loop ─▶ each request beside, in order where the order counts ─▶ response
//! virtual machine ─▶ task of the events ─▶ decisions beside ─▶ stops
//! ```

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use tether_backend::request_failure::RequestFailure;
use tether_backend::{
    BackendEnd, DapBackend, LaunchedProgram, ServeContext, StartedBackend, exits_after_close, serve_backend,
};
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tether_dap::types::{DapCapabilities, DapModule, Fields, ModuleEvent, VIRTUAL_MACHINE};
use tether_dap::{DapConnection, DapServer, ErrorResponse, IncomingRequest};
use tether_jdwp::commands::virtual_machine::{Dispose, Exit, VmVersion};
use tether_jdwp::{JdwpClient, JdwpEvent, JdwpEvents};
use tether_process::Process;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::attach::{OpenedVm, find_attached_process, open_attached};
use super::breakpoint_table::{BreakpointPlace, StopConditions};
use super::breakpoints::{self, WantedBreakpoint};
use super::code_origin::CodeOrigin;
use super::dap_requests::capabilities;
use super::java_program::launch_program;
use super::java_vm::JavaVm;
use super::launch_arguments::{JavaAttach, JavaLaunch, JavaProgramKind};
use super::session::JavaSession;
use super::sources::SourceFolders;
use super::{frames, monitor_events, stop_conditions, stops};

/// How many requests may be unanswered.
const MAX_RUNNING: usize = 4096;
/// How many missing packages are named.
const MAX_NAMED: usize = 8;
/// How long the virtual machine may take to let the program go; then the end of the connection does.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves DAP on a connection until it ends.
pub fn serve_java(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    serve_backend::<JavaBackend>(connection, context)
}

/// A Java program that is debugged.
pub(crate) struct JavaBackend {
    pub session: Arc<JavaSession>,
    events: JavaEvents,
    /// Drives the connection to the virtual machine; requests; decisions at stops.
    tasks: JoinSet<()>,
    /// What is to run beside.
    beside: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
    /// The program that was attached to, where it is known.
    attached_process: Option<Process>,
}

/// The events of the virtual machine.
enum JavaEvents {
    /// They are handled once the client has been told that the session is initialized.
    Waiting(JdwpEvents),
    /// A task handles them; it says when there are no more.
    Handled(oneshot::Receiver<()>),
    /// The connection has ended.
    Ended,
}

impl DapBackend for JavaBackend {
    const PROGRAM: &'static str = "a Java program";

    fn capabilities() -> DapCapabilities {
        capabilities()
    }

    async fn launch(dap: &DapServer, fields: &Fields, launch_id: &str) -> Result<StartedBackend<JavaBackend>> {
        let launch = JavaLaunch::from_fields(fields).map_err(|cause| Self::usage_error("launch", cause))?;
        // What is written from here on may not be what runs.
        let since = SystemTime::now();
        let (program, output, stream) = launch_program(&launch, launch_id).await?;
        let sources = SourceFolders::of_project(launch.source_paths.clone(), &launch.cwd, launch.source()).await;
        if let JavaProgramKind::Source(source) = &launch.program {
            sources.add_named_file(source);
        }
        let failed = |error: String| Error::other("cannot debug the virtual machine").because(error);
        let opened = JdwpClient::open_tcp(stream).await.map_err(|error| failed(error.to_string()))?;
        let mut backend = connect_session(dap, opened, sources, launch_id).await?;
        wait_for_start(&backend.session, &mut backend.events).await?;
        if let (true, Some(class)) = (launch.stop_on_entry, &program.main_class) {
            let place = BreakpointPlace::Entry { class: class.clone() };
            let wanted = WantedBreakpoint { place, conditions: Ok(StopConditions::default()) };
            let set = breakpoints::replace_breakpoints(&backend.session, |_| false, vec![wanted]).await;
            set.map_err(|failure| Error::other("cannot stop at the entry").because(failure.0))?;
        }
        print_missing(&backend.session, &program.missing).await;
        let unknown = launch.unknown.clone();
        *lock(&backend.session.code_origin) = CodeOrigin {
            folders: program.class_paths,
            compiled: program.compiled_folder,
            launch: Some(launch),
            since,
            ..CodeOrigin::default()
        };
        let name = program.main_class.unwrap_or_else(|| "java".to_owned());
        let program = Some(LaunchedProgram { name, debuggee: program.debuggee, output });
        Ok(StartedBackend { backend, program, unknown })
    }

    async fn attach(dap: &DapServer, fields: &Fields, launch_id: &str) -> Result<StartedBackend<JavaBackend>> {
        let attach = JavaAttach::from_fields(fields).map_err(|cause| Self::usage_error("attach", cause))?;
        let is_host_named = fields.contains_key("hostName") || fields.contains_key("host");
        // It does not listen any more once a debugger has connected.
        let attached_process = find_attached_process(&attach.target).await;
        let opened = open_attached(&attach.target, is_host_named).await?;
        let sources = SourceFolders::of_project(attach.source_paths.clone(), &attach.cwd, None).await;
        let backend = connect_session(dap, opened, sources, launch_id).await?;
        let backend = JavaBackend { attached_process, ..backend };
        let failed = |failure: RequestFailure| Error::other("cannot list the threads").because(failure.0);
        frames::list_threads(&backend.session).await.map_err(failed)?;
        backend.session.with_tables(|tables| tables.reports_vm_start = attach.stop_on_entry);
        Ok(StartedBackend { backend, program: None, unknown: attach.unknown })
    }

    async fn advance(&mut self) {
        self.handle_waiting_events();
        tokio::select! {
            () = wait_for_events_end(&mut self.events) => self.events = JavaEvents::Ended,
            Some(task) = self.beside.recv() => drop(self.tasks.spawn(task)),
            Some(_) = self.tasks.join_next() => {}
        }
    }

    /// It is polled once here: requests take their places in the order in which they come.
    async fn begin_request(&mut self, request: IncomingRequest) {
        if self.tasks.len() >= MAX_RUNNING {
            return request.respond_error(ErrorResponse::new("too many requests are not answered yet"));
        }
        let session = Arc::clone(&self.session);
        let mut answer = Box::pin(async move { session.answer_in_turn(request).await });
        if poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await.is_pending() {
            self.tasks.spawn(answer);
        }
    }

    fn has_ended(&self, _: bool) -> bool {
        matches!(self.events, JavaEvents::Ended)
    }

    async fn close(&mut self) -> BackendEnd {
        let reason = self.session.vm.client.wait_closed().await;
        // What waits for something that runs beside ends, too.
        self.beside.close();
        while self.beside.try_recv().is_ok() {}
        self.session.with_tables(|tables| tables.suspends.forget_all());
        let has_ended = self.session.with_tables(|tables| tables.has_vm_ended);
        let is_by_program = has_ended || exits_after_close(self.attached_process.as_ref()).await;
        BackendEnd { reason: format!("the connection to the virtual machine has ended: {reason}"), is_by_program }
    }

    fn is_stopped(&self) -> bool {
        self.session.with_tables(|tables| tables.suspends.is_any_suspended())
    }

    /// An error means that the virtual machine has ended, or does not answer: the end of the connection lets go, too.
    async fn release(&mut self, _: bool) {
        let _ = self.session.vm.client.request_within(&Dispose {}, LEAVE_TIMEOUT).await;
    }

    async fn terminate(&mut self) {
        let _ = self.session.vm.client.request_within(&Exit { exit_code: 1 }, LEAVE_TIMEOUT).await;
    }
}

impl JavaBackend {
    /// Begins to handle the events of the virtual machine, if nobody does.
    fn handle_waiting_events(&mut self) {
        if !matches!(self.events, JavaEvents::Waiting(_)) {
            return;
        }
        let (end, ended) = oneshot::channel();
        if let JavaEvents::Waiting(events) = std::mem::replace(&mut self.events, JavaEvents::Handled(ended)) {
            let session = Arc::clone(&self.session);
            self.tasks.spawn(async move {
                handle_all_events(&session, events).await;
                // Fails when the session has ended.
                let _ = end.send(());
            });
        }
    }
}

/// Names packages that the project needs and the user does not have: the program may fail for want of them.
async fn print_missing(session: &JavaSession, missing: &[String]) {
    if let Some(named) = missing.get(..missing.len().min(MAX_NAMED)).filter(|named| !named.is_empty()) {
        let more = if named.len() < missing.len() { ", …" } else { "" };
        let text = format!("not on the class path, since they are not on this machine: {}{more}\n", named.join(", "));
        stop_conditions::print(session, "console", &text).await;
    }
}

async fn wait_for_events_end(events: &mut JavaEvents) {
    match events {
        JavaEvents::Handled(ended) => drop(ended.await),
        JavaEvents::Waiting(_) | JavaEvents::Ended => std::future::pending().await,
    }
}

/// Handles the events of the virtual machine in order, until the connection has ended.
async fn handle_all_events(session: &Arc<JavaSession>, mut events: JdwpEvents) {
    while let Some(composite) = events.next().await {
        match composite {
            Ok(composite) => {
                if let Some((thread, reached)) = stops::handle_events(session, composite).await {
                    let settling = Arc::clone(session);
                    session.run_beside(async move { stops::settle_thread(&settling, thread, reached).await });
                }
            }
            Err(error) => {
                // What it has suspended is not known: with the connection, the virtual machine lets all threads go.
                stop_conditions::print(session, "important", &format!("{error}: the connection is closed\n")).await;
                session.vm.client.close();
            }
        }
    }
}

/// A session over the connection to a virtual machine.
pub(crate) async fn connect_session(
    dap: &DapServer,
    (client, events, driver): OpenedVm,
    sources: SourceFolders,
    launch_id: &str,
) -> Result<JavaBackend> {
    let failed = |cause: String| Error::other("cannot debug the virtual machine").because(cause);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(driver.await) });
    let vm = JavaVm::open(client).await.map_err(|error| failed(error.to_string()))?;
    let VmVersion { vm_name: name, vm_version, .. } = vm.version.clone();
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
    monitor_events::capture_first_events(&session).await.map_err(|failure| failed(failure.0))?;
    Ok(JavaBackend { session, events: JavaEvents::Waiting(events), tasks, beside, attached_process: None })
}

/// Waits until a launched virtual machine reports that it has started, and is suspended.
async fn wait_for_start(session: &JavaSession, events: &mut JavaEvents) -> Result<()> {
    let JavaEvents::Waiting(events) = events else { return Ok(()) };
    loop {
        let failed = |cause: String| Error::other("the virtual machine did not start").because(cause);
        let Some(composite) = events.next().await else {
            return Err(failed("it has closed the connection".to_owned()));
        };
        let composite = composite.map_err(|error| failed(error.to_string()))?;
        let is_start = |event: &JdwpEvent| matches!(event, JdwpEvent::VmStart { .. });
        if composite.events.iter().any(is_start) {
            session.with_tables(|tables| tables.suspends.suspend_all_by_event());
            return frames::list_threads(session).await.map(drop).map_err(|failure| failed(failure.0));
        }
    }
}
