//! The options of pytest with which a test of a project can be debugged: what its configuration turns on, and a debugger cannot
//! follow, is turned off.
//!
//! An option of a plugin is an error where the plugin is not installed: each is added only where the configuration names the
//! plugin's own.

use std::path::Path;

use crate::config::named_test::test_files::read_source;

/// Files with options of pytest.
const CONFIGURATIONS: [&str; 6] =
    ["pytest.ini", ".pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"];
/// Files that say which packages a project installs.
const REQUIREMENTS: [&str; 4] = ["requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "Pipfile"];
/// The variable with further options.
const VARIABLE: &str = "PYTEST_ADDOPTS";

/// The sections of these files that are pytest's.
const SECTIONS: [&str; 4] = ["[pytest]", "[tool:pytest]", "[tool.pytest.ini_options]", "[tool.pytest]"];

/// The options for a test in this folder of the workspace. `variable` is the value of [`VARIABLE`].
pub fn added_options(folder: &Path, workspace: &Path, variable: Option<&str>) -> Vec<&'static str> {
    let section = read_section(folder, workspace);
    let text = format!("{} {}", option_value(&section, "addopts"), variable.unwrap_or_default());
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "\"',=[]".contains(c)).collect();
    let has = |option: &str| words.contains(&option);
    let mut added = Vec::new();
    if has("--numprocesses") || has("--dist") || words.iter().any(|word| is_worker_count(word)) {
        added.push("-n0");
    }
    if words.iter().any(|word| word.starts_with("--cov")) {
        added.push("--no-cov");
    }
    if has("--timeout") || !option_value(&section, "timeout").is_empty() {
        added.push("--timeout=0");
    }
    added
}

/// `-n`, `-n4`, `-nauto`
fn is_worker_count(word: &str) -> bool {
    word.strip_prefix("-n")
        .is_some_and(|count| matches!(count, "" | "auto" | "logical") || count.chars().all(|c| c.is_ascii_digit()))
}

/// The value of an option, with the lines on which it goes on: those that are indented, or up to the end of a list.
fn option_value(section: &[String], name: &str) -> String {
    let is_option = |line: &String| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='));
    let Some(at) = section.iter().position(is_option) else { return String::new() };
    let first = section[at].split_once('=').map(|(_, value)| value.trim().to_owned()).unwrap_or_default();
    let is_list = first.starts_with('[') && !first.contains(']');
    let more = section[at + 1..].iter().take_while(|line| match is_list {
        true => !line.trim_start().starts_with(']'),
        false => line.starts_with([' ', '\t']),
    });
    std::iter::once(&first).chain(more).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The lines of the section that pytest reads: that of the nearest folder with one.
fn read_section(folder: &Path, workspace: &Path) -> Vec<String> {
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(workspace));
    let mut files = folders.flat_map(|folder| CONFIGURATIONS.iter().map(move |name| folder.join(name)));
    let section = |text: String| {
        let lines = text.lines().skip_while(|line| !SECTIONS.contains(&line.trim_end())).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('['));
        Some(lines.map(str::to_owned).collect::<Vec<_>>()).filter(|lines| !lines.is_empty())
    };
    files.find_map(|file| section(read_source(&file)?)).unwrap_or_default()
}

/// Whether a project names pytest, from the folder of a test up to the workspace.
pub fn names_pytest(folder: &Path, workspace: &Path) -> bool {
    let mut folders = folder.ancestors().take_while(|folder| folder.starts_with(workspace));
    folders.any(|folder| {
        folder.join("conftest.py").is_file()
            || CONFIGURATIONS[..3].iter().any(|name| folder.join(name).is_file())
            || CONFIGURATIONS[3..]
                .iter()
                .chain(&REQUIREMENTS)
                .any(|name| read_source(&folder.join(name)).is_some_and(|text| text.contains("pytest")))
    })
}

/// The value of [`VARIABLE`] in the environment of this process.
pub fn options_of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_configuration_turns_on_is_turned_off() {
        let check = |file: &str, text: &str, variable: Option<&str>, expect: &[&str]| {
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join(file), text).unwrap();
            let folder = place.path().join("tests");
            std::fs::create_dir(&folder).unwrap();
            assert_eq!(added_options(&folder, place.path(), variable), expect, "{file}: {text}");
        };
        check(
            "pytest.ini",
            "[pytest]\naddopts = -ra -n auto --cov=app\ntimeout = 10\n",
            None,
            &["-n0", "--no-cov", "--timeout=0"],
        );
        check(
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = [\n  \"-n4\",\n  \"--cov\",\n]\n",
            None,
            &["-n0", "--no-cov"],
        );
        check(
            "pytest.ini",
            "[pytest]\naddopts =\n    --cov-report=xml\n    -ra\nmarkers =\n    -n\n",
            None,
            &["--no-cov"],
        );
        check("setup.cfg", "[tool:pytest]\naddopts = --numprocesses=2 --timeout=5\n", None, &["-n0", "--timeout=0"]);
        check("tox.ini", "[pytest]\naddopts = -rA\ntimeout_method = thread\n", None, &[]);
        check("pyproject.toml", "[tool.pytest]\nx = 1\n[tool.other]\naddopts = \"-n 4\"\ntimeout = 3\n", None, &[]);
        check("pytest.ini", "[pytest]\n", Some("-nauto"), &["-n0"]);
    }

    #[test]
    fn a_project_names_pytest_in_its_configuration_or_requirements() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("app/tests");
        std::fs::create_dir_all(&folder).unwrap();
        let check = |file: &str, text: &str, expect: bool| {
            let file = place.path().join(file);
            std::fs::write(&file, text).unwrap();
            assert_eq!(names_pytest(&folder, place.path()), expect, "{}", file.display());
            std::fs::remove_file(file).unwrap();
        };
        check("pyproject.toml", "[project]\nname = \"app\"\n", false);
        check("pyproject.toml", "[dependency-groups]\ndev = [\"pytest>=8\"]\n", true);
        check("app/requirements-dev.txt", "pytest\n", true);
        check("app/tests/conftest.py", "", true);
        check("pytest.ini", "", true);
    }
}
