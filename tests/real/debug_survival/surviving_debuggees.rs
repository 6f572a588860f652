//! Programs to debug in a sandbox, and what is read of their sessions.

use devtether::adapters::FoundAdapter;
use serde_json::Value;

use crate::support::Sandbox;

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
