//! Resolves the name of a test to the run that a debugger starts: a pytest node id, or the name of a `cargo test`, a Go
//! test, or a test of Node, vitest or jest.
//!
//! The runner follows from the caller's language, from the form of the name, or from the only file that defines such a
//! test. Reads files only. Does not depend on debuggers, and runs no program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::{Error, ErrorKind, Result};

use crate::config::consent_line::ConsentLine;
use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::script_tests::{self, PackageRunner, exact_pattern};
use crate::config::named_test::test_files;

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
    /// `node --test-name-pattern=PATTERN FILE`; `name` is the test's whole name.
    Node { file: PathBuf, pattern: String, name: String },
    /// The same by the runner of the file's package.
    Package { by: PackageRunner, file: PathBuf, pattern: String, name: String },
}

/// Builds the tests of a Cargo package, and prints the paths of their programs as JSON lines.
pub const CARGO_TEST_BUILD: &[&str] = &["cargo", "test", "--no-run", "--message-format=json-render-diagnostics"];

/// The commands to which the user consents before tests are built.
pub fn build_consent_lines() -> Vec<ConsentLine> {
    vec![ConsentLine { text: format!("tests: {}", json!(CARGO_TEST_BUILD)), origin: None }]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestLanguage {
    Python,
    Rust,
    Go,
    JavaScript,
}

const TEST_LANGUAGES: [TestLanguage; 4] =
    [TestLanguage::Python, TestLanguage::Rust, TestLanguage::Go, TestLanguage::JavaScript];

impl NamedTest<'_> {
    /// The run of this test. Errors: there is no such test, or there are several; each names what to add. May read
    /// many files: blocks, so not for an async task.
    pub fn resolve(&self) -> Result<TestRun> {
        let language = match self.language {
            Some(language) => Some(test_language(language)?),
            None => self.language_by_shape(),
        };
        let mut found = match language {
            Some(TestLanguage::Python) if names_python_file(self.name) => vec![self.pytest_node()?],
            // Tests that a macro generates are in no source file: the name is checked against the built programs later.
            Some(TestLanguage::Rust) => vec![TestRun::Cargo { folder: self.cargo_folder()? }],
            Some(language) => self.search(language),
            None => TEST_LANGUAGES.into_iter().flat_map(|language| self.search(language)).collect(),
        };
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(self.not_found(language)),
            _ => Err(self.ambiguous(&found)),
        }
    }

    fn language_by_shape(&self) -> Option<TestLanguage> {
        if names_python_file(self.name) {
            return Some(TestLanguage::Python);
        }
        match self.program?.extension()?.to_str()? {
            "py" => Some(TestLanguage::Python),
            "rs" => Some(TestLanguage::Rust),
            "go" => Some(TestLanguage::Go),
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Some(TestLanguage::JavaScript),
            _ => None,
        }
    }

    /// The runs of all tests of this name in the source files.
    fn search(&self, language: TestLanguage) -> Vec<TestRun> {
        match language {
            TestLanguage::Python => self.pytest_search(),
            TestLanguage::Rust => self.cargo_search(),
            TestLanguage::Go => self.go_search(),
            TestLanguage::JavaScript => self.script_search(),
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

    fn script_search(&self) -> Vec<TestRun> {
        let has = |text: &str| !script_tests::find_tests(text, self.name).is_empty();
        let files = self.files(test_files::is_script_test, has);
        files.into_iter().flat_map(|file| self.script_runs(&file)).collect()
    }

    fn script_runs(&self, file: &Path) -> Vec<TestRun> {
        let text = test_files::read_source(file).unwrap_or_default();
        let by = script_tests::package_runner(file, &text, self.workspace);
        let run = |test| {
            let (file, name) = (file.to_owned(), script_tests::ScriptTest::full_name(&test));
            match by.clone() {
                Some(by) => TestRun::Package { by, file, pattern: script_tests::full_pattern(&test), name },
                None => TestRun::Node { file, pattern: script_tests::node_pattern(&text, &test), name },
            }
        };
        script_tests::find_tests(&text, self.name).into_iter().map(run).collect()
    }

    fn not_found(&self, language: Option<TestLanguage>) -> Error {
        let place = self.program.unwrap_or(self.workspace).display();
        let files = match language {
            Some(TestLanguage::Python) => "no test_*.py or *_test.py",
            Some(TestLanguage::Rust) => "no Rust source",
            Some(TestLanguage::Go) => "no *_test.go",
            Some(TestLanguage::JavaScript) => "no *.test.js (or .mjs, .cjs, .jsx, .ts, .tsx; or in a folder `test`)",
            None => {
                let because = format!(
                    "it is not a node id of pytest (`tests/test_a.py::test_b`), and no file in {place} has a test of that \
                     name for pytest, `cargo test`, `go test`, `node --test`, vitest or jest"
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
    /// What runs it.
    pub fn runner(&self) -> TestRunner {
        match self {
            TestRun::Pytest { .. } => TestRunner::Pytest,
            TestRun::Cargo { .. } => TestRunner::Cargo,
            TestRun::Go { .. } => TestRunner::Go,
            TestRun::Node { .. } => TestRunner::Node,
            TestRun::Package { by, .. } => by.runner,
        }
    }

    fn shell_command(&self, workspace: &Path) -> String {
        let in_workspace = |path: &Path| match path.strip_prefix(workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            inside => inside.unwrap_or(path).display().to_string(),
        };
        match self {
            TestRun::Pytest { node, .. } => format!("pytest {node}"),
            TestRun::Cargo { folder } => format!("cargo test in {}", in_workspace(folder)),
            TestRun::Go { package, .. } => format!("go test in {}", in_workspace(package)),
            TestRun::Node { file, name, .. } => format!("node --test {}: {name}", in_workspace(file)),
            TestRun::Package { by, file, name, .. } => {
                format!("{} {}: {name}", by.runner.command(), in_workspace(file))
            }
        }
    }
}

fn test_language(language: &str) -> Result<TestLanguage> {
    match language.to_lowercase().as_str() {
        "python" | "py" => Ok(TestLanguage::Python),
        "rust" | "rs" => Ok(TestLanguage::Rust),
        "go" | "golang" => Ok(TestLanguage::Go),
        "javascript" | "typescript" | "js" | "ts" | "node" => Ok(TestLanguage::JavaScript),
        _ => Err(Error::usage(format!("cannot run a test of {language:?} by its name"))
            .because("tests are known by name in python (pytest), rust, go and javascript (node --test, vitest, jest)")
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

#[cfg(test)]
mod tests;
