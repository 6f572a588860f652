//! The rung that loads the page anew: of a browser, or the workbench with a new extension host.
//!
//! Proven by the document's time origin, and for a workbench by its title and the new process that listens on the
//! inspector's port.

use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

use super::host_change::verify_new_host;
use super::rung_report::RungReport;
use crate::config::WindowKind;
use crate::window::launch::{parse_inspector_port, wait_for_title};
use crate::window::live_window::LiveWindow;
use crate::window::page::reload_page;

/// Until the new document has been parsed.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Until the new extension host listens.
const WORKBENCH_TIMEOUT: Duration = Duration::from_secs(60);
/// What a user should know of a page with a service worker.
const BYPASSED: &str = "the page's service worker was bypassed for this load and asked for its update; the next load is its \
                        own again";

/// Reloads the page. Errors: no new document is parsed in time; a workbench does not start its extension host in time.
pub async fn reload_window(window: &LiveWindow, kind: WindowKind, began_ms: u64) -> Result<RungReport> {
    let (from, began_ticks) = (window.output_length(), tether_process::read_ticks_since_boot());
    let page = window.page().await?;
    let reload = reload_page(&page, began_ms, Instant::now() + PAGE_TIMEOUT).await?;
    if kind == WindowKind::Browser {
        let bypassed = reload.had_service_worker.then(|| BYPASSED.to_owned());
        let notes = bypassed.into_iter().chain(page.take_notices()).collect();
        return Ok(RungReport { inspector_port: None, notes });
    }
    let deadline = Instant::now() + WORKBENCH_TIMEOUT;
    let started = async {
        wait_for_title(&page, WORKBENCH_TIMEOUT).await?;
        window.wait_for_output_line(from, parse_inspector_port).await
    };
    let unproven = || Error::new(ErrorKind::TimedOut, "the extension host did not start in time");
    let port = timeout_at(deadline, started).await.map_err(|_| unproven())??;
    verify_new_host(window, port, began_ticks).await?;
    Ok(RungReport { inspector_port: Some(port), notes: page.take_notices() })
}
