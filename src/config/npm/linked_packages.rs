//! Packages that `node_modules` links to, outside of the folder whose changes are noticed: a workspace opened inside a monorepo, or
//! `npm link`.

use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use crate::config::devtools_toml::settings::{DEVTOOLS_TOML, check_watch_root};

/// How many entries of a folder are looked at, and how many packages are named.
const MAX_ENTRIES: usize = 5_000;
const MAX_NAMED: usize = 3;

/// Names them, with the setting that includes them. `None`: there are none. Both paths are canonical. Blocks.
pub fn describe_unwatched_packages(workspace: &Path, watched: &Path) -> Option<String> {
    let modules = workspace.join("node_modules");
    let entries = list(&modules);
    let scopes = entries.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with('@'));
    let links: Vec<PathBuf> = entries
        .iter()
        .chain(scopes.flat_map(|scope| list(&scope.path())).collect::<Vec<_>>().iter())
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(DirEntry::path)
        .collect();
    let mut unwatched: Vec<(PathBuf, PathBuf)> = links
        .into_iter()
        .filter_map(|link| Some((link.strip_prefix(workspace).ok()?.to_owned(), link.canonicalize().ok()?)))
        .filter(|(_, target)| !target.starts_with(watched) && !is_installed(target) && target.is_dir())
        .collect();
    unwatched.sort();
    let first = unwatched.first()?;
    let root = unwatched.iter().fold(watched.to_owned(), |root, (_, target)| common_folder(&root, target));
    let named: Vec<String> = unwatched
        .iter()
        .take(MAX_NAMED)
        .map(|(link, _)| link.strip_prefix("node_modules").unwrap_or(link).display().to_string())
        .collect();
    let more = unwatched.len().saturating_sub(MAX_NAMED);
    let named = if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") };
    let (are, leads) = if unwatched.len() == 1 { ("is a link", "") } else { ("are links", " for example") };
    let what = format!(
        "{named} in node_modules {are} out of the watched folder,{leads} to {}: changes there are not noticed",
        first.1.display()
    );
    let setting = relative_root(workspace, &root).filter(|_| check_watch_root(workspace, &root).is_ok());
    Some(match setting {
        Some(root) => format!("{what}; `root = \"{root}\"` below `[watch]` in {DEVTOOLS_TOML} includes them"),
        None => what,
    })
}

fn list(folder: &Path) -> Vec<DirEntry> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES).collect()
}

/// A package manager's own copy, such as that of pnpm's store.
fn is_installed(target: &Path) -> bool {
    target.components().any(|part| part.as_os_str() == "node_modules")
}

fn common_folder(one: &Path, other: &Path) -> PathBuf {
    one.components().zip(other.components()).take_while(|(one, other)| one == other).map(|(part, _)| part).collect()
}

/// `../..`, if it is an ancestor.
fn relative_root(workspace: &Path, root: &Path) -> Option<String> {
    let below = workspace.strip_prefix(root).ok()?;
    let ups: Vec<&str> = below.components().filter(|part| matches!(part, Component::Normal(_))).map(|_| "..").collect();
    Some(ups.join("/")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_out_of_the_watched_folder_are_named_with_the_folder_that_includes_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let app = root.join("apps/web");
        for name in [
            "apps/web/node_modules/@mono",
            "apps/web/node_modules/plain",
            "packages/lib",
            "packages/ui",
            "node_modules/.pnpm/x",
        ] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        assert_eq!(describe_unwatched_packages(&app, &app), None);
        symlink(root.join("node_modules/.pnpm/x"), app.join("node_modules/x")).unwrap();
        symlink(root.join("nowhere"), app.join("node_modules/dangling")).unwrap();
        assert_eq!(describe_unwatched_packages(&app, &app), None);
        symlink(root.join("packages/lib"), app.join("node_modules/lib")).unwrap();
        let one = describe_unwatched_packages(&app, &app).unwrap();
        assert!(one.starts_with("lib in node_modules is a link out of") && one.contains("`root = \"../..\"`"), "{one}");
        symlink(root.join("packages/ui"), app.join("node_modules/@mono/ui")).unwrap();
        let two = describe_unwatched_packages(&app, &app).unwrap();
        assert!(two.starts_with("@mono/ui, lib in node_modules are links"), "{two}");
        assert_eq!(describe_unwatched_packages(&app, &root), None);
    }
}
