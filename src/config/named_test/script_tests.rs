//! Tests in JavaScript and TypeScript: their names in a source file with the suites around them, and the patterns with which
//! runners select them.
//!
//! Reads source text only: a name that is computed in whole is not found; of one with values (`adds ${a}`, `adds %i` of
//! `test.each`), the text around them is enough. Does not depend on debuggers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regress::Regex;

use crate::config::extension_tests::test_source::find_test_file;
use crate::config::named_test::nesting::Nesting;
use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::package_runner::{PackageRunner, package_runner};
use crate::config::named_test::patterns::escape_pattern;
use crate::config::named_test::test_files::{is_script_test, read_source};
use crate::config::named_test::test_run::{NamedTest, TestRun};

/// A call that defines a suite or a test, with its name: `it('adds', …)`, `describe.only("orders", …)`, `t.test(…)`.
static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?<![\w$])(describe|suite|context|it|test)((?:\.\w+)*)\s*\(\s*(["'`])((?:\\.|(?!\3).)+)\3"#).ok()
});

/// A call that defines one for each row of a table: `test.each([…])('adds %i', …)`, whose name may be on a later line.
static TABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?<![\w$])(describe|suite|context|it|test)((?:\.\w+)*)\.(?:each|for)\s*(?:<[^>]*>)?\s*[(`]"#).ok()
});

/// The name behind a table.
static NAME_OF_ROWS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"[)`]\s*\(\s*(["'`])((?:\\.|(?!\1).)+)\1"#).ok());

/// What stands for a value in a name: that of a template literal, of printf and of a named column.
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$\{[^}]*\}|%[sdifjoOp#$c]|%%|\$#|\$[A-Za-z_][\w.]*").ok());

/// What separates the names of suites and tests in the output of vitest and of Node.
const SEPARATOR: &str = " > ";
/// What runners print between names: Node and vitest, jest and Playwright, mocha. The shortest last: it is in the others.
const SEPARATORS: [&str; 3] = [SEPARATOR, " › ", " "];

/// The name of a test or suite.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestName {
    text: String,
    /// The text has values in it, which are not known.
    has_values: bool,
}

impl TestName {
    fn plain(text: String) -> TestName {
        TestName { text, has_values: false }
    }

    /// A regular expression of the names that it stands for.
    fn pattern(&self) -> String {
        let Some(value) = VALUE.as_ref().filter(|_| self.has_values) else { return escape_pattern(&self.text) };
        let (mut pattern, mut end) = (String::new(), 0);
        for found in value.find_iter(&self.text) {
            pattern += &escape_pattern(&self.text[end..found.start()]);
            pattern += ".+";
            end = found.end();
        }
        pattern + &escape_pattern(&self.text[end..])
    }
}

/// A test, or a suite, of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTest {
    /// The names of the suites around it, the outermost first, and its own.
    path: Vec<TestName>,
    /// How many of them, from the outermost on, lead to the first that is a test, and not a suite: a test inside of another
    /// one runs with that.
    runnable: usize,
}

impl ScriptTest {
    /// The test with this name, where it has it: its own, or that with the last suites around it, as runners print it.
    fn named(&self, name: &str) -> Option<ScriptTest> {
        (0..self.path.len()).find_map(|from| {
            SEPARATORS.iter().find_map(|between| {
                let texts: Vec<&str> = self.path[from..].iter().map(|it| it.text.as_str()).collect();
                if texts.join(between) == name {
                    return Some(self.clone());
                }
                self.with_values(from, between, name)
            })
        })
    }

    /// The test with the values that the name has.
    fn with_values(&self, from: usize, between: &str, name: &str) -> Option<ScriptTest> {
        if !self.path[from..].iter().any(|it| it.has_values) {
            return None;
        }
        let groups: Vec<String> = self.path[from..].iter().map(|it| format!("({})", it.pattern())).collect();
        let found = Regex::new(&format!("^{}$", groups.join(between))).ok()?.find(name)?;
        let mut path = self.path[..from].to_vec();
        for group in 1..=groups.len() {
            path.push(TestName::plain(name[found.group(group)?].to_owned()));
        }
        Some(ScriptTest { path, runnable: self.runnable })
    }

    /// Its whole name, as runners print it.
    pub fn full_name(&self) -> String {
        self.path.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(SEPARATOR)
    }
}

/// What a line defines.
struct Definition {
    name: TestName,
    is_suite: bool,
}

fn is_suite(word: &str) -> bool {
    matches!(word, "describe" | "suite" | "context")
}

/// The tests and suites of a source text, nested by their indentation.
fn script_tests(text: &str) -> Vec<ScriptTest> {
    let (Some(definition), Some(table), Some(name_of_rows)) =
        (DEFINITION.as_ref(), TABLE.as_ref(), NAME_OF_ROWS.as_ref())
    else {
        return Vec::new();
    };
    let mut around: Nesting<Definition> = Nesting::new();
    let mut tests = Vec::new();
    // A table whose name is still to come: its first line, and whether it is of a suite.
    let mut of_table: Option<(&str, bool)> = None;
    for line in text.lines() {
        if line.trim_start().starts_with('}') {
            around.visit(line);
        }
        let mut rest = line;
        if let Some(found) = table.find(line) {
            of_table = Some((line, is_suite(&line[found.group(1).unwrap_or_default()])));
            rest = &line[found.end() - 1..];
        }
        let rows = of_table.and_then(|(first, is_suite)| {
            let name = unescape_name(&rest[name_of_rows.find(rest)?.group(2)?]);
            Some((first, Definition { name: TestName { text: name, has_values: true }, is_suite }))
        });
        let single = || {
            let found = definition.find(line)?;
            let group = |number: usize| found.group(number).map(|range| &line[range]).unwrap_or_default();
            let last = group(2).rsplit('.').next().unwrap_or_default();
            let has_values = group(3) == "`" && group(4).contains("${");
            let name = TestName { text: unescape_name(group(4)), has_values };
            Some((line, Definition { name, is_suite: is_suite(group(1)) || is_suite(last) }))
        };
        let Some((first, found)) = rows.or_else(single) else { continue };
        of_table = None;
        around.visit(first);
        around.enter(first, found);
        let runnable = around.iter().position(|it| !it.is_suite).map_or(around.iter().count(), |at| at + 1);
        tests.push(ScriptTest { path: around.iter().map(|it| it.name.clone()).collect(), runnable });
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
    let tests = script_tests(text);
    let named: Vec<(&ScriptTest, ScriptTest)> =
        tests.iter().filter_map(|test| test.named(name).map(|found| (test, found))).collect();
    // The values of a suite's name may take up that of a test in it.
    let is_taken_up = |suite: &ScriptTest| {
        let is_inside = |test: &ScriptTest| test.path.len() > suite.path.len() && test.path.starts_with(&suite.path);
        named.iter().any(|(test, _)| is_inside(test))
    };
    let is_meant = |(test, found): &&(&ScriptTest, ScriptTest)| *test == found || !is_taken_up(test);
    let mut found: Vec<ScriptTest> = named.iter().filter(is_meant).map(|(_, found)| found.clone()).collect();
    let is_quoted = || ['"', '\'', '`'].iter().any(|quote| text.contains(&format!("{quote}{name}{quote}")));
    if found.is_empty() && is_quoted() {
        found.push(ScriptTest { path: vec![TestName::plain(name.to_owned())], runnable: 1 });
    }
    found.dedup();
    found
}

/// The pattern by which `node --test` selects the test: by its own name if that is unique in the text, since Node 20 knows
/// no other; else by its names with those of its suites.
pub fn node_pattern(text: &str, test: &ScriptTest) -> String {
    let path = &test.path[..test.runnable.min(test.path.len())];
    let Some(own) = path.last() else { return String::new() };
    let same = script_tests(text).iter().filter(|other| other.path.last().is_some_and(|last| last == own)).count();
    let names = if same > 1 { path } else { std::slice::from_ref(own) };
    format!("^{}$", join_patterns(names, " "))
}

/// The pattern by which the runners of packages select the test: by its names with those of its suites.
pub fn full_pattern(test: &ScriptTest) -> String {
    // Suites that were not recognised may be around it. Between names vitest 5 has ` > `, the others a space.
    format!("(^| ){}$", join_patterns(&test.path, "( >)? "))
}

fn join_patterns(names: &[TestName], between: &str) -> String {
    names.iter().map(TestName::pattern).collect::<Vec<_>>().join(between)
}

/// The runs of this name in the test files of JavaScript.
pub fn search(test: &NamedTest<'_>) -> Vec<TestRun> {
    let files = test.files(is_script_test, |text| !find_tests(text, test.name).is_empty());
    let mut runs: Vec<TestRun> = files.into_iter().flat_map(|file| runs_in(&file, test)).collect();
    // In an extension host a test is known by its name alone: one that is compiled beside its source is the same.
    let mut named = BTreeSet::new();
    runs.retain(|run| match run {
        TestRun::Extension { name, .. } => named.insert(name.clone()),
        _ => true,
    });
    runs
}

/// Whether the workspace is an extension whose tests run in an extension host, and this file of tests is one of those: not of
/// another runner.
fn runs_in_extension_host(text: &str, by: Option<&PackageRunner>, workspace: &Path) -> bool {
    let imports_vscode = || ["'vscode'", "\"vscode\""].iter().any(|name| text.contains(name));
    let may_be = match by {
        None => !text.contains("node:test"),
        Some(by) => by.runner == TestRunner::Mocha && imports_vscode(),
    };
    may_be && find_test_file(workspace).is_some()
}

fn runs_in(file: &Path, test: &NamedTest<'_>) -> Vec<TestRun> {
    let text = read_source(file).unwrap_or_default();
    let by = package_runner(file, &text, test.workspace);
    let in_extension_host = runs_in_extension_host(&text, by.as_ref(), test.workspace);
    let run = |found: ScriptTest| {
        let (file, name) = (file.to_owned(), found.full_name());
        if in_extension_host {
            return TestRun::Extension { folder: test.workspace.to_owned(), file, name: Some(name) };
        }
        match by.clone() {
            Some(by) => TestRun::Package { by, file, pattern: Some(full_pattern(&found)), name },
            None => TestRun::Node { file, pattern: Some(node_pattern(&text, &found)), name },
        }
    };
    find_tests(&text, test.name).into_iter().map(run).collect()
}

/// All tests of a file.
pub fn whole_file(file: &Path, workspace: &Path) -> TestRun {
    let text = read_source(file).unwrap_or_default();
    let (file, name) = (file.to_owned(), String::new());
    match package_runner(&file, &text, workspace) {
        by if runs_in_extension_host(&text, by.as_ref(), workspace) => {
            TestRun::Extension { folder: workspace.to_owned(), file, name: None }
        }
        Some(by) => TestRun::Package { by, file, pattern: None, name },
        None => TestRun::Node { file, pattern: None, name },
    }
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
        check("alone", "^alone$", "(^| )last( >)? alone$");
        let deep = r"orders twice doubles \(a lot\)$";
        let deep_full = r"(^| )orders( >)? twice( >)? doubles \(a lot\)$";
        check("twice > doubles (a lot)", &format!("^{deep}"), deep_full);
        // A test inside of another one runs with that.
        check("inner", "^outer$", "(^| )outer( >)? inner$");
        check("orders", "^orders$", "(^| )orders$");
    }

    const TABLES: &str = "\
describe.each`
  currency
  ${'EUR'}
`('in $currency', () => {
  test.each([[1, 2], [20, 40]])('doubles %i (%s)', (a, b) => {});
  it.each<Row>([
    { a: 1 },
  ])('halves $a.b of it', () => {});
});
for (const n of [1, 2]) {
  test(`counts ${n} up`, () => {});
}
test('last', () => {});
";

    #[test]
    fn a_row_of_a_table_is_found_by_the_name_with_its_values_and_all_rows_by_the_name_in_the_source() {
        let check = |name: &str, full: &str, pattern: &str| {
            let found = find_tests(TABLES, name);
            let [test] = &found[..] else { panic!("{name}: {found:?}") };
            assert_eq!((test.full_name().as_str(), full_pattern(test).as_str()), (full, pattern), "{name}");
        };
        check("doubles 20 (40)", "in $currency > doubles 20 (40)", r"(^| )in .+( >)? doubles 20 \(40\)$");
        check("in EUR > doubles 1 (2)", "in EUR > doubles 1 (2)", r"(^| )in EUR( >)? doubles 1 \(2\)$");
        check("doubles %i (%s)", "in $currency > doubles %i (%s)", r"(^| )in .+( >)? doubles .+ \(.+\)$");
        check("halves 1 of it", "in $currency > halves 1 of it", "(^| )in .+( >)? halves 1 of it$");
        check("counts 2 up", "counts 2 up", "(^| )counts 2 up$");
        check("last", "last", "(^| )last$");
        assert_eq!(node_pattern(TABLES, &find_tests(TABLES, "counts ${n} up").remove(0)), "^counts .+ up$");
        assert_eq!(find_tests(TABLES, "doubles 20"), []);
    }
}
