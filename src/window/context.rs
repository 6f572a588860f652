//! The state that handles, actor and operations share: paths, the published state, the trackers of the window's files.
//!
//! Makes no decisions.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tether_base::error::Result;
use tether_base::secret_values::SecretValues;
use tether_base::sync::{lock, run_blocking};
use tether_changes::{ChangeReport, ChangeTracker, FileSnapshot};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use super::build::{BuildSources, BuildSummary};
use super::build_checks::CheckSummary;
use super::crash_loop::CrashLoop;
use super::launch_id::baseline_file_of;
use super::live_window::LiveWindow;
use super::page::PageHistory;
use super::running_calls::RunningCalls;
use super::state::WindowPhase;
use super::window_exit::WindowExit;
use super::window_number::GenerationCounter;
use crate::config::{self, ActiveConfig, BuildOutput, WatchSettings, WindowConfig};
use crate::tasks::task_runner::TaskQueue;

/// The state of the window as of now, published to handles and editors.
#[derive(Clone, Default)]
pub struct PublishedState {
    /// Of the newest window; one that is found again keeps its generation.
    pub generation: u64,
    pub phase: WindowPhase,
    /// Whether the search for the window of an earlier supervisor has ended.
    pub search_done: bool,
    /// The current step of the running operation.
    pub progress: Option<String>,
    pub window: Option<Arc<LiveWindow>>,
    pub last_build: Option<BuildSummary>,
    /// Why the window of an earlier supervisor cannot be verified.
    pub unverified: Option<String>,
    /// How the last window exited, unless it was stopped.
    pub exit: Option<WindowExit>,
    /// When the running build is ended, if no call waits for it.
    pub unattended_until: Option<tokio::time::Instant>,
    /// The checks of the last build, if it has some.
    pub check: Option<CheckSummary>,
    /// What a user should know.
    pub notes: Vec<String>,
    /// The changed files that the window was launched or refreshed for, if it was for them.
    pub refreshed_for: Option<Arc<ChangeReport>>,
}

impl PublishedState {
    /// That the build still runs without a caller, in one sentence; `None`: it does not.
    pub fn describe_unattended(&self) -> Option<String> {
        let left = self.unattended_until?.saturating_duration_since(tokio::time::Instant::now());
        Some(format!(
            "the build still runs without a caller, for another {} s: `tether start` waits for it, `tether stop` ends it",
            left.as_secs()
        ))
    }

    /// Whether the supervisor must keep running: a window runs, or an operation does.
    pub fn needs_supervisor(&self) -> bool {
        self.window.is_some() || self.phase.is_busy()
    }
}

/// The paths and ids of one workspace's window.
#[derive(Clone, Debug)]
pub struct WindowPaths {
    /// Canonical.
    pub workspace: PathBuf,
    /// For file snapshots, output and profile: outside the workspace.
    pub state: PathBuf,
    /// The supervisor's socket, for `hostBridgePath`.
    pub bridge: PathBuf,
}

/// The state that handles, actor and operations share.
pub struct WindowContext {
    pub paths: WindowPaths,
    /// The builds of the window, and the tasks of debug sessions.
    pub queue: Arc<TaskQueue>,
    pub published: watch::Sender<PublishedState>,
    /// Console messages and network requests of all launches.
    pub history: Arc<PageHistory>,
    trackers: Mutex<WindowTrackers>,
    /// Writes the session files once that is possible.
    pub saving: Mutex<JoinSet<()>>,
    pub running_calls: RunningCalls,
    crash_loop: Mutex<CrashLoop>,
    pub generations: Mutex<GenerationCounter>,
    active_config: Mutex<ActiveConfig>,
    /// The values of variables in the configuration that was read last: masked in what a window printed last.
    pub secrets: Mutex<SecretValues>,
    /// Returns the reason why the window must not be replaced automatically now, if there is one.
    pub replacement_blocker: OnceLock<Box<dyn Fn() -> Option<String> + Send + Sync>>,
    /// Whether new extension hosts wait for their debug sessions: see [`super::launch::HostHold`].
    pub holds_new_hosts: AtomicBool,
    /// The changed files that a refresh is about to begin for.
    pub refresh_cause: Mutex<Option<Arc<ChangeReport>>>,
    /// The checks that run.
    pub checks: Mutex<JoinSet<()>>,
    /// What the running build is made from.
    pub build_sources: Mutex<Option<Arc<BuildSources>>>,
    /// The clean-ups after windows that exited by themselves. Always closed, so that they can be waited for.
    pub exit_cleanups: TaskTracker,
}

/// The settings that decide which files are tracked, and how.
pub type TrackingConfig = (WatchSettings, Vec<BuildOutput>);

/// Two trackers run for a while when the tracking settings change while a window runs.
#[derive(Default)]
struct WindowTrackers {
    /// By the current settings.
    configured: Option<(TrackingConfig, Arc<ChangeTracker>)>,
    /// Holds the files that the window was built from.
    baseline: Option<Arc<ChangeTracker>>,
}

impl WindowContext {
    /// Reads what an earlier supervisor stored. The first phase is the search for its window.
    pub fn new(paths: WindowPaths, queue: Arc<TaskQueue>) -> WindowContext {
        let generations = GenerationCounter::load(&paths.state);
        let (phase, generation) = (WindowPhase::Starting, generations.current());
        let published = watch::Sender::new(PublishedState { phase, generation, ..PublishedState::default() });
        let history = Arc::new(PageHistory::new(Some(paths.state.join("refs"))).of_workspace(paths.workspace.clone()));
        let active_config = Mutex::new(ActiveConfig::load(&paths.state));
        let exit_cleanups = TaskTracker::new();
        exit_cleanups.close();
        WindowContext {
            paths,
            queue,
            published,
            history,
            trackers: Mutex::default(),
            saving: Mutex::default(),
            running_calls: RunningCalls::default(),
            crash_loop: Mutex::default(),
            generations: Mutex::new(generations),
            active_config,
            secrets: Mutex::default(),
            replacement_blocker: OnceLock::new(),
            holds_new_hosts: AtomicBool::new(false),
            refresh_cause: Mutex::default(),
            checks: Mutex::default(),
            build_sources: Mutex::default(),
            exit_cleanups,
        }
    }

    /// The reason why the window must not be replaced automatically now, if there is one.
    pub fn replacement_blocker(&self) -> Option<String> {
        self.replacement_blocker.get().and_then(|blocker| blocker())
    }

    /// The recent crashes of the window.
    pub fn crash_loop(&self) -> MutexGuard<'_, CrashLoop> {
        lock(&self.crash_loop)
    }

    /// The launch configuration that was selected, and the one that runs.
    pub fn active_config(&self) -> ActiveConfig {
        lock(&self.active_config).clone()
    }

    /// Changes and saves the configuration, for this supervisor and the next ones.
    pub fn update_active_config(&self, change: impl FnOnce(&mut ActiveConfig)) -> Result<()> {
        let mut active = lock(&self.active_config);
        let before = active.clone();
        change(&mut active);
        if *active == before { Ok(()) } else { active.save(&self.paths.state) }
    }

    /// Reads from the workspace's files what to build and launch.
    pub fn read_config(&self) -> Result<WindowConfig> {
        self.active_config().resolve(&self.paths.workspace)
    }

    /// Reads from the workspace's files what to track; other errors in these files are ignored.
    pub fn read_tracking_config(&self) -> Result<TrackingConfig> {
        WindowConfig::watch_settings(&self.paths.workspace, self.active_config().selected.as_deref())
    }

    /// The tracker with the window's baseline; without a window, the one of the current settings.
    pub fn baseline_tracker(&self) -> Result<Arc<ChangeTracker>> {
        let baseline = lock(&self.trackers).baseline.clone();
        baseline.map_or_else(|| self.tracker_for(&self.read_tracking_config()?), Ok)
    }

    /// Whether it is known which files the window was built from.
    pub fn has_baseline(&self) -> bool {
        lock(&self.trackers).baseline.is_some()
    }

    /// Compares the workspace with `baseline`, the files that the window was built from, from now on.
    pub async fn set_baseline(&self, tracker: &Arc<ChangeTracker>, baseline: Arc<FileSnapshot>) {
        tracker.set_baseline(baseline).await;
        lock(&self.trackers).baseline = Some(Arc::clone(tracker));
    }

    /// Stores the files that a launch was built from, for the next supervisor.
    pub async fn save_baseline(&self, launch_id: &str, baseline: &Arc<FileSnapshot>) -> Result<()> {
        let (file, baseline) = (baseline_file_of(&self.paths.state, launch_id), Arc::clone(baseline));
        run_blocking(move || baseline.save(&file)).await
    }

    /// The files that a launch was built from, if they are stored.
    pub async fn load_baseline(&self, launch_id: &str, tracker: &ChangeTracker) -> Result<Option<FileSnapshot>> {
        let (file, root) = (baseline_file_of(&self.paths.state, launch_id), tracker.root().to_owned());
        run_blocking(move || FileSnapshot::load(&file, &root)).await
    }

    /// The tracker of the workspace with these settings; started anew when they have changed.
    pub fn tracker_for(&self, settings: &TrackingConfig) -> Result<Arc<ChangeTracker>> {
        let mut trackers = lock(&self.trackers);
        if let Some((_, tracker)) = trackers.configured.as_ref().filter(|(current, _)| current == settings) {
            return Ok(Arc::clone(tracker));
        }
        let options = config::tracker_options(&self.paths.workspace, settings, &self.paths.state)?;
        let tracker = Arc::new(ChangeTracker::start(options));
        trackers.configured = Some((settings.clone(), Arc::clone(&tracker)));
        Ok(tracker)
    }

    /// Publishes the current step of the running operation.
    pub fn report_progress(&self, progress: &str) {
        self.published.send_if_modified(|published| {
            let changed = published.progress.as_deref() != Some(progress);
            published.progress = Some(progress.to_owned());
            changed
        });
    }
}
