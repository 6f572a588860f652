//! The window is built and refreshed after a save, with no operation: `[refresh] on = "save"`, and `tether watch`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{NODE_SERVICE, Sandbox, eventually, kill, node, node_with_build};

/// The service with this value.
fn service(answer: u32) -> String {
    NODE_SERVICE.replace("42", &answer.to_string())
}

fn generation(status: &Value) -> u64 {
    status["generation"].as_u64().unwrap_or_default()
}

/// Waits, with no operation on the window, until a newer one than `before` is up to date.
fn wait_until_fresh(sandbox: &Sandbox, before: u64) -> Value {
    eventually("the window is up to date", || {
        let status = sandbox.status();
        (generation(&status) > before && status["state"] == "ready").then_some(status)
    })
}

/// Its value, which must need no refresh.
fn answer(sandbox: &Sandbox) -> Value {
    let answer = sandbox.json(&["evaluate", "answer"]);
    assert_eq!(answer.get("refreshed"), None, "{answer}");
    answer["value"].clone()
}

fn on_save(sandbox: &Sandbox) {
    let toml = fs::read_to_string(sandbox.path("devtools.toml")).unwrap();
    sandbox.write("devtools.toml", &format!("{toml}[refresh]\non = 'save'\n"));
}

fn rounds(sandbox: &Sandbox) -> usize {
    fs::read_to_string(sandbox.path(".devtools/rounds")).unwrap_or_default().lines().count()
}

#[test]
fn each_save_makes_the_window_fresh_with_no_operation() {
    let sandbox = node();
    on_save(&sandbox);
    let mut last = generation(&sandbox.json(&["start"]));
    for value in 1..=10 {
        sandbox.write("server.js", &service(value));
        last = generation(&wait_until_fresh(&sandbox, last));
        assert_eq!(answer(&sandbox), json!(value));
    }
}

#[test]
fn a_save_that_does_not_build_keeps_the_window_and_a_later_one_mends_it() {
    let sandbox = node_with_build("mkdir -p .devtools; echo x >> .devtools/rounds; test ! -e broken");
    on_save(&sandbox);
    let started = sandbox.json(&["start"]);
    for round in 2..=3 {
        sandbox.write("broken", &"x".repeat(round));
        eventually("the build has failed", || (rounds(&sandbox) == round).then_some(()));
        let status = eventually("the failure is known", || {
            let status = sandbox.status();
            (status["lastBuild"]["ok"] == false && status["state"] == "stale").then_some(status)
        });
        assert_eq!(status["pid"], started["pid"], "{status}");
    }
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.write("server.js", &service(43));
    wait_until_fresh(&sandbox, generation(&started));
    assert_eq!(answer(&sandbox), json!(43));
    // The removal alone may have been a save of its own.
    assert!((4..=5).contains(&rounds(&sandbox)), "{} builds", rounds(&sandbox));
}

#[test]
fn a_burst_of_saves_is_one_round() {
    let sandbox = node_with_build("mkdir -p .devtools; echo x >> .devtools/rounds");
    on_save(&sandbox);
    let started = sandbox.json(&["start"]);
    for number in 0..50 {
        sandbox.write(&format!("module{number}.js"), "");
    }
    sandbox.write("server.js", &service(43));
    eventually("the burst is built", || {
        let status = sandbox.status();
        (generation(&status) > generation(&started) && status["state"] == "ready").then_some(())
    });
    assert_eq!(answer(&sandbox), json!(43));
    // One more where this test was put off in the middle of its writes.
    assert!((2..=3).contains(&rounds(&sandbox)), "{} builds", rounds(&sandbox));
}

#[test]
fn a_build_that_writes_tracked_files_does_not_run_for_ever() {
    let sandbox = node_with_build(
        "mkdir -p .devtools gen; date +%N > gen/stamp.js; echo x >> .devtools/rounds; test ! -e broken",
    );
    on_save(&sandbox);
    sandbox.json(&["start"]);
    let at_start = rounds(&sandbox);
    sandbox.write("broken", "");
    // Each of at most three attempts may be built once.
    eventually("the attempts are over", || (rounds(&sandbox) == at_start + 3).then_some(()));
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.write("server.js", &service(43));
    eventually("it is mended", || (sandbox.status()["state"] == "ready").then_some(()));
    assert_eq!(answer(&sandbox), json!(43));
}

#[test]
fn watch_refreshes_after_each_save_and_prints_what_happens() {
    let sandbox = node_with_build("test ! -e broken || { echo 'src/a.ts(3,1): error TS1005' >&2; exit 2; }");
    let mut watch = sandbox.command(["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut wait_for = |words: &str| -> String {
        let found = lines.find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("{words:?} was not printed"))
    };
    wait_for("watching: each save");
    let started = sandbox.status();
    sandbox.write("server.js", &service(43));
    wait_for("edit: server.js was modified");
    wait_until_fresh(&sandbox, generation(&started));
    assert_eq!(answer(&sandbox), json!(43));
    sandbox.write("broken", "");
    wait_for("build failed");
    wait_for("src/a.ts(3,1): error TS1005");
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.write("server.js", &service(44));
    eventually("it is mended", || (sandbox.status()["state"] == "ready").then_some(()));
    kill(watch.id(), Signal::INT);
    watch.wait().unwrap();
}
