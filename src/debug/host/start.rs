//! Starts a session: locate its adapter, store it, start it, list it; undone when the caller is cancelled.
//!
//! Does not depend on later operations on the session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;

use super::managed_session::{
    ManagedSession, PreparedSession, SessionRequest, locate_adapter, start_adapter, start_error,
};
use super::registry::SessionRegistry;
use super::store::StoredSession;
use crate::adapters::AdapterSearch;
use crate::debug::breakpoints::{BreakpointConditions, BreakpointStore};
use crate::debug::session::event_log::EventLog;
use crate::debug::session::snapshot::RunState;
use crate::error::{Error, ErrorKind, Result};

/// How long a session may take to start: Delve compiles first.
const START_TIMEOUT: Duration = Duration::from_secs(200);

impl SessionRegistry {
    /// Starts a session, and waits until its program runs, has stopped or has ended. Errors: it cannot be started.
    pub async fn start_session(&self, request: SessionRequest) -> Result<ManagedSession> {
        self.prepare_and_start(request, self.0.breakpoints.clone(), true).await
    }

    /// Starts an unlisted session with a single breakpoint.
    pub async fn start_probe(&self, request: SessionRequest, file: &Path, line: u32) -> Result<ProbeSession> {
        let breakpoints = BreakpointStore::in_memory();
        breakpoints.set_line(&self.0.workspace.join(file), line, BreakpointConditions::default()).await?;
        let hosted = self.prepare_and_start(request, breakpoints, false).await?;
        Ok(ProbeSession { sessions: self.clone(), hosted })
    }

    async fn prepare_and_start(
        &self,
        request: SessionRequest,
        breakpoints: BreakpointStore,
        listed: bool,
    ) -> Result<ManagedSession> {
        let prepared = self.prepare_session(self.next_id(), request, breakpoints, Arc::default())?;
        self.start_prepared(prepared, listed, START_TIMEOUT).await
    }

    /// Finds out how a session is started. Errors: no adapter debugs this, or it is not installed.
    pub(in crate::debug) fn prepare_session(
        &self,
        id: String,
        request: SessionRequest,
        breakpoints: BreakpointStore,
        event_log: Arc<EventLog>,
    ) -> Result<PreparedSession> {
        let launch_id = format!("{}-{id}-{:08x}", self.0.launch_id_prefix, random_suffix());
        let (row, found) = locate_adapter(&request, &AdapterSearch::for_workspace(&self.0.workspace)?)?;
        let plan = (row.plan)(&found, &request.debug_target)?;
        Ok(PreparedSession { id, request, row, plan, launch_id, breakpoints, event_log })
    }

    /// Ends a session at its user's request, as [`ManagedSession::stop`] does: no later supervisor recovers it.
    pub async fn stop_session(&self, hosted: &ManagedSession, detach: bool) -> RunState {
        let state = hosted.stop(detach).await;
        self.0.store.record_stop(&hosted.launch_id, hosted.has_released_program()).await;
        state
    }

    /// Starts a prepared session, and waits at most `within` until its program runs, has stopped or has ended.
    pub(in crate::debug) async fn start_prepared(
        &self,
        prepared: PreparedSession,
        listed: bool,
        within: Duration,
    ) -> Result<ManagedSession> {
        let (entry, launch_id) = (StoredSession::from_prepared(&prepared, listed), prepared.launch_id.clone());
        // Stored before its first process runs, or at the same time: the next supervisor knows everything that is started.
        let (started, stored) = tokio::join!(start_adapter(prepared), self.0.store.add_session(entry));
        let (hosted, driver) = started?;
        if listed {
            self.insert_session(hosted.clone());
        }
        let (changed, store, session) = (self.0.changed.clone(), Arc::clone(&self.0.store), hosted.clone());
        let mut snapshots = hosted.session.watch();
        let lifetime = async move {
            tokio::pin!(driver);
            loop {
                tokio::select! {
                    () = &mut driver => break,
                    Ok(()) = snapshots.changed() => changed.send_modify(|count| *count += 1),
                }
            }
            if session.has_released_program() {
                store.add_released(&launch_id);
            }
            drop(stored);
            changed.send_modify(|count| *count += 1);
        };
        // The receiver exists as long as the supervisor.
        let _ = self.0.tasks.send(lifetime.boxed());
        let mut guard = UndoStartGuard { sessions: self, hosted: Some(hosted.clone()) };
        let waited = hosted.session.wait_for_start(within).await;
        if waited.state == RunState::Starting {
            let within = humantime::format_duration(within);
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("{} has not started within {within}", hosted.request.name),
            ));
        }
        guard.hosted = None;
        if waited.state == RunState::Disconnected {
            hosted.wait_until_ended().await;
            self.remove_session(&hosted.id);
            return Err(start_error(&hosted));
        }
        Ok(hosted)
    }

    /// Ends a session without waiting for it.
    pub fn undo_start(&self, session: &ManagedSession) {
        let session = session.clone();
        let ending = async move {
            session.stop(session.is_attached()).await;
        };
        let _ = self.0.tasks.send(ending.boxed());
    }
}

/// An unlisted session with a single breakpoint. Dropping it ends it.
pub struct ProbeSession {
    sessions: SessionRegistry,
    /// The session.
    pub hosted: ManagedSession,
}

impl ProbeSession {
    /// Ends it, and waits until nothing of it is left.
    pub async fn end(&self) {
        self.hosted.stop(false).await;
    }
}

impl Drop for ProbeSession {
    fn drop(&mut self) {
        self.sessions.undo_start(&self.hosted);
    }
}

/// Undoes a start whose caller is cancelled.
struct UndoStartGuard<'a> {
    sessions: &'a SessionRegistry,
    hosted: Option<ManagedSession>,
}

impl Drop for UndoStartGuard<'_> {
    fn drop(&mut self) {
        if let Some(hosted) = &self.hosted {
            self.sessions.undo_start(hosted);
        }
    }
}

fn random_suffix() -> u32 {
    let mut bytes = [0; 4];
    // A failure only makes collisions possible; the launch id has the session id as well.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes)
}
