//! All conversations of the supervisor with editors: runs them, counts them, and ends them with it.
//!
//! Does not depend on what is said.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tether_base::sync::{TaskSender, open_task_set};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long conversations may take to stop their adapters when the supervisor exits.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The conversations; dropping the driver ends them.
pub struct EditorConversations {
    tasks: TaskSender,
    count: Arc<watch::Sender<usize>>,
    end: CancellationToken,
}

/// Counts a conversation until it is dropped, whether it has ended or was aborted.
struct ConversationCount(Arc<watch::Sender<usize>>);

impl Drop for ConversationCount {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl EditorConversations {
    /// No conversations yet, and the future that drives them, to be spawned.
    pub fn open() -> (EditorConversations, impl Future<Output = ()> + Send + 'static) {
        let (tasks, driver) = open_task_set();
        (EditorConversations { tasks, count: Arc::default(), end: CancellationToken::new() }, driver)
    }

    /// Runs a conversation until it ends by itself. It gets the token by which it is ended from outside, and so does the caller.
    pub fn spawn_conversation<F: Future<Output = ()> + Send + 'static>(
        &self,
        conversation: impl FnOnce(CancellationToken) -> F,
    ) -> CancellationToken {
        let end = self.end.child_token();
        self.count.send_modify(|count| *count += 1);
        let (counted, running) = (ConversationCount(Arc::clone(&self.count)), conversation(end.clone()));
        let task = async move {
            running.await;
            drop(counted);
        };
        // The receiver exists as long as the supervisor.
        let _ = self.tasks.send(task.boxed());
        end
    }

    /// How many conversations there are.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Ends all conversations, and waits until their adapters have exited.
    pub async fn end_all(&self) {
        self.end.cancel();
        let _ = timeout(END_TIMEOUT, self.watch().wait_for(|count| *count == 0)).await;
    }
}
