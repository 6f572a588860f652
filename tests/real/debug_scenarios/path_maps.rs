//! Programs that have their sources in another folder than the workspace, as in a container: `--path`, `[[paths]]` and launch.json.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::requirements::has_mount_namespaces;
use crate::support::scenario_sandbox::{Running, ScenarioSandbox, found};
use crate::support::{JDWP_PORT, compile_java, java_listening, listening_with_debugpy, run_command};

/// A workspace, and the folder in which its program runs.
struct Elsewhere {
    stage: ScenarioSandbox,
    folder: TempDir,
}

impl Elsewhere {
    /// Both with the source file. `None`, reported: the adapter is not installed.
    fn with(adapter: &str, file: &'static str, text: &str) -> Option<Elsewhere> {
        let stage = ScenarioSandbox::with(adapter, file, text)?;
        let it = Elsewhere { stage, folder: tempfile::tempdir().unwrap() };
        it.write(file, text);
        Some(it)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The value of `--path` for the whole workspace.
    fn map(&self) -> String {
        format!(".={}", self.path().display())
    }

    /// Runs a command there, and waits for a line with these words. Returns the line's port.
    fn listen(&self, mut command: Command, words: &str) -> (Running, String) {
        command.current_dir(self.path());
        let (running, line) = self.stage.starts_there(command, words);
        let after = line.split_once(words).unwrap().1.trim_start_matches("127.0.0.1:");
        (running, after.chars().take_while(char::is_ascii_digit).collect())
    }

    /// Sets the breakpoint, attaches, and expects the stop in the workspace's file.
    fn stops(&self, attach: &[&str]) -> Value {
        self.stage.breaks("STOP");
        let mut stopped = self.stage.json(&[&["debug", "attach", "--wait", "60"], attach].concat());
        // At its start, or where it was found.
        if stopped["stopReason"]["location"]["lineNumber"] != self.stage.line("STOP") {
            stopped["stop"] = self.stage.json(&["debug", "continue", "--wait", "60"]);
        }
        let stop = if stopped["stop"].is_null() { &stopped } else { &stopped["stop"] };
        self.stage.check(stop, "BREAKPOINT_HIT", "STOP");
        assert_eq!(stop["stopReason"]["location"]["sourcePath"], self.stage.file, "{stop:#}");
        assert_eq!(ScenarioSandbox::local(stop, "total"), "42", "{stop:#}");
        self.stage.json(&["debug", "stop"]);
        stopped
    }

    fn tells_of_the_map(&self, attached: &Value) {
        let note = format!("the workspace is {} where the program runs", self.path().display());
        assert!(attached["notes"].to_string().contains(&note), "{attached:#}");
    }
}

const PYTHON: &str = "\
def twice(order):
    total = order * 2
    return total  # STOP

print(twice(21))
";

#[test]
fn python_stops_in_the_workspaces_file() {
    let Some(it) = Elsewhere::with("debugpy", "app.py", PYTHON) else { return };
    let debugpy = found("debugpy").unwrap();
    let start = || it.listen(listening_with_debugpy(&debugpy, &it.path().join("app.py"), true), "port ");
    let (_running, port) = start();
    it.tells_of_the_map(&it.stops(&[&port, "--language", "python", "--path", &it.map()]));

    let refused = it.stage.sandbox.tether(&["debug", "attach", &port, "--path", "src=app"]);
    refused.fails(2, &["the path map to app", "not an absolute path", "src=/app/src"]);

    // Without the option: the map of devtools.toml.
    let paths = format!("[[paths]]\nlocal = \".\"\nremote = {:?}\n", it.path());
    it.stage.sandbox.write("devtools.toml", &paths);
    let (_running, port) = start();
    it.tells_of_the_map(&it.stops(&[&port, "--language", "python"]));
}

const TYPESCRIPT: &str = "\
interface Order { count: number }
function twice(order: Order): number {
  const total = order.count * 2;
  return total; // STOP
}
console.log(twice({ count: 21 }));
";
const COMPILED: &str = "\
function twice(order) {
  const total = order.count * 2;
  return total; // STOP
}
console.log(twice({ count: 21 }));
//# sourceMappingURL=app.js.map
";
/// Line by line, from the second line of the source on.
const MAP: &str = r#"{"version": 3, "file": "app.js", "sources": ["../src/app.ts"], "names": [], "mappings": "AACA;AACA;AACA;AACA;AACA"}"#;

#[test]
fn a_compiled_node_program_stops_in_the_workspaces_source() {
    for adapter in ["node", "js-debug"] {
        let Some(it) = Elsewhere::with(adapter, "src/app.ts", TYPESCRIPT) else { continue };
        for (file, text) in [("out/app.js", COMPILED), ("out/app.js.map", MAP)] {
            it.stage.sandbox.write(file, text);
            it.write(file, text);
        }
        let start = || {
            let mut node = Command::new("node");
            node.args(["--inspect-brk=127.0.0.1:0", "out/app.js"]);
            it.listen(node, "ws://127.0.0.1:")
        };
        let (_running, port) = start();
        it.tells_of_the_map(&it.stops(&[&port, "--adapter", adapter, "--path", &it.map()]));

        // VS Code's own attributes.
        let (_running, port) = start();
        let configuration = json!({"name": "there", "type": "node", "request": "attach", "port": port.parse::<u16>().unwrap(),
            "localRoot": "${workspaceFolder}", "remoteRoot": it.path()});
        let launch = json!({"version": "0.2.0", "configurations": [configuration]});
        it.stage.sandbox.write(".vscode/launch.json", &launch.to_string());
        it.stage.sandbox.tether(&["trust", "--yes", "--config", "there"]).ok();
        let attached = it.stops(&["--config", "there", "--adapter", adapter]);
        assert!(attached["notes"].is_null(), "{attached:#}");
    }
}

const GO: &str = "\
package main

import \"fmt\"

func twice(order int) int {
	total := order * 2
	return total // STOP
}

func main() {
	fmt.Println(twice(21))
}
";

#[test]
fn go_stops_in_the_workspaces_file() {
    let Some(it) = Elsewhere::with("dlv", "app.go", GO) else { return };
    let mut build = Command::new("go");
    build.args(["build", "-gcflags=all=-N -l", "-o", "app", "app.go"]).current_dir(it.path());
    run_command(build).ok();
    let mut delve = Command::new(found("dlv").unwrap().path);
    delve.args(["exec", "--headless", "--listen=127.0.0.1:0", "--api-version=2", "./app"]);
    let (_running, port) = it.listen(delve, "listening at: ");
    it.tells_of_the_map(&it.stops(&[&port, "--language", "go", "--path", &it.map()]));
}

const C: &str = "\
#include <stdio.h>
#include <unistd.h>

int twice(int order) {
  int total = order * 2;
  return total; // STOP
}

int main(void) {
  printf(\"up\\n\");
  fflush(stdout);
  for (;;) {
    twice(21);
    usleep(20000);
  }
}
";

#[test]
fn a_native_process_stops_in_the_workspaces_file() {
    for adapter in ["gdb", "lldb-dap", "codelldb"] {
        let Some(it) = Elsewhere::with(adapter, "src/app.c", C) else { continue };
        let mut compile = Command::new("cc");
        compile.args(["-g", "-O0", "-o", "app"]).arg(it.path().join("src/app.c")).current_dir(it.path());
        run_command(compile).ok();
        let (running, _) = it.stage.starts(Command::new(it.path().join("app")), "up");
        let pid = running.0.id().to_string();
        it.tells_of_the_map(&it.stops(&["--pid", &pid, "--adapter", adapter, "--path", &it.map()]));
    }
}

/// What a container has of its files is a mount namespace.
#[test]
fn a_folder_that_a_process_has_mounted_elsewhere_is_found() {
    if !has_mount_namespaces() {
        return;
    }
    // LLDB does not look for the program's file there.
    let Some(it) = Elsewhere::with("gdb", "src/app.c", C) else { return };
    let script = "mount --bind \"$1\" \"$2\" && cd \"$2\" && cc -g -O0 -o app \"$PWD/src/app.c\" && exec ./app";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    unshare.arg(&it.stage.sandbox.workspace).arg(it.path());
    let (running, _) = it.stage.starts(unshare, "up");
    it.tells_of_the_map(&it.stops(&["--pid", &running.0.id().to_string(), "--adapter", "gdb"]));
}

const JAVA: &str = "\
public class App {
  static int twice(int order) {
    int total = order * 2;
    return total; // STOP
  }

  public static void main(String[] arguments) {
    System.out.println(twice(21));
  }
}
";

#[test]
fn java_needs_no_map() {
    let Some(it) = Elsewhere::with("java", "App.java", JAVA) else { return };
    compile_java(&it.path().join("App.java"));
    // In a container, this machine does not see it.
    std::fs::remove_file(it.path().join("App.java")).unwrap();
    let (_running, port) = it.listen(java_listening(it.path(), "App", true), JDWP_PORT);
    let attached = it.stops(&[&port, "--language", "java", "--path", &it.map()]);
    assert!(!attached["notes"].to_string().contains("where the program runs"), "{attached:#}");
}
