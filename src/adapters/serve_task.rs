//! The task of an adapter that runs in this process.
//!
//! Does not depend on any adapter.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::dap::DapConnection;
use crate::process::ProcessExit;

/// How long an adapter in this process may take to end what it has started, once its connection has ended.
const SERVE_END_TIMEOUT: Duration = Duration::from_secs(3);

/// What an adapter in this process is given.
pub struct ServeContext {
    /// Is put into the environment of the programs that it launches.
    pub launch_id: String,
    /// Is told how its program has exited.
    pub exit: watch::Sender<Option<ProcessExit>>,
}

/// Serves DAP on a connection until it ends.
pub type ServeAdapter = fn(DapConnection, ServeContext) -> BoxFuture<'static, ()>;

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
