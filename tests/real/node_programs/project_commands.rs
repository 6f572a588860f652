//! A project in a sandbox, whose programs are debugged by commands, as users do it.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::requirements::installed_tool;
use crate::support::scenario_sandbox::Running;
use crate::support::{Sandbox, run_command};

/// A sandbox whose workspace is a project.
pub struct Project {
    pub sandbox: Sandbox,
}

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Project {
        let sandbox = Sandbox::new();
        for (path, text) in files {
            sandbox.write(path, text);
        }
        Project { sandbox }
    }

    /// Installs a tool as npm does: a link to its package, and one in `.bin`. `None`: it is not installed.
    pub fn install(&self, tool: &str, program: &str) -> Option<()> {
        let package = installed_tool(&format!("{tool}/node_modules/{tool}"))?;
        self.link(&package, &format!("node_modules/{tool}"));
        self.link(&package.join(program), &format!("node_modules/.bin/{tool}"));
        Some(())
    }

    pub fn link(&self, target: &Path, path: &str) {
        let link = self.sandbox.path(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
    }

    /// Makes this Node the `node` of everything that is started.
    pub fn use_node(&mut self, node: &Path) {
        // Alone: beside it may be an npm that does not work.
        self.link(node, "runtime/node");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.sandbox.path("runtime")].into_iter().chain(std::env::split_paths(&path));
        self.sandbox.more_variables.push(("PATH", std::env::join_paths(folders).unwrap()));
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        self.sandbox.json(arguments)
    }

    /// Sets breakpoints, and no others.
    pub fn break_at(&self, places: &[&str]) {
        self.json(&["break", "remove", "--all"]);
        for place in places {
            self.json(&["break", "set", place]);
        }
    }

    /// Writes a launch.json with one configuration, with the user's consent to it.
    pub fn configure(&self, mut configuration: Value) {
        configuration["name"] = json!("it");
        let text = json!({"version": "0.2.0", "configurations": [configuration]}).to_string();
        self.sandbox.write(".vscode/launch.json", &text);
        self.sandbox.tether(&["trust", "--yes", "--config", "it"]).ok();
    }

    /// Launches a configuration, and waits for its first stop.
    pub fn launch(&self, configuration: Value) -> Value {
        self.configure(configuration);
        self.json(&["debug", "launch", "--config", "it", "--wait", "60"])
    }

    /// The error of a configuration that is refused.
    pub fn refusal(&self, configuration: Value) -> String {
        self.configure(configuration);
        let refused = run_command(self.sandbox.command(["debug", "launch", "--config", "it", "--wait", "60"]));
        assert_ne!(refused.code, 0, "{refused:?}");
        refused.stderr
    }

    pub fn go_on(&self) -> Value {
        self.json(&["debug", "continue", "--wait", "60"])
    }

    pub fn stop(&self) {
        self.json(&["debug", "stop"]);
    }

    pub fn value_of(&self, expression: &str) -> String {
        self.json(&["debug", "evaluate", expression])["result"].as_str().unwrap().to_owned()
    }
}

/// Asserts that it has stopped at a breakpoint on a line of a file: `src/app.ts:3`.
pub fn assert_stop(stop: &Value, at: &str) {
    assert_eq!(stop["stopReason"]["type"], "BREAKPOINT_HIT", "{at}: {stop:#}");
    assert_place(stop, at);
}

/// Asserts where it has stopped.
pub fn assert_place(stop: &Value, at: &str) {
    let location = &stop["stopReason"]["location"];
    let place = format!("{}:{}", location["sourcePath"].as_str().unwrap_or_default(), location["lineNumber"]);
    assert_eq!(place, at, "{stop:#}");
}

/// The notes of a result, and its message, one a line.
pub fn notes(result: &Value) -> String {
    let notes = result["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    notes.chain(result["message"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A port of the loopback on which nothing listens.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a program beside the debugger; its output is not read.
pub fn start_program(mut command: Command) -> Running {
    command.env_remove("NODE_OPTIONS").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}
