//! The path by which a user has named a file that has another, canonical path.

use std::path::{Component, Path, PathBuf};

/// The name of a file as it was given, without `.` and `..`; `None` where that is its canonical path. Blocks.
pub fn name_as_given(path: &Path, canonical: &Path) -> Option<PathBuf> {
    let mut name = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(name.pop()),
            other => name.push(other),
        }
    }
    // Behind a link, `..` leads elsewhere.
    let leads_there = name != canonical && name.canonicalize().is_ok_and(|it| it == canonical);
    leads_there.then_some(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_is_kept_only_where_it_is_another_path_to_the_file() {
        let [workspace, elsewhere] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let workspace = workspace.path().canonicalize().unwrap();
        for folder in ["real", "libs"] {
            std::fs::create_dir(workspace.join(folder)).unwrap();
        }
        std::fs::write(workspace.join("real/app.py"), "").unwrap();
        symlink("real", workspace.join("linked")).unwrap();
        symlink(elsewhere.path(), workspace.join("libs/shop")).unwrap();
        let canonical = workspace.join("real/app.py");
        let check = |given: &str, expect: Option<&str>| {
            let name = name_as_given(&workspace.join(given), &canonical);
            assert_eq!(name, expect.map(|name| workspace.join(name)), "{given}");
        };
        check("real/app.py", None);
        check("libs/../real/app.py", None);
        check("linked/app.py", Some("linked/app.py"));
        check("libs/../linked/./app.py", Some("linked/app.py"));
        check("elsewhere/app.py", None);
    }
}
