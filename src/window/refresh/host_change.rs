//! The extension hosts before and after a rung: the new one is proven to be newer, and the old one is ended.
//!
//! The old host may be busy for ever. Does not depend on how hosts are started.

use std::time::Duration;

use futures_util::future::join_all;
use tether_base::error::{Error, ErrorContext, Result};
use tether_process::Process;

use crate::window::identity::{IdentityError, find_launch_listener};
use crate::window::live_window::LiveWindow;
use crate::window::session_file::WindowSession;

/// How long the old host, and each of its children, may take to end by itself, and then after SIGTERM.
const END_GRACE: Duration = Duration::from_secs(2);

/// The extension host before a rung, with its descendants.
pub struct OldHost {
    process: Process,
    children: Vec<Process>,
}

impl OldHost {
    /// The process of this launch that listens on the inspector's port, if there is one.
    pub async fn find(session: &WindowSession) -> Option<OldHost> {
        let (port, launch_id) = (session.inspector_port?, session.launch_id.clone());
        let find = move || {
            let process = Process::open(find_launch_listener(&launch_id, port).ok()?).ok()?;
            let mut children = tether_process::list_tree(&process).unwrap_or_default();
            children.retain(|child| child.pid() != process.pid());
            Some(OldHost { process, children })
        };
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// Waits for its end, and ends it and its children where they do not end by themselves. Errors: it cannot be ended.
    pub async fn end(self) -> Result<()> {
        let doing = || format!("cannot end the old extension host, process {}", self.process.pid());
        tether_process::stop_tree(&self.process, async { true }, END_GRACE).await.doing(doing)?;
        join_all(self.children.iter().map(|child| tether_process::stop_process(child, END_GRACE))).await;
        Ok(())
    }
}

/// Verifies that a process of this launch listens on `port`, and could run no extension before `began_ticks`.
pub async fn verify_new_host(window: &LiveWindow, port: u16, began_ticks: u64) -> Result<()> {
    let (launch_id, hold) = (window.session.launch_id.clone(), window.host_hold());
    let find = move || {
        let pid = find_launch_listener(&launch_id, port)?;
        Ok::<_, IdentityError>((pid, hold.read_start(pid)?))
    };
    let unverified =
        |cause: String| Error::other(format!("cannot verify the extension host on port {port}")).because(cause);
    let found = tokio::task::spawn_blocking(find).await.map_err(|cause| unverified(cause.to_string()))?;
    let (pid, start_ticks) = found.map_err(|cause| unverified(cause.to_string()))?;
    if start_ticks < began_ticks {
        return Err(unverified(format!("process {pid} is older than the refresh")));
    }
    Ok(())
}
