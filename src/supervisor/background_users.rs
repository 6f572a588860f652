//! Which debug sessions use which background tasks; what becomes of these when a supervisor exits and the next one starts.
//!
//! A task that a session uses is stopped after the session, unless something else uses it too. Does not depend on how
//! tasks are started, nor on which the window uses.

use std::sync::Arc;

use super::context::SupervisorContext;
use crate::debug::ManagedSession;
use crate::tasks::background_tasks::{BackgroundTask, WINDOW_USER};
use crate::window::WindowPhase;

/// Keeps the tasks running until the session has ended.
pub(super) fn keep_until_end(
    supervisor: &SupervisorContext,
    managed: &ManagedSession,
    tasks: Vec<Arc<BackgroundTask>>,
) {
    if tasks.is_empty() {
        return;
    }
    tasks.iter().for_each(|task| supervisor.queue.background.add_user(task, &managed.id));
    supervisor.sessions.run_after_end(managed, async move { drop(tasks) });
}

/// Lets the tasks run on that the window uses, or a session that the next supervisor attaches to again: this one exits.
pub(super) fn release_users(supervisor: &SupervisorContext) {
    let background = &supervisor.queue.background;
    if supervisor.window.watch().borrow().needs_supervisor() {
        background.release_user(WINDOW_USER);
    }
    let attached = supervisor.sessions.active_sessions().into_iter().filter(ManagedSession::is_attached);
    attached.for_each(|managed| background.release_user(&managed.id));
}

/// Gives the tasks of an earlier supervisor to the sessions that were recovered; ends those that nothing uses.
pub(super) async fn recover_tasks(supervisor: Arc<SupervisorContext>) {
    let background = &supervisor.queue.background;
    supervisor.sessions.wait_until_recovered(None).await;
    for managed in supervisor.sessions.active_sessions() {
        keep_until_end(&supervisor, &managed, background.recovered_tasks(&managed.id));
    }
    let mut window = supervisor.window.watch();
    // A window that cannot be verified may use them.
    let is_known =
        |window: &crate::window::PublishedState| window.search_done && window.phase != WindowPhase::Unverified;
    if window.wait_for(is_known).await.is_ok() {
        background.end_recovery();
    }
}
