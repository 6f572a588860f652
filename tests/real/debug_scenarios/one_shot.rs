//! P1, P2: a probe, and a session across separate calls.

use crate::support::scenario_sandbox::ScenarioSandbox;

const APP: &str = "\
function total(order) {
  const result = order * 2;
  return result; // STOP
}
console.log('value', total(21));
";

#[test]
fn a_probe_runs_to_the_line_reports_its_state_and_leaves_nothing() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "äpp.js", APP) else { return };
    let probed = stage.json(&["probe", &stage.at("STOP"), "--expr", "result + 1", "--expr", "nothing"]);
    assert_eq!(probed["frames"][0]["name"], "total", "{probed:#}");
    let locals = probed["locals"].as_array().unwrap();
    assert!(locals.iter().any(|it| it["name"] == "result" && it["value"] == "42"), "{probed:#}");
    assert!(probed["source"]["text"].as_str().unwrap().contains("→ 3"), "{probed:#}");
    assert_eq!(probed["values"][0]["result"], "43");
    assert!(probed["values"][1]["error"].as_str().unwrap().contains("nothing"), "{probed:#}");
    assert_eq!(stage.others(), []);
    // It leaves no breakpoint and no session.
    assert_eq!(stage.json(&["break", "list"])["breakpoints"].as_array().unwrap().len(), 0);
    assert_eq!(stage.json(&["debug", "status"])["sessions"].as_array().unwrap().len(), 0);
}

#[test]
fn separate_commands_drive_one_session_and_its_stop_leaves_nothing() {
    let text =
        "def total(order):\n    result = order * 2\n    return result  # STOP\n\nprint('value', total(21))  # CALL\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "app.py", text) else { return };
    stage.breaks("CALL");
    stage.check(&stage.json(&["debug", "launch", "app.py", "--wait", "60"]), "BREAKPOINT_HIT", "CALL");
    stage.json(&["break", &stage.at("STOP")]);
    stage.check(&stage.json(&["debug", "continue", "--wait", "60"]), "BREAKPOINT_HIT", "STOP");
    assert_eq!(stage.json(&["debug", "evaluate", "result + 1"])["result"], "43");
    stage.json(&["debug", "set", "result", "7"]);
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((ended["state"].as_str(), ended["exitCode"].as_i64()), (Some("TERMINATED"), Some(0)), "{ended}");
    assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("value 7"));
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}
