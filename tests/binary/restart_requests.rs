//! Requests to restart that come while the window is being launched.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::attached_listeners::install_delve;
use crate::support::rpc_client::RpcClient;
use crate::support::{Sandbox, run_command};

/// Runs the code of when the launch began; where a FIFO is, it says that it has begun, and waits until it may go on.
const LAUNCH: &str = r#"
cp server.js node_modules/running.js
echo x >> node_modules/launches
if [ -p node_modules/launching ]; then echo > node_modules/launching; cat node_modules/go; fi
exec node --inspect=127.0.0.1:$1 node_modules/running.js
"#;

const SERVER: &str = "globalThis.answer = 42; setInterval(() => {}, 1000);";

#[test]
fn a_restart_is_not_answered_by_a_launch_that_began_before_it() {
    let toml = "[window]\nkind = 'command'\ncommand = ['sh', 'launch.sh', '${cdpPort}']\n";
    let sandbox = Sandbox::with(&[("launch.sh", LAUNCH), ("server.js", SERVER), ("devtools.toml", toml)]);
    let [launching, go, launches] = ["launching", "go", "launches"].map(|name| sandbox.path("node_modules").join(name));
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    sandbox.json(&["start"]);
    assert!(Command::new("mkfifo").args([&launching, &go]).status().unwrap().success());
    let mut client = RpcClient::connect(&sandbox);
    let first = client.send("window/restart", json!({}));
    fs::read(&launching).unwrap();
    // The launch has read the old code.
    sandbox.write("server.js", &SERVER.replace("42", "43"));
    let later = [(); 3].map(|()| client.send("window/restart", json!({})));
    for id in later {
        assert!(client.progress(id, ""), "it waits for the launch that runs");
    }
    fs::remove_file(&launching).unwrap();
    fs::write(&go, "").unwrap();
    // By then the window may be launched again.
    let response = client.response(first);
    assert!(response["result"].is_object(), "{response}");
    for id in later {
        let response = client.response(id);
        assert!(response["result"]["pid"].is_u64(), "{response}");
    }
    assert_eq!(
        fs::read_to_string(launches).unwrap().lines().count(),
        3,
        "the start, the first restart, all later ones"
    );
    let reported = sandbox.json(&["evaluate", "answer"]);
    assert_eq!((&reported["value"], reported.get("refreshed")), (&json!(43), None), "{reported}");
}

/// The fix of a broken build, and the wish to restart, come while the broken one runs.
#[test]
fn a_restart_is_not_answered_by_the_failure_of_a_build_that_began_before_it() {
    let script = "word=$(cat word.txt); if [ -p node_modules/building ]; then echo > node_modules/building; cat node_modules/go; fi; test $word = good";
    let sandbox = crate::support::node_with_build(script);
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    sandbox.write("word.txt", "good");
    sandbox.json(&["start"]);
    let [building, go] = ["building", "go"].map(|name| sandbox.path("node_modules").join(name));
    assert!(Command::new("mkfifo").args([&building, &go]).status().unwrap().success());
    sandbox.write("word.txt", "bad");
    let mut client = RpcClient::connect(&sandbox);
    let first = client.send("window/restart", json!({}));
    fs::read(&building).unwrap();
    sandbox.write("word.txt", "good");
    let second = client.send("window/restart", json!({}));
    assert!(client.progress(second, "building"), "it waits for the build that runs");
    fs::remove_file(&building).unwrap();
    fs::write(&go, "").unwrap();
    assert!(client.response(first)["error"].is_object());
    let response = client.response(second);
    assert_eq!(response["result"]["lastBuild"]["ok"], true, "{response}");
}

/// Each writes where it begins and ends; where its FIFO is, it says that it has begun, and waits until it may go on.
const LOGGED: &str = "\
cd node_modules; echo begin $1 >> log
if [ -p $1 ]; then echo > $1; cat go; fi
echo end $1 >> log";

#[test]
fn window_builds_and_debug_tasks_are_one_queue() {
    // The task runs before Delve, which cannot debug anything here.
    let toml = "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['sh', 'logged.sh', 'build']\n";
    let launch = json!({"configurations": [{"name": "Go", "type": "go", "request": "launch", "program": "main.go", "preLaunchTask": "task"}]});
    let task = json!({"label": "task", "type": "process", "command": "sh", "args": ["logged.sh", "task"]});
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    sandbox.write("logged.sh", LOGGED);
    sandbox.write("server.js", SERVER);
    sandbox.write("main.go", "package main");
    sandbox.write("devtools.toml", toml);
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.tether(&["trust", "--config", "Go", "--yes"]).ok();
    let mut start = sandbox.command(["start"]);
    start.env("PATH", install_delve(&sandbox));
    run_command(start).ok();
    let [build, task, go] = ["build", "task", "go"].map(|name| sandbox.path("node_modules").join(name));
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let (restart, launch) =
        (("window/restart", json!({"rebuild": "always"})), ("debug/launch", json!({"config": "Go"})));
    let mut client = RpcClient::connect(&sandbox);
    for (gate, first, second) in [(&build, &restart, &launch), (&task, &launch, &restart)] {
        assert!(Command::new("mkfifo").arg(gate).status().unwrap().success());
        let first = client.send(first.0, first.1.clone());
        fs::read(gate).unwrap();
        let second = client.send(second.0, second.1.clone());
        assert!(client.progress(second, "waiting for another build or task to end"), "it waits for its turn");
        fs::remove_file(gate).unwrap();
        fs::write(&go, "").unwrap();
        client.response(first);
        client.response(second);
    }
    let log = fs::read_to_string(sandbox.path("node_modules/log")).unwrap();
    let ran: Vec<&str> = log.lines().collect();
    let expected = ["build", "build", "task", "task", "build"].map(|it| [format!("begin {it}"), format!("end {it}")]);
    assert_eq!(ran, expected.concat());
}
