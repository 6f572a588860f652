//! The backend for Node: how a program is launched or attached to, what its processes and isolates do, how it is let go.
//!
//! The loop waits for no program: what asks an isolate runs in its lane. Requests are answered in order, except those whose
//! order does not matter: these run concurrently.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use serde::Deserialize;
use tether_backend::request_failure::RequestFailure;
use tether_backend::requests::answer_request;
use tether_backend::{Answer, BackendEnd, DapBackend, LaunchedProgram, ServeContext, StartedBackend, serve_backend};
use tether_base::error::{Error, Result};
use tether_dap::types::{DapCapabilities, Fields, OutputEvent, ProcessEvent, ThreadsResponse};
use tether_dap::{DapConnection, DapServer, IncomingRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::attached_program::{AttachedProgram, InspectorConnector};
use super::connection;
use super::dap_requests::{capabilities, is_concurrent};
use super::inspector_queue::{ConnectionEvents, IsolateEvent, IsolateEvents};
use super::isolate::Isolate;
use super::lane::{Lane, LaneFull, SessionTasks};
use super::launch_arguments::{NodeAttach, NodeAttachPlace, NodeLaunch, SourceSettings};
use super::module_announcements::announcing_script;
use super::node_program::{LaunchedNode, OpenedInspectors, launch_program};
use super::opened_inspector::OpenedInspector;
use super::release::{self, Leaving};
use super::session::NodeSession;
use super::{engine_events, frames, resume};

const NO_ENTRY: &str = "it does not stop at its first line: the configuration names no file that runs first\n";
const RESTART_BY_PROCESS: &str =
    "`restart` is not honoured: what is started in the place of a process has another id. `port` names it\n";

/// Serves DAP on a connection until it ends.
pub fn serve_node(connection: DapConnection, context: ServeContext) -> BoxFuture<'static, ()> {
    serve_backend::<NodeBackend>(connection, context)
}

/// A Node program, or a page, that is debugged.
pub(crate) struct NodeBackend {
    connector: InspectorConnector,
    queue: mpsc::Receiver<IsolateEvent>,
    /// The other processes of a launched program.
    inspectors: Option<OpenedInspectors>,
    /// Processes of the program that are being connected to.
    connecting: JoinSet<()>,
    /// Requests that are answered in order.
    requests: Lane,
    attachment: Option<Attachment>,
}

/// What a session is attached to.
struct Attachment {
    attach: NodeAttach,
    program: AttachedProgram,
    /// Attaches to the program that is started in its place.
    again: JoinSet<Result<AttachedProgram>>,
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
        let isolate = backend.connect_opened(&first).await.map_err(failed)?;
        if first.pid != debuggee.process.pid() {
            // The program is not of Node itself, such as `node --watch`.
            announce_process(backend.session(), &isolate, first.pid).await;
        }
        match &launch.entry {
            Some(entry) if launch.stop_on_entry => backend.session().stop_at_entry(entry).await.map_err(failed)?,
            None if launch.stop_on_entry => backend.session().print("important", NO_ENTRY).await,
            _ => {}
        }
        let program = LaunchedProgram { name: first.name(), debuggee, output };
        Ok(StartedBackend { backend, program: Some(program), unknown: launch.settings.unknown })
    }

    async fn attach(dap: &DapServer, fields: &Fields, _: &str) -> Result<StartedBackend<NodeBackend>> {
        let mut attach = NodeAttach::from_fields(fields).map_err(|cause| Self::usage_error("attach", cause))?;
        let binding = random_name();
        let hook = Some(announcing_script(&binding));
        let unknown = attach.settings.unknown.clone();
        let mut backend = NodeBackend::new(dap, &attach.settings, binding, hook);
        let program = backend.connector.attach(&attach).await?;
        if matches!(attach.place, NodeAttachPlace::Process(_)) && attach.restart.take().is_some() {
            backend.session().print("important", RESTART_BY_PROCESS).await;
        }
        backend.attachment = Some(Attachment { attach, program, again: JoinSet::new() });
        Ok(StartedBackend { backend, program: None, unknown })
    }

    async fn advance(&mut self) {
        tokio::select! {
            biased; // what has been sent, before what is new
            Some(event) = self.queue.recv() => self.route_event(event),
            Some(opened) = next_inspector(&mut self.inspectors) => self.add_process(opened),
            Some(_) = self.connecting.join_next() => {}
            Some(attached) = next_attached(&mut self.attachment) => self.report_attached(attached),
            () = self.connector.session.isolate_removed.notified() => self.attach_again(),
        }
    }

    async fn begin_request(&mut self, request: IncomingRequest) {
        let session = Arc::clone(self.session());
        match request.command.as_str() {
            "threads" => {
                request.respond(&ThreadsResponse { threads: frames::list_threads(self.session()), unlisted: None });
            }
            "pause" => self.connector.tasks.spawn(async move {
                answer_request(&session, request).await;
                resume::repeat_pauses(&session).await;
            }),
            "configurationDone" => {
                let configuring = Arc::clone(&session);
                let configured = self.requests.request(async move { answer_request(&configuring, request).await });
                self.connector.tasks.spawn(async move {
                    configured.await;
                    let isolates = session.isolates();
                    join_all(isolates.iter().map(|isolate| connection::repeat_start(&session, isolate))).await;
                });
            }
            command if is_concurrent(command) => {
                self.connector.tasks.spawn(async move { answer_request(&session, request).await });
            }
            // Without room it is dropped, which refuses it.
            _ => drop(self.requests.add(async move { answer_in_lane(&session, request).await })),
        }
    }

    /// When the process of a launched program has exited, and all its other processes have; one that was attached to, when its
    /// connection has ended, and it is not attached to again.
    fn has_ended(&self, is_running: bool) -> bool {
        let is_awaited = self.attachment.as_ref().is_some_and(|it| it.attach.restart.is_some());
        !is_running && !is_awaited && self.session().isolates().is_empty() && self.connecting.is_empty()
    }

    async fn close(&mut self) -> BackendEnd {
        match &self.attachment {
            Some(attachment) => attachment.program.describe_end().await,
            None => BackendEnd { reason: "the program has ended".to_owned(), is_by_program: true },
        }
    }

    fn is_stopped(&self) -> bool {
        self.session().isolates().iter().any(|isolate| isolate.pause().is_some())
    }

    async fn release(&mut self, is_launched: bool) {
        let leaving = if is_launched { Leaving::Launched } else { Leaving::Attached };
        release::leave_processes(self.session(), leaving).await;
    }

    async fn terminate(&mut self) {
        release::leave_processes(self.session(), Leaving::Ended).await;
    }

    fn shown_output(&self, mut output: OutputEvent) -> Option<OutputEvent> {
        if output.category.as_deref() == Some("stderr") {
            output.output = without_inspector_lines(output.output);
        }
        Some(output).filter(|output| !output.output.is_empty())
    }
}

impl NodeBackend {
    fn new(dap: &DapServer, settings: &SourceSettings, binding: String, hook: Option<PathBuf>) -> NodeBackend {
        let (events, queue) = IsolateEvents::new();
        let SourceSettings { maps, skip, .. } = settings.clone();
        let session = Arc::new(NodeSession::new(dap.clone(), maps, skip, binding, hook));
        session.with_settings(|chosen| chosen.stops_at_failures = settings.stops_at_failures);
        let tasks = SessionTasks::default();
        let requests = Lane::start(&tasks);
        let connector = InspectorConnector { session, events, tasks };
        NodeBackend { connector, queue, inspectors: None, connecting: JoinSet::new(), requests, attachment: None }
    }

    fn session(&self) -> &Arc<NodeSession> {
        &self.connector.session
    }

    async fn connect_opened(&self, opened: &OpenedInspector) -> Answer<Arc<Isolate>> {
        self.connector.connect_opened(opened, &opened.address()?).await
    }

    /// Begins to attach to the program that is started in the place of one that has ended, if the configuration says so.
    fn attach_again(&mut self) {
        let has_ended = self.session().isolates().is_empty();
        let Some(attachment) = self.attachment.as_mut().filter(|it| has_ended && it.again.is_empty()) else { return };
        let Some(policy) = attachment.attach.restart else { return };
        let (connector, attach) = (self.connector.clone(), attachment.attach.clone());
        let name = attachment.program.name();
        let text = format!("{name} has ended: it is attached to again once it is started again (`restart`)\n");
        attachment.again.spawn(async move {
            connector.session.print("important", &text).await;
            connector.attach_again(&attach, policy).await
        });
    }

    fn report_attached(&mut self, attached: Result<AttachedProgram>) {
        let Some(attachment) = &mut self.attachment else { return };
        let text = match attached {
            Ok(program) => {
                attachment.program = program;
                format!("attached again to {}\n", attachment.program.name())
            }
            Err(error) => {
                attachment.attach.restart = None;
                format!("it is not attached to again: {error}\n")
            }
        };
        let session = Arc::clone(self.session());
        self.connector.tasks.spawn(async move { session.print("important", &text).await });
    }

    /// Hands an event to the lane of its isolate, which hands it to `engine_events`.
    fn route_event(&self, event: IsolateEvent) {
        let session = Arc::clone(self.session());
        match event {
            IsolateEvent::Sent { isolate, event } => {
                // It has ended since.
                let Ok(isolate) = self.session().isolate(isolate) else { return };
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
                close_when_full(&connection, connection::add_child(self.session(), child, &self.connector.tasks));
            }
            IsolateEvent::Ended { isolate } => {
                let Ok(isolate) = self.session().isolate(isolate) else { return };
                let id = isolate.id;
                let ending = isolate.lane.add(async move {
                    connection::report_thread(&session, "exited", id).await;
                    session.remove_isolate(id);
                });
                if ending.is_err() {
                    self.session().remove_isolate(id);
                }
            }
        }
    }

    fn add_process(&mut self, opened: OpenedInspector) {
        let connector = self.connector.clone();
        self.connecting.spawn(async move {
            let address = opened.address();
            if let Some(known) = address.as_ref().ok().and_then(|address| connector.find_process(address)) {
                // It was found by its port, and now announces itself: it waits once more.
                return connection::repeat_start(&connector.session, &known).await;
            }
            let connected = match address {
                Ok(address) => connector.connect_opened(&opened, &address).await,
                Err(failure) => Err(failure),
            };
            match connected {
                Ok(isolate) => {
                    announce_process(&connector.session, &isolate, opened.pid).await;
                    connector.start(&isolate).await;
                }
                Err(failure) => {
                    let name = opened.name();
                    connector.session.print("important", &format!("{name} is not debugged: {failure}\n")).await;
                }
            }
        });
    }
}

/// Tells the client that a process of the program is debugged.
async fn announce_process(session: &NodeSession, isolate: &Isolate, pid: u32) {
    let name = isolate.name.clone();
    let child = ProcessEvent { name, system_process_id: Some(i64::from(pid)), is_child: Some(true) };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&child).await;
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

/// The program that was attached to again.
async fn next_attached(attachment: &mut Option<Attachment>) -> Option<Result<AttachedProgram>> {
    // Cancelled with the session only.
    attachment.as_mut()?.again.join_next().await?.ok()
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
