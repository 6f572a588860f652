//! A start that fails while a window runs: the window stays, or is started again, and the next edit finds it.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Sandbox, eventually, is_alive, kill, wait_for_end};

const SERVICE: &str = "globalThis.answer = process.env.ANSWER; setInterval(() => {}, 1000);";

/// A workspace whose first configuration is "good", with these others.
fn sandbox(others: &[Value]) -> Sandbox {
    let sandbox = Sandbox::new();
    let good = configuration("good", json!({}));
    let all: Vec<&Value> = [&good].into_iter().chain(others).collect();
    sandbox.write(".vscode/launch.json", &json!({ "configurations": all }).to_string());
    let task = json!({"label": "slow", "type": "shell", "command": "echo > node_modules/building; sleep 1000"});
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    sandbox.write("server.js", SERVICE);
    for one in &all {
        sandbox.tether(&["trust", "--yes", "--config", one["name"].as_str().unwrap()]).ok();
    }
    sandbox
}

fn configuration(name: &str, other: Value) -> Value {
    let mut one =
        json!({"name": name, "type": "node", "request": "launch", "program": "server.js", "env": {"ANSWER": name}});
    one.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    one
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap_or_else(|| panic!("no window: {status}")) as u32
}

/// The next edit relaunches the window of "good", also under another supervisor.
fn check_next_edit(sandbox: &Sandbox, case: &str) {
    for edit in ["\n", "\n\n"] {
        sandbox.write("server.js", &format!("{SERVICE}{edit}"));
        let reported = sandbox.json(&["evaluate", "answer"]);
        let found = (&reported["value"], reported["refreshed"].is_object());
        assert_eq!(found, (&json!("good"), true), "{case}: {reported}");
        sandbox.tether(&["shutdown"]).ok();
    }
    sandbox.write("server.js", SERVICE);
    sandbox.json(&["evaluate", "answer"]);
}

#[test]
fn a_start_that_cannot_succeed_leaves_the_running_window_alone() {
    let cases = [
        ("no script", json!({"program": "none.js"}), "there is no such file"),
        ("a folder", json!({"program": "folder"}), "it is not a file"),
        ("no program", json!({"runtimeExecutable": "./no-such-node"}), "there is no such program"),
        ("not executable", json!({"runtimeExecutable": "${workspaceFolder}/plain"}), "there is no such program"),
        ("no folder", json!({"cwd": "${workspaceFolder}/missing"}), "there is no such folder"),
    ];
    let configurations: Vec<Value> = cases.iter().map(|(name, other, _)| configuration(name, other.clone())).collect();
    let sandbox = sandbox(&configurations);
    sandbox.write("plain", "");
    fs::create_dir(sandbox.path("folder")).unwrap();
    let good = sandbox.json(&["start"]);
    for (name, _, cause) in &cases {
        let failed = sandbox.tether(&["start", "--config", name]);
        assert!(!failed.stderr.contains("started again"), "{name}: {}", failed.stderr);
        assert!(failed.stderr.contains(cause), "{name}: {}", failed.stderr);
        assert_eq!(sandbox.status()["pid"], good["pid"], "{name}: the window stays");
    }
    check_next_edit(&sandbox, "all");
}

#[test]
fn a_restart_on_a_port_that_is_taken_leaves_the_running_window_alone() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let toml = |port: u16| {
        format!("[window]\nkind = 'node'\nprogram = 'server.js'\nruntimeArgs = ['--inspect=127.0.0.1:{port}']\n")
    };
    let sandbox = Sandbox::with(&[("server.js", SERVICE), ("devtools.toml", &toml(0))]);
    let first = sandbox.json(&["start"]);
    let port = taken.local_addr().unwrap().port();
    sandbox.write("devtools.toml", &toml(port));
    sandbox.tether(&["trust", "--yes"]).ok();
    let this_process = format!("process {}", std::process::id());
    sandbox.tether(&["restart"]).fails(1, &[&format!("port {port}"), "is in use", &this_process]);
    assert_eq!(sandbox.status()["pid"], first["pid"]);
    // A port that only the window itself uses is free once it is closed.
    drop(taken);
    let second = sandbox.json(&["restart"]);
    assert_eq!(second["inspectorPort"], port);
    let third = sandbox.json(&["restart"]);
    assert_eq!((&third["inspectorPort"], third["pid"] != second["pid"]), (&json!(port), true));
}

#[test]
fn a_window_is_started_again_after_the_one_that_was_to_replace_it_has_exited() {
    let sandbox = sandbox(&[configuration("bad", json!({"program": "bad.js"}))]);
    sandbox.write("bad.js", "console.log('no database'); process.exit(3);");
    let good = sandbox.json(&["start"]);
    let check = |failing: &[&str]| {
        sandbox.tether(failing).fails(1, &["no database", "code 3", "the window before was started again", "good"]);
        let status = sandbox.once_it_answers(sandbox.status());
        assert_eq!(status["state"], "ready", "{status}");
        assert!(pid(&status) != pid(&good) && !is_alive(pid(&good)), "{status}");
        assert!(status["generation"].as_u64() > good["generation"].as_u64(), "{status}");
        assert!(status["notes"].to_string().contains("started again"), "{status}");
        assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], "good");
    };
    check(&["start", "--config", "bad"]);
    check_next_edit(&sandbox, "start");
    // Under a supervisor that has found the window, too.
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    check(&["start", "--config", "bad"]);
    // A second failure names both.
    sandbox.write("server.js", "process.exit(4);");
    let failed = sandbox.tether(&["start", "--config", "bad"]);
    failed.fails(1, &["code 3", "could not be started again", "code 4"]);
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn a_window_is_started_again_as_it_was_when_its_changed_settings_fail() {
    let toml =
        |program: &str| format!("[window]\nkind = 'node'\nprogram = '{program}'\n[window.env]\nANSWER = 'good'\n");
    let sandbox = Sandbox::with(&[("server.js", SERVICE), ("devtools.toml", &toml("server.js"))]);
    sandbox.write("bad.js", "process.exit(3);");
    sandbox.json(&["start"]);
    for failing in [&["restart"][..], &["evaluate", "answer"]] {
        sandbox.write("devtools.toml", &toml("bad.js"));
        sandbox.tether(&["trust", "--yes"]).ok();
        sandbox.tether(failing).fails(1, &["code 3", "the window before was started again"]);
        sandbox.write("devtools.toml", &toml("server.js"));
        sandbox.tether(&["trust", "--yes"]).ok();
        assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], "good", "{failing:?}");
    }
    // The same settings with another program cannot be taken back: nothing else is started.
    sandbox.write("server.js", "process.exit(5);");
    let failed = sandbox.tether(&["evaluate", "answer"]);
    failed.fails(1, &["code 5"]);
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn a_configuration_whose_start_was_interrupted_is_not_the_choice_of_the_next_supervisor() {
    let sandbox = sandbox(&[configuration("slow", json!({"preLaunchTask": "slow"}))]);
    sandbox.json(&["start"]);
    let mut start = sandbox.command(["start", "--config", "slow"]);
    let mut start = start.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("it builds", || sandbox.path("node_modules/building").exists().then_some(()));
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    kill(start.id(), Signal::KILL);
    start.wait().unwrap();
    check_next_edit(&sandbox, "interrupted");
}
