//! A sandbox with one program whose lines are found by markers.

use std::process::{Child, Command, Stdio};

use devtether::adapters::FoundAdapter;
use serde_json::Value;

use crate::support::{CommandOutput, Sandbox, run_command};

/// The installed adapter. `None`, reported, when it is not installed.
pub fn found(name: &str) -> Option<FoundAdapter> {
    crate::support::requirements::installed_adapter(name).map(|(_, found)| found)
}

pub struct ScenarioSandbox {
    pub sandbox: Sandbox,
    text: String,
    pub file: &'static str,
}

impl ScenarioSandbox {
    /// A sandbox with one source file. `None`, reported, when the adapter is not installed.
    pub fn with(adapter: &str, file: &'static str, text: &str) -> Option<ScenarioSandbox> {
        found(adapter)?;
        let sandbox = Sandbox::new();
        sandbox.write(file, text);
        Some(ScenarioSandbox { sandbox, text: text.to_owned(), file })
    }

    /// The line that ends with the marker.
    pub fn line(&self, marker: &str) -> u64 {
        self.text.lines().position(|line| line.ends_with(marker)).unwrap() as u64 + 1
    }

    /// `file:line` of the marker.
    pub fn at(&self, marker: &str) -> String {
        format!("{}:{}", self.file, self.line(marker))
    }

    pub fn tether(&self, arguments: &[&str]) -> CommandOutput {
        run_command(self.sandbox.command([&["--json"], arguments].concat()))
    }

    /// Runs `tether --json`; it must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.tether(arguments).ok().json()
    }

    pub fn breaks(&self, marker: &str) -> Value {
        self.json(&["break", "set", &self.at(marker)])
    }

    /// Asserts the reason and the line of a stop.
    pub fn check(&self, answer: &Value, kind: &str, marker: &str) {
        let reason = &answer["stopReason"];
        let found = (answer["state"].as_str(), reason["type"].as_str(), reason["location"]["lineNumber"].as_u64());
        assert_eq!(found, (Some("STOPPED"), Some(kind), Some(self.line(marker))), "{answer:#}");
    }

    /// The value of a local of the top frame, from a stop's snapshot.
    pub fn local<'a>(answer: &'a Value, name: &str) -> &'a str {
        let locals = answer["snapshot"]["locals"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        let found = locals.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer:#}"));
        found["value"].as_str().unwrap()
    }

    /// The sandbox's processes without its supervisor.
    pub fn others(&self) -> Vec<(u32, String)> {
        self.sandbox.others()
    }

    /// Waits until no process but the supervisor is left.
    pub fn nothing_is_left(&self) {
        crate::support::eventually("nothing is left", || self.others().is_empty().then_some(()));
    }

    /// Starts a program of the workspace without `tether`, and waits for the line of stderr or stdout with these words.
    pub fn starts(&self, mut command: Command, words: &str) -> (Running, String) {
        command.current_dir(&self.sandbox.workspace);
        self.starts_there(command, words)
    }

    /// The same in the command's own folder.
    pub fn starts_there(&self, mut command: Command, words: &str) -> (Running, String) {
        command.envs(self.sandbox.variables());
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let (tell, report) = std::sync::mpsc::channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(running.0.stdout.take().unwrap()), Box::new(running.0.stderr.take().unwrap())];
        for stream in streams {
            let tell = tell.clone();
            // The thread ends with the program.
            std::thread::spawn(move || {
                for line in std::io::BufRead::lines(std::io::BufReader::new(stream)).map_while(Result::ok) {
                    let _ = tell.send(line);
                }
            });
        }
        drop(tell);
        let line = report.iter().find(|line| line.contains(words));
        (running, line.unwrap_or_else(|| panic!("it never says {words:?}")))
    }
}

/// A running program; killed and reaped on drop.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}
