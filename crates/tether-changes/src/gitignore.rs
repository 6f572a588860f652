//! Applies the `.gitignore` files of nested folders during a directory walk.
//!
//! They are read and matched exactly as `.devtoolsignore` is. `.git/info/exclude`, `core.excludesFile` and `.ignore`
//! are not read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::file_owner::has_own;

use super::file_snapshot::FolderTree;
use super::ignore_file::foreign_file;
use super::ignore_rules::IgnoreRules;
use super::path_bytes;
use super::workspace_problem::WorkspaceProblem;

/// The name of git's ignore files.
pub(super) const GITIGNORE: &str = ".gitignore";

/// The `.gitignore` files among the tracked files of `root` that do not count, since strangers have put them there.
pub(super) fn foreign_gitignores(root: &Path, tree: &FolderTree) -> Vec<WorkspaceProblem> {
    let folders = tree.iter().filter(|(_, files)| files.find(GITIGNORE.as_bytes()).is_some());
    let files = folders.map(|(folder, _)| root.join(path_bytes::as_path(folder)).join(GITIGNORE));
    files.filter_map(|file| Some(WorkspaceProblem::new(&file, foreign_file(&file)?))).collect()
}

/// The `.gitignore` of one folder, and those of the folders above it. A deeper file overrides.
#[derive(Debug)]
pub struct GitignoreChain {
    folder: PathBuf,
    rules: IgnoreRules,
    parent: Option<Arc<GitignoreChain>>,
}

impl GitignoreChain {
    /// Reads the files of `folder` (absolute) and of the folders above it, up to the one that contains `.git`. Above it,
    /// files of other people do not count.
    pub fn load(folder: &Path) -> Arc<GitignoreChain> {
        let top = folder.ancestors().position(|above| has_own(above, ".git"));
        let above: Vec<_> = folder.ancestors().skip(1).take(top.unwrap_or(usize::MAX)).collect();
        let read_above = |parent, folder: &&Path| match has_own(folder, GITIGNORE) {
            true => Some(GitignoreChain::read(folder, parent)),
            false => parent,
        };
        GitignoreChain::read(folder, above.iter().rev().fold(None, read_above))
    }

    /// Reads the file of `folder` (absolute) only; without a `parent`, folders above it do not count.
    pub fn read(folder: &Path, parent: Option<Arc<GitignoreChain>>) -> Arc<GitignoreChain> {
        let rules = IgnoreRules::load_gitignore(folder);
        Arc::new(GitignoreChain { folder: folder.to_path_buf(), rules, parent })
    }

    /// The chain for `folder`, a folder directly in this one.
    pub fn enter(self: &Arc<Self>, folder: &Path) -> Arc<GitignoreChain> {
        let inner = GitignoreChain::read(folder, Some(Arc::clone(self)));
        if inner.rules.is_empty() { Arc::clone(self) } else { inner }
    }

    /// Whether git ignores `path`, an absolute path directly in a folder that is not ignored itself.
    pub fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let matched = path.strip_prefix(&self.folder).ok().and_then(|rel| self.rules.match_path(rel, is_dir));
        matched.unwrap_or_else(|| self.parent.as_ref().is_some_and(|parent| parent.is_ignored(path, is_dir)))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn a_deeper_file_overrides_and_files_above_the_repository_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("repository");
        fs::create_dir_all(repository.join("a/b/.hidden")).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        fs::write(folder.path().join(".gitignore"), "*\n").unwrap();
        fs::write(repository.join(".gitignore"), "out/\n/a/*.log\n*.tmp\n").unwrap();
        fs::write(repository.join("a/.gitignore"), "!out/\nb.txt\n").unwrap();
        let chain = GitignoreChain::load(&repository);
        let inner = chain.enter(&repository.join("a"));
        let below = GitignoreChain::load(&repository.join("a/b"));
        let check = |chain: &GitignoreChain, path: &str, is_dir: bool, expect: bool| {
            assert_eq!(chain.is_ignored(&repository.join(path), is_dir), expect, "{path}");
        };
        check(&chain, "out", true, true);
        check(&chain, "out", false, false);
        check(&chain, "dist", true, false);
        check(&inner, "a/out", true, false);
        check(&inner, "a/x.log", false, true);
        check(&inner, "a/b.txt", false, true);
        check(&below, "a/b/b.txt", false, true);
        check(&below, "a/b/x.tmp", false, true);
        check(&below, "a/b/x.log", false, false);
    }

    #[test]
    fn a_fifo_a_huge_file_and_a_symlink_give_no_rules_and_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = (folder.path().join(".gitignore"), folder.path().join("x.log"));
        let check = |what: &str| {
            assert!(!GitignoreChain::load(folder.path()).is_ignored(&path, false), "{what}");
            fs::remove_file(&file).unwrap();
        };
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        check("FIFO");
        fs::write(&file, "*.log\n").unwrap();
        File::options().append(true).open(&file).unwrap().set_len(500 << 20).unwrap();
        check("500 MiB");
        fs::write(folder.path().join("other"), "*.log\n").unwrap();
        std::os::unix::fs::symlink("other", &file).unwrap();
        check("symlink");
    }
}
