//! The results of change detection: which files changed, how that was found, why a path is tracked.
//!
//! Does not depend on how they are computed.

use std::fmt;
use std::path::PathBuf;

use super::ignore_rules::IgnoreDecision;

/// A report lists at most this many changed files; `total` counts all of them.
pub const MAX_LISTED_CHANGES: usize = 1_000;

/// The difference between the baseline and the workspace as it was when the request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReport {
    /// Whether any tracked file differs.
    pub stale: bool,
    /// The change with the latest `modified_at_ms`.
    pub newest: Option<FileChange>,
    /// Sorted by path, at most [`MAX_LISTED_CHANGES`].
    pub changed: Vec<FileChange>,
    /// The number of files that differ.
    pub total: usize,
    /// When the baseline was taken, epoch ms.
    pub compared_to_ms: u64,
    /// How the changes were found.
    pub method: CheckMethod,
}

/// One tracked file that differs from the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// How it differs.
    pub kind: FileChangeKind,
    /// The file's mtime, epoch ms; for a removed file that of the nearest folder that is left.
    pub modified_at_ms: u64,
}

/// `src/a.ts was modified`
impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            FileChangeKind::Modified => "modified",
            FileChangeKind::Added => "added",
            FileChangeKind::Removed => "removed",
        };
        write!(f, "{} was {verb}", self.path.display())
    }
}

/// How a file differs from the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    /// Metadata differs, and with `ChangeCriterion::Content` the content, too.
    Modified,
    /// Not in the baseline.
    Added,
    /// Only in the baseline.
    Removed,
}

/// How changes were found. Both give the same result; they differ in cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckMethod {
    /// From watch events since the last request.
    Warm,
    /// From a scan, which reads the metadata of every tracked file.
    Cold {
        /// Why watch events were not enough, a clause.
        because: String,
    },
}

/// Why a path is tracked or not, and how it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathExplanation {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Whether the path is tracked, and the rule that decided.
    pub decision: IgnoreDecision,
    /// How it differs from the baseline, if it does.
    pub change: Option<FileChange>,
    /// Why a path that no rule ignores is still not tracked: it is a FIFO, it is behind a symlink.
    pub note: Option<String>,
}
