//! The backend for Node: how a program is launched or attached to, what its processes and isolates do, how it is let go.
//!
//! The loop waits for no program: what asks an isolate runs in its lane. Requests are answered in order, except those whose
//! order does not matter: these run concurrently.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use serde::Deserialize;
use tether_backend::request_failure::RequestFailure;
use tether_backend::requests::answer_request;
use tether_backend::{
    Answer, BackendEnd, DapBackend, LaunchedProgram, ServeContext, StartedBackend, exits_after_close, serve_backend,
};
use tether_base::error::{Error, Result};
use tether_base::sync::run_blocking;
use tether_cdp::list_targets;
use tether_dap::types::{DapCapabilities, Fields, OutputEvent, ProcessEvent, ThreadsResponse};
use tether_dap::{DapConnection, DapServer, IncomingRequest};
use tether_process::Process;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::attach_target::{attach_error, find_target, has_navigated};
use super::connection::{self, InspectorAddress, process_name};
use super::dap_requests::{capabilities, is_concurrent};
use super::inspector_queue::{ConnectionEvents, IsolateEvent, IsolateEvents};
use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::lane::{Lane, LaneFull, SessionTasks};
use super::launch_arguments::{NodeAttach, NodeLaunch, SourceSettings, websocket_address};
use super::module_announcements::{self, announcing_script};
use super::node_program::{LaunchedNode, OpenedInspector, OpenedInspectors, launch_program};
use super::release::{self, Leaving};
use super::session::NodeSession;
use super::{engine_events, frames, resume};

/// How long a browser may take to list its pages.
const PAGES_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a page is connected to that navigates meanwhile.
const PAGE_ATTEMPTS: usize = 5;

/// Serves DAP on a connection until it ends.
pub fn serve_node(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    serve_backend::<NodeBackend>(connection, context)
}

/// A Node program, or a page, that is debugged.
pub(crate) struct NodeBackend {
    session: Arc<NodeSession>,
    events: IsolateEvents,
    queue: mpsc::Receiver<IsolateEvent>,
    /// The other processes of a launched program.
    inspectors: Option<OpenedInspectors>,
    /// Drive the connections to the inspectors, and the lanes; evaluations.
    tasks: SessionTasks,
    /// Processes of the program that are being connected to.
    connecting: JoinSet<()>,
    /// Requests that are answered in order.
    requests: Lane,
    attached: Option<AttachedProgram>,
}

/// A program, or a page, that was attached to.
struct AttachedProgram {
    /// Its process, or its browser's, where that is known.
    process: Option<Process>,
    port: u16,
    isolate: Arc<Isolate>,
}

/// The thread, or the frame, that a request is about.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestPlace {
    thread_id: Option<i64>,
    frame_id: Option<i64>,
}

impl DapBackend for NodeBackend {
    const PROGRAM: &'static str = "a Node program";

    fn capabilities() -> DapCapabilities {
        capabilities()
    }

    async fn launch(dap: &DapServer, fields: &Fields, launch_id: &str) -> Result<StartedBackend<NodeBackend>> {
        let launch = NodeLaunch::from_fields(fields).map_err(|cause| Self::usage_error("launch", cause))?;
        let binding = random_name();
        let LaunchedNode { debuggee, script, output, first, inspectors } =
            launch_program(&launch, launch_id, &binding).await?;
        let mut backend = NodeBackend::new(dap, &launch.settings, binding, Some(script));
        backend.inspectors = Some(inspectors);
        let failed = |failure: RequestFailure| Error::other("cannot debug the program").because(failure.0);
        backend.connect_opened(&first).await.map_err(failed)?;
        if let (true, Some(program)) = (launch.stop_on_entry, &launch.program) {
            backend.session.stop_at_entry(program).await.map_err(failed)?;
        }
        let program = LaunchedProgram { name: process_name(&first.program, first.pid), debuggee, output };
        Ok(StartedBackend { backend, program: Some(program), unknown: launch.settings.unknown })
    }

    async fn attach(dap: &DapServer, fields: &Fields, _: &str) -> Result<StartedBackend<NodeBackend>> {
        let attach = NodeAttach::from_fields(fields).map_err(|cause| Self::usage_error("attach", cause))?;
        let mut target = find_target(&attach).await?;
        let (binding, port) = (random_name(), target.port);
        let failed = |failure: RequestFailure| attach_error(&attach, port, failure.0);
        let hook = Some(announcing_script(&binding));
        let mut backend = NodeBackend::new(dap, &attach.settings, binding, hook);
        let process = run_blocking(move || tether_process::find_listening_program("127.0.0.1", port)).await;
        let mut connected = backend.connect(&target).await;
        for _ in 1..PAGE_ATTEMPTS {
            match &connected {
                Err(failure) if has_navigated(&target, failure) => {}
                _ => break,
            }
            target = find_target(&attach).await?;
            connected = backend.connect(&target).await;
        }
        let isolate = connected.map_err(failed)?;
        backend.attached = Some(AttachedProgram { process, port, isolate: Arc::clone(&isolate) });
        module_announcements::announce_modules(&backend.session, &isolate).await;
        connection::follow_console(&isolate).await.map_err(failed)?;
        Ok(StartedBackend { backend, program: None, unknown: attach.settings.unknown })
    }

    async fn advance(&mut self) {
        tokio::select! {
            biased; // what has been sent, before what is new
            Some(event) = self.queue.recv() => self.route_event(event),
            Some(opened) = next_inspector(&mut self.inspectors) => self.add_process(opened),
            Some(_) = self.connecting.join_next() => {}
            () = self.session.isolate_removed.notified() => {}
        }
    }

    async fn begin_request(&mut self, request: IncomingRequest) {
        let session = Arc::clone(&self.session);
        match request.command.as_str() {
            "threads" => request.respond(&ThreadsResponse { threads: frames::list_threads(&self.session) }),
            "pause" => self.tasks.spawn(async move {
                answer_request(&session, request).await;
                resume::repeat_pauses(&session).await;
            }),
            "configurationDone" => {
                let configuring = Arc::clone(&session);
                let configured = self.requests.request(async move { answer_request(&configuring, request).await });
                self.tasks.spawn(async move {
                    configured.await;
                    let isolates = session.isolates();
                    join_all(isolates.iter().map(|isolate| connection::repeat_start(&session, isolate))).await;
                });
            }
            command if is_concurrent(command) => {
                self.tasks.spawn(async move { answer_request(&session, request).await });
            }
            // Without room it is dropped, which refuses it.
            _ => drop(self.requests.add(async move { answer_in_lane(&session, request).await })),
        }
    }

    /// When the process of a launched program has exited, and all its other processes have; one that was attached to, when its
    /// connection has ended.
    fn has_ended(&self, is_running: bool) -> bool {
        !is_running && self.session.isolates().is_empty() && self.connecting.is_empty()
    }

    async fn close(&mut self) -> BackendEnd {
        match &self.attached {
            Some(attached) => attached.describe_end().await,
            None => BackendEnd { reason: "the program has ended".to_owned(), is_by_program: true },
        }
    }

    fn is_stopped(&self) -> bool {
        self.session.isolates().iter().any(|isolate| isolate.pause().is_some())
    }

    async fn release(&mut self, is_launched: bool) {
        let leaving = if is_launched { Leaving::Launched } else { Leaving::Attached };
        release::leave_processes(&self.session, leaving).await;
    }

    async fn terminate(&mut self) {
        release::leave_processes(&self.session, Leaving::Ended).await;
    }

    fn shown_output(&self, mut output: OutputEvent) -> Option<OutputEvent> {
        if output.category.as_deref() == Some("stderr") {
            output.output = without_inspector_lines(output.output);
        }
        Some(output).filter(|output| !output.output.is_empty())
    }
}

impl AttachedProgram {
    /// Why its connection has ended.
    async fn describe_end(&self) -> BackendEnd {
        let connection = &self.isolate.connection;
        let lost = connection.wait_closed().await;
        let is_by_program =
            connection.is_left() || self.is_page_closed().await || exits_after_close(self.process.as_ref()).await;
        BackendEnd { reason: format!("the connection to {} was lost: {lost}", self.isolate.name), is_by_program }
    }

    /// Whether it is a page that its browser has no longer.
    async fn is_page_closed(&self) -> bool {
        let IsolateHost::Document { frame } = &self.isolate.host else { return false };
        let listed = timeout(PAGES_TIMEOUT, list_targets(self.port)).await;
        matches!(listed, Ok(Ok(pages)) if pages.iter().all(|page| page.id != *frame))
    }
}

impl NodeBackend {
    fn new(dap: &DapServer, settings: &SourceSettings, binding: String, hook: Option<PathBuf>) -> NodeBackend {
        let (events, queue) = IsolateEvents::new();
        let SourceSettings { maps, skip, .. } = settings.clone();
        let session = Arc::new(NodeSession::new(dap.clone(), maps, skip, binding, hook));
        let tasks = SessionTasks::default();
        let requests = Lane::start(&tasks);
        NodeBackend {
            session,
            events,
            queue,
            inspectors: None,
            connecting: JoinSet::new(),
            requests,
            tasks,
            attached: None,
        }
    }

    async fn connect(&self, address: &InspectorAddress) -> Answer<Arc<Isolate>> {
        connection::connect_process(&self.session, address, &self.events, &self.tasks).await
    }

    async fn connect_opened(&self, opened: &OpenedInspector) -> Answer<Arc<Isolate>> {
        self.connect(&opened_address(opened)?).await
    }

    /// Hands an event to the lane of its isolate, which hands it to `engine_events`.
    fn route_event(&self, event: IsolateEvent) {
        let session = Arc::clone(&self.session);
        match event {
            IsolateEvent::Sent { isolate, event } => {
                // It has ended since.
                let Ok(isolate) = self.session.isolate(isolate) else { return };
                let own = Arc::clone(&isolate);
                let added = isolate.lane.add(async move {
                    if let Err(failure) = engine_events::handle_engine_event(&session, &own, event).await {
                        // An isolate that ends meanwhile is no failure.
                        tracing::debug!("an event of {} could not be handled: {failure}", own.name);
                    }
                });
                close_when_full(&isolate.connection, added);
            }
            IsolateEvent::ChildStarted(child) => {
                let connection = Arc::clone(&child.connection);
                close_when_full(&connection, connection::add_child(&self.session, child, &self.tasks));
            }
            IsolateEvent::Ended { isolate } => {
                let Ok(isolate) = self.session.isolate(isolate) else { return };
                let id = isolate.id;
                let ending = isolate.lane.add(async move {
                    connection::report_thread(&session, "exited", id).await;
                    session.remove_isolate(id);
                });
                if ending.is_err() {
                    self.session.remove_isolate(id);
                }
            }
        }
    }

    fn add_process(&mut self, opened: OpenedInspector) {
        let (session, events, tasks) = (Arc::clone(&self.session), self.events.clone(), self.tasks.clone());
        self.connecting.spawn(async move {
            let connected = match opened_address(&opened) {
                Ok(address) => connection::connect_process(&session, &address, &events, &tasks).await,
                Err(failure) => Err(failure),
            };
            match connected {
                Ok(isolate) => {
                    let child = ProcessEvent {
                        name: isolate.name.clone(),
                        system_process_id: Some(i64::from(opened.pid)),
                        is_child: Some(true),
                    };
                    // Fails when the client has gone, which ends the session.
                    let _ = session.dap.send_event(&child).await;
                    connection::report_thread(&session, "started", isolate.id).await;
                    // Fails when it has ended.
                    let _ = connection::request_start(&session, &isolate).await;
                    tasks.spawn(async move { connection::repeat_start(&session, &isolate).await });
                }
                Err(failure) => {
                    let name = process_name(&opened.program, opened.pid);
                    session.print("important", &format!("{name} is not debugged: {failure}\n")).await;
                }
            }
        });
    }
}

/// Answers a request: one about a thread, or a frame, in the lane of its isolate, which is not waited for.
async fn answer_in_lane(session: &Arc<NodeSession>, request: IncomingRequest) {
    let RequestPlace { thread_id, frame_id } = request.read_arguments().unwrap_or_default();
    let of_frame = || frame_id.and_then(|frame| session.isolate_of_frame(frame));
    let isolate = thread_id.or_else(of_frame).and_then(|id| session.isolate(id).ok());
    let Some(isolate) = isolate else { return answer_request(session, request).await };
    let own = Arc::clone(session);
    // Without room it is dropped, which refuses it.
    let _ = isolate.lane.add(async move { answer_request(&own, request).await });
}

/// Where a process of the program listens: the port must be one of our user.
fn opened_address(opened: &OpenedInspector) -> Answer<InspectorAddress> {
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
