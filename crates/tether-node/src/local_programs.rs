//! Programs that the packages of a project bring: those in its `node_modules/.bin`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::monorepo::monorepo_root;

/// The program of that name in the nearest `node_modules/.bin`, from a folder upwards as far as the workspace, or as the
/// repository of several packages that the workspace lies in. Reads folders.
pub fn find_local_program(name: &str, folder: &Path, workspace: &Path) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, workspace) = (real(folder), real(workspace));
    let outermost = monorepo_root(&workspace).unwrap_or(workspace);
    let inside = folder.ancestors().take_while(|above| above.starts_with(&outermost));
    inside.map(|above| above.join("node_modules/.bin").join(name)).find(|program| program.is_file())
}

/// Whether a program is in one of the folders of `PATH`.
pub(crate) fn is_on_path(name: &str, path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| std::env::split_paths(path).any(|folder| folder.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_program_of_the_project_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |file: &str| {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
            root.join(file)
        };
        let outside = write("node_modules/.bin/tsx");
        let own = write("repo/apps/web/node_modules/.bin/vitest");
        let shared = write("repo/node_modules/.bin/tsx");
        let app = root.join("repo/apps/web");
        let find = |name: &str| find_local_program(name, &app, &app);
        assert_eq!((find("vitest"), find("tsx")), (Some(own), None), "above the workspace is another project");
        write("repo/pnpm-workspace.yaml");
        assert_eq!(find("tsx"), Some(shared));
        assert_eq!(find_local_program("tsx", &root, &root), Some(outside.clone()));
        let path = outside.parent().map(Path::as_os_str);
        assert!(is_on_path("tsx", path) && !is_on_path("none", path) && !is_on_path("tsx", None));
    }
}
