//! Tests of an extension under the debugger: one by its name, one that stops where it fails, and those of launch.json.

use std::fs;

use serde_json::json;

use super::{line_of, template_with_tests};
use crate::extension_templates::installed_tools;
use crate::support::Sandbox;

const FILE: &str = "src/test/extension.test.ts";

/// The failing test is found by its breakpoint; the extension's own is hit by the test that runs its command.
#[test]
fn a_failing_test_is_found_by_its_breakpoint_and_the_extension_stops_at_its_own() {
    let Some(sandbox) = template_with_tests() else { return };
    sandbox.tether(&["trust", "--tests", "--yes"]).ok();
    let total = format!("{FILE}:{}", line_of(&sandbox, FILE, "TOTAL"));
    let command = format!("src/extension.ts:{}", line_of(&sandbox, "src/extension.ts", "Hello World from"));
    let stopped = sandbox.json(&["test", "--debug", "-b", &total, "-b", &command, "--wait", "90"]);
    assert_eq!(stopped["stopped"], true, "{stopped:#}");
    let place = &stopped["stopReason"]["location"];
    assert_eq!((&place["sourcePath"], &place["lineNumber"]), (&json!(FILE), &json!(line_of(&sandbox, FILE, "TOTAL"))));
    let prices = sandbox.json(&["debug", "evaluate", "prices.length"]);
    assert_eq!(prices["result"], "3", "{prices:#}");
    let next = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(next["stopReason"]["location"]["sourcePath"], "src/extension.ts", "{next:#}");
    // The test has 2 s by itself: a stop does not end it.
    let ended = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    let output = sandbox.tether(&["debug", "output"]).ok().stdout;
    assert!(output.contains("2 passing") && output.contains("1 failing") && output.contains("5 !== 6"), "{output}");
}

#[test]
fn one_test_by_its_name_stops_where_it_fails() {
    let Some(sandbox) = template_with_tests() else { return };
    sandbox.tether(&["trust", "--tests", "--yes"]).ok();
    let launch = ["debug", "launch", "--test", "Orders > adds prices", "--stop-on-failure", "--wait", "90"];
    let stopped = sandbox.json(&launch);
    assert_eq!(stopped["stopReason"]["type"], "EXCEPTION", "{stopped:#}");
    let thrown = &stopped["stopReason"]["details"]["exceptionType"];
    assert_eq!(
        (thrown, &stopped["stopReason"]["location"]["lineNumber"]),
        (&json!("AssertionError"), &json!(line_of(&sandbox, FILE, "FAILS")))
    );
    // The values are those of the test, above the frames of `assert`.
    assert!(stopped.to_string().contains("\"name\":\"sum\""), "{stopped:#}");
    let stack = sandbox.tether(&["debug", "stack"]).ok().stdout;
    assert!(stack.contains(&format!("{FILE}:{}", line_of(&sandbox, FILE, "FAILS"))), "{stack}");
    let ended = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    let output = sandbox.tether(&["debug", "output"]).ok().stdout;
    assert!(
        output.contains("1 failing") && !output.contains("passing (0)") && !output.contains("runs the command"),
        "{output}"
    );
    // A session that is stopped takes its host along.
    let breakpoint = format!("{FILE}:{}", line_of(&sandbox, FILE, "TOTAL"));
    sandbox.json(&["debug", "launch", "--test", "adds prices", "-b", &breakpoint, "--wait", "90"]);
    sandbox.tether(&["debug", "stop"]).ok();
}

const OWN_RUNNER: &str = r#"
const Mocha = require('mocha');
exports.run = () => {
  const mocha = new Mocha({ ui: 'tdd' });
  mocha.addFile(require('path').join(__dirname, 'own.test.js'));
  return new Promise((resolve, reject) => mocha.run((failures) => (failures ? reject(new Error(`${failures} failed`)) : resolve())));
};
"#;
const OWN_TESTS: &str = "const assert = require('assert');
suite('own', () => {
  test('passes', () => {});
  test('fails', () => {
    const left = 1;
    assert.equal(left, 2); // FAILS
  });
});
";

/// A configuration of launch.json with the workspace's own runner: run, debugged, and refused as a window with the way out.
#[test]
fn a_configuration_with_its_own_runner_is_run_and_debugged() {
    let Some(sandbox) = template_with_tests() else { return };
    fs::remove_file(sandbox.path(".vscode-test.mjs")).unwrap();
    let launch = json!({"configurations": [{
        "name": "Own Tests", "type": "extensionHost", "request": "launch",
        "args": ["--extensionDevelopmentPath=${workspaceFolder}", "--extensionTestsPath=${workspaceFolder}/suite/index"],
    }]});
    sandbox.write(".vscode/launch.json", &launch.to_string());
    // The runner finds Mocha as the project has it.
    let tools = installed_tools(&crate::extension_templates::TYPESCRIPT).unwrap();
    assert!(tools.join("template-ts/node_modules/mocha").is_dir());
    sandbox.write("suite/index.js", OWN_RUNNER);
    sandbox.write("suite/own.test.js", OWN_TESTS);
    follows_its_hints(&sandbox);
    sandbox.tether(&["trust", "--config", "Own Tests", "--yes"]).ok();
    let run = sandbox.tether(&["test", "--config", "Own Tests", "--json"]);
    let report = run.json();
    assert_eq!((run.code, &report["passed"], &report["failed"]), (1, &json!(1), &json!(1)), "{report:#}");
    let one = sandbox.json(&["test", "own > passes", "--config", "Own Tests"]);
    assert_eq!((&one["passed"], &one["failed"]), (&json!(1), &json!(0)), "{one:#}");
    let line = line_of(&sandbox, "suite/own.test.js", "FAILS");
    let at = format!("suite/own.test.js:{line}");
    let stopped = sandbox.json(&["debug", "launch", "--config", "Own Tests", "-b", &at, "--wait", "90"]);
    assert_eq!(stopped["stopReason"]["location"]["lineNumber"], line, "{stopped:#}");
    assert_eq!(sandbox.json(&["debug", "evaluate", "left"])["result"], "1");
    assert_eq!(sandbox.json(&["debug", "continue", "--wait", "60"])["state"], "TERMINATED");
}

/// As a window it is refused with the commands that run and debug it; both are accepted, but for the consent.
fn follows_its_hints(sandbox: &Sandbox) {
    let refused = sandbox.tether(&["start", "--config", "Own Tests"]);
    for hint in ["tether test --config 'Own Tests'", "tether debug launch --config 'Own Tests'"] {
        assert!(refused.stderr.contains(hint), "{refused:?}");
    }
    sandbox.tether(&["test", "--config", "Own Tests"]).fails(5, &["tether trust", "--config 'Own Tests'"]);
    sandbox.tether(&["debug", "launch", "--config", "Own Tests"]).fails(5, &["tether trust", "--config 'Own Tests'"]);
}
