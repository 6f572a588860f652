//! An editor without a library, on the stdio of its own `tether rpc`: it sends requests, and answers those of the supervisor.

#![allow(dead_code)] // each test program uses a part

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Sandbox, TEST_TIMEOUT};

pub struct EditorClient {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    last: u64,
    /// Messages that were read while another one was waited for.
    kept: Vec<Value>,
}

impl EditorClient {
    /// Starts `tether rpc` and sends nothing.
    pub fn spawn(sandbox: &Sandbox, variables: &[(&str, &str)]) -> EditorClient {
        let mut command = sandbox.command(["rpc"]);
        command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, messages) = mpsc::channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut stdout) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        EditorClient { child, stdin, messages, last: 0, kept: Vec::new() }
    }

    /// Starts `tether rpc` and initializes the connection.
    pub fn start(sandbox: &Sandbox, initialize: Value) -> EditorClient {
        EditorClient::start_with(sandbox, &[], initialize)
    }

    pub fn start_with(sandbox: &Sandbox, variables: &[(&str, &str)], initialize: Value) -> EditorClient {
        let mut client = EditorClient::spawn(sandbox, variables);
        let result = client.call("initialize", initialize);
        assert_eq!(result["name"], "devtether", "{result}");
        client
    }

    /// An editor that can open debug sessions.
    pub fn session_opener(sandbox: &Sandbox, name: &str) -> EditorClient {
        let capabilities = json!({"startDebugSession": true, "terminateDebugSession": true});
        EditorClient::start(sandbox, json!({"name": name, "role": "editor", "capabilities": capabilities}))
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn write_message(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// Sends a request; returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write_message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The result of a request. Panics when it is an error.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// The error of a request that must fail with this code, and its message these words.
    pub fn fails(&mut self, method: &str, params: Value, code: i64, words: &[&str]) {
        let id = self.send(method, params);
        let error = self.response(id)["error"].clone();
        assert_eq!(error["code"], code, "{method}: {error}");
        let message = error["message"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message}");
        }
    }

    /// The whole response to a request, with `result` or `error`.
    pub fn response(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    /// The next request or notification of this method.
    pub fn incoming(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)
    }

    /// Whether none of this method comes within a time.
    pub fn hears_nothing_of(&mut self, method: &str, within: Duration) -> bool {
        let until = std::time::Instant::now() + within;
        loop {
            if self.kept.iter().any(|message| message["method"] == method) {
                return false;
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(message) => self.kept.push(message),
                Err(_) => return true,
            }
        }
    }

    pub fn respond(&mut self, request: &Value, result: Value) {
        self.write_message(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub fn respond_with_error(&mut self, request: &Value, message: &str) {
        let error = json!({"code": -32000, "message": message});
        self.write_message(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    }

    /// The next message, whatever it is.
    pub fn next(&mut self) -> Value {
        self.find(|_| true)
    }

    fn find(&mut self, is_awaited: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.kept.iter().position(&is_awaited) {
            return self.kept.remove(index);
        }
        loop {
            let message = self.messages.recv_timeout(TEST_TIMEOUT).expect("no such message came");
            if is_awaited(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// Closes stdin and waits for the exit.
    pub fn leave(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }

    /// Kills it, as the crash of an editor does.
    pub fn die(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for EditorClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_message(stream: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().strip_prefix("Content-Length: ") {
            Some(value) => length = value.parse().ok()?,
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// One DAP conversation of an editor over a relay, message by message.
pub struct DapTalk {
    stream: BufReader<std::net::TcpStream>,
    last: u64,
    kept: Vec<Value>,
}

impl DapTalk {
    pub fn connect(port: &Value) -> DapTalk {
        let port = port.as_u64().unwrap_or_else(|| panic!("no port: {port}")) as u16;
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        DapTalk { stream: BufReader::new(stream), last: 0, kept: Vec::new() }
    }

    /// Sends a request; returns its `seq`.
    pub fn send(&mut self, command: &str, arguments: Value) -> u64 {
        self.last += 1;
        let message =
            json!({"seq": self.last, "type": "request", "command": command, "arguments": arguments}).to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{message}", message.len());
        self.stream.get_mut().write_all(frame.as_bytes()).unwrap();
        self.last
    }

    pub fn respond(&mut self, request: &Value) {
        let response = json!({"seq": 10_000, "type": "response", "command": request["command"],
            "request_seq": request["seq"], "success": true, "body": {}})
        .to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{response}", response.len());
        self.stream.get_mut().write_all(frame.as_bytes()).unwrap();
    }

    /// The body of the response. Panics when it is an error.
    pub fn request(&mut self, command: &str, arguments: Value) -> Value {
        let seq = self.send(command, arguments);
        self.response(seq)
    }

    pub fn response(&mut self, seq: u64) -> Value {
        let response = self.find(|message| message["type"] == "response" && message["request_seq"] == seq);
        assert_eq!(response["success"], true, "{response}");
        response["body"].clone()
    }

    /// The next event of this name.
    pub fn event(&mut self, event: &str) -> Value {
        self.find(|message| message["type"] == "event" && message["event"] == event)["body"].clone()
    }

    /// The next request of the adapter.
    pub fn reverse_request(&mut self, command: &str) -> Value {
        self.find(|message| message["type"] == "request" && message["command"] == command)
    }

    /// Reads until the other side has closed the connection.
    pub fn wait_for_end(mut self) {
        while read_message(&mut self.stream).is_some() {}
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }

    fn find(&mut self, is_awaited: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.kept.iter().position(&is_awaited) {
            return self.kept.remove(index);
        }
        loop {
            let message =
                read_message(&mut self.stream).unwrap_or_else(|| panic!("the connection ended: {:#?}", self.kept));
            if is_awaited(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }
}
