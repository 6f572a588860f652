//! A column that an adapter ignores is not reported as obeyed.

use serde_json::json;

use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

const NOTE: &str = "this adapter ignores columns: it stops at the line's first code";

#[test]
fn an_ignored_column_is_said_with_the_breakpoint() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", "def f(x): return x\nprint(f(1) + f(2))\nprint('end')\n")]);
    let set = sandbox.tether(&["break", "set", "app.py:2:14"]).ok().stdout;
    assert_eq!(set.trim_end(), "breakpoint 1 at app.py:2:14: pending", "no adapter has seen it yet");
    let launched = sandbox.tether(&["debug", "launch", "app.py", "--break", "app.py:3:7", "--wait", "60"]).ok().stdout;
    assert!(launched.contains(&format!("breakpoint 2 at app.py:3:7: verified ({NOTE})")), "{launched}");
    let listed = sandbox.json(&["break", "list"])["breakpoints"].clone();
    assert_eq!((&listed[0]["state"], &listed[0]["message"]), (&json!("verified"), &json!(NOTE)), "{listed}");
    let set = sandbox.tether(&["break", "set", "app.py:2:7"]).ok().stdout;
    assert!(set.contains(&format!("verified ({NOTE})")), "{set}");
    let plain = sandbox.json(&["break", "set", "app.py:1"]);
    assert_eq!(plain["message"], json!(null), "without a column there is nothing to say");
    sandbox.json(&["debug", "stop"]);
}
