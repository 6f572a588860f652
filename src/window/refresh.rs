//! Makes a running window run the code of now, by the cheapest rung of the ladder that is proven to: restart of the extension
//! host, reload of the page, or else a relaunch by the caller.
//!
//! | file | owns |
//! |---|---|
//! | `ladder` | which rungs can take up a change: a pure table |
//! | `contributed_files` | the files that the workbench reads for an extension, and keeps |
//! | `extension_host_restart` | restarting the extension host, proven by its process |
//! | `host_change` | the new extension host is newer, and the old one is gone |
//! | `page_rung` | reloading the page, proven by the document |
//! | `rung_report` | what is known of a refresh |
//!
//! A rung that is not proven within its deadline gives way to the next, and the result says which ones were tried. Does
//! not build, and does not write the session file.

pub mod contributed_files;
mod extension_host_restart;
mod host_change;
pub mod ladder;
mod page_rung;
pub mod rung_report;

use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tokio::time::Instant;
use tracing::info;

use self::extension_host_restart::restart_extension_host;
use self::host_change::OldHost;
use self::ladder::select_rungs;
use self::page_rung::reload_window;
use self::rung_report::{RungReport, WindowRefresh};
use super::live_window::LiveWindow;
use super::session_file::WindowSession;
use crate::config::WindowKind;
use crate::vocabulary::RefreshRung;

/// A window that was refreshed: what its session file says from now on.
pub struct RefreshedWindow {
    pub session: WindowSession,
    pub refresh: WindowRefresh,
    pub notes: Vec<String>,
}

/// Tries the rungs below a relaunch that can take up the change. `Err`: why each was not proven; empty if there is none.
pub async fn refresh_window(
    window: &LiveWindow,
    kind: WindowKind,
    scope: ladder::ChangeScope,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<RefreshedWindow, Vec<String>> {
    let mut notes = Vec::new();
    for &rung in select_rungs(kind, scope) {
        let (began, began_ms) = (Instant::now(), now_ms());
        progress(rung.progress());
        let climbed = tokio::select! {
            climbed = climb_rung(window, kind, rung, began_ms) => climbed,
            exit = window.process.wait_for_exit() => Err(Error::other("the window ended").because(exit.to_string())),
        };
        match climbed {
            Ok(report) => {
                let refresh = WindowRefresh { by: rung, took: began.elapsed() };
                info!("the window was refreshed: {refresh:?}");
                let session = WindowSession {
                    inspector_port: report.inspector_port.or(window.session.inspector_port),
                    debug_window_started_at: began_ms,
                    persisted_at: now_ms(),
                    ..window.session.clone()
                };
                notes.extend(report.notes);
                return Ok(RefreshedWindow { session, refresh, notes });
            }
            Err(error) => {
                let note = format!("{}: {error}", rung.failure());
                info!("{note}");
                notes.push(note);
            }
        }
        if !window.process.is_alive() {
            break;
        }
    }
    Err(notes)
}

async fn climb_rung(window: &LiveWindow, kind: WindowKind, rung: RefreshRung, began_ms: u64) -> Result<RungReport> {
    let old_host = OldHost::find(&window.session).await;
    let report = match rung {
        RefreshRung::RestartExtensionHost => restart_extension_host(window).await?,
        RefreshRung::Reload => reload_window(window, kind, began_ms).await?,
        RefreshRung::Relaunch => return Err(Error::other("a relaunch is up to the caller")),
    };
    if let Some(old_host) = old_host {
        old_host.end().await?;
    }
    Ok(report)
}
