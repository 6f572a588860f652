//! The files of the checkout that git would track: their text, their paths.
//!
//! Must not know any rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// One text file: its path from the top of the checkout with `/` between the parts, and what is in it.
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    /// For the checkers' own tests.
    #[cfg(test)]
    pub fn of(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Holds only tests, which a parent declares with `#[cfg(test)] mod tests;`.
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// A Rust file that ships.
    pub fn is_product(&self) -> bool {
        self.is_rust() && (self.path.starts_with("src/") || is_of_crate(&self.path))
    }
}

/// `crates/NAME/src/…`
fn is_of_crate(path: &str) -> bool {
    path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).is_some_and(|(_, rest)| rest.starts_with("src/"))
}

pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file below `top` that no `.gitignore` leaves out.
pub fn tracked(top: &Path) -> Vec<File> {
    walk(top).filter_map(|path| read(top, &path)).collect()
}

/// The paths of all files below `top` that no `.gitignore` leaves out, text or not, as in [`File::path`].
pub fn tracked_paths(top: &Path) -> BTreeSet<String> {
    walk(top).filter_map(|path| relative_path(top, &path)).collect()
}

fn walk(top: &Path) -> impl Iterator<Item = PathBuf> {
    let walk = WalkBuilder::new(top).hidden(false).filter_entry(|entry| entry.file_name() != ".git").build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(|entry| entry.into_path())
}

fn relative_path(top: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(top).ok()?.to_str()?.to_owned())
}

/// `None` for what is not text.
fn read(top: &Path, path: &Path) -> Option<File> {
    let text = fs::read_to_string(path).ok()?;
    Some(File { path: relative_path(top, path)?, text })
}
