//! Background `preLaunchTask`s that are servers: they run as long as the window that needs them.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::rpc_client::RpcClient;
use crate::support::{Sandbox, eventually, is_alive, kill, wait_for_end};

/// The folder that no tracker looks into.
const UNTRACKED: &str = "node_modules";

/// A server that writes its PID, and ends with its stdin. `READY` is printed when it listens.
const DEV_SERVER: &str = r#"
const fs = require("fs");
process.stdin.on("end", () => process.exit(7)).resume();
const server = require("http").createServer((_, response) => response.end("hi"));
server.listen(0, "127.0.0.1", () => {
    fs.writeFileSync("node_modules/port", `${server.address().port}`);
    fs.appendFileSync("node_modules/servers", `${process.pid}\n`);
    console.log(process.env.READY);
});
"#;

const SERVICE: &str = "globalThis.answer = 42; setInterval(() => {}, 1000);";

/// A Node window whose `preLaunchTask` is a dev server.
fn sandbox(ready: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path(UNTRACKED)).unwrap();
    let launch = json!({"configurations": [{"name": "Serve", "type": "node", "request": "launch", "program": "server.js", "preLaunchTask": "dev"}]});
    let task = json!({
        "label": "dev", "type": "process", "command": "node", "args": ["dev.js"], "isBackground": true,
        "options": {"env": {"READY": ready}},
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": "^begin$", "endsPattern": "^ready$"}},
    });
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.write("dev.js", DEV_SERVER);
    sandbox.write("server.js", SERVICE);
    let trusted = sandbox.tether(&["trust", "--yes"]).ok();
    let consent = r#"["node","dev.js"]"#;
    let line = trusted.stdout.lines().find(|line| line.contains(consent)).unwrap();
    assert!(line.contains("until the window or session that needs it ends; ready at \"^ready$\""), "{line}");
    sandbox
}

/// The PIDs of all dev servers so far.
fn servers(sandbox: &Sandbox) -> Vec<u32> {
    let text = fs::read_to_string(sandbox.path(UNTRACKED).join("servers")).unwrap_or_default();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

fn last_server(sandbox: &Sandbox) -> u32 {
    *servers(sandbox).last().expect("a dev server was started")
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap_or_else(|| panic!("no window: {status}")) as u32
}

fn kill_supervisor(sandbox: &Sandbox) {
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
}

#[test]
fn a_server_runs_as_long_as_the_window_that_needs_it() {
    let sandbox = sandbox("ready");
    let started = sandbox.json(&["start"]);
    let server = last_server(&sandbox);
    assert!(is_alive(server), "the dev server runs beside its window: {started}");
    // A relaunch keeps it: its port is taken.
    sandbox.write("server.js", &SERVICE.replace("42", "43"));
    let reported = sandbox.json(&["evaluate", "answer"]);
    assert_eq!((&reported["value"], reported["refreshed"].is_object()), (&json!(43), true), "{reported}");
    sandbox.json(&["restart"]);
    assert_eq!((servers(&sandbox), is_alive(server)), (vec![server], true));
    // So do the ends of supervisors, and the next one ends it with the window.
    kill_supervisor(&sandbox);
    sandbox.status();
    sandbox.tether(&["shutdown"]).ok();
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
    assert!(is_alive(server));
    sandbox.json(&["stop"]);
    assert!(!is_alive(server), "the server ends with its window");
    // A window that exits by itself ends it, too.
    let window = pid(&sandbox.json(&["start"]));
    let server = last_server(&sandbox);
    assert!(is_alive(server));
    kill(window, Signal::KILL);
    wait_for_end(server);
    // And one that exits while no supervisor runs.
    let window = pid(&sandbox.json(&["start"]));
    let server = last_server(&sandbox);
    kill_supervisor(&sandbox);
    kill(window, Signal::KILL);
    wait_for_end(window);
    assert_eq!(sandbox.status()["state"], "absent");
    wait_for_end(server);
}

/// A server that takes its time to end at SIGTERM, and refuses to run beside another one of its project.
const SLOW_TO_END: &str = r#"
const fs = require("fs");
const lock = "node_modules/lock";
try {
    process.kill(Number(fs.readFileSync(lock, "utf8")), 0);
    console.log("another dev process runs");
    process.exit(9);
} catch (error) { if (!["ENOENT", "ESRCH"].includes(error.code)) throw error; }
fs.writeFileSync(lock, `${process.pid}`);
fs.appendFileSync("node_modules/servers", `${process.pid}\n`);
process.on("SIGTERM", () => setTimeout(() => { fs.appendFileSync("node_modules/ended", "x"); process.exit(0); }, 1000));
setInterval(() => {}, 1000);
console.log("ready");
"#;

#[test]
fn a_stopped_window_has_no_server_left_and_the_next_start_works() {
    let sandbox = sandbox("unused");
    sandbox.write("dev.js", SLOW_TO_END);
    sandbox.write("package.json", &json!({"scripts": {"dev": "node dev.js"}}).to_string());
    // A shell ends at SIGTERM before the server that it has started; npm waits for it.
    let wrappers = [("npm", "[\"run\",\"dev\"]"), ("sh", "[\"-c\",\"node dev.js; true\"]")];
    let tasks = fs::read_to_string(sandbox.path(".vscode/tasks.json")).unwrap();
    for (index, (program, arguments)) in wrappers.into_iter().enumerate() {
        let tasks = tasks
            .replace("[\"dev.js\"]", arguments)
            .replace("\"command\":\"node\"", &format!("\"command\":\"{program}\""));
        sandbox.write(".vscode/tasks.json", &tasks);
        sandbox.tether(&["trust", "--yes"]).ok();
        for round in 0..2 {
            sandbox.json(&["start"]);
            let server = last_server(&sandbox);
            assert!(is_alive(server), "{program}");
            assert_eq!(sandbox.json(&["stop"])["state"], "absent");
            assert!(!is_alive(server), "{program}, round {round}: the server lives on");
            let left: Vec<_> = sandbox.others();
            assert!(left.is_empty(), "{program}, round {round}: {left:?}");
            // It had the time that it takes to end.
            let ended = fs::read_to_string(sandbox.path("node_modules/ended")).unwrap();
            assert_eq!(ended.len(), 2 * index + round + 1, "{program}, round {round}");
        }
    }
    // Also after the window has exited by itself.
    sandbox.json(&["start"]);
    let server = last_server(&sandbox);
    kill(pid(&sandbox.status()), Signal::KILL);
    sandbox.json(&["stop"]);
    assert!(!is_alive(server), "a stop after the exit of the window");
}

#[test]
fn a_server_that_has_exited_is_started_again_by_the_next_build() {
    let sandbox = sandbox("ready");
    sandbox.json(&["start"]);
    let server = last_server(&sandbox);
    kill(server, Signal::KILL);
    eventually("the end of the server is shown", || {
        let notes = sandbox.status()["notes"].to_string();
        (notes.contains("the background task \\\"dev\\\" has exited") && notes.contains("tether restart")).then_some(())
    });
    sandbox.json(&["restart"]);
    assert!(is_alive(last_server(&sandbox)));
    assert_eq!(servers(&sandbox).len(), 2);
    assert!(!sandbox.status()["notes"].to_string().contains("has exited"));
}

#[test]
fn a_cancelled_start_and_a_failed_one_leave_no_server() {
    let never = sandbox("something else");
    let mut client = RpcClient::connect(&never);
    let start = client.send("window/start", json!({}));
    let server = eventually("the server", || servers(&never).pop());
    client.interrupt(start);
    assert!(client.response(start)["error"].is_object());
    wait_for_end(server);
    assert_eq!(never.status()["state"], "absent");
    // The server is ready, and the window cannot be launched.
    let broken = sandbox("ready");
    let launch = fs::read_to_string(broken.path(".vscode/launch.json")).unwrap();
    broken.write(
        ".vscode/launch.json",
        &launch.replace("\"type\"", "\"runtimeExecutable\": \"./no-such-node\", \"type\""),
    );
    broken.tether(&["trust", "--yes"]).ok();
    broken.tether(&["start"]).fails(6, &["no-such-node"]);
    wait_for_end(last_server(&broken));
    // It exits before it is ready.
    broken.write("dev.js", "console.log('no port'); process.exit(4)");
    broken.tether(&["start"]).fails(4, &["`dev`", "ended before it printed its end pattern", "code 4", "no port"]);
}

#[test]
fn a_server_that_a_killed_supervisor_was_starting_is_ended_by_the_next_one() {
    let sandbox = sandbox("something else");
    let mut start = sandbox.command(["start"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let server = eventually("the server", || servers(&sandbox).pop());
    kill_supervisor(&sandbox);
    kill(start.id(), Signal::INT);
    start.wait().unwrap();
    sandbox.status();
    wait_for_end(server);
}
