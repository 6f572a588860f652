//! The settings of a change tracker.
//!
//! Does not depend on the tracker, so that every part of it can use them.

use std::path::PathBuf;
use std::sync::Arc;

use super::ignore_rules::DerivedRule;

/// What a [`ChangeTracker`](super::ChangeTracker) tracks, and what it counts as a change.
#[derive(Clone, Debug)]
pub struct TrackerOptions {
    /// The workspace, canonical: without symlinks in it.
    pub root: PathBuf,
    /// An existing folder outside the workspace for the fence file, writable by this user only.
    pub cookie_dir: PathBuf,
    /// What counts as a change of a file.
    pub criterion: ChangeCriterion,
    /// Rules derived from other files; those of the ignore file override them.
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
