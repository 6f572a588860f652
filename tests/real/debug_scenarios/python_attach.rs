//! What stands in the way of an attach to a running Python process is named at once. The kernel's switch (`ptrace_scope`) and that of
//! Python 3.14 are in the unit tests of the adapter's row.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

const IDLE: &str = "import socket\nlistener = socket.socket()\nlistener.bind(('127.0.0.1', 0))\nlistener.listen()\nprint('up', flush=True)\nlistener.accept()\n";
/// PTRACE_SEIZE, until it is killed.
const TRACER: &str = "import ctypes, sys, signal\nassert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) == 0\nprint('traces', flush=True)\nsignal.pause()\n";
/// debugpy would take 60 seconds. With the start of the command and of a supervisor.
const AT_ONCE: Duration = Duration::from_secs(5);

#[test]
fn a_process_that_is_traced_already_is_refused_at_once_with_its_tracer() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "idle.py", IDLE) else { return };
    stage.sandbox.write("tracer.py", TRACER);
    let start = |arguments: &[&str], words: &str| {
        let mut command = Command::new("python3");
        command.args(arguments);
        stage.starts(command, words).0
    };
    let idle = start(&["idle.py"], "up");
    let pid = idle.0.id().to_string();
    let tracer = start(&["tracer.py", &pid], "traces");
    let began = Instant::now();
    let refused = stage.sandbox.tether(&["debug", "attach", "--pid", &pid, "--language", "python"]);
    let took = began.elapsed();
    let by = format!("process {} (python", tracer.0.id());
    refused.fails(1, &[&format!("cannot attach to process {pid} with debugpy"), &by, "traces it already"]);
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn a_machine_without_gdb_is_told_what_installs_it() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "idle.py", IDLE) else { return };
    let Some(debugpy) = crate::support::requirements::installed_tool("debugpy") else { return };
    let mut command = Command::new("python3");
    command.arg("idle.py");
    let (idle, _) = stage.starts(command, "up");
    let pid = idle.0.id();
    // The machine's Python and our debugpy, and nothing else.
    let (programs, data) = (stage.sandbox.path("programs"), stage.sandbox.home().join("data/devtether"));
    std::fs::create_dir_all(&programs).unwrap();
    symlink(tether_process::program_path(pid).unwrap(), programs.join("python3")).unwrap();
    std::fs::create_dir_all(data.join("tools")).unwrap();
    symlink(debugpy, data.join("tools/debugpy")).unwrap();
    let mut attach = stage.sandbox.command(["debug", "attach", "--pid", &pid.to_string(), "--language", "python"]);
    attach.env("PATH", &programs).env("DEVTETHER_DATA_DIR", &data);
    let refused = run_command(attach);
    refused
        .fails(6, &["debugpy attaches with gdb, which is not installed", "`tether adapters install gdb` installs it"]);
}
