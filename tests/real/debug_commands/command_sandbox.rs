//! A sandbox with programs, driven by `tether … --json`.

use serde_json::Value;

use crate::support::requirements::installed_adapter;
use crate::support::{CommandOutput, Sandbox, eventually, is_alive, run_command};

/// Whether a debug adapter is installed. Reports it when it is not.
pub fn has_adapter(name: &str) -> bool {
    installed_adapter(name).is_some()
}

pub struct CommandSandbox {
    pub sandbox: Sandbox,
}

impl CommandSandbox {
    pub fn with(files: &[(&str, &str)]) -> CommandSandbox {
        let sandbox = Sandbox::new();
        files.iter().for_each(|(path, text)| sandbox.write(path, text));
        CommandSandbox { sandbox }
    }

    /// The result of `tether … --json`, which must succeed.
    pub fn json(&self, line: &[&str]) -> Value {
        run_command(self.sandbox.command(["--json"].iter().chain(line))).ok().json()
    }

    /// `tether …`, which may fail.
    pub fn tether(&self, line: &[&str]) -> CommandOutput {
        self.sandbox.tether(line)
    }

    /// `FILE:LINE` of the line with `mark`.
    pub fn at(&self, file: &str, mark: &str) -> String {
        let text = std::fs::read_to_string(self.sandbox.path(file)).unwrap();
        let line = text.lines().position(|line| line.contains(mark)).unwrap_or_else(|| panic!("no {mark} in {file}"));
        format!("{file}:{}", line + 1)
    }

    /// The value of an expression in the stopped session.
    pub fn value(&self, expression: &str) -> String {
        self.json(&["debug", "evaluate", "--context", "watch", expression])["result"].as_str().unwrap().to_owned()
    }

    /// Waits until no process of the sandbox is left but its supervisor and the hosts of ended sessions.
    pub fn is_quiet(&self) {
        eventually("nothing but the supervisor is left", || {
            let others = self.others();
            others.is_empty().then_some(())
        });
    }

    /// The running processes of the sandbox without those.
    pub fn others(&self) -> Vec<String> {
        let all = self.sandbox.others().into_iter().filter(|(pid, _)| is_alive(*pid));
        all.map(|(pid, line)| format!("{pid} {line}")).collect()
    }

    /// Waits until a file is complete, and reads it.
    pub fn file(&self, path: &str) -> String {
        eventually(path, || std::fs::read_to_string(self.sandbox.path(path)).ok().filter(|text| text.ends_with('\n')))
    }
}
