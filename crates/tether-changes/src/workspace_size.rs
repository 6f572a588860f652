//! Counts the tracked folders and files of a workspace, without keeping anything.

use std::path::Path;
use std::sync::Arc;

use tether_base::error::{ErrorContext, Result};

use super::gitignore::foreign_gitignores;
use super::ignore_rules::IgnoreRules;
use super::read_dir::WorkspaceRoot;
use super::scan::{KnownTree, scan_workspace};
use super::workspace_problem::WorkspaceProblem;

/// The size of the tracked part of a workspace.
#[derive(Debug)]
pub struct WorkspaceSize {
    /// Each needs one watch.
    pub folders: usize,
    /// Regular files and symlinks.
    pub files: usize,
    /// What is wrong with the ignore files.
    pub problems: Vec<WorkspaceProblem>,
}

/// Scans the workspace at `root` once.
///
/// # Errors
/// The folder cannot be opened.
pub fn measure_workspace(root: &Path) -> Result<WorkspaceSize> {
    let doing = || format!("cannot read {}", root.display());
    let (rules, mut problems) = IgnoreRules::load(root, &Arc::default());
    let empty = Arc::default();
    let known = KnownTree { tree: &empty, same_rules: false };
    let tree = scan_workspace(&WorkspaceRoot::open(root).doing(doing)?, &rules, known).doing(doing)?.tree;
    problems.extend(foreign_gitignores(root, &tree));
    Ok(WorkspaceSize { folders: tree.len(), files: tree.values().map(|folder| folder.len()).sum(), problems })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tracked_folders_and_files_are_counted() {
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
