//! How a program has ended: by itself, with a code, or by a signal, which is no code. With each adapter.

use std::process::Command;

use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

const NATIVE: &str = "\
#include <signal.h>
#include <stdlib.h>
int main(void) {
  if (getenv(\"KILLED\")) raise(SIGKILL);
  return 7;
}
";
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "debugpy",
        "app.py",
        "import os, signal, sys\nif 'KILLED' in os.environ:\n    os.kill(os.getpid(), signal.SIGKILL)\nsys.exit(7)\n",
    ),
    (
        "node",
        "app.js",
        "if (process.env.KILLED) process.kill(process.pid, 'SIGKILL');\nelse process.exit(7);\nsetTimeout(() => {}, 60000);\n",
    ),
    (
        "js-debug",
        "app.js",
        "if (process.env.KILLED) process.kill(process.pid, 'SIGKILL');\nelse process.exit(7);\nsetTimeout(() => {}, 60000);\n",
    ),
    ("rdbg", "app.rb", "Process.kill(:KILL, $$) if ENV['KILLED']\nexit 7\n"),
    ("lldb-dap", "app.c", NATIVE),
    ("gdb", "app.c", NATIVE),
];

fn check(adapter: &str, file: &str, text: &str) {
    if found(adapter).is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[(file, text)]);
    let mut program = file;
    if file.ends_with(".c") {
        let mut build = Command::new("cc");
        build.args(["-g", "-O0", "-o", "app", file]).current_dir(&sandbox.workspace);
        assert!(build.status().unwrap().success());
        program = "app";
    }
    let launch = ["debug", "launch", program, "--adapter", adapter, "--wait", "60"];
    let exited = sandbox.json(&launch);
    assert_eq!((&exited["state"], exited["exitCode"].as_i64()), (&"TERMINATED".into(), Some(7)), "{adapter}: {exited}");
    let killed = sandbox.json(&[&launch[..], &["--env", "KILLED=1"]].concat());
    assert_eq!(killed.get("exitCode"), None, "{adapter}: {killed}");
    // Its connection has ended with debugpy's server, before it is known why.
    let state = if adapter == "debugpy" { "DISCONNECTED" } else { "TERMINATED" };
    assert_eq!(killed["state"], state, "{adapter}: {killed}");
    let told = killed["message"].as_str().unwrap();
    assert!(told.contains("was ended by signal 9"), "{adapter}: {told}");
    let status = sandbox.json(&["debug", "status", killed["sessionId"].as_str().unwrap()]);
    assert_eq!(status.get("exitCode"), None, "{adapter}: {status}");
}

#[test]
fn a_signal_that_ends_a_program_is_no_exit_code() {
    for (adapter, file, text) in PROGRAMS {
        check(adapter, file, text);
    }
}
