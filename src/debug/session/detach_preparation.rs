//! Sees to it, before a detach, that the program runs on without its debugger: most are ready since their first stop.
//!
//! Does not depend on how the hook is evaluated.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use tracing::warn;

use super::debug_session::DebugSession;
use super::detach_hook::install_detach_hook;

use super::target_handle::TargetHandle;
use crate::adapters::DetachHook;
use crate::debug::inspect;
use crate::vocabulary::RunState;

/// How long a first stop that is under way is waited for.
const PENDING_STOP_TIMEOUT: Duration = Duration::from_millis(250);

impl DebugSession {
    /// Whether the program runs on when its debugger leaves. It is stopped for that if it has not stopped before; at most `limit`.
    pub(in crate::debug) async fn prepare_detach(&self, program: usize, hook: DetachHook, limit: Duration) -> bool {
        let mut connected = self.shared.program_targets(program);
        connected.retain(|target| target.client().is_some());
        let all_ready = || join_all(connected.iter().map(TargetHandle::wait_until_detach_ready));
        let install = async {
            // Its first stop may be under way.
            if timeout(PENDING_STOP_TIMEOUT, all_ready()).await.is_err()
                && self.snapshot().run_state() == RunState::Running
            {
                // The hook is evaluated before the stop is published.
                let _ = inspect::pause_thread(self, None).await.inspect_err(|error| warn!("{error}"));
            }
            for target in &connected {
                let thread = target.stops().first().and_then(|stop| stop.thread_id);
                if let (Some(client), Some(thread)) = (target.client(), thread) {
                    install_detach_hook(&client, target, hook, thread).await;
                }
            }
            all_ready().await;
        };
        let _ = timeout(limit, install).await;
        connected.iter().all(TargetHandle::is_detach_ready)
    }
}
