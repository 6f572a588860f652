//! `tether wrap`: the client's connection stays, while the server behind it is built, restarted, broken and mended.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::support::{Sandbox, TEST_TIMEOUT, eventually};

const SERVER: &str = include_str!("wrapped_server.mjs");

/// A client, on the stdio of its `tether wrap`.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    last: u64,
    /// Messages that were read while another one was waited for.
    kept: Vec<Value>,
}

impl Client {
    fn start(sandbox: &Sandbox, command: &[&str]) -> Client {
        let mut wrap = sandbox.command([&["wrap", "--"], command].concat());
        let mut child = wrap.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = mpsc::channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Client { child, stdin, messages, last: 0, kept: Vec::new() }
    }

    /// With its handshake done, and the list of tools read.
    fn ready(sandbox: &Sandbox, command: &[&str]) -> Client {
        let mut client = Client::start(sandbox, command);
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "t", "version": "1"}});
        let result = client.call("initialize", params);
        assert_eq!(result["result"]["capabilities"]["tools"]["listChanged"], true, "{result}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.call("logging/setLevel", json!({"level": "warning"}));
        client.call("tools/list", json!({}));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    fn find(&mut self, is_awaited: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_awaited) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.messages.recv_timeout(TEST_TIMEOUT).expect("a message");
            if is_awaited(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    fn response(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id)
    }

    fn tool(&mut self, name: &str) -> Value {
        self.call("tools/call", json!({"name": name}))
    }

    /// The text of a tool's result.
    fn text(&mut self, name: &str) -> String {
        let result = self.tool(name);
        result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// Closes its side; the proxy must end.
    fn leave(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn version(version: u32) -> String {
    SERVER.replace("VERSION = 1", &format!("VERSION = {version}"))
}

const NODE: [&str; 2] = ["node", "server.mjs"];

fn nothing_is_left(sandbox: &Sandbox) {
    eventually("the servers have ended", || {
        sandbox.processes().iter().all(|(_, command)| !command.contains("server.mjs")).then_some(())
    });
}

#[test]
fn each_edit_is_answered_by_the_next_request_over_the_same_connection() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = Client::ready(&sandbox, &NODE);
    assert_eq!(client.text("version"), "1");
    for edit in 2..=12 {
        sandbox.write("server.mjs", &version(edit));
        assert_eq!(client.text("version"), edit.to_string());
        assert_eq!(client.text("level"), "warning", "what the client has set is told again");
    }
    // The list of tools is the same: nothing was said of it.
    assert!(client.kept.is_empty(), "{:?}", client.kept);
    sandbox.write("server.mjs", &version(13).replace("[\"version\"]", "[\"version\", \"level\"]"));
    assert_eq!(client.text("version"), "13");
    client.find(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(client.call("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 2);
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_call_in_flight_is_finished_by_the_server_that_has_it() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = Client::ready(&sandbox, &NODE);
    let file = sandbox.path(".devtools-release");
    let slow = client.send("tools/call", json!({"name": "slow", "arguments": {"file": file}}));
    // Sent behind it, and answered: the slow one has begun.
    assert_eq!(client.text("version"), "1");
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    let asking = client.send("tools/call", json!({"name": "ask"}));
    let asked = client.find(|message| message["method"] == "roots/list");
    client.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///r"}]}}));
    let answer = client.response(asking);
    assert_eq!(answer["result"]["content"][0]["text"], "2 file:///r", "{answer}");
    fs::write(&file, "").unwrap();
    assert_eq!(client.response(slow)["result"]["content"][0]["text"], "1", "the old server has finished it");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_server_that_crashes_is_said_once_and_started_by_the_next_request() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = Client::ready(&sandbox, &NODE);
    let crashed = client.tool("crash");
    let error = &crashed["error"];
    assert!(error["message"].as_str().unwrap().contains("exited with code 3"), "{crashed}");
    assert_eq!(error["data"]["lastLines"], "it went wrong", "{crashed}");
    assert_eq!((client.text("version").as_str(), client.text("level").as_str()), ("1", "warning"));
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_server_that_does_not_come_up_leaves_the_old_one_and_is_tried_again_after_an_edit() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = Client::ready(&sandbox, &NODE);
    sandbox.write("server.mjs", "console.error('no such thing'); process.exit(2);");
    let kept = client.tool("version");
    assert_eq!(kept["result"]["content"][0]["text"], "1", "{kept}");
    let note = kept["result"]["_meta"]["tether/note"].as_str().unwrap();
    assert!(note.contains("exited with code 2") && note.contains("no such thing"), "{note}");
    let logged = client.find(|message| message["method"] == "notifications/message");
    assert!(logged["params"]["data"].as_str().unwrap().contains("no such thing"), "{logged}");
    // The same broken text is not started again.
    assert_eq!(client.tool("version")["result"].get("_meta"), None);
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn the_build_runs_first_and_one_that_fails_keeps_the_server() {
    let build =
        "[build]\ncommand = ['sh', '-c', 'mkdir -p out; cp source.mjs out/server.mjs; node --check out/server.mjs']\n";
    let sandbox = Sandbox::new();
    for (file, text) in [("source.mjs", SERVER), ("devtools.toml", build), (".gitignore", "out/\n")] {
        sandbox.write(file, text);
    }
    let refused = sandbox.tether(&["wrap", "--", "node", "out/server.mjs"]);
    refused.fails(5, &["not trusted", "tether trust"]);
    sandbox.tether(&["trust", "--yes"]).ok();
    let mut client = Client::ready(&sandbox, &["node", "out/server.mjs"]);
    sandbox.write("source.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    sandbox.write("source.mjs", "this is (");
    let kept = client.tool("version");
    assert_eq!(kept["result"]["content"][0]["text"], "2", "{kept}");
    assert!(kept["result"]["_meta"]["tether/note"].as_str().unwrap().contains("SyntaxError"), "{kept}");
    sandbox.write("source.mjs", &version(3));
    assert_eq!(client.text("version"), "3");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn what_cannot_be_wrapped_is_named() {
    let sandbox = Sandbox::with(&[("server.mjs", "console.log('hello'); setInterval(() => {}, 1000);")]);
    sandbox.tether(&["wrap"]).fails(2, &["COMMAND"]);
    sandbox.tether(&["wrap", "--", "no-such-server"]).fails(6, &["no-such-server"]);
    let mut client = Client::start(&sandbox, &NODE);
    // What is no message is not passed on: the next line is the answer to one.
    writeln!(client.stdin.as_mut().unwrap(), "hello").unwrap();
    let refused = client.find(|_| true);
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null));
    client.send("initialize", json!({}));
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn ten_thousand_requests_at_once_are_all_answered_once() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = Client::ready(&sandbox, &NODE);
    let first = client.last + 1;
    let mut stdin = client.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in first..first + 10_000 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "version"}});
            writeln!(stdin, "{call}").unwrap();
        }
        stdin
    });
    for id in first..first + 10_000 {
        let answer = client.messages.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("1")));
    }
    client.stdin = Some(writer.join().unwrap());
    client.leave();
    nothing_is_left(&sandbox);
}
