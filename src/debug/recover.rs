//! What becomes of the sessions of a supervisor that has ended, and of one whose program has been replaced.
//!
//! ```text
//!                          ┌─ it listens ──▶ attached to again: same id, same breakpoints ──┐ cannot be
//!  left in the ledger ─────┤                                                                ▼
//!                          └─ launched, or got into by pid ─────────────────▶ lost: readable, with the reason
//!  whatever carries a mark of theirs is ended first
//! ```
//! It makes no difference whether the supervisor died or was ended: what can be attached to again is, as the window is
//! found again. A program that was launched ends with its supervisor in any case, and a session that was stopped does not
//! come back. Must not know windows: who ties sessions to one is asked what they are to be attached to now.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tracing::{info, warn};

use super::hosted::{self, Hosted, Request};
use super::ledger::{Entry, Left};
use super::record::Record;
use super::session::Session;
use super::sessions::Sessions;
use crate::adapters::{ADAPTERS, Address, DebugTargetKind};
use crate::error::{Error, Result};
use crate::process;
use crate::sync::lock;

/// What a process that was left behind gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// For attaching again; everybody who asks for sessions waits for it.
const AGAIN: Duration = Duration::from_secs(60);
/// For what listens to see that its last debugger has died.
const SEES: Duration = Duration::from_secs(10);
const LOOKS: Duration = Duration::from_millis(20);
/// And for what it does about that, which nothing tells: debugpy needs 50 ms for both, and once it was connected to before,
/// it takes no further connection.
const NOTICES: Duration = Duration::from_millis(500);

/// What a session is to be attached to now; the error says why to nothing.
pub type Now<'a> = &'a (dyn Fn(Request) -> BoxFuture<'static, Result<Request>> + Send + Sync);

impl Sessions {
    /// Takes over what an earlier supervisor has left.
    pub async fn recover(&self, now: Now<'_>) {
        let left = std::mem::take(&mut *lock(&self.0.left));
        join_all(left.sessions.iter().map(|entry| self.recover_one(entry, &left, now))).await;
        let alive: BTreeSet<String> = process::marked().unwrap_or_default().into_keys().collect();
        self.0.ledger.forget_released(|mark| alive.contains(mark));
        self.0.recovered.send_replace(true);
    }

    /// Resolves when nothing is left to be taken over.
    pub async fn recovered(&self) {
        let mut recovered = self.0.recovered.subscribe();
        // The sender lives as long as this does.
        let _ = recovered.wait_for(|recovered| *recovered).await;
    }

    async fn recover_one(&self, entry: &Entry, left: &Left, now: Now<'_>) {
        let ended = if left.rebooted { Ok(Vec::new()) } else { process::sweep(&entry.mark, GRACE).await };
        match &ended {
            Ok(ended) if ended.is_empty() => {}
            Ok(ended) => info!("{}: ended what was left of it: {ended:?}", entry.id),
            Err(error) => warn!("{}: cannot end what is left of it: {error}", entry.id),
        }
        if entry.listed {
            let count = ended.as_ref().map_or(0, Vec::len);
            match self.attach_again(entry, left.rebooted, now).await {
                Ok(hosted) => {
                    hosted.session.record().notice(
                        "reattached",
                        format!("{} was attached to again, with its breakpoints, by a new supervisor", entry.id),
                    );
                }
                Err(why) => self.bury(entry, count, why),
            }
        }
        self.0.ledger.settle(&entry.mark);
    }

    /// `Err(None)`: it is none that can be.
    async fn attach_again(&self, entry: &Entry, rebooted: bool, now: Now<'_>) -> Result<Hosted, Option<Error>> {
        if rebooted {
            return Err(Some(Error::other("the machine has been started anew")));
        }
        if !entry.request.wanted.is_listener() {
            return Err(None);
        }
        let request = now(entry.request.clone()).await?;
        if let DebugTargetKind::Listener(Address { port, .. }) = request.wanted.kind {
            let seen = async {
                while process::has_dead_connections(port).unwrap_or_default() {
                    tokio::time::sleep(LOOKS).await;
                }
            };
            let _ = tokio::time::timeout(SEES, seen).await;
        }
        tokio::time::sleep(NOTICES).await;
        Ok(self.begin_again(entry.id.clone(), request, Arc::default()).await?)
    }

    /// Begins what had this id already, at once or not at all.
    async fn begin_again(&self, id: String, request: Request, record: Arc<Record>) -> Result<Hosted> {
        let ready = self.ready(id, request, Arc::clone(&self.0.book), record)?;
        self.carry_out(ready, true, AGAIN).await
    }

    fn bury(&self, entry: &Entry, processes: usize, why: Option<Error>) {
        let mut reason = format!("lost: {}", entry.loss);
        if processes > 0 {
            let plural = if processes == 1 { "" } else { "es" };
            reason.push_str(&format!("; {processes} process{plural} of it had been left, and were ended"));
        }
        if let Some(error) = why {
            let causes = error.causes().iter().map(|cause| format!(": {cause}")).collect::<String>();
            reason.push_str(&format!(" ({}{causes})", error.doing));
        }
        self.list_lost(&entry.id, &entry.adapter, entry.request.clone(), entry.started_at, (reason, Arc::default()));
    }

    fn list_lost(&self, id: &str, adapter: &str, request: Request, at: u64, (reason, record): (String, Arc<Record>)) {
        // An adapter that this program does not know was another version's.
        let Some(row) = ADAPTERS.iter().find(|row| row.name == adapter) else { return };
        warn!("{id} ({}): {reason}", request.name);
        record.happened("lost", reason.clone());
        let session = Session::lost(request.name.clone(), reason, Arc::clone(&self.0.book), record);
        self.list(hosted::lost(id.to_owned(), request, row, session, at));
    }

    /// A session goes on with another program: same id, same record. What can be said of it besides is told with its next
    /// answer. When it cannot be attached to, the session has ended, and says why.
    pub async fn renew(&self, old: &Hosted, request: Request, why: &str) {
        // What is left of it; its program is not ours to end.
        old.stop(true).await;
        let record = Arc::clone(old.session.record());
        match self.begin_again(old.id.clone(), request.clone(), Arc::clone(&record)).await {
            Ok(_) => {
                record.notice("reattached", format!("{} was attached to again, with its breakpoints: {why}", old.id))
            }
            Err(error) => {
                let causes = error.causes().iter().map(|cause| format!(": {cause}")).collect::<String>();
                let reason = format!("{why}, and it could not be attached to again: {}{causes}", error.doing);
                self.list_lost(&old.id, old.adapter.name, request, old.started_at, (reason, record));
            }
        }
    }
}
