//! A caller that cancels its operation: the running build is aborted unless another caller waits for it.
//!
//! A launch is not cancelled: it is finished, and the window stays.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::WindowActor;
use super::caller::{ActorMessage, Caller};
use super::state::{WindowEffect, WindowInput};

/// Notifies the actor on drop when the caller has cancelled its command before the command was done.
///
/// To be created before the reply channel of the command, and so dropped after its receiver: the actor then sees which
/// callers still wait.
pub struct CancelGuard<'a> {
    pub inbox: &'a mpsc::Sender<ActorMessage>,
    pub caller: &'a dyn Caller,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.caller.is_cancelled() {
            // If the inbox is full, the commands in it need the operation anyway.
            let _ = self.inbox.try_send(ActorMessage::CallerCancelled);
        }
    }
}

impl WindowActor {
    /// Aborts the running build when no caller waits for it any more.
    pub(super) fn abort_unawaited_build(&mut self) {
        self.waiters.retain(|waiter| !waiter.is_closed());
        if self.waiters.is_empty() && self.apply_input(WindowInput::Cancelled) == WindowEffect::AbortBuild {
            // Dropped with its results: a build may have ended meanwhile.
            self.operation = JoinSet::new();
            self.build = None;
            self.publish(|published| published.progress = None);
            self.handle_deferred();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::background_tasks::BackgroundTasks;
    use crate::error::{Error, ErrorKind};
    use crate::task_runner::TaskQueue;
    use crate::window::WindowPaths;
    use crate::window::actor::OperationResult;
    use crate::window::build_rounds::BuildRounds;
    use crate::window::context::WindowContext;
    use crate::window::state::WindowPhase;

    #[tokio::test]
    async fn n17_the_result_of_a_cancelled_build_is_not_that_of_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let background = BackgroundTasks::open(folder.path(), "task-test".to_owned());
        let queue = Arc::new(TaskQueue::new("build-test".to_owned(), background));
        let path = || folder.path().to_owned();
        let paths = WindowPaths { workspace: path(), state: path(), bridge: path() };
        let (_inbox, commands) = mpsc::channel(1);
        let mut actor = WindowActor::new(Arc::new(WindowContext::new(paths, queue)), commands);
        actor.publish(|published| published.phase = WindowPhase::Building { old: false });
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        actor.operation.spawn(async move {
            let _ended = ended;
            OperationResult::Built(Err(Error::new(ErrorKind::BuildFailed, "late")), BuildRounds::default())
        });
        // It ends just before its caller cancels.
        assert!(end.await.is_err());
        tokio::task::yield_now().await;
        actor.abort_unawaited_build();
        assert_eq!(actor.apply_input(WindowInput::Start { build: true }), WindowEffect::Build);
        assert!(actor.operation.join_next().await.is_none(), "the next build would get this result");
    }
}
