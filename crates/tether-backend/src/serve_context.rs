//! What an adapter in this process is started with.

use futures_util::future::BoxFuture;
use tether_dap::DapConnection;
use tether_process::ProcessExit;
use tokio::sync::watch;

/// What an adapter in this process is given.
pub struct ServeContext {
    /// Is put into the environment of the programs that it launches.
    pub launch_id: String,
    /// Is told how its program has exited.
    pub exit: watch::Sender<Option<ProcessExit>>,
}

/// Serves DAP on a connection until it ends.
pub type ServeAdapter = fn(DapConnection, ServeContext) -> BoxFuture<'static, ()>;
