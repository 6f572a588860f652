//! Programs to debug in a sandbox: launched ones, and ones that listen for debuggers.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use devtether::adapters::FoundAdapter;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Sandbox, kill, listening_with_debugpy, wait_for_end};

/// A loop whose `STOP` line is hit repeatedly.
pub const PYTHON: &str = "\
import time
total = 0
while True:
    total += 1
    word = 'hello'
    time.sleep(0.01)  # STOP
";

pub const JAVASCRIPT: &str = "\
let total = 0;
setInterval(() => {
  total += 1;
  globalThis.word = 'hello'; // STOP
}, 10);
";

/// `file:line` of the line with `STOP`.
pub fn stop(file: &str, text: &str) -> String {
    let at = text.lines().position(|line| line.contains("STOP")).unwrap();
    format!("{file}:{}", at + 1)
}

/// Where an adapter lies; `None` after having said so.
pub fn found(name: &str) -> Option<FoundAdapter> {
    crate::support::requirements::installed_adapter(name).map(|(_, found)| found)
}

/// A program that listens for debuggers; killed on drop.
pub struct Listening {
    child: Child,
    pub port: u16,
}

impl Listening {
    /// A Python program with debugpy in it.
    pub fn python(sandbox: &Sandbox, debugpy: &FoundAdapter, file: &str) -> Listening {
        let mut command = listening_with_debugpy(debugpy, &sandbox.path(file), false);
        Listening::of(command.stdout(Stdio::piped()), |line| line.strip_prefix("port ")?.parse().ok())
    }

    /// A Node program with its inspector open.
    pub fn node(sandbox: &Sandbox, js_debug: &FoundAdapter, file: &str) -> Listening {
        let mut command = Command::new(js_debug.interpreter.as_ref().unwrap());
        command.arg(OsString::from("--inspect=127.0.0.1:0")).arg(sandbox.path(file));
        Listening::of(command.stderr(Stdio::piped()), |line| {
            line.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()
        })
    }

    fn of(command: &mut Command, port: impl Fn(&str) -> Option<u16>) -> Listening {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let printed: Box<dyn std::io::Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(out), _) => Box::new(out),
            (_, Some(err)) => Box::new(err),
            _ => panic!("it says nothing"),
        };
        let mut lines = BufReader::new(printed).lines();
        let port = lines.find_map(|line| port(&line.unwrap())).expect("it listens");
        // Later output is drained, so that a full pipe does not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Listening { child, port }
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills the supervisor and waits for its exit.
pub fn kill_supervisor(sandbox: &Sandbox) {
    let supervisor = sandbox.supervisor().expect("a supervisor lives");
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
}

/// The texts of a session's events of one kind.
pub fn events(sandbox: &Sandbox, session: &str, kind: &str) -> Vec<String> {
    let reported = sandbox.json(&["debug", "events", "--session", session, "--limit", "1000"]);
    let all = reported["entries"].as_array().unwrap().iter().filter(|it| it["event"] == kind);
    all.map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

/// The line of the stop in a result.
pub fn line(stopped: &Value) -> u64 {
    stopped["stopReason"]["location"]["lineNumber"].as_u64().unwrap_or_else(|| panic!("{stopped}"))
}
