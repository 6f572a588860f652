//! The rung that stops and starts the extension host inside the page.
//!
//! ```text
//! the workbench stops its hosts ──► starts them ──► "Debugger listening on …" (another port) ──► process, start ticks
//! ```
//! Proven by the process that listens on the new inspector port: it is one of this launch, and was started, or if it was
//! started ahead given to the workbench, after the restart had begun.

use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

use super::host_change::verify_new_host;
use super::rung_report::RungReport;
use crate::window::launch::parse_inspector_port;
use crate::window::live_window::LiveWindow;
use crate::window::page::restart_extension_hosts;

/// From the request until the new host listens. VS Code itself waits up to 10 s for the old one's `deactivate`.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Restarts the extension host. Errors: see [`restart_extension_hosts`]; no host that is newer listens in time.
pub async fn restart_extension_host(window: &LiveWindow) -> Result<RungReport> {
    let (deadline, began_ticks) = (Instant::now() + TIMEOUT, tether_process::read_ticks_since_boot());
    let from = window.output_length();
    restart_extension_hosts(&*window.page().await?, TIMEOUT).await?;
    let unproven = || Error::new(ErrorKind::TimedOut, "the new extension host did not start in time");
    let port = timeout_at(deadline, window.wait_for_output_line(from, parse_inspector_port)).await;
    let port = port.map_err(|_| unproven())??;
    verify_new_host(window, port, began_ticks).await?;
    Ok(RungReport { inspector_port: Some(port), notes: Vec::new() })
}
