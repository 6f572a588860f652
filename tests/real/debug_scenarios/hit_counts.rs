//! Hit conditions that tether counts itself: what is said of those that are bad, not met, or in the way of a step.

use std::process::Command;

use serde_json::json;

use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

const NATIVE: &str = "\
#include <stdio.h>
int total = 0;
int main(void) {
  for (int i = 0; i < 3; i++) {
    total += 1;
    total += i;
  }
  printf(\"%d\\n\", total);
  return 0;
}
";

/// A workspace with the program, built. `None`, reported, without gdb.
fn native() -> Option<Sandbox> {
    found("gdb")?;
    let sandbox = Sandbox::with(&[("app.c", NATIVE)]);
    let built = Command::new("cc").args(["-g", "-O0", "-o", "app", "app.c"]).current_dir(&sandbox.workspace).status();
    assert!(built.unwrap().success());
    Some(sandbox)
}

#[test]
fn a_bad_hit_condition_is_refused_when_it_is_set() {
    let sandbox = Sandbox::with(&[("app.py", "a = 1\nb = 2\n")]);
    let refused = sandbox.tether(&["break", "set", "app.py:2", "--hits", "often"]);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    let told = &refused.stderr;
    assert!(told.contains("`often` is not a hit condition: write `3`, `>= 3` or `% 3`"), "{told}");
    assert_eq!(sandbox.json(&["break", "list"])["breakpoints"], json!([]));
}

#[test]
fn a_breakpoint_whose_hits_were_too_few_says_how_often_it_was_passed() {
    let Some(sandbox) = native() else { return };
    let set = sandbox.json(&["break", "set", "app.c:6", "--hits", "5"]);
    let ended = sandbox.json(&["debug", "launch", "app", "--adapter", "gdb", "--wait", "60"]);
    assert_eq!(ended["exitCode"], 0, "{ended}");
    let reason = "it was passed 3 times, and it stops at `5`";
    let expected = json!([{"breakpointId": set["breakpointId"], "place": "app.c:6", "reason": reason}]);
    assert_eq!(ended["notReached"], expected, "{ended}");
}

#[test]
fn a_step_that_ends_at_a_breakpoint_whose_hit_was_not_asked_for_stays_there_and_says_so() {
    let Some(sandbox) = native() else { return };
    sandbox.json(&["break", "set", "app.c:5"]);
    sandbox.json(&["break", "set", "app.c:6", "--hits", "2"]);
    let stopped = sandbox.json(&["debug", "launch", "app", "--adapter", "gdb", "--wait", "60"]);
    assert_eq!(stopped["stopReason"]["location"]["lineNumber"], 5, "{stopped}");
    let stepped = sandbox.json(&["debug", "step", "over"]);
    assert_eq!(stepped["stopReason"]["location"]["lineNumber"], 6, "{stepped}");
    assert_eq!(stepped["stopReason"]["type"], "STEP_COMPLETE", "{stepped}");
    // Its second hit.
    sandbox.json(&["debug", "continue", "--wait", "60"]);
    let second = sandbox.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(second["stopReason"]["location"]["lineNumber"], 6, "{second}");
    assert_eq!(second["stopReason"]["type"], "BREAKPOINT_HIT", "{second}");
}
