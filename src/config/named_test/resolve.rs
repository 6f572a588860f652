//! Resolves the name of a test to the run that a debugger starts: a pytest node id, or the name of a `cargo test`, a Go
//! test or a Node test.
//!
//! The runner follows from the caller's language, from the form of the name, or from the only file that defines such a
//! test. Reads files only. Does not depend on debuggers, and runs no program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::consent_line::ConsentLine;
use crate::config::named_test::test_files;
use crate::config::vscode::shell_quoting::escape_characters;
use crate::error::{Error, ErrorKind, Result};

/// A test to debug, by its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedTest<'a> {
    /// The name as its runner prints it.
    pub name: &'a str,
    /// The caller's `language`; `None`: any supported one.
    pub language: Option<&'a str>,
    /// The file that defines the test, or the folder of its package; absolute.
    pub program: Option<&'a Path>,
    /// The caller's working directory; absolute.
    pub folder: &'a Path,
    /// The folder of the workspace; absolute.
    pub workspace: &'a Path,
}

/// A test run, as the arguments of its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestRun {
    /// `python -m pytest NODE` in the folder.
    Pytest { node: String, folder: PathBuf },
    /// One of the programs that [`CARGO_TEST_BUILD`] builds in the folder has the test.
    Cargo { folder: PathBuf },
    /// `go test -run PATTERN` of the package.
    Go { package: PathBuf, pattern: String },
    /// `node --test-name-pattern=PATTERN FILE`.
    Node { file: PathBuf, pattern: String },
}

/// Builds the tests of a Cargo package, and prints the paths of their programs as JSON lines.
pub const CARGO_TEST_BUILD: &[&str] = &["cargo", "test", "--no-run", "--message-format=json-render-diagnostics"];

/// The commands to which the user consents before tests are built.
pub fn build_consent_lines() -> Vec<ConsentLine> {
    vec![ConsentLine { text: format!("tests: {}", json!(CARGO_TEST_BUILD)), origin: None }]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestRunner {
    Pytest,
    Cargo,
    Go,
    Node,
}

const TEST_RUNNERS: [TestRunner; 4] = [TestRunner::Pytest, TestRunner::Cargo, TestRunner::Go, TestRunner::Node];

impl NamedTest<'_> {
    /// The run of this test. Errors: there is no such test, or there are several; each names what to add. May read
    /// many files: blocks, so not for an async task.
    pub fn resolve(&self) -> Result<TestRun> {
        let runner = match self.language {
            Some(language) => Some(runner_of_language(language)?),
            None => self.runner_by_shape(),
        };
        let mut found = match runner {
            Some(TestRunner::Pytest) if names_python_file(self.name) => vec![self.pytest_node()?],
            // Tests that a macro generates are in no source file: the name is checked against the built programs later.
            Some(TestRunner::Cargo) => vec![TestRun::Cargo { folder: self.cargo_folder()? }],
            Some(runner) => self.search(runner),
            None => TEST_RUNNERS.into_iter().flat_map(|runner| self.search(runner)).collect(),
        };
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(self.not_found(runner)),
            _ => Err(self.ambiguous(&found)),
        }
    }

    fn runner_by_shape(&self) -> Option<TestRunner> {
        if names_python_file(self.name) {
            return Some(TestRunner::Pytest);
        }
        match self.program?.extension()?.to_str()? {
            "py" => Some(TestRunner::Pytest),
            "rs" => Some(TestRunner::Cargo),
            "go" => Some(TestRunner::Go),
            "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => Some(TestRunner::Node),
            _ => None,
        }
    }

    /// The runs of all tests of this name in the source files.
    fn search(&self, runner: TestRunner) -> Vec<TestRun> {
        match runner {
            TestRunner::Pytest => self.pytest_search(),
            TestRunner::Cargo => self.cargo_search(),
            TestRunner::Go => self.go_search(),
            TestRunner::Node => self.node_search(),
        }
    }

    /// The files whose text satisfies `has`: `program` where that is a file, else those with a name that `fits` below
    /// `program` or the workspace.
    fn files(&self, fits: fn(&str) -> bool, has: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        match self.program {
            Some(file) if file.is_file() => {
                test_files::read_source(file).filter(|text| has(text)).map(|_| file.to_owned()).into_iter().collect()
            }
            Some(folder) => test_files::find_files(folder, fits, has),
            None => test_files::find_files(self.workspace, fits, has),
        }
    }

    fn pytest_node(&self) -> Result<TestRun> {
        let file = self.name.split("::").next().unwrap_or_default();
        let folder = [self.folder, self.workspace].into_iter().find(|folder| folder.join(file).is_file());
        let folder = folder.ok_or_else(|| {
            let looked = if self.folder == self.workspace { "" } else { ", nor in the workspace" };
            let because = format!("there is no {file} in {}{looked}", self.folder.display());
            let hint =
                "name it by pytest's node id: `tests/test_a.py::TestX::test_b`; `pytest --collect-only -q` lists them";
            self.not_resolved(because, hint)
        })?;
        Ok(TestRun::Pytest { node: self.name.to_owned(), folder: folder.to_owned() })
    }

    fn pytest_search(&self) -> Vec<TestRun> {
        let function = self.name.rsplit("::").next().unwrap_or_default();
        let function = function.split('[').next().unwrap_or_default();
        if !is_word(function) {
            return Vec::new();
        }
        let is_test = |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
        let def = format!("def {function}(");
        let files = self.files(is_test, |text| text.contains(&def));
        let nodes = files.iter().flat_map(|file| {
            let shown = file.strip_prefix(self.workspace).unwrap_or(file).display().to_string();
            let parameters = &self.name[self.name.find('[').unwrap_or(self.name.len())..];
            let names = test_files::python_names(&test_files::read_source(file).unwrap_or_default(), &def);
            names.into_iter().map(move |name| format!("{shown}::{name}{parameters}")).collect::<Vec<_>>()
        });
        let fits = nodes.filter(|node| node.ends_with(&format!("::{}", self.name)));
        fits.map(|node| TestRun::Pytest { node, folder: self.workspace.to_owned() }).collect()
    }

    fn cargo_search(&self) -> Vec<TestRun> {
        let parts: Vec<&str> = self.name.split("::").collect();
        let Some(last) = parts.last().filter(|_| parts.iter().all(|part| is_word(part))) else { return Vec::new() };
        let definition = format!("fn {last}(");
        let stands = |text: &str| text.contains(&definition) && text.contains("test");
        let files = self.files(|name| name.ends_with(".rs"), stands);
        let package = |file: &PathBuf| test_files::nearest_folder_with(file, self.workspace, "Cargo.toml");
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(package).collect();
        folders.into_iter().map(|folder| TestRun::Cargo { folder }).collect()
    }

    /// The folder of the Cargo package that contains `program` or the working directory, else the only package with
    /// such a test.
    fn cargo_folder(&self) -> Result<PathBuf> {
        let start = self.program.unwrap_or(self.folder);
        let found = test_files::nearest_folder_with(&start.join("x"), self.workspace, "Cargo.toml");
        let found = found.or_else(|| match &self.cargo_search()[..] {
            [TestRun::Cargo { folder }] => Some(folder.clone()),
            _ => None,
        });
        found.ok_or_else(|| {
            let because = format!("there is no Cargo.toml in or above {}, up to the workspace", start.display());
            self.not_resolved(because, "name the folder of its package: `cwd` (on the command line: run it there)")
        })
    }

    fn go_search(&self) -> Vec<TestRun> {
        let function = self.name.split('/').next().unwrap_or_default();
        if !["Test", "Benchmark", "Example", "Fuzz"].iter().any(|kind| function.starts_with(kind)) || !is_word(function)
        {
            return Vec::new();
        }
        let func = format!("func {function}(");
        let files = self.files(|name| name.ends_with("_test.go"), |text| text.contains(&func));
        let packages: BTreeSet<PathBuf> = files.iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        let parts: Vec<String> = self.name.split('/').map(exact_pattern).collect();
        packages.into_iter().map(|package| TestRun::Go { package, pattern: parts.join("/") }).collect()
    }

    fn node_search(&self) -> Vec<TestRun> {
        let quoted = ['"', '\'', '`'].map(|quote| format!("{quote}{}{quote}", self.name));
        let files = self.files(test_files::is_node_test, |text| quoted.iter().any(|name| text.contains(name)));
        let pattern = exact_pattern(self.name);
        files.into_iter().map(|file| TestRun::Node { file, pattern: pattern.clone() }).collect()
    }

    fn not_found(&self, runner: Option<TestRunner>) -> Error {
        let place = self.program.unwrap_or(self.workspace).display();
        let files = match runner {
            Some(TestRunner::Pytest) => "no test_*.py or *_test.py",
            Some(TestRunner::Cargo) => "no Rust source",
            Some(TestRunner::Go) => "no *_test.go",
            Some(TestRunner::Node) => "no *.test.js (or .mjs, .cjs, .ts; or in a folder `test`)",
            None => {
                let because = format!(
                    "it is no node id of pytest (`tests/test_a.py::test_b`), and no file in {place} has a test of that \
                     name for pytest, `cargo test`, `go test` or `node --test`"
                );
                let hint =
                    "name its `language` (python, rust, go, javascript), or the file in which it stands as `program`";
                return self.not_resolved(because, hint);
            }
        };
        self.not_resolved(format!("{files} in {place} has it"), "name the file in which it stands as `program`")
    }

    fn not_resolved(&self, because: String, hint: &str) -> Error {
        Error::new(ErrorKind::NotFound, format!("cannot debug the test {:?}", self.name)).because(because).hint(hint)
    }

    fn ambiguous(&self, found: &[TestRun]) -> Error {
        let found: Vec<String> = found.iter().map(|run| run.shell_command(self.workspace)).collect();
        Error::usage(format!("cannot tell which test {:?} is meant", self.name))
            .because(format!("there are several:\n{}", found.join("\n")))
            .hint("name the file in which it stands, or the folder of its package, as `program`; or its `language`")
    }
}

impl TestRun {
    fn shell_command(&self, workspace: &Path) -> String {
        let in_workspace = |path: &Path| match path.strip_prefix(workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            inside => inside.unwrap_or(path).display().to_string(),
        };
        match self {
            TestRun::Pytest { node, .. } => format!("pytest {node}"),
            TestRun::Cargo { folder } => format!("cargo test in {}", in_workspace(folder)),
            TestRun::Go { package, .. } => format!("go test in {}", in_workspace(package)),
            TestRun::Node { file, .. } => format!("node --test {}", in_workspace(file)),
        }
    }
}

fn runner_of_language(language: &str) -> Result<TestRunner> {
    match language.to_lowercase().as_str() {
        "python" | "py" => Ok(TestRunner::Pytest),
        "rust" | "rs" => Ok(TestRunner::Cargo),
        "go" | "golang" => Ok(TestRunner::Go),
        "javascript" | "typescript" | "js" | "ts" | "node" => Ok(TestRunner::Node),
        _ => Err(Error::usage(format!("cannot run a test of {language:?} by its name"))
            .because("tests are known by name in python (pytest), rust, go and javascript (node --test)")
            .hint("`tether debug launch PROGRAM -- ARGUMENTS` debugs any runner of tests")),
    }
}

/// Whether a pytest node id begins with a file: `tests/test_a.py`, `test_a.py::test_b`.
fn names_python_file(name: &str) -> bool {
    name.split("::").next().is_some_and(|file| file.ends_with(".py"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A regular expression of Go and of JavaScript that matches exactly this text.
fn exact_pattern(text: &str) -> String {
    format!("^{}$", escape_characters(text, r"\.+*?()|[]{}^$/"))
}

#[cfg(test)]
mod tests;
