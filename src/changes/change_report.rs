//! The words of an answer: what changed, how we know, and why a path counts.
//!
//! Must not know how any of it is found out.

use std::path::PathBuf;

use super::ignore_rules::IgnoreDecision;

/// An answer lists at most this many changed files; `total` counts them all.
pub const MAX_LISTED_CHANGES: usize = 1_000;

/// The comparison of the workspace, as it was when the question was asked, with the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReport {
    /// Whether any tracked file differs.
    pub stale: bool,
    /// The change with the latest time.
    pub newest: Option<FileChange>,
    /// In order of path, at most [`MOST_LISTED`].
    pub changed: Vec<FileChange>,
    /// How many files differ in all.
    pub total: usize,
    /// When the baseline was taken, epoch ms.
    pub compared_to_ms: u64,
    pub method: CheckMethod,
}

/// One tracked file that differs from the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    pub kind: FileChangeKind,
    /// The file's mtime, epoch ms; of a removed file that of the nearest folder that is left.
    pub modified_at_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChangeKind {
    Modified,
    Added,
    Removed,
}

/// How an answer was found. Both are the truth; the cold one reads the metadata of every tracked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckMethod {
    Warm,
    Cold { because: String },
}

/// Why a path counts, or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathExplanation {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// Whether the path is tracked, and the rule that decided.
    pub decision: IgnoreDecision,
    /// How it differs from the baseline, if it does.
    pub change: Option<FileChange>,
    /// Why a path that no rule ignores is still not tracked: it is a FIFO, it lies behind a symlink.
    pub note: Option<String>,
}
