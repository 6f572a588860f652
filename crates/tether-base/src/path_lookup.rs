//! Finds programs on PATH.
//!
//! Does not depend on any other module.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The first of `names` that can be executed in a folder of `path` (the value of PATH).
pub fn find_on_path(names: &[&str], path: Option<&OsStr>) -> Option<PathBuf> {
    let path = path?;
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let candidates = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|file| is_program(file))
}

/// Whether this is a file that we may execute.
pub fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_preferred_name_wins_over_the_first_folder() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        make("one/plain", 0o644);
        let second = make("one/second", 0o755);
        let first = make("two/first", 0o755);
        let path = std::env::join_paths([folder.path().join("one"), folder.path().join("two")]).unwrap();
        let check = |names: &[&str], expect: Option<&Path>| {
            assert_eq!(find_on_path(names, Some(&path)).as_deref(), expect, "{names:?}")
        };
        check(&["first", "second"], Some(&first));
        check(&["plain", "second"], Some(&second));
        check(&["plain", "nothing"], None);
    }
}
