//! Programs that are ended and started again while they are debugged: by a watcher when a file is edited, or by their user.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::project_commands::{Project, assert_stop, free_port, notes, start_program};
use crate::support::eventually;
use crate::support::requirements::{has_program, installed_nodes};
use crate::support::scenario_sandbox::Running;

const APP: &str = "\
const turn: string = 'first';
setInterval(() => {
  console.log(turn);
}, 50);
";
/// A watcher may miss an edit that is made before it watches the file.
const EDIT_AGAIN: Duration = Duration::from_secs(8);

/// The program's process, by the name of its thread: `app.js [123]`.
fn process_of(stop: &Value) -> Option<&str> {
    stop["stopReason"]["threadName"].as_str()
}

/// Under a watcher: the program is stopped in its first line, is edited, and stops there again as another process.
fn check_watcher(project: &Project, file: &str, configuration: Value) {
    let text = if file.ends_with(".ts") { APP.to_owned() } else { APP.replace(": string", "") };
    project.sandbox.write(file, &text);
    let at = format!("{file}:1");
    project.break_at(&[&at]);
    let first = project.launch(configuration.clone());
    assert_stop(&first, &at);
    let before = process_of(&first).unwrap().to_owned();
    let edited = text.replace("first", "second");
    let mut edit_at = Instant::now();
    let second = eventually("the program is started again", || {
        if Instant::now() >= edit_at {
            project.sandbox.write(file, &edited);
            edit_at = Instant::now() + EDIT_AGAIN;
        }
        let status = project.json(&["debug", "status"]);
        let is_new = process_of(&status).is_some_and(|name| name != before);
        is_new.then_some(status)
    });
    assert_stop(&second, &at);
    let stop = project.json(&["debug", "wait", "60"]);
    let said = [notes(&second), notes(&stop)].join("\n");
    assert!(said.contains(&format!("({before})")) && said.contains("has ended while it was stopped"), "{said}");
    assert!(!said.contains("not debugged"), "{configuration}: {said}");
    assert_eq!(second["stale"], false, "the new process runs the edited file: {second:#}");
    project.json(&["debug", "step", "over", "--wait", "60"]);
    assert_eq!(project.value_of("turn"), "'second'");
    project.stop();
}

#[test]
fn a_program_that_is_edited_while_it_is_stopped_under_node_watch_stops_again() {
    for node in installed_nodes() {
        let project = Project::new(&[]);
        let program = json!("${workspaceFolder}/app.js");
        let watched = json!({"type": "node", "request": "launch", "runtimeExecutable": node, "runtimeArgs": ["--watch"], "program": program});
        check_watcher(&project, "app.js", watched);
    }
}

#[test]
fn a_program_that_is_edited_while_it_is_stopped_under_tsx_watch_stops_again() {
    let project = Project::new(&[]);
    if project.install("tsx", "dist/cli.mjs").is_none() || !has_program("node") {
        return;
    }
    let program = json!("${workspaceFolder}/app.ts");
    let watched = json!({"type": "node", "request": "launch", "runtimeExecutable": "tsx", "runtimeArgs": ["watch"], "program": program});
    check_watcher(&project, "app.ts", watched);
}

#[test]
fn a_program_that_is_edited_while_it_is_stopped_under_nodemon_stops_again() {
    let project = Project::new(&[]);
    if project.install("nodemon", "bin/nodemon.js").is_none() || !has_program("node") {
        return;
    }
    // As VS Code's documentation has it.
    let watched = json!({
        "type": "node", "request": "launch", "runtimeExecutable": "nodemon", "program": "${workspaceFolder}/app.js",
        "restart": true, "console": "integratedTerminal", "internalConsoleOptions": "neverOpen",
    });
    check_watcher(&project, "app.js", watched);
}

/// Starts a program that waits for a debugger before its first line.
fn start_waiting(node: &Path, port: u16, project: &Project) -> Running {
    let mut command = Command::new(node);
    command.arg(format!("--inspect-brk=127.0.0.1:{port}")).arg("app.js").current_dir(&project.sandbox.workspace);
    start_program(command)
}

#[test]
fn a_program_that_is_attached_to_with_restart_is_attached_to_again() {
    for node in installed_nodes() {
        let project = Project::new(&[("app.js", "const turn = 1;\nsetInterval(() => {}, 50);\n")]);
        project.break_at(&["app.js:1"]);
        let port = free_port();
        let program = start_waiting(&node, port, &project);
        eventually("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        let attach = json!({"type": "node", "request": "attach", "port": port, "restart": {"delay": 50}});
        let stop = project.launch(attach);
        assert_stop(&stop, "app.js:1");
        assert!(!notes(&stop).contains("restart"), "{stop:#}");
        drop(program);
        let waits = eventually("it has no thread", || {
            let status = project.json(&["debug", "status"]);
            (status["state"] == "RUNNING").then_some(status)
        });
        assert!(notes(&waits).contains("has ended while it was stopped"), "{waits:#}");
        let again = start_waiting(&node, port, &project);
        let stop = project.json(&["debug", "wait", "60"]);
        assert_stop(&stop, "app.js:1");
        let output = project.json(&["debug", "output"]).to_string();
        assert!(output.contains("once it is started again (`restart`)"), "{output}");
        assert!(output.contains("attached again to"), "{output}");
        project.json(&["debug", "stop", "--detach"]);
        drop(again);
    }
}

#[test]
fn a_program_is_attached_to_again_as_often_as_the_configuration_says() {
    let Some(node) = installed_nodes().into_iter().next() else { return };
    let project = Project::new(&[("app.js", "setInterval(() => {}, 50);\n")]);
    project.break_at(&["app.js:1"]);
    let port = free_port();
    let program = start_waiting(&node, port, &project);
    eventually("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let restart = json!({"delay": 20, "maxAttempts": 2});
    project.launch(json!({"type": "node", "request": "attach", "port": port, "restart": restart}));
    drop(program);
    eventually("the attempts have failed", || {
        let output = project.json(&["debug", "output"]).to_string();
        output.contains("it is not attached to again: cannot attach to 127.0.0.1").then_some(())
    });
    let ended = project.json(&["debug", "wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
}
