//! The repository of several packages that a folder lies in: its packages are linked to each other, and named without links.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tether_base::bounded_file::{self, Links};

/// The largest `package.json` that is read, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// Files that make a folder the root of several packages.
const MARKERS: [&str; 4] = ["pnpm-workspace.yaml", "lerna.json", "rush.json", "nx.json"];

/// What npm and yarn read of the root's manifest.
#[derive(Deserialize)]
struct Manifest {
    workspaces: Option<serde::de::IgnoredAny>,
}

/// The nearest folder above (or itself) that is the root of several packages. Reads files.
pub(crate) fn monorepo_root(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().filter(|above| above.parent().is_some()).find(|above| is_root(above)).map(Path::to_owned)
}

fn is_root(folder: &Path) -> bool {
    if MARKERS.iter().any(|marker| folder.join(marker).is_file()) {
        return true;
    }
    let manifest = bounded_file::read_file(&folder.join("package.json"), MAX_MANIFEST, Links::Follow);
    let manifest = manifest.ok().and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
    manifest.is_some_and(|manifest| manifest.workspaces.is_some())
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
