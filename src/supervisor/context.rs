//! What all connections and handlers of one supervisor share.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::launch_memory::LaunchMemory;
use super::paths::SupervisorPaths;
use super::window_follow::WindowFollowers;
use crate::debug::SessionRegistry;
use crate::window::Window;

/// One per supervisor process.
pub(super) struct SupervisorContext {
    pub paths: SupervisorPaths,
    pub window: Window,
    pub sessions: SessionRegistry,
    pub launch_memory: LaunchMemory,
    pub followers: Arc<WindowFollowers>,
    /// The number of open connections.
    pub connections: watch::Sender<usize>,
    /// Notified when the supervisor is to exit.
    pub shutdown: Notify,
}

impl SupervisorContext {
    /// The launch id of builds and tasks. Waits until those of an earlier supervisor, which carry the same id, have been
    /// searched for and stopped.
    pub async fn build_launch_id(&self) -> String {
        self.window.wait_for_search().await;
        self.paths.build_launch_id()
    }

    /// Waits until the sessions of an earlier supervisor are recovered, and those that follow the window are attached to
    /// its current launch.
    pub async fn wait_until_settled(&self) {
        self.sessions.wait_until_recovered().await;
        self.followers.wait_until_current(&self.window).await;
    }
}
