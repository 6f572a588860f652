//! Steps past code without a source and breakpoints that do not stop, the last output, and what a session keeps alive in a
//! program.

use std::path::Path;

use serde_json::{Value, json};

use super::conversation::NodeConversation;
use crate::support::requirements::installed_nodes;
use crate::support::scenario_sandbox::ScenarioSandbox;

/// Its third and fourth line are of no line of its source.
const GENERATED: &str = "\
let sum = 1;
sum += 2;
sum += 0;
sum += 0;
console.log(sum);
console.log('end');
//# sourceMappingURL=app.js.map
";
const SOURCE: &str = "\
let sum: number = 1;
sum += 2; // STOP
console.log(sum);
console.log('end');
";
const SPARSE_MAP: &str =
    r#"{"version":3,"file":"app.js","sources":["app.ts"],"names":[],"mappings":"AAAA;AACA;A;A;AACA;AACA"}"#;

#[tokio::test]
async fn a_step_goes_on_through_code_without_a_source_to_the_next_line_of_one() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("app.js", GENERATED), ("app.ts", SOURCE), ("app.js.map", SPARSE_MAP)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        conversation.set_breakpoints(&folder.path().join("app.ts"), "STOP").await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        assert_eq!(top_line(&conversation, &thread).await, 2);
        for line in [3, 4] {
            conversation.request("next", json!({"threadId": thread})).await;
            let stopped = conversation.event("stopped").await;
            assert_eq!((&stopped["reason"], top_line(&conversation, &thread).await), (&json!("step"), line));
        }
        conversation.request("continue", json!({"threadId": thread})).await;
        assert_eq!(conversation.ends().await.0, Some(0));
    }
}

const CALLS: &str = "\
function twice(number) {
  const result = number * 2;
  return result; // COUNTED
}
function outer(number) {
  return twice(number) + twice(number); // OUTER
}
const numbers = [1, 2, 3];
let sum = twice(1) + twice(2); // CALL
sum += numbers.map((number) => outer(number)).length; // MAP
console.log(sum); // AFTER
";

#[tokio::test]
async fn a_step_past_a_breakpoint_whose_count_does_not_hold_ends_where_it_would_without_it() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("app.js");
        std::fs::write(&program, CALLS).unwrap();
        let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        let (counted, call) = (line_of("COUNTED"), line_of("CALL"));
        let breakpoints = json!([{"line": counted, "hitCondition": "100"}, {"line": call}]);
        let set = json!({"source": {"path": program}, "breakpoints": breakpoints});
        conversation.request("setBreakpoints", set).await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        for marker in ["MAP", "AFTER"] {
            conversation.request("next", json!({"threadId": thread})).await;
            let stopped = conversation.event("stopped").await;
            assert_eq!((&stopped["reason"], top_line(&conversation, &thread).await), (&json!("step"), line_of(marker)));
        }
        conversation.request("continue", json!({"threadId": thread})).await;
        assert_eq!(conversation.ends().await.0, Some(0));
    }
}

#[tokio::test]
async fn a_step_out_past_a_breakpoint_whose_count_does_not_hold_ends_in_the_caller() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("app.js");
        std::fs::write(&program, CALLS).unwrap();
        let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        let breakpoints = json!([{"line": line_of("COUNTED"), "hitCondition": "100"}, {"line": line_of("OUTER"), "condition": "number === 2"}]);
        let set = json!({"source": {"path": program}, "breakpoints": breakpoints});
        conversation.request("setBreakpoints", set).await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        conversation.request("stepOut", json!({"threadId": thread})).await;
        conversation.event("stopped").await;
        assert_eq!(top_line(&conversation, &thread).await, line_of("MAP"));
        conversation.request("continue", json!({"threadId": thread})).await;
        assert_eq!(conversation.ends().await.0, Some(0));
    }
}

#[tokio::test]
async fn the_last_lines_of_a_program_that_prints_much_arrive() {
    const LINES: usize = 50_000;
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        // All of it is in the pipe, or waits for room in it, when the program ends.
        let text =
            format!("process.stdout.write(Array.from({{ length: {LINES} }}, (_, at) => `line ${{at}}\\n`).join(''));");
        write(folder.path(), "app.js", &text);
        let arguments = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
        let conversation = NodeConversation::begin("launch", arguments).await;
        conversation.configure().await;
        let (exit_code, output) = conversation.ends().await;
        let lines: Vec<&str> = output.lines().filter(|line| line.starts_with("line ")).collect();
        assert_eq!((exit_code, lines.len(), lines.last()), (Some(0), LINES, Some(&"line 49999")));
    }
}

const FORGOTTEN: &str = "\
let holder = { value: 1 };
const held = new WeakRef(holder);
console.log('held'); // STOP
holder = undefined;
setTimeout(() => {
  gc();
  console.log(held.deref() ? 'kept' : 'collected');
}, 20);
";

#[tokio::test]
async fn an_object_that_was_looked_at_for_a_data_breakpoint_is_collected_as_without_us() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("app.js");
        std::fs::write(&program, FORGOTTEN).unwrap();
        let arguments = json!({
            "runtimeExecutable": node, "runtimeArgs": ["--expose-gc"], "program": "app.js", "cwd": folder.path(),
        });
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        conversation.set_breakpoints(&program, "STOP").await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        let stack = conversation.request("stackTrace", json!({"threadId": thread})).await;
        let frame = stack["stackFrames"][0]["id"].clone();
        let info = conversation.request("dataBreakpointInfo", json!({"name": "holder.value", "frameId": frame})).await;
        let watched = json!({"breakpoints": [{"dataId": info["dataId"]}]});
        let set = conversation.request("setDataBreakpoints", watched).await;
        assert_eq!(set["breakpoints"][0]["verified"], true, "{info} {set}");
        conversation.request("setDataBreakpoints", json!({"breakpoints": []})).await;
        conversation.request("continue", json!({"threadId": thread})).await;
        let ended = conversation.ends().await;
        assert!(ended.0 == Some(0) && ended.1.contains("collected"), "{ended:?}");
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn line_of(marker: &str) -> i64 {
    let line = CALLS.lines().position(|line| line.ends_with(marker)).unwrap();
    line as i64 + 1
}

async fn top_line(conversation: &NodeConversation, thread: &Value) -> i64 {
    let stack = conversation.request("stackTrace", json!({"threadId": thread})).await;
    stack["stackFrames"][0]["line"].as_i64().unwrap()
}

/// V8's own word for a function that it has optimised: a bit of the status. `count` is called often enough for that.
const OPTIMISED: &str = "\
function count(most) {
  let total = 0;
  for (let number = 0; number < most; number++) total += number % 7;
  return total;
}
count(10); // CALL
let rounds = 0;
while (rounds < 1000 && (%GetOptimizationStatus(count) & 0b1110000) === 0) {
  count(100000);
  rounds++;
}
console.log(rounds < 1000 ? 'optimised' : 'never');
";

#[tokio::test]
async fn a_function_that_was_stepped_in_is_optimised_again_after_a_continue() {
    for node in installed_nodes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.js"), OPTIMISED).unwrap();
        let arguments = json!({
            "runtimeExecutable": node, "runtimeArgs": ["--allow-natives-syntax"], "program": "app.js", "cwd": folder.path()
        });
        let mut conversation = NodeConversation::begin("launch", arguments).await;
        conversation.set_breakpoints(&folder.path().join("app.js"), "CALL").await;
        conversation.configure().await;
        let thread = conversation.event("stopped").await["threadId"].clone();
        for (step, line) in [("stepIn", 2), ("next", 3)] {
            conversation.request(step, json!({"threadId": thread})).await;
            conversation.event("stopped").await;
            assert_eq!(top_line(&conversation, &thread).await, line);
        }
        conversation.request("continue", json!({"threadId": thread})).await;
        let (code, output) = conversation.ends().await;
        assert!(code == Some(0) && output.contains("optimised"), "{}: {output}", node.display());
    }
}

#[test]
fn a_variable_that_the_paused_statement_may_not_read_is_set_with_a_note() {
    let text = "const total = (order) => {\n  let amount = order * 2;\n  const tax = 0;\n  return amount + tax;\n};\nconsole.log(total(1));\n";
    let Some(stage) = ScenarioSandbox::with("node", "total.js", text) else { return };
    for (line, is_noted) in [(3, false), (4, true)] {
        stage.json(&["break", "remove", "--all"]);
        let at = format!("total.js:{line}");
        stage.json(&["debug", "launch", "total.js", "--adapter", "node", "--break", &at, "--wait", "60"]);
        let set = stage.json(&["debug", "set", "amount", "30"]);
        let note = set["note"].as_str().unwrap_or_default();
        assert_eq!(note.contains("the one at line 4 may go on with that value"), is_noted, "{set:#}");
        stage.json(&["debug", "stop"]);
    }
    stage.nothing_is_left();
}
