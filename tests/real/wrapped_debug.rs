//! `tether wrap --debug`: a server is debugged over its reloads, by whoever attaches to it by its name.

use serde_json::{Value, json};

use crate::support::requirements::{has_program, installed_adapter, installed_tool};
use crate::support::wrap_client::WrapClient;
use crate::support::{Sandbox, eventually};

const RELOADS: u32 = 20;

const NODE_SERVER: &str = include_str!("../binary/wrapped_server.mjs");

const PYTHON_SERVER: &str = "\
import json
import sys

VERSION = 1

def answer(method, params):
    if method == 'initialize':
        return {'protocolVersion': params['protocolVersion'], 'capabilities': {'tools': {}, 'logging': {}},
                'serverInfo': {'name': 's', 'version': '1'}}
    if method == 'tools/list':
        return {'tools': [{'name': 'version', 'inputSchema': {'type': 'object'}}]}
    if method != 'tools/call':
        return {}
    text = str(VERSION)
    return {'content': [{'type': 'text', 'text': text}]}  # STOP

for line in sys.stdin:
    message = json.loads(line)
    if 'id' in message:
        result = answer(message['method'], message.get('params'))
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
";

struct Stage {
    sandbox: Sandbox,
    client: WrapClient,
    file: &'static str,
    text: String,
}

impl Stage {
    /// With a breakpoint at the line that answers `tools/call`.
    fn start(file: &'static str, text: &str, marker: &str, command: &[&str]) -> Stage {
        let sandbox = Sandbox::with(&[(file, text)]);
        let client = WrapClient::start_with(&sandbox, &["--debug", "--name", "echo"], command).handshake();
        let line = text.lines().position(|line| line.contains(marker)).unwrap() + 1;
        sandbox.json(&["break", "set", &format!("{file}:{line}")]);
        Stage { sandbox, client, file, text: text.to_owned() }
    }

    fn edit(&mut self, version: u32) {
        self.sandbox.write(self.file, &self.text.replace("VERSION = 1", &format!("VERSION = {version}")));
    }

    /// A call, which waits at the breakpoint: says so, is looked at by somebody else, and is answered once that continues it.
    /// Returns the session.
    fn call_into_breakpoint(&mut self, version: u32) -> String {
        let id = self.client.send("tools/call", json!({"name": "version", "_meta": {"progressToken": version}}));
        let stops = |message: &Value| {
            let text = message["params"]["message"].as_str().unwrap_or_default();
            message["params"]["progressToken"] == version && text.contains("is stopped in the debugger")
        };
        let told = self.client.find(stops);
        let stop = self.sandbox.json(&["debug", "attach", "--server", "echo", "--wait", "30"]);
        assert_eq!(stop["stopReason"]["type"], "BREAKPOINT_HIT", "{version}: {stop:#}");
        let session = stop["sessionId"].as_str().unwrap().to_owned();
        assert!(told["params"]["message"].as_str().unwrap().contains(&session), "{told}");
        let value = self.sandbox.json(&["debug", "evaluate", "VERSION"]);
        assert_eq!(value["result"], version.to_string(), "{value:#}");
        self.sandbox.json(&["debug", "continue"]);
        let answer = self.client.response(id);
        assert_eq!(answer["result"]["content"][0]["text"], version.to_string(), "{answer}");
        session
    }

    fn hold_over_reloads(&mut self) {
        let session = self.call_into_breakpoint(1);
        for version in 2..=RELOADS + 1 {
            self.edit(version);
            assert_eq!(self.call_into_breakpoint(version), session, "the session goes along");
        }
    }

    /// A stop is no reason to end anything: an edit waits for it, and so does the next request.
    fn edit_while_stopped(&mut self) {
        let id = self.client.send("tools/call", json!({"name": "version", "_meta": {"progressToken": "a"}}));
        self.client.find(|message| message["params"]["progressToken"] == "a");
        self.sandbox.json(&["debug", "attach", "--server", "echo", "--wait", "30"]);
        self.edit(100);
        let later = self.client.send("tools/call", json!({"name": "version", "_meta": {"progressToken": "b"}}));
        self.client.find(|message| message["params"]["progressToken"] == "b");
        self.sandbox.json(&["break", "remove", "--all"]);
        self.sandbox.json(&["debug", "continue"]);
        let old = (RELOADS + 1).to_string();
        for id in [id, later] {
            assert_eq!(self.client.response(id)["result"]["content"][0]["text"], old);
        }
        assert_eq!(self.client.text("version"), "100");
    }

    fn leave(self) {
        self.client.leave();
        let sandbox = self.sandbox;
        eventually("its session has ended with it", || {
            let status = sandbox.json(&["debug", "status"]);
            let all = status["sessions"].as_array().cloned().unwrap_or_else(|| vec![status]);
            all.iter().all(|it| it["state"] != "RUNNING" && it["state"] != "STOPPED").then_some(())
        });
        let unknown = sandbox.tether(&["debug", "attach", "--server", "echo"]);
        unknown.fails(3, &["there is no server \"echo\"", "tether wrap --debug"]);
    }
}

#[test]
fn a_breakpoint_in_a_node_server_holds_over_its_reloads() {
    if !has_program("node") {
        return;
    }
    let mut stage = Stage::start("server.mjs", NODE_SERVER, "tools[params.name](id", &["node", "server.mjs"]);
    stage.hold_over_reloads();
    stage.edit_while_stopped();
    stage.leave();
}

#[test]
fn a_breakpoint_in_a_python_server_holds_over_its_reloads() {
    let Some(python) = installed_tool("python/bin/python") else { return };
    if installed_adapter("debugpy").is_none() {
        return;
    }
    let command = [python.to_str().unwrap(), "-B", "server.py"];
    let mut stage = Stage::start("server.py", PYTHON_SERVER, "# STOP", &command);
    stage.hold_over_reloads();
    stage.edit_while_stopped();
    stage.leave();
}

#[test]
fn what_cannot_be_debugged_is_named() {
    let sandbox = Sandbox::with(&[("a.txt", "")]);
    let refused = sandbox.tether(&["wrap", "--debug", "--", "sh", "-c", "exit"]);
    refused.fails(2, &["neither Node nor Python", "node server.js"]);
    sandbox.tether(&["wrap", "--name", "x", "--", "node", "a.js"]).fails(2, &["--debug"]);
}
