//! Tests in JavaScript and TypeScript: their names in a source file with the suites around them, and which runner of the
//! package runs them.
//!
//! Reads source text only: names that are computed are not found. Does not depend on debuggers.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regress::Regex;

use crate::config::jsonc::JsonNode;
use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::test_files::nearest_folder_with;
use crate::config::npm::package_json::PackageJson;
use crate::config::vscode::shell_quoting::escape_characters;

/// A call that defines a suite or a test, with its name: `it('adds', …)`, `describe.only("orders", …)`, `t.test(…)`.
static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?<![\w$])(describe|suite|context|it|test)((?:\.\w+)*)\s*\(\s*(["'`])((?:\\.|(?!\3).)+)\3"#).ok()
});

/// What separates the names of suites and tests in the output of vitest and of Node.
const SEPARATOR: &str = " > ";

/// A test, or a suite, of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTest {
    /// The names of the suites around it, the outermost first, and its own.
    pub path: Vec<String>,
    /// How many of them, from the outermost on, lead to the first that is a test, and not a suite: a test inside of another
    /// one runs with that.
    runnable: usize,
}

impl ScriptTest {
    /// Whether the name is its own, or a name with the last suites around it, as runners print it.
    fn is_named(&self, name: &str) -> bool {
        [" ", SEPARATOR].iter().any(|between| (0..self.path.len()).any(|from| self.path[from..].join(between) == name))
    }

    /// Its whole name, as runners print it.
    pub fn full_name(&self) -> String {
        self.path.join(SEPARATOR)
    }
}

/// The tests and suites of a source text, nested by their indentation.
fn script_tests(text: &str) -> Vec<ScriptTest> {
    let Some(definition) = DEFINITION.as_ref() else { return Vec::new() };
    let mut around: Vec<(usize, String, bool)> = Vec::new();
    let mut tests = Vec::new();
    for line in text.lines() {
        let Some(found) = definition.find(line) else { continue };
        let group = |number: usize| found.group(number).map(|range| &line[range]).unwrap_or_default();
        let is_suite = |word: &str| matches!(word, "describe" | "suite" | "context");
        let last = group(2).rsplit('.').next().unwrap_or_default();
        let depth = line.len() - line.trim_start().len();
        around.retain(|(outer, ..)| *outer < depth);
        around.push((depth, unescape_name(group(4)), is_suite(group(1)) || is_suite(last)));
        let runnable = around.iter().position(|(.., is_suite)| !is_suite).map_or(around.len(), |at| at + 1);
        tests.push(ScriptTest { path: around.iter().map(|(_, name, _)| name.clone()).collect(), runnable });
    }
    tests
}

fn unescape_name(quoted: &str) -> String {
    let mut name = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        name.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    name
}

/// The tests of this name in a source text. Where the definition is not recognised, its own name in quotes is enough.
pub fn find_tests(text: &str, name: &str) -> Vec<ScriptTest> {
    let mut found: Vec<ScriptTest> = script_tests(text).into_iter().filter(|test| test.is_named(name)).collect();
    let is_quoted = || ['"', '\'', '`'].iter().any(|quote| text.contains(&format!("{quote}{name}{quote}")));
    if found.is_empty() && is_quoted() {
        found.push(ScriptTest { path: vec![name.to_owned()], runnable: 1 });
    }
    found.dedup();
    found
}

/// The pattern by which `node --test` selects the test: by its own name if that is unique in the text, since Node 20 knows
/// no other; else by its names with those of its suites.
pub fn node_pattern(text: &str, test: &ScriptTest) -> String {
    let path = &test.path[..test.runnable.min(test.path.len())];
    let own = path.last().map(String::as_str).unwrap_or_default();
    let same = script_tests(text).iter().filter(|other| other.path.last().is_some_and(|last| last == own)).count();
    if same > 1 { exact_pattern(&path.join(" ")) } else { exact_pattern(own) }
}

/// The pattern by which vitest and jest select the test: by its names with those of its suites.
pub fn full_pattern(test: &ScriptTest) -> String {
    let names = escape_characters(&test.path.join(" "), PATTERN_CHARACTERS);
    // Suites that were not recognised may be around it.
    format!("(^| ){names}$")
}

const PATTERN_CHARACTERS: &str = r"\.+*?()|[]{}^$/";

/// A regular expression of Go and of JavaScript that matches exactly this text.
pub fn exact_pattern(text: &str) -> String {
    format!("^{}$", escape_characters(text, PATTERN_CHARACTERS))
}

/// A test runner of a package, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRunner {
    /// vitest or jest.
    pub runner: TestRunner,
    /// The script that runs it.
    pub script: PathBuf,
    /// The folder of the package whose tests it runs.
    pub package: PathBuf,
}

/// The runner of a test file by the nearest package.json: vitest or jest if it depends on that; `None`: Node itself, also for
/// a file that names `node:test`.
pub fn package_runner(file: &Path, text: &str, workspace: &Path) -> Option<PackageRunner> {
    if text.contains("node:test") {
        return None;
    }
    let package = nearest_folder_with(file, workspace, "package.json")?;
    let manifest = PackageJson::read(&package).ok().flatten()?;
    let (runner, script) = [
        (TestRunner::Vitest, "vitest", "node_modules/vitest/vitest.mjs"),
        (TestRunner::Jest, "jest", "node_modules/jest/bin/jest.js"),
    ]
    .into_iter()
    .find_map(|(runner, name, script)| manifest.dependency(name).map(|_: &JsonNode| (runner, script)))?;
    // In a monorepo, the packages of a package may lie in a folder above it.
    let holder = nearest_folder_with(file, workspace, script).unwrap_or_else(|| package.clone());
    Some(PackageRunner { runner, script: holder.join(script), package })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
const { describe, it, test } = require('node:test');
describe('orders', () => {
  describe.only(\"twice\", () => {
    it('doubles (a lot)', () => {});
    it.skip(`isn\\'t it`, () => {});
  });
  it('doubles (a lot)', () => {});
});
test('outer', async (t) => {
  await t.test('inner', () => {});
});
test.describe('last', () => {
  test('alone', () => {});
});
exit('no test'); latest('no test');
";

    fn names(name: &str) -> Vec<String> {
        find_tests(TEXT, name).iter().map(ScriptTest::full_name).collect()
    }

    #[test]
    fn tests_are_found_by_their_own_and_by_their_nested_names() {
        assert_eq!(names("doubles (a lot)"), ["orders > twice > doubles (a lot)", "orders > doubles (a lot)"]);
        assert_eq!(names("orders > doubles (a lot)"), ["orders > doubles (a lot)"]);
        assert_eq!(names("orders twice doubles (a lot)"), ["orders > twice > doubles (a lot)"]);
        assert_eq!(names("twice > doubles (a lot)"), ["orders > twice > doubles (a lot)"]);
        assert_eq!(names("isn't it"), ["orders > twice > isn't it"]);
        assert_eq!(names("alone"), ["last > alone"]);
        // Not recognised, but there.
        assert_eq!(names("no test"), ["no test"]);
        assert_eq!(names("nothing"), [""; 0]);
    }

    #[test]
    fn each_runner_selects_a_test_by_what_it_knows() {
        let check = |name: &str, node: &str, full: &str| {
            let test = find_tests(TEXT, name).remove(0);
            assert_eq!((node_pattern(TEXT, &test).as_str(), full_pattern(&test).as_str()), (node, full), "{name}");
        };
        check("alone", "^alone$", "(^| )last alone$");
        let deep = r"orders twice doubles \(a lot\)$";
        check("twice > doubles (a lot)", &format!("^{deep}"), &format!("(^| ){deep}"));
        // A test inside of another one runs with that.
        check("inner", "^outer$", "(^| )outer inner$");
        check("orders", "^orders$", "(^| )orders$");
    }
}
