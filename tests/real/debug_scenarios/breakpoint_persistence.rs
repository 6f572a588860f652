//! Breakpoints belong to the workspace: they outlive sessions and supervisors, and follow their code.

use serde_json::Value;

use crate::support::scenario_sandbox::ScenarioSandbox;

const CODE: &str = "def total(order):\n    result = order * 2\n    return result  # STOP\n\nprint(total(21))\n";

fn listed(stage: &ScenarioSandbox) -> Value {
    stage.json(&["break", "list"])["breakpoints"][0].clone()
}

#[test]
fn breakpoints_outlive_sessions_and_supervisors_and_follow_their_code() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "äpp.py", CODE) else { return };
    let set = stage.breaks("STOP");
    stage.sandbox.tether(&["shutdown"]).ok();
    stage.sandbox.write("äpp.py", &format!("import sys\n\n{CODE}"));
    let moved = listed(&stage);
    assert_eq!((moved["breakpointId"].clone(), moved["line"].as_u64()), (set["breakpointId"].clone(), Some(5)));
    assert_eq!(moved["drift"], "moved");
    assert!(moved["message"].as_str().unwrap().contains("from line 3 to 5"), "{moved}");
    for _ in 0..2 {
        let stopped = stage.json(&["debug", "launch", "äpp.py", "--wait", "60"]);
        assert_eq!(stopped["stopReason"]["location"]["lineNumber"], 5, "{stopped:#}");
        assert_eq!(stopped["stopReason"]["details"]["hitCount"], 1);
        stage.json(&["debug", "stop"]);
    }
    // The same breakpoints, the same program, once more.
    let again = stage.json(&["debug", "launch", "--restart", "d2", "--wait", "60"]);
    assert_eq!(again["stopReason"]["location"]["lineNumber"], 5, "{again:#}");
    stage.json(&["debug", "stop"]);

    let twice = "def one():\n    return result  # STOP\n\ndef two():\n    return result  # STOP\n";
    stage.sandbox.write("äpp.py", twice);
    let ambiguous = listed(&stage);
    assert_eq!(ambiguous["drift"], "ambiguous");
    assert!(ambiguous["message"].as_str().unwrap().contains("lines 2, 5"), "{ambiguous}");
    stage.sandbox.write("äpp.py", "print('nothing of it')\n");
    let lost = listed(&stage);
    assert_eq!(lost["drift"], "lost");
    // It does not stop on a wrong line.
    let ended = stage.json(&["debug", "launch", "äpp.py", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended}");
    stage.nothing_is_left();
}
