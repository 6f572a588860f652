//! An agent on the stdio of its own `tether mcp`: it sends calls ahead, and reads each answer when it wants to.

use std::io::{BufRead, Write};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::raw_mcp::RawMcp;
use crate::support::{Sandbox, kill};

pub struct Agent {
    raw: RawMcp,
    last: u64,
    /// Answers that were read while another one was waited for.
    kept: Vec<Value>,
}

impl Agent {
    pub fn start(sandbox: &Sandbox) -> Agent {
        Agent { raw: RawMcp::start(sandbox), last: 0, kept: Vec::new() }
    }

    /// Sends calls of tools in one write, and waits for none. Returns their ids.
    pub fn send<const N: usize>(&mut self, calls: [(&str, Value); N]) -> [u64; N] {
        let mut lines = String::new();
        let ids = calls.map(|(tool, arguments)| {
            self.last += 1;
            let params = json!({"name": tool, "arguments": arguments});
            let call = json!({"jsonrpc": "2.0", "id": self.last, "method": "tools/call", "params": params});
            lines += &format!("{call}\n");
            self.last
        });
        self.raw.stdin.write_all(lines.as_bytes()).unwrap();
        ids
    }

    /// The result of a call, which may be an error of the tool.
    pub fn result(&mut self, id: u64) -> Value {
        if let Some(at) = self.kept.iter().position(|it| it["id"] == id) {
            return self.kept.remove(at)["result"].take();
        }
        loop {
            let mut line = String::new();
            assert_ne!(self.raw.stdout.read_line(&mut line).unwrap(), 0, "the server has ended");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            match message.get("id") {
                Some(answered) if *answered == id => return message["result"].take(),
                Some(_) => self.kept.push(message),
                // A notification.
                None => {}
            }
        }
    }

    /// The structured result of a call. Panics when the tool failed.
    pub fn answer(&mut self, id: u64) -> Value {
        let mut result = self.result(id);
        assert_ne!(result["isError"], true, "{}", text(&result));
        result["structuredContent"].take()
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let [id] = self.send([(tool, arguments)]);
        self.answer(id)
    }

    /// The text of a call that must fail.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let [id] = self.send([(tool, arguments)]);
        let result = self.result(id);
        assert_eq!(result["isError"], true, "it was done: {result:#}");
        text(&result)
    }

    /// Kills its `tether mcp`, as a client does whose user has closed it.
    pub fn killed(self) {
        kill(self.raw.child.id(), Signal::KILL);
    }
}

/// The text of a tool's result, as an agent reads it.
pub fn text(result: &Value) -> String {
    result["content"].as_array().into_iter().flatten().filter_map(|it| it["text"].as_str()).collect()
}

impl Drop for Agent {
    fn drop(&mut self) {
        kill(self.raw.child.id(), Signal::TERM);
        // Fails only when it was reaped before.
        let _ = self.raw.child.wait();
    }
}
