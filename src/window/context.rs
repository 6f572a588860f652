//! What handle, actor and work share: where the window is at home, what is known of it, and who tracks its files.
//!
//! Decides nothing.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::build::BuildSummary;
use super::caller::InFlight;
use super::crash_loop::CrashLoop;
use super::generation::GenerationCounter;
use super::live_window::{LiveWindow, WindowExit};
use super::page::PageHistory;
use super::state::WindowPhase;
use crate::changes::{self, ChangeTracker, FileSnapshot, TrackerOptions};
use crate::config::{self, ActiveConfig, BuildOutput, WatchSettings, WindowConfig};
use crate::error::{Error, Result};

/// What is known of the window, for whoever looks.
#[derive(Clone, Default)]
pub struct PublishedState {
    /// The number of the newest window: one that is found again keeps its own.
    pub generation: u64,
    pub phase: WindowPhase,
    /// Whether it is known that an earlier supervisor's window lives, or does not.
    pub search_done: bool,
    /// What the work under way is doing just now.
    pub doing: Option<String>,
    pub window: Option<Arc<LiveWindow>>,
    pub last_build: Option<BuildSummary>,
    pub exit: Option<WindowExit>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl PublishedState {
    /// Whether there is something that a supervisor must stay for.
    pub fn needs_supervisor(&self) -> bool {
        self.window.is_some() || self.phase.is_busy()
    }
}

/// What came of a wish.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    pub build: Duration,
    pub launch: Duration,
    pub notes: Vec<String>,
}

/// Where a supervisor and its window are at home.
#[derive(Clone, Debug)]
pub struct WindowPaths {
    /// Canonical.
    pub workspace: PathBuf,
    /// Snapshot, output, profile: outside the workspace.
    pub state: PathBuf,
    /// The supervisor's socket, for `hostBridgePath`.
    pub bridge: PathBuf,
    /// What every process of this workspace's builds carries as its launch id.
    pub build_launch_id: String,
}

/// What handle, actor and work share.
pub struct WindowContext {
    pub paths: WindowPaths,
    pub published: watch::Sender<PublishedState>,
    /// What the window says and asks for, over all its launches.
    pub records: Arc<PageHistory>,
    trackers: Mutex<WindowTrackers>,
    pub deeds: InFlight,
    crashes: Mutex<CrashLoop>,
    launches: Mutex<GenerationCounter>,
    choice: Mutex<ActiveConfig>,
    /// Who knows why the window must not be replaced unasked.
    held: OnceLock<Box<ReplacementBlocker>>,
    /// Who tidies up after windows that ended by themselves.
    pub mourners: TaskTracker,
}

/// Says why the window must not be replaced unasked, while that is so.
type ReplacementBlocker = dyn Fn() -> Option<String> + Send + Sync;

/// What decides what is tracked, and how.
pub type TrackingConfig = (WatchSettings, Vec<BuildOutput>);

/// When what is tracked changes under a living window, two trackers live for a while.
#[derive(Default)]
struct WindowTrackers {
    /// As the workspace's files want it.
    wanted: Option<(TrackingConfig, Arc<ChangeTracker>)>,
    /// The one that knows what the window was built from.
    baseline: Option<Arc<ChangeTracker>>,
}

impl WindowContext {
    pub fn new(paths: WindowPaths) -> WindowContext {
        let launches = GenerationCounter::load(&paths.state);
        // The first thing is to look for the window of an earlier supervisor.
        let (phase, generation) = (WindowPhase::Starting, launches.current());
        let published = watch::Sender::new(PublishedState { phase, generation, ..PublishedState::default() });
        let records = Arc::new(PageHistory::new(Some(paths.state.join("refs"))));
        let choice = Mutex::new(ActiveConfig::load(&paths.state));
        WindowContext {
            paths,
            published,
            records,
            trackers: Mutex::default(),
            deeds: InFlight::default(),
            crashes: Mutex::default(),
            launches: Mutex::new(launches),
            choice,
            held: OnceLock::new(),
            mourners: TaskTracker::new(),
        }
    }

    /// Asked each time; only the first is.
    pub fn block_replacement_while(&self, held: Box<ReplacementBlocker>) {
        let _ = self.held.set(held);
    }

    /// Why the window must not be replaced unasked, if there is a reason.
    pub fn replacement_blocked_by(&self) -> Option<String> {
        self.held.get().and_then(|held| held())
    }

    /// How often the window has ended by itself of late.
    pub fn crash_loop(&self) -> MutexGuard<'_, CrashLoop> {
        self.crashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The generation of a window.
    pub fn assign_generation(&self, launch_id: &str) -> u64 {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).assign(launch_id)
    }

    /// Which launch configuration is wanted, and which one runs.
    pub fn choice(&self) -> ActiveConfig {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the choice, for this supervisor and the next ones.
    pub fn update_choice(&self, change: impl FnOnce(&mut ActiveConfig)) -> Result<()> {
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let before = choice.clone();
        change(&mut choice);
        if *choice == before { Ok(()) } else { choice.save(&self.paths.state) }
    }

    /// What to run, as the workspace's files say now.
    pub fn read_recipe(&self) -> Result<WindowConfig> {
        self.choice().resolve(&self.paths.workspace)
    }

    /// What to track, as the workspace's files say now, whatever else is wrong with them.
    pub fn read_tracking_config(&self) -> Result<TrackingConfig> {
        WindowConfig::watch_settings(&self.paths.workspace, self.choice().selected.as_deref())
    }

    fn trackers(&self) -> MutexGuard<'_, WindowTrackers> {
        self.trackers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tracker that knows what the window was built from; without a window, the one that is wanted.
    pub fn baseline_tracker(&self) -> Result<Arc<ChangeTracker>> {
        let compared = self.trackers().baseline.clone();
        compared.map_or_else(|| self.tracker(&self.read_tracking_config()?), Ok)
    }

    /// Whether it is known what the window was built from.
    pub fn has_baseline(&self) -> bool {
        self.trackers().baseline.is_some()
    }

    /// From now on the workspace is compared with what the window was built from.
    pub async fn set_baseline(&self, tracker: &Arc<ChangeTracker>, baseline: Arc<FileSnapshot>) {
        tracker.set_baseline(baseline).await;
        self.trackers().baseline = Some(Arc::clone(tracker));
    }

    /// The tracker of the workspace as its files want it now.
    pub fn tracker(&self, watching: &TrackingConfig) -> Result<Arc<ChangeTracker>> {
        let mut trackers = self.trackers();
        if let Some((_, tracker)) = trackers.wanted.as_ref().filter(|(known, _)| known == watching) {
            return Ok(Arc::clone(tracker));
        }
        let (watch, generated) = watching;
        let root = self.paths.workspace.join(&watch.root);
        let root = root.canonicalize().map_err(|cause| {
            Error::usage(format!("cannot watch {}", root.display()))
                .because(cause)
                .hint(format!("set [watch] root in {} to a folder that is there", config::DEVTOOLS_TOML))
        })?;
        let confirm = match watch.confirm {
            config::ConfirmBy::Mtime => changes::ChangeCriterion::Metadata,
            config::ConfirmBy::Content => changes::ChangeCriterion::Content,
        };
        let derived = generated.iter().map(|it| self.derived_rule(it)).collect();
        let tracker = ChangeTracker::start(TrackerOptions {
            root,
            cookie_dir: self.paths.state.clone(),
            criterion: confirm,
            derived,
        });
        let tracker = Arc::new(tracker);
        trackers.wanted = Some((watching.clone(), Arc::clone(&tracker)));
        Ok(tracker)
    }

    fn derived_rule(&self, generated: &BuildOutput) -> changes::DerivedRule {
        let BuildOutput { pattern, origin } = generated.clone();
        changes::DerivedRule { pattern, file: self.paths.workspace.join(origin.file), line: origin.line }
    }

    /// Says what the work under way is doing.
    pub fn report_progress(&self, doing: &str) {
        self.published.send_if_modified(|published| {
            let news = published.doing.as_deref() != Some(doing);
            published.doing = Some(doing.to_owned());
            news
        });
    }
}
