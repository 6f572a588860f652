//! How large a workspace is: what a watch of it would need. Reads it once, and keeps nothing.

use std::path::Path;
use std::sync::Arc;

use super::ignore_rules::IgnoreRules;
use super::read_dir::WorkspaceRoot;
use super::scan::{KnownTree, scan_workspace};
use super::workspace_problem::WorkspaceProblem;
use crate::error::{Context, Result};

/// The tracked part of a workspace.
#[derive(Debug)]
pub struct WorkspaceSize {
    /// Each takes one watch.
    pub folders: usize,
    pub files: usize,
    /// What is wrong with the ignore file, or cannot be read.
    pub problems: Vec<WorkspaceProblem>,
}

/// Reads the workspace at `root`. Errors: it cannot be opened.
pub fn measure_workspace(root: &Path) -> Result<WorkspaceSize> {
    let doing = || format!("cannot read {}", root.display());
    let (rules, problems) = IgnoreRules::load(root, &Arc::default());
    let nothing = Arc::default();
    let known = KnownTree { tree: &nothing, same_rules: false };
    let tree = scan_workspace(&WorkspaceRoot::open(root).doing(doing)?, &rules, known).doing(doing)?.tree;
    Ok(WorkspaceSize { folders: tree.len(), files: tree.values().map(|folder| folder.len()).sum(), problems })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracked_folders_and_files_are_counted_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", "empty", "node_modules/x/y"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["one", "a/two", "a/b/three", "node_modules/x/four"] {
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let found = measure_workspace(root.path()).unwrap();
        assert_eq!((found.folders, found.files, found.problems.len()), (4, 3, 0));
        assert!(measure_workspace(&root.path().join("nowhere")).is_err());
    }
}
