//! The two sides: our MCP server and the peer's, each asked for the same in its own words.

#![allow(dead_code)] // each bench uses a part

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::client::sandbox::Sandbox;

/// It can be stepped in for ever.
const PYTHON: &str = "def total(order):
    result = order * 2
    while True:
        result += order
        result -= order

total(1)
";

const JAVASCRIPT: &str = "function total(order) {
  let result = order * 2;
  while (true) {
    result += order;
    result -= order;
  }
}
total(1);
";

/// With an argument it ends at once.
const JAVA: &str = "public class App { static int total(int order) {
    int result = order * 2;
    while (true) {
      result += order;
      result -= order;
    }
  }
  public static void main(String[] args) {
    if (args.length == 0) total(1);
  }
}
";

/// The line of `result = …` in all programs.
pub const LINE: u32 = 2;

/// A workspace with the programs, for this build.
pub fn program_sandbox() -> Sandbox {
    program_sandbox_of(Path::new(env!("CARGO_BIN_EXE_tether")))
}

/// A workspace with the programs, for this `tether`.
pub fn program_sandbox_of(tether: &Path) -> Sandbox {
    let sandbox = Sandbox::of(tether, &[("app.py", PYTHON), ("app.js", JAVASCRIPT), ("App.java", JAVA)]);
    // One interpreter for all, which has debugpy.
    symlink(tools().join("python"), sandbox.workspace.join(".venv")).unwrap();
    assert!(sandbox.command(&["trust", "--programs", "--yes"]).output().unwrap().status.success());
    sandbox
}

pub fn compile_java(sandbox: &Sandbox) {
    let compiled = Command::new("javac").args(["-g", "App.java"]).current_dir(&sandbox.workspace).status();
    assert!(compiled.unwrap().success());
}

pub fn python(sandbox: &Sandbox) -> PathBuf {
    sandbox.workspace.join(".venv/bin/python")
}

fn tools() -> PathBuf {
    tether_base::xdg::data_dir().unwrap().join("tools")
}

/// What can be asked of either.
pub trait Side {
    /// Launches, and waits for the breakpoint.
    fn stop_in(&mut self, program: &str);
    /// Evaluates, reads the locals, steps: how long each took.
    fn calls(&mut self) -> [Duration; 3];
    fn locals(&mut self) -> Duration;
    /// Ends it, and waits until it is gone.
    fn end(&mut self);

    /// Launch → breakpoint → locals → gone.
    fn session(&mut self, program: &str) -> Duration {
        let begun = Instant::now();
        self.stop_in(program);
        self.locals();
        self.end();
        begun.elapsed()
    }
}

pub struct Us(Client);

impl Us {
    pub fn start(sandbox: &Sandbox) -> Us {
        Us(Client::start(&mut sandbox.command(&["mcp"])))
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (Duration, Value) {
        let (took, reported) = self.0.call(tool, arguments);
        (took, reported["structuredContent"].clone())
    }
}

impl Side for Us {
    fn stop_in(&mut self, program: &str) {
        let at = format!("{program}:{LINE}");
        let launch = json!({"program": program, "breakpoints": [at], "wait": 30});
        assert_eq!(self.call("debug_launch", launch).1["stopped"], true);
    }

    fn calls(&mut self) -> [Duration; 3] {
        let (evaluate, reported) = self.call("debug_evaluate", json!({"expression": "order + 1 - order"}));
        assert_eq!(reported["result"], "1");
        let locals = self.locals();
        let (step, reported) = self.call("debug_step", json!({"kind": "over"}));
        assert_eq!(reported["stopped"], true);
        [evaluate, locals, step]
    }

    fn locals(&mut self) -> Duration {
        let (took, reported) = self.call("debug_variables", json!({}));
        assert!(reported.to_string().contains("\"order\""), "{reported}");
        took
    }

    fn end(&mut self) {
        let state = self.call("debug_stop", json!({})).1["state"].clone();
        assert!(state == "TERMINATED" || state == "DISCONNECTED", "{state}");
        self.call("breakpoint_remove", json!({"all": true}));
    }
}

pub struct Them {
    client: Client,
    workspace: PathBuf,
    python: PathBuf,
    session: Value,
}

impl Them {
    pub fn start(sandbox: &Sandbox) -> Them {
        let peer = tools().join("js-debug/node_modules/@debugmcp/mcp-debugger/dist/cli.mjs");
        assert!(peer.is_file(), "{} is missing: run `cargo xtask tools`", peer.display());
        let client = Client::start(Command::new("node").arg(peer).arg("stdio").current_dir(&sandbox.workspace));
        let (workspace, python) = (sandbox.workspace.clone(), python(sandbox));
        Them { client, workspace, python, session: Value::Null }
    }

    /// Of the living session.
    fn call(&mut self, tool: &str, mut arguments: Value) -> (Duration, Value) {
        if !self.session.is_null() {
            arguments["sessionId"] = self.session.clone();
        }
        let (took, reported) = self.client.call(tool, arguments);
        let text = reported["content"][0]["text"].as_str().unwrap_or_default();
        let reported: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {reported}"));
        assert_eq!(reported["success"], true, "{tool}: {reported}");
        (took, reported)
    }
}

impl Side for Them {
    fn stop_in(&mut self, program: &str) {
        let path = self.workspace.join(program);
        let language = match program.ends_with(".py") {
            true => json!({"language": "python", "executablePath": self.python}),
            false => json!({"language": "javascript"}),
        };
        self.session = self.call("create_debug_session", language).1["sessionId"].clone();
        self.call("set_breakpoint", json!({"file": path, "line": LINE}));
        assert_eq!(self.call("start_debugging", json!({"scriptPath": path})).1["state"], "paused");
    }

    fn calls(&mut self) -> [Duration; 3] {
        let (evaluate, reported) = self.call("evaluate_expression", json!({"expression": "order + 1 - order"}));
        assert_eq!(reported["result"], "1");
        let locals = self.locals();
        let (step, reported) = self.call("step_over", json!({}));
        assert_eq!(reported["state"], "paused");
        [evaluate, locals, step]
    }

    fn locals(&mut self) -> Duration {
        let (took, reported) = self.call("get_local_variables", json!({}));
        assert!(reported.to_string().contains("\"order\""), "{reported}");
        took
    }

    fn end(&mut self) {
        self.call("close_debug_session", json!({}));
        self.session = Value::Null;
    }
}
