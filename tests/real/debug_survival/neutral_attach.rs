//! A program that is attached to with breakpoints, stopped and detached from before them ends as without that: same output, same
//! exit code.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Signal;

use crate::support::requirements::{has_program, installed_nodes};
use crate::support::scenario_sandbox::{Running, found};
use crate::support::{JDWP_PORT, Sandbox, compile_java, eventually, java_listening, kill};

/// A Node program that gets SIGUSR1 opens its inspector on this port, 9229, and on no other: one test at a time.
static INSPECTOR_PORT: Mutex<()> = Mutex::new(());

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

/// A server under `node --watch`, whose first version is edited. `ready` has its process id.
const WATCHED: &str = "\
const fs = require('node:fs');
console.log('version 1');
setInterval(() => {
  console.log; // BREAK
}, 10);
fs.writeFileSync('ready.new', String(process.pid));
fs.renameSync('ready.new', 'ready');
";

/// The work of a pool, which waits for the file `go`.
const POOL: &str = "\
import java.io.File;
import java.util.*;
import java.util.concurrent.*;

public class Pool {
  static int twice(int number) {
    return number * 2; // BREAK
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    pool.submit(() -> twice(1)).get();
    while (!new File(\"go\").exists()) {
      Thread.sleep(20);
    }
    List<Future<Integer>> results = new ArrayList<>();
    for (int number = 0; number < 200; number++) {
      int each = number;
      results.add(pool.submit(() -> twice(each)));
    }
    int sum = 0;
    for (Future<Integer> result : results) {
      sum += result.get();
    }
    Process child = new ProcessBuilder(\"sh\", \"-c\", \"echo 42; exit 5\").start();
    String printed = new String(child.getInputStream().readAllBytes()).trim();
    System.out.println(sum + \" \" + printed + \" \" + child.waitFor());
    System.exit(pool.isShutdown() ? 8 : 7);
  }
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
        stop_and_leave(sandbox, &["debug", "attach", "--pid", &pid, "--adapter", adapter]);
    }
    sandbox.write("go", "");
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(sandbox.path("go")).unwrap();
    let _ = std::fs::remove_file(sandbox.path("up"));
    output
}

/// Attaches by that command, pauses the program, and detaches from it.
fn stop_and_leave(sandbox: &Sandbox, attach: &[&str]) {
    sandbox.json(attach);
    if sandbox.json(&["debug", "status"])["state"] != "STOPPED" {
        assert_eq!(sandbox.json(&["debug", "pause", "--wait", "60"])["stopped"], true, "{attach:?}");
    }
    let stopped = sandbox.json(&["debug", "stop", "--detach"]);
    assert!(stopped["message"].is_null(), "{stopped:#}");
}

fn set_breakpoints(sandbox: &Sandbox, source: &str) {
    let text = std::fs::read_to_string(sandbox.path(source)).unwrap();
    for (at, _) in text.lines().enumerate().filter(|(_, line)| line.ends_with("BREAK")) {
        sandbox.json(&["break", "set", &format!("{source}:{}", at + 1)]);
    }
}

fn only_the_supervisor_is_left(sandbox: &Sandbox) {
    eventually("nothing is left", || sandbox.others().is_empty().then_some(()));
}

/// Without what Node itself prints of its inspector.
fn without_inspector_lines(mut output: Output) -> Output {
    const LINES: [&str; 5] = [
        "Debugger listening on ",
        "Debugger attached.",
        "Debugger ending on ",
        "For help, see: https://nodejs.org/",
        // The connection is kept for late workers; a program that ends meanwhile ends it.
        "Waiting for the debugger to disconnect...",
    ];
    let errors = String::from_utf8(output.stderr).unwrap();
    let own = errors.split_inclusive('\n').filter(|line| !LINES.iter().any(|start| line.starts_with(start)));
    output.stderr = own.collect::<String>().into_bytes();
    output
}

fn ends_as_without_a_debugger(sandbox: &Sandbox, source: &str, program: &[&Path], adapter: &str) {
    set_breakpoints(sandbox, source);
    let alone = run(sandbox, program, None);
    assert_eq!(alone.status.code(), Some(7), "{alone:?}");
    assert_eq!(without_inspector_lines(run(sandbox, program, Some(adapter))), alone, "{adapter}");
    only_the_supervisor_is_left(sandbox);
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

/// Asks each of its threads, and a new one, whether it is traced, and keeps the answer in a file.
const TRACED: &str = "\
import os
import sys
import threading
import time

traced = {}

def look(name, rounds):
    for _ in range(rounds):
        traced[name] = sys.gettrace() is not None  # BREAK
        time.sleep(0.01)

def keep_looking():
    look('other', 10 ** 9)

threading.Thread(target=keep_looking, daemon=True).start()
while True:
    new = threading.Thread(target=look, args=('new', 1))
    new.start()
    new.join()
    look('main', 1)
    with open('traced.new', 'w') as file:
        file.write(' '.join(sorted(name for name in traced if traced[name])) or 'none')
    os.rename('traced.new', 'traced')
";

#[test]
fn a_python_program_is_no_longer_traced_after_a_detach_and_can_be_attached_to_again() {
    let Some(debugpy) = found("debugpy") else { return };
    let sandbox = Sandbox::with(&[("traced.py", TRACED)]);
    set_breakpoints(&sandbox, "traced.py");
    let mut command = Command::new(debugpy.interpreter.unwrap());
    command.arg(sandbox.path("traced.py")).current_dir(&sandbox.workspace).envs(sandbox.variables());
    let program = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let pid = program.0.id().to_string();
    for _ in 0..2 {
        let attached = sandbox.json(&["debug", "attach", "--pid", &pid, "--language", "python", "--wait", "60"]);
        assert_eq!(attached["stopReason"]["type"], "BREAKPOINT_HIT", "{attached:#}");
        let stopped = sandbox.json(&["debug", "stop", "--detach"]);
        assert!(stopped["message"].is_null(), "{stopped:#}");
        // It has not looked at all yet, if it was attached to early.
        let _ = std::fs::remove_file(sandbox.path("traced"));
        eventually("it is not traced", || {
            std::fs::read_to_string(sandbox.path("traced")).ok().filter(|traced| traced == "none")
        });
    }
}

#[test]
fn a_node_program_with_workers_hooks_and_children_ends_as_without_our_adapter() {
    let _port = INSPECTOR_PORT.lock().unwrap_or_else(PoisonError::into_inner);
    for node in installed_nodes() {
        let late = "export const text = 'late';\n";
        let sandbox = Sandbox::with(&[("app.js", NODE), ("hooks.mjs", NODE_HOOKS), ("late.mjs", late)]);
        ends_as_without_a_debugger(&sandbox, "app.js", &[&node, &sandbox.path("app.js")], "node");
    }
}

/// Whether a process watches that file, by the kernel's list of its watches.
fn is_watched(pid: u32, file: &Path) -> bool {
    let inode = format!(" ino:{:x} ", std::fs::metadata(file).unwrap().ino());
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    descriptors.filter_map(|it| std::fs::read_to_string(it.path()).ok()).any(|text| text.contains(&inode))
}

/// Runs the program under `node --watch`, attached to where `is_debugged`, and edits it; then ends the watcher.
fn run_watched(sandbox: &Sandbox, node: &Path, is_debugged: bool) -> Output {
    sandbox.write("app.js", WATCHED);
    let ready = |what: &str| -> u32 {
        let pid = eventually(what, || std::fs::read_to_string(sandbox.path("ready")).ok());
        std::fs::remove_file(sandbox.path("ready")).unwrap();
        pid.parse().unwrap()
    };
    let mut command = Command::new(node);
    command.args(["--watch", "--watch-preserve-output", "app.js"]);
    command.current_dir(&sandbox.workspace).envs(sandbox.variables());
    let watcher = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = ready("the program runs");
    if is_debugged {
        stop_and_leave(sandbox, &["debug", "attach", "--pid", &first.to_string(), "--adapter", "node"]);
    }
    eventually("the file is watched", || is_watched(watcher.id(), &sandbox.path("app.js")).then_some(()));
    sandbox.write("app.js", &WATCHED.replace("version 1", "version 2"));
    let second = ready("the watcher has started it again");
    assert_ne!(first, second);
    kill(watcher.id(), Signal::INT);
    let output = watcher.wait_with_output().unwrap();
    only_the_supervisor_is_left(sandbox);
    output
}

#[test]
fn a_watched_node_program_restarts_as_without_our_adapter() {
    let _port = INSPECTOR_PORT.lock().unwrap_or_else(PoisonError::into_inner);
    for node in installed_nodes() {
        let sandbox = Sandbox::with(&[("app.js", WATCHED)]);
        set_breakpoints(&sandbox, "app.js");
        let alone = run_watched(&sandbox, &node, false);
        let printed = String::from_utf8_lossy(&alone.stdout).into_owned();
        assert!(printed.contains("version 1") && printed.contains("version 2"), "{alone:?}");
        assert_eq!(without_inspector_lines(run_watched(&sandbox, &node, true)), alone, "{}", node.display());
    }
}

/// Runs the program with its port open for a debugger, which attaches where `is_debugged`.
fn run_pool(sandbox: &Sandbox, is_debugged: bool) -> (String, Option<i32>) {
    let mut command = java_listening(&sandbox.workspace, "Pool", false);
    command.current_dir(&sandbox.workspace).envs(sandbox.variables());
    let mut program = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(program.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix(JDWP_PORT).unwrap();
    if is_debugged {
        stop_and_leave(sandbox, &["debug", "attach", port, "--language", "java"]);
    }
    sandbox.write("go", "");
    let mut printed = String::new();
    output.read_to_string(&mut printed).unwrap();
    std::fs::remove_file(sandbox.path("go")).unwrap();
    // After a detach, the virtual machine listens again.
    let own = printed.lines().filter(|line| !line.starts_with(JDWP_PORT)).collect();
    (own, program.0.wait().unwrap().code())
}

#[test]
fn a_java_program_with_a_pool_ends_as_without_our_adapter() {
    if found("java").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("Pool.java", POOL)]);
    compile_java(&sandbox.path("Pool.java"));
    set_breakpoints(&sandbox, "Pool.java");
    let alone = run_pool(&sandbox, false);
    assert_eq!(alone, ("39800 42 5".to_owned(), Some(7)));
    assert_eq!(run_pool(&sandbox, true), alone);
    only_the_supervisor_is_left(&sandbox);
}
