//! What a command does at Ctrl-C, and its exit code.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{eventually, kill, node, node_with_build, wait_for_end};

#[test]
fn ctrl_c_cancels_the_start() {
    let sandbox = node_with_build(
        "mkdir -p .devtools; echo $$ > .devtools/pid; mv .devtools/pid .devtools/build; exec sleep 1000",
    );
    let start = sandbox.command(["start"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let build = eventually("the build", || std::fs::read_to_string(sandbox.path(".devtools/build")).ok());
    kill(start.id(), Signal::INT);
    let output = start.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("window/start was cancelled"), "{stderr}");
    wait_for_end(build.trim().parse().unwrap());
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn an_expression_that_throws_is_a_failure_of_the_command() {
    let sandbox = node();
    sandbox.json(&["start"]);
    let thrown = sandbox.tether(&["evaluate", "throw new Error('no answer')"]);
    assert!(thrown.code == 1 && thrown.stdout.contains("no answer") && thrown.stderr.is_empty(), "{thrown:?}");
    let thrown = sandbox.tether(&["evaluate", "--json", "throw new Error('no answer')"]);
    assert!(thrown.code == 1 && thrown.json()["exception"].as_str().unwrap().contains("no answer"), "{thrown:?}");
    sandbox.tether(&["evaluate", "answer"]).ok();
}

#[test]
fn a_state_folder_that_cannot_be_made_has_a_hint_that_fits() {
    let sandbox = crate::support::Sandbox::new();
    let mut command = sandbox.command(["status"]);
    // Nobody can make a folder there.
    command.env("XDG_STATE_HOME", "/proc/devtether");
    let words = ["cannot make the folder /proc/devtether/devtether/", "hint: make /proc writable", "XDG_STATE_HOME"];
    crate::support::run_command(command).fails(1, &words);
}
