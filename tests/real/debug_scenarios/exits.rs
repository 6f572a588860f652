//! How a program ended: its exit code or its signal, also where only its adapter knows it; `unknown` where nobody does.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;

/// The end of `node ends.js`.
fn end_of(adapter: &str, text: &str) -> Option<(Value, ScenarioSandbox)> {
    let stage = ScenarioSandbox::with(adapter, "ends.js", text)?;
    let ended = stage.json(&["debug", "launch", "ends.js", "--adapter", adapter, "--wait", "60"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &json!("TERMINATED")), "{ended:#}");
    stage.nothing_is_left();
    Some((ended, stage))
}

fn message(ended: &Value) -> &str {
    ended["message"].as_str().unwrap_or_else(|| panic!("{ended:#}"))
}

#[test]
fn the_exit_code_of_a_javascript_program_is_known() {
    for adapter in ["node", "js-debug"] {
        exit_codes_are_known(adapter);
    }
}

fn exit_codes_are_known(adapter: &str) {
    let Some((ended, _)) = end_of(adapter, "console.log('fine');\n") else { return };
    assert_eq!((&ended["exitCode"], message(&ended)), (&json!(0), "the program has ended with code 0"), "{ended:#}");
    let Some((ended, stage)) = end_of(adapter, "console.log('before');\nprocess.exitCode = 3;\n") else { return };
    assert_eq!(ended["exitCode"], 3, "{ended:#}");
    assert_eq!(message(&ended), "the program has ended with code 3; it printed last:\nbefore");
    assert_eq!(stage.json(&["debug", "status", "d1"])["exitCode"], 3);
    let Some((ended, _)) = end_of(adapter, "throw new Error('no');\n") else { return };
    assert_eq!(ended["exitCode"], 1, "{ended:#}");
    assert!(message(&ended).contains("Error: no"), "{ended:#}");
}

#[test]
fn the_signal_that_ended_a_javascript_program_is_known() {
    let text = "console.log('up');\nprocess.kill(process.pid, 'SIGKILL');\nsetInterval(() => {}, 1000);\n";
    for (ended, stage) in ["node", "js-debug"].iter().filter_map(|adapter| end_of(adapter, text)) {
        assert_eq!((&ended["exitCode"], ended["stopped"].as_bool()), (&Value::Null, Some(false)), "{ended:#}");
        assert!(message(&ended).starts_with("the program was ended by signal 9"), "{ended:#}");
        assert_eq!(message(&stage.json(&["debug", "status", "d1"])), "the program was ended by signal 9");
    }
}

#[test]
fn the_exit_code_of_a_program_that_was_attached_to_is_unknown() {
    let text = "setTimeout(() => process.exit(4), 1500);\n";
    let Some(stage) = ScenarioSandbox::with("js-debug", "runs.js", text) else { return };
    let mut node = Command::new("node");
    node.args(["--inspect=127.0.0.1:0", "runs.js"]);
    let (_running, line) = stage.starts(node, "Debugger listening on");
    let port = line.rsplit_once(':').unwrap().1.split('/').next().unwrap().to_owned();
    stage.json(&["debug", "attach", &port, "--language", "javascript"]);
    let ended = stage.json(&["debug", "wait", "60"]);
    assert_eq!((&ended["stopped"], &ended["exitCode"]), (&json!(false), &Value::Null), "{ended:#}");
    assert!(message(&ended).contains("its exit code is unknown"), "{ended:#}");
}
