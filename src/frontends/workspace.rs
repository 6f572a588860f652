//! The workspace of a front end: the one that is named, else the nearest one upwards that is marked by the user.

use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};
use tether_base::file_owner::has_own;

use crate::config::launch_names_folder;

/// A folder with one of these is a workspace.
const TETHER_MARKERS: &[&str] = &["devtools.toml", ".devtoolsignore", ".devtools"];
/// Failing that, the nearest folder that looks like a project's root.
const PROJECT_MARKERS: &[&str] = &[LAUNCH_FILE, "package.json", ".git"];
const LAUNCH_FILE: &str = ".vscode/launch.json";

/// The named folder; else the nearest ancestor of `from` that is marked; else `from` itself. The marks of other people
/// do not count: in a folder that they may write, the workspace would be theirs.
pub fn find_workspace(named: Option<&Path>, from: &Path) -> PathBuf {
    if let Some(named) = named {
        return from.join(named);
    }
    let nearest = |marks: &[&str]| from.ancestors().find(|folder| marks.iter().any(|mark| has_own(folder, mark)));
    let project = || nearest(PROJECT_MARKERS).map(|folder| find_naming_root(folder).unwrap_or(folder));
    nearest(TETHER_MARKERS).or_else(project).unwrap_or(from).to_owned()
}

/// The folder above a package, up to the root of its repository, whose launch.json names the package: the package belongs
/// to that workspace. One with a launch.json of its own does not.
fn find_naming_root(package: &Path) -> Option<&Path> {
    if has_own(package, LAUNCH_FILE) || has_own(package, ".git") {
        return None;
    }
    let repository = package.ancestors().position(|folder| has_own(folder, ".git"))?;
    let above = package.ancestors().skip(1).take(repository);
    above.into_iter().find(|folder| has_own(folder, LAUNCH_FILE) && launch_names_folder(folder, package))
}

/// As [`find`], from the current folder.
pub fn find_workspace_here(named: Option<&Path>) -> Result<PathBuf> {
    let here = std::env::current_dir().doing(|| "cannot find the current folder".into())?;
    Ok(find_workspace(named, &here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_marked_folder_upwards_is_the_workspace() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("repo/packages/app/src");
        fs::create_dir_all(&deep).unwrap();
        let check = |named: Option<&str>, expect: &str| {
            assert_eq!(find_workspace(named.map(Path::new), &deep), home.path().join(expect));
        };
        check(None, "repo/packages/app/src");
        fs::create_dir(home.path().join("repo/.git")).unwrap();
        check(None, "repo");
        fs::write(home.path().join("repo/packages/app/package.json"), "{}").unwrap();
        check(None, "repo/packages/app");
        fs::create_dir(home.path().join("repo/.vscode")).unwrap();
        let launch = |path: &str| {
            format!(
                "{{\"configurations\": [{{\"args\": [\"--extensionDevelopmentPath=${{workspaceFolder}}/{path}\"]}}]}}"
            )
        };
        fs::write(home.path().join("repo/.vscode/launch.json"), launch("packages/other")).unwrap();
        check(None, "repo/packages/app");
        fs::write(home.path().join("repo/.vscode/launch.json"), launch("packages/app")).unwrap();
        check(None, "repo");
        fs::write(home.path().join("repo/devtools.toml"), "").unwrap();
        check(None, "repo");
        check(Some("lib"), "repo/packages/app/src/lib");
    }
}
