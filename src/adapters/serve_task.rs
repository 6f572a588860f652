//! The task of an adapter that runs in this process.
//!
//! Does not depend on any adapter.

use std::time::Duration;

use tether_backend::{ServeAdapter, ServeContext};
use tether_dap::DapConnection;
use tether_process::ProcessExit;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long an adapter in this process may take to end what it has started, once its connection has ended.
const SERVE_END_TIMEOUT: Duration = Duration::from_secs(3);

/// An adapter that runs in this process. Dropping it ends it, and what it has started.
pub(super) struct ServeTask {
    task: JoinHandle<()>,
    exit: watch::Receiver<Option<ProcessExit>>,
}

impl Drop for ServeTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ServeTask {
    pub(super) fn spawn(serve: ServeAdapter, connection: DapConnection, launch_id: String) -> ServeTask {
        let (tell_exit, exit) = watch::channel(None);
        let context = ServeContext { launch_id, exit: tell_exit };
        ServeTask { task: tokio::spawn(serve(connection, context)), exit }
    }

    /// How its program exits, if it does within the limit.
    pub(super) async fn program_exit(&self, limit: Duration) -> Option<ProcessExit> {
        let mut exit = self.exit.clone();
        let told = timeout(limit, exit.wait_for(Option::is_some)).await;
        told.ok()?.ok().and_then(|exit| *exit)
    }

    /// Waits until it has ended by itself, which it does when its connection has: a moment at most.
    pub(super) async fn wait_for_end(mut self) {
        let _ = timeout(SERVE_END_TIMEOUT, &mut self.task).await;
    }
}
