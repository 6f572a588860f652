//! Core dumps: stacks and values of a program that has ended, read with each adapter that opens them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::support::run_command;
use crate::support::scenario_sandbox::{ScenarioSandbox, found};

const C: &str = "\
#include <stdio.h>

struct order {
  int count;
};

int twice(struct order *order) {
  int total = 42;
  return total * order->count; // STOP
}

int main(void) {
  printf(\"%d\\n\", twice(0));
  return 0;
}
";

const GO: &str = "\
package main

import \"fmt\"

func twice(count int) int {
	total := count * 2
	return total // STOP
}

func main() {
	fmt.Println(twice(21))
}
";

/// Runs a program in gdb with these commands, and writes a core dump of it. `None`, reported: gdb is not installed.
fn dump(stage: &ScenarioSandbox, commands: &[&str]) -> Option<PathBuf> {
    let gdb = found("gdb")?;
    let core = stage.sandbox.path("app.core");
    let mut command = match &gdb.interpreter {
        Some(python) => {
            let mut command = Command::new(python);
            command.args(["-I", "-m", "gdb_for_pwndbg.gdb"]);
            command
        }
        None => Command::new(&gdb.path),
    };
    command.args(["-nx", "-q", "-batch"]);
    command.args(commands.iter().flat_map(|command| ["-ex", command]));
    command.arg("-ex").arg(format!("gcore {}", core.display())).arg(stage.sandbox.path("app"));
    run_command(command).ok();
    assert!(core.is_file());
    Some(core)
}

fn compiled_stage(adapter: &str) -> Option<ScenarioSandbox> {
    let stage = ScenarioSandbox::with(adapter, "app.c", C)?;
    let mut compile = Command::new("cc");
    compile.args(["-g", "-O0", "-o", "app", "app.c"]).current_dir(&stage.sandbox.workspace);
    run_command(compile).ok();
    Some(stage)
}

/// The innermost frame is at the marker, values can be read, and the program cannot be resumed.
fn is_read_only(stage: &ScenarioSandbox, adapter: &str) {
    let stack = stage.json(&["debug", "stack"]);
    let top = &stack["frames"][0];
    assert_eq!((&top["line"], &top["file"]), (&json!(stage.line("STOP")), &json!(stage.file)), "{adapter}: {stack:#}");
    assert!(top["name"].as_str().unwrap().contains("twice"), "{adapter}: {stack:#}");
    assert_eq!(stage.json(&["debug", "evaluate", "total"])["result"], "42", "{adapter}");
    for resume in [&["debug", "continue"][..], &["debug", "step", "over"]] {
        stage
            .sandbox
            .tether(resume)
            .fails(2, &["cannot resume", "it has ended: this is its core dump", "debug launch"]);
    }
    let stopped = stage.json(&["debug", "stop"]);
    assert_eq!(stopped["state"], "TERMINATED", "{adapter}: {stopped:#}");
    assert!(stopped["notReached"].is_null(), "{adapter}: {stopped:#}");
    stage.nothing_is_left();
}

#[test]
fn the_dump_of_a_c_program_is_read() {
    for adapter in ["gdb", "lldb-dap", "codelldb"] {
        let Some(stage) = compiled_stage(adapter) else { continue };
        if dump(&stage, &["run"]).is_none() {
            continue;
        }
        stage.breaks("STOP");
        let opened = stage.json(&["debug", "attach", "--core", "app.core", "--adapter", adapter, "--wait", "60"]);
        assert_eq!(opened["state"], "STOPPED", "{adapter}: {opened:#}");
        let notes = opened["notes"].to_string();
        assert!(notes.contains("the program was ended by signal 11; this is its core dump"), "{adapter}: {opened:#}");
        is_read_only(&stage, adapter);

        let configuration = json!({"name": "core", "type": "cppdbg", "request": "launch", "program": "${workspaceFolder}/app",
            "coreDumpPath": "${workspaceFolder}/app.core"});
        let launch = json!({"version": "0.2.0", "configurations": [configuration]});
        stage.sandbox.write(".vscode/launch.json", &launch.to_string());
        stage.sandbox.tether(&["trust", "--yes", "--config", "core"]).ok();
        let opened = stage.json(&["debug", "launch", "--config", "core", "--adapter", adapter, "--wait", "60"]);
        assert_eq!(opened["state"], "STOPPED", "{adapter}: {opened:#}");
        is_read_only(&stage, adapter);
    }
}

#[test]
fn the_dump_of_a_go_program_is_read() {
    let Some(stage) = ScenarioSandbox::with("dlv", "app.go", GO) else { return };
    let mut build = Command::new("go");
    build.args(["build", "-gcflags=all=-N -l", "-o", "app", "app.go"]).current_dir(&stage.sandbox.workspace);
    run_command(build).ok();
    let at = format!("break {}", stage.at("STOP"));
    if dump(&stage, &["set breakpoint pending on", &at, "run"]).is_none() {
        return;
    }
    let opened = stage.json(&["debug", "attach", "--core", "app.core", "--wait", "60"]);
    assert_eq!((&opened["state"], &opened["adapter"]), (&json!("STOPPED"), &json!("dlv")), "{opened:#}");
    is_read_only(&stage, "dlv");
}

#[test]
fn what_cannot_be_opened_is_refused_with_the_next_command() {
    let Some(stage) = compiled_stage("gdb") else { return };
    dump(&stage, &["run"]).unwrap();
    let attach = |options: &[&str]| stage.sandbox.tether(&[&["debug", "attach"], options].concat());
    attach(&["--core", "app.c"]).fails(2, &["app.c", "it is no core dump", "coredumpctl"]);
    attach(&["--core", "gone"]).fails(2, &["gone", "No such file"]);
    attach(&["--core", "app.core", "--pid", "1"]).fails(2, &["name `core` alone"]);
    attach(&["--core", "app.core", "--adapter", "node"]).fails(2, &["it opens no core dumps", "lldb-dap"]);
    std::fs::rename(stage.sandbox.path("app"), stage.sandbox.path("moved")).unwrap();
    attach(&["--core", "app.core"]).fails(2, &["/app, is not there", "--program FILE"]);
    let opened = stage.json(&["debug", "attach", "--core", "app.core", "--program", "moved", "--wait", "60"]);
    assert_eq!(opened["state"], "STOPPED", "{opened:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
