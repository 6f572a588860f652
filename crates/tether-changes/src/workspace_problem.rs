//! Problems of a workspace that do not prevent a result and are reported beside it.
//!
//! Does not depend on where they are displayed.

use std::fmt;
use std::path::PathBuf;

/// A line of the ignore file that never matches, an unreadable folder, too few inotify watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceProblem {
    /// The file or folder concerned, absolute.
    pub path: PathBuf,
    /// The 1-based line in the file, if one is concerned.
    pub line: Option<usize>,
    /// What is wrong, a lowercase fragment.
    pub what: String,
    /// How to solve it: a command to run or a line to change.
    pub hint: Option<String>,
}

impl WorkspaceProblem {
    pub(super) fn new(path: impl Into<PathBuf>, what: impl fmt::Display) -> WorkspaceProblem {
        WorkspaceProblem { path: path.into(), line: None, what: what.to_string(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> WorkspaceProblem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for WorkspaceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)?;
        if let Some(hint) = &self.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}
