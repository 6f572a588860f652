//! Stops that end without a resume: the stopped process is killed by its own program. (Node ends a worker that is stopped only once it is resumed.)

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::scenario_sandbox::ScenarioSandbox;

/// Kills its child when the file `kill` is there, and then runs on.
const KILLS_PYTHON: &str = "\
import multiprocessing
import os
import time

def work():
    here = os.getpid()
    time.sleep(0.1)  # STOP

if __name__ == '__main__':
    child = multiprocessing.get_context('spawn').Process(target=work)
    child.start()
    while not os.path.exists('kill'):
        time.sleep(0.02)
    child.kill()
    child.join()
    open('killed', 'w').close()
    while not os.path.exists('end'):
        time.sleep(0.02)
    print('the parent ends')
";

const KILLS_NODE: &str = "\
const { fork } = require('node:child_process');
const { existsSync, writeFileSync } = require('node:fs');

function work() {
  const here = process.pid;
  console.log(here); // STOP
}

if (process.argv[2] === 'child') {
  work();
} else {
  const child = fork(__filename, ['child']);
  child.on('exit', () => writeFileSync('killed', ''));
  setInterval(() => {
    if (existsSync('kill')) child.kill('SIGKILL');
    if (existsSync('end')) {
      console.log('the parent ends');
      process.exit(0);
    }
  }, 20);
}
";

fn stop_ends_with_its_process(adapter: &str, file: &'static str, text: &str) {
    let Some(stage) = ScenarioSandbox::with(adapter, file, text) else { return };
    stage.breaks("STOP");
    let stop = stage.json(&["debug", "launch", file, "--adapter", adapter, "--wait", "100"]);
    stage.check(&stop, "BREAKPOINT_HIT", "STOP");
    stage.sandbox.write("kill", "");
    let killed = stage.sandbox.path("killed");
    eventually("the stopped one is gone", || killed.exists().then_some(()));
    let is_running = |status: &Value| status["state"] == "RUNNING" && status["stopReason"].is_null();
    let status =
        eventually("the stop has ended", || Some(stage.json(&["debug", "status"])).filter(|status| is_running(status)));
    assert!(status["message"].as_str().unwrap_or_default().contains("has ended while it was stopped"), "{status:#}");
    let refused = stage.tether(&["debug", "continue"]);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("has ended while it was stopped") && !said.contains("there is no thread"), "{said}");
    let waited = stage.json(&["debug", "wait", "0"]);
    assert_eq!((&waited["stopped"], &waited["state"]), (&json!(false), &json!("RUNNING")), "{waited:#}");
    assert!(waited["notes"].to_string().contains("has ended while it was stopped"), "{waited:#}");
    stage.sandbox.write("end", "");
    let ended = stage.json(&["debug", "wait", "100"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    assert!(stage.json(&["debug", "output"]).to_string().contains("the parent ends"));
    stage.nothing_is_left();
}

#[test]
fn a_stop_ends_with_a_python_child_that_is_killed() {
    stop_ends_with_its_process("debugpy", "kills.py", KILLS_PYTHON);
}

#[test]
fn a_stop_ends_with_a_node_child_that_is_killed() {
    stop_ends_with_its_process("node", "kills.js", KILLS_NODE);
}

#[test]
fn a_stop_of_js_debug_ends_with_a_child_that_is_killed() {
    stop_ends_with_its_process("js-debug", "kills.js", KILLS_NODE);
}
