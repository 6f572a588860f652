//! Recovers the sessions of a supervisor that has exited, and reattaches one whose program has been replaced.
//!
//! ```text
//!                          ┌─ its host runs ──▶ rejoined: nothing has happened to it
//!  stored session ─────────┼─ its host runs, and does not answer ──▶ disconnected, until it does
//!                          └─ no host: processes with its launch id are ended
//!                                  ├─ it listens ──▶ attached to again, in a new host ──────┐ fails
//!                                  └─ launched, or attached to by pid ──────────────▶ lost: readable, with the reason
//! ```
//! It makes no difference whether the supervisor was killed or stopped. A session that was stopped is not recovered. Does not
//! depend on windows: the caller resolves what a session that follows one is to be attached to now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tokio::time::timeout;
use tracing::{info, warn};

use super::managed_session::{ManagedSession, lost_session};
use super::registry::SessionRegistry;
use super::session_request::SessionRequest;
use super::start::SessionListing;
use super::store::{LeftoverSessions, StoredSession};
use crate::adapters::{self, ADAPTERS, Address, DebugTargetKind};
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::event_log::EventLog;
use crate::timeline::event_now;
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// The time between SIGTERM and SIGKILL for a process that was left running.
const GRACE: Duration = Duration::from_millis(500);
/// For reattaching one session. Operations on sessions wait for it.
const REATTACH_TIMEOUT: Duration = Duration::from_secs(60);
/// For a listener to notice that its last debugger has exited.
const DISCONNECT_SEEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often that is looked at: the pause doubles from the first to the last, since nothing reports it.
const DISCONNECT_POLLS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// For a listener to accept connections again, which nothing reports: debugpy needs 50 ms for both, and never accepts again
/// if it is connected to before.
const LISTEN_AGAIN_DELAY: Duration = Duration::from_millis(500);

/// Resolves what a session is to be attached to now. Errors: there is nothing, and why.
pub type ResolveRequest<'a> = &'a (dyn Fn(SessionRequest) -> BoxFuture<'static, Result<SessionRequest>> + Send + Sync);
/// Starts and finds the processes that host sessions.
pub trait SessionHosts: Send + Sync {
    /// Joins a session of an earlier supervisor again, in the process that hosts it.
    fn rejoin(&self, stored: StoredSession) -> BoxFuture<'_, HostReunion>;

    /// Attaches a session that was lost again, under its id, in a new process. Its next result says so, with `why`, if that is given.
    fn attach_again<'a>(
        &'a self,
        lost: &'a StoredSession,
        request: SessionRequest,
        why: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>>;
}

/// What has come of the host of a stored session.
pub enum HostReunion {
    /// The session goes on in it.
    Joined,
    /// It has ended, or another process has its place.
    Gone,
    /// It runs, and does not answer.
    Silent(Error),
}

impl SessionRegistry {
    /// Recovers the sessions of an earlier supervisor.
    pub async fn recover_sessions(&self, now: ResolveRequest<'_>, hosts: &Arc<dyn SessionHosts>) {
        let left = std::mem::take(&mut *lock(&self.0.leftover));
        join_all(left.sessions.iter().map(|entry| self.recover_session(entry, &left, now, hosts))).await;
        let grouped = tokio::task::spawn_blocking(tether_process::group_by_launch_id).await;
        let grouped = grouped.ok().and_then(Result::ok).unwrap_or_default();
        let running: BTreeSet<String> = grouped.into_keys().collect();
        self.0.store.forget_released(|launch_id| running.contains(launch_id));
        self.0.unrecovered.send_modify(BTreeMap::clear);
    }

    /// Waits until the session with this id has been recovered; without one, until all have been.
    pub async fn wait_until_recovered(&self, id: Option<&str>) {
        let mut unrecovered = self.0.unrecovered.subscribe();
        // The sender exists as long as `self`.
        let _ = unrecovered.wait_for(|ids| id.map_or(ids.is_empty(), |id| !ids.contains_key(id))).await;
    }

    async fn recover_session(
        &self,
        entry: &StoredSession,
        left: &LeftoverSessions,
        now: ResolveRequest<'_>,
        hosts: &Arc<dyn SessionHosts>,
    ) {
        let is_hosted = entry.host.is_some() && (!left.rebooted || left.running.contains(&entry.launch_id));
        let reunion = if is_hosted { hosts.rejoin(entry.clone()).await } else { HostReunion::Gone };
        if let HostReunion::Silent(error) = &reunion {
            self.follow_silent_host(entry.clone(), error, Arc::clone(hosts));
        }
        if !matches!(reunion, HostReunion::Gone) {
            return self.0.unrecovered.send_modify(|ids| ids.retain(|id, _| *id != entry.id));
        }
        if entry.ended {
            self.0.store.remove_session(&entry.launch_id);
            return self.0.unrecovered.send_modify(|ids| ids.retain(|id, _| *id != entry.id));
        }
        let count = if left.rebooted { 0 } else { self.end_leftovers(entry).await };
        if entry.listed
            && let Err(why) = self.reattach_stored(entry, left.rebooted, now, hosts.as_ref()).await
        {
            self.report_lost(entry, count, why);
        }
        // One that follows the window was stored anew, attached or not.
        if !entry.listed || entry.request.follows.is_none() {
            self.0.store.remove_session(&entry.launch_id);
        }
        self.0.unrecovered.send_modify(|ids| ids.retain(|id, _| *id != entry.id));
    }

    /// Lists a session whose host does not answer as disconnected, until that does, or ends. Nothing of it is ended before.
    fn follow_silent_host(&self, entry: StoredSession, error: &Error, hosts: Arc<dyn SessionHosts>) {
        self.insert_lost(entry.clone(), error.to_string(), Arc::default());
        let sessions = self.clone();
        self.run_task(async move {
            let reunion = loop {
                match hosts.rejoin(entry.clone()).await {
                    // It was given its time to answer.
                    HostReunion::Silent(_) => {}
                    reunion => break reunion,
                }
            };
            match reunion {
                HostReunion::Joined => sessions.remove_session(&entry.id),
                _ => {
                    sessions.lose_hosted(&entry, "lost: its session host has ended".to_owned()).await;
                    sessions.0.store.remove_session(&entry.launch_id);
                }
            }
            sessions.report_change();
        });
    }

    /// `Err(None)`: such a session cannot be reattached.
    async fn reattach_stored(
        &self,
        entry: &StoredSession,
        rebooted: bool,
        now: ResolveRequest<'_>,
        hosts: &dyn SessionHosts,
    ) -> Result<(), Option<Error>> {
        if rebooted {
            return Err(Some(Error::other("the machine has been restarted")));
        }
        if !entry.request.debug_target.is_listener() {
            return Err(None);
        }
        let mut request = now(entry.request.clone()).await?;
        // What the caller has named was another listener: a local one is attached to only if it is our user's.
        request.debug_target.is_host_named = false;
        if let DebugTargetKind::Listener(Address { port, .. }) = request.debug_target.kind {
            let seen = wait_until_disconnected(move || tether_process::has_dead_connections(port).unwrap_or_default());
            let _ = timeout(DISCONNECT_SEEN_TIMEOUT, seen).await;
        }
        tokio::time::sleep(LISTEN_AGAIN_DELAY).await;
        let entry = StoredSession { request: request.without_environment(), ..entry.clone() };
        Ok(attach_in_host(hosts, entry, request, Some("its session host had ended")).await?)
    }

    /// Starts a session with an id that was given before.
    async fn start_with_id(&self, id: &str, request: SessionRequest, log: Arc<EventLog>) -> Result<ManagedSession> {
        let prepared = self.prepare_session(id.to_owned(), request, self.0.breakpoints.clone(), log)?;
        self.start_prepared(prepared, SessionListing::AtOnce, REATTACH_TIMEOUT).await
    }

    fn report_lost(&self, entry: &StoredSession, processes: usize, why: Option<Error>) {
        let mut reason = format!("lost: {}", entry.loss);
        if processes > 0 {
            let plural = if processes == 1 { "" } else { "es" };
            reason.push_str(&format!("; {processes} process{plural} of it had been left, and were ended"));
        }
        if let Some(error) = why {
            reason.push_str(&format!(" ({})", join_causes(&error)));
        }
        self.lose_session(entry.clone(), reason, Arc::default());
    }

    /// Ends what is left of what was launched for a session, and returns how many processes that were.
    async fn end_leftovers(&self, entry: &StoredSession) -> usize {
        let mut count = 0_usize;
        for launch_id in launch_ids_of(entry).await {
            if self.0.store.is_released(&launch_id) {
                continue;
            }
            match tether_process::sweep_launch(&launch_id, None, GRACE).await {
                Ok(ended) if ended.is_empty() => {}
                Ok(ended) => {
                    count = count.saturating_add(ended.len());
                    info!("{}: ended what was left of it: {ended:?}", entry.id);
                }
                Err(error) => warn!("{}: cannot end what is left of it: {error}", entry.id),
            }
            adapters::remove_scratch_folders(&launch_id);
        }
        count
    }

    /// A session whose host has ended before it: ends what is left of what was launched for it, and lists it as lost.
    pub async fn lose_hosted(&self, entry: &StoredSession, reason: String) {
        self.end_leftovers(entry).await;
        self.lose_session(entry.clone(), reason, Arc::default());
    }

    /// Lists a session that has ended, and records its end.
    fn lose_session(&self, entry: StoredSession, reason: String, event_log: Arc<EventLog>) {
        let ended = event_now(TimelineKind::SessionEnded, reason.clone());
        self.0.timeline.record(TimelineEvent { session_id: Some(entry.id.clone()), failed: Some(true), ..ended });
        self.insert_lost(entry, reason, event_log);
    }

    /// Lists a session that cannot be reached. One that follows the window stays stored.
    fn insert_lost(&self, entry: StoredSession, reason: String, event_log: Arc<EventLog>) {
        // An unknown adapter was stored by another version of this program.
        let Some(row) = ADAPTERS.iter().find(|row| row.name == entry.adapter) else {
            return self.0.store.remove_session(&entry.launch_id);
        };
        let StoredSession { id, request, launch_id, started_at, .. } = entry.clone();
        warn!("{id} ({}): {reason}", request.name);
        if request.follows.is_some() {
            self.0.store.keep_session(entry);
        }
        event_log.push_event("lost", reason.clone());
        let session = DebugSession::open_lost(request.name.clone(), reason, self.0.breakpoints.clone(), event_log);
        self.insert_session(lost_session(id, request, row, session, (started_at, launch_id)));
    }

    /// Attaches a session to another program: same id, same log. Its breakpoints are sent; whether they are bound is for the
    /// caller to wait for. `None`: it cannot be attached to, and the session has ended, with `why` and the reason.
    pub async fn reattach(
        &self,
        old: &ManagedSession,
        request: Result<SessionRequest>,
        why: &str,
    ) -> Option<ManagedSession> {
        // Ends what is left of the old one, without its program.
        old.stop(Some(true)).await;
        let log = Arc::clone(old.session.event_log());
        let stored = request.as_ref().unwrap_or(&old.request).without_environment();
        let started = async { self.start_with_id(&old.id, request?, Arc::clone(&log)).await }.await;
        match started {
            Ok(managed) => Some(managed),
            Err(error) => {
                self.lose_again(old, stored, why, &error);
                None
            }
        }
    }

    /// As [`SessionRegistry::reattach`], for a session that was lost: it gets a host of its own, and is not listed here any more.
    pub async fn reattach_lost(
        &self,
        lost: &ManagedSession,
        request: Result<SessionRequest>,
        why: &str,
        hosts: &dyn SessionHosts,
    ) {
        let stored = request.as_ref().unwrap_or(&lost.request).without_environment();
        let entry = stored_as(lost, stored.clone(), String::new());
        match async { attach_in_host(hosts, entry, request?, None).await }.await {
            Ok(()) => self.remove_session(&lost.id),
            Err(error) => self.lose_again(lost, stored, why, &error),
        }
    }

    fn lose_again(&self, old: &ManagedSession, request: SessionRequest, why: &str, error: &Error) {
        let reason = format!("{why}, and it could not be attached to again: {}", join_causes(error));
        self.lose_session(stored_as(old, request, reason.clone()), reason, Arc::clone(old.session.event_log()));
    }
}

/// Attaches a session again, under its id, in a host of its own.
async fn attach_in_host(
    hosts: &dyn SessionHosts,
    lost: StoredSession,
    request: SessionRequest,
    why: Option<&str>,
) -> Result<()> {
    match timeout(REATTACH_TIMEOUT, hosts.attach_again(&lost, request, why)).await {
        Ok(attached) => attached,
        Err(_) => {
            let error = Error::new(ErrorKind::TimedOut, format!("cannot attach {} again", lost.id));
            Err(error.because(format!("it was not attached within {REATTACH_TIMEOUT:?}")))
        }
    }
}

/// A session as it is stored, to be attached to again.
pub(super) fn stored_as(session: &ManagedSession, request: SessionRequest, loss: String) -> StoredSession {
    StoredSession {
        id: session.id.clone(),
        adapter: session.adapter.name.to_owned(),
        request,
        launch_id: session.launch_id.clone(),
        started_at: session.started_at,
        listed: true,
        loss,
        ended: false,
        host: None,
    }
}

/// The launch ids of the processes of a session: its own, and in a host those of its further programs.
async fn launch_ids_of(entry: &StoredSession) -> Vec<String> {
    let further = format!("{}-", entry.launch_id);
    let grouped = tokio::task::spawn_blocking(tether_process::group_by_launch_id).await;
    let running = grouped.ok().and_then(Result::ok).unwrap_or_default().into_keys();
    std::iter::once(entry.launch_id.clone()).chain(running.filter(|id| id.starts_with(&further))).collect()
}

/// Resolves when `is_connected` is false. It reads `/proc`, and so runs on a thread of its own.
async fn wait_until_disconnected(is_connected: impl Fn() -> bool + Clone + Send + 'static) {
    let (mut pause, longest) = DISCONNECT_POLLS;
    while tokio::task::spawn_blocking(is_connected.clone()).await.unwrap_or_default() {
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(longest);
    }
}

pub(super) fn join_causes(error: &Error) -> String {
    std::iter::once(error.doing.clone()).chain(error.causes()).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::ThreadId;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_looked_at_off_the_runtime_and_less_often_the_longer_they_stay() {
        let (looks, threads) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(BTreeSet::new())));
        let name = |id: ThreadId| format!("{id:?}");
        let (count, seen) = (Arc::clone(&looks), Arc::clone(&threads));
        let is_connected = move || {
            lock(&seen).insert(name(std::thread::current().id()));
            count.fetch_add(1, Ordering::Relaxed);
            true
        };
        let waited = timeout(DISCONNECT_SEEN_TIMEOUT, wait_until_disconnected(is_connected)).await;
        assert!(waited.is_err(), "it stays connected");
        let looks = looks.load(Ordering::Relaxed);
        assert!((5..40).contains(&looks), "{looks} looks in {DISCONNECT_SEEN_TIMEOUT:?}");
        assert!(!lock(&threads).contains(&name(std::thread::current().id())), "on a thread of the runtime");
        wait_until_disconnected(|| false).await;
    }
}
