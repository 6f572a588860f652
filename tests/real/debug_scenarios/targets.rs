//! M1–M6: one session, several targets.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;

/// Runs `work` in its main thread, in a worker and in a forked process.
pub const FAMILY: &str = "\
const { Worker, isMainThread } = require('node:worker_threads');
const { fork } = require('node:child_process');

function work(who) {
  const length = who.length;
  return length; // STOP
}

if (process.argv[2] === 'child') {
  work('child');
} else if (isMainThread) {
  work('main');
  new Worker(__filename);
  fork(__filename, ['child']);
} else {
  work('the worker');
}
";

fn names(status: &Value) -> Vec<String> {
    status["targets"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

/// The threads that are suspended.
fn threads(status: &Value) -> Value {
    status["suspendedThreads"].as_array().unwrap().iter().map(|thread| thread["threadId"].clone()).collect()
}

#[test]
fn a_program_its_worker_and_its_child_are_one_session_and_each_stop_is_inspected_once() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "family.js", FAMILY) else { return };
    let set = stage.breaks("STOP");
    assert_eq!(set["state"], "pending");
    let launched = stage.json(&["debug", "launch", "family.js", "--adapter", "js-debug", "--wait", "60"]);
    stage.check(&launched, "BREAKPOINT_HIT", "STOP");
    let status = stage.json(&["debug", "status"]);
    assert!(names(&status).len() >= 2, "the parent coordinates, a child executes: {status}");
    let program = status["targets"].as_array().unwrap().iter().find(|target| target["state"] == "STOPPED").unwrap();
    assert_eq!((&program["targetId"], &program["parent"]), (&json!(1), &json!(0)), "{status}");
    assert_eq!((&program["language"], &program["threadIds"]), (&json!("javascript"), &threads(&status)), "{status}");
    assert!(status["adapterPid"].is_u64() && status["adapterPid"] != status["pid"], "{status}");
    let listed = stage.json(&["break", "list"])["breakpoints"][0].clone();
    assert_eq!((listed["state"].as_str(), listed["line"].as_u64()), (Some("verified"), Some(stage.line("STOP"))));

    let mut seen = Vec::new();
    let mut stop = launched;
    for hit in 1..=3 {
        stage.check(&stop, "BREAKPOINT_HIT", "STOP");
        assert_eq!(stop["stopReason"]["details"]["hitCount"], hit, "{stop:#}");
        // Without a frame, the top frame of the primary stop.
        let who = stage.json(&["debug", "evaluate", "who"])["result"].as_str().unwrap().to_owned();
        let length = stage.json(&["debug", "evaluate", "length"])["result"].as_str().unwrap().to_owned();
        assert_eq!(ScenarioSandbox::local(&stop, "length"), length);
        seen.push(who);
        stop = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    seen.sort();
    assert_eq!(seen, ["'child'", "'main'", "'the worker'"]);
    assert_eq!(stop["state"], "TERMINATED", "all three end, and the session with them: {stop}");
    stage.nothing_is_left();
}

#[test]
fn a_stop_leaves_nothing_of_children_parent_and_adapter() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "family.js", FAMILY) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "family.js", "--adapter", "js-debug", "--wait", "60"]);
    let next = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&next, "BREAKPOINT_HIT", "STOP");
    assert!(stage.others().len() >= 2);
    let ended = stage.json(&["debug", "stop"]);
    assert!(["TERMINATED", "DISCONNECTED"].contains(&ended["state"].as_str().unwrap()), "{ended}");
    assert_eq!(stage.others(), []);
    // A second stop has no effect.
    stage.json(&["debug", "stop"]);
}
