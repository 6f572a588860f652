//! Which Python runs a program: the workspace's own, or the machine's.
//!
//! Checks file names only. Does not depend on any debugger.

use std::path::{Path, PathBuf};

use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::file_owner::has_own;
use tether_tools::is_program;

use crate::adapters::discovery::AdapterSearch;
use crate::workspace::workspace_programs::{PYTHON_ENVIRONMENTS, PYTHON_INTERPRETERS, interpreter_in_workspace};

/// A larger `.python-version` is none, in bytes.
const MAX_VERSION_BYTES: u64 = 4096;

/// An interpreter, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonInterpreter {
    pub path: PathBuf,
    /// For users: `PATH`, `the workspace's .venv`, …
    pub place: &'static str,
    /// What was passed over for want of consent.
    pub note: Option<String>,
}

/// The first of: the workspace's environments, with the user's consent; the active one, with consent if it lies in the
/// workspace; PATH, without environments that lack consent. Errors: [`ErrorKind::MissingTool`]; [`ErrorKind::NotTrusted`] when only the workspace has one.
pub fn find_python(search: &AdapterSearch) -> Result<PythonInterpreter> {
    let (usable, untrusted): (Vec<_>, Vec<_>) = environment_interpreters(search)
        .into_iter()
        .filter(|it| is_program(&it.path))
        .partition(|it| !it.in_workspace || search.consent.is_consented(&it.path));
    let own = usable.into_iter().next().map(|it| (it.path, it.place));
    let on_path = || Some((resolve_pyenv_shim(search, find_on_path(search, &untrusted)?), "PATH"));
    let passed_over =
        untrusted.first().map(|it| (format!("{} is not trusted", it.path.display()), it.consent_hint(search)));
    let note = passed_over.as_ref().map(|(why, hint)| format!("{why}, and was not used: {hint}"));
    match (own.or_else(on_path), passed_over) {
        (Some((path, place)), _) => Ok(PythonInterpreter { path, place, note }),
        (None, Some((why, hint))) => {
            let error = Error::new(ErrorKind::NotTrusted, "cannot run the workspace's python");
            Err(error.because(format!("{why}, and there is no other")).hint(hint))
        }
        (None, None) => Err(Error::new(ErrorKind::MissingTool, "cannot find python")
            .because("it is not in the workspace's .venv or venv, in VIRTUAL_ENV or CONDA_PREFIX, or on PATH")
            .hint("`apt-get install python3` installs it; `python3 -m venv .venv` makes an environment")),
    }
}

/// The interpreter of an environment, which may not be there.
struct EnvironmentInterpreter {
    path: PathBuf,
    place: &'static str,
    /// It needs the user's consent.
    in_workspace: bool,
}

impl EnvironmentInterpreter {
    /// The active environment of the user's terminal is only seen by a command with the same variable.
    fn consent_hint(&self, search: &AdapterSearch) -> String {
        let value =
            search.var(self.place).map(|value| format!("with {}={} in the environment, ", self.place, value.display()));
        value.unwrap_or_default() + &search.consent.hint()
    }
}

/// Those of the workspace, then the active ones. One that is active and in the workspace is the workspace's choice: editors
/// activate what they find there.
fn environment_interpreters(search: &AdapterSearch) -> Vec<EnvironmentInterpreter> {
    let of_workspace = PYTHON_INTERPRETERS.iter().map(|it| EnvironmentInterpreter {
        path: search.workspace.join(it.path),
        place: it.place,
        in_workspace: true,
    });
    let active = PYTHON_ENVIRONMENTS.iter().filter_map(|place| {
        let folder = Path::new(search.var(place)?);
        let inside = interpreter_in_workspace(&search.workspace, folder);
        let path = inside.as_ref().map_or_else(|| folder.join("bin/python"), |path| search.workspace.join(path));
        Some(EnvironmentInterpreter { path, place, in_workspace: inside.is_some() })
    });
    of_workspace.chain(active).collect()
}

/// Python on PATH, which an activated environment has extended by its own folder: passed over if it lacks consent.
fn find_on_path(search: &AdapterSearch, untrusted: &[EnvironmentInterpreter]) -> Option<PathBuf> {
    let is_untrusted = |folder: &Path| {
        let inside = folder.parent().and_then(|environment| interpreter_in_workspace(&search.workspace, environment));
        inside.is_some_and(|path| untrusted.iter().any(|it| it.path == search.workspace.join(&path)))
    };
    let folders = std::env::split_paths(search.var("PATH")?).filter(|folder| !is_untrusted(folder));
    tether_tools::find_on_path(&["python3", "python"], Some(&std::env::join_paths(folders).ok()?))
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

/// The folders below `prefix` in which its interpreters find packages.
pub fn library_folders(prefix: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let versions = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    versions.flat_map(|entry| ["site-packages", "dist-packages"].map(|folder| entry.path().join(folder))).collect()
}

/// The interpreter that a shim of pyenv would start: the shim is a shell script that takes longer than Python itself.
fn resolve_pyenv_shim(search: &AdapterSearch, found: PathBuf) -> PathBuf {
    let root = search.var("PYENV_ROOT").map(PathBuf::from).or_else(|| Some(search.home()?.join(".pyenv")));
    let Some(root) = root.filter(|root| found.starts_with(root.join("shims"))) else { return found };
    // The folders above the workspace may be anybody's.
    let version_file = |folder: &Path| has_own(folder, ".python-version").then(|| read_versions(folder)).flatten();
    let text = search.var("PYENV_VERSION").and_then(|text| text.to_str()).map(str::to_owned);
    let text = text
        .or_else(|| search.workspace.ancestors().find_map(version_file))
        .or_else(|| read_version_file(&root.join("version"), Links::Follow));
    // Several versions may be listed; the first that is installed is used.
    let versions = text.as_deref().unwrap_or_default().split([':', ' ', '\n']).map(str::trim);
    let programs = versions.filter(|it| is_version(it)).map(|it| root.join("versions").join(it).join("bin/python"));
    programs.into_iter().find(|path| is_program(path)).unwrap_or(found)
}

/// The text of a `.python-version`: a small regular file.
fn read_versions(folder: &Path) -> Option<String> {
    read_version_file(&folder.join(".python-version"), Links::Refuse)
}

fn read_version_file(file: &Path, links: Links) -> Option<String> {
    bounded_file::read_text(file, MAX_VERSION_BYTES, links).ok()
}

/// Whether this names one of pyenv's versions (`3.12.1`, `pypy3.10-7.3.12`, `my_env`) and no path to another program.
fn is_version(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::workspace::workspace_programs::ProgramConsent;

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
        let mut search = AdapterSearch {
            env: env.into(),
            workspace: at("project/deep"),
            consent: ProgramConsent::default(),
            configured: None,
            tools_folder: at("tools"),
        };
        assert_eq!(find_python(&search).unwrap_err().kind, ErrorKind::MissingTool);
        let check = |search: &AdapterSearch, expect: &str, place: &str| {
            let found = find_python(search).unwrap();
            assert_eq!((found.path, found.place), (at(expect), place));
            found.note
        };
        create_program(&at(".pyenv/shims/python3"));
        check(&search, ".pyenv/shims/python3", "PATH");
        create_program(&at(".pyenv/versions/3.12.1/bin/python"));
        std::fs::write(at(".pyenv/version"), "3.13.0\n3.12.1\n").unwrap();
        check(&search, ".pyenv/versions/3.12.1/bin/python", "PATH");
        create_program(&at(".pyenv/versions/3.9.1/bin/python"));
        std::fs::create_dir_all(at("project/deep")).unwrap();
        std::fs::write(at("project/.python-version"), "3.9.1\n").unwrap();
        check(&search, ".pyenv/versions/3.9.1/bin/python", "PATH");
        // A path is no version.
        create_program(&at("project/evil/bin/python"));
        for text in [at("project/evil").display().to_string(), "../../project/evil".to_owned(), "..".to_owned()] {
            std::fs::write(at("project/deep/.python-version"), &text).unwrap();
            check(&search, ".pyenv/shims/python3", "PATH");
        }
        create_program(&at("active/bin/python"));
        check(&search, "active/bin/python", "VIRTUAL_ENV");
        let environments = ["project/deep/venv/bin/python", "project/deep/.venv/bin/python"];
        for path in environments {
            create_program(&at(path));
            let note = check(&search, "active/bin/python", "VIRTUAL_ENV").unwrap();
            assert!(note.contains(&format!("{path} is not trusted")), "{note}");
        }
        // An active environment of the workspace, by a link and on PATH too, is the workspace's.
        create_program(&at("project/deep/env/bin/python"));
        create_program(&at("project/deep/env/bin/python3"));
        std::os::unix::fs::symlink(at("project/deep/env"), at("link")).unwrap();
        for active in ["project/deep/env", "link"] {
            search.env.insert("VIRTUAL_ENV".into(), at(active).into());
            let path = [at(active).join("bin"), at(".pyenv/shims")];
            search.env.insert("PATH".into(), std::env::join_paths(path).unwrap());
            check(&search, ".pyenv/shims/python3", "PATH");
        }
        search.consent.consented.insert(at("project/deep/env/bin/python"));
        check(&search, "project/deep/env/bin/python", "VIRTUAL_ENV");
        for (path, place) in environments.into_iter().zip(["the workspace's venv", "the workspace's .venv"]) {
            search.consent.consented.insert(at(path));
            check(&search, path, place);
        }
    }
}
