//! A build whose callers have all left: it goes on for a while, since they may ask again.
//!
//! ```text
//!  a caller waits ──the last one leaves──▶ unattended ──a call joins it──▶ a caller waits
//!        │                                     │
//!        └──Ctrl-C of the last one──▶ ended ◀──┴── UNATTENDED_LIMIT, newer sources
//! ```
//! A launch is not ended: it is finished, and the window stays.

use tether_base::sync::lock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::info;

use super::actor::WindowActor;
use super::caller::{ActorMessage, Caller};
use super::state::{WindowEffect, WindowInput, WindowPhase};
use super::window_handle::Window;
use crate::tasks::task_runner::UNATTENDED_LIMIT;

/// Tells the actor on drop that the caller waits no longer for its command.
///
/// To be created before the reply channel of the command, and so dropped after its receiver: the actor then sees which
/// callers still wait.
pub struct CallerGuard<'a> {
    pub inbox: &'a mpsc::Sender<ActorMessage>,
    pub caller: &'a dyn Caller,
    pub is_answered: bool,
}

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // If the inbox is full, the actor sees who waits after the commands in it.
            let interrupted = self.caller.is_interrupted();
            let _ = self.inbox.try_send(ActorMessage::CallerLeft { interrupted });
        }
    }
}

/// Ends an unattended build if files have changed since it began, before a call joins it. Not the build that follows such a
/// one: the build itself may change files.
pub(super) async fn end_obsolete_build(window: &Window) {
    let sources = lock(&window.context.build_sources).clone();
    let is_unattended = window.context.published.borrow().unattended_until.is_some();
    let Some(sources) = sources.filter(|_| is_unattended) else { return };
    let Ok(settings) = window.context.read_tracking_config() else { return };
    let Ok(tracker) = window.context.tracker_for(&settings) else { return };
    let Ok(now) = tracker.take_snapshot().await else { return };
    if now.changed_paths(&sources.files).iter().any(|path| !sources.by_build.contains(path)) {
        let _ = window.actor.send(ActorMessage::EndObsoleteBuild).await;
    }
}

impl WindowActor {
    /// Aborts the running build when no caller waits for it any more.
    pub(super) fn abort_unawaited_build(&mut self) -> bool {
        self.callers.forget_gone();
        if !self.callers.is_empty() || self.apply_input(WindowInput::Cancelled) != WindowEffect::AbortBuild {
            return false;
        }
        // Dropped with its results: a build may have ended meanwhile.
        self.operation = JoinSet::new();
        self.build = None;
        self.callers.drop_selections();
        self.publish(|published| published.progress = None);
        self.handle_deferred();
        true
    }

    /// Keeps the time at which a build that nobody waits for is ended; returns it.
    pub(super) fn update_unattended(&mut self) -> Option<Instant> {
        self.callers.forget_gone();
        let before = self.read(|published| published.unattended_until);
        let is_building = matches!(self.read(|published| published.phase), WindowPhase::Building { .. });
        let is_unattended = is_building && self.callers.is_empty();
        let until = is_unattended.then(|| before.unwrap_or_else(|| Instant::now() + UNATTENDED_LIMIT));
        if until != before {
            self.publish(|published| published.unattended_until = until);
        }
        until
    }

    /// The time limit of a build that nobody waits for has passed.
    pub(super) fn end_unattended_build(&mut self) {
        if self.abort_unawaited_build() {
            let limit = humantime::format_duration(UNATTENDED_LIMIT);
            let note = format!("the build was ended: no call has waited for it for {limit}");
            info!("{note}");
            self.publish(|published| published.notes.push(note));
        }
    }

    /// Files have changed since a build began that nobody waits for.
    pub(super) fn end_obsolete_build(&mut self) {
        if !self.follows_obsolete_build && self.abort_unawaited_build() {
            info!("the build was ended: it is not of the files of now, and no call waits for it");
            self.follows_obsolete_build = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::tasks::background_tasks::BackgroundTasks;
    use crate::tasks::task_runner::TaskQueue;
    use crate::window::WindowPaths;
    use crate::window::caller::{CommandOrigin, CommandResult, OperationTimes, WindowCommand};
    use crate::window::context::WindowContext;
    use crate::window::operation_results::OperationResult;
    use crate::window::repeated_builds::RepeatedBuilds;
    use crate::window::state::WindowPhase;
    use tether_base::error::{Error, ErrorKind};

    fn building_actor(folder: &std::path::Path) -> WindowActor {
        let background = BackgroundTasks::open(folder, "task-test".to_owned());
        let queue = Arc::new(TaskQueue::new("build-test".to_owned(), background));
        let path = || folder.to_owned();
        let paths = WindowPaths { workspace: path(), state: path(), bridge: path() };
        let (_inbox, commands) = mpsc::channel(1);
        let actor = WindowActor::new(Arc::new(WindowContext::new(paths, queue)), commands);
        actor.publish(|published| published.phase = WindowPhase::Building { old: false });
        actor
    }

    fn requested_build() -> (WindowCommand, oneshot::Receiver<(CommandResult, OperationTimes)>) {
        let (reply, caller) = oneshot::channel();
        let (input, origin) = (WindowInput::Restart { build: true }, CommandOrigin::RequestedBuild);
        (WindowCommand { input, origin, selection: None, reply }, caller)
    }

    #[tokio::test]
    async fn a_build_is_ended_once_nobody_has_waited_for_it_for_the_time_limit() {
        let folder = tempfile::tempdir().unwrap();
        let mut actor = building_actor(folder.path());
        actor.operation.spawn(std::future::pending());
        let (command, caller) = requested_build();
        actor.callers.join(command);
        assert_eq!(actor.update_unattended(), None, "a caller waits");
        drop(caller);
        let until = actor.update_unattended().unwrap();
        assert!(until <= Instant::now() + UNATTENDED_LIMIT);
        assert_eq!(actor.update_unattended(), Some(until), "from when the last one has left");
        let status = |actor: &WindowActor| actor.read(|published| published.describe_unattended());
        assert!(status(&actor).unwrap().contains("still runs without a caller"));
        // Another call joins it, and leaves.
        let (command, caller) = requested_build();
        actor.callers.join(command);
        assert_eq!((actor.update_unattended(), status(&actor)), (None, None));
        drop(caller);
        assert!(actor.update_unattended().unwrap() >= until);
        actor.end_unattended_build();
        assert!(actor.operation.is_empty());
        assert_eq!(actor.update_unattended(), None);
        let (phase, notes) = actor.read(|published| (published.phase, published.notes.clone()));
        assert_eq!(phase, WindowPhase::Absent);
        assert!(notes[0].contains("no call has waited for it for 5m"), "{notes:?}");
    }

    #[tokio::test]
    async fn the_result_of_a_cancelled_build_is_not_that_of_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut actor = building_actor(folder.path());
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        actor.operation.spawn(async move {
            let _ended = ended;
            OperationResult::Built(Err(Error::new(ErrorKind::BuildFailed, "late")), RepeatedBuilds::default())
        });
        // It ends just before its caller cancels.
        assert!(end.await.is_err());
        tokio::task::yield_now().await;
        actor.abort_unawaited_build();
        assert_eq!(actor.apply_input(WindowInput::Start { build: true }), WindowEffect::Build);
        assert!(actor.operation.join_next().await.is_none(), "the next build would get this result");
    }
}
