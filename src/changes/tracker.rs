//! The tracker of one workspace: a handle to the task that knows it.
//!
//! Owns the questions that can be asked and what their answers promise. Must not know how they are found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::change_report::{ChangeReport, PathExplanation};
use super::file_snapshot::FileSnapshot;
use super::ignore_rules::DerivedRule;
use super::tracker_task::{MAX_BATCH, TrackerRequest, TrackerTask};
use super::workspace_problem::WorkspaceProblem;
use crate::error::{Error, Result};

/// What is tracked, and how.
#[derive(Clone, Debug)]
pub struct TrackerOptions {
    /// The workspace, canonical: without symlinks in it.
    pub root: PathBuf,
    /// An existing folder outside the workspace for the fence file, writable by this user alone.
    pub cookie_dir: PathBuf,
    pub criterion: ChangeCriterion,
    /// Rules from elsewhere, below those of the ignore file.
    pub derived: Arc<[DerivedRule]>,
}

/// What makes a file count as changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeCriterion {
    /// mtime, size or inode differ.
    #[default]
    Metadata,
    /// They differ, and so does the content, of files up to 16 MiB.
    Content,
}

/// A handle to the tracker of one workspace; clones share it. The last one dropped ends its task and its watches.
#[derive(Clone, Debug)]
pub struct ChangeTracker {
    requests: mpsc::Sender<TrackerRequest>,
    problems: watch::Receiver<Vec<WorkspaceProblem>>,
    hints: watch::Receiver<u64>,
    root: Arc<Path>,
}

impl ChangeTracker {
    /// Starts to track; returns at once, inside a tokio runtime. Until the watches stand, answers are cold.
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

    /// Every tracked file as it is now: each write that ended before the call is in it.
    ///
    /// # Errors
    /// The workspace folder is gone or cannot be read.
    pub async fn take_snapshot(&self) -> Result<Arc<FileSnapshot>> {
        self.send_request(TrackerRequest::Snapshot).await?
    }

    /// Sets what the workspace is compared with: what the running window was built from.
    pub async fn set_baseline(&self, baseline: Arc<FileSnapshot>) {
        // When the task is gone there is nothing to set, and the next question says so.
        let _ = self.send_request(|reply| TrackerRequest::Baseline(baseline, reply)).await;
    }

    /// Compares the workspace as it is now with the baseline.
    ///
    /// # Errors
    /// As for [`Tracker::snapshot`]; [`crate::error::ErrorKind::NotFound`] when no baseline was set.
    pub async fn compare_with_baseline(&self) -> Result<ChangeReport> {
        self.send_request(TrackerRequest::Check).await?
    }

    /// Why `path`, absolute or relative to the root, counts or does not, and whether it changed.
    ///
    /// # Errors
    /// As for [`Tracker::snapshot`]; [`crate::error::ErrorKind::Usage`] when the path lies outside the workspace.
    pub async fn explain_path(&self, path: &Path) -> Result<PathExplanation> {
        let rel = self.relative_path(path)?;
        self.send_request(|reply| TrackerRequest::Explain(rel, reply)).await?
    }

    /// What is wrong with the workspace, as of the last answer.
    pub fn problems(&self) -> Vec<WorkspaceProblem> {
        self.problems.borrow().clone()
    }

    /// A count that rises when something tracked may have changed, at most once between two questions, and when answers
    /// become warm or cold. It is a hint: [`Tracker::check`] tells. While answers are cold, edits do not raise it.
    pub fn subscribe_hints(&self) -> watch::Receiver<u64> {
        self.hints.clone()
    }

    async fn send_request<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> TrackerRequest) -> Result<T> {
        let gone = || Error::other(format!("the change tracker of {} has ended", self.root.display()));
        let (reply, answer) = oneshot::channel();
        self.requests.send(ask(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
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
        let outside = || Error::usage(format!("{} lies outside the workspace {}", path.display(), self.root.display()));
        if fits { Ok(rel) } else { Err(outside().hint("give a path inside the workspace")) }
    }
}
