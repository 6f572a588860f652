//! What the benches of whole processes share: a workspace, an MCP client, and the sample that counts.

#![allow(dead_code)] // each bench uses a part

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub mod bare;
pub mod sandbox;

pub fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

/// The least an MCP client can be: what is measured is the server.
pub struct Client {
    pub child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    id: u64,
}

impl Client {
    pub fn start(command: &mut Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client { child, stdout, id: 0 };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}});
        client.ask("initialize", hello);
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        // One write: the pipe has no buffer, and `writeln!` would write each piece of the JSON on its own.
        self.child.stdin.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "{method}: no answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool, which must succeed; how long it took.
    pub fn call(&mut self, tool: &str, arguments: Value) -> (Duration, Value) {
        let begun = Instant::now();
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let took = begun.elapsed();
        assert_ne!(result["isError"], true, "{tool}: {result}");
        (took, result)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
