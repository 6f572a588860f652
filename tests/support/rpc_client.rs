//! A client on the supervisor's socket, as an editor is one: requests that can be sent ahead and cancelled.

#![allow(dead_code)] // each test program uses a part

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Sandbox, TEST_TIMEOUT};

pub struct RpcClient {
    stream: BufReader<UnixStream>,
    last: u64,
    /// Messages that were read while another one was waited for.
    kept: Vec<Value>,
}

impl RpcClient {
    /// Connects to the sandbox's supervisor, which is started if none runs.
    pub fn connect(sandbox: &Sandbox) -> RpcClient {
        sandbox.status();
        RpcClient::open(&sandbox.socket(), TEST_TIMEOUT).unwrap()
    }

    /// Connects to the supervisor that listens there. Errors: it does not answer within the time, or the connection ends.
    pub fn open(socket: &Path, within: Duration) -> io::Result<RpcClient> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut client = RpcClient { stream: BufReader::new(stream), last: 0, kept: Vec::new() };
        let id = client.try_send("initialize", json!({"name": "test", "version": env!("CARGO_PKG_VERSION")}))?;
        client.try_response(id, Instant::now() + within)?;
        Ok(client)
    }

    /// Sends a request; returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.try_send(method, params).unwrap()
    }

    /// As [`RpcClient::send`]. Errors: the connection has ended.
    pub fn try_send(&mut self, method: &str, params: Value) -> io::Result<u64> {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))?;
        Ok(self.last)
    }

    pub fn cancel(&mut self, id: u64) {
        self.write(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})).unwrap();
    }

    /// Cancels a request as the command line does at Ctrl-C.
    pub fn interrupt(&mut self, id: u64) {
        let params = json!({"id": id, "reason": "interrupt"});
        self.write(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})).unwrap();
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(frame.as_bytes())
    }

    /// The whole response to a request, with `result` or `error`.
    pub fn response(&mut self, id: u64) -> Value {
        self.find(|message| is_response(message, id)).unwrap()
    }

    /// As [`RpcClient::response`]. Errors: the connection has ended, or (`WouldBlock`) nothing has come until the deadline.
    pub fn try_response(&mut self, id: u64, deadline: Instant) -> io::Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.get_ref().set_read_timeout(Some(left))?;
        let found = self.find(|message| is_response(message, id));
        self.stream.get_ref().set_read_timeout(Some(TEST_TIMEOUT))?;
        found
    }

    /// Whether a progress of the request contains these words, before its response.
    pub fn progress(&mut self, id: u64, words: &str) -> bool {
        let is_progress = |message: &Value| {
            let params = &message["params"];
            message["method"] == "$/progress"
                && params["id"] == id
                && params["value"]["message"].as_str().unwrap().contains(words)
        };
        let found = self.find(|message| is_progress(message) || is_response(message, id)).unwrap();
        let is_found = is_progress(&found);
        self.kept.push(found);
        is_found
    }

    fn find(&mut self, is_awaited: impl Fn(&Value) -> bool) -> io::Result<Value> {
        if let Some(index) = self.kept.iter().position(&is_awaited) {
            return Ok(self.kept.remove(index));
        }
        loop {
            let message = self.read()?;
            if is_awaited(&message) {
                return Ok(message);
            }
            self.kept.push(message);
        }
    }

    fn read(&mut self) -> io::Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended"));
            }
            match line.trim().strip_prefix("Content-Length: ") {
                Some(value) => length = value.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

fn is_response(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}
