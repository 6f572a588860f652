//! Tests in Ruby: the examples of RSpec, and the tests of minitest and test-unit.
//!
//! Reads source text only. RSpec selects an example by its line, the others a test by its name.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regress::Regex;

use crate::config::named_test::nesting::Nesting;
use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::patterns::escape_pattern;
use crate::config::named_test::test_files::{nearest_folder_with, read_source};
use crate::config::named_test::test_run::{NamedTest, RubyTest, TestRun};

/// A call that defines a group or an example, with its name: `it "adds" do`, `describe Orders do`, `test "adds" do`.
static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "describe|context|feature|it|specify|example|scenario|test";
    Regex::new(&format!(r#"^\s*(?:RSpec\.)?[fx]?({words})\s*\(?\s*(?:(["'])((?:\\.|(?!\2).)+)\2|([A-Z][\w:]*))"#)).ok()
});
/// `class OrdersTest < Minitest::Test`, `def test_adds`
static CLASS_OR_METHOD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?:(class|module)\s+([\w:]+)|def\s+(test_\w+[?!]?))").ok());

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?<=^|#)test_\d{4}_").ok());

/// The files that lie at the top of a project.
const PROJECT_FILES: [&str; 3] = ["Gemfile", ".rspec", "Rakefile"];

/// What a line defines.
struct Definition {
    name: String,
    kind: DefinitionKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DefinitionKind {
    /// Around others.
    Group,
    /// `def test_adds`
    Method,
    /// `it "adds"`
    Example,
    /// `test "adds one"`, of Rails: the method `test_adds_one`.
    Declared,
}

/// A test of a source file: the names around it and its own, and the number of its line, from 1.
struct FoundTest {
    path: Vec<String>,
    line: usize,
    kind: DefinitionKind,
}

impl FoundTest {
    /// Whether the name is its own, or a name with the last groups around it, as runners print it.
    fn is_named(&self, name: &str) -> bool {
        let name = without_number(name).replace("::", "#");
        // RSpec writes no space before a method: `Orders#twice doubles`.
        let joined =
            |end: &[String], between: &str| end.join(between).replace("::", "#").replace(" #", "#").replace(" .", ".");
        let has = |end: &[String]| [" ", " > ", "#"].iter().any(|between| joined(end, between) == name);
        (0..self.path.len()).any(|from| has(&self.path[from..]))
    }
}

/// minitest numbers the examples of a spec: `Orders#test_0001_halves`.
fn without_number(name: &str) -> String {
    let found = NUMBER.as_ref().and_then(|number| number.find(name));
    found.map_or_else(|| name.to_owned(), |found| format!("{}{}", &name[..found.start()], &name[found.end()..]))
}

fn find_definition(line: &str) -> Option<Definition> {
    if let Some(found) = CLASS_OR_METHOD.as_ref()?.find(line) {
        let text = |number: usize| found.group(number).map(|range| line[range].to_owned());
        return Some(match text(2) {
            Some(name) => Definition { name, kind: DefinitionKind::Group },
            None => Definition { name: text(3)?, kind: DefinitionKind::Method },
        });
    }
    let found = DEFINITION.as_ref()?.find(line)?;
    let text = |number: usize| found.group(number).map(|range| line[range].to_owned());
    let kind = match text(1)?.as_str() {
        "describe" | "context" | "feature" => DefinitionKind::Group,
        "test" => DefinitionKind::Declared,
        _ => DefinitionKind::Example,
    };
    Some(Definition { name: text(3).or_else(|| text(4))?, kind })
}

fn ruby_tests(text: &str) -> Vec<FoundTest> {
    let mut around: Nesting<String> = Nesting::new();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(definition) = find_definition(line) else { continue };
        around.visit(line);
        around.enter(line, definition.name);
        found.push(FoundTest { path: around.iter().cloned().collect(), line: index + 1, kind: definition.kind });
    }
    found
}

/// The runs of this name.
pub fn search(test: &NamedTest<'_>) -> Vec<TestRun> {
    let has = |text: &str| ruby_tests(text).iter().any(|found| found.is_named(test.name));
    let files = test.files(is_ruby_test, has);
    let runs_in = |file: &PathBuf| {
        let text = read_source(file).unwrap_or_default();
        let found = ruby_tests(&text).into_iter().filter(|found| found.is_named(test.name));
        found.map(|found| single_run(file, &text, &found, test.workspace)).collect::<Vec<_>>()
    };
    files.iter().flat_map(runs_in).collect()
}

/// All tests of a file, or the one at a line of it: `spec/a_spec.rb:12`. `None`: the name is of no such file.
pub fn file_run(test: &NamedTest<'_>) -> Option<TestRun> {
    let (path, line) = match test.name.rsplit_once(':') {
        Some((path, line)) if line.parse::<usize>().is_ok() => (path, Some(line.to_owned())),
        _ => (test.name, None),
    };
    let (_, file) = test.find_file(path).filter(|_| path.ends_with(".rb"))?;
    let text = read_source(&file)?;
    let whole = ruby_run(&file, &text, test.workspace);
    match (line, whole.runner) {
        (None, _) => Some(TestRun::Ruby(whole)),
        (Some(line), TestRunner::Rspec) => {
            Some(TestRun::Ruby(RubyTest { name: format!("line {line}"), selector: Some(line), ..whole }))
        }
        // Of the others only the test that begins last before the line.
        (Some(line), _) => {
            let line: usize = line.parse().ok()?;
            let found = ruby_tests(&text).into_iter().rfind(|found| found.line <= line)?;
            Some(single_run(&file, &text, &found, test.workspace))
        }
    }
}

fn single_run(file: &Path, text: &str, found: &FoundTest, workspace: &Path) -> TestRun {
    let run = ruby_run(file, text, workspace);
    let own = found.path.last().map(String::as_str).unwrap_or_default();
    let selector = match (run.runner, found.kind) {
        (TestRunner::Rspec, _) => found.line.to_string(),
        (_, DefinitionKind::Group) => format!("/(^|::| ){}(::|#|$)/", escape_pattern(own)),
        // minitest matches `OrdersTest#test_adds` too, test-unit `test_adds(OrdersTest)`.
        (_, DefinitionKind::Method) => method_pattern(found, &escape_pattern(own)),
        (_, DefinitionKind::Declared) => {
            method_pattern(found, &escape_pattern(&format!("test_{}", own.replace(' ', "_"))))
        }
        (_, DefinitionKind::Example) => method_pattern(found, &format!(r"test_\d+_{}", escape_pattern(own))),
    };
    TestRun::Ruby(RubyTest { name: found.path.join(" "), selector: Some(selector), ..run })
}

/// Of a method in its class, where two classes may have methods of one name.
fn method_pattern(found: &FoundTest, method: &str) -> String {
    let around = &found.path[..found.path.len().saturating_sub(1)];
    // A module is a part of the class's name, a group of minitest is joined by `::` too.
    let class = around.iter().map(|name| escape_pattern(name)).collect::<Vec<_>>().join("::");
    format!(r"/^({class}#)?{method}(\({class}\))?$/")
}

fn ruby_run(file: &Path, text: &str, workspace: &Path) -> RubyTest {
    let base = file.file_name().unwrap_or_default().to_string_lossy();
    let is_rspec = base.ends_with("_spec.rb") && !text.contains("minitest");
    let runner = if is_rspec { TestRunner::Rspec } else { TestRunner::Minitest };
    let folder = PROJECT_FILES.iter().find_map(|name| nearest_folder_with(file, workspace, name));
    let above_tests = || {
        let tests = file.ancestors().skip(1).find(|it| it.ends_with("spec") || it.ends_with("test"))?;
        tests.parent().filter(|folder| folder.starts_with(workspace)).map(Path::to_owned)
    };
    let beside = || file.parent().unwrap_or(workspace).to_owned();
    let folder = folder.or_else(above_tests).unwrap_or_else(beside);
    let has_gemfile = folder.join("Gemfile").is_file();
    RubyTest { runner, file: file.to_owned(), name: String::new(), selector: None, folder, has_gemfile }
}

/// Whether RSpec or minitest takes this file for a test, by its base name.
fn is_ruby_test(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    let stem = base.strip_suffix(".rb");
    stem.is_some_and(|stem| {
        stem.ends_with("_spec") || stem.ends_with("_test") || stem.starts_with("test_") || stem.starts_with("spec_")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "\
RSpec.describe Orders do
  describe '#twice' do
    it \"doubles (a lot)\" do
    end
  end
  context 'when empty' do
    xit('is zero') { }
  end
end
";
    const TEST: &str = "\
module Shop
  class OrdersTest < Minitest::Test
    def test_twice
    end
    test \"adds one\" do
    end
  end
end
describe 'orders' do
  it 'halves' do
  end
end
";

    fn check(text: &str, file: &str, name: &str, expect: &[&str]) {
        let found = ruby_tests(text).into_iter().filter(|found| found.is_named(name));
        let runs = found.map(|found| match single_run(Path::new(file), text, &found, Path::new("/w")) {
            TestRun::Ruby(test) => test.selector.unwrap(),
            other => panic!("{other:?}"),
        });
        assert_eq!(runs.collect::<Vec<_>>(), expect, "{name}");
    }

    #[test]
    fn an_example_is_selected_by_its_line() {
        let check = |name: &str, expect: &[&str]| check(SPEC, "/w/spec/orders_spec.rb", name, expect);
        for name in ["doubles (a lot)", "Orders#twice doubles (a lot)", "#twice > doubles (a lot)"] {
            check(name, &["3"]);
        }
        check("when empty is zero", &["7"]);
        check("Orders when empty", &["6"]);
        check("nothing", &[]);
    }

    #[test]
    fn a_test_of_minitest_is_selected_by_a_pattern_of_its_name() {
        let check = |name: &str, expect: &str| check(TEST, "/w/test/orders_test.rb", name, &[expect]);
        check("test_twice", r"/^(Shop::OrdersTest#)?test_twice(\(Shop::OrdersTest\))?$/");
        check("OrdersTest#test_twice", r"/^(Shop::OrdersTest#)?test_twice(\(Shop::OrdersTest\))?$/");
        check("Shop::OrdersTest#test_twice", r"/^(Shop::OrdersTest#)?test_twice(\(Shop::OrdersTest\))?$/");
        check("adds one", r"/^(Shop::OrdersTest#)?test_adds_one(\(Shop::OrdersTest\))?$/");
        check("orders halves", r"/^(orders#)?test_\d+_halves(\(orders\))?$/");
        check("orders#test_0001_halves", r"/^(orders#)?test_\d+_halves(\(orders\))?$/");
        check("OrdersTest", "/(^|::| )OrdersTest(::|#|$)/");
    }
}
