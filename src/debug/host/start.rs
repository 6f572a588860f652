//! Beginning a session: found out, kept in the ledger, started, listed, and undone when nobody waits for it any more.
//!
//! Must not know what is asked of a session later.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt;

use super::managed_session::{self, ManagedSession, PreparedSession, SessionRequest};
use super::registry::SessionRegistry;
use super::store::StoredSession;
use crate::adapters::AdapterSearch;
use crate::debug::breakpoints::BreakpointStore;
use crate::debug::session::event_log::EventLog;
use crate::debug::session::snapshot::RunState;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long a session may take to begin: Delve compiles first.
pub(in crate::debug) const START_TIMEOUT: Duration = Duration::from_secs(200);

impl SessionRegistry {
    /// Finds out how a session begins. Errors: nobody debugs this, or who does is not there.
    pub(in crate::debug) fn prepare_session(
        &self,
        id: String,
        request: SessionRequest,
        book: Arc<Mutex<BreakpointStore>>,
        record: Arc<EventLog>,
    ) -> Result<PreparedSession> {
        let mark = format!("{}-{id}-{:08x}", self.0.mark, random_suffix());
        let (row, found) =
            managed_session::locate_adapter(&request, &AdapterSearch::for_workspace(&self.0.workspace)?)?;
        let begin = (row.plan)(&found, &request.debug_target)?;
        Ok(PreparedSession { id, request, row, begin, mark, book, record })
    }

    /// Ends one for its user, as [`Hosted::stop`] does: it does not come back, whatever happens to us.
    pub async fn stop_session(&self, hosted: &ManagedSession, detach: bool) -> RunState {
        let state = hosted.stop(detach).await;
        self.0.ledger.record_stop(&hosted.mark, hosted.has_released_program()).await;
        state
    }

    /// Puts it into the list, in the place of one that had its id.
    pub(in crate::debug) fn insert_session(&self, hosted: ManagedSession) {
        let mut table = lock(&self.0.table);
        match table.hosted.iter_mut().find(|it| it.id == hosted.id) {
            Some(before) => *before = hosted,
            None => table.hosted.push(hosted),
        }
        drop(table);
        self.0.changed.send_modify(|count| *count += 1);
    }

    pub(in crate::debug) async fn start_prepared(
        &self,
        ready: PreparedSession,
        listed: bool,
        within: Duration,
    ) -> Result<ManagedSession> {
        let (entry, mark) = (StoredSession::from_prepared(&ready, listed), ready.mark.clone());
        // Kept before anything of it runs, or in the same moment: what we start is never unknown to the next supervisor.
        let (begun, kept) = tokio::join!(managed_session::start_adapter(ready), self.0.ledger.add_session(entry));
        let (hosted, life) = begun?;
        if listed {
            self.insert_session(hosted.clone());
        }
        let (changed, mut seen) = (self.0.changed.clone(), hosted.session.watch());
        let told = async move {
            while seen.changed().await.is_ok() {
                changed.send_modify(|count| *count += 1);
            }
        };
        let (changed, ledger, ended) = (self.0.changed.clone(), Arc::clone(&self.0.ledger), hosted.clone());
        let life = async move {
            tokio::select! {() = life => {} () = async {told.await; std::future::pending().await} => {}}
            if ended.has_released_program() {
                ledger.add_released(&mark);
            }
            drop(kept);
            changed.send_modify(|count| *count += 1);
        };
        // The receiver lives as long as the supervisor.
        let _ = self.0.tasks.send(life.boxed());
        let mut guard = UndoStartGuard { sessions: self, hosted: Some(hosted.clone()) };
        let waited = hosted.session.wait_for_start(within).await;
        if waited.state == RunState::Starting {
            let within = humantime::format_duration(within);
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("{} has not begun within {within}", hosted.request.name),
            ));
        }
        guard.hosted = None;
        if waited.state == RunState::Disconnected {
            hosted.wait_until_ended().await;
            lock(&self.0.table).hosted.retain(|it| it.id != hosted.id);
            return Err(managed_session::start_error(&hosted));
        }
        Ok(hosted)
    }
}

/// A start whose asker has gone away in the middle is undone.
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
    // Only collisions of marks would suffer from a failure; the id is in the mark as well.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes)
}
