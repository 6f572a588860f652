//! What is told of a session besides its stops: events of targets and threads, loaded sources, launches that fail; and long
//! lists of Python.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;

/// The texts of the events of a kind.
fn texts(events: &Value, kind: &str) -> Vec<String> {
    let entries = events["entries"].as_array().unwrap_or_else(|| panic!("{events:#}"));
    let of_kind = entries.iter().filter(|it| it["event"] == kind);
    of_kind.map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

const WORKERS: &str = "\
const { Worker, isMainThread } = require('node:worker_threads');
if (isMainThread) {
  new Worker(__filename).on('exit', () => console.log('worker ended'));
} else {
  console.log('worker');
}
";

#[test]
fn targets_and_loaded_sources_are_events_of_their_own_kinds() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "workers.js", WORKERS) else { return };
    let ended = stage.json(&["debug", "launch", "workers.js", "--adapter", "js-debug", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["adapter"]), (&json!("TERMINATED"), &json!("js-debug")), "{ended:#}");
    let all = stage.json(&["debug", "events", "--limit", "1000"]);
    let (started, over) = (texts(&all, "targetStarted"), texts(&all, "targetEnded"));
    // The adapter's parent, the program and its worker.
    assert!(started.len() == 3 && over.len() == 3, "{all:#}");
    assert!(started[2].starts_with("target 2 ") && started[2].ends_with(", of target 1"), "{started:?}");
    let of_targets = stage.json(&["debug", "events", "--kinds", "targetStarted,targetEnded"]);
    assert_eq!(of_targets["entries"].as_array().unwrap().len(), 6, "{of_targets:#}");

    assert_eq!(texts(&all, "loadedSource"), [""; 0], "they are apart");
    let loaded = stage.json(&["debug", "events", "--kinds", "loadedSource", "--limit", "1000"]);
    assert!(texts(&loaded, "loadedSource").iter().any(|text| text.ends_with("/workers.js")), "{loaded:#}");
    let cursor = loaded["cursor"].to_string();
    let rest = stage.json(&["debug", "events", "--kinds", "loadedSource", "--since", &cursor]);
    assert_eq!(texts(&rest, "loadedSource"), [""; 0]);
    let both = stage.sandbox.tether(&["debug", "events", "--kinds", "loadedSource,module"]);
    both.fails(2, &["together with others", "`tether debug events --kinds loadedSource`"]);
    stage.nothing_is_left();
}

#[test]
fn the_end_of_a_thread_has_one_name() {
    let text = "import threading\nfor number in range(3):\n    thread = threading.Thread(target=print)\n    thread.start()\n    thread.join()\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "threads.py", text) else { return };
    stage.json(&["debug", "launch", "threads.py", "--wait", "60"]);
    let events = stage.json(&["debug", "events", "--kinds", "threadStarted,threadEnded"]);
    assert!(texts(&events, "threadEnded").len() >= 3, "{events:#}");
    assert!(texts(&events, "threadStarted").len() >= 3, "{events:#}");
}

#[test]
fn a_launch_that_fails_leaves_no_breakpoint_and_no_other_condition() {
    let text = "def total(order):\n    amount = order * 2\n    return amount\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "app.py", text) else { return };
    stage.json(&["break", "set", "app.py:2", "--condition", "order == 3"]);
    let before = stage.json(&["break", "list"]);
    stage.sandbox.write("notes.xyz", "?");
    let launch = ["debug", "launch", "notes.xyz", "--break", "app.py:2", "--break", "app.py:3", "--language", "c"];
    stage.sandbox.tether(&launch).fails(2, &["notes.xyz"]);
    assert_eq!(stage.json(&["break", "list"]), before);
    // Of two, the second cannot be set.
    stage
        .sandbox
        .tether(&["debug", "launch", "app.py", "--break", "app.py:3", "--break", "app.py:99"])
        .fails(2, &["99"]);
    assert_eq!(stage.json(&["break", "list"]), before);
}

#[test]
fn a_long_list_of_python_is_read_page_by_page() {
    let text = "big = list(range(0, 200_000, 2))\nprint(len(big))  # STOP\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "big.py", text) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "big.py", "--wait", "60"]);
    let big = stage.json(&["debug", "variables", "big"])["variables"][0]["variablesReference"].to_string();
    let read = |more: &[&str]| {
        let answer = stage.json(&[&["debug", "variables", "--in", &big], more].concat());
        let variables = answer["variables"].as_array().unwrap().iter();
        let report = variables.map(|it| format!("{}={}", it["name"].as_str().unwrap(), it["value"].as_str().unwrap()));
        (report.collect::<Vec<_>>().join(" "), answer["truncated"].as_str().unwrap_or_default().to_owned())
    };
    let (first, left) = read(&["--count", "2"]);
    assert_eq!(first, "00000=0 00001=2");
    assert!(left.ends_with(" more: start 2") && left.starts_with("1000"), "{left}");
    assert_eq!(read(&["--start", "50099", "--count", "2"]).0, "50099=100198 50100=100200", "over the end of a range");
    assert_eq!(read(&["--start", "99", "--count", "2"]).0, "00099=198 00100=200");
    let (end, left) = read(&["--start", "99999", "--count", "10"]);
    assert!(end.starts_with("99999=199998 ") && end.contains("len()=100000") && left.is_empty(), "{end} {left}");
    assert_eq!(read(&["77777", "len()"]).0, "77777=155554 len()=100000");
    stage.sandbox.tether(&["debug", "variables", "--in", &big, "100000"]).fails(3, &["no variable `100000`"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
