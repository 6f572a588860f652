//! Tests in Python: which runner of the project runs a test file, and what it calls the tests of a name.
//!
//! A node id (`tests/test_a.py::TestX::test_b`) is pytest's; a name with dots (`tests.test_a.TestX.test_b`) is that of unittest
//! and Django. The runner of any other name follows from the project: Django's for one with a manage.py and without pytest;
//! unittest's for a file of it in a project that does not name pytest.

use std::path::{Path, PathBuf};

use crate::config::named_test::nesting::Nesting;
use crate::config::named_test::pytest_options::{added_options, names_pytest, options_of_environment};
use crate::config::named_test::test_files::{is_word, nearest_folder_with, read_source};
use crate::config::named_test::test_run::{NamedTest, TestRun};

/// The files that lie at the top of a project.
const PROJECT_FILES: [&str; 4] = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"];

/// A test file, or one of its tests.
struct PythonTest<'a> {
    file: &'a Path,
    /// The classes around the test and its own name; empty for the whole file.
    path: Vec<String>,
    /// Of a parametrized test: `[1-2]`.
    parameters: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PythonRunner {
    Pytest,
    Unittest,
    Django { manage: PathBuf },
}

/// Whether a node id of pytest begins with a file: `tests/test_a.py`, `test_a.py::test_b`.
pub fn is_node_id(name: &str) -> bool {
    name.split("::").next().is_some_and(|file| file.ends_with(".py"))
}

/// The run of a node id, or of a whole file. `None`: there is no such file.
pub fn node_run(test: &NamedTest<'_>) -> Option<TestRun> {
    let (folder, file) = test.find_file(test.name.split("::").next()?)?;
    match test.name.contains("::") {
        true => Some(pytest_run(test, test.name.to_owned(), folder)),
        false => {
            let whole = PythonTest { file: &file, path: Vec::new(), parameters: "" };
            Some(match find_runner(test, &file) {
                PythonRunner::Pytest => pytest_run(test, test.name.to_owned(), folder),
                runner => whole.run(test, runner),
            })
        }
    }
}

/// The runs of this name.
pub fn search(test: &NamedTest<'_>) -> Vec<TestRun> {
    if let Some(run) = dotted_run(test) {
        return vec![run];
    }
    let (name, parameters) = test.name.split_at(test.name.find('[').unwrap_or(test.name.len()));
    let name = name.replace("::", ".");
    let last = name.rsplit('.').next().unwrap_or_default();
    if !name.split('.').all(is_word) {
        return Vec::new();
    }
    let files = test.files(is_python_test, |text| text.contains(&format!("def {last}(")) || has_class(text, last));
    let found = files.iter().flat_map(|file| {
        let text = read_source(file).unwrap_or_default();
        let paths = python_paths(&text, last).into_iter();
        let end = format!(".{name}");
        let paths = paths.filter(move |path| format!(".{}", path.join(".")).ends_with(&end));
        paths.map(move |path| PythonTest { file, path, parameters })
    });
    found.map(|found| found.run(test, find_runner(test, found.file))).collect()
}

/// The run of a name with the module's: `tests.test_a.TestX.test_b`. `None`: no file is named.
fn dotted_run(test: &NamedTest<'_>) -> Option<TestRun> {
    let parts: Vec<&str> = test.name.split('.').collect();
    if parts.len() < 2 || !parts.iter().all(|part| is_word(part)) {
        return None;
    }
    let (folder, file, count) = (1..=parts.len()).rev().find_map(|count| {
        let (folder, file) = test.find_file(&format!("{}.py", parts[..count].join("/")))?;
        Some((folder, file, count))
    })?;
    let text = read_source(&file)?;
    let inside = parts[count..].join(".");
    let last = parts.last()?;
    let has_it = inside.is_empty() || python_paths(&text, last).iter().any(|path| path.join(".") == inside);
    has_it.then(|| match nearest_folder_with(&file, test.workspace, "manage.py") {
        Some(folder) => {
            let path = parts[count..].iter().map(|part| (*part).to_owned()).collect();
            let named = PythonTest { file: &file, path, parameters: "" };
            named.run(test, PythonRunner::Django { manage: folder.join("manage.py") })
        }
        None => TestRun::Unittest { arguments: vec![test.name.to_owned()], folder: folder.to_owned() },
    })
}

fn find_runner(test: &NamedTest<'_>, file: &Path) -> PythonRunner {
    let text = read_source(file).unwrap_or_default();
    let folder = file.parent().unwrap_or(file);
    if text.contains("pytest") || names_pytest(folder, test.workspace) {
        return PythonRunner::Pytest;
    }
    match nearest_folder_with(file, test.workspace, "manage.py") {
        Some(folder) => PythonRunner::Django { manage: folder.join("manage.py") },
        None if text.contains("unittest") => PythonRunner::Unittest,
        None => PythonRunner::Pytest,
    }
}

fn pytest_run(test: &NamedTest<'_>, node: String, folder: &Path) -> TestRun {
    let file = folder.join(node.split("::").next().unwrap_or_default());
    let variable = options_of_environment();
    let added = added_options(file.parent().unwrap_or(folder), test.workspace, variable.as_deref());
    TestRun::Pytest { node, folder: folder.to_owned(), added }
}

impl PythonTest<'_> {
    fn run(&self, test: &NamedTest<'_>, runner: PythonRunner) -> TestRun {
        match runner {
            PythonRunner::Pytest => {
                let shown = test.relative_path(self.file);
                let names = std::iter::once(shown).chain(self.path.iter().cloned()).collect::<Vec<_>>();
                pytest_run(test, names.join("::") + self.parameters, test.workspace)
            }
            PythonRunner::Unittest => self.unittest_run(test.workspace),
            PythonRunner::Django { manage } => {
                let module = module_name(self.file, manage.parent().unwrap_or(Path::new("/")));
                let label = std::iter::once(&module).chain(&self.path).map(String::as_str).collect::<Vec<_>>();
                TestRun::Django { label: label.join("."), manage }
            }
        }
    }

    /// As `python -m unittest discover` finds it, which imports the file as the project's own runs do.
    fn unittest_run(&self, workspace: &Path) -> TestRun {
        let start = self.file.parent().unwrap_or(workspace);
        let nearest = PROJECT_FILES.iter().filter_map(|name| nearest_folder_with(self.file, workspace, name));
        let folder = nearest.max_by_key(|folder| folder.components().count()).unwrap_or_else(|| workspace.to_owned());
        // A package is imported from the folder above it.
        let top = start.ancestors().find(|folder| !folder.join("__init__.py").is_file()).unwrap_or(start);
        let shown = |path: &Path| match path.strip_prefix(&folder) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            inside => inside.unwrap_or(path).display().to_string(),
        };
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut arguments: Vec<String> =
            ["discover", "-s", &shown(start), "-t", &shown(top), "-p", &name].map(str::to_owned).into();
        if !self.path.is_empty() {
            let is_class = self.path.last().is_some_and(|last| !last.starts_with("test"));
            let end = if is_class { ".*" } else { "" };
            arguments.extend(["-k".to_owned(), format!("*.{}{end}", self.path.join("."))]);
        }
        TestRun::Unittest { arguments, folder }
    }
}

/// The name by which a file is imported from a folder: `polls.tests`.
fn module_name(file: &Path, folder: &Path) -> String {
    let inside = file.strip_prefix(folder).unwrap_or(file).with_extension("");
    let parts = inside.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.filter(|part| part != "__init__").collect::<Vec<_>>().join(".")
}

fn is_python_test(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    // Django's templates put an application's tests into `tests.py`.
    base.ends_with(".py") && (base.starts_with("test_") || base.ends_with("_test.py") || base == "tests.py")
}

fn has_class(text: &str, name: &str) -> bool {
    [":", "("].iter().any(|end| text.contains(&format!("class {name}{end}")))
}

/// The functions and classes of a name in a source text, each with the classes around it.
fn python_paths(text: &str, name: &str) -> Vec<Vec<String>> {
    let mut classes: Nesting<&str> = Nesting::new();
    let mut paths = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        classes.visit(line);
        let code = line.trim_start();
        let class = code.strip_prefix("class ").map(|rest| rest.split(['(', ':', ' ']).next().unwrap_or_default());
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("def ");
        if class.or(function.and_then(|rest| rest.split('(').next())) == Some(name) {
            paths.push(classes.iter().map(|it| (*it).to_owned()).chain([name.to_owned()]).collect());
        }
        if let Some(class) = class {
            classes.enter(line, class);
        }
    }
    paths
}
