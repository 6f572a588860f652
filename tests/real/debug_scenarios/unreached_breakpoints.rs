//! A program that ends without a stop: each breakpoint that could have stopped it is named, with what is known of why not.

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

/// Line 5 is not reached; line 3 is, three times.
pub const PYTHON: &str = "\
total = 0
for i in range(3):
    total += i
if total > 100:
    print(total)
";
pub const JAVASCRIPT: &str = "\
let total = 0;
for (let i = 0; i < 3; i++) {
  total += i;
}
if (total > 100) {
  console.log(total);
}
";

/// The reason of a breakpoint in a list of reports.
fn reason<'a>(reports: &'a Value, field: &str, id: &Value) -> &'a str {
    let reports = reports.as_array().unwrap();
    let report = reports.iter().find(|it| it["breakpointId"] == *id).unwrap_or_else(|| panic!("{id}: {reports:?}"));
    report[field].as_str().unwrap_or_default()
}

fn check(adapter: &str, (file, text, unreached): (&str, &str, u32), not_loaded: &str) {
    if found(adapter).is_none() {
        return;
    }
    let other = file.replace("app", "other");
    let sandbox = Sandbox::with(&[(file, text), (&other, text)]);
    let set = |arguments: &[&str]| sandbox.json(&[&["break", "set"], arguments].concat())["breakpointId"].clone();
    let line = set(&[&format!("{file}:{unreached}")]);
    let unmet = set(&[&format!("{file}:3"), "--condition", "i > 10"]);
    let unloaded = set(&[&format!("{other}:3")]);
    // It does not stop the program: whether it was passed is not known.
    set(&[&format!("{file}:1"), "--log", "begins"]);
    // Of another language: not meant.
    sandbox.write("other.rb", "puts 1\n");
    set(&["other.rb:1"]);
    let ended = sandbox.json(&["debug", "launch", file, "--adapter", adapter, "--wait", "60"]);
    assert_eq!((ended["stopped"].as_bool(), ended["exitCode"].as_i64()), (Some(false), Some(0)), "{ended}");
    let status = &sandbox.json(&["debug", "status", ended["sessionId"].as_str().unwrap()]);
    for reports in [&ended["notReached"], &status["notReached"]] {
        assert_eq!(reports.as_array().unwrap().len(), 3, "{adapter}: {reports}");
        assert_eq!(reason(reports, "reason", &line), "it was bound, and the line was not reached");
        assert_eq!(reason(reports, "place", &line), format!("{file}:{unreached}"));
        let held = "it was bound, and the line was not reached, or not while `i > 10` held";
        assert_eq!(reason(reports, "reason", &unmet), held);
        assert_eq!(reason(reports, "reason", &unloaded), not_loaded);
    }
    let listed = &sandbox.json(&["break", "list"])["breakpoints"];
    let words = format!("in {}, which has ended, it was bound, and", ended["sessionId"].as_str().unwrap());
    assert!(reason(listed, "message", &line).starts_with(&words), "{listed}");
    let text = sandbox.tether(&["debug", "launch", file, "--adapter", adapter, "--wait", "60"]).ok().stdout;
    assert_eq!(text.matches("has ended with code 0").count(), 1, "the end is said once: {text}");
    assert_eq!(text.matches("has not stopped it: ").count(), 3, "{text}");
}

#[test]
fn a_python_program_that_ends_without_a_stop_names_each_breakpoint() {
    check("debugpy", ("app.py", PYTHON, 5), "it was bound, and the line was not reached");
}

#[test]
fn a_node_program_that_ends_without_a_stop_names_each_breakpoint() {
    let not_loaded = "it was not bound: neither this file nor a script whose source map names it was loaded";
    check("node", ("app.js", JAVASCRIPT, 6), not_loaded);
}

/// Nothing is waited for: the function is looked for before the program runs, when no promise is settled.
#[test]
fn a_function_that_a_node_program_does_not_have_is_named() {
    if found("node").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.js", JAVASCRIPT)]);
    let set = sandbox.json(&["break", "set", "--function", "nosuch"])["breakpointId"].clone();
    let ended = sandbox.json(&["debug", "launch", "app.js", "--adapter", "node", "--wait", "60"]);
    let words = "it was not bound: no function `nosuch` is in reach";
    assert!(reason(&ended["notReached"], "reason", &set).starts_with(words), "{ended}");
}
