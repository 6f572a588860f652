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

/// Prints six lines: three hits of one, and three of the other.
const TURNS: &str = "\
def total(order):
    amount = order * 2
    return amount  # STOP

for order in range(3):
    print(total(order))  # CALL
print('the end')
";

#[test]
fn the_hits_of_several_lines_are_collected_as_a_table() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = CommandSandbox::with(&[("app.py", TURNS)]);
    let (stop, call) = (stage.at("app.py", "STOP"), stage.at("app.py", "CALL"));
    let probe = |more: &[&str]| stage.json(&[&["probe", stop.as_str(), "--timeout", "60"], more].concat());
    let all = probe(&["--also", &call, "--expr", "order", "--expr", "amount"]);
    let hits = all["hits"].as_array().unwrap();
    let at: Vec<&str> = hits.iter().map(|hit| hit["at"].as_str().unwrap()).collect();
    assert_eq!(at, [&call, &stop].repeat(3), "{all:#}");
    let amount = |hit: &Value| hit["values"][1]["result"].as_str().map(str::to_owned);
    assert_eq!(amount(&hits[5]).as_deref(), Some("4"), "{all:#}");
    assert!(hits[0]["values"][1]["error"].is_string(), "{all:#}");
    assert_eq!((&all["state"], &all["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{all:#}");
    let some = probe(&["--max", "2"]);
    assert_eq!(some["hits"].as_array().map(Vec::len), Some(2), "{some:#}");
    assert!(some["hits"][1].to_string().contains("\"amount\""), "local variables: {some:#}");
    assert!(some["message"].as_str().unwrap().contains("`max` is 2"), "{some:#}");
    let text = stage.tether(&["probe", &stop, "--max", "9", "--expr", "amount", "--timeout", "60"]).stdout;
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["#", "at", "amount"], "{text}");
    assert_eq!(rows[3], ["3", stop.as_str(), "4"], "{text}");
    assert!(text.starts_with("3 hits") && text.contains("has ended with code 0"), "{text}");
    assert_eq!(stage.others(), [""; 0]);
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
    check(&["app.py:1", "--max", "0"], &["cannot collect 0 hits", "from 1 to 1000"]);
    check(&["app.py:99"], &["it has 11 lines"]);
    check(&["gone.py:1"], &["gone.py"]);
    check(&["app.txt:1"], &["name its language"]);
}
