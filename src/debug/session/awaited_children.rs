//! The children of a program that have not connected when all of its targets have ended: its parent may end as soon as it has
//! started them. Until none is left the program runs.
//!
//! Does not depend on how a child is debugged.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tether_process::{Process, find_launch_processes, program_path};
use tokio::time::timeout;
use tracing::warn;

use super::session_shared::SessionShared;

/// How long a child may take to connect after the end of its parent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A program whose children may still connect. Dropping it publishes that none is awaited any more.
pub(super) struct AwaitedChildren {
    pub shared: Arc<SessionShared>,
    /// The index of the program.
    pub program: usize,
    pub launch_id: String,
    /// Whether a process that runs this executable may be a child that connects.
    pub may_connect: fn(&Path) -> bool,
}

impl Drop for AwaitedChildren {
    fn drop(&mut self) {
        self.publish(false);
    }
}

impl AwaitedChildren {
    /// Publishes whether children are awaited.
    pub fn publish(&self, awaits: bool) {
        self.shared.snapshot.send_modify(|snapshot| {
            match awaits {
                true => snapshot.awaits_children.insert(self.program),
                false => snapshot.awaits_children.remove(&self.program),
            };
        });
    }

    /// The running processes of the program that may be children and are no target yet.
    async fn find_unconnected(&self) -> Vec<Process> {
        let launch_id = self.launch_id.clone();
        let listed = tokio::task::spawn_blocking(move || find_launch_processes(&launch_id)).await;
        let mut processes = listed.map_err(io::Error::other).flatten().unwrap_or_else(|cause| {
            warn!("cannot list the processes of the program: {cause}");
            Vec::new()
        });
        let targets = self.shared.snapshot.borrow().targets.clone();
        let connected: HashSet<u32> = targets.into_iter().filter_map(|target| target.pid).collect();
        processes.retain(|it| {
            !connected.contains(&it.pid()) && program_path(it.pid()).is_some_and(|path| (self.may_connect)(&path))
        });
        processes
    }
}

/// Resolves when all targets of the program have ended, and no child can connect any more: each has exited, or had enough time.
/// Never where no children are awaited.
pub(super) async fn wait_for_last_child(awaited: &Option<AwaitedChildren>) {
    let Some(it) = awaited else { return std::future::pending().await };
    let mut snapshots = it.shared.snapshot.subscribe();
    loop {
        // An error means that the session is gone.
        if snapshots.wait_for(|snapshot| snapshot.are_targets_ended(it.program)).await.is_err() {
            return;
        }
        let unconnected = it.find_unconnected().await;
        // After the deadline the others are taken for processes that are not debugged.
        let _ = timeout(CONNECT_TIMEOUT, join_all(unconnected.iter().map(Process::wait_for_exit))).await;
        if it.shared.snapshot.borrow().are_targets_ended(it.program) {
            return;
        }
    }
}
