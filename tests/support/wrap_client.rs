//! A client of `tether wrap`, on its stdio.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use super::{Sandbox, TEST_TIMEOUT};

/// A client, on the stdio of its `tether wrap`.
pub struct WrapClient {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub messages: mpsc::Receiver<Value>,
    pub last: u64,
    /// Messages that were read while another one was waited for.
    pub kept: Vec<Value>,
}

impl WrapClient {
    pub fn start(sandbox: &Sandbox, command: &[&str]) -> WrapClient {
        WrapClient::start_with(sandbox, &[], command)
    }

    /// With options of `tether wrap`.
    pub fn start_with(sandbox: &Sandbox, options: &[&str], command: &[&str]) -> WrapClient {
        let mut wrap = sandbox.command([&["wrap"], options, &["--"], command].concat());
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
        WrapClient { child, stdin, messages, last: 0, kept: Vec::new() }
    }

    /// With its handshake done, and the list of tools read.
    pub fn ready(sandbox: &Sandbox, command: &[&str]) -> WrapClient {
        WrapClient::start(sandbox, command).handshake()
    }

    pub fn handshake(mut self) -> WrapClient {
        let client = &mut self;
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "t", "version": "1"}});
        let result = client.call("initialize", params);
        assert_eq!(result["result"]["capabilities"]["tools"]["listChanged"], true, "{result}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        if result["result"]["capabilities"].get("logging").is_some() {
            client.call("logging/setLevel", json!({"level": "warning"}));
        }
        client.call("tools/list", json!({}));
        self
    }

    pub fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    pub fn find(&mut self, is_awaited: impl Fn(&Value) -> bool) -> Value {
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

    pub fn response(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id)
    }

    pub fn tool(&mut self, name: &str) -> Value {
        self.call("tools/call", json!({"name": name}))
    }

    /// The text of a tool's result.
    pub fn text(&mut self, name: &str) -> String {
        let result = self.tool(name);
        result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// Closes its side; the proxy must end.
    pub fn leave(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}
