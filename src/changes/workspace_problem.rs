//! What is wrong with a workspace but does not stop the answer: told beside it.
//!
//! Must not know where it is shown.

use std::fmt;
use std::path::PathBuf;

/// A line of the ignore file that cannot match, a folder that cannot be read, watches that have run out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceProblem {
    /// The file or folder that it is about, absolute.
    pub path: PathBuf,
    /// The 1-based line in it, where there is one.
    pub line: Option<usize>,
    /// What is wrong, a lowercase fragment.
    pub what: String,
    /// What the reader can do about it: a command to run or a line to change.
    pub hint: Option<String>,
}

impl WorkspaceProblem {
    pub(super) fn new(path: impl Into<PathBuf>, what: impl fmt::Display) -> WorkspaceProblem {
        WorkspaceProblem { path: path.into(), line: None, what: what.to_string(), hint: None }
    }

    pub(super) fn on_line(mut self, line: usize) -> WorkspaceProblem {
        self.line = Some(line);
        self
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
