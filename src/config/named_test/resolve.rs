//! Resolves the name of a test to the run that a debugger starts: a pytest node id, or the name of a test of another runner, or
//! a file with tests.
//!
//! The runner follows from the caller's language, from the form of the name, or from the only file that defines such a
//! test. Reads files only. Does not depend on debuggers, and runs no program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::{Error, ErrorKind, Result};

use crate::config::consent_line::ConsentLine;
use crate::config::named_test::test_files::{self, is_word};
use crate::config::named_test::test_run::{NamedTest, TestRun};
use crate::config::named_test::{go_tests, java_tests, python_tests, ruby_tests, script_tests};

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
    Ruby,
    Java,
}

const TEST_LANGUAGES: [TestLanguage; 6] = [
    TestLanguage::Python,
    TestLanguage::Rust,
    TestLanguage::Go,
    TestLanguage::JavaScript,
    TestLanguage::Ruby,
    TestLanguage::Java,
];
/// Their names, as a caller may give them.
const LANGUAGE_NAMES: &str = "python, rust, go, javascript, ruby, java";

impl NamedTest<'_> {
    /// The run of this test. Errors: there is no such test, or there are several; each names what to add. May read
    /// many files: blocks, so not for an async task.
    pub fn resolve(&self) -> Result<TestRun> {
        let language = match self.language {
            Some(language) => Some(test_language(language, self.name)?),
            None => self.language_by_shape(),
        };
        if let Some(run) = self.whole_file(language) {
            return Ok(run);
        }
        let mut found = match language {
            Some(TestLanguage::Python) if python_tests::is_node_id(self.name) => vec![self.pytest_node()?],
            // Tests that a macro generates are in no source file: the name is checked against the built programs later.
            Some(TestLanguage::Rust) => vec![TestRun::Cargo { folder: self.cargo_folder()?, source: None }],
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
        if python_tests::is_node_id(self.name) {
            return Some(TestLanguage::Python);
        }
        let named = self.find_file(self.name).map(|(_, file)| file);
        language_of_file(named.as_deref().or(self.program)?)
    }

    /// All tests of a file, where the name is that of a file.
    fn whole_file(&self, language: Option<TestLanguage>) -> Option<TestRun> {
        if let Some(run) = ruby_tests::file_run(self) {
            return Some(run);
        }
        let (_, file) = self.find_file(self.name)?;
        match language? {
            TestLanguage::Rust => {
                let folder = test_files::nearest_folder_with(&file, self.workspace, "Cargo.toml")?;
                Some(TestRun::Cargo { folder, source: Some(file) })
            }
            TestLanguage::Go => go_tests::whole_file(&file),
            TestLanguage::JavaScript => Some(script_tests::whole_file(&file, self.workspace)),
            TestLanguage::Java => java_tests::whole_file(&file),
            TestLanguage::Python | TestLanguage::Ruby => None,
        }
    }

    /// The runs of all tests of this name in the source files.
    fn search(&self, language: TestLanguage) -> Vec<TestRun> {
        match language {
            TestLanguage::Python => python_tests::search(self),
            TestLanguage::Rust => self.cargo_search(),
            TestLanguage::Go => go_tests::search(self),
            TestLanguage::JavaScript => script_tests::search(self),
            TestLanguage::Ruby => ruby_tests::search(self),
            TestLanguage::Java => java_tests::search(self),
        }
    }

    fn pytest_node(&self) -> Result<TestRun> {
        python_tests::node_run(self).ok_or_else(|| {
            let file = self.name.split("::").next().unwrap_or_default();
            let looked = if self.folder == self.workspace { "" } else { ", nor in the workspace" };
            let because = format!("there is no {file} in {}{looked}", self.folder.display());
            let hint =
                "name it by pytest's node id: `tests/test_a.py::TestX::test_b`; `pytest --collect-only -q` lists them";
            self.not_resolved(because, hint)
        })
    }

    fn cargo_search(&self) -> Vec<TestRun> {
        let parts: Vec<&str> = self.name.split("::").collect();
        let Some(last) = parts.last().filter(|_| parts.iter().all(|part| is_word(part))) else { return Vec::new() };
        let definition = format!("fn {last}(");
        let stands = |text: &str| text.contains(&definition) && text.contains("test");
        let files = self.files(|name| name.ends_with(".rs"), stands);
        let package = |file: &PathBuf| test_files::nearest_folder_with(file, self.workspace, "Cargo.toml");
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(package).collect();
        folders.into_iter().map(|folder| TestRun::Cargo { folder, source: None }).collect()
    }

    /// The folder of the Cargo package that contains `program` or the working directory, else the only package with
    /// such a test.
    fn cargo_folder(&self) -> Result<PathBuf> {
        let start = self.program.unwrap_or(self.folder);
        let found = test_files::nearest_folder_with(&start.join("x"), self.workspace, "Cargo.toml");
        let found = found.or_else(|| match &self.cargo_search()[..] {
            [TestRun::Cargo { folder, .. }] => Some(folder.clone()),
            _ => None,
        });
        found.ok_or_else(|| {
            let because = format!("there is no Cargo.toml in or above {}, up to the workspace", start.display());
            self.not_resolved(because, "name the folder of its package: `cwd` (on the command line: run it there)")
        })
    }

    fn not_found(&self, language: Option<TestLanguage>) -> Error {
        let place = self.program.unwrap_or(self.workspace).display();
        let files = match language {
            Some(TestLanguage::Python) => "no test_*.py or *_test.py",
            Some(TestLanguage::Rust) => "no Rust source",
            Some(TestLanguage::Go) => "no *_test.go",
            Some(TestLanguage::JavaScript) => "no *.test.js (or .mjs, .cjs, .jsx, .ts, .tsx; or in a folder `test`)",
            Some(TestLanguage::Ruby) => "no *_spec.rb, spec_*.rb, *_test.rb or test_*.rb",
            Some(TestLanguage::Java) => "no *Test.java, *Tests.java, *TestCase.java, *IT.java or Test*.java",
            None if has_dotnet_project(self.workspace) => return dotnet_test(self.name),
            None => {
                let because = format!(
                    "it is not a node id of pytest (`tests/test_a.py::test_b`), and no file in {place} has a test of that \
                     name for pytest, unittest, Django, `cargo test`, `go test`, `node --test`, vitest, jest, mocha, Playwright, \
                     RSpec, minitest or JUnit"
                );
                let hint =
                    format!("name its `language` ({LANGUAGE_NAMES}), or the file in which it stands as `program`");
                return self.not_resolved(because, &hint);
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

fn test_language(language: &str, name: &str) -> Result<TestLanguage> {
    match language.to_lowercase().as_str() {
        "python" | "py" => Ok(TestLanguage::Python),
        "rust" | "rs" => Ok(TestLanguage::Rust),
        "go" | "golang" => Ok(TestLanguage::Go),
        "javascript" | "typescript" | "js" | "ts" | "node" => Ok(TestLanguage::JavaScript),
        "ruby" | "rb" => Ok(TestLanguage::Ruby),
        "java" => Ok(TestLanguage::Java),
        "csharp" | "c#" | "cs" | "fsharp" | "f#" | "dotnet" => Err(dotnet_test(name)),
        _ => Err(Error::usage(format!("cannot run a test of {language:?} by its name"))
            .because(format!("tests are known by name in {LANGUAGE_NAMES}"))
            .hint("`tether debug launch PROGRAM -- ARGUMENTS` debugs any runner of tests")),
    }
}

/// By its documentation, `dotnet test` starts the process with the tests itself, and lets that wait for a debugger:
/// <https://learn.microsoft.com/dotnet/core/tools/dotnet-test>, <https://github.com/microsoft/vstest/blob/main/docs/diagnose.md>
fn dotnet_test(name: &str) -> Error {
    Error::usage("cannot launch a test of .NET by its name")
        .because("`dotnet test` starts the process with the tests itself")
        .hint(format!(
            "by its documentation `VSTEST_HOST_DEBUG=1 dotnet test --filter 'FullyQualifiedName~{name}'` prints `Process Id: PID` and \
             waits: `tether debug attach --pid PID --language csharp` attaches to that"
        ))
}

fn has_dotnet_project(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut kinds = entries.filter_map(|path| Some(path.extension()?.to_str()?.to_owned()));
    kinds.any(|kind| matches!(kind.as_str(), "sln" | "slnx" | "csproj" | "fsproj"))
}

fn language_of_file(file: &Path) -> Option<TestLanguage> {
    match file.extension()?.to_str()? {
        "py" => Some(TestLanguage::Python),
        "rs" => Some(TestLanguage::Rust),
        "go" => Some(TestLanguage::Go),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Some(TestLanguage::JavaScript),
        "rb" => Some(TestLanguage::Ruby),
        "java" => Some(TestLanguage::Java),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
