//! The task behind the tracker: keeps the truth of one workspace, warm while its watch can vouch for it.
//!
//! Owns the order of things: fence before look, watch before read, one fence for the questions that wait, a new watch
//! after a lost one. Must not know what the answers are used for.
//!
//! ```text
//!              start                    fence fails, overflow, no watches left
//!   Rising ───────────▶ Standing ─────────────────────────────────▶ Fallen{because, retry_at}
//!     ▲   watches set    (warm)                                       (cold)      │
//!     └───────────────────────────────────────────────────────────────────────────┘
//!                        a question after `retry_at`
//! ```
//! Only in `Standing` are answers warm; otherwise each question is answered by a walk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::change_report::{ChangeReport, CheckMethod, PathExplanation};
use super::file_snapshot::FileSnapshot;
use super::index::{PendingReads, WorkspaceIndex};
use super::path_bytes;
use super::tracker::{ChangeCriterion, TrackerOptions};
use super::watch_setup::{WatchSetup, read_and_watch, start_watch_setup};
use super::watcher::{PathEvent, PathEvents, WatchError, WorkspaceWatcher};
use super::workspace_problem::WorkspaceProblem;
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};

/// Touched paths beyond this are looked at on the blocking pool, not on the task's own thread.
const MAX_INLINE_PATHS: usize = 64;
/// How many questions wait, and share one fence, at most; further ones wait to be let in.
pub(super) const MAX_BATCH: usize = 256;
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// A watch that stood so long has earned a quick retry.
const STABLE_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum TrackerRequest {
    Snapshot(Reply<Arc<FileSnapshot>>),
    Check(Reply<ChangeReport>),
    Explain(PathBuf, Reply<PathExplanation>),
    Baseline(Arc<FileSnapshot>, oneshot::Sender<()>),
}

type Reply<T> = oneshot::Sender<Result<T>>;

/// Whether news of edits can be had.
enum WatchState {
    SettingUp(JoinHandle<Result<WatchSetup, WatchError>>),
    Active { watch: WorkspaceWatcher, since: Instant },
    Lost { because: WatchError, retry_at: Instant },
}

pub(super) struct TrackerTask {
    options: TrackerOptions,
    /// Away only while the blocking pool works on it.
    truth: Option<WorkspaceIndex>,
    ears: WatchState,
    pause: Duration,
    /// Folders that were watched since the fence before the last: see `apply`.
    recent: Vec<Vec<u8>>,
    problems: watch::Sender<Vec<WorkspaceProblem>>,
    hints: watch::Sender<u64>,
}

impl TrackerTask {
    pub fn new(
        options: TrackerOptions,
        problems: watch::Sender<Vec<WorkspaceProblem>>,
        hints: watch::Sender<u64>,
    ) -> TrackerTask {
        TrackerTask {
            truth: Some(WorkspaceIndex::new(options.root.clone(), options.criterion, &options.derived)),
            ears: WatchState::SettingUp(start_watch_setup(&options, &hints, Arc::default(), None)),
            pause: MIN_RETRY_DELAY,
            recent: Vec::new(),
            options,
            problems,
            hints,
        }
    }

    /// Answers until the last handle is dropped.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<TrackerRequest>) {
        let mut asks = Vec::new();
        loop {
            tokio::select! {
                biased;
                risen = wait_for_setup(&mut self.ears) => self.activate_watch(risen),
                count = inbox.recv_many(&mut asks, MAX_BATCH) => {
                    if count == 0 {
                        return;
                    }
                    self.handle_requests(&mut asks).await;
                }
            }
        }
    }

    /// Answers questions that were all asked before this call: one look at the truth serves them all.
    async fn handle_requests(&mut self, asks: &mut Vec<TrackerRequest>) {
        let asked_at_ms = now_ms();
        let how = match asks.iter().all(|ask| matches!(ask, TrackerRequest::Baseline(..))) {
            true => Ok(CheckMethod::Warm),
            false => self.update_index().await,
        };
        for ask in asks.drain(..) {
            match ask {
                TrackerRequest::Snapshot(reply) => drop(reply.send(self.take_snapshot(&how, asked_at_ms).await)),
                TrackerRequest::Check(reply) => drop(reply.send(self.compare_with_baseline(&how).await)),
                TrackerRequest::Explain(path, reply) => drop(reply.send(self.explain_path(&how, path).await)),
                TrackerRequest::Baseline(baseline, done) => {
                    self.run_blocking(move |truth| truth.set_baseline(baseline)).await;
                    let _ = done.send(());
                }
            }
        }
        self.publish_problems();
    }

    async fn take_snapshot(
        &mut self,
        how: &Result<CheckMethod, ScanError>,
        asked_at_ms: u64,
    ) -> Result<Arc<FileSnapshot>> {
        to_user_error(how)?;
        match self.options.criterion {
            ChangeCriterion::Metadata => Ok(Arc::new(self.index_mut().take_snapshot(asked_at_ms))),
            ChangeCriterion::Content => {
                Ok(Arc::new(self.run_blocking(move |truth| truth.take_snapshot(asked_at_ms)).await))
            }
        }
    }

    async fn compare_with_baseline(&mut self, how: &Result<CheckMethod, ScanError>) -> Result<ChangeReport> {
        let how = to_user_error(how)?;
        self.compare_contents().await;
        self.index_mut().report(how).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "there is nothing to compare the workspace with: no window was built from it yet",
            )
            .hint("`tether start` builds and launches one")
        })
    }

    async fn explain_path(&mut self, how: &Result<CheckMethod, ScanError>, path: PathBuf) -> Result<PathExplanation> {
        to_user_error(how)?;
        self.compare_contents().await;
        Ok(self.index_mut().explain_path(&path))
    }

    async fn compare_contents(&mut self) {
        if self.index_mut().needs_content_check() {
            self.run_blocking(WorkspaceIndex::compare_contents).await;
        }
    }

    /// Brings the truth up to date, warm if the watch can vouch for it.
    async fn update_index(&mut self) -> Result<CheckMethod, ScanError> {
        if let WatchState::SettingUp(rising) = &mut self.ears
            && rising.is_finished()
        {
            let risen = wait_for_setup(&mut self.ears).await;
            self.activate_watch(risen);
        }
        let because = match &mut self.ears {
            WatchState::SettingUp(_) => WatchError::SettingUp,
            WatchState::Lost { because, .. } => because.clone(),
            WatchState::Active { watch, .. } => match watch.wait_for_fence().await {
                Ok(touched) => match self.apply_events(touched).await {
                    Ok(()) => return Ok(CheckMethod::Warm),
                    Err(lost) => self.mark_watch_lost(lost),
                },
                Err(lost) => self.mark_watch_lost(lost),
            },
        };
        let scanned = self.run_blocking(WorkspaceIndex::rescan).await;
        self.retry_watch();
        let because = because.to_string();
        scanned
            .map(|()| CheckMethod::Cold { because })
            .map_err(|error| ScanError { root: self.options.root.clone(), error: Arc::new(error) })
    }

    /// Enters what was touched.
    async fn apply_events(&mut self, touched: PathEvents) -> Result<(), WatchError> {
        if touched.is_empty() {
            self.recent.clear();
            return Ok(());
        }
        let mut dirty = relative_events(&self.options.root, touched);
        self.recheck_recent_folders(&mut dirty);
        let open = match dirty.len() {
            0..=MAX_INLINE_PATHS => self.index_mut().apply_events(&dirty),
            _ => self.run_blocking(move |truth| truth.apply_events(&dirty)).await,
        };
        if open.rules || !open.folders.is_empty() { self.read_pending(open).await } else { Ok(()) }
    }

    /// notify forgets a watch by path when a folder moves away. If that folder was found under its new name before the
    /// news of the move was read, the watch that goes is the new one's. Hence folders that were watched in the last
    /// round are watched and read again if anything moved; one round is enough, for the news of a move precedes the
    /// watch that it can undo.
    fn recheck_recent_folders(&mut self, dirty: &mut BTreeMap<Vec<u8>, PathEvent>) {
        let recent = std::mem::take(&mut self.recent);
        if dirty.values().any(|touch| touch.moved) {
            for folder in recent {
                dirty.entry(folder).or_default().moved = true;
            }
        }
    }

    /// Watches and reads new folders, or everything under new rules.
    async fn read_pending(&mut self, open: PendingReads) -> Result<(), WatchError> {
        let ears = std::mem::replace(
            &mut self.ears,
            WatchState::Lost { because: WatchError::SettingUp, retry_at: Instant::now() },
        );
        let WatchState::Active { mut watch, since } = ears else { return Err(WatchError::SettingUp) };
        let (watch, read) = self
            .run_blocking(move |truth| {
                let read = read_and_watch(truth, &mut watch, &open);
                (watch, read)
            })
            .await;
        self.ears = WatchState::Active { watch, since };
        self.recent = read?;
        Ok(())
    }

    fn activate_watch(&mut self, risen: Result<WatchSetup, WatchError>) {
        match risen {
            Ok(WatchSetup { watch, rules, scanned }) => {
                let truth = self.index_mut();
                truth.set_rules(rules);
                truth.replace_tree(scanned);
                self.ears = WatchState::Active { watch, since: Instant::now() };
                // What changed until now was not hinted at.
                self.hints.send_modify(|count| *count += 1);
                tracing::debug!(root = %self.options.root.display(), "watches stand");
                self.publish_problems();
            }
            Err(lost) => drop(self.mark_watch_lost(lost)),
        }
    }

    /// Gives the watch up; the next try waits longer each time, unless it had stood for a while.
    fn mark_watch_lost(&mut self, because: WatchError) -> WatchError {
        tracing::warn!(root = %self.options.root.display(), %because, "the watch is lost; answers are cold");
        if matches!(&self.ears, WatchState::Active { since, .. } if since.elapsed() > STABLE_AFTER) {
            self.pause = MIN_RETRY_DELAY;
        }
        let retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(MAX_RETRY_DELAY);
        self.ears = WatchState::Lost { because: because.clone(), retry_at };
        // Whoever waits for hints must ask, as there will be none for a while.
        self.hints.send_modify(|count| *count += 1);
        because
    }

    /// Sets the watches again once the pause is over. Questions drive it: a tracker that nobody asks does nothing.
    fn retry_watch(&mut self) {
        if matches!(self.ears, WatchState::Lost { retry_at, .. } if Instant::now() >= retry_at) {
            let truth = self.index_mut();
            let (tree, rules) = (Arc::clone(truth.tree()), truth.tree_rules());
            self.ears = WatchState::SettingUp(start_watch_setup(&self.options, &self.hints, tree, rules));
        }
    }

    fn index_mut(&mut self) -> &mut WorkspaceIndex {
        let TrackerOptions { root, criterion: confirm, derived, .. } = &self.options;
        self.truth.get_or_insert_with(|| WorkspaceIndex::new(root.clone(), *confirm, derived))
    }

    /// Lets the blocking pool work on the truth.
    async fn run_blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut WorkspaceIndex) -> T + Send + 'static,
    ) -> T {
        self.index_mut();
        let mut truth = self.truth.take();
        let worked = tokio::task::spawn_blocking(move || {
            let done = truth.as_mut().map(work);
            (truth, done)
        });
        match worked.await {
            Ok((truth, Some(done))) => {
                self.truth = truth;
                done
            }
            Ok((_, None)) => unreachable!("the truth was put in place above"),
            // A panic is a bug of ours: it goes on in this task, and questions then say that the tracker has ended.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn publish_problems(&mut self) {
        let mut problems = self.index_mut().problems();
        if let WatchState::Lost { because, .. } = &self.ears {
            problems.push(watch_problem(&self.options.root, because));
        }
        self.problems.send_if_modified(|told| {
            let news = *told != problems;
            *told = problems;
            news
        });
    }
}

/// Why not even a walk could tell.
#[derive(Clone, Debug)]
struct ScanError {
    root: PathBuf,
    error: Arc<std::io::Error>,
}

fn to_user_error(how: &Result<CheckMethod, ScanError>) -> Result<CheckMethod> {
    how.clone().map_err(|ScanError { root, error }| {
        let gone = matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
        let (kind, what) = if gone { (ErrorKind::NotFound, "is gone") } else { (ErrorKind::Other, "cannot be read") };
        Error::new(kind, format!("the workspace folder {} {what}", root.display()))
            .because(error)
            .hint("`tether shutdown` ends the supervisor of a workspace that is no longer there")
    })
}

/// Pends unless the watches are being set up: then it waits for that.
async fn wait_for_setup(ears: &mut WatchState) -> Result<WatchSetup, WatchError> {
    match ears {
        WatchState::SettingUp(rising) => match rising.await {
            Ok(risen) => risen,
            Err(error) => Err(WatchError::Watcher(format!("setting the watches failed: {error}"))),
        },
        _ => std::future::pending().await,
    }
}

/// Paths relative to the root; those of a folder that was renamed above us fall away with the root itself.
fn relative_events(root: &Path, touched: PathEvents) -> BTreeMap<Vec<u8>, PathEvent> {
    let inside = touched.iter().filter_map(|(path, touch)| Some((path.strip_prefix(root).ok()?, touch)));
    inside.map(|(rel, touch)| (path_bytes::as_bytes(rel).to_vec(), *touch)).collect()
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
