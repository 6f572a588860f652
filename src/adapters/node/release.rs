//! Leaves a process so that nothing of it waits for us.
//!
//! What is asked of a worker goes through its parent, and so do its answers. A worker that waits for its debugger, or that has
//! stopped, does so for ever once its process has lost its debugger, or joins its workers: both are ended before.

use std::time::Duration;

use tokio::time::timeout;

use super::isolate::Isolate;
use super::session::NodeSession;
use crate::cdp::CdpSession;
use crate::cdp::debugger::{EnableNodeWorker, RunIfWaitingForDebugger};
use crate::cdp::types::DisableDebugger;

/// How long a process may take to pass on what its workers need to go on without us.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(500);

impl NodeSession {
    /// Lets the workers of a process run as if there were no debugger, also those that start from now on.
    pub async fn release_workers(&self, process: &Isolate) {
        if process.is_web() {
            return;
        }
        let released = timeout(RELEASE_TIMEOUT, async {
            // Fails when it has ended.
            let _ =
                process.session.deliver(&EnableNodeWorker { wait_for_debugger_on_start: false }, RELEASE_TIMEOUT).await;
            let workers = self.connection(process.id).map(|it| it.child_sessions()).unwrap_or_default();
            futures_util::future::join_all(workers.iter().map(release_worker)).await;
        });
        if released.await.is_err() {
            tracing::debug!("{} has not passed on that its workers are left", process.name);
        }
    }
}

/// A worker runs on, whether it has stopped or waits for its start. Each fails when it has ended.
async fn release_worker(worker: &CdpSession) {
    let _ = worker.deliver(&DisableDebugger {}, RELEASE_TIMEOUT).await;
    let _ = worker.deliver(&RunIfWaitingForDebugger {}, RELEASE_TIMEOUT).await;
}
