//! The repository of several packages that a folder lies in: its packages are linked to each other, and named without links.

use std::path::{Path, PathBuf};

use super::package_manifest::read_manifest;

/// Files that make a folder the root of several packages.
const MARKERS: [&str; 4] = ["pnpm-workspace.yaml", "lerna.json", "rush.json", "nx.json"];

/// The nearest folder above (or itself) that is the root of several packages. Reads files.
pub(crate) fn monorepo_root(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().filter(|above| above.parent().is_some()).find(|above| is_root(above)).map(Path::to_owned)
}

fn is_root(folder: &Path) -> bool {
    if MARKERS.iter().any(|marker| folder.join(marker).is_file()) {
        return true;
    }
    // As npm and yarn read it.
    read_manifest(folder).is_some_and(|manifest| manifest.get("workspaces").is_some_and(|it| !it.is_null()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_nearest_folder_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let app = root.join("repo/apps/web");
        std::fs::create_dir_all(&app).unwrap();
        std::fs::write(app.join("package.json"), r#"{"name": "web"}"#).unwrap();
        assert_eq!(monorepo_root(&app), None);
        std::fs::write(root.join("repo/package.json"), r#"{"workspaces": ["apps/*"]}"#).unwrap();
        assert_eq!(monorepo_root(&app), Some(root.join("repo")));
        std::fs::write(root.join("repo/apps/pnpm-workspace.yaml"), "packages: ['*']\n").unwrap();
        assert_eq!(monorepo_root(&app), Some(root.join("repo/apps")));
        assert_eq!(monorepo_root(Path::new("/")), None);
    }
}
