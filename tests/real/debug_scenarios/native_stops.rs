//! Which debugger of native programs is used, how it stops at panics of Rust programs, and what it does with conditions that
//! cannot be evaluated.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::scenario_sandbox::{ScenarioSandbox, found};

const LOOP: &str = "\
#include <stdio.h>
int total(int order) {
  int amount = order * 2;
  return amount; // STOP
}
int main(void) {
  for (int order = 0; order < 3; order++) printf(\"%d\\n\", total(order));
  return 0;
}
";

fn compiled(stage: &ScenarioSandbox, command: &str, words: &[&str]) {
    let mut compiler = Command::new(command);
    compiler.args(words).args(["-g", "-o", "app", stage.file]).current_dir(&stage.sandbox.workspace);
    assert!(compiler.status().unwrap().success());
}

#[test]
fn n5_codelldb_is_used_where_lldb_dap_is_installed_too() {
    let Some(stage) = ScenarioSandbox::with("codelldb", "app.c", LOOP) else { return };
    if found("lldb-dap").is_none() {
        return;
    }
    compiled(&stage, "cc", &["-O0"]);
    stage.breaks("STOP");
    let stopped = stage.json(&["debug", "launch", "app", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    assert_eq!(stopped["adapter"], "codelldb", "{stopped:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

const PANICS: &str = "\
fn total(order: i32) -> i32 {
    let list = [1, 2, 3];
    let amount = order * 2;
    list[amount as usize] // PANIC
}

fn main() {
    println!(\"{}\", total(1));
    let caught = std::panic::catch_unwind(|| total(21));
    println!(\"caught {}\", caught.is_err());
    total(42);
}
";

/// Rust 1.95 has `rust_panic` in the namespace `__rustc`.
#[test]
fn n5_a_panic_of_rust_stops_in_the_users_code_with_its_message() {
    for adapter in ["lldb-dap", "codelldb", "gdb"] {
        let Some(stage) = ScenarioSandbox::with(adapter, "src/main.rs", PANICS) else { continue };
        stage.sandbox.write("Cargo.toml", "");
        compiled(&stage, "rustc", &[]);
        stage.json(&["break", "exceptions", "--uncaught"]);
        let check = |stopped: &Value, index: u32| {
            stage.check(stopped, "EXCEPTION", "PANIC");
            let details = &stopped["stopReason"]["details"];
            assert_eq!(details["exceptionType"], "panic", "{adapter}: {stopped:#}");
            assert_eq!(ScenarioSandbox::local(stopped, "amount"), index.to_string(), "{adapter}");
            // The program has printed it before; it may be read after the stop.
            let status = crate::support::eventually("the message of the panic", || {
                let exception = stage.json(&["debug", "status"])["exception"].clone();
                exception["message"].as_str().is_some_and(|text| !text.is_empty()).then_some(exception)
            });
            let message = format!("index out of bounds: the len is 3 but the index is {index}");
            assert_eq!((&status["class"], &status["message"]), (&json!("panic"), &json!(message)), "{adapter}");
        };
        check(&stage.json(&["debug", "launch", "app", "--adapter", adapter, "--wait", "60"]), 42);
        check(&stage.json(&["debug", "continue", "--wait", "60"]), 84);
        // Another class is none of Rust's; without exceptions nothing stops.
        let first = stage.json(&["debug", "status"])["sessionId"].as_str().unwrap().to_owned();
        for exceptions in [&["--class", "ValueError", "--caught"][..], &["--caught=false"]] {
            stage.json(&[&["break", "exceptions"], exceptions].concat());
            let ended = stage.json(&["debug", "launch", "app", "--adapter", adapter, "--wait", "60"]);
            assert_eq!(
                (&ended["state"], &ended["exitCode"]),
                (&json!("TERMINATED"), &json!(101)),
                "{adapter}: {ended:#}"
            );
        }
        stage.json(&["debug", "stop", &first]);
        stage.nothing_is_left();
    }
}

/// The note about the condition, without the adapter's own words.
fn condition_note<'a>(stopped: &'a Value, condition: &str, counts_as: bool) -> &'a str {
    let notes = stopped["notes"].as_array().unwrap_or_else(|| panic!("{stopped:#}"));
    let begin = format!("the condition `{condition}` of breakpoint 1 cannot be evaluated, and counts as {counts_as}: ");
    let found = notes.iter().filter_map(Value::as_str).find_map(|note| note.strip_prefix(begin.as_str()));
    found.unwrap_or_else(|| panic!("{stopped:#}"))
}

#[test]
fn n5_a_condition_that_cannot_be_evaluated_is_said_at_the_stop() {
    for adapter in ["lldb-dap", "codelldb"] {
        let Some(stage) = ScenarioSandbox::with(adapter, "app.c", LOOP) else { continue };
        compiled(&stage, "cc", &["-O0"]);
        for condition in ["nosuch == 3", "no such thing"] {
            stage.json(&["break", "set", &stage.at("STOP"), "--condition", condition]);
            let stopped = stage.json(&["debug", "launch", "app", "--adapter", adapter, "--wait", "60"]);
            stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
            let reason = condition_note(&stopped, condition, true);
            assert!(reason.contains("error") || reason.contains("Syntax"), "{adapter}: {reason}");
            // Already stopped: the same.
            condition_note(&stage.json(&["debug", "wait", "1"]), condition, true);
            stage.json(&["break", "set", &stage.at("STOP"), "--condition", "order == 1"]);
            let stopped = stage.json(&["debug", "continue", "--wait", "60"]);
            stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
            assert!(stopped.get("notes").is_none(), "{adapter}: {stopped:#}");
            stage.json(&["debug", "stop"]);
        }
        stage.nothing_is_left();
    }
}

const GO: &str = "\
package main

func total(order int) int {
	amount := order * 2
	return amount // STOP
}

func main() {
	for order := 0; order < 3; order++ {
		println(total(order))
	}
}
";

/// Delve reports an exception.
#[test]
fn n5_a_condition_that_delve_cannot_evaluate_is_said_at_the_breakpoint() {
    let Some(stage) = ScenarioSandbox::with("dlv", "main.go", GO) else { return };
    stage.sandbox.write("go.mod", "module example.com/app\n\ngo 1.19\n");
    stage.json(&["break", "set", &stage.at("STOP"), "--condition", "nosuch == 3"]);
    let stopped = stage.json(&["debug", "launch", "main.go", "--wait", "180"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    assert_eq!(condition_note(&stopped, "nosuch == 3", true), "could not find symbol value for nosuch");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_condition_that_java_cannot_evaluate_is_said_at_the_breakpoint() {
    let text = "\
public class App {
  static int total(int order) {
    return order * 2; // STOP
  }

  public static void main(String[] arguments) {
    System.out.println(total(1));
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "App.java", text) else { return };
    stage.json(&["break", "set", &stage.at("STOP"), "--condition", "nosuch == 3"]);
    let stopped = stage.json(&["debug", "launch", "App.java", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    let reason = condition_note(&stopped, "nosuch == 3", true);
    assert!(reason.contains("nosuch"), "{reason}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

/// debugpy runs on, and by default does not even print it.
#[test]
fn n5_a_condition_that_debugpy_cannot_evaluate_is_said_at_the_next_stop_and_at_the_end() {
    let text = "def total(order):\n    return order * 2  # LOOP\n\nfor order in range(300):\n    total(order)\nprint('done')  # DONE\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "app.py", text) else { return };
    stage.json(&["break", "set", &stage.at("LOOP"), "--condition", "nosuch == 3"]);
    let ended = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED");
    let reason = "NameError: name 'nosuch' is not defined";
    assert_eq!(condition_note(&ended, "nosuch == 3", false), reason);
    stage.breaks("DONE");
    let stopped = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "DONE");
    assert_eq!(condition_note(&stopped, "nosuch == 3", false), reason);
    // Three hundred times, and printed once.
    let printed = stage.json(&["debug", "output"])["entries"].to_string();
    assert_eq!(printed.matches("in conditional breakpoint").count(), 1, "{printed}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn n5_a_condition_that_node_cannot_evaluate_is_said_at_the_next_stop() {
    for adapter in ["node", "js-debug"] {
        failed_conditions_are_said(adapter);
    }
}

/// They are caught inside the program, and it is not said whose condition it was.
fn failed_conditions_are_said(adapter: &str) {
    let text = "function total(order) {\n  return order * 2; // LOOP\n}\nfor (let order = 0; order < 3; order++) total(order);\nconsole.log('done'); // DONE\n";
    let Some(stage) = ScenarioSandbox::with(adapter, "app.js", text) else { return };
    stage.json(&["break", "set", &stage.at("LOOP"), "--condition", "nosuch == 3"]);
    stage.breaks("DONE");
    let stopped = stage.json(&["debug", "launch", "app.js", "--adapter", adapter, "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "DONE");
    assert_eq!(condition_note(&stopped, "nosuch == 3", false), "nosuch is not defined");
    stage.json(&["debug", "stop"]);
    stage.json(&["break", "set", &stage.at("LOOP"), "--condition", "no such thing"]);
    let stopped = stage.json(&["debug", "launch", "app.js", "--adapter", adapter, "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "DONE");
    let reason = condition_note(&stopped, "no such thing", false);
    assert!(reason.contains("Unexpected identifier"), "{reason}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
