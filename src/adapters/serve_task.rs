//! The task of an adapter that runs in this process.
//!
//! Does not depend on any adapter.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long an adapter in this process may take to end what it has started, once its connection has ended.
const SERVE_END_TIMEOUT: Duration = Duration::from_secs(3);

/// An adapter that runs in this process. Dropping it ends it, and what it has started.
pub(super) struct ServeTask(JoinHandle<()>);

impl Drop for ServeTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServeTask {
    pub(super) fn spawn(serve: BoxFuture<'static, ()>) -> ServeTask {
        ServeTask(tokio::spawn(serve))
    }

    /// Waits until it has ended by itself, which it does when its connection has: a moment at most.
    pub(super) async fn wait_for_end(mut self) {
        let _ = timeout(SERVE_END_TIMEOUT, &mut self.0).await;
    }
}
