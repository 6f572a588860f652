//! Which packages there are: the nearest to a folder, the members of another, all that lie near.
//!
//! Never leaves the workspace, and never goes on for ever. Must not know scripts.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::config::file;
use crate::config::jsonc::{JsonDocument, JsonNode};

/// How deep packages lie that nobody lists.
const NEAR: usize = 3;
/// How deep those lie at most that a pattern such as `libs/**` lists.
const DEEPEST: usize = 8;
/// More packages are not counted, more folders not opened.
const MOST: usize = 200;
const MOST_FOLDERS: usize = 5_000;

/// Folders with a package.json.
#[derive(Debug, Default)]
pub struct Found {
    pub folders: Vec<PathBuf>,
    /// There are more.
    pub more: bool,
}

/// The package that a package manager would take in this folder.
pub fn nearest(workspace: &Path, folder: &Path) -> Option<PathBuf> {
    upwards(workspace, folder).find(|folder| has_package(folder)).map(Path::to_owned)
}

/// The folder and those above it, not above the workspace.
pub fn upwards<'p>(workspace: &Path, folder: &'p Path) -> impl Iterator<Item = &'p Path> {
    let top = folder.starts_with(workspace).then(|| workspace.to_owned());
    let mut done = false;
    folder.ancestors().take_while(move |folder| !std::mem::replace(&mut done, top.as_deref() == Some(folder)))
}

/// Whether it is a folder, and really in the workspace: not by a link that leads out of it.
pub fn is_inside(workspace: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    folder.is_dir() && real(folder).zip(real(workspace)).is_some_and(|(folder, top)| folder.starts_with(top))
}

/// All that lie near.
pub fn near(workspace: &Path) -> Found {
    below(workspace, workspace, NEAR, |_| true)
}

/// The members of the package in this folder, with itself; `None` when it lists none.
pub fn members(workspace: &Path, root: &Path) -> Option<Found> {
    if let Ok(Some(text)) = file::read_text(&root.join("pnpm-workspace.yaml")) {
        return Some(below(workspace, root, depth(text.lines()), |_| true));
    }
    let document = JsonDocument::read(&root.join("package.json")).ok().flatten()?;
    let listed = document.root.get("workspaces")?;
    let listed = listed.get("packages").unwrap_or(listed);
    let patterns: Vec<&str> = listed.items().iter().filter_map(JsonNode::text).map(plain).collect();
    let Some(globs) = globs(&patterns) else { return Some(below(workspace, root, NEAR, |_| true)) };
    let fits = |path: &Path| path.as_os_str().is_empty() || globs.is_match(path);
    Some(below(workspace, root, depth(patterns.iter().copied()), fits))
}

/// `packages/*` of `./packages/*/`
fn plain(pattern: &str) -> &str {
    pattern.trim_start_matches("./").trim_end_matches('/')
}

/// How deep these patterns reach, at least [`NEAR`].
fn depth<'p>(patterns: impl Iterator<Item = &'p str>) -> usize {
    let deep = |pattern: &str| if pattern.contains("**") { DEEPEST } else { pattern.matches('/').count() + 1 };
    patterns.map(deep).max().unwrap_or(NEAR).clamp(NEAR, DEEPEST)
}

/// What is taken out again (`!…`) is seen all the same.
fn globs(patterns: &[&str]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.starts_with('!')) {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build().ok()?);
    }
    set.build().ok()
}

/// The packages in a folder and below it, the nearest first, whose path in it fits.
fn below(workspace: &Path, root: &Path, depth: usize, fits: impl Fn(&Path) -> bool) -> Found {
    let mut found = Found::default();
    let mut open = VecDeque::from([(root.to_owned(), 0)]);
    let mut opened = 0;
    while let Some((folder, deep)) = open.pop_front() {
        opened += 1;
        if found.folders.len() == MOST || opened > MOST_FOLDERS {
            return Found { more: true, ..found };
        }
        if deep < depth {
            open.extend(children(workspace, &folder).into_iter().map(|(child, linked)| {
                // Behind a link lies only what it leads to.
                (child, if linked { depth } else { deep + 1 })
            }));
        }
        if has_package(&folder) && folder.strip_prefix(root).is_ok_and(&fits) {
            found.folders.push(folder);
        }
    }
    found
}

/// The folders in a folder, and whether each is a link.
fn children(workspace: &Path, folder: &Path) -> Vec<(PathBuf, bool)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let kept = entries.filter_map(|entry| {
        let (kind, name) = (entry.file_type().ok()?, entry.file_name());
        let linked = kind.is_symlink() && is_inside(workspace, &entry.path());
        let skipped = name == "node_modules" || name == ".git";
        ((kind.is_dir() || linked) && !skipped).then(|| (entry.path(), linked))
    });
    let mut kept: Vec<(PathBuf, bool)> = kept.collect();
    kept.sort();
    kept
}

fn has_package(folder: &Path) -> bool {
    folder.join("package.json").symlink_metadata().is_ok()
}
