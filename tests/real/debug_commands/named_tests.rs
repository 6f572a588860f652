//! Tests debugged by the name that their runner uses.

use serde_json::{Value, json};

use crate::debug_commands::command_sandbox::{CommandSandbox, has_adapter};

const PYTHON: &str = "\
import pytest

class TestOrders:
    @pytest.mark.parametrize('price, expect', [(1, 2), (20, 40)])
    def test_twice(self, price, expect):
        total = price * 2
        assert total == expect  # STOP

def test_other():
    raise AssertionError('nobody asked for this one')
";

const RUST: &str = "\
pub fn twice(price: u32) -> u32 {
    price * 2
}

#[cfg(test)]
mod tests {
    #[test]
    fn doubles() {
        let total = super::twice(21);
        let seen = total; // STOP
        assert_eq!(seen, 42);
    }

    #[test]
    fn doubles_not() {
        panic!(\"nobody asked for this one\");
    }
}
";

const GO: &str = "\
package orders

import \"testing\"

func TestTwice(t *testing.T) {
\tt.Run(\"a lot\", func(t *testing.T) {
\t\ttotal := 21 * 2
\t\tt.Log(total) // STOP
\t})
}

func TestTwiceNot(t *testing.T) { t.Fatal(\"nobody asked for this one\") }
";

const NODE: &str = "\
const test = require('node:test');
test('doubles (a lot)', () => {
  const total = 21 * 2;
  console.log(total); // STOP
});
test('doubles (a lot) not', () => { throw new Error('nobody asked for this one'); });
";

/// Launches a test to its `STOP`, checks `total`, and lets it finish.
pub fn stops_in(stage: &CommandSandbox, name: &str, file: &str) -> Value {
    stage.json(&["break", &stage.at(file, "STOP")]);
    let launched = stage.json(&["debug", "launch", "--test", name, "--wait", "180"]);
    assert_eq!(launched["stopped"], true, "{launched:#}");
    assert_eq!(launched["stopReason"]["location"]["sourcePath"], file);
    let total = stage.value("total");
    assert!(["40", "42"].contains(&total.split(' ').next().unwrap_or_default()), "{total}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &json!("TERMINATED")), "{ended:#}");
    let printed = stage.json(&["debug", "output"]).to_string();
    assert!(!printed.contains("nobody asked"), "{printed}");
    stage.is_quiet();
    launched
}

#[test]
fn a_test_of_pytest() {
    let Some(environment) = crate::support::requirements::installed_tool("pytest") else { return };
    if !has_adapter("debugpy") {
        return;
    }
    let stage = CommandSandbox::with(&[("tests/test_orders.py", PYTHON)]);
    std::os::unix::fs::symlink(environment, stage.sandbox.path(".venv")).unwrap();
    stage.tether(&["trust", "--programs", "--yes"]).ok();
    let launched = stops_in(&stage, "tests/test_orders.py::TestOrders::test_twice[20-40]", "tests/test_orders.py");
    assert_eq!(launched["adapter"], "debugpy");
    stops_in(&stage, "test_twice[20-40]", "tests/test_orders.py");
    let missing = stage.tether(&["debug", "launch", "--test", "tests/test_none.py::test_x"]);
    missing.fails(3, &["there is no tests/test_none.py", "`pytest --collect-only -q`"]);
}

#[test]
fn a_test_of_cargo_is_built_first_when_the_user_has_agreed_to_that() {
    if !has_adapter("lldb-dap") {
        return;
    }
    let manifest = "[package]\nname = \"orders\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let stage = CommandSandbox::with(&[("rust/Cargo.toml", manifest), ("rust/src/lib.rs", RUST)]);
    let launch = |name: &str| stage.tether(&["debug", "launch", "--test", name]);
    launch("tests::doubles").fails(5, &["that build its tests are not trusted", " --tests`"]);
    assert!(!stage.sandbox.path("rust/target").exists());
    stage.tether(&["trust", "--tests", "--yes"]).ok();
    stops_in(&stage, "tests::doubles", "rust/src/lib.rs");
    launch("other::doubles").fails(3, &["(lib orders)", "hint: there are: tests::doubles, tests::doubles_not"]);
    stage.sandbox.write("rust/src/lib.rs", &RUST.replace("price * 2", "price * two"));
    launch("tests::doubles").fails(4, &["cannot build the tests in", "cannot find value `two`", "cargo test --no-run"]);
    stage.is_quiet();
}

const RUST_ENVIRONMENT: &str = "\
#[test]
fn has_what_cargo_gives() {
    let seen: Vec<String> = [\"FROM_CONFIG\", \"FROM_SCRIPT\", \"CARGO_PKG_NAME\", \"CARGO_PKG_VERSION\", \"OUT_DIR\", \"CARGO_MANIFEST_DIR\", \"LD_LIBRARY_PATH\"]
        .iter().map(|name| format!(\"{name}={}\", std::env::var(name).unwrap_or_default())).collect();
    let total = 40 + helper::two();
    let seen_all = seen.join(\" \"); // STOP
    println!(\"seen {seen_all}\");
    assert!(total == 42 && std::path::Path::new(&std::env::var(\"OUT_DIR\").unwrap()).is_dir());
}
";

#[test]
fn a_test_of_cargo_has_the_environment_in_which_cargo_runs_it() {
    if !has_adapter("lldb-dap") {
        return;
    }
    let manifest = "[package]\nname = \"orders\"\nversion = \"0.1.7\"\nedition = \"2021\"\n[dependencies]\n\
                    helper = { path = \"helper\" }\n[workspace]\n";
    let helper =
        "[package]\nname = \"helper\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\ncrate-type = [\"dylib\"]\n";
    let build = "fn main() { println!(\"cargo:rustc-env=FROM_SCRIPT=scripted\"); }\n";
    let stage = CommandSandbox::with(&[
        ("rust/Cargo.toml", manifest),
        ("rust/.cargo/config.toml", "[env]\nFROM_CONFIG = { value = \"configured\", relative = false }\n"),
        ("rust/build.rs", build),
        ("rust/src/lib.rs", ""),
        ("rust/tests/environment.rs", RUST_ENVIRONMENT),
        ("rust/helper/Cargo.toml", helper),
        // Its library is found by the path that cargo sets only.
        ("rust/helper/src/lib.rs", "pub fn two() -> u32 { 2 }\n"),
    ]);
    stage.tether(&["trust", "--tests", "--yes"]).ok();
    stops_in(&stage, "has_what_cargo_gives", "rust/tests/environment.rs");
    let printed = stage.json(&["debug", "output"]).to_string();
    let folder = stage.sandbox.path("rust").display().to_string();
    for expected in [
        "FROM_CONFIG=configured",
        "FROM_SCRIPT=scripted",
        "CARGO_PKG_NAME=orders",
        "CARGO_PKG_VERSION=0.1.7",
        &format!("CARGO_MANIFEST_DIR={folder}"),
        &format!("OUT_DIR={folder}/target/debug/build/orders-"),
        &format!("{folder}/target/debug/deps"),
    ] {
        assert!(printed.contains(expected), "{expected} is not in {printed}");
    }
}

#[test]
fn a_test_of_go() {
    if !has_adapter("dlv") {
        return;
    }
    let module = "module example.org/orders\n\ngo 1.19\n";
    let stage = CommandSandbox::with(&[("go/go.mod", module), ("go/orders_test.go", GO)]);
    assert_eq!(stops_in(&stage, "TestTwice/a lot", "go/orders_test.go")["adapter"], "dlv");
    stage.json(&["break", "remove", "--all"]);
    for (name, code) in [("TestTwice", 0), ("TestTwiceNot", 1)] {
        let ended = stage.json(&["debug", "launch", "--test", name, "--wait", "100"]);
        assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(code)), "{ended:#}");
        assert_eq!(ended["message"].to_string().contains("nobody asked for this one"), code == 1, "{ended:#}");
    }
}

#[test]
fn a_test_of_node() {
    if !has_adapter("js-debug") {
        return;
    }
    let stage = CommandSandbox::with(&[("js/orders.test.js", NODE)]);
    assert_eq!(stops_in(&stage, "doubles (a lot)", "js/orders.test.js")["adapter"], "node");
}

const NESTED: &str = "\
const { describe, it, test } = require('node:test');
describe('orders', () => {
  describe('twice', () => {
    it('doubles', () => {
      const total = 21 * 2;
      console.log(total); // STOP
    });
    it('other', () => { throw new Error('nobody asked for this one'); });
  });
  it('skipped', { skip: true }, () => {});
});
test('outer', async (t) => {
  await t.test('inner', () => {
    const total = 20 * 2;
    console.log(total); // INNER
  });
});
";

#[test]
fn nested_tests_of_node_and_a_run_without_a_test() {
    if !has_adapter("js-debug") {
        return;
    }
    let stage = CommandSandbox::with(&[("js/nested.test.js", NESTED)]);
    for name in ["doubles", "twice > doubles", "orders twice doubles"] {
        stops_in(&stage, name, "js/nested.test.js");
    }
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["break", &stage.at("js/nested.test.js", "INNER")]);
    let inner = stage.json(&["debug", "launch", "--test", "outer > inner", "--wait", "60"]);
    assert_eq!((&inner["stopped"], stage.value("total").as_str()), (&json!(true), "40"), "{inner:#}");
    stage.json(&["debug", "stop"]);
    let skipped = stage.tether(&["debug", "launch", "--test", "skipped", "--wait", "60"]);
    skipped.fails(3, &["the test \"skipped\" was not run", "`node --test` has run no test", "such as `orders > adds`"]);
    stage.json(&["debug", "launch", "--test", "skipped"]);
    stage.tether(&["debug", "wait", "60"]).fails(3, &["the test \"skipped\" was not run"]);
    // That it has ended is known, though the answer was an error.
    for _ in 0..3 {
        stage.tether(&["debug", "launch", "--test", "skipped", "--wait", "60"]).fails(3, &["was not run"]);
        stage.tether(&["debug", "evaluate", "1"]).fails(2, &["its state is TERMINATED"]);
    }
    stage.is_quiet();
}

/// A test file, and a package.json that names the runner, which is installed for the tests.
pub fn package_with(tool: &str, runner: &str, file: &str, text: &str) -> Option<CommandSandbox> {
    let modules = crate::support::requirements::installed_tool(&format!("{tool}/node_modules"))?;
    if !has_adapter("js-debug") {
        return None;
    }
    let manifest = format!("{{\"devDependencies\": {{\"{runner}\": \"*\"}}}}");
    let stage = CommandSandbox::with(&[("web/package.json", &manifest), (&format!("web/{file}"), text)]);
    std::os::unix::fs::symlink(modules, stage.sandbox.path("web/node_modules")).unwrap();
    Some(stage)
}

const SUITES: &str = "\
describe('orders', () => {
  it('doubles', () => {
    const total: number = 21 * 2;
    expect(total).toBe(42); // STOP
  });
  it('doubles not', () => { throw new Error('nobody asked for this one'); });
  it.skip('skipped', () => {});
});
";

fn runs_by(stage: &CommandSandbox, file: &str, runner: &str) {
    for name in ["doubles", "orders > doubles"] {
        assert_eq!(stops_in(stage, name, file)["adapter"], "node");
    }
    let skipped = stage.tether(&["debug", "launch", "--test", "skipped", "--wait", "100"]);
    skipped.fails(3, &["the test \"skipped\" was not run", &format!("`{runner}` has run no test")]);
    stage.is_quiet();
}

#[test]
fn a_test_of_vitest() {
    let text = format!("import {{ describe, it, expect }} from 'vitest';\n{SUITES}");
    let Some(stage) = package_with("vitest", "vitest", "orders.test.ts", &text) else { return };
    runs_by(&stage, "web/orders.test.ts", "vitest run");
}

#[test]
fn a_test_of_jest() {
    let Some(stage) = package_with("jest", "jest", "orders.test.js", &SUITES.replace(": number", "")) else { return };
    runs_by(&stage, "web/orders.test.js", "jest");
}

#[test]
fn a_runner_that_is_not_installed_is_a_missing_tool() {
    let stage = CommandSandbox::with(&[
        ("package.json", "{\"devDependencies\": {\"vitest\": \"*\"}}"),
        ("a.test.ts", "it('adds', () => {});\n"),
    ]);
    let missing = stage.tether(&["debug", "launch", "--test", "adds"]);
    missing.fails(6, &["cannot run `vitest run`", "there is no ", "vitest.mjs", "`npm install`"]);
}

#[test]
fn the_given_folder_holds_for_every_kind_of_launch() {
    let Some(environment) = crate::support::requirements::installed_tool("pytest") else { return };
    if !has_adapter("debugpy") || !has_adapter("js-debug") {
        return;
    }
    let python = "import os\n\ndef test_where():\n    here = os.getcwd()\n    print(here)  # STOP\n\ntest_where()\n";
    let node = "const test = require('node:test');\ntest('where', () => {\n  const here = process.cwd();\n  console.log(here); // STOP\n});\n";
    let launch = "{\"configurations\": [{\"name\": \"Where\", \"type\": \"debugpy\", \"request\": \"launch\", \"program\": \"${workspaceFolder}/tests/test_where.py\"}]}";
    let stage = CommandSandbox::with(&[
        ("tests/test_where.py", python),
        ("js/where.test.js", node),
        (".vscode/launch.json", launch),
        ("other/keep", ""),
    ]);
    std::os::unix::fs::symlink(environment, stage.sandbox.path(".venv")).unwrap();
    stage.tether(&["trust", "--programs", "--yes"]).ok();
    stage.tether(&["trust", "--yes", "--config", "Where"]).ok();
    stage.json(&["break", &stage.at("tests/test_where.py", "STOP")]);
    stage.json(&["break", &stage.at("js/where.test.js", "STOP")]);
    let other = stage.sandbox.path("other").canonicalize().unwrap();
    let stops = |line: &[&str]| {
        let launched = stage.json(&[&["debug", "launch"], line, &["--wait", "100"]].concat());
        assert_eq!(launched["stopped"], true, "{line:?}: {launched:#}");
        assert_eq!(stage.value("here").trim_matches('\''), other.to_str().unwrap(), "{line:?}");
        launched["sessionId"].as_str().unwrap().to_owned()
    };
    for line in [
        &["tests/test_where.py"][..],
        &["js/where.test.js"],
        &["--config", "Where"],
        &["--test", "tests/test_where.py::test_where"],
        &["--test", "test_where"],
        &["--test", "where"],
    ] {
        let id = stops(&[line, &["--cwd", "other"]].concat());
        // A restart keeps it.
        let again = stops(&["--restart", &id]);
        stage.json(&["debug", "stop", &again]);
    }
    let launched = stage.json(&["debug", "launch", "tests/test_where.py", "--wait", "100"]);
    stops(&["--restart", launched["sessionId"].as_str().unwrap(), "--cwd", "other"]);
    stage.json(&["debug", "stop"]);
    stage.is_quiet();
}

#[test]
fn an_ambiguous_or_unknown_test_name_is_an_error_with_a_hint() {
    let stage = CommandSandbox::with(&[
        ("a_test.go", "package a\nfunc TestOne(t *testing.T) {}"),
        ("sub/b_test.go", "package b\nfunc TestOne(t *testing.T) {}"),
    ]);
    let launch = |line: &[&str]| stage.tether(&[&["debug", "launch", "--test"], line].concat());
    launch(&["TestOne"]).fails(2, &["go test in .", "go test in sub", "as `program`"]);
    launch(&["TestNone"]).fails(3, &["no file in", "name its `language` (python, rust, go, javascript, ruby, java)"]);
    launch(&["TestNone", "--language", "go"]).fails(3, &["no *_test.go in"]);
    launch(&["x", "--language", "cobol"]).fails(2, &["\"cobol\"", "python, rust, go, javascript, ruby, java"]);
}
