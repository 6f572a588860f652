//! Searches a folder for the source files that define a test, within bounds and without ignored or installed files.
//!
//! Why not by the walker of the crate `ignore`: see `npm::package_search`. Does not depend on how tests are run: of a runner it
//! has only the naming of files and of Python functions.

use std::path::{Path, PathBuf};

use tether_changes::GitignoreChain;

use crate::config::source_file::read_text;

/// In directory entries: more than source trees have in practice, and few enough to read in seconds.
const MOST_FILES: usize = 100_000;
/// Names of folders with installed packages or build outputs.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "target", "dist", "venv", "__pycache__", "vendor", "site-packages"];

/// The files below a folder whose name `fits` and whose text satisfies `has`, sorted. `fits` receives the base name,
/// then the path from `folder` (inclusive). Hidden files and those that git ignores are skipped.
pub fn find_files(folder: &Path, fits: impl Fn(&str) -> bool, has: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    // Node finds tests by the folder name `test`, which may be that of `folder` itself.
    let above = folder.parent().unwrap_or(folder);
    let name = |path: &Path| path.strip_prefix(above).unwrap_or(path).to_string_lossy().into_owned();
    let fitting = list_files(folder).into_iter().filter(|path| {
        let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fits(&base) || fits(&name(path))
    });
    let mut found: Vec<PathBuf> = fitting.filter(|path| read_source(path).is_some_and(|text| has(&text))).collect();
    found.sort();
    found
}

/// The regular files among the first [`MOST_FILES`] entries below a folder. Follows no symlink.
fn list_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), GitignoreChain::load(folder))];
    let mut entries_left = MOST_FILES;
    while let Some((folder, git)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            let skipped = name.starts_with('.') || SKIPPED_FOLDERS.contains(&name.as_ref());
            if skipped || git.is_ignored(&path, kind.is_dir()) {
                continue;
            }
            if entries_left == 0 {
                return files;
            }
            entries_left -= 1;
            if kind.is_dir() {
                folders.push((path.clone(), git.enter(&path)));
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files
}

/// The text of a file; `None` where it cannot be read, is not UTF-8 or is larger than 1 MiB.
pub fn read_source(file: &Path) -> Option<String> {
    read_text(file).ok().flatten()
}

/// The nearest folder above `file` that has a file of this name; searches up to the workspace, inclusive.
pub fn nearest_folder_with(file: &Path, workspace: &Path, name: &str) -> Option<PathBuf> {
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
    folders.into_iter().find(|folder| folder.join(name).is_file()).map(Path::to_owned)
}

/// Whether `node --test`, vitest or jest takes this file for a test: by its base name, or by a folder in the path.
/// Source: <https://nodejs.org/api/test.html#running-tests-from-the-command-line>
pub fn is_script_test(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    let Some((stem, "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx")) = base.rsplit_once('.') else {
        return false;
    };
    let in_folder = path.split('/').rev().skip(1).any(|folder| matches!(folder, "test" | "tests" | "__tests__"));
    in_folder
        || stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test", ".spec"].iter().any(|end| stem.ends_with(end))
}

/// Whether a text is one name of a programming language.
pub fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
