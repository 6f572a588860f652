//! Tests of further runners, debugged by the name that they print: unittest, Django, mocha, Playwright's, rows of `test.each`,
//! RSpec, minitest, JUnit, and whole files.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::debug_commands::command_sandbox::{CommandSandbox, has_adapter};
use crate::debug_commands::named_tests::{package_with, stops_in};
use crate::support::requirements::{has_program, installed_tool};

fn has_note(launched: &Value, text: &str) -> bool {
    launched["notes"].as_array().into_iter().flatten().any(|note| note.as_str().unwrap().contains(text))
}

/// A workspace with the environment of a tool.
fn with_environment(tool: &str, files: &[(&str, &str)]) -> Option<CommandSandbox> {
    let environment = installed_tool(tool)?;
    if !has_adapter("debugpy") {
        return None;
    }
    let stage = CommandSandbox::with(files);
    symlink(environment, stage.sandbox.path(".venv")).unwrap();
    stage.tether(&["trust", "--programs", "--yes"]).ok();
    Some(stage)
}

fn is_not_run(stage: &CommandSandbox, name: &str, runner: &str) {
    let skipped = stage.tether(&["debug", "launch", "--test", name, "--wait", "100"]);
    skipped.fails(3, &[&format!("the test {name:?} was not run"), &format!("`{runner}` has run no test")]);
    stage.is_quiet();
}

const UNITTEST: &str = "\
import unittest
from app import twice

class OrdersTest(unittest.TestCase):
    def test_twice(self):
        total = twice(21)
        self.assertEqual(total, 42)  # STOP

    def test_other(self):
        raise AssertionError('nobody asked for this one')

    @unittest.skip('later')
    def test_skipped(self):
        pass
";

#[test]
fn a_test_of_unittest() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = CommandSandbox::with(&[
        ("tests/test_orders.py", UNITTEST),
        ("app.py", "def twice(price):\n    return price * 2\n"),
    ]);
    for name in ["test_twice", "OrdersTest.test_twice", "tests.test_orders.OrdersTest.test_twice"] {
        assert_eq!(stops_in(&stage, name, "tests/test_orders.py")["adapter"], "debugpy");
    }
    is_not_run(&stage, "test_skipped", "python -m unittest");
    stage.sandbox.write("tests/test_orders.py", &UNITTEST.replace("raise", "return; raise"));
    stops_in(&stage, "OrdersTest", "tests/test_orders.py");
    stops_in(&stage, "tests/test_orders.py", "tests/test_orders.py");
}

#[test]
fn a_runner_of_python_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let text = "import django.test\n\ndef test_alone():\n    pass\n";
    let manage = "import sys\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)\n";
    let files = [
        ("plain/test_alone.py", "def test_plain():\n    pass\n"),
        ("site/manage.py", manage),
        ("site/polls/tests.py", text),
    ];
    // Its environment has neither.
    let Some(stage) = with_environment("uv", &files) else { return };
    let missing = stage.tether(&["debug", "launch", "--test", "test_plain", "--wait", "60"]);
    missing.fails(6, &["cannot run `pytest`", "No module named pytest", "`python -m pip install pytest` installs it"]);
    let missing = stage.tether(&["debug", "launch", "--test", "test_alone", "--wait", "60"]);
    missing.fails(
        6,
        &["cannot run `manage.py test`", "No module named 'django'", "`python -m pip install Django` installs it"],
    );
    stage.is_quiet();
}

#[test]
fn a_runner_in_an_environment_that_is_not_trusted_is_named_with_how_to_trust_it() {
    let (Some(environment), Some(bare)) = (installed_tool("pytest"), installed_tool("uv/bin")) else { return };
    let mut stage = CommandSandbox::with(&[("plain/test_alone.py", "def test_plain():\n    pass\n")]);
    symlink(environment, stage.sandbox.path(".venv")).unwrap();
    // Another Python, without pytest.
    let path = std::env::join_paths([bare, "/usr/bin".into(), "/bin".into()]).unwrap();
    stage.sandbox.more_variables.push(("PATH", path));
    let missing = stage.tether(&["debug", "launch", "--test", "test_plain", "--wait", "60"]);
    missing.fails(
        6,
        &["cannot run `pytest`", "No module named pytest", "is not trusted, and was not used", "tether trust"],
    );
    stage.tether(&["trust", "--programs", "--yes"]).ok();
    let ended = stage.json(&["debug", "launch", "--test", "test_plain", "--wait", "60"]);
    assert_eq!(ended["exitCode"], 0, "{ended:#}");
    stage.is_quiet();
}

const DJANGO_TEST: &str = "\
from django.test import SimpleTestCase, TestCase

class PollTests(TestCase):
    def test_twice(self):
        total = 21 * 2
        self.assertEqual(total, 42)  # STOP

    def test_other(self):
        raise AssertionError('nobody asked for this one')
";

#[test]
fn a_test_of_django() {
    let settings = "SECRET_KEY = 'x'\nINSTALLED_APPS = ['polls']\nDATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'db.sqlite3'}}\n";
    let manage = "import os, sys\nfrom django.core.management import execute_from_command_line\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'settings')\nexecute_from_command_line(sys.argv)\n";
    let files = [
        ("site/manage.py", manage),
        ("site/settings.py", settings),
        ("site/polls/__init__.py", ""),
        ("site/polls/tests.py", DJANGO_TEST),
    ];
    let Some(stage) = with_environment("django", &files) else { return };
    for name in ["test_twice", "PollTests.test_twice", "polls.tests.PollTests.test_twice"] {
        let launched = match name.starts_with("polls") {
            true => {
                stage.json(&["break", &stage.at("site/polls/tests.py", "STOP")]);
                stage.json(&["debug", "launch", "--test", name, "--cwd", "site", "--wait", "60"])
            }
            false => stops_in(&stage, name, "site/polls/tests.py"),
        };
        assert!(
            launched["stopped"] == true && has_note(&launched, "`manage.py test` runs it with --noinput added"),
            "{launched:#}"
        );
    }
    stage.json(&["debug", "stop"]);
    stage.is_quiet();
}

#[test]
fn options_of_pytest_that_a_debugger_cannot_follow_are_turned_off() {
    let files = [
        ("pytest.ini", "[pytest]\naddopts = -n 2 --cov=orders --cov-fail-under=99\n"),
        ("orders.py", "def twice(price):\n    total = price * 2\n    return total  # STOP\n"),
        ("test_orders.py", "import orders\n\ndef test_twice():\n    assert orders.twice(21) == 42\n"),
    ];
    let Some(stage) = with_environment("pytest-plugins", &files) else { return };
    let launched = stops_in(&stage, "test_twice", "orders.py");
    assert!(has_note(&launched, "`pytest` runs it with -n0 --no-cov added: one process, no coverage"), "{launched:#}");
}

const MOCHA: &str = "\
describe('orders', () => {
  it('doubles', () => {
    const total = 21 * 2;
    require('assert').equal(total, 42); // STOP
  });
  it('doubles not', () => { throw new Error('nobody asked for this one'); });
  it.skip('skipped', () => {});
});
";

#[test]
fn a_test_of_mocha() {
    let Some(stage) = package_with("mocha", "mocha", "orders.test.js", MOCHA) else { return };
    for name in ["doubles", "orders > doubles", "orders doubles"] {
        let launched = stops_in(&stage, name, "web/orders.test.js");
        assert!(has_note(&launched, "`mocha` runs it with --no-parallel --timeout=0 added"), "{launched:#}");
    }
    is_not_run(&stage, "skipped", "mocha");
}

const PLAYWRIGHT: &str = "\
import { test, expect } from '@playwright/test';
test.describe('orders', () => {
  test('doubles', async () => {
    const total: number = 21 * 2;
    expect(total).toBe(42); // STOP
  });
  test('doubles not', async () => { throw new Error('nobody asked for this one'); });
  test.skip('skipped', async () => {});
});
";

#[test]
fn a_test_of_playwright() {
    let Some(stage) = package_with("playwright", "@playwright/test", "orders.spec.ts", PLAYWRIGHT) else { return };
    for name in ["doubles", "orders › doubles"] {
        let launched = stops_in(&stage, name, "web/orders.spec.ts");
        assert!(
            has_note(&launched, "`playwright test` runs it with --workers=1 --timeout=0 --retries=0 added"),
            "{launched:#}"
        );
    }
    is_not_run(&stage, "skipped", "playwright test");
}

const ROWS: &str = "\
describe.each(['EUR'])('in %s', (currency) => {
  test.each([
    [1, 2],
    [20, 40],
  ])('doubles %i to %i', (price, expected) => {
    const total = price * 2;
    expect(total).toBe(expected); // STOP
  });
  test.each([[1]])('fails %i', () => { throw new Error('nobody asked for this one'); });
});
";

fn runs_rows(stage: &CommandSandbox, file: &str, option: &str) {
    for name in ["doubles 20 to 40", "in EUR > doubles 20 to 40"] {
        let launched = stops_in(stage, name, file);
        assert!(has_note(&launched, option), "{launched:#}");
    }
    // All rows.
    let first = stage.json(&["debug", "launch", "--test", "doubles %i to %i", "--wait", "100"]);
    assert_eq!((&first["stopped"], stage.value("total").as_str()), (&Value::Bool(true), "2"), "{first:#}");
    let second = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&second["stopped"], stage.value("total").as_str()), (&Value::Bool(true), "40"), "{second:#}");
    stage.json(&["debug", "stop"]);
    stage.is_quiet();
}

#[test]
fn a_row_of_a_table_of_vitest_and_of_jest() {
    let text = format!("import {{ describe, test, expect }} from 'vitest';\n{ROWS}");
    if let Some(stage) = package_with("vitest", "vitest", "orders.test.ts", &text) {
        runs_rows(&stage, "web/orders.test.ts", "--no-file-parallelism");
    }
    if let Some(stage) = package_with("jest", "jest", "orders.test.js", ROWS) {
        runs_rows(&stage, "web/orders.test.js", "--runInBand");
    }
}

const RSPEC: &str = "\
RSpec.describe 'Orders' do
  describe '#twice' do
    it 'doubles (a lot)' do
      total = 21 * 2
      expect(total).to eq(42) # STOP
    end
  end
  it('other') { raise 'nobody asked for this one' }
  xit('skipped') {}
end
";

#[test]
fn a_test_of_rspec() {
    if !has_adapter("rdbg") || !has_program("rspec") {
        return;
    }
    let stage = CommandSandbox::with(&[("shop/spec/orders_spec.rb", RSPEC)]);
    for name in ["doubles (a lot)", "Orders#twice doubles (a lot)", "shop/spec/orders_spec.rb:3"] {
        assert_eq!(stops_in(&stage, name, "shop/spec/orders_spec.rb")["adapter"], "rdbg");
    }
    is_not_run(&stage, "skipped", "rspec");
}

const MINITEST: &str = "\
require 'minitest/autorun'
class OrdersTest < Minitest::Test
  def test_twice
    total = 21 * 2
    assert_equal 42, total # STOP
  end
  def test_other
    raise 'nobody asked for this one'
  end
  def test_skipped
    skip
  end
end
describe 'orders' do
  it 'halves' do
    total = 84 / 2
    _(total).must_equal 42 # SPEC
  end
end
";

#[test]
fn a_test_of_minitest() {
    if !has_adapter("rdbg") {
        return;
    }
    let stage = CommandSandbox::with(&[("test/orders_test.rb", MINITEST)]);
    for name in ["test_twice", "OrdersTest#test_twice"] {
        assert_eq!(stops_in(&stage, name, "test/orders_test.rb")["adapter"], "rdbg");
    }
    is_not_run(&stage, "test_skipped", "minitest");
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["break", &stage.at("test/orders_test.rb", "SPEC")]);
    let stopped = stage.json(&["debug", "launch", "--test", "orders halves", "--wait", "60"]);
    assert_eq!(
        (&stopped["stopped"], stage.value("total").split(' ').next()),
        (&Value::Bool(true), Some("42")),
        "{stopped:#}"
    );
    stage.json(&["debug", "stop"]);
    stage.is_quiet();
}

const JUNIT: &str = "\
package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OrdersTest {
    @Test
    void doubles() {
        int total = 21 * 2;
        assertEquals(42, total); // STOP
    }

    @ParameterizedTest
    @CsvSource({\"21, a\"})
    void rows(int price, String name) {
        int total = price * 2;
        assertEquals(42, total); // ROW
    }

    @Test
    void other() {
        System.out.println(\"nobody asked for this one\");
    }

    @Test @Disabled
    void skipped() {
    }
}
";

/// JUnit's console launcher, as Debian installs it.
const LAUNCHER: &str = "/usr/share/java/junit-platform-console-standalone.jar";

fn compile(stage: &CommandSandbox, project: &str, classes: &str) {
    let file = stage.sandbox.path(project).join("src/test/java/com/example/OrdersTest.java");
    let mut javac = Command::new("javac");
    javac.args(["-g", "-cp", LAUNCHER, "-d"]);
    let status = javac.arg(stage.sandbox.path(project).join(classes)).arg(file).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_test_of_junit_in_the_layouts_of_maven_and_of_gradle() {
    if !has_adapter("java") || !has_program("javac") {
        return;
    }
    if !Path::new(LAUNCHER).exists() {
        return crate::support::requirements::report_missing("JUnit's console launcher is not installed");
    }
    for (project, mark, classes, command) in [
        ("maven", "pom.xml", "target/test-classes", "mvn -q test-compile"),
        ("gradle", "build.gradle", "build/classes/java/test", "gradle testClasses"),
    ] {
        let file = format!("{project}/src/test/java/com/example/OrdersTest.java");
        let stage = CommandSandbox::with(&[(&format!("{project}/{mark}"), ""), (&file, JUNIT)]);
        stage.tether(&["debug", "launch", "--test", "doubles"]).fails(3, &["it is not compiled", command]);
        compile(&stage, project, classes);
        for name in ["doubles", "OrdersTest.doubles", "com.example.OrdersTest#doubles"] {
            assert_eq!(stops_in(&stage, name, &file)["adapter"], "java");
        }
        is_not_run(&stage, "skipped", "JUnit's console launcher");
        stage.json(&["break", "remove", "--all"]);
        stage.json(&["break", &stage.at(&file, "ROW")]);
        let row = stage.json(&["debug", "launch", "--test", "rows", "--wait", "60"]);
        assert_eq!((&row["stopped"], stage.value("total").as_str()), (&Value::Bool(true), "42"), "{row:#}");
        stage.json(&["debug", "stop"]);
        stage.is_quiet();
    }
}

/// A file with one test in each language that was not tried above.
#[test]
fn a_whole_file() {
    let node = "const test = require('node:test');\ntest('doubles', () => {\n  const total = 21 * 2;\n  console.log(total); // STOP\n});\n";
    let go = "package orders\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\ttotal := 21 * 2\n\tt.Log(total) // STOP\n}\n";
    if has_adapter("js-debug") {
        stops_in(&CommandSandbox::with(&[("js/orders.test.js", node)]), "js/orders.test.js", "js/orders.test.js");
    }
    if has_adapter("dlv") {
        let files = [("go/go.mod", "module example.org/orders\n\ngo 1.19\n"), ("go/orders_test.go", go)];
        stops_in(&CommandSandbox::with(&files), "go/orders_test.go", "go/orders_test.go");
    }
    if has_adapter("lldb-dap") {
        let manifest = "[package]\nname = \"orders\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
        let text = "#[test]\nfn doubles() {\n    let total = 21 * 2;\n    let seen = total; // STOP\n    assert_eq!(seen, 42);\n}\n";
        let stage = CommandSandbox::with(&[
            ("rust/Cargo.toml", manifest),
            ("rust/src/lib.rs", ""),
            ("rust/tests/whole.rs", text),
        ]);
        stage.tether(&["trust", "--tests", "--yes"]).ok();
        stops_in(&stage, "rust/tests/whole.rs", "rust/tests/whole.rs");
    }
    if has_adapter("rdbg") {
        let text = MINITEST.replace("raise", "return; raise");
        stops_in(
            &CommandSandbox::with(&[("test/orders_test.rb", &text)]),
            "test/orders_test.rb",
            "test/orders_test.rb",
        );
    }
}

/// By its documentation only: there is no .NET here.
#[test]
fn a_test_of_dotnet_is_an_error_with_the_way_of_its_documentation() {
    let stage = CommandSandbox::with(&[("shop.csproj", "<Project/>")]);
    let error = stage.tether(&["debug", "launch", "--test", "Shop.Tests.Doubles"]);
    error.fails(
        2,
        &[
            "`dotnet test` starts the process with the tests itself",
            "by its documentation `VSTEST_HOST_DEBUG=1 dotnet test",
        ],
    );
}

/// An uncaught exception of a test is one that its runner catches.
#[test]
fn a_failing_test_stops_where_it_fails_when_that_is_asked_for() {
    let pytest = "def check(total):\n    assert total == 42  # STOP\n\ndef test_fails():\n    check(41)\n";
    let unittest = "import unittest\n\nclass OrdersTest(unittest.TestCase):\n    def test_raises(self):\n        total = 41\n        raise KeyError(total)  # STOP\n\n    \
                    def test_fails(self):\n        total = 41\n        self.assertEqual(total, 42)  # ASSERT\n";
    let files = [("plain/test_unit.py", unittest), ("checked/conftest.py", ""), ("checked/test_orders.py", pytest)];
    let Some(stage) = with_environment("pytest-plugins", &files) else { return };
    stage.json(&["break", "exceptions", "--uncaught"]);
    for (name, file, mark) in [
        ("test_fails", "checked/test_orders.py", "STOP"),
        ("OrdersTest.test_raises", "plain/test_unit.py", "STOP"),
        ("OrdersTest.test_fails", "plain/test_unit.py", "ASSERT"),
    ] {
        let stopped = stage.json(&["debug", "launch", file, "--test", name, "--wait", "60"]);
        let reason = &stopped["stopReason"];
        let location = &reason["location"];
        let at = format!("{}:{}", location["sourcePath"].as_str().unwrap_or_default(), location["lineNumber"]);
        assert_eq!(
            (reason["type"].as_str(), at.as_str()),
            (Some("EXCEPTION"), stage.at(file, mark).as_str()),
            "{stopped:#}"
        );
        assert_eq!(stage.value("total"), "41");
        let ended = stage.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(1)), "{ended:#}");
    }
    stage.json(&["break", "exceptions", "--uncaught=false"]);
    let ended = stage.json(&["debug", "launch", "checked/test_orders.py", "--test", "test_fails", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    stage.is_quiet();
}

/// Stops at the failed assertion, which the runner catches, and then ends as the runner does.
fn stops_at_assertion(stage: &CommandSandbox, name: &str, file: &str) {
    stage.json(&["break", "exceptions", "--uncaught"]);
    let stopped = stage.json(&["debug", "launch", file, "--test", name, "--wait", "100"]);
    assert_eq!(stopped["stopReason"]["type"], "EXCEPTION", "{stopped:#}");
    let own = stopped["snapshot"]["frames"]
        .as_array()
        .unwrap()
        .iter()
        .find(|frame| frame["file"].as_str().is_some_and(|path| path.ends_with(file.rsplit('/').next().unwrap())));
    let own = own.unwrap_or_else(|| panic!("{stopped:#}"));
    assert_eq!(stage.at(file, "STOP"), format!("{file}:{}", own["line"]), "{stopped:#}");
    let frame = own["frameId"].to_string();
    assert_eq!(stage.json(&["debug", "evaluate", "total", "--frame", &frame])["result"], "41");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], ended["exitCode"] != json!(0)), (&json!("TERMINATED"), true), "{ended:#}");
    stage.is_quiet();
}

#[test]
fn a_failed_assertion_stops_with_each_runner_of_javascript() {
    let suite = "it('fails', () => {\n  const total = 41;\n  expect(total).toBe(42); // STOP\n});\n";
    let vitest = format!("import {{ it, expect }} from 'vitest';\n{suite}");
    let playwright = format!("import {{ test as it, expect }} from '@playwright/test';\n{suite}");
    let assert = "it('fails', () => {\n  const total = 41;\n  require('node:assert').equal(total, 42); // STOP\n});\n";
    let node = format!("const {{ it }} = require('node:test');\n{assert}");
    for (tool, runner, file, text) in [
        ("vitest", "vitest", "orders.test.ts", &*vitest),
        ("jest", "jest", "orders.test.js", suite),
        ("mocha", "mocha", "orders.test.js", assert),
        ("playwright", "@playwright/test", "orders.spec.ts", &*playwright),
    ] {
        if let Some(stage) = package_with(tool, runner, file, text) {
            stops_at_assertion(&stage, "fails", &format!("web/{file}"));
        }
    }
    if has_adapter("js-debug") {
        stops_at_assertion(&CommandSandbox::with(&[("js/orders.test.js", &node)]), "fails", "js/orders.test.js");
    }
}

/// What a retrying function catches is no failure.
#[test]
fn an_assertion_that_is_retried_does_not_stop() {
    let text = "import { it, expect, vi } from 'vitest';\nit('holds at last', async () => {\n  let total = 39;\n  \
                await vi.waitFor(() => { total += 1; expect(total).toBe(42); });\n});\n";
    let Some(stage) = package_with("vitest", "vitest", "orders.test.ts", text) else { return };
    stage.json(&["break", "exceptions", "--uncaught"]);
    let ended = stage.json(&["debug", "launch", "--test", "holds at last", "--wait", "100"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    stage.is_quiet();
}

#[test]
fn a_failed_assertion_stops_with_each_runner_of_ruby() {
    if !has_adapter("rdbg") {
        return;
    }
    let minitest = "require 'minitest/autorun'\nclass OrdersTest < Minitest::Test\n  def test_fails\n    total = 41\n    \
                    assert_equal 42, total # STOP\n  end\n  def test_skipped\n    skip\n  end\n  def test_raises\n    \
                    assert_raises(ArgumentError) { raise ArgumentError }\n  end\nend\n";
    let unit = "require 'test/unit'\nclass UnitTest < Test::Unit::TestCase\n  def test_fails\n    total = 41\n    \
                assert_equal(42, total) # STOP\n  end\nend\n";
    let rspec =
        "RSpec.describe 'orders' do\n  it 'fails' do\n    total = 41\n    expect(total).to eq(42) # STOP\n  end\nend\n";
    let stage = CommandSandbox::with(&[("test/orders_test.rb", minitest)]);
    stops_at_assertion(&stage, "test_fails", "test/orders_test.rb");
    is_not_run(&stage, "test_skipped", "minitest");
    let ended = stage.json(&["debug", "launch", "--test", "test_raises", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    stops_at_assertion(&CommandSandbox::with(&[("test/unit_test.rb", unit)]), "test_fails", "test/unit_test.rb");
    if has_program("rspec") {
        stops_at_assertion(&CommandSandbox::with(&[("spec/orders_spec.rb", rspec)]), "fails", "spec/orders_spec.rb");
    }
}

#[test]
fn a_failed_assertion_of_junit_stops() {
    if !has_adapter("java") || !has_program("javac") || !Path::new(LAUNCHER).exists() {
        return;
    }
    let text = JUNIT.replace(
        "int total = 21 * 2;\n        assertEquals(42, total); // STOP",
        "int total = 41;\n        assertEquals(42, total); // STOP",
    );
    let file = "maven/src/test/java/com/example/OrdersTest.java";
    let stage = CommandSandbox::with(&[("maven/pom.xml", ""), (file, &text)]);
    compile(&stage, "maven", "target/test-classes");
    stops_at_assertion(&stage, "doubles", file);
}

#[test]
fn a_runner_of_javascript_that_catches_what_a_test_throws_is_named_when_uncaught_exceptions_are_to_stop() {
    let text = "it('throws', () => {\n  const total = 42;\n  throw new TypeError('of the test'); // STOP\n});\n";
    let Some(stage) = package_with("jest", "jest", "orders.test.js", text) else { return };
    stage.json(&["break", "exceptions", "--uncaught"]);
    let ended = stage.json(&["debug", "launch", "--test", "throws", "--wait", "100"]);
    assert!(
        ended["state"] == "TERMINATED" && has_note(&ended, "`tether break exceptions --caught` stops"),
        "{ended:#}"
    );
    stage.json(&["break", "exceptions", "--caught"]);
    let stopped = stage.json(&["debug", "launch", "--test", "throws", "--wait", "100"]);
    assert_eq!(
        (&stopped["stopReason"]["type"], stage.value("total").as_str()),
        (&json!("EXCEPTION"), "42"),
        "{stopped:#}"
    );
    stage.json(&["debug", "stop"]);
    stage.is_quiet();
}
