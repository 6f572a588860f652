//! A program that is attached to with breakpoints, stopped and detached from before them ends as without that: same output, same
//! exit code.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::requirements::{has_program, installed_nodes};
use crate::support::scenario_sandbox::found;
use crate::support::{Sandbox, eventually};

/// Waits for the file `go`; then threads, a child by `fork` and one by a shell.
const NATIVE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long total[4];

static void *count(void *at) {
  for (long n = 0; n < 1000000; n++) total[(long)at] += n % 7; // BREAK
  return 0;
}

int main(void) {
  while (access("go", F_OK)) usleep(20000);
  pthread_t threads[4];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  int status;
  pid_t child = fork(); // BREAK
  if (!child) _exit(9);
  waitpid(child, &status, 0);
  printf("%ld %ld %d\n", total[0], total[3], WEXITSTATUS(status));
  fflush(stdout);
  printf("%d\n", WEXITSTATUS(system("echo 42; exit 5")));
  return 7;
}
"#;

const GO: &str = r#"package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

func main() {
	for {
		if _, err := os.Stat("go"); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	var all sync.WaitGroup
	total := make([]int, 4)
	for at := range total {
		all.Add(1)
		go func(at int) {
			defer all.Done()
			for n := 0; n < 1000000; n++ {
				total[at] += n % 7 // BREAK
			}
		}(at)
	}
	all.Wait() // BREAK
	out, err := exec.Command("sh", "-c", "echo 42; exit 5").Output()
	fmt.Println(total, string(out), err)
	os.Exit(7)
}
"#;

const PYTHON: &str = "\
import os
import subprocess
import sys
import threading
import time

while not os.path.exists('go'):
    time.sleep(0.02)
total = [0] * 4

def count(at):
    for number in range(20000):
        total[at] += number % 7  # BREAK

threads = [threading.Thread(target=count, args=(at,)) for at in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
child = os.fork()  # BREAK
if child == 0:
    os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done = subprocess.run([sys.executable, '-c', 'print(6 * 7); raise SystemExit(5)'], capture_output=True, text=True)
print(total, code, done.stdout, done.stderr, done.returncode)
sys.exit(7)
";

/// A worker is alive at its end; the hooks have a worker of their own.
const NODE: &str = "\
const fs = require('node:fs');
const { spawnSync } = require('node:child_process');
const { register } = require('node:module');
const { pathToFileURL } = require('node:url');
const { Worker } = require('node:worker_threads');
register('./hooks.mjs', pathToFileURL(__filename));
const alive = new Worker('setInterval(() => {}, 1000)', { eval: true });
const COUNT = `
const { parentPort, workerData } = require('node:worker_threads');
let total = workerData;
for (let n = 0; n < 1000000; n++) total += n % 7;
parentPort.postMessage(total);
`;
const count = (at) => new Promise((counted) => {
  new Worker(COUNT, { eval: true, workerData: at }).once('message', counted);
});
async function run() {
  const total = await Promise.all([0, 1, 2, 3].map(count));
  const child = spawnSync(process.execPath, ['-e', 'console.log(6 * 7); process.exit(5)']);
  const late = await import('./late.mjs'); // BREAK
  console.log(total, String(child.stdout), child.status, late.text, alive.threadId > 0);
  process.exit(7);
}
const wait = () => (fs.existsSync('go') ? run() : setTimeout(wait, 20));
fs.writeFileSync('up', '');
wait();
";
const NODE_HOOKS: &str = "\
export async function load(url, context, next) {
  const loaded = await next(url, context);
  return url.endsWith('late.mjs') ? { ...loaded, source: String(loaded.source).replace('late', 'hooked') } : loaded;
}
";

/// Runs the program, attached to by its process id meanwhile where an adapter is named.
fn run(sandbox: &Sandbox, program: &[&Path], adapter: Option<&str>) -> Output {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).current_dir(&sandbox.workspace).envs(sandbox.variables());
    // debugpy prints warnings about frozen modules into the program that it attaches to.
    command.env("PYDEVD_DISABLE_FILE_VALIDATION", "1");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(adapter) = adapter {
        if adapter == "node" {
            // Until then the signal that opens its inspector would end it.
            eventually("it runs", || sandbox.path("up").exists().then_some(()));
        }
        let pid = child.id().to_string();
        sandbox.json(&["debug", "attach", "--pid", &pid, "--adapter", adapter]);
        if sandbox.json(&["debug", "status"])["state"] != "STOPPED" {
            assert_eq!(sandbox.json(&["debug", "pause", "--wait", "60"])["stopped"], true, "{adapter}");
        }
        let stopped = sandbox.json(&["debug", "stop", "--detach"]);
        assert!(stopped["message"].is_null(), "{stopped:#}");
    }
    sandbox.write("go", "");
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(sandbox.path("go")).unwrap();
    let _ = std::fs::remove_file(sandbox.path("up"));
    output
}

/// Without what Node itself prints of its inspector.
fn without_inspector_lines(mut output: Output) -> Output {
    const LINES: [&str; 4] =
        ["Debugger listening on ", "Debugger attached.", "Debugger ending on ", "For help, see: https://nodejs.org/"];
    let errors = String::from_utf8(output.stderr).unwrap();
    let own = errors.split_inclusive('\n').filter(|line| !LINES.iter().any(|start| line.starts_with(start)));
    output.stderr = own.collect::<String>().into_bytes();
    output
}

fn ends_as_without_a_debugger(sandbox: &Sandbox, source: &str, program: &[&Path], adapter: &str) {
    let text = std::fs::read_to_string(sandbox.path(source)).unwrap();
    for (at, _) in text.lines().enumerate().filter(|(_, line)| line.ends_with("BREAK")) {
        sandbox.json(&["break", "set", &format!("{source}:{}", at + 1)]);
    }
    let alone = run(sandbox, program, None);
    assert_eq!(alone.status.code(), Some(7), "{alone:?}");
    assert_eq!(without_inspector_lines(run(sandbox, program, Some(adapter))), alone, "{adapter}");
    eventually("nothing is left", || {
        sandbox.processes().iter().all(|(_, line)| line.contains(" supervise ")).then_some(())
    });
}

fn native_program_ends_as_before(adapter: &str) {
    if found(adapter).is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("threads.c", NATIVE)]);
    let (source, program) = (sandbox.path("threads.c"), sandbox.path("threads"));
    assert!(
        Command::new("cc").args(["-g", "-O0", "-pthread", "-o"]).args([&program, &source]).status().unwrap().success()
    );
    ends_as_without_a_debugger(&sandbox, "threads.c", &[&program], adapter);
}

#[test]
fn a_native_program_with_threads_ends_as_without_gdb() {
    native_program_ends_as_before("gdb");
}

#[test]
fn a_native_program_with_threads_ends_as_without_lldb_dap() {
    native_program_ends_as_before("lldb-dap");
}

#[test]
fn a_native_program_with_threads_ends_as_without_codelldb() {
    native_program_ends_as_before("codelldb");
}

#[test]
fn a_go_program_ends_as_without_delve() {
    if found("dlv").is_none() || !has_program("go") {
        return;
    }
    let sandbox = Sandbox::with(&[("main.go", GO), ("go.mod", "module example.com/neutral\n\ngo 1.19\n")]);
    let program = sandbox.path("neutral");
    let mut build = Command::new("go");
    build.args(["build", "-gcflags=all=-N -l", "-o"]).arg(&program).arg("main.go").current_dir(&sandbox.workspace);
    assert!(build.status().unwrap().success());
    ends_as_without_a_debugger(&sandbox, "main.go", &[&program], "dlv");
}

#[test]
fn a_python_program_with_threads_and_children_ends_as_without_debugpy() {
    let Some(debugpy) = found("debugpy") else { return };
    let sandbox = Sandbox::with(&[("threads.py", PYTHON)]);
    let program = [debugpy.interpreter.unwrap(), sandbox.path("threads.py")];
    ends_as_without_a_debugger(&sandbox, "threads.py", &[&program[0], &program[1]], "debugpy");
}

#[test]
fn a_node_program_with_workers_hooks_and_children_ends_as_without_our_adapter() {
    for node in installed_nodes() {
        let late = "export const text = 'late';\n";
        let sandbox = Sandbox::with(&[("app.js", NODE), ("hooks.mjs", NODE_HOOKS), ("late.mjs", late)]);
        ends_as_without_a_debugger(&sandbox, "app.js", &[&node, &sandbox.path("app.js")], "node");
    }
}
