//! The rung that loads the page anew: of a browser, or the workbench with a new extension host.
//!
//! Proven by the document's time origin, and for a workbench by its title and the inspector that its host opens.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::rung_report::RungReport;
use crate::config::WindowKind;
use crate::error::{Error, ErrorKind, Result};
use crate::window::identity::find_launch_listener;
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
    let from = window.output_length();
    let page = window.page().await?;
    let reload = reload_page(&page, began_ms, Instant::now() + PAGE_TIMEOUT).await?;
    if kind == WindowKind::Browser {
        let note = reload.had_service_worker.then(|| BYPASSED.to_owned());
        return Ok(RungReport { inspector_port: None, note });
    }
    let deadline = Instant::now() + WORKBENCH_TIMEOUT;
    let started = async {
        wait_for_title(&page, WORKBENCH_TIMEOUT).await?;
        window.wait_for_output_line(from, parse_inspector_port).await
    };
    let unproven = || Error::new(ErrorKind::TimedOut, "the extension host did not start in time");
    let port = timeout_at(deadline, started).await.map_err(|_| unproven())??;
    find_launch_listener(&window.session.launch_id, port)
        .map_err(|cause| Error::other(format!("cannot verify the extension host on port {port}")).because(cause))?;
    Ok(RungReport { inspector_port: Some(port), note: None })
}
