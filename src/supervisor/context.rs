//! What all connections and handlers of one supervisor share.

use std::path::PathBuf;
use std::sync::Arc;

use tether_base::error::Result;
use tokio::sync::{Notify, watch};

use super::editors::Editors;
use super::hosted_sessions::{HostedSessions, ListedSession};
use super::launch_memory::LaunchMemory;
use super::paths::SupervisorPaths;
use super::window_follow::WindowFollowers;
use crate::debug::{SessionEntry, SessionRegistry, choose_session};
use crate::session_host::context::SessionContext;
use crate::tasks::task_runner::TaskQueue;
use crate::timeline::Timeline;
use crate::window::Window;

/// One per supervisor process.
pub(super) struct SupervisorContext {
    pub paths: SupervisorPaths,
    pub window: Window,
    /// The debug sessions in this process, and the breakpoints of the workspace.
    pub sessions: SessionRegistry,
    /// The same sessions, for the operations on them.
    pub here: SessionContext,
    /// The debug sessions in processes of their own.
    pub hosted: HostedSessions,
    /// The builds of the window, and the tasks of debug sessions.
    pub queue: Arc<TaskQueue>,
    pub launch_memory: LaunchMemory,
    pub followers: Arc<WindowFollowers>,
    pub editors: Editors,
    /// The number of open connections.
    pub connections: watch::Sender<usize>,
    /// The number of connected front ends that ask for a refresh after each save.
    pub save_refreshers: watch::Sender<usize>,
    /// The number of requests in progress.
    pub requests: watch::Sender<usize>,
    /// Where the program lay when it was started.
    pub program: PathBuf,
    /// Notified when the supervisor is to exit.
    pub shutdown: Notify,
}

impl SupervisorContext {
    /// What happens in the workspace.
    pub fn timeline(&self) -> &Timeline {
        self.sessions.timeline()
    }

    /// The queue of builds and tasks. Waits until those of an earlier supervisor, which carry the same launch id, have been
    /// searched for and stopped.
    pub async fn task_queue(&self) -> &Arc<TaskQueue> {
        self.window.wait_for_search().await;
        &self.queue
    }

    /// All sessions that are readable, here and in hosts.
    pub fn list_sessions(&self) -> Vec<ListedSession> {
        let mut all: Vec<ListedSession> = self.sessions.list_sessions().into_iter().map(ListedSession::Here).collect();
        // One whose host has ended is listed here before it is no longer listed there.
        let is_lost = |id: &str| all.iter().any(|it| it.id() == id);
        let hosted: Vec<_> = self.hosted.list_sessions().into_iter().filter(|it| !is_lost(&it.id)).collect();
        all.extend(hosted.into_iter().map(ListedSession::Hosted));
        // In the order of their start: `d10` comes after `d9`.
        all.sort_by(|a, b| (a.id().len(), a.id()).cmp(&(b.id().len(), b.id())));
        all
    }

    /// Those of them that have not ended.
    pub fn active_sessions(&self) -> Vec<ListedSession> {
        self.list_sessions().into_iter().filter(|it| !it.is_ended()).collect()
    }

    /// The session with that id; without one the only active session, or, if none is active, the one that ended last.
    pub fn find_session(&self, id: Option<&str>) -> Result<ListedSession> {
        // Without a look at all the others. One whose host has ended has ended, too.
        if let Some(hosted) = id.and_then(|id| self.hosted.find_active(id)) {
            return Ok(ListedSession::Hosted(hosted));
        }
        choose_session(self.list_sessions(), id)
    }

    /// Waits until a session of an earlier supervisor is recovered and, if it follows the window, attached to its current
    /// launch; without an id until all are.
    pub async fn wait_until_settled(&self, session: Option<&str>) {
        self.sessions.wait_until_recovered(session).await;
        self.followers.wait_until_current(&self.window, session).await;
    }

    /// Waits until it is decided which session an operation means that names none: until no other may come back, or two are active.
    pub async fn wait_until_decided(&self) {
        let (mut listed, mut unrecovered) = (self.sessions.watch(), self.sessions.watch_unrecovered());
        let (mut followed, mut published) = (self.followers.watch(), self.window.watch());
        loop {
            listed.borrow_and_update();
            followed.borrow_and_update();
            published.borrow_and_update();
            let unrecovered_ids = unrecovered.borrow_and_update().clone();
            let behind = self.followers.ids_behind_window(&self.window);
            let active = self.active_sessions().iter().filter(|it| !behind.iter().any(|id| id == it.id())).count();
            let returning = behind.len() + unrecovered_ids.values().filter(|may_return| **may_return).count();
            if is_decided(active, returning, unrecovered_ids.len()) {
                return;
            }
            let outcome = tokio::select! {
                outcome = listed.changed() => outcome,
                outcome = unrecovered.changed() => outcome,
                outcome = followed.changed() => outcome,
                outcome = published.changed() => outcome,
            };
            if outcome.is_err() {
                return;
            }
        }
    }
}

/// Whether it is decided which session is meant where none is named: the only active one if no other may come back, one of
/// several, which is an error, or of those that have ended the last.
fn is_decided(active: usize, returning: usize, unrecovered: usize) -> bool {
    match active {
        0 => returning == 0 && unrecovered == 0,
        1 => returning == 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::is_decided;

    #[test]
    fn it_is_decided_by_two_active_sessions_or_when_no_other_may_come_back() {
        let check = |active, returning, unrecovered, expect| {
            assert_eq!(is_decided(active, returning, unrecovered), expect, "{active} {returning} {unrecovered}");
        };
        check(0, 0, 0, true);
        check(0, 0, 1, false);
        check(0, 1, 1, false);
        check(1, 0, 3, true);
        check(1, 1, 1, false);
        check(2, 1, 1, true);
    }
}
