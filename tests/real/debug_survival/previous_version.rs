//! A session and a window of the program of the commit before, which `cargo xtask test` builds: this program's supervisor takes
//! them over as they are.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::debug_survival::surviving_debuggees::{PYTHON, line, stop};
use crate::support::scenario_sandbox::found;
use crate::support::{eventually, run_command};

/// Where the program of the commit before is.
const PREVIOUS: &str = "DEVTETHER_PREVIOUS";

#[test]
fn a_supervisor_takes_over_what_the_program_of_the_commit_before_has_started() {
    let Some(previous) = std::env::var_os(PREVIOUS).map(PathBuf::from) else {
        return eprintln!("skipped: {PREVIOUS} is not set; `cargo xtask test` builds the commit before");
    };
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = crate::support::node();
    sandbox.write("app.py", PYTHON);
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&previous);
        command.arg("--json").args(arguments).envs(sandbox.variables());
        command.current_dir(&sandbox.workspace).stdin(Stdio::null());
        command
    };
    let before = |arguments: &[&str]| run_command(command(arguments)).ok().json();
    let window = before(&["start"])["pid"].clone();
    let at = stop("app.py", PYTHON);
    let launched = before(&["debug", "launch", "app.py", "--break", &at, "--wait", "60"]);
    assert_eq!(launched["stopped"], true, "{launched}");
    let old = sandbox.supervisor().unwrap();
    // A wait of the program before, which goes on over the upgrade.
    before(&["break", "remove", "--all"]);
    before(&["debug", "continue"]);
    let connected = || sandbox.supervisor_log().matches("front end connected").count();
    let (count, waiting) = (connected(), command(&["debug", "wait", "60"]).stdout(Stdio::piped()).spawn().unwrap());
    eventually("the wait is there", || (connected() > count).then_some(()));

    let upgraded = sandbox.json(&["upgrade"]);
    assert_eq!(upgraded["replaced"]["pid"], old, "{upgraded}");
    assert_eq!(sandbox.json(&["status"])["pid"], window);
    sandbox.json(&["break", "set", &at]);
    let answered: Value = serde_json::from_slice(&waiting.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&answered["stopped"], line(&answered)), (&json!(true), line(&launched)), "{answered}");
    let status = sandbox.json(&["debug", "status"]);
    assert_eq!((&status["state"], &status["pid"]), (&json!("STOPPED"), &launched["pid"]), "{status}");
    assert_eq!(sandbox.json(&["debug", "evaluate", "word"])["result"], "'hello'");
    let again = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&again["stopped"], line(&again)), (&json!(true), line(&launched)), "{again}");
    sandbox.json(&["debug", "stop"]);
    sandbox.json(&["stop"]);
}
