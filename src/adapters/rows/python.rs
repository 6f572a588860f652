//! Which Python runs a program: the workspace's own, or the machine's.
//!
//! Checks file names only. Does not depend on any debugger.

use std::path::{Path, PathBuf};

use crate::adapters::discovery::AdapterSearch;
use crate::error::{Error, ErrorKind, Result};
use crate::tools::is_program;

/// An interpreter, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonInterpreter {
    pub path: PathBuf,
    /// For users: `PATH`, `the workspace's .venv`, …
    pub place: &'static str,
}

/// The first of: the workspace's environments, the active one, PATH. Errors: [`ErrorKind::MissingTool`].
pub fn find_python(search: &AdapterSearch) -> Result<PythonInterpreter> {
    let below = |folder: Option<PathBuf>, place| folder.map(|folder| (folder.join("bin/python"), place));
    let variable = |name| search.var(name).map(PathBuf::from);
    let environments = [
        below(Some(search.workspace.join(".venv")), "the workspace's .venv"),
        below(Some(search.workspace.join("venv")), "the workspace's venv"),
        below(variable("VIRTUAL_ENV"), "VIRTUAL_ENV"),
        below(variable("CONDA_PREFIX"), "CONDA_PREFIX"),
    ];
    let own = environments.into_iter().flatten().find(|(path, _)| is_program(path));
    let on_path = || Some((resolve_pyenv_shim(search, search.on_path(&["python3", "python"])?), "PATH"));
    let found = own.or_else(on_path).map(|(path, place)| PythonInterpreter { path, place });
    found.ok_or_else(|| {
        Error::new(ErrorKind::MissingTool, "cannot find python")
            .because("it is not in the workspace's .venv or venv, in VIRTUAL_ENV or CONDA_PREFIX, or on PATH")
            .hint("`apt-get install python3` installs it; `python3 -m venv .venv` makes an environment")
    })
}

/// Folders in which an interpreter finds packages, by the layouts of virtual environments, Debian and `pip --user`.
pub fn package_folders(search: &AdapterSearch, python: &Path) -> Vec<PathBuf> {
    // Not resolved: an environment's interpreter is a link to the machine's.
    let prefix = python.parent().and_then(Path::parent).map(Path::to_owned);
    let user = search.home().map(|home| home.join(".local"));
    let mut all: Vec<PathBuf> =
        [prefix.clone(), user].into_iter().flatten().flat_map(|it| library_folders(&it)).collect();
    if prefix.as_deref() == Some(Path::new("/usr")) {
        all.extend(library_folders(Path::new("/usr/local")));
        all.push("/usr/lib/python3/dist-packages".into());
    }
    all
}

fn library_folders(prefix: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    versions.flat_map(|entry| ["site-packages", "dist-packages"].map(|folder| entry.path().join(folder))).collect()
}

/// The interpreter that a shim of pyenv would start: the shim is a shell script that takes longer than Python itself.
fn resolve_pyenv_shim(search: &AdapterSearch, found: PathBuf) -> PathBuf {
    let root = search.var("PYENV_ROOT").map(PathBuf::from).or_else(|| Some(search.home()?.join(".pyenv")));
    let Some(root) = root.filter(|root| found.starts_with(root.join("shims"))) else { return found };
    let version_file = |folder: &Path| std::fs::read_to_string(folder.join(".python-version")).ok();
    let text = search.var("PYENV_VERSION").and_then(|text| text.to_str()).map(str::to_owned);
    let text = text
        .or_else(|| search.workspace.ancestors().find_map(version_file))
        .or_else(|| std::fs::read_to_string(root.join("version")).ok());
    // Several versions may be listed; the first that is installed is used.
    let versions = text.as_deref().unwrap_or_default().split([':', ' ', '\n']).map(str::trim);
    let programs =
        versions.filter(|version| !version.is_empty()).map(|it| root.join("versions").join(it).join("bin/python"));
    programs.into_iter().find(|path| is_program(path)).unwrap_or(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn create_program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_workspaces_environment_wins_and_a_shim_is_resolved() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let env = [
            ("HOME".into(), home.path().into()),
            ("PATH".into(), at(".pyenv/shims").into()),
            ("VIRTUAL_ENV".into(), at("active").into()),
        ];
        let search =
            AdapterSearch { env: env.into(), workspace: at("work/deep"), configured: None, tools_folder: at("tools") };
        assert_eq!(find_python(&search).unwrap_err().kind, ErrorKind::MissingTool);
        let check = |expect: &str, place: &str| {
            assert_eq!(
                find_python(&search).unwrap(),
                PythonInterpreter { path: at(expect), place: Box::leak(place.to_owned().into()) }
            );
        };
        create_program(&at(".pyenv/shims/python3"));
        check(".pyenv/shims/python3", "PATH");
        create_program(&at(".pyenv/versions/3.12.1/bin/python"));
        std::fs::write(at(".pyenv/version"), "3.13.0\n3.12.1\n").unwrap();
        check(".pyenv/versions/3.12.1/bin/python", "PATH");
        create_program(&at(".pyenv/versions/3.9.1/bin/python"));
        std::fs::create_dir_all(at("work/deep")).unwrap();
        std::fs::write(at("work/.python-version"), "3.9.1\n").unwrap();
        check(".pyenv/versions/3.9.1/bin/python", "PATH");
        create_program(&at("active/bin/python"));
        check("active/bin/python", "VIRTUAL_ENV");
        create_program(&at("work/deep/venv/bin/python"));
        check("work/deep/venv/bin/python", "the workspace's venv");
        create_program(&at("work/deep/.venv/bin/python"));
        check("work/deep/.venv/bin/python", "the workspace's .venv");
    }
}
