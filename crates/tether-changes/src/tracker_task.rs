//! The task behind the tracker: keeps the index of one workspace up to date and handles requests from it.
//!
//! Owns the order of steps: fence before the index is read, watch before a folder is read, one fence for all pending
//! requests, a new watch after a lost one. Does not depend on what the results are used for.
//!
//! ```text
//!               watches set           fence fails, overflow, no watches left
//!   SettingUp ──────────────▶ Active ────────────────────────────────────────▶ Lost{because, retry_at}
//!       ▲                     (warm)                                              (cold)   │
//!       └──────────────────────────────────────────────────────────────────────────────────┘
//!                               a request after `retry_at`
//! ```
//! Only in `Active` are results warm; otherwise each batch of requests costs a scan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::change_report::{ChangeReport, CheckMethod, PathExplanation};
use super::file_snapshot::FileSnapshot;
use super::index::{PendingReads, WorkspaceIndex};
use super::path_bytes;
use super::tracker_options::{ChangeCriterion, TrackerOptions};
use super::watch_setup::{WatchSetup, read_and_watch, start_watch_setup};
use super::watcher::{PathEvent, PathEvents, WatchError, WorkspaceWatcher};
use super::workspace_problem::WorkspaceProblem;

/// The capacity of the request queue, and how many requests share one fence; further senders wait.
pub(super) const MAX_BATCH: usize = 256;
/// More events than this are applied on the blocking pool, not on the task's own thread.
const MAX_INLINE_PATHS: usize = 64;
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// A watch that was active for this long is first retried after [`MIN_RETRY_DELAY`] again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// A request with the channel for its response.
#[derive(Debug)]
pub(super) enum TrackerRequest {
    TakeSnapshot(Reply<Arc<FileSnapshot>>),
    Compare(Reply<ChangeReport>),
    FindLastNoticed(Reply<Option<u64>>),
    Explain(PathBuf, Reply<PathExplanation>),
    SetBaseline(Arc<FileSnapshot>, oneshot::Sender<()>),
}

type Reply<T> = oneshot::Sender<Result<T>>;

/// How an update of the index found changes, or why its scan failed; shared by all requests of a batch.
type UpdateResult = Result<CheckMethod, Arc<std::io::Error>>;

/// Whether edits are reported by watches.
enum WatchState {
    SettingUp(JoinHandle<Result<WatchSetup, WatchError>>),
    Active { watch: WorkspaceWatcher, since: Instant },
    Lost { because: WatchError, retry_at: Instant },
}

/// The task's state: the index, the watch that keeps it current, and where problems and hints are published.
pub(super) struct TrackerTask {
    options: TrackerOptions,
    /// Locked by the task itself, or by the work on the blocking pool that it awaits: never contended.
    index: Arc<Mutex<WorkspaceIndex>>,
    watch_state: WatchState,
    retry_delay: Duration,
    /// Folders that were first watched in the last round: see `recheck_recent_folders`.
    recently_watched: Vec<Vec<u8>>,
    problems: watch::Sender<Vec<WorkspaceProblem>>,
    hints: watch::Sender<u64>,
}

impl TrackerTask {
    /// Creates the task and starts to set up its watches.
    pub(crate) fn new(
        options: TrackerOptions,
        problems: watch::Sender<Vec<WorkspaceProblem>>,
        hints: watch::Sender<u64>,
    ) -> TrackerTask {
        let index = WorkspaceIndex::new(options.root.clone(), options.criterion, &options.derived);
        TrackerTask {
            index: Arc::new(Mutex::new(index)),
            watch_state: WatchState::SettingUp(start_watch_setup(&options, &hints, Arc::default(), None)),
            retry_delay: MIN_RETRY_DELAY,
            recently_watched: Vec::new(),
            options,
            problems,
            hints,
        }
    }

    /// Handles requests until the last handle is dropped.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<TrackerRequest>) {
        let mut requests = Vec::new();
        loop {
            tokio::select! {
                biased;
                setup = wait_for_setup(&mut self.watch_state) => self.activate_watch(setup).await,
                count = queue.recv_many(&mut requests, MAX_BATCH) => {
                    if count == 0 {
                        return;
                    }
                    self.handle_requests(&mut requests).await;
                }
            }
        }
    }

    /// Handles requests that were all sent before this call, so that one update of the index serves all of them.
    async fn handle_requests(&mut self, requests: &mut Vec<TrackerRequest>) {
        let requested_at_ms = now_ms();
        let method = match requests.iter().all(|request| matches!(request, TrackerRequest::SetBaseline(..))) {
            true => Ok(CheckMethod::Warm),
            false => self.update_index().await,
        };
        // Before the replies: who has received one reads the problems next.
        self.publish_problems().await;
        for request in requests.drain(..) {
            match request {
                TrackerRequest::TakeSnapshot(reply) => {
                    drop(reply.send(self.take_snapshot(&method, requested_at_ms).await))
                }
                TrackerRequest::Compare(reply) => drop(reply.send(self.compare_with_baseline(&method).await)),
                TrackerRequest::FindLastNoticed(reply) => drop(reply.send(self.find_last_noticed(&method).await)),
                TrackerRequest::Explain(path, reply) => drop(reply.send(self.explain_path(&method, path).await)),
                TrackerRequest::SetBaseline(baseline, done) => {
                    self.run_blocking(move |index| index.set_baseline(baseline)).await;
                    let _ = done.send(());
                }
            }
        }
    }

    async fn take_snapshot(&mut self, method: &UpdateResult, requested_at_ms: u64) -> Result<Arc<FileSnapshot>> {
        self.check_updated(method)?;
        let snapshot = match self.options.criterion {
            ChangeCriterion::Metadata => lock(&self.index).take_snapshot(requested_at_ms),
            ChangeCriterion::Content => self.run_blocking(move |index| index.take_snapshot(requested_at_ms)).await,
        };
        Ok(Arc::new(snapshot))
    }

    async fn compare_with_baseline(&mut self, method: &UpdateResult) -> Result<ChangeReport> {
        let method = self.check_updated(method)?;
        self.compare_contents().await;
        lock(&self.index).report(method).ok_or_else(|| {
            let doing = "there is nothing to compare the workspace with: no window was built from it yet";
            Error::new(ErrorKind::NotFound, doing).hint("`tether start` builds and launches one")
        })
    }

    async fn find_last_noticed(&mut self, method: &UpdateResult) -> Result<Option<u64>> {
        self.check_updated(method)?;
        self.compare_contents().await;
        Ok(lock(&self.index).last_noticed())
    }

    async fn explain_path(&mut self, method: &UpdateResult, path: PathBuf) -> Result<PathExplanation> {
        self.check_updated(method)?;
        self.compare_contents().await;
        Ok(lock(&self.index).explain_path(&path))
    }

    async fn compare_contents(&mut self) {
        if lock(&self.index).needs_content_check() {
            self.run_blocking(WorkspaceIndex::compare_contents).await;
        }
    }

    /// Brings the index up to date: warm if no event can have been missed, else by a scan.
    async fn update_index(&mut self) -> UpdateResult {
        if let WatchState::SettingUp(setup) = &mut self.watch_state
            && setup.is_finished()
        {
            let setup = wait_for_setup(&mut self.watch_state).await;
            self.activate_watch(setup).await;
        }
        let because = match &mut self.watch_state {
            WatchState::SettingUp(_) => WatchError::SettingUp,
            WatchState::Lost { because, .. } => because.clone(),
            WatchState::Active { watch, .. } => match watch.wait_for_fence().await {
                Ok(events) => match self.apply_events(events).await {
                    Ok(()) => return Ok(CheckMethod::Warm),
                    Err(error) => self.mark_watch_lost(error),
                },
                Err(error) => self.mark_watch_lost(error),
            },
        };
        let scanned = self.run_blocking(WorkspaceIndex::rescan).await;
        self.retry_watch();
        scanned.map(|()| CheckMethod::Cold { because: because.to_string() }).map_err(Arc::new)
    }

    /// Applies events to the index.
    async fn apply_events(&mut self, events: PathEvents) -> Result<(), WatchError> {
        if events.is_empty() {
            self.recently_watched.clear();
            return Ok(());
        }
        let mut events = relative_events(&self.options.root, events);
        self.recheck_recent_folders(&mut events);
        let pending = match events.len() {
            0..=MAX_INLINE_PATHS => lock(&self.index).apply_events(&events),
            _ => self.run_blocking(move |index| index.apply_events(&events)).await,
        };
        if pending.rules_changed || !pending.folders.is_empty() { self.read_pending(pending).await } else { Ok(()) }
    }

    /// notify drops a watch by path when a folder moves away. If the folder was found under its new name before the
    /// event of the move was read, it drops the new watch. Hence folders that were first watched in the last round are
    /// watched and read again if anything moved. One round is enough: the event of a move precedes the watch that it
    /// can drop.
    fn recheck_recent_folders(&mut self, events: &mut BTreeMap<Vec<u8>, PathEvent>) {
        let recently_watched = std::mem::take(&mut self.recently_watched);
        if events.values().any(|event| event.moved) {
            for folder in recently_watched {
                events.entry(folder).or_default().moved = true;
            }
        }
    }

    /// Watches and reads new folders, or the whole workspace after the rules changed.
    async fn read_pending(&mut self, pending: PendingReads) -> Result<(), WatchError> {
        let watch_state = std::mem::replace(
            &mut self.watch_state,
            WatchState::Lost { because: WatchError::SettingUp, retry_at: Instant::now() },
        );
        let WatchState::Active { mut watch, since } = watch_state else { return Err(WatchError::SettingUp) };
        let (watch, read) = self
            .run_blocking(move |index| {
                let read = read_and_watch(index, &mut watch, &pending);
                (watch, read)
            })
            .await;
        self.watch_state = WatchState::Active { watch, since };
        self.recently_watched = read?;
        Ok(())
    }

    async fn activate_watch(&mut self, setup: Result<WatchSetup, WatchError>) {
        match setup {
            Ok(WatchSetup { watch, rules, scanned }) => {
                // Compares all files with the baseline.
                self.run_blocking(move |index| {
                    index.set_rules(rules);
                    index.replace_tree(scanned);
                })
                .await;
                self.watch_state = WatchState::Active { watch, since: Instant::now() };
                // There were no hints for changes until now.
                self.hints.send_modify(|count| *count += 1);
                tracing::debug!(root = %self.options.root.display(), "watches are set");
                self.publish_problems().await;
            }
            Err(error) => drop(self.mark_watch_lost(error)),
        }
    }

    /// Drops the watch. The delay before the next attempt doubles each time, unless the watch was stable.
    fn mark_watch_lost(&mut self, because: WatchError) -> WatchError {
        tracing::warn!(root = %self.options.root.display(), %because, "the watch is lost; checks are cold");
        if matches!(&self.watch_state, WatchState::Active { since, .. } if since.elapsed() > STABLE_AFTER) {
            self.retry_delay = MIN_RETRY_DELAY;
        }
        let retry_at = Instant::now() + self.retry_delay;
        self.retry_delay = (self.retry_delay * 2).min(MAX_RETRY_DELAY);
        self.watch_state = WatchState::Lost { because: because.clone(), retry_at };
        // There will be no hints for a while, so subscribers have to check.
        self.hints.send_modify(|count| *count += 1);
        because
    }

    /// Sets up the watches again once the delay is over. Called by requests only: without them a tracker does nothing.
    fn retry_watch(&mut self) {
        if matches!(self.watch_state, WatchState::Lost { retry_at, .. } if Instant::now() >= retry_at) {
            let index = lock(&self.index);
            let (tree, rules) = (Arc::clone(&index.tree), index.tree_rules);
            self.watch_state = WatchState::SettingUp(start_watch_setup(&self.options, &self.hints, tree, rules));
        }
    }

    /// Runs `work` on the index on the blocking pool.
    async fn run_blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut WorkspaceIndex) -> T + Send + 'static,
    ) -> T {
        let index = Arc::clone(&self.index);
        match tokio::task::spawn_blocking(move || work(&mut lock(&index))).await {
            Ok(done) => done,
            // A panic is a bug: it ends this task, and requests then return that the tracker has ended.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// The user-facing error of a failed scan.
    fn check_updated(&self, method: &UpdateResult) -> Result<CheckMethod> {
        method.clone().map_err(|error| {
            let gone = matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
            let (kind, what) =
                if gone { (ErrorKind::NotFound, "is gone") } else { (ErrorKind::Other, "cannot be read") };
            Error::new(kind, format!("the workspace folder {} {what}", self.options.root.display()))
                .because(error)
                .hint("`tether shutdown` ends the supervisor of a workspace that is no longer there")
        })
    }

    async fn publish_problems(&mut self) {
        let known = lock(&self.index).known_problems();
        let mut problems = match known {
            Some(problems) => problems,
            None => self.run_blocking(WorkspaceIndex::find_problems).await,
        };
        if let WatchState::Lost { because, .. } = &self.watch_state {
            problems.push(watch_problem(&self.options.root, because));
        }
        self.problems.send_if_modified(|published| {
            let changed = *published != problems;
            *published = problems;
            changed
        });
    }
}

/// Waits for the watches to be set up; pending forever when they are not being set up.
async fn wait_for_setup(watch_state: &mut WatchState) -> Result<WatchSetup, WatchError> {
    match watch_state {
        WatchState::SettingUp(setup) => match setup.await {
            Ok(setup) => setup,
            Err(error) => Err(WatchError::Watcher(format!("setting the watches failed: {error}"))),
        },
        _ => std::future::pending().await,
    }
}

/// Makes paths relative to the root; others, such as those of a renamed parent of the root, are dropped.
fn relative_events(root: &Path, events: PathEvents) -> BTreeMap<Vec<u8>, PathEvent> {
    let inside = events.iter().filter_map(|(path, event)| Some((path.strip_prefix(root).ok()?, event)));
    inside.map(|(rel, event)| (path_bytes::as_bytes(rel).to_vec(), *event)).collect()
}

fn watch_problem(root: &Path, because: &WatchError) -> WorkspaceProblem {
    let problem = WorkspaceProblem::new(root, format_args!("checks read every tracked file, because {because}"));
    match because {
        WatchError::NoWatchesLeft => problem.hint("sudo sysctl fs.inotify.max_user_watches=524288"),
        WatchError::NoInstancesLeft => problem.hint("sudo sysctl fs.inotify.max_user_instances=512"),
        WatchError::Overflow => problem.hint("sudo sysctl fs.inotify.max_queued_events=131072"),
        _ => problem,
    }
}
