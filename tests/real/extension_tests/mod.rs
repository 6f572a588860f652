//! The tests of an extension of `generator-code`, run and debugged in a real extension host.

mod debugged;

use std::fs;

use serde_json::{Value, json};

use crate::extension_templates::{TYPESCRIPT, generate, install, installed_tools};
use crate::support::Sandbox;

/// Four tests, one of which fails; the third runs the extension.
const TESTS: &str = r#"import * as assert from 'assert';
import * as vscode from 'vscode';

function total(prices: number[]): number {
	return prices.slice(1).reduce((sum, price) => sum + price, 0); // TOTAL
}

suite('Orders', () => {
	test('knows nothing', () => {
		assert.strictEqual(-1, [1, 2, 3].indexOf(5));
	});

	test('adds prices', () => {
		console.log('adding');
		const sum = total([1, 2, 3]);
		assert.strictEqual(sum, 6); // FAILS
	});

	test('runs the command', async () => {
		await vscode.commands.executeCommand('hello-tether.helloWorld');
	});

	test.skip('is skipped', () => {});
});
"#;

/// The template with these tests, its packages, and consent to its tests. `None`, reported: a tool is missing.
fn template_with_tests() -> Option<Sandbox> {
    let tools = installed_tools(&TYPESCRIPT)?;
    let sandbox = Sandbox::new();
    generate(&tools, &TYPESCRIPT, &sandbox.workspace);
    install(&tools.join(TYPESCRIPT.name), &sandbox.workspace);
    sandbox.write("src/test/extension.test.ts", TESTS);
    Some(sandbox)
}

/// The line of the test file that contains this text, 1-based.
fn line_of(sandbox: &Sandbox, file: &str, text: &str) -> usize {
    let source = fs::read_to_string(sandbox.path(file)).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

fn names(report: &Value, state: &str) -> Vec<String> {
    let tests = report["tests"].as_array().unwrap().iter().filter(|test| test["state"] == state);
    tests.map(|test| test["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_tests_of_the_template_are_built_run_and_reported() {
    let Some(sandbox) = template_with_tests() else { return };
    sandbox.tether(&["test"]).fails(5, &["not trusted", "tether trust", "--tests"]);
    assert!(!sandbox.path("out").exists(), "nothing is built without consent");
    sandbox.tether(&["trust", "--tests", "--yes"]).ok();

    let all = sandbox.tether(&["test", "--json"]);
    assert_eq!(all.code, 1, "{all:?}");
    let report = all.json();
    let counts = ["passed", "failed", "pending"].map(|count| report[count].as_u64().unwrap());
    assert_eq!((counts, &report["ok"]), ([2, 1, 1], &json!(false)), "{report:#}");
    assert_eq!(names(&report, "failed"), ["Orders > adds prices"]);
    let failed = report["tests"].as_array().unwrap().iter().find(|test| test["state"] == "failed").unwrap();
    assert!(failed["error"].as_str().unwrap().contains("5 !== 6"), "{failed:#}");
    // In the source, by the source map of the compiler.
    let place = format!("src/test/extension.test.ts:{}:", line_of(&sandbox, "src/test/extension.test.ts", "FAILS"));
    assert!(failed["stack"][0].as_str().unwrap().contains(&place), "{failed:#}");
    assert!(report["output"].as_str().unwrap().contains("adding"), "{report:#}");
    assert_eq!(sandbox.status()["state"], "absent", "the window is another one");

    let one = sandbox.tether(&["test", "runs the command"]).ok();
    assert!(one.stdout.contains("pass") && one.stdout.contains("1 passed, 0 failed, 0 pending"), "{one:?}");
    let suite = sandbox.tether(&["test", "Orders > adds prices"]);
    assert!(suite.code == 1 && suite.stdout.contains("FAIL") && suite.stdout.contains("| at "), "{suite:?}");
    sandbox.tether(&["test", "adds"]).fails(3, &["no test or suite is named \"adds\"", "\"Orders > adds prices\""]);
    sandbox.tether(&["test", "--config", "e2e"]).fails(3, &["\"e2e\"", ".vscode-test.mjs"]);

    sandbox.write("src/test/extension.test.ts", "throw new Error('at the top');\n");
    let broken = sandbox.tether(&["test", "--json"]);
    let report = broken.json();
    assert_eq!((broken.code, &report["passed"]), (1, &json!(0)), "{report:#}");
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("at the top") && error.contains("src/test/extension.test.ts:1:"), "{error}");
    sandbox.write("src/test/extension.test.ts", "const wrong: number = 'text';\n");
    sandbox.tether(&["test"]).fails(4, &["pretest", "TS2322"]);
}

/// The configurations of a list, with labels, options of Mocha and a folder to open.
#[test]
fn each_configuration_runs_in_a_host_of_its_own() {
    let Some(sandbox) = template_with_tests() else { return };
    sandbox.write("fixture/readme.txt", "");
    let folder = "suite('S', () => { test('opens', () => { require('assert').ok(require('vscode').workspace.workspaceFolders[0].uri.path\
                  .endsWith('/fixture')); }); });";
    sandbox.write("plain/folder.js", folder);
    sandbox.write(
        "plain/spec.js",
        "describe('bdd', () => { it('has its ui', () => { require('assert').equal(process.env.TIER, 'gold'); }); });",
    );
    let config = "module.exports = [
        { label: 'folder', files: 'plain/folder.js', workspaceFolder: './fixture' },
        { label: 'spec', files: ['plain/spec.js'], mocha: { ui: 'bdd' }, env: { TIER: 'gold' } },
    ];";
    fs::remove_file(sandbox.path(".vscode-test.mjs")).unwrap();
    sandbox.write(".vscode-test.js", config);
    sandbox.tether(&["trust", "--tests", "--yes"]).ok();
    let report = sandbox.json(&["test"]);
    assert_eq!(names(&report, "passed"), ["S > opens", "bdd > has its ui"], "{report:#}");
    let configs: Vec<&str> =
        report["tests"].as_array().unwrap().iter().filter_map(|it| it["config"].as_str()).collect();
    assert_eq!(configs, ["folder", "spec"]);
    let one = sandbox.json(&["test", "--config", "spec"]);
    assert_eq!(names(&one, "passed"), ["bdd > has its ui"]);
    sandbox.tether(&["test", "--debug"]).fails(2, &["several configurations: \"folder\", \"spec\""]);
    // What is evaluated is what was consented to.
    sandbox.write(".vscode-test.js", &format!("{config}\n"));
    sandbox.tether(&["test"]).fails(5, &["changed since you agreed"]);
    sandbox.write(".vscode-test.js", "throw new Error('not today');");
    sandbox.tether(&["trust", "--tests", "--yes"]).ok();
    sandbox.tether(&["test"]).fails(2, &["cannot evaluate", "not today"]);
}
