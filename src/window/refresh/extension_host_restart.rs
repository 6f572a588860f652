//! The rung that stops and starts the extension host inside the page.
//!
//! ```text
//! the workbench stops its hosts ──► starts them ──► "Debugger listening on …" (another port) ──► process, start ticks
//! ```
//! Proven by the process that listens on the new inspector port: it is one of this launch, and was started after the
//! restart had begun. The old host, which may be busy for ever, and its children are gone then.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use futures_util::future::join_all;

use super::rung_report::RungReport;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, Process};
use crate::window::identity::{IdentityError, find_launch_listener};
use crate::window::launch::parse_inspector_port;
use crate::window::live_window::LiveWindow;
use crate::window::page::restart_extension_hosts;

/// From the request until the new host listens. VS Code itself waits up to 10 s for the old one's `deactivate`.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long the old host, and each of its children, may take to end by itself, and then after SIGTERM.
const END_GRACE: Duration = Duration::from_secs(2);

/// The extension host before a restart, with its descendants.
struct OldHost {
    process: Process,
    children: Vec<Process>,
}

/// Restarts the extension host. Errors: see [`restart_extension_hosts`]; no host that is newer listens in time; the old one
/// cannot be ended.
pub async fn restart_extension_host(window: &LiveWindow) -> Result<RungReport> {
    let (deadline, began_ticks) = (Instant::now() + TIMEOUT, process::read_ticks_since_boot());
    let old = find_old_host(window).await;
    let from = window.output_length();
    restart_extension_hosts(&*window.page().await?, TIMEOUT).await?;
    let unproven = || Error::new(ErrorKind::TimedOut, "the new extension host did not start in time");
    let port = timeout_at(deadline, window.wait_for_output_line(from, parse_inspector_port)).await;
    let port = port.map_err(|_| unproven())??;
    let launch_id = window.session.launch_id.clone();
    let found = tokio::task::spawn_blocking(move || {
        let pid = find_launch_listener(&launch_id, port)?;
        Ok::<_, IdentityError>((pid, process::read_facts(pid)?.start_ticks))
    });
    let unverified =
        |cause: String| Error::other(format!("cannot verify the extension host on port {port}")).because(cause);
    let (pid, start_ticks) =
        found.await.map_err(|cause| unverified(cause.to_string()))?.map_err(|cause| unverified(cause.to_string()))?;
    if start_ticks < began_ticks {
        return Err(unverified(format!("process {pid} is older than the restart")));
    }
    if let Some(old) = old.filter(|old| old.process.pid() != pid) {
        old.end().await?;
    }
    Ok(RungReport { inspector_port: Some(port), note: None })
}

/// The host that listens on the inspector's port, if one of this launch does.
async fn find_old_host(window: &LiveWindow) -> Option<OldHost> {
    let (port, launch_id) = (window.session.inspector_port?, window.session.launch_id.clone());
    let find = move || {
        let process = Process::open(find_launch_listener(&launch_id, port).ok()?).ok()?;
        let mut children = process::list_tree(&process).unwrap_or_default();
        children.retain(|child| child.pid() != process.pid());
        Some(OldHost { process, children })
    };
    tokio::task::spawn_blocking(find).await.ok().flatten()
}

impl OldHost {
    async fn end(self) -> Result<()> {
        let doing = || format!("cannot end the old extension host, process {}", self.process.pid());
        process::stop_tree(&self.process, async { true }, END_GRACE).await.doing(doing)?;
        join_all(self.children.iter().map(|child| process::stop_process(child, END_GRACE))).await;
        Ok(())
    }
}
