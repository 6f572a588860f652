//! Launched programs that are detached from go on, and their output ends nowhere that could end them.

use std::process::Command;

use crate::debug_survival::surviving_debuggees::found;
use crate::support::{Sandbox, eventually, is_alive, kill, wait_for_end};

/// Prints more than a pipe holds within a hundred rounds, and counts in a file how often it could print.
const NATIVE: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void) {
  for (int count = 1;; count++) {
    if (printf("%2000d\n", count) < 0 || fflush(stdout) || fprintf(stderr, "%d\n", count) < 0) return 3;
    FILE *file = fopen("count.new", "w");
    fprintf(file, "%d", count);
    fclose(file);
    rename("count.new", "count");
    usleep(10000);
  }
}
"#;
const NODE: &str = r#"
const fs = require("fs");
let count = 0;
setInterval(() => {
  console.log("x".repeat(2000));
  console.error("x");
  count += 1;
  fs.writeFileSync("count.new", String(count));
  fs.renameSync("count.new", "count");
}, 10);
"#;
const GO: &str = r#"
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	for count := 1; ; count++ {
		fmt.Println(count)
		os.WriteFile("count.new", []byte(fmt.Sprint(count)), 0o600)
		os.Rename("count.new", "count")
		time.Sleep(10 * time.Millisecond)
	}
}
"#;

/// The count of the program's rounds.
fn count(sandbox: &Sandbox) -> Option<u64> {
    std::fs::read_to_string(sandbox.path("count")).ok()?.parse().ok()
}

/// Waits until the program has printed on, and asserts that it lives.
fn prints_on(sandbox: &Sandbox, pid: u32) {
    let before = count(sandbox).unwrap();
    eventually("it prints on", || {
        assert!(is_alive(pid), "it has ended after round {:?} of {before}", count(sandbox));
        count(sandbox).filter(|now| *now > before + 100)
    });
}

/// Launches the program, and detaches from it.
fn outlives_its_debugger(sandbox: &Sandbox, adapter: &str, program: &str) {
    sandbox.json(&["debug", "launch", program, "--adapter", adapter]);
    eventually("it has begun", || count(sandbox));
    let is_program = |line: &str| line.trim_end().ends_with(program);
    let pid = sandbox.processes().into_iter().find(|(_, line)| is_program(line)).unwrap().0;
    let stopped = sandbox.json(&["debug", "stop", "--detach"]);
    assert!(stopped["message"].is_null(), "{stopped}");
    prints_on(sandbox, pid);
    sandbox.tether(&["shutdown"]).ok();
    prints_on(sandbox, pid);
    kill(pid, rustix::process::Signal::KILL);
    wait_for_end(pid);
    eventually("the readers of its output have ended", || sandbox.processes().is_empty().then_some(()));
}

fn native_program_outlives(adapter: &str) {
    if found(adapter).is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("ticks.c", NATIVE)]);
    let (source, program) = (sandbox.path("ticks.c"), sandbox.path("ticks"));
    assert!(Command::new("cc").args(["-g", "-O0", "-o"]).args([&program, &source]).status().unwrap().success());
    outlives_its_debugger(&sandbox, adapter, "ticks");
}

#[test]
fn n11_a_program_that_gdb_has_launched_prints_on_without_it() {
    native_program_outlives("gdb");
}

#[test]
fn n11_a_program_that_lldb_dap_has_launched_prints_on_without_it() {
    native_program_outlives("lldb-dap");
}

#[test]
fn n11_a_program_that_codelldb_has_launched_prints_on_without_it() {
    native_program_outlives("codelldb");
}

#[test]
fn n11_a_node_program_prints_on_without_its_debugger() {
    for adapter in ["node", "js-debug"] {
        if found(adapter).is_some() {
            let sandbox = Sandbox::with(&[("ticks.js", NODE)]);
            outlives_its_debugger(&sandbox, adapter, "ticks.js");
        }
    }
}

#[test]
fn n11_a_detach_that_delve_would_answer_by_ending_the_program_is_refused() {
    if found("dlv").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("main.go", GO), ("go.mod", "module example.com/ticks\n\ngo 1.19\n")]);
    sandbox.json(&["debug", "launch", "main.go"]);
    eventually("it has begun", || count(&sandbox));
    let refused = sandbox.tether(&["debug", "stop", "--detach"]);
    refused.fails(2, &["cannot detach from d1", "dlv ends every program that it has launched", "tether debug stop d1"]);
    let before = count(&sandbox).unwrap();
    eventually("it goes on", || count(&sandbox).filter(|now| *now > before + 100));
    sandbox.json(&["debug", "stop"]);
}
