//! Real windows: Chromium, Node, a real Extension Development Host, and commands that misbehave.
//!
//! Each test launches into its own folders, and ends by checking that no process of its launch is left.
//! A missing tool skips loudly on a laptop and fails where `CI=true`.

mod browser_fixture;
mod launch_failures;
mod page_input;
mod page_snapshots;
mod server_access;
mod session_files;
mod unresponsive_pages;
mod web_site;
mod window_kinds;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use devtether::config::{WindowKind, WindowSettings};
use devtether::window::cleanup;
use devtether::window::launch::{LaunchedWindow, WindowLaunchPlan, launch_window};
use devtether::window::launch_id::{output_file_of, scratch_dir_of};
use devtether::window::page::{PageConnection, PageHistory};
use devtether::window::session_file::{VERSION, WindowSession};
use tether_base::error::Result;
use tether_process::{Process, StopOutcome};

/// A workspace and a state folder for one test; processes that a failed test leaves are killed.
pub struct WindowFolder {
    pub workspace: PathBuf,
    pub state: PathBuf,
    pub launch_id: String,
    _folder: tempfile::TempDir,
}

impl WindowFolder {
    /// The names have spaces and non-ASCII letters, as users' folders do.
    pub fn fresh() -> WindowFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let (workspace, state) = (folder.path().join("work späce"), folder.path().join("stäte dir"));
        std::fs::create_dir(&workspace).unwrap();
        let launch_id = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        WindowFolder { workspace, state, launch_id, _folder: folder }
    }

    pub fn plan(&self, kind: WindowKind, settings: WindowSettings) -> WindowLaunchPlan {
        WindowLaunchPlan {
            holds_hosts: false,
            settings: WindowSettings { kind: Some(kind), ..settings },
            workspace: self.workspace.clone(),
            state_dir: self.state.clone(),
            launch_id: self.launch_id.clone(),
            history: Arc::new(PageHistory::new(None)),
        }
    }

    pub async fn launch(&self, kind: WindowKind, settings: WindowSettings) -> Result<LaunchedWindow> {
        let launched = launch_window(&self.plan(kind, settings), |_| {}).await?;
        // Tests connect to the page themselves.
        Ok(LaunchedWindow { page: None, ..launched })
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The error text of a failed launch, after which no process may be left.
    pub async fn refused(&self, kind: WindowKind, settings: WindowSettings) -> tether_base::error::Error {
        let error = match self.launch(kind, settings).await {
            Ok(launched) => panic!("it was launched: {launched:?}"),
            Err(error) => error,
        };
        self.nothing_left().await;
        error
    }

    pub async fn nothing_left(&self) {
        // A crash handler leaves the session, and exits once it notices that its browser has exited.
        for process in tether_process::find_launch_processes(&self.launch_id).unwrap() {
            let gone = tokio::time::timeout(Duration::from_secs(5), process.wait_for_exit()).await;
            assert!(gone.is_ok(), "left behind: {process:?}");
        }
        assert!(!scratch_dir_of(&self.state, &self.launch_id).exists(), "the scratch folder is left");
    }

    /// Stops the window and asserts that neither its process tree nor a process with its launch id is left.
    pub async fn stop(&self, launched: &LaunchedWindow, page: Option<&PageConnection>) -> StopOutcome {
        let mut tree = tether_process::list_tree(&launched.process).unwrap();
        for other in &launched.others {
            tree.extend(tether_process::list_tree(other).unwrap());
        }
        let ask = async {
            match page {
                Some(page) => page.request_close().await,
                None => false,
            }
        };
        let ended =
            cleanup::stop_window(&launched.process, ask, &self.launch_id, &self.state, cleanup::GRACE).await.unwrap();
        for process in &tree {
            // A renderer exits once it notices that its browser has exited.
            tokio::time::timeout(Duration::from_secs(5), process.wait_for_exit())
                .await
                .expect("a process of the tree is left");
        }
        self.nothing_left().await;
        ended
    }
}

impl Drop for WindowFolder {
    fn drop(&mut self) {
        tether_process::kill_launch(&self.launch_id);
        if std::thread::panicking() {
            let output = output_file_of(&self.state, &self.launch_id);
            eprintln!("the window's output:\n{}", tether_process::read_tail(&output, 40).unwrap_or_default());
        }
    }
}

pub fn settings() -> WindowSettings {
    WindowSettings { headless: true, ..WindowSettings::default() }
}

pub fn session_of(launched: &LaunchedWindow, place: &WindowFolder) -> WindowSession {
    WindowSession {
        version: VERSION,
        cdp_port: launched.cdp_port,
        electron_pid: launched.process.pid(),
        inspector_port: launched.inspector_port,
        host_bridge_path: place.state.join("bridge.sock"),
        user_data_dir: launched.user_data_dir.clone(),
        debug_window_started_at: launched.started_at_ms,
        persisted_at: launched.started_at_ms,
        launch_id: place.launch_id.clone(),
        boot_id: launched.boot_id.clone(),
        pid_start_ticks: launched.process.start_ticks(),
        browser_id: launched.endpoint.browser_id.clone(),
        extensions: Vec::new(),
    }
}

pub fn is_gone(pid: u32) -> bool {
    tether_process::read_facts(pid).map_or(true, |facts| facts.zombie)
}

pub fn hold(pid: u32) -> Process {
    Process::open(pid).unwrap()
}
