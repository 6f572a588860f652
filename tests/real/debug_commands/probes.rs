//! `tether probe`: the state at a line, and nothing left, whatever the program does.

use std::process::Command;

use serde_json::{Value, json};

use crate::debug_commands::command_sandbox::{CommandSandbox, has_adapter};

const PYTHON: &str = "\
import sys, time

def total(order):
    amount = order * 2
    return amount  # STOP

if sys.argv[1:] == ['loop']:
    while True: time.sleep(0.01)
if sys.argv[1:] != ['end']:
    print(total(21), flush=True)
print('the end')
";

const NODE: &str = "\
const { spawn } = require('node:child_process');
function total(order) {
  const amount = order * 2;
  return amount; // STOP
}
if (process.argv[2] === 'loop') spawn('sleep', ['600'], { detached: true }), setInterval(() => {}, 10);
else if (process.argv[2] !== 'end') console.log(total(21));
";

const C: &str = "\
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int total(int order) {
  int amount = order * 2;
  return amount; // STOP
}
int main(int count, char **words) {
  if (count > 1 && !strcmp(words[1], \"loop\")) for (;;) usleep(10000);
  if (count > 1 && !strcmp(words[1], \"end\")) return 3;
  printf(\"%d\\n\", total(21));
  return 0;
}
";

/// Probes the `STOP` line of a source; `program` is the file to run, when it is another one.
fn probes(stage: &CommandSandbox, source: &str, program: &[&str]) {
    let at = stage.at(source, "STOP");
    let probe = |more: &[&str]| -> Value {
        let probed = stage.json(&[&["probe", at.as_str()], program, more].concat());
        // No process is left once it has returned.
        assert_eq!(stage.others(), [""; 0]);
        assert_eq!(stage.json(&["debug", "status"])["sessions"], json!([]), "a probe is no session of the user's");
        probed
    };
    let found = probe(&["--expr", "amount + 1", "--expr", "no_such_name", "--timeout", "60"]);
    assert_eq!(
        (&found["stopped"], &found["stopReason"]["type"]),
        (&json!(true), &json!("BREAKPOINT_HIT")),
        "{found:#}"
    );
    assert_eq!(found["values"][0]["result"], "43", "{found:#}");
    assert!(found["values"][1]["error"].is_string(), "{found:#}");
    let locals = found["locals"].to_string();
    assert!(locals.contains("\"amount\"") && locals.contains("\"42\""), "{locals}");
    assert!(found["source"]["text"].as_str().unwrap().contains("→"), "{found:#}");
    let ended = probe(&["--timeout", "60", "--expr", "amount", "--", "end"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &json!("TERMINATED")), "{ended:#}");
    assert!(ended["message"].as_str().unwrap().contains("has ended"), "{ended:#}");
    assert_eq!(ended["values"][0]["error"], "the line was not reached");
    let looped = probe(&["--timeout", "2", "--", "loop"]);
    assert_eq!((&looped["stopped"], &looped["state"]), (&json!(false), &json!("RUNNING")), "{looped:#}");
    assert!(looped["message"].as_str().unwrap().contains("nothing stopped within"), "{looped:#}");
}

#[test]
fn a_python_program_is_probed() {
    if has_adapter("debugpy") {
        probes(&CommandSandbox::with(&[("my app.py", PYTHON)]), "my app.py", &[]);
    }
}

#[test]
fn a_javascript_program_is_probed() {
    if has_adapter("js-debug") {
        probes(&CommandSandbox::with(&[("my app.js", NODE)]), "my app.js", &[]);
    }
}

#[test]
fn a_compiled_program_is_probed() {
    if has_adapter("lldb-dap") {
        let stage = CommandSandbox::with(&[("app.c", C)]);
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O0", "-o", "my app", "app.c"]).current_dir(&stage.sandbox.workspace);
        assert!(cc.status().unwrap().success());
        probes(&stage, "app.c", &["my app"]);
    }
}

#[test]
fn a_module_of_a_program_is_probed() {
    if has_adapter("debugpy") {
        let lib = "def total(order):\n    amount = order * 2\n    return amount  # STOP\n";
        let stage = CommandSandbox::with(&[("lib.py", lib), ("main.py", "import lib\nlib.total(21)\n")]);
        let probed = stage.json(&["probe", &stage.at("lib.py", "STOP"), "main.py", "--expr", "amount"]);
        assert_eq!(probed["values"][0]["result"], "42", "{probed:#}");
    }
}

#[test]
fn an_impossible_probe_is_an_error() {
    let stage = CommandSandbox::with(&[("app.py", PYTHON), ("app.txt", "text")]);
    let check = |line: &[&str], words: &[&str]| {
        let run_command = stage.tether(&[&["probe"], line].concat());
        assert_ne!(run_command.code, 0, "{run_command:?}");
        words
            .iter()
            .for_each(|word| assert!(run_command.stderr.contains(word), "{word:?} is not in {}", run_command.stderr));
        assert_eq!(stage.others(), [""; 0]);
    };
    check(&["app.py"], &["has no line number", "`", "app.py:LINE`"]);
    check(&["app.py:0"], &["lines begin at 1"]);
    check(&["app.py:99"], &["it has 11 lines"]);
    check(&["gone.py:1"], &["gone.py"]);
    check(&["app.txt:1"], &["name its language"]);
}
