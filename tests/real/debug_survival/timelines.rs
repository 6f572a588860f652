//! The timeline: what has happened is recorded by whoever sees it, outlives all of them, and can be waited for.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::debug_survival::surviving_debuggees::{PYTHON, stop};
use crate::support::scenario_sandbox::found;
use crate::support::{Sandbox, eventually, node_with_build};

fn timeline(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.json(&["timeline", "--limit", "500"])["events"].as_array().unwrap().clone()
}

/// The texts of the events of a kind, the oldest first.
fn texts(events: &[Value], kind: &str) -> Vec<String> {
    events.iter().filter(|it| it["kind"] == kind).map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn edits_builds_and_relaunches_are_recorded_with_their_cause_and_outlive_the_supervisor() {
    let sandbox = node_with_build("if grep -q broken server.js; then echo 'server.js is broken' >&2; exit 1; fi");
    sandbox.json(&["start"]);
    let source = std::fs::read_to_string(sandbox.path("server.js")).unwrap();
    sandbox.write("server.js", &source.replace("42", "43"));
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
    sandbox.write("server.js", &source.replace("42", "broken"));
    sandbox.tether(&["evaluate", "answer"]).fails(4, &["server.js is broken"]);
    sandbox.kill_supervisor();
    let events = eventually("the window is found again", || {
        Some(timeline(&sandbox)).filter(|events| !texts(events, "windowFound").is_empty())
    });
    let numbers: Vec<u64> = events.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let built: Vec<_> = events.iter().filter(|it| it["kind"] == "built").map(|it| it["failed"].clone()).collect();
    assert_eq!(built, [json!(false), json!(false), json!(true)]);
    let launched = texts(&events, "windowLaunched");
    assert!(
        launched[0].ends_with(": launched") && launched[1].contains("because server.js was modified"),
        "{launched:?}"
    );
    assert_eq!(texts(&events, "supervisorStarted").len(), 2);
    assert!(!texts(&events, "edited").is_empty());
    let failed = events.iter().find(|it| it["kind"] == "called" && it["failed"] == true).unwrap();
    assert_eq!((&failed["text"], &failed["by"]), (&json!("window/evaluate answer"), &json!("tether")));
    let file = sandbox.path("trace.json");
    sandbox.json(&["timeline", "--trace", file.to_str().unwrap()]);
    let trace: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let names: Vec<_> =
        trace["traceEvents"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"build failed"), "{names:?}");
    sandbox.json(&["stop"]);
    eventually("its end is recorded", || (texts(&timeline(&sandbox), "windowEnded") == ["stopped"]).then_some(()));
}

#[test]
fn a_wait_for_anything_is_answered_with_the_stop_that_comes_and_misses_none() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    let cursor = sandbox.json(&["timeline"])["cursor"].as_u64().unwrap().to_string();
    let launched = sandbox.json(&["debug", "launch", "app.py", "--break", &stop("app.py", PYTHON), "--wait", "60"]);
    let id = &launched["sessionId"];
    let is_stop = |events: &Value| {
        let [event] = &events["events"].as_array().unwrap()[..] else { panic!("{events}") };
        assert_eq!((&event["kind"], &event["sessionId"]), (&json!("stopped"), id), "{events}");
        assert_eq!(event["place"].as_str(), Some(stop("app.py", PYTHON).as_str()), "{events}");
    };
    // By cursor; and without one, since it is stopped.
    is_stop(&sandbox.json(&["wait", "60", "--since", &cursor]));
    let waited = sandbox.json(&["wait", "60"]);
    is_stop(&waited);
    let cursor = waited["cursor"].as_u64().unwrap().to_string();
    let none = sandbox.json(&["wait", "0", "--since", &cursor]);
    assert_eq!((&none["events"], &none["cursor"]), (&json!([]), &waited["cursor"]), "{none}");
    assert!(none["message"].as_str().unwrap().contains("d1 is STOPPED"), "{none}");
    // It goes on over a killed supervisor; the resume is of who has asked for it.
    let mut waiting = sandbox.command(["--json", "wait", "60", "--since", &cursor]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    sandbox.kill_supervisor();
    sandbox.json(&["debug", "continue"]);
    let answered = waiting.wait_with_output().unwrap();
    is_stop(&serde_json::from_slice(&answered.stdout).unwrap());
    sandbox.json(&["debug", "stop"]);
    eventually("its end is recorded", || (texts(&timeline(&sandbox), "sessionEnded").len() == 1).then_some(()));
    let events = timeline(&sandbox);
    let resumed = events.iter().find(|it| it["kind"] == "resumed").unwrap();
    assert_eq!(resumed["by"], "an agent or a command");
    let called = texts(&events, "called");
    assert!(called.contains(&"debug/launch app.py".to_owned()) || called[0].starts_with("debug/launch"), "{called:?}");
}
