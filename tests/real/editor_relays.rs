//! Whole debug conversations of an editor over `debugger/start`, with real adapters: the launch request is empty, and is
//! completed with the resolved target.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::adapters::native::APP;
use crate::support::editor_client::{DapTalk, EditorClient};
use crate::support::requirements::installed_adapter;
use crate::support::{Sandbox, eventually};

const PYTHON: &str = "def twice(order):\n    total = order * 2\n    return total  # STOP\n\nprint(twice(21))\n";
const SCRIPT: &str =
    "function twice(order) {\n  const total = order * 2;\n  return total; // STOP\n}\nconsole.log(twice(21));\n";

struct RelayedProgram {
    sandbox: Sandbox,
    source: &'static str,
    line: u64,
}

impl RelayedProgram {
    fn new(source: &'static str, text: &str) -> RelayedProgram {
        let sandbox = Sandbox::new();
        sandbox.write(source, text);
        let line = text.lines().position(|line| line.contains("STOP")).unwrap() as u64 + 1;
        RelayedProgram { sandbox, source, line }
    }

    /// Built from the source.
    fn native(text: &str) -> RelayedProgram {
        let stage = RelayedProgram::new("äpp.c", text);
        let (source, program) = (stage.sandbox.path("äpp.c"), stage.sandbox.path("app built"));
        assert!(Command::new("cc").args(["-g", "-O0", "-o"]).args([&program, &source]).status().unwrap().success());
        stage
    }

    fn start(&self, adapter: &str, target: &str) -> Value {
        let mut editor = EditorClient::start(&self.sandbox, json!({"name": "test"}));
        let started = editor.call("debugger/start", json!({"targetPath": target, "adapter": adapter}));
        assert_eq!(started["success"], true, "{started}");
        // The conversation does not depend on the connection that has requested it.
        assert!(editor.leave().success());
        started["port"].clone()
    }

    fn initialize(&self, talk: &mut DapTalk) {
        let capabilities = talk.request(
            "initialize",
            json!({"adapterID": "x", "linesStartAt1": true, "columnsStartAt1": true,
            "pathFormat": "path", "supportsVariableType": true, "supportsStartDebuggingRequest": true}),
        );
        assert_eq!(capabilities["supportsConfigurationDoneRequest"], true);
    }

    /// Sets the breakpoint, and checks the stop.
    fn stop(&self, talk: &mut DapTalk) {
        talk.event("initialized");
        let source: &Path = &self.sandbox.path(self.source);
        let set = json!({"source": {"path": source}, "breakpoints": [{"line": self.line}]});
        assert_eq!(talk.request("setBreakpoints", set)["breakpoints"].as_array().unwrap().len(), 1);
        talk.request("configurationDone", json!({}));
        let stopped = talk.event("stopped");
        assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
        let stack = talk.request("stackTrace", json!({"threadId": stopped["threadId"], "levels": 1}));
        let frame = &stack["stackFrames"][0];
        assert_eq!(frame["line"], self.line, "{stack}");
        let scopes = talk.request("scopes", json!({"frameId": frame["id"]}));
        // gdb has the parameters in a scope of their own.
        let variables = scopes["scopes"].as_array().unwrap().iter().flat_map(|scope| {
            let body = talk.request("variables", json!({"variablesReference": scope["variablesReference"]}));
            body["variables"].as_array().unwrap().clone()
        });
        let total = variables.into_iter().find(|it| it["name"] == "total").unwrap();
        assert_eq!(total["value"], "42", "{total}");
        talk.request("continue", json!({"threadId": stopped["threadId"]}));
    }

    fn nothing_is_left(&self) {
        eventually("the adapter and its program have exited", || {
            let others = self.sandbox.processes().into_iter().filter(|(_, command)| !command.contains("/tether "));
            (others.count() == 0).then_some(())
        });
    }
}

/// One conversation over one connection.
fn debugs(stage: &RelayedProgram, adapter: &str, target: &str) {
    if installed_adapter(adapter).is_none() {
        return;
    }
    let mut talk = DapTalk::connect(&stage.start(adapter, target));
    stage.initialize(&mut talk);
    let launch = talk.send("launch", json!({"type": "tether", "request": "launch", "name": "n"}));
    stage.stop(&mut talk);
    talk.response(launch);
    talk.event("terminated");
    // The adapter may exit before it responds.
    talk.send("disconnect", json!({}));
    talk.wait_for_end();
    stage.nothing_is_left();
}

#[test]
fn lldb_dap_is_relayed() {
    debugs(&RelayedProgram::native(APP), "lldb-dap", "app built");
}

#[test]
fn gdb_is_relayed() {
    debugs(&RelayedProgram::native(APP), "gdb", "app built");
}

#[test]
fn debugpy_is_relayed_with_its_adapter() {
    debugs(&RelayedProgram::new("äpp.py", PYTHON), "debugpy", "äpp.py");
}

#[test]
fn js_debug_is_relayed_and_its_child_connects_to_the_same_port() {
    if installed_adapter("js-debug").is_none() {
        return;
    }
    let stage = RelayedProgram::new("äpp.js", SCRIPT);
    let port = stage.start("js-debug", "äpp.js");
    let mut parent = DapTalk::connect(&port);
    stage.initialize(&mut parent);
    let launch = parent.send("launch", json!({"type": "tether", "request": "launch", "name": "n"}));
    parent.event("initialized");
    let refused = std::net::TcpStream::connect(("127.0.0.1", port.as_u64().unwrap() as u16));
    assert!(refused.is_err(), "no further connection is taken until the adapter requests one");
    parent.request("configurationDone", json!({}));
    let requested = parent.reverse_request("startDebugging");
    parent.response(launch);
    let mut child = DapTalk::connect(&port);
    parent.respond(&requested);
    stage.initialize(&mut child);
    let request = requested["arguments"]["request"].as_str().unwrap();
    child.send(request, requested["arguments"]["configuration"].clone());
    stage.stop(&mut child);
    child.event("terminated");
    drop(child);
    parent.send("disconnect", json!({}));
    drop(parent);
    stage.nothing_is_left();
}

#[test]
fn a_configuration_of_launch_json_is_relayed() {
    if installed_adapter("debugpy").is_none() {
        return;
    }
    let stage = RelayedProgram::new("äpp.py", PYTHON);
    let configuration =
        json!({"name": "Run it", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/äpp.py"});
    stage.sandbox.write(".vscode/launch.json", &json!({"configurations": [configuration]}).to_string());
    let mut editor = EditorClient::start(&stage.sandbox, json!({"name": "test"}));
    editor.fails("debugger/start", json!({"targetPath": "Run it"}), -32003, &["not trusted", "tether trust"]);
    stage.sandbox.tether(&["trust", "--config", "Run it", "--yes"]).ok();
    debugs(&stage, "debugpy", "Run it");
}
