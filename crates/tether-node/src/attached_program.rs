//! A program, or a page, that is attached to: connecting to it, and again to the one that is started in its place.

use std::sync::Arc;
use std::time::Duration;

use tether_backend::request_failure::RequestFailure;
use tether_backend::{Answer, BackendEnd, exits_after_close};
use tether_base::error::Result;
use tether_base::sync::run_blocking;
use tether_cdp::list_targets;
use tether_process::Process;
use tokio::time::{sleep, timeout};

use super::attach_target::{attach_error, find_target, has_navigated};
use super::connection::{self, InspectorAddress};
use super::inspector_queue::IsolateEvents;
use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::lane::SessionTasks;
use super::launch_arguments::{NodeAttach, NodeAttachPlace};
use super::module_announcements;
use super::opened_inspector::OpenedInspector;
use super::restart_policy::RestartPolicy;
use super::session::NodeSession;

/// How long a browser may take to list its pages.
const PAGES_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a page is connected to that navigates meanwhile.
const PAGE_ATTEMPTS: usize = 5;

/// Connects the inspectors of one session.
#[derive(Clone)]
pub(crate) struct InspectorConnector {
    pub session: Arc<NodeSession>,
    pub events: IsolateEvents,
    pub tasks: SessionTasks,
}

/// A program, or a page, that was attached to.
pub(crate) struct AttachedProgram {
    /// Its process, or its browser's, where that is known.
    process: Option<Process>,
    port: u16,
    isolate: Arc<Isolate>,
}

impl InspectorConnector {
    /// Connects to an inspector.
    pub(crate) async fn connect(&self, address: &InspectorAddress) -> Answer<Arc<Isolate>> {
        connection::connect_process(&self.session, address, &self.events, &self.tasks).await
    }

    /// Connects to the inspector of a process of a launched program.
    pub(crate) async fn connect_opened(
        &self,
        opened: &OpenedInspector,
        address: &InspectorAddress,
    ) -> Answer<Arc<Isolate>> {
        let isolate = self.connect(address).await?;
        if opened.is_at_port {
            // The end of its main context is the end of its program: not every runtime says that it waits for us.
            connection::follow_console(&isolate).await?;
        }
        Ok(isolate)
    }

    /// The main thread of the process whose inspector is there, if it is connected.
    pub(crate) fn find_process(&self, address: &InspectorAddress) -> Option<Arc<Isolate>> {
        let is_there = |isolate: &Arc<Isolate>| {
            isolate.inspector.as_ref().is_some_and(|(port, path)| *port == address.port && *path == address.path)
        };
        self.session.isolates().into_iter().find(is_there)
    }

    /// Attaches. Errors: nothing listens there that may be debugged.
    pub(crate) async fn attach(&self, attach: &NodeAttach) -> Result<AttachedProgram> {
        let mut target = find_target(attach).await?;
        let port = target.port;
        let failed = |failure: RequestFailure| attach_error(attach, port, failure.0);
        let process = run_blocking(move || tether_process::find_listening_program("127.0.0.1", port)).await;
        let mut connected = self.connect(&target).await;
        for _ in 1..PAGE_ATTEMPTS {
            match &connected {
                Err(failure) if has_navigated(&target, failure) => {}
                _ => break,
            }
            target = find_target(attach).await?;
            connected = self.connect(&target).await;
        }
        let isolate = connected.map_err(failed)?;
        module_announcements::announce_modules(&self.session, &isolate).await;
        connection::follow_console(&isolate).await.map_err(failed)?;
        Ok(AttachedProgram { process, port, isolate })
    }

    /// Attaches again and again, until it succeeds. The new program has the breakpoints before it runs, if it waits for a
    /// debugger. Errors: the last attempt has failed.
    pub(crate) async fn attach_again(&self, attach: &NodeAttach, policy: RestartPolicy) -> Result<AttachedProgram> {
        let mut attach = attach.clone();
        if let NodeAttachPlace::Port { path, .. } = &mut attach.place {
            // Of the inspector that is gone.
            *path = None;
        }
        let mut failures = 0_u64;
        loop {
            sleep(policy.delay).await;
            match self.attach(&attach).await {
                Ok(attached) => {
                    self.start(&attached.isolate).await;
                    return Ok(attached);
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    if policy.attempts.is_some_and(|most| failures >= most) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reports a process that was connected while the session was active, and lets it run once the client has sent its
    /// breakpoints.
    pub(crate) async fn start(&self, isolate: &Arc<Isolate>) {
        connection::report_thread(&self.session, "started", isolate.id).await;
        // Fails when it has ended.
        let _ = connection::request_start(&self.session, isolate).await;
        let (session, isolate) = (Arc::clone(&self.session), Arc::clone(isolate));
        self.tasks.spawn(async move { connection::repeat_start(&session, &isolate).await });
    }
}

impl AttachedProgram {
    /// How it is called.
    pub(crate) fn name(&self) -> &str {
        &self.isolate.name
    }

    /// Why its connection has ended.
    pub(crate) async fn describe_end(&self) -> BackendEnd {
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
