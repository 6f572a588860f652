//! Beginning a session: found out, kept in the ledger, started, listed, and undone when nobody waits for it any more.
//!
//! Must not know what is asked of a session later.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt;

use super::breakpoints::Book;
use super::hosted::{self, Hosted, Ready, Request};
use super::ledger::Entry;
use super::published::State;
use super::record::Record;
use super::sessions::Sessions;
use crate::adapters::AdapterSearch;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long a session may take to begin: Delve compiles first.
pub(super) const STARTED: Duration = Duration::from_secs(200);

impl Sessions {
    /// Finds out how a session begins. Errors: nobody debugs this, or who does is not there.
    pub(super) fn ready(
        &self,
        id: String,
        request: Request,
        book: Arc<Mutex<Book>>,
        record: Arc<Record>,
    ) -> Result<Ready> {
        let mark = format!("{}-{id}-{:08x}", self.0.mark, random());
        let (row, found) = hosted::locate(&request, &AdapterSearch::for_workspace(&self.0.workspace)?)?;
        let begin = (row.plan)(&found, &request.wanted)?;
        Ok(Ready { id, request, row, begin, mark, book, record })
    }

    /// Ends one for its user, as [`Hosted::stop`] does: it does not come back, whatever happens to us.
    pub async fn stop(&self, hosted: &Hosted, detach: bool) -> State {
        let state = hosted.stop(detach).await;
        self.0.ledger.stopped(&hosted.mark, hosted.has_released()).await;
        state
    }

    /// Puts it into the list, in the place of one that had its id.
    pub(super) fn list(&self, hosted: Hosted) {
        let mut table = lock(&self.0.table);
        match table.hosted.iter_mut().find(|it| it.id == hosted.id) {
            Some(before) => *before = hosted,
            None => table.hosted.push(hosted),
        }
        drop(table);
        self.0.changed.send_modify(|count| *count += 1);
    }

    pub(super) async fn carry_out(&self, ready: Ready, listed: bool, within: Duration) -> Result<Hosted> {
        let (entry, mark) = (Entry::of(&ready, listed), ready.mark.clone());
        // Kept before anything of it runs, or in the same moment: what we start is never unknown to the next supervisor.
        let (begun, kept) = tokio::join!(hosted::begin(ready), self.0.ledger.begun(entry));
        let (hosted, life) = begun?;
        if listed {
            self.list(hosted.clone());
        }
        let (changed, mut seen) = (self.0.changed.clone(), hosted.session.watch());
        let told = async move {
            while seen.changed().await.is_ok() {
                changed.send_modify(|count| *count += 1);
            }
        };
        let (changed, ledger, ended) = (self.0.changed.clone(), Arc::clone(&self.0.ledger), hosted.clone());
        let life = async move {
            tokio::select! {
                () = life => {}
                () = async { told.await; std::future::pending().await } => {}
            }
            if ended.has_released() {
                ledger.release(&mark);
            }
            drop(kept);
            changed.send_modify(|count| *count += 1);
        };
        // The receiver lives as long as the supervisor.
        let _ = self.0.tasks.send(life.boxed());
        let mut guard = Abandoned { sessions: self, hosted: Some(hosted.clone()) };
        let waited = hosted.session.wait_for_start(within).await;
        if waited.state == State::Starting {
            let within = humantime::format_duration(within);
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("{} has not begun within {within}", hosted.request.name),
            ));
        }
        guard.hosted = None;
        if waited.state == State::Disconnected {
            hosted.gone().await;
            lock(&self.0.table).hosted.retain(|it| it.id != hosted.id);
            return Err(hosted::failed(&hosted));
        }
        Ok(hosted)
    }
}

/// A start whose asker has gone away in the middle is undone.
struct Abandoned<'a> {
    sessions: &'a Sessions,
    hosted: Option<Hosted>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(hosted) = &self.hosted {
            self.sessions.undo(hosted);
        }
    }
}

fn random() -> u32 {
    let mut bytes = [0; 4];
    // Only collisions of marks would suffer from a failure; the id is in the mark as well.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes)
}
