//! Misbehaving adapters, through the real `tether`: each is an error with its cause and last output; nothing hangs,
//! grows or is left running.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::support::scenario_sandbox::ScenarioSandbox;

/// A script at the path of the workspace's Python, and so in place of debugpy.
const ADAPTER: &str = include_str!("scripted_adapter.py");

/// A sandbox whose adapter misbehaves in the given way.
fn with(how: &str) -> Option<ScenarioSandbox> {
    let stage = ScenarioSandbox::with("debugpy", "app.py", &format!("{how}\n"))?;
    stage.sandbox.write(".venv/bin/python", ADAPTER);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(stage.sandbox.path(".venv/bin/python"), executable).unwrap();
    stage.sandbox.tether(&["trust", "--programs", "--yes"]).ok();
    Some(stage)
}

/// As [`with`], with the program stopped.
fn stopped(how: &str) -> Option<ScenarioSandbox> {
    let stage = with(how)?;
    let launched = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    assert_eq!(launched["stopped"], true, "{launched:#}");
    Some(stage)
}

fn launch_fails(stage: &ScenarioSandbox, code: i32, words: &[&str]) {
    stage.sandbox.tether(&["debug", "launch", "app.py", "--wait", "60"]).fails(code, words);
    stage.nothing_is_left();
    // Nor is it in the list.
    stage.sandbox.tether(&["debug", "stop"]).fails(3, &["there is no debug session", "tether debug launch"]);
}

#[test]
fn a_missing_adapter_is_an_error_with_the_command_that_installs_it() {
    let stage = ScenarioSandbox::with("debugpy", "app.py", "1\n");
    let Some(stage) = stage else { return };
    let mut command = stage.sandbox.command(["debug", "launch", "app.py", "--adapter", "netcoredbg"]);
    command.env("PATH", "/nowhere").env("HOME", stage.sandbox.home());
    crate::support::run_command(command).fails(6, &["netcoredbg", "PATH", "hint: "]);
}

#[test]
fn an_adapter_that_exits_at_once_is_an_error_with_its_code_and_last_output() {
    let Some(stage) = with("exits") else { return };
    launch_fails(&stage, 1, &["debugpy", "exited with code 3", "ImportError: no module named xdbg"]);
}

#[test]
fn an_adapter_that_never_responds_times_out() {
    let Some(stage) = with("silent") else { return };
    let began = Instant::now();
    launch_fails(&stage, 1, &["cannot launch app.py with debugpy", "no response to initialize within 30s"]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_flood_of_events_delays_no_response_and_dropped_events_are_counted() {
    let Some(stage) = stopped("floods") else { return };
    assert_eq!(stage.json(&["debug", "evaluate", "x"])["result"], "answered");
    let output = stage.json(&["debug", "output", "--since", "0", "--limit", "1"]);
    let all = stage.json(&["debug", "events", "--since", "0", "--limit", "100000"]);
    let lost = |kind: &str| {
        let events = all["entries"].as_array().unwrap();
        events.iter().filter(|it| it["event"] == kind).count() as u64
    };
    // 6,000 thread events exceed the ring; the dropped ones are counted.
    assert!(all["dropped"].as_u64().unwrap() > 0, "{}", all["dropped"]);
    assert!(output["dropped"].as_u64().unwrap() > 0 || lost("lost") > 0, "{output}");
    assert!(stage.sandbox.peak() < 200 << 20, "the supervisor took {} bytes", stage.sandbox.peak());
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_connection_that_breaks_during_a_call_is_an_error_with_its_cause() {
    for (how, words) in
        [("garbage", &["no Content-Length"][..]), ("half", &["middle of a frame"]), ("dies", &["the connection ended"])]
    {
        let Some(stage) = stopped(how) else { return };
        stage.sandbox.tether(&["debug", "evaluate", "x"]).fails(1, &[&["cannot evaluate `x`"], words].concat());
        let waited = stage.json(&["debug", "wait", "60"]);
        assert_eq!((&waited["stopped"], waited["state"].as_str()), (&false.into(), Some("DISCONNECTED")), "{waited}");
        stage.nothing_is_left();
        let message = stage.json(&["debug", "status", "d1"])["message"].as_str().unwrap().to_owned();
        match how {
            "dies" => assert!(message.contains("exited with code 7"), "{message}"),
            _ => assert!(words.iter().all(|word| message.contains(word)), "{message}"),
        }
        let refused = stage.sandbox.tether(&["debug", "step"]);
        refused.fails(2, &["the program is not stopped", "DISCONNECTED", "tether debug launch"]);
    }
}

#[test]
fn events_sent_twice_count_once() {
    let Some(stage) = with("twice") else { return };
    stage.json(&["break", "set", "app.py:1"]);
    let launched = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    assert_eq!((&launched["stopped"], &launched["stopReason"]["type"]), (&true.into(), &"STEP_COMPLETE".into()));
    // Each `initialized` event gets the breakpoints; of two responses the first counts.
    assert_eq!(stage.json(&["debug", "evaluate", "x"])["result"], "2");
    assert_eq!(stage.json(&["debug", "evaluate", "x"])["result"], "2");
    stage.json(&["debug", "stop"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_disconnect_without_a_response_is_not_awaited() {
    let Some(stage) = stopped("mute") else { return };
    let began = Instant::now();
    let ended = stage.json(&["debug", "stop"]);
    assert!(ended["state"] == "TERMINATED" || ended["state"] == "DISCONNECTED", "{ended}");
    assert!(began.elapsed() < Duration::from_secs(30));
    stage.nothing_is_left();
}

#[test]
fn an_adapters_error_message_is_passed_on_and_the_stop_remains() {
    let Some(stage) = stopped("refuses") else { return };
    stage.sandbox.tether(&["debug", "step"]).fails(1, &["cannot resume the program", "there is nothing to step in"]);
    let status = stage.json(&["debug", "status"]);
    assert_eq!((&status["state"], &status["stopReason"]["type"]), (&"STOPPED".into(), &"STEP_COMPLETE".into()));
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_variable_that_is_set_without_a_returned_value_is_read_again() {
    let Some(stage) = stopped("lldb-19") else { return };
    let set = stage.json(&["debug", "set", "total", "7"]);
    assert_eq!((&set["result"], &set["type"]), (&"7".into(), &"int".into()), "{set}");
    let refused = stage.sandbox.tether(&["debug", "set", "total", "no number"]);
    refused.fails(1, &["cannot set `total`", "'no number' is not a valid integer"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_watchpoint_that_is_reported_as_a_breakpoint_is_a_watchpoint() {
    let Some(stage) = stopped("lldb-19") else { return };
    let watch = stage.json(&["break", "watch", "total", "--access", "write"]);
    assert_eq!(watch["state"], "verified", "{watch}");
    let written = stage.json(&["debug", "continue", "--wait", "60"]);
    let (reason, details) = (&written["stopReason"], &written["stopReason"]["details"]);
    assert_eq!((&reason["type"], &details["breakpointId"]), (&"WATCHPOINT_MODIFY".into(), &watch["breakpointId"]));
    assert_eq!((&details["oldValue"], &details["newValue"]), (&"1".into(), &"9".into()), "{written}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_watchpoint_that_the_machine_refuses_says_that_it_may_have_none() {
    let Some(stage) = stopped("no-watchpoints") else { return };
    let watch = stage.json(&["break", "watch", "total", "--access", "write"]);
    assert_eq!(watch["state"], "unbound", "{watch}");
    let message = watch["message"].as_str().unwrap();
    for part in ["Setting one of the watchpoint resources failed", "hardware watchpoints", "virtual machine"] {
        assert!(message.contains(part), "{message}");
    }
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
