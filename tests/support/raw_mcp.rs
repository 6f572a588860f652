//! An MCP client without a library: it sees every message as it is.

#![allow(dead_code)] // each test program uses a part

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::Sandbox;

/// A `tether mcp` driven line by line, without a client library.
pub struct RawMcp {
    pub child: Child,
    pub stdin: ChildStdin,
    pub stdout: BufReader<ChildStdout>,
}

impl RawMcp {
    pub fn start(sandbox: &Sandbox) -> RawMcp {
        let mut child = sandbox.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut raw = RawMcp { child, stdin, stdout };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let initialized = raw.exchange(
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string().as_bytes(),
        );
        assert_eq!(initialized["result"]["serverInfo"]["name"], "tether");
        raw.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().as_bytes());
        raw
    }

    pub fn say(&mut self, line: &[u8]) {
        self.stdin.write_all(line).and_then(|()| self.stdin.write_all(b"\n")).unwrap();
    }

    pub fn exchange(&mut self, line: &[u8]) -> Value {
        self.say(line);
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Sends a request, and returns the messages that follow, its response last.
    pub fn request(&mut self, method: &str, params: Value) -> Vec<Value> {
        self.say(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().as_bytes());
        let mut messages = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "no response: {messages:?}");
            let message: Value = serde_json::from_str(&line).unwrap();
            let is_response = message.get("id").is_some();
            messages.push(message);
            if is_response {
                return messages;
            }
        }
    }

    pub fn leave(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Every text in a message, and every name of a member.
pub fn visit_texts(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, visit)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            visit(name);
            visit_texts(value, visit);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
