//! What is asked for, a test by its name, and what is found: a test run.
//!
//! Does not depend on how tests are found.

use std::path::{Path, PathBuf};

use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::package_runner::PackageRunner;
use crate::config::named_test::test_files;

/// A test to debug, by its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedTest<'a> {
    /// The name as its runner prints it, or a file.
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

impl NamedTest<'_> {
    /// The files whose text satisfies `has`: `program` where that is a file, else those with a name that `fits` below
    /// `program` or the workspace.
    pub fn files(&self, fits: fn(&str) -> bool, has: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        match self.program {
            Some(file) if file.is_file() => {
                test_files::read_source(file).filter(|text| has(text)).map(|_| file.to_owned()).into_iter().collect()
            }
            Some(folder) => test_files::find_files(folder, fits, has),
            None => test_files::find_files(self.workspace, fits, has),
        }
    }

    /// A file, by its path from the working directory or from the workspace, and the folder that the path is from.
    pub fn find_file(&self, path: &str) -> Option<(&Path, PathBuf)> {
        let folders = [self.folder, self.workspace].into_iter();
        folders.map(|folder| (folder, folder.join(path))).find(|(_, file)| file.is_file())
    }

    /// The path from the workspace, for readers and runners.
    pub fn relative_path(&self, path: &Path) -> String {
        path.strip_prefix(self.workspace).unwrap_or(path).display().to_string()
    }
}

/// A test run, as the arguments of its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestRun {
    /// `python -m pytest NODE` in the folder, with the options that its configuration makes necessary.
    Pytest { node: String, folder: PathBuf, added: Vec<&'static str> },
    /// `python -m unittest ARGUMENTS` in the folder.
    Unittest { arguments: Vec<String>, folder: PathBuf },
    /// `python manage.py test LABEL` in the folder of manage.py.
    Django { manage: PathBuf, label: String },
    /// One of the programs that [`super::resolve::CARGO_TEST_BUILD`] builds in the folder has the test; or all tests of the
    /// program with this source file.
    Cargo { folder: PathBuf, source: Option<PathBuf> },
    /// `go test -run PATTERN` of the package.
    Go { package: PathBuf, pattern: String },
    /// `node --test-name-pattern=PATTERN FILE`; `name` is the test's whole name. Without a pattern: all tests of the file.
    Node { file: PathBuf, pattern: Option<String>, name: String },
    /// The same by the runner of the file's package.
    Package { by: PackageRunner, file: PathBuf, pattern: Option<String>, name: String },
    /// In the extension host of the package in the folder, by its `.vscode-test.*` file. Without a name: all tests of the file.
    Extension { folder: PathBuf, file: PathBuf, name: Option<String> },
    /// By RSpec, minitest or test-unit.
    Ruby(RubyTest),
    /// By JUnit's console launcher.
    Java(JavaTest),
}

/// A test in Ruby.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyTest {
    /// RSpec, or minitest and test-unit, which take the same arguments.
    pub runner: TestRunner,
    pub file: PathBuf,
    /// Its whole name for readers; empty for all tests of the file.
    pub name: String,
    /// For RSpec the line in which it begins, `12`; else a regular expression of its name. `None`: all tests of the file.
    pub selector: Option<String>,
    /// Where it is run: the folder of the project.
    pub folder: PathBuf,
    /// The project has a Gemfile.
    pub has_gemfile: bool,
}

/// A test in Java: a method, or all of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaTest {
    pub file: PathBuf,
    /// As Java's runtime names it: `com.example.OrdersTest$Deep`.
    pub class: String,
    /// With its types: `rows(int, java.lang.String)`.
    pub method: Option<String>,
}

impl JavaTest {
    /// `com.example.OrdersTest#rows(int)`
    pub fn selector(&self) -> String {
        let method = self.method.as_ref().map_or_else(String::new, |method| format!("#{method}"));
        format!("{}{method}", self.class)
    }
}

impl TestRun {
    /// What runs it.
    pub fn runner(&self) -> TestRunner {
        match self {
            TestRun::Pytest { .. } => TestRunner::Pytest,
            TestRun::Unittest { .. } => TestRunner::Unittest,
            TestRun::Django { .. } => TestRunner::Django,
            TestRun::Cargo { .. } => TestRunner::Cargo,
            TestRun::Go { .. } => TestRunner::Go,
            TestRun::Node { .. } => TestRunner::Node,
            TestRun::Package { by, .. } => by.runner,
            TestRun::Extension { .. } => TestRunner::Mocha,
            TestRun::Ruby(test) => test.runner,
            TestRun::Java(_) => TestRunner::Junit,
        }
    }

    /// The run as a command, for readers.
    pub fn shell_command(&self, workspace: &Path) -> String {
        let in_workspace = |path: &Path| match path.strip_prefix(workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            inside => inside.unwrap_or(path).display().to_string(),
        };
        let named = |file: &Path, name: &str| match name {
            "" => in_workspace(file),
            name => format!("{}: {name}", in_workspace(file)),
        };
        let command = self.runner().command();
        match self {
            TestRun::Pytest { node, .. } => format!("{command} {node}"),
            TestRun::Unittest { arguments, .. } => format!("{command} {}", arguments.join(" ")),
            TestRun::Django { label, .. } => format!("{command} {label}"),
            TestRun::Cargo { folder, .. } => format!("{command} in {}", in_workspace(folder)),
            TestRun::Go { package, .. } => format!("{command} in {}", in_workspace(package)),
            TestRun::Node { file, name, .. } | TestRun::Package { file, name, .. } => {
                format!("{command} {}", named(file, name))
            }
            TestRun::Extension { file, name, .. } => {
                format!("vscode-test {}", named(file, name.as_deref().unwrap_or_default()))
            }
            TestRun::Ruby(test) => format!("{command} {}", named(&test.file, &test.name)),
            TestRun::Java(test) => format!("{command} {}", named(&test.file, &test.selector())),
        }
    }
}
