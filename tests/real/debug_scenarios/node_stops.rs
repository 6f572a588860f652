//! Our own adapter for Node: workers and children as threads, compiled sources, values page by page, evaluations that never
//! end, function breakpoints.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::targets::FAMILY;
use crate::support::requirements::installed_tool;
use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

fn launched(stage: &ScenarioSandbox) -> Value {
    stage.json(&["debug", "launch", stage.file, "--adapter", "node", "--wait", "60"])
}

fn value_of(stage: &ScenarioSandbox, expression: &str) -> String {
    stage.json(&["debug", "evaluate", expression])["result"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_its_worker_and_its_child_are_threads_of_one_session() {
    let Some(stage) = ScenarioSandbox::with("node", "family.js", FAMILY) else { return };
    assert_eq!(stage.breaks("STOP")["state"], "pending");
    let mut stop = launched(&stage);
    let (mut seen, mut threads) = (Vec::new(), Vec::new());
    for hit in 1..=3 {
        stage.check(&stop, "BREAKPOINT_HIT", "STOP");
        assert_eq!(stop["stopReason"]["details"]["hitCount"], hit, "{stop:#}");
        assert_eq!(ScenarioSandbox::local(&stop, "length"), value_of(&stage, "length"));
        seen.push(value_of(&stage, "who"));
        threads.push(stop["stopReason"]["threadName"].as_str().unwrap().to_owned());
        stop = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    seen.sort();
    assert_eq!(seen, ["'child'", "'main'", "'the worker'"]);
    assert!(threads.iter().any(|name| name.starts_with("worker 1 of family.js [")), "{threads:?}");
    assert_eq!((&stop["state"], &stop["exitCode"]), (&json!("TERMINATED"), &json!(0)), "all three end: {stop}");
    stage.nothing_is_left();
}

/// Its child takes 400 ms from saying where its inspector is until it waits for its debugger.
const SLOW_CHILD: &str = "\
const { fork } = require('node:child_process');
if (process.argv[2] === 'child') {
  console.log('the child'); // STOP
} else {
  const options = `--require \"${__dirname}/slow.cjs\" ${process.env.NODE_OPTIONS}`;
  fork(__filename, ['child'], { env: { ...process.env, NODE_OPTIONS: options } });
}
";
const SLOW_INSPECTOR: &str = "\
const inspector = require('node:inspector');
const wait = inspector.waitForDebugger;
inspector.waitForDebugger = () => {
  for (const start = Date.now(); Date.now() - start < 400;);
  wait();
};
";

#[test]
fn a_child_that_is_told_to_run_before_it_waits_for_that_runs() {
    let Some(stage) = ScenarioSandbox::with("node", "slow.js", SLOW_CHILD) else { return };
    stage.sandbox.write("slow.cjs", SLOW_INSPECTOR);
    stage.breaks("STOP");
    stage.check(&launched(&stage), "BREAKPOINT_HIT", "STOP");
    assert_eq!(value_of(&stage, "process.argv[2]"), "'child'");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    stage.nothing_is_left();
}

const TYPESCRIPT: &str = "\
interface Order {
  id: number;
}

export function total(order: Order): number {
  const twice: number = order.id * 2;
  return twice; // STOP
}

console.log(total({ id: 21 })); // CALL
";

#[test]
fn a_bundle_stops_in_its_typescript_and_steps_through_it() {
    let Some(esbuild) = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild") else { return };
    for map in ["--sourcemap", "--sourcemap=inline"] {
        let Some(stage) = ScenarioSandbox::with("node", "total.ts", TYPESCRIPT) else { return };
        stage.sandbox.write("main.ts", "import { total } from './total';\nconsole.log(total({ id: 1 }));\n");
        let mut build = std::process::Command::new(&esbuild);
        build.args(["main.ts", "--bundle", "--platform=node", "--outfile=out/main.js", map]);
        run_command({
            build.current_dir(&stage.sandbox.workspace);
            build
        })
        .ok();
        stage.breaks("CALL");
        let stopped = stage.json(&["debug", "launch", "out/main.js", "--adapter", "node", "--wait", "60"]);
        stage.check(&stopped, "BREAKPOINT_HIT", "CALL");
        assert_eq!(stopped["stopReason"]["location"]["sourcePath"], "total.ts");
        let inside = stage.json(&["debug", "step", "into", "--wait", "60"]);
        assert_eq!(inside["stopReason"]["location"]["sourcePath"], "total.ts", "{inside:#}");
        let next = stage.json(&["debug", "step", "over", "--wait", "60"]);
        stage.check(&next, "STEP_COMPLETE", "STOP");
        assert_eq!(value_of(&stage, "twice"), "42");
        stage.json(&["debug", "stop"]);
        stage.nothing_is_left();
    }
}

const VALUES: &str = "\
class Point {
  #hidden = 7;
  constructor(x) { this.x = x; }
}
let ran = 0;
const lazy = { get answer() { ran += 1; return 42; } };
const map = new Map([['k', 1], [{ deep: true }, 'v']]);
const set = new Set(['a', 'b']);
const bytes = new Uint8Array([1, 2, 3]);
const point = new Point(3);
const error = new RangeError('too far');
const big = 12345678901234567890n;
const many = new Map(Array.from({ length: 1_000_000 }, (_, at) => [at, at * 2]));
let changed = 'before';
console.log('here'); // STOP
console.log(changed); // AFTER
";

#[test]
fn values_are_shown_by_content_and_getters_run_only_when_they_are_opened() {
    let Some(stage) = ScenarioSandbox::with("node", "values.js", VALUES) else { return };
    stage.breaks("STOP");
    stage.check(&launched(&stage), "BREAKPOINT_HIT", "STOP");
    for (expression, text) in [
        ("map", "Map(2) {'k' => 1, {deep: true} => 'v'}"),
        ("set", "Set(2) {'a', 'b'}"),
        ("bytes", "Uint8Array(3) [1, 2, 3]"),
        ("point", "Point {#hidden: 7, x: 3}"),
        ("error", "RangeError: too far"),
        ("big", "12345678901234567890n"),
        ("lazy", "{answer: (getter)}"),
        ("() => 1", "ƒ () => 1"),
        ("Point", "class Point"),
        ("{ a: -0, b: [undefined, null] }", "{a: -0, b: Array(2)}"),
    ] {
        assert_eq!(value_of(&stage, expression), text, "{expression}");
    }
    let open = |expression: &str, more: &[&str]| -> Vec<String> {
        let reference = stage.json(&["debug", "evaluate", expression])["variablesReference"].to_string();
        let answer = stage.json(&[&["debug", "variables", "--in", &reference], more].concat());
        let variables = answer["variables"].as_array().unwrap().iter();
        variables.map(|it| format!("{}={}", it["name"].as_str().unwrap(), it["value"].as_str().unwrap())).collect()
    };
    assert!(open("point", &[]).contains(&"#hidden=7".to_owned()), "private fields are shown");
    assert_eq!(open("map", &["--count", "1"]), ["0={'k' => 1}"]);
    assert_eq!(
        open("many", &["--start", "999998", "--count", "2"])[..2],
        ["999998={999998 => 1999996}", "999999={999999 => 1999998}"]
    );
    assert_eq!(open("lazy", &["answer"]), ["answer=(getter)"]);
    assert_eq!(value_of(&stage, "ran"), "0");
    let lazy = stage.json(&["debug", "evaluate", "lazy"])["variablesReference"].to_string();
    let getter = stage.json(&["debug", "variables", "--in", &lazy, "answer"])["variables"][0].clone();
    let opened = stage.json(&["debug", "variables", "--in", &getter["variablesReference"].to_string()]);
    assert_eq!((opened["variables"][0]["value"].as_str(), value_of(&stage, "ran").as_str()), (Some("42"), "1"));
    stage.json(&["debug", "set", "changed", "'after'"]);
    stage.json(&["debug", "step", "over", "--wait", "60"]);
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED");
    assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("after"));
    stage.nothing_is_left();
}

#[test]
fn an_evaluation_that_never_ends_is_ended_and_the_program_stays_stopped() {
    let Some(stage) = ScenarioSandbox::with("node", "endless.js", "let count = 1;\nconsole.log(count); // STOP\n")
    else {
        return;
    };
    stage.breaks("STOP");
    stage.check(&launched(&stage), "BREAKPOINT_HIT", "STOP");
    let begun = Instant::now();
    stage
        .sandbox
        .tether(&["debug", "evaluate", "(() => { for (;;); })()"])
        .fails(1, &["has not ended within", "terminated"]);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(value_of(&stage, "count"), "1");
    assert_eq!(stage.json(&["debug", "continue", "--wait", "60"])["exitCode"], 0);
    stage.nothing_is_left();
}

const CALLS: &str = "\
globalThis.charge = function charge(amount) {
  return amount * 2;
};
debugger; // FIRST
for (let round = 0; round < 6; round++) {
  charge(round); // LOOP
}
console.log('done'); // DONE
";

#[test]
fn functions_counts_and_log_messages_are_breakpoints() {
    let Some(stage) = ScenarioSandbox::with("node", "calls.js", CALLS) else { return };
    stage.json(&["break", "set", "--function", "charge"]);
    stage.json(&["break", "set", &stage.at("LOOP"), "--log", "round {round} of {({ six: 6 }).six}"]);
    let first = launched(&stage);
    assert_eq!(first["stopReason"]["location"]["lineNumber"], stage.line("FIRST"), "{first:#}");
    let called = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(called["stopReason"]["location"]["methodName"], "charge", "{called:#}");
    assert_eq!(value_of(&stage, "amount"), "0");
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["break", "set", &stage.at("LOOP"), "--hits", "3"]);
    let third = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&third, "BREAKPOINT_HIT", "LOOP");
    assert_eq!(value_of(&stage, "round"), "3", "the third after the first that had run already");
    assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("round 0 of 6"));
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

const LATE_CHILD: &str = "\
const { existsSync } = require('node:fs');
const { execFileSync } = require('node:child_process');
setInterval(() => {
  if (!existsSync('go')) return;
  execFileSync(process.execPath, ['-e', 'fs.writeFileSync(\"child\", \"ran\")']);
  process.exit();
}, 20);
console.log('up'); // UP
";

#[test]
fn a_program_that_was_let_go_starts_its_children_as_if_it_was_never_debugged() {
    let Some(stage) = ScenarioSandbox::with("node", "late.js", LATE_CHILD) else { return };
    stage.breaks("UP");
    stage.check(&launched(&stage), "BREAKPOINT_HIT", "UP");
    stage.json(&["debug", "stop", "--detach"]);
    stage.sandbox.write("go", "");
    let child = stage.sandbox.path("child");
    crate::support::eventually("its child has run", || std::fs::read_to_string(&child).ok().filter(|it| it == "ran"));
    stage.nothing_is_left();
}
