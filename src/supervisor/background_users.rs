//! Which debug sessions use which background tasks; what becomes of these when a supervisor exits and the next one starts.
//!
//! A task that a session uses is stopped after the session, unless something else uses it too. Does not depend on how
//! tasks are started, nor on which the window uses.

use std::sync::Arc;

use super::context::SupervisorContext;
use super::hosted_sessions::HostedSession;
use crate::debug::SessionEntry;
use crate::tasks::background_tasks::{BackgroundTask, WINDOW_USER};
use crate::window::WindowPhase;

/// Keeps the tasks running until a program of the session has ended.
pub(super) fn keep_until_end(
    supervisor: &SupervisorContext,
    session: &Arc<HostedSession>,
    program: usize,
    tasks: Vec<Arc<BackgroundTask>>,
) {
    if tasks.is_empty() {
        return;
    }
    tasks.iter().for_each(|task| supervisor.queue.background.add_user(task, &session.id));
    supervisor.hosted.run_after_end(session, program, async move { drop(tasks) });
}

/// Lets the tasks run on that the window uses, or a session that the next supervisor finds or attaches to again: this one exits.
pub(super) fn release_users(supervisor: &SupervisorContext) {
    let background = &supervisor.queue.background;
    if supervisor.window.watch().borrow().needs_supervisor() {
        background.release_user(WINDOW_USER);
    }
    supervisor.active_sessions().iter().for_each(|session| background.release_user(session.id()));
}

/// Gives the tasks of an earlier supervisor to the sessions that were recovered; ends those that nothing uses.
pub(super) async fn recover_tasks(supervisor: Arc<SupervisorContext>) {
    let background = &supervisor.queue.background;
    supervisor.sessions.wait_until_recovered(None).await;
    for session in supervisor.hosted.list_sessions().iter().filter(|it| !it.is_ended()) {
        // Of several programs the last one: which of them used a task is not known any more.
        let last = session.read_facts(|facts| facts.ended_programs.len()).saturating_sub(1);
        keep_until_end(&supervisor, session, last, background.recovered_tasks(&session.id));
    }
    let mut window = supervisor.window.watch();
    // A window that cannot be verified may use them.
    let is_known =
        |window: &crate::window::PublishedState| window.search_done && window.phase != WindowPhase::Unverified;
    if window.wait_for(is_known).await.is_ok() {
        background.end_recovery();
    }
}
