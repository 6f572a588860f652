//! The handle of a workspace's change tracker.
//!
//! Owns the operations and their guarantees. Does not depend on how results are found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::error::{Error, Result};
use tokio::sync::{mpsc, oneshot, watch};

use super::change_report::{ChangeReport, PathExplanation};
use super::file_snapshot::FileSnapshot;
use super::tracker_options::TrackerOptions;
use super::tracker_task::{MAX_BATCH, TrackerRequest, TrackerTask};
use super::workspace_problem::WorkspaceProblem;

/// A handle to the change tracker of one workspace; clones share it. Dropping the last one ends the task and its
/// watches.
#[derive(Clone, Debug)]
pub struct ChangeTracker {
    requests: mpsc::Sender<TrackerRequest>,
    problems: watch::Receiver<Vec<WorkspaceProblem>>,
    hints: watch::Receiver<u64>,
    root: Arc<Path>,
}

impl ChangeTracker {
    /// Starts the tracker's task and returns at once; needs a tokio runtime. Until the watches are set up, results are
    /// cold.
    pub fn start(options: TrackerOptions) -> ChangeTracker {
        let (requests, inbox) = mpsc::channel(MAX_BATCH);
        let (problems_out, problems) = watch::channel(Vec::new());
        let (hints_out, hints) = watch::channel(0);
        let root = Arc::from(options.root.as_path());
        tokio::spawn(TrackerTask::new(options, problems_out, hints_out).run(inbox));
        ChangeTracker { requests, problems, hints, root }
    }

    /// The folder that is tracked.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes a snapshot of every tracked file. It contains each write that ended before the call.
    ///
    /// # Errors
    /// The workspace folder is ended or cannot be read.
    pub async fn take_snapshot(&self) -> Result<Arc<FileSnapshot>> {
        self.send_request(TrackerRequest::TakeSnapshot).await?
    }

    /// Sets what the workspace is compared with: the files that the running window was built from.
    pub async fn set_baseline(&self, baseline: Arc<FileSnapshot>) {
        // If the task has ended, the next request returns that error.
        let _ = self.send_request(|reply| TrackerRequest::SetBaseline(baseline, reply)).await;
    }

    /// Compares the workspace as it is now with the baseline.
    ///
    /// # Errors
    /// As for [`ChangeTracker::take_snapshot`]; [`tether_base::error::ErrorKind::NotFound`] when no baseline was set.
    pub async fn compare_with_baseline(&self) -> Result<ChangeReport> {
        self.send_request(TrackerRequest::Compare).await?
    }

    /// When the last of the differences from the baseline was noticed ([`tether_base::clock::monotonic_ms`]), whatever the times of
    /// the files are; `None`: there are none.
    ///
    /// # Errors
    /// As for [`ChangeTracker::take_snapshot`].
    pub async fn last_noticed(&self) -> Result<Option<u64>> {
        self.send_request(TrackerRequest::FindLastNoticed).await?
    }

    /// Explains why `path`, absolute or relative to the root, is tracked or not, and whether it changed.
    ///
    /// # Errors
    /// As for [`ChangeTracker::take_snapshot`]; [`tether_base::error::ErrorKind::Usage`] when the path is outside the
    /// workspace.
    pub async fn explain_path(&self, path: &Path) -> Result<PathExplanation> {
        let rel = self.relative_path(path)?;
        self.send_request(|reply| TrackerRequest::Explain(rel, reply)).await?
    }

    /// What is wrong with the workspace, as of the last response.
    pub fn problems(&self) -> Vec<WorkspaceProblem> {
        self.problems.borrow().clone()
    }

    /// Subscribes to a counter that increases when a tracked file may have changed, at most once between two requests,
    /// and when results become warm or cold. Only a hint: [`ChangeTracker::compare_with_baseline`] decides. While
    /// results are cold, edits do not increase it.
    pub fn subscribe_hints(&self) -> watch::Receiver<u64> {
        self.hints.clone()
    }

    async fn send_request<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> TrackerRequest) -> Result<T> {
        let ended = || Error::other(format!("the change tracker of {} has ended", self.root.display()));
        let (reply, response) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| ended())?;
        response.await.map_err(|_| ended())
    }

    fn relative_path(&self, path: &Path) -> Result<PathBuf> {
        use std::path::Component::{CurDir, Normal, ParentDir};
        let inside = if path.is_absolute() { path.strip_prefix(&self.root).ok() } else { Some(path) };
        let mut rel = PathBuf::new();
        let fits = inside.is_some_and(|inside| {
            inside.components().all(|part| match part {
                Normal(part) => {
                    rel.push(part);
                    true
                }
                CurDir => true,
                ParentDir => rel.pop(),
                _ => false,
            })
        });
        let outside = || Error::usage(format!("{} is outside the workspace {}", path.display(), self.root.display()));
        if fits { Ok(rel) } else { Err(outside().hint("give a path inside the workspace")) }
    }
}
