//! No exit of a front end or a supervisor, however and whenever, affects the window.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::lifecycle::panicking_supervisor::PanickingSupervisor;
use crate::support::mcp_client::McpClient;
use crate::support::{Sandbox, is_alive, kill, node_with_build, wait_for_end};

fn supervisor(sandbox: &Sandbox) -> u32 {
    sandbox.supervisor().expect("a supervisor lives")
}

fn pid(status: &serde_json::Value) -> u32 {
    status["pid"].as_u64().expect("a window") as u32
}

#[tokio::test]
async fn no_end_of_a_front_end_harms_the_window() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL, Signal::ABORT] {
        let agent = McpClient::start(&sandbox).await;
        assert_eq!(pid(&agent.call("window_status", json!({})).await), window);
        agent.end_by(signal).await;
        assert!(is_alive(window), "{signal:?}");
    }
    let agent = McpClient::start(&sandbox).await;
    assert_eq!(agent.call("window_evaluate", json!({"expression": "answer"})).await["value"], 42);
    agent.leave().await;
}

#[test]
fn a_front_end_whose_stdout_is_closed_ends_without_an_error() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let mut child = sandbox.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    // Its response meets a closed pipe. stdin stays open: EPIPE alone makes it exit.
    writeln!(child.stdin.as_mut().unwrap(), "no message").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(is_alive(window));
}

#[test]
fn the_end_of_stdin_ends_a_front_end_even_in_a_build() {
    let sandbox = node_with_build("echo begun > .devtools/begun; cat .devtools/go");
    std::fs::create_dir(sandbox.path(".devtools")).unwrap();
    let fifos = ["begun", "go"].map(|name| sandbox.path(".devtools").join(name));
    assert!(std::process::Command::new("mkfifo").args(&fifos).status().unwrap().success());
    let mut child = sandbox.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "window_start", "arguments": {}}}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    std::fs::read(&fifos[0]).unwrap(); // the build has begun
    drop(stdin);
    let left = Instant::now();
    assert!(child.wait().unwrap().success());
    // It exits within a second, and the build has not ended yet.
    assert!(left.elapsed() < Duration::from_secs(10), "it took {:?}", left.elapsed());
    // The build continues without it, and the window starts.
    drop(std::fs::OpenOptions::new().write(true).open(&fifos[1]).unwrap());
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
}

#[test]
fn no_end_of_a_supervisor_harms_the_window_and_the_next_one_reconnects() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    for signal in [Signal::TERM, Signal::INT, Signal::ABORT, Signal::KILL] {
        let old = supervisor(&sandbox);
        kill(old, signal);
        wait_for_end(old);
        let status = sandbox.status();
        assert_eq!((pid(&status), &status["reconnected"]), (window, &json!(true)), "{signal:?}");
        assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42, "{signal:?}");
        assert_ne!(supervisor(&sandbox), old);
    }
}

#[test]
fn a_panic_of_the_supervisor_is_logged_and_the_window_stays() {
    let sandbox = crate::support::node();
    let panicking = PanickingSupervisor::start(&sandbox);
    let window = pid(&sandbox.json(&["start"]));
    let old = supervisor(&sandbox);
    let mut connection = std::os::unix::net::UnixStream::connect(sandbox.socket()).unwrap();
    panicking.panic();
    assert_eq!(connection.read(&mut [0]).unwrap(), 0, "the connection ends with it");
    assert!(!is_alive(old));
    let status = sandbox.status();
    assert_eq!((pid(&status), &status["reconnected"]), (window, &json!(true)));
    assert!(sandbox.tether(&["logs", "-n", "1000"]).ok().stdout.contains("panic: "));
}

#[test]
fn a_hangup_does_not_end_a_supervisor() {
    let sandbox = crate::support::node();
    sandbox.json(&["start"]);
    let old = supervisor(&sandbox);
    kill(old, Signal::HUP);
    assert_eq!(sandbox.status()["reconnected"], false);
    assert_eq!(supervisor(&sandbox), old);
}

#[test]
fn a_window_that_has_closed_its_port_and_then_exits_has_ended() {
    let sandbox = crate::support::node();
    let ends = "process.on('SIGUSR2', () => { require('inspector').close(); setTimeout(() => process.exit(0), 400) });";
    sandbox.write("server.js", &format!("{}{ends}", crate::support::NODE_SERVICE));
    let started = sandbox.json(&["start"]);
    let port = started["cdpPort"].as_u64().unwrap() as u16;
    kill(pid(&started), Signal::USR2);
    crate::support::eventually("the port is closed", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_err().then_some(())
    });
    let error = sandbox.tether(&["evaluate", "answer"]).fails(3, &["tether start"]);
    // Started late, the question finds no window any more.
    let says_so = ["the window ended during the operation", "has exited"];
    assert!(says_so.iter().any(|text| error.stderr.contains(text)), "{error:?}");
}

#[test]
fn a_workspace_that_was_cleaned_still_finds_its_window() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    std::fs::remove_dir_all(sandbox.path(".devtools")).unwrap(); // as `git clean -fdx` does
    let old = supervisor(&sandbox);
    kill(old, Signal::KILL);
    wait_for_end(old);
    let status = sandbox.status();
    assert_eq!((pid(&status), &status["reconnected"]), (window, &json!(true)));
    assert_eq!(sandbox.session().unwrap()["electronPid"], window, "it is written again");
}

#[test]
fn what_changed_while_no_supervisor_watched_is_seen_by_the_next_one() {
    let sandbox = crate::support::node();
    sandbox.write("kept.js", "");
    sandbox.write("gone.js", "");
    sandbox.json(&["start"]);
    let old = supervisor(&sandbox);
    kill(old, Signal::KILL);
    wait_for_end(old);
    std::fs::remove_file(sandbox.path("gone.js")).unwrap();
    let changes = sandbox.json(&["changes"]);
    assert_eq!(changes["changed"].as_array().unwrap().len(), 1, "{changes}");
    assert_eq!((&changes["newest"]["path"], &changes["newest"]["kind"]), (&json!("gone.js"), &json!("removed")));
    assert_eq!(sandbox.json(&["evaluate", "answer"])["refreshed"]["because"], "gone.js was removed");
}

#[test]
fn a_window_that_exits_is_noticed_and_reported() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    kill(window, Signal::KILL);
    wait_for_end(window);
    let status = crate::support::eventually("exited", || Some(sandbox.status()).filter(|it| it["state"] == "exited"));
    assert_eq!(status["exit"]["signal"], 9);
    assert!(status["exit"]["output"].as_str().unwrap().contains("up"), "{status}");
    sandbox.tether(&["evaluate", "1"]).fails(3, &["the window has exited", "signal 9", "tether start"]);
    assert_eq!(sandbox.session(), None);
    // It can be started again.
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
}

#[test]
fn exit_code_and_last_output_are_reported() {
    let sandbox = crate::support::node();
    sandbox.json(&["start"]);
    let requested = sandbox.tether(&["evaluate", "console.error('out of coffee'); process.exit(7)"]);
    assert_ne!(requested.code, 0, "{requested:?}");
    let status = crate::support::eventually("exited", || Some(sandbox.status()).filter(|it| it["state"] == "exited"));
    assert_eq!(status["exit"]["code"], 7);
    assert!(status["exit"].to_string().contains("out of coffee"), "{status}");
    // The operation in flight is named too.
    assert!(status["exit"]["doing"][0].as_str().unwrap().starts_with("window/evaluate"), "{status}");
    sandbox.tether(&["evaluate", "1"]).fails(3, &["the window has exited", "code 7", "out of coffee", "tether start"]);
}

#[test]
fn the_status_shows_the_cpu_usage_of_a_busy_window() {
    let sandbox = crate::support::node();
    sandbox.json(&["start"]);
    let usage_when = |what: &str, spec: fn(u64) -> bool| {
        crate::support::eventually(what, || {
            let resources = sandbox.status()["resources"].clone();
            resources["cpuPercent"].as_u64().is_some_and(spec).then_some(resources)
        })
    };
    let idle = usage_when("the window is idle", |percent| percent < 30);
    assert!(idle["processes"].as_u64() >= Some(1) && idle["memoryBytes"].as_u64() > Some(1 << 20), "{idle}");
    let shown = sandbox.tether(&["status"]).ok().stdout;
    assert!(shown.contains(" MiB and ") && shown.contains(" % CPU in "), "{shown}");
    sandbox.json(&["evaluate", "setTimeout(() => { for (;;); }), 1"]);
    usage_when("the window is busy", |percent| percent > 30);
}

#[test]
fn a_window_that_crashes_again_and_again_is_left_alone_until_something_has_changed() {
    let sandbox = crate::support::node();
    let crash = || {
        sandbox.json(&["start"]);
        sandbox.tether(&["evaluate", "process.exit(9)"]);
        crate::support::eventually("exited", || (sandbox.status()["state"] == "exited").then_some(()));
    };
    (0..3).for_each(|_| crash());
    sandbox
        .tether(&["start"])
        .fails(1, &["not started for another", "3 times within a minute", "code 9", "--rebuild always"]);
    assert!(sandbox.status()["notes"].to_string().contains("3 times"), "{}", sandbox.status());
    // An explicit start launches it again; so does a changed file, which may have fixed it.
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start", "--rebuild", "always"]))["state"], "ready");
    sandbox.tether(&["evaluate", "process.exit(9)"]);
    crate::support::eventually("exited", || (sandbox.status()["state"] == "exited").then_some(()));
    (0..2).for_each(|_| crash());
    sandbox.tether(&["restart"]).fails(1, &["not started for another"]);
    sandbox.write("server.js", &crate::support::NODE_SERVICE.replace("42", "43"));
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
}

/// In Chromium: about one of a hundred frozen Nodes crashes when its debugger is replaced meanwhile.
#[test]
fn a_frozen_window_is_unresponsive_and_is_not_replaced() {
    let sandbox = Sandbox::with(&[("devtools.toml", "[window]\nkind = 'browser'\nurl = 'about:blank'\n")]);
    let started = sandbox.json(&["start"]);
    kill(pid(&started), Signal::STOP);
    assert_eq!(sandbox.status()["state"], "unresponsive");
    // Nor by the next supervisor.
    let old = supervisor(&sandbox);
    kill(old, Signal::KILL);
    wait_for_end(old);
    let status = sandbox.status();
    assert_eq!((&status["state"], &status["pid"]), (&json!("unresponsive"), &started["pid"]));
    kill(pid(&started), Signal::CONT);
    let status = crate::support::eventually("ready", || {
        let status = sandbox.status();
        if status["state"] != "ready" {
            eprintln!("{status}"); // shown when it never is
        }
        Some(status).filter(|it| it["state"] == "ready")
    });
    assert_eq!(status["pid"], started["pid"]);
    assert_eq!(sandbox.json(&["evaluate", "6 * 7"])["value"], 42);
}

#[test]
fn stop_leaves_nothing_and_start_twice_is_start_once() {
    let sandbox = crate::support::node();
    let first = sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["start"])["pid"], first["pid"]);
    assert_eq!(sandbox.json(&["stop"])["state"], "absent");
    assert!(!is_alive(pid(&first)));
    assert_eq!(sandbox.session(), None);
    assert_eq!(sandbox.json(&["stop"])["state"], "absent");
    sandbox.tether(&["evaluate", "1"]).fails(3, &["there is no window", "tether start"]);
}

#[test]
fn the_log_can_be_read_and_shutdown_keeps_the_window() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let old = supervisor(&sandbox);
    sandbox.tether(&["shutdown"]).ok();
    assert!(!is_alive(old) && is_alive(window));
    assert!(sandbox.tether(&["logs"]).ok().stdout.contains("the window stays"));
    assert!(sandbox.tether(&["shutdown"]).ok().stdout.contains("no supervisor runs"));
    assert_eq!(pid(&sandbox.status()), window);
}

#[test]
fn an_idle_supervisor_exits_after_its_timeout() {
    let sandbox = crate::support::node();
    let idle = |time: &str| {
        let mut child = sandbox.command(["supervise", "--idle", time]).stdout(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 8];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        child
    };
    assert!(idle("50ms").wait().unwrap().success());
    // With a window it keeps running. (The timeout is long enough for a busy machine to start a front end.)
    let mut child = idle("10s");
    let window = pid(&sandbox.json(&["start"]));
    assert_eq!(pid(&sandbox.status()), window);
    assert!(child.try_wait().unwrap().is_none());
    sandbox.json(&["stop"]);
    assert!(child.wait().unwrap().success());
}
