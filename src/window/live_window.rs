//! A running window: its session record, its process and its CDP connection.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::secret_values::SecretValues;
use tether_base::sync::{lock, run_blocking};
use tether_cdp::Endpoint;
use tether_process::{Process, ProcessExit, ResourceMonitor, ResourceUsage};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::debug;

use super::caller::Caller;
use super::identity::{self, IdentityError};
use super::launch::{HostHold, parse_inspector_port};
use super::page::{
    ExtensionHostConsole, ExtensionHostInspector, ExtensionState, PageConnection, PageHistory, install_workbench_script,
};
use super::refresh::contributed_files::ContributedFiles;

use super::refresh::rung_report::WindowRefresh;
use super::session_file::WindowSession;
use super::window_exit::{self, WindowExit};
use crate::config::WindowConfig;
use crate::tasks::background_tasks::BackgroundTask;
use crate::vocabulary::RefreshRung;
use crate::window::token_redaction::redact_connection_tokens;

/// An output file larger than this, in bytes, is trimmed to its last [`KEPT_OUTPUT`] bytes.
const MAX_OUTPUT: u64 = 64 << 20;
const KEPT_OUTPUT: u64 = 1 << 20;
/// How long the page may take to end what it does when the extensions are loaded.
const PAGE_TURN_TIMEOUT: Duration = Duration::from_secs(3);
/// How many lines of output are searched for the inspector of an extension host that was started again.
const INSPECTOR_LINES: usize = 500;
/// How long a window that ends may take from closing its port until its process has exited.
const CLOSING_TIME: Duration = Duration::from_secs(1);

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
    /// Trims the output file; aborted on drop.
    _output_trimmer: JoinSet<()>,
    /// Closed on drop.
    extension_host: Option<ExtensionHostConsole>,
    resources: ResourceMonitor,
    /// The background tasks of its build that run on, such as a dev server. They are given up when it is closed, while others
    /// may still hold the window.
    background_tasks: std::sync::Mutex<Vec<Arc<BackgroundTask>>>,
    /// What it was launched or refreshed from; `None` for one that is found again.
    pub launched_from: Option<Arc<WindowConfig>>,
    /// What the workbench has read of its extensions; `None` for one that is found again.
    pub contributed: Option<ContributedFiles>,
    /// What a user should know.
    pub notes: Vec<String>,
    /// How it was last brought up to date; `None` when it was started, or found again.
    pub refreshed: Option<WindowRefresh>,
    /// What a user should know of that: rungs that were not enough, what the page did.
    pub refresh_notes: Vec<String>,
    /// Whether its extension host was replaced in the window itself, since it was launched or refreshed.
    pub is_host_replaced: bool,
    /// Where the output ended when it was connected to, in bytes, and the clock ticks since boot.
    connected_at: (u64, u64),
}

/// The page of a running window.
pub enum WindowPage {
    /// Connected to, since it was launched.
    Open(PageConnection),
    /// To be connected to, if its program responds.
    At(Option<Endpoint>),
}

impl LiveWindow {
    /// Connects to the page of a running window. Without an endpoint, or when its page cannot be connected to yet, this is
    /// tried again later.
    pub async fn connect(
        session: WindowSession,
        process: Process,
        page: WindowPage,
        output: PathBuf,
        history: Arc<PageHistory>,
    ) -> LiveWindow {
        let length = std::fs::metadata(&output).map_or(0, |data| data.len());
        let connected_at = (length, tether_process::read_ticks_since_boot());
        let page = match page {
            WindowPage::Open(page) => Some(page),
            WindowPage::At(None) => None,
            WindowPage::At(Some(endpoint)) => PageConnection::open_endpoint(endpoint, Arc::clone(&history)).await.ok(),
        };
        if let Some(page) = &page {
            prepare_workbench(&session, page).await;
        }
        let mut output_trimmer = JoinSet::new();
        // Also while nobody looks at the window: only lines that are never shown are lost.
        output_trimmer.spawn(tether_process::keep_trimmed(output.clone(), MAX_OUTPUT, KEPT_OUTPUT));
        LiveWindow {
            _output_trimmer: output_trimmer,
            extension_host: listen_to_extension_host(&session, &output, &history),
            session,
            process,
            reconnected: false,
            output,
            page: Mutex::new(page.map(Arc::new)),
            history,
            resources: ResourceMonitor::default(),
            background_tasks: std::sync::Mutex::default(),
            launched_from: None,
            contributed: None,
            notes: Vec::new(),
            refreshed: None,
            refresh_notes: Vec::new(),
            is_host_replaced: false,
            connected_at,
        }
    }

    /// The background tasks that run as long as it does.
    pub fn background_tasks(&self) -> Vec<Arc<BackgroundTask>> {
        lock(&self.background_tasks).clone()
    }

    /// Lets background tasks run as long as the window does.
    pub fn keep_background_tasks(&self, tasks: Vec<Arc<BackgroundTask>>) {
        *lock(&self.background_tasks) = tasks;
    }

    /// Gives its background tasks up: those that nothing else uses are stopped.
    pub fn release_background_tasks(&self) {
        // Dropped after the lock is.
        let released = std::mem::take(&mut *lock(&self.background_tasks));
        drop(released);
    }

    /// Why there is this window instead of the one before.
    pub fn describe_renewal(&self) -> &'static str {
        match self.refreshed.map(|refresh| refresh.by) {
            _ if self.is_host_replaced => "the extension host was restarted in the window",
            Some(RefreshRung::RestartExtensionHost) => "the extension host was restarted",
            Some(RefreshRung::Reload) => "the page was reloaded",
            Some(RefreshRung::Relaunch) | None => "the window was relaunched",
        }
    }

    /// Where the output ended when it was connected to, in bytes, and the clock ticks since boot: what is printed and
    /// started later is newer.
    pub fn connected_at(&self) -> (u64, u64) {
        self.connected_at
    }

    /// The connection to the page, opened if necessary.
    pub async fn page(&self) -> Result<Arc<PageConnection>> {
        let mut slot = self.page.lock().await;
        if let Some(page) = slot.as_ref().filter(|page| page.wait_closed().now_or_never().is_none()) {
            return Ok(Arc::clone(page));
        }
        let port = match self.verified_cdp_port().await {
            Ok(port) => port,
            Err(error) => {
                drop(slot);
                // A program that ends closes its port before it is gone.
                let _ = timeout(CLOSING_TIME, self.process.wait_for_exit()).await;
                return Err(self.explain_error(error));
            }
        };
        let page = PageConnection::open_with_history(port, Arc::clone(&self.history))
            .await
            .map_err(|error| self.explain_error(error))?;
        prepare_workbench(&self.session, &page).await;
        Ok(Arc::clone(slot.insert(Arc::new(page))))
    }

    /// The error that its dev server reports, if the page is connected to and the error stands.
    pub fn describe_server_error(&self) -> Option<String> {
        // Not waited for: it may be connecting.
        let page = self.page.try_lock().ok()?.clone()?;
        page.server_error().map(|text| format_server_error(&text))
    }

    /// The CDP port, if the window still listens on it: it may have closed it, and another program may have taken it.
    pub async fn verified_cdp_port(&self) -> Result<u16> {
        let (process, port) = (self.process.clone(), self.session.cdp_port);
        let verified = run_blocking(move || identity::verify_tree_port(&process, port)).await;
        verified.map(|()| port).map_err(|reason| foreign_port_error(port, reason))
    }

    /// The port of the extension host's or Node's inspector, if a process of this launch listens on it; `None` if the
    /// window has no inspector. An extension host that was started again prints its port to the output, which may differ.
    pub async fn verified_inspector_port(&self) -> Result<Option<u16>> {
        let Some(port) = self.session.inspector_port else { return Ok(None) };
        let (launch_id, output) = (self.session.launch_id.clone(), self.output.clone());
        run_blocking(move || find_inspector_port(&launch_id, port, &output)).await.map(Some)
    }

    /// Whether the page responds within `deadline`.
    pub async fn is_responsive(&self, deadline: Duration) -> bool {
        let ping = async { self.page().await.ok()?.ping(deadline).await.then_some(()) };
        tokio::time::timeout(deadline, ping).await.is_ok_and(|response| response.is_some())
    }

    /// Whether its process has exited, or does so within the time that a closing window takes.
    pub async fn is_ending(&self) -> bool {
        timeout(CLOSING_TIME, self.process.wait_for_exit()).await.is_ok()
    }

    /// Why the extensions under development are not loaded, or may not be; `None` when they are, or when there are none.
    pub fn describe_unloaded_extensions(&self) -> Option<String> {
        if self.session.extensions.is_empty() {
            return None;
        }
        let Some(host) = &self.extension_host else {
            return ExtensionState::Unknown("the extension host has opened no inspector".to_owned()).describe();
        };
        let (state, _) = host.watch_extensions().borrow().clone();
        // Of a window that ran before, nothing is said before it is known.
        if self.reconnected && state == ExtensionState::HostStarting { None } else { state.describe() }
    }

    /// Resolves once it is known that our own extension is not in the window; never where that is not found out.
    pub async fn wait_for_missing_bridge(&self) {
        let host = self.extension_host.as_ref().filter(|_| !self.session.extensions.is_empty());
        let Some(mut states) = host.map(ExtensionHostConsole::watch_extensions) else { return pending().await };
        let is_missing =
            |(state, _): &(ExtensionState, Instant)| *state == ExtensionState::Loaded { has_bridge: false };
        if states.wait_for(is_missing).await.is_err() {
            pending().await
        }
    }

    /// Waits until the extensions under development are registered and activated, no longer than each step of that may
    /// take. A window that ran before is not waited for.
    pub async fn wait_for_extensions(&self, caller: &dyn Caller) {
        let Some(host) = self.extension_host.as_ref().filter(|_| !self.session.extensions.is_empty()) else { return };
        let mut states = host.watch_extensions();
        let mut has_waited = false;
        loop {
            let (state, since) = states.borrow_and_update().clone();
            if self.reconnected && state == ExtensionState::HostStarting {
                return;
            }
            let Some(deadline) = state.deadline(since).filter(|deadline| *deadline > Instant::now()) else { break };
            has_waited = true;
            caller.report_progress("waiting until the extension is loaded");
            tokio::select! {
                changed = timeout_at(deadline, states.changed()) => if !matches!(changed, Ok(Ok(()))) { break },
                _ = self.process.wait_for_exit() => return,
            }
        }
        // The workbench knows of an extension before its host does, but may still be at work in the same turn.
        if has_waited {
            self.is_responsive(PAGE_TURN_TIMEOUT).await;
            let elapsed = now_ms().saturating_sub(self.session.debug_window_started_at);
            debug!("the extensions of the window are loaded, {elapsed}ms after its launch or refresh");
        }
    }

    /// The length of the output, in bytes; what is printed later comes behind it.
    pub fn output_length(&self) -> u64 {
        std::fs::metadata(&self.output).map_or(0, |data| data.len())
    }

    /// Resolves to the first `Some` that `find` returns for a line that was printed behind the first `from` bytes.
    pub async fn wait_for_output_line<T>(&self, from: u64, find: impl FnMut(&str) -> Option<T>) -> Result<T> {
        let doing = || format!("cannot read {}", self.output.display());
        tether_process::wait_for_line(&self.output, from, find).await.doing(doing)
    }

    /// The file with the output of all its processes.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// The files by which its extension hosts are held.
    pub fn host_hold(&self) -> HostHold {
        // The output file lies in the state folder.
        HostHold::of_launch(self.output.parent().unwrap_or(&self.output), &self.session.launch_id)
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

    /// Measures the process tree of the window and all other processes that are tied to its launch.
    pub async fn measure_resources(&self) -> Option<ResourceUsage> {
        let (main, launch_id) = (self.process.clone(), self.session.launch_id.clone());
        let list = move || {
            let mut processes = tether_process::list_tree(&main)?;
            processes.push(main.clone());
            processes.extend(tether_process::find_launch_members(&launch_id)?.tied);
            processes.sort_by_key(Process::pid);
            processes.dedup_by_key(|process| process.pid());
            Ok(processes)
        };
        self.resources.measure(list).await
    }

    /// The report of the window's exit: `interrupted_calls` are the calls that it interrupted, `secrets` are masked in what it
    /// printed.
    pub fn exit_report(&self, exit: ProcessExit, interrupted_calls: Vec<String>, secrets: &SecretValues) -> WindowExit {
        let output = tether_process::read_tail(&self.output, window_exit::LAST_LINES).unwrap_or_default();
        let started_at_ms = self.session.debug_window_started_at;
        let at_ms = now_ms();
        let console = self.history.last_messages(window_exit::MAX_SEARCHED, started_at_ms);
        WindowExit {
            exit,
            at_ms,
            uptime: Duration::from_millis(at_ms.saturating_sub(started_at_ms)),
            interrupted_calls,
            console: window_exit::format_last_messages(console),
            output: redact_connection_tokens(secrets.mask(&output)),
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

/// The inspector of a launch that is listened on: `port`, or the last one that was printed.
fn find_inspector_port(launch_id: &str, port: u16, output: &Path) -> Result<u16> {
    let verify = |port: u16| identity::verify_launch_port(launch_id, port);
    let Err(reason) = verify(port) else { return Ok(port) };
    let output = tether_process::read_tail(output, INSPECTOR_LINES).unwrap_or_default();
    let mut printed: Vec<u16> = output.lines().rev().filter_map(parse_inspector_port).collect();
    printed.dedup();
    let current = printed.into_iter().filter(|printed| *printed != port).find(|printed| verify(*printed).is_ok());
    current.ok_or_else(|| foreign_port_error(port, reason))
}

/// Makes the extension hosts of a workbench restartable after its next load; without that, a refresh reloads the page.
async fn prepare_workbench(session: &WindowSession, page: &PageConnection) {
    if !session.extensions.is_empty()
        && let Err(error) = install_workbench_script(page).await
    {
        debug!("{error}");
    }
}

fn foreign_port_error(port: u16, reason: IdentityError) -> Error {
    Error::other(format!("cannot use port {port} of the window"))
        .because(reason)
        .hint("nothing was connected to; `tether restart` relaunches the window")
}

/// Reads the console of the extension host, if the window has one: then the inspector port is not the CDP port.
fn listen_to_extension_host(
    session: &WindowSession,
    output: &Path,
    history: &Arc<PageHistory>,
) -> Option<ExtensionHostConsole> {
    let port = session.inspector_port.filter(|port| *port != session.cdp_port)?;
    let (launch_id, extensions) = (session.launch_id.clone(), session.extensions.clone());
    let inspector = ExtensionHostInspector { port, launch_id, output: output.to_owned(), extensions };
    Some(ExtensionHostConsole::start(inspector, Arc::clone(history)))
}

/// The error of a dev server as a note. Its text is the page's: its lines are indented, so that none looks like one of ours.
pub(super) fn format_server_error(text: &str) -> String {
    format!("the dev server reports an error: {}", text.lines().collect::<Vec<_>>().join("\n      "))
}
