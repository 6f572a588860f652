//! A running window: its session record, its process and its CDP connection.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Mutex;

use super::identity::{IdentityError, VerifiedWindow};
use super::launch::LaunchedWindow;
use super::page::{ExtensionHostConsole, ExtensionHostInspector, PageConnection, PageHistory};
use super::session_file::WindowSession;
use super::window_exit::{self, WindowExit};
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{self, Process, ProcessExit, ResourceMonitor, ResourceUsage};

/// An output file larger than this, in bytes, is trimmed to its last [`KEPT_OUTPUT`] bytes.
const MAX_OUTPUT: u64 = 64 << 20;
const KEPT_OUTPUT: u64 = 1 << 20;

/// A window whose process runs.
pub struct LiveWindow {
    /// The content of `session.json`.
    pub session: WindowSession,
    pub process: Process,
    /// Whether an earlier supervisor launched it.
    pub reconnected: bool,
    /// The file with the output of all its processes.
    output: PathBuf,
    /// The CDP connection. Opened again when it was closed or could not be opened: a frozen window may respond later.
    page: Mutex<Option<Arc<PageConnection>>>,
    /// Console messages and network requests of all launches.
    history: Arc<PageHistory>,
    /// Closed on drop.
    _extension_host: Option<ExtensionHostConsole>,
    resources: ResourceMonitor,
    /// What a user should know.
    pub notes: Vec<String>,
}

impl LiveWindow {
    /// A window that was just launched, also if its page cannot be connected to yet.
    pub async fn from_launch(
        launched: LaunchedWindow,
        session: WindowSession,
        notes: Vec<String>,
        history: Arc<PageHistory>,
    ) -> LiveWindow {
        history.record_launch();
        let page = PageConnection::open_endpoint(launched.endpoint, Arc::clone(&history)).await.ok().map(Arc::new);
        LiveWindow {
            _extension_host: listen_to_extension_host(&session, &launched.output, &history),
            history,
            session,
            process: launched.process,
            reconnected: false,
            output: launched.output,
            page: Mutex::new(page),
            resources: ResourceMonitor::default(),
            notes,
        }
    }

    /// The window of a session file. A verified window that does not respond is returned, too: it must not be replaced
    /// silently.
    pub async fn from_session(
        session: WindowSession,
        verified: Result<VerifiedWindow, IdentityError>,
        output: PathBuf,
        history: Arc<PageHistory>,
    ) -> Result<LiveWindow, IdentityError> {
        let (process, page) = match verified {
            Ok(window) => (
                window.process,
                PageConnection::open_endpoint(window.endpoint, Arc::clone(&history)).await.ok().map(Arc::new),
            ),
            Err(IdentityError::Unresponsive { process, .. }) => (process, None),
            Err(error) => return Err(error),
        };
        let _extension_host = listen_to_extension_host(&session, &output, &history);
        let page = Mutex::new(page);
        let resources = ResourceMonitor::default();
        Ok(LiveWindow {
            session,
            process,
            reconnected: true,
            output,
            page,
            history,
            _extension_host,
            resources,
            notes: vec![],
        })
    }

    /// The connection to the page, opened if necessary.
    pub async fn page(&self) -> Result<Arc<PageConnection>> {
        let mut slot = self.page.lock().await;
        if let Some(page) = slot.as_ref().filter(|page| page.wait_closed().now_or_never().is_none()) {
            return Ok(Arc::clone(page));
        }
        let page = PageConnection::open_with_history(self.session.cdp_port, Arc::clone(&self.history))
            .await
            .map_err(|error| self.explain_error(error))?;
        Ok(Arc::clone(slot.insert(Arc::new(page))))
    }

    /// Whether the page responds within `deadline`.
    pub async fn is_responsive(&self, deadline: Duration) -> bool {
        let ping = async {
            match self.page().await {
                Ok(page) => page.ping(deadline).await,
                Err(_) => false,
            }
        };
        tokio::time::timeout(deadline, ping).await.unwrap_or(false)
    }

    /// Sends a close request (`Browser.close`); returns whether the window received it.
    pub async fn request_close(&self) -> bool {
        match self.page.lock().await.as_ref() {
            Some(page) => page.request_close().await,
            None => false,
        }
    }

    /// Closes the connection; the window keeps running.
    pub async fn disconnect(&self) {
        self.page.lock().await.take();
    }

    /// Measures the process tree of the window and all other processes with its launch id.
    pub async fn measure_resources(&self) -> Option<ResourceUsage> {
        let (main, launch_id) = (self.process.clone(), self.session.launch_id.clone());
        let list = move || {
            let mut processes = process::list_tree(&main)?;
            processes.push(main.clone());
            processes.extend(process::find_launch_processes(&launch_id)?);
            processes.sort_by_key(Process::pid);
            processes.dedup_by_key(|process| process.pid());
            Ok(processes)
        };
        self.resources.measure(list).await
    }

    /// Trims the output file, so that a window that runs for days does not fill the disk.
    pub fn trim_output(&self) {
        // Only lines that are never shown are lost. An error leaves the file longer, and is harmless.
        let _ = process::truncate_to_tail(&self.output, MAX_OUTPUT, KEPT_OUTPUT);
    }

    /// The report of the window's exit: `in_flight` are the calls that it interrupted.
    pub fn exit_report(&self, exit: ProcessExit, in_flight: Vec<String>) -> WindowExit {
        let started_at_ms = self.session.debug_window_started_at;
        let at_ms = now_ms();
        let console = self.history.last_messages(window_exit::MAX_SEARCHED, started_at_ms);
        WindowExit {
            exit,
            at_ms,
            uptime: Duration::from_millis(at_ms.saturating_sub(started_at_ms)),
            in_flight,
            console: window_exit::format_last_messages(console),
            output: process::read_tail(&self.output, window_exit::LAST_LINES).unwrap_or_default(),
        }
    }

    /// The error of a page operation; if the window has exited meanwhile, an error that reports this.
    pub fn explain_error(&self, error: Error) -> Error {
        if error.kind == ErrorKind::TimedOut || self.process.is_alive() {
            return error;
        }
        Error::new(ErrorKind::NotFound, "the window ended during the operation")
            .because(error)
            .hint("`tether status` shows how it ended; `tether start` starts it again")
    }
}

/// Reads the console of the extension host, if the window has one: then the inspector port is not the CDP port.
fn listen_to_extension_host(
    session: &WindowSession,
    output: &Path,
    history: &Arc<PageHistory>,
) -> Option<ExtensionHostConsole> {
    let port = session.inspector_port.filter(|port| *port != session.cdp_port)?;
    let inspector = ExtensionHostInspector { port, launch_id: session.launch_id.clone(), output: output.to_owned() };
    Some(ExtensionHostConsole::start(inspector, Arc::clone(history)))
}
