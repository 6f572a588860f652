//! The workspace: programs that loop for ever, and a Node service as the window.

use std::process::{Child, Command, Stdio};

use crate::support::Sandbox;
use crate::support::listening_with_debugpy;
use crate::support::scenario_sandbox::{Running, found};
use crate::support::tunnel::Tunnel;

const PYTHON: &str = "\
import time
turns = 0
def turn():
    global turns
    turns += 1  # STOP
    return turns
while True:
    turn()
    time.sleep(0.005)  # STOP
";

const NODE: &str = "\
globalThis.turns = 0;
function turn() {
  globalThis.turns += 1; // STOP
  return globalThis.turns;
}
setInterval(() => {
  turn();
  globalThis.word = 'hello'; // STOP
}, 5);
";

const NATIVE: &str = "\
#include <unistd.h>
volatile long turns;
static long turn(void) {
  turns++; // STOP
  return turns;
}
int main(void) {
  for (;;) {
    turn();
    usleep(5000); // STOP
  }
}
";

const TOML: &str = "[window]\nkind = \"node\"\nprogram = \"server.js\"\ntimeout = \"15s\"\n";

/// A program to debug.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub file: &'static str,
    pub source: &'static str,
    pub adapter: &'static str,
    /// How often its loop has been run.
    pub turns: &'static str,
    /// Another value for that.
    pub value: &'static str,
    /// In the command line of its adapter's process, if it has one.
    pub adapter_mark: Option<&'static str>,
    text: &'static str,
}

pub const PROGRAMS: &[Program] = &[
    Program {
        file: "turns.js",
        source: "turns.js",
        adapter: "node",
        turns: "globalThis.turns",
        value: "7",
        adapter_mark: None,
        text: NODE,
    },
    Program {
        file: "turns.py",
        source: "turns.py",
        adapter: "debugpy",
        turns: "turns",
        value: "7",
        adapter_mark: None,
        text: PYTHON,
    },
    Program {
        file: "turns",
        source: "turns.c",
        adapter: "lldb-dap",
        turns: "turns",
        value: "7",
        adapter_mark: Some("lldb-dap"),
        text: NATIVE,
    },
];

impl Program {
    /// The lines with a breakpoint.
    pub fn stops(&self) -> Vec<usize> {
        let lines = self.text.lines().enumerate();
        lines.filter(|(_, line)| line.contains("STOP")).map(|(at, _)| at + 1).collect()
    }
}

/// Writes the workspace; returns the programs whose adapters are installed.
pub fn write_workspace(sandbox: &Sandbox) -> Vec<&'static Program> {
    PROGRAMS.iter().for_each(|it| sandbox.write(it.source, it.text));
    sandbox.write("server.js", crate::support::NODE_SERVICE);
    sandbox.write("devtools.toml", TOML);
    let (source, program) = (sandbox.path("turns.c"), sandbox.path("turns"));
    assert!(Command::new("cc").args(["-g", "-O0", "-o"]).args([&program, &source]).status().unwrap().success());
    sandbox.tether(&["trust", "--yes"]).ok();
    PROGRAMS.iter().filter(|it| found(it.adapter).is_some()).collect()
}

/// A Python program that listens for its debugger, at the end of a tunnel.
pub struct Listening {
    pub tunnel: Tunnel,
    /// Its debugger was ended by force.
    pub is_spoiled: bool,
    pub program: Running,
}

impl Listening {
    pub fn start(sandbox: &Sandbox) -> Listening {
        let debugpy = found("debugpy").expect("it is installed");
        let mut command = listening_with_debugpy(&debugpy, &sandbox.path("turns.py"), false);
        command.current_dir(&sandbox.workspace).envs(sandbox.variables());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let port = read_port(&mut child);
        Listening { tunnel: Tunnel::open(port), is_spoiled: false, program: Running(child) }
    }
}

fn read_port(child: &mut Child) -> u16 {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().strip_prefix("port ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
}
