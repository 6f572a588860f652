//! The links of a workspace that lead out of it: linked packages, shared folders.
//!
//! The search is bounded: what lies deep in a large workspace may not be found.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// How many entries of folders are looked at.
const MAX_ENTRIES: usize = 20_000;
/// How deep below the workspace a link may lie.
const MAX_DEPTH: usize = 5;
/// The folder of npm's packages: its packages are not searched.
const PACKAGES: &str = "node_modules";

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceLink {
    /// Where it lies.
    pub path: PathBuf,
    /// What it leads to, canonical.
    pub target: PathBuf,
}

/// A folder to be searched, with its depth below the workspace.
type Folder = (PathBuf, usize);

/// The links below a (canonical) workspace that lead out of it, the outermost first. Hidden folders are not searched. Blocks.
pub fn find_links(workspace: &Path) -> Vec<WorkspaceLink> {
    let mut folders: VecDeque<Folder> = VecDeque::from([(workspace.to_owned(), 1)]);
    let (mut links, mut left) = (Vec::new(), MAX_ENTRIES);
    while let Some((folder, depth)) = folders.pop_front() {
        let Ok(entries) = folder.read_dir() else { continue };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else { return links };
            left = fewer;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                links.extend(link_out_of(workspace, entry.path()));
            } else if kind.is_dir() && depth < MAX_DEPTH && is_searched(&folder, &entry) {
                folders.push_back((entry.path(), depth.saturating_add(1)));
            }
        }
    }
    links
}

/// Of npm's packages only the scopes: `@scope/name` may be a link.
fn is_searched(folder: &Path, entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let is_in_packages = folder.file_name().is_some_and(|it| it == PACKAGES);
    if is_in_packages { name.starts_with('@') } else { !name.starts_with('.') }
}

/// A link that leads above the workspace names nothing that the user means by it.
fn link_out_of(workspace: &Path, path: PathBuf) -> Option<WorkspaceLink> {
    let target = path.canonicalize().ok()?;
    let leads_out = !target.starts_with(workspace) && !workspace.starts_with(&target);
    leads_out.then_some(WorkspaceLink { path, target })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_that_lead_out_of_the_workspace_are_found() {
        let [workspace, elsewhere] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [workspace, elsewhere] = [&workspace, &elsewhere].map(|it| it.path().canonicalize().unwrap());
        let folders = ["node_modules/@scope", "node_modules/plain/inner", ".hidden", "a/b/c/d/e", "own"];
        for folder in folders {
            std::fs::create_dir_all(workspace.join(folder)).unwrap();
        }
        let out = ["node_modules/shop", "node_modules/@scope/shop", "a/b/c/d/shop", "shop"];
        let unseen = ["node_modules/plain/inner/shop", ".hidden/shop", "a/b/c/d/e/shop"];
        for link in out.iter().chain(&unseen) {
            symlink(&elsewhere, workspace.join(link)).unwrap();
        }
        symlink(workspace.join("own"), workspace.join("to-own")).unwrap();
        symlink("/", workspace.join("to-root")).unwrap();
        symlink("nowhere", workspace.join("broken")).unwrap();
        let found = find_links(&workspace);
        assert!(found.iter().all(|link| link.target == elsewhere), "{found:?}");
        let mut paths: Vec<&Path> = found.iter().map(|link| link.path.strip_prefix(&workspace).unwrap()).collect();
        assert_eq!(paths[0], Path::new("shop"));
        paths.sort();
        let mut expect = out.map(Path::new);
        expect.sort();
        assert_eq!(paths, expect);
    }
}
