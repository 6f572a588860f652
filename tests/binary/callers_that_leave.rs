//! Callers that give up a build or a task and ask again: it goes on, and the next call finds it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::support::rpc_client::RpcClient;
use crate::support::{Sandbox, eventually, is_alive, kill, node_with_build, wait_for_end};

/// Says that it has begun, and goes on when it may: there is the file "go".
const BUILD: &str = "cd node_modules; echo $$ >> begun; until [ -e go ]; do sleep 0.02; done; echo x >> ended";

fn untracked(sandbox: &Sandbox, file: &str) -> PathBuf {
    sandbox.path("node_modules").join(file)
}

/// The PIDs of the builds that have begun.
fn begun(sandbox: &Sandbox) -> Vec<u32> {
    let text = fs::read_to_string(untracked(sandbox, "begun")).unwrap_or_default();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

fn ended(sandbox: &Sandbox) -> usize {
    fs::read_to_string(untracked(sandbox, "ended")).unwrap_or_default().len() / 2
}

fn sandbox() -> Sandbox {
    let sandbox = node_with_build(BUILD);
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    sandbox
}

#[test]
fn a_build_goes_on_when_its_callers_cancel_or_vanish_and_the_next_call_joins_it() {
    let sandbox = sandbox();
    let mut client = RpcClient::connect(&sandbox);
    for _ in 0..3 {
        let start = client.send("window/start", json!({}));
        eventually("it builds", || begun(&sandbox).pop());
        client.cancel(start);
        assert!(client.response(start)["error"].is_object());
    }
    // A front end that vanishes with its connection.
    let mut vanishing = RpcClient::connect(&sandbox);
    let start = vanishing.send("window/start", json!({}));
    assert!(vanishing.progress(start, "building"));
    drop(vanishing);
    let notes = eventually("the status says that nobody waits", || {
        let status = sandbox.status();
        assert_eq!(status["state"], "building", "{status}");
        Some(status["notes"].to_string()).filter(|notes| notes.contains("still runs without a caller"))
    });
    assert!(notes.contains("tether start"), "{notes}");
    fs::write(untracked(&sandbox, "go"), "").unwrap();
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42);
    assert_eq!((begun(&sandbox).len(), ended(&sandbox)), (1, 1));
    assert!(!sandbox.status()["notes"].to_string().contains("without a caller"));
}

#[test]
fn a_build_whose_callers_have_left_leads_to_a_window() {
    let sandbox = sandbox();
    let mut client = RpcClient::connect(&sandbox);
    let start = client.send("window/start", json!({}));
    eventually("it builds", || begun(&sandbox).pop());
    client.cancel(start);
    client.response(start);
    fs::write(untracked(&sandbox, "go"), "").unwrap();
    eventually("the window is there", || Some(sandbox.status()).filter(|status| status["pid"].is_u64()));
    // A refresh, whose caller leaves too.
    let before = sandbox.status()["pid"].clone();
    fs::remove_file(untracked(&sandbox, "go")).unwrap();
    sandbox.write("server.js", &crate::support::NODE_SERVICE.replace("42", "43"));
    for _ in 0..2 {
        let evaluate = client.send("window/evaluate", json!({"expression": "answer"}));
        eventually("it builds again", || Some(()).filter(|()| begun(&sandbox).len() == 2));
        client.cancel(evaluate);
        assert!(client.response(evaluate)["error"].is_object());
    }
    fs::write(untracked(&sandbox, "go"), "").unwrap();
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
    assert_ne!(sandbox.status()["pid"], before);
    assert_eq!((begun(&sandbox).len(), ended(&sandbox)), (2, 2));
}

#[test]
fn a_ctrl_c_of_the_command_line_ends_the_build_unless_another_call_waits_for_it() {
    let sandbox = sandbox();
    let mut client = RpcClient::connect(&sandbox);
    let start = || sandbox.command(["start"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = start();
    let build = eventually("it builds", || begun(&sandbox).pop());
    let other = client.send("window/start", json!({}));
    assert!(client.progress(other, "building"));
    kill(first.id(), Signal::INT);
    first.wait().unwrap();
    assert!(is_alive(build), "another call waits");
    client.cancel(other);
    client.response(other);
    // That one has not given it up: the next Ctrl-C does.
    let is_unattended = || sandbox.status()["notes"].to_string().contains("without a caller");
    eventually("nobody waits", || is_unattended().then_some(()));
    assert!(is_alive(build));
    let mut second = start();
    eventually("it is waited for", || (!is_unattended()).then_some(()));
    kill(second.id(), Signal::INT);
    second.wait().unwrap();
    wait_for_end(build);
    assert_eq!(sandbox.status()["state"], "absent");
    assert_eq!((begun(&sandbox).len(), ended(&sandbox)), (1, 0));
}

#[test]
fn a_build_that_nobody_waits_for_is_ended_by_newer_sources_once() {
    let sandbox = sandbox();
    let mut client = RpcClient::connect(&sandbox);
    for edit in ["1", "2", "3"] {
        let start = client.send("window/start", json!({}));
        eventually("it builds", || begun(&sandbox).pop());
        if edit == "2" {
            eventually("it builds the edited files", || Some(()).filter(|()| begun(&sandbox).len() == 2));
        }
        client.cancel(start);
        client.response(start);
        sandbox.write("source.js", edit);
    }
    let builds = begun(&sandbox);
    wait_for_end(builds[0]);
    // The second one goes on: it could be the build itself that changes the files.
    assert!(builds.len() == 2 && is_alive(builds[1]), "{builds:?}");
    fs::write(untracked(&sandbox, "go"), "").unwrap();
    let status = sandbox.json(&["start"]);
    assert_eq!(status["stale"], false, "{status}");
    // And once more, of the files of now.
    assert_eq!((begun(&sandbox).len(), ended(&sandbox)), (3, 2));
}

#[test]
fn a_pre_launch_task_goes_on_when_its_callers_leave_and_the_next_launch_joins_it() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    let launch = json!({"configurations": [{"name": "Run", "type": "node", "request": "launch", "program": "${workspaceFolder}/program.js",
        "preLaunchTask": "slow"}]});
    let task = json!({"label": "slow", "type": "shell", "command": BUILD});
    sandbox.write("program.js", "console.log('ran');");
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.tether(&["trust", "--config", "Run", "--yes"]).ok();
    let mut client = RpcClient::connect(&sandbox);
    for _ in 0..4 {
        let launch = client.send("debug/launch", json!({"config": "Run"}));
        assert!(client.progress(launch, "building: slow"));
        eventually("the task runs", || begun(&sandbox).pop());
        client.cancel(launch);
        assert!(client.response(launch)["error"].is_object());
    }
    let notes = sandbox.status()["notes"].to_string();
    assert!(notes.contains("the task \\\"slow\\\" still runs without a caller"), "{notes}");
    fs::write(untracked(&sandbox, "go"), "").unwrap();
    let launched = client.send("debug/launch", json!({"config": "Run"}));
    let response = client.response(launched);
    assert!(response["result"].is_object(), "{response}");
    assert_eq!((begun(&sandbox).len(), ended(&sandbox)), (1, 1));
    // A Ctrl-C ends it.
    fs::remove_file(untracked(&sandbox, "go")).unwrap();
    let mut command: Command = sandbox.command(["debug", "launch", "--config", "Run"]);
    let mut command = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let second = eventually("the task runs again", || begun(&sandbox).get(1).copied());
    kill(command.id(), Signal::INT);
    command.wait().unwrap();
    wait_for_end(second);
}
