//! What handle, actor and work share: where the window is at home, what is known of it, and who tracks its files.
//!
//! Decides nothing.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::build::LastBuild;
use super::crashes::Crashes;
use super::state::Phase;
use super::up::{Ended, Up};
use crate::changes::{self, Options, Snapshot, Tracker};
use crate::config::{self, Settings, WatchSettings};
use crate::error::{Error, Result};

/// What is known of the window, for whoever looks.
#[derive(Clone, Default)]
pub struct Published {
    /// Rises with every window that comes up.
    pub generation: u64,
    pub phase: Phase,
    /// Whether it is known that an earlier supervisor's window lives, or does not.
    pub searched: bool,
    /// What the work under way is doing just now.
    pub doing: Option<String>,
    pub up: Option<Arc<Up>>,
    pub last_build: Option<LastBuild>,
    pub exit: Option<Ended>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Published {
    /// Whether there is something that a supervisor must stay for.
    pub fn holds(&self) -> bool {
        self.up.is_some() || self.phase.is_busy()
    }
}

/// What came of a wish.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub build: Duration,
    pub launch: Duration,
    pub notes: Vec<String>,
}

/// Where a supervisor and its window are at home.
#[derive(Clone, Debug)]
pub struct Home {
    /// Canonical.
    pub workspace: PathBuf,
    /// Snapshot, output, profile: outside the workspace.
    pub state: PathBuf,
    /// The supervisor's socket, for `hostBridgePath`.
    pub bridge: PathBuf,
    /// What every process of this workspace's builds carries as its launch id.
    pub build_mark: String,
}

/// What handle, actor and work share.
pub struct Shared {
    pub home: Home,
    pub published: watch::Sender<Published>,
    trackers: Mutex<Trackers>,
    under_way: Mutex<Vec<Deed>>,
    crashes: Mutex<Crashes>,
}

/// Something that is done with the window.
struct Deed {
    number: u64,
    what: String,
    ended: Option<Instant>,
}

impl Deed {
    /// A connection that breaks ends what is done over it, a moment before the end of the window is known.
    fn counts(&self) -> bool {
        const JUST_NOW: Duration = Duration::from_millis(250);
        self.ended.is_none_or(|ended| ended.elapsed() < JUST_NOW)
    }
}

/// When `[watch]` changes under a living window, two trackers live for a while.
#[derive(Default)]
struct Trackers {
    /// As `devtools.toml` wants it.
    wanted: Option<(WatchSettings, Arc<Tracker>)>,
    /// The one that knows what the window was built from.
    compared: Option<Arc<Tracker>>,
}

impl Shared {
    pub fn new(home: Home) -> Shared {
        // The first thing is to look for the window of an earlier supervisor.
        let published = watch::Sender::new(Published { phase: Phase::Starting, ..Published::default() });
        Shared { home, published, trackers: Mutex::default(), under_way: Mutex::default(), crashes: Mutex::default() }
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<Deed>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is being done with the window; answers its number, for [`Shared::done`].
    pub fn note(&self, what: String) -> u64 {
        let mut under_way = self.under_way();
        under_way.retain(Deed::counts);
        let number = under_way.last().map_or(0, |last| last.number + 1);
        under_way.push(Deed { number, what, ended: None });
        number
    }

    pub fn done(&self, number: u64) {
        let mut under_way = self.under_way();
        under_way.iter_mut().filter(|deed| deed.number == number).for_each(|deed| deed.ended = Some(Instant::now()));
    }

    /// What is being done with the window just now; when it is nothing, what ended last, if it was a moment ago.
    pub fn doing(&self) -> Vec<String> {
        let under_way = self.under_way();
        let running: Vec<_> = under_way.iter().filter(|deed| deed.ended.is_none()).collect();
        let last = under_way.iter().filter(|deed| deed.counts()).max_by_key(|deed| deed.ended);
        let told = if running.is_empty() { last.into_iter().collect() } else { running };
        told.into_iter().map(|deed| deed.what.clone()).collect()
    }

    /// How often the window has ended by itself of late.
    pub fn crashes(&self) -> MutexGuard<'_, Crashes> {
        self.crashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trackers(&self) -> MutexGuard<'_, Trackers> {
        self.trackers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tracker that knows what the window was built from; without a window, the one that is wanted.
    pub fn comparing_tracker(&self) -> Result<Arc<Tracker>> {
        let compared = self.trackers().compared.clone();
        compared.map_or_else(|| self.tracker(&self.settings()?.watch), Ok)
    }

    /// From now on the workspace is compared with what the window was built from.
    pub async fn compare_with(&self, tracker: &Arc<Tracker>, baseline: Arc<Snapshot>) {
        tracker.set_baseline(baseline).await;
        self.trackers().compared = Some(Arc::clone(tracker));
    }

    /// The tracker of the workspace as `devtools.toml` wants it now.
    pub fn tracker(&self, watch: &WatchSettings) -> Result<Arc<Tracker>> {
        let mut trackers = self.trackers();
        if let Some((_, tracker)) = trackers.wanted.as_ref().filter(|(known, _)| known == watch) {
            return Ok(Arc::clone(tracker));
        }
        let root = self.home.workspace.join(&watch.root);
        let root = root.canonicalize().map_err(|cause| {
            Error::usage(format!("cannot watch {}", root.display()))
                .because(cause)
                .hint(format!("set [watch] root in {} to a folder that is there", config::FILE_NAME))
        })?;
        let confirm = match watch.confirm {
            config::Confirm::Mtime => changes::Confirm::Mtime,
            config::Confirm::Content => changes::Confirm::Content,
        };
        let tracker = Tracker::start(Options { root, cookie_dir: self.home.state.clone(), confirm });
        let tracker = Arc::new(tracker);
        trackers.wanted = Some((watch.clone(), Arc::clone(&tracker)));
        Ok(tracker)
    }

    pub fn settings(&self) -> Result<Settings> {
        Settings::load(&self.home.workspace)
    }

    /// Says what the work under way is doing.
    pub fn tell(&self, doing: &str) {
        self.published.send_if_modified(|published| {
            let news = published.doing.as_deref() != Some(doing);
            published.doing = Some(doing.to_owned());
            news
        });
    }
}
