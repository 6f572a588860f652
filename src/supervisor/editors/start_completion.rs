//! Completes an editor's `launch` or `attach` with the target that was resolved for it.
//!
//! An editor that has the target resolved (`debugger/start` with a project file) sends a request that names no program; one
//! that names its own is forwarded byte for byte, as is everything else. What is no stream of frames is forwarded, too.

use std::io;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};
use tether_wire::frames::ContentLength;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::codec::{Decoder, Encoder};

use crate::debug::host::adapter_relay::AdapterStart;

/// The arguments by which a request says itself what is to be debugged, of all adapters.
const TARGET_NAMES: &[&str] = &[
    "program",
    "module",
    "code",
    "script",
    "runtimeExecutable",
    "url",
    "file",
    "target",
    "processId",
    "pid",
    "connect",
    "port",
    "debugPort",
    "websocketAddress",
    "gdb-remote-port",
    "coreFile",
    "launchCommands",
    "attachCommands",
    "__pendingTargetId",
];
/// The arguments that belong to the adapter, whatever type the editor has given to the configuration.
const ADAPTER_NAMES: &[&str] = &["type", "request"];
/// How each header of a frame begins, in any letter case.
const HEADER_START: &[u8] = b"content-";
/// The end of the headers of a frame.
const HEADER_END: &[u8] = b"\r\n\r\n";

/// What an editor's first request is completed with.
pub struct StartCompletion {
    start: AdapterStart,
    /// The port of the relay: an editor may have it among its own arguments.
    port: u16,
}

impl StartCompletion {
    /// Completes with this request, for an editor that has connected to this port.
    pub fn new(start: AdapterStart, port: u16) -> StartCompletion {
        StartCompletion { start, port }
    }

    /// Forwards messages until the first `launch` or `attach` is forwarded, and all that was read after it.
    pub async fn forward_until_start(
        self,
        read: &mut (impl AsyncRead + Unpin),
        write: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let (mut codec, mut buffer, mut headers) = (ContentLength::default(), BytesMut::new(), Bytes::new());
        loop {
            // The codec takes the headers away, maybe long before the body is there.
            if headers.is_empty()
                && let Some(end) = memchr::memmem::find(&buffer, HEADER_END)
            {
                headers = Bytes::copy_from_slice(&buffer[..end + HEADER_END.len()]);
            }
            if headers.is_empty() && !may_start_frame(&buffer) {
                return write.write_all(&buffer).await;
            }
            match codec.decode(&mut buffer) {
                Ok(Some(body)) => {
                    let headers = std::mem::take(&mut headers);
                    let is_start = self.forward_message(&headers, body, write).await?;
                    if is_start {
                        return write.write_all(&buffer).await;
                    }
                }
                Ok(None) => {
                    if read.read_buf(&mut buffer).await? == 0 {
                        return write_rest(&headers, &buffer, write).await;
                    }
                }
                Err(_) => return write_rest(&[], &buffer, write).await,
            }
        }
    }

    /// Forwards one message. Returns whether it was the first request.
    async fn forward_message(
        &self,
        headers: &[u8],
        body: Bytes,
        write: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<bool> {
        let message = serde_json::from_slice::<Value>(&body).ok();
        let is_start = message.as_ref().is_some_and(is_start_request);
        if let Some(completed) = message.filter(|_| is_start).and_then(|message| self.complete_request(message)) {
            let mut frame = BytesMut::new();
            ContentLength::default().encode(completed.to_string().into(), &mut frame).map_err(io::Error::other)?;
            write.write_all(&frame).await?;
        } else {
            write.write_all(headers).await?;
            write.write_all(&body).await?;
        }
        Ok(is_start)
    }

    /// The request with the resolved target. `None`: it names one itself.
    fn complete_request(&self, mut message: Value) -> Option<Value> {
        let mut given = match message.get_mut("arguments").map(Value::take) {
            Some(Value::Object(arguments)) => arguments,
            _ => Map::new(),
        };
        if given.get("port").and_then(Value::as_u64) == Some(self.port.into()) {
            given.remove("port");
            given.remove("host");
        }
        let is_set = |value: &Value| !value.is_null() && value.as_str() != Some("");
        if TARGET_NAMES.iter().any(|name| given.get(*name).is_some_and(is_set)) {
            return None;
        }
        let mut arguments = self.start.arguments.clone();
        given.retain(|name, value| {
            let is_unset_target = TARGET_NAMES.contains(&name.as_str());
            !is_unset_target && !value.is_null() && !ADAPTER_NAMES.contains(&name.as_str())
        });
        arguments.extend(given);
        message["command"] = self.start.command.into();
        message["arguments"] = arguments.into();
        Some(message)
    }
}

/// Whether bytes are a beginning of a header; what is not is not held back until it can be decoded.
fn may_start_frame(bytes: &[u8]) -> bool {
    let length = bytes.len().min(HEADER_START.len());
    bytes[..length].eq_ignore_ascii_case(&HEADER_START[..length])
}

fn is_start_request(message: &Value) -> bool {
    message["type"] == "request" && matches!(message["command"].as_str(), Some("launch" | "attach"))
}

async fn write_rest(headers: &[u8], rest: &[u8], write: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    write.write_all(headers).await?;
    write.write_all(rest).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(message: &Value) -> String {
        let body = message.to_string();
        format!("Content-Type: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    /// What is forwarded of the editor's bytes, which come in pieces of this size, and those that stay unread.
    async fn forward(input: &str, size: usize) -> String {
        let arguments = json!({"type": "coreclr", "request": "launch", "program": "/a.dll", "env": {"A": "1"}});
        let start = AdapterStart { command: "launch", arguments: arguments.as_object().unwrap().clone() };
        let (mut ours, theirs) = tokio::io::duplex(size);
        let input = input.to_owned();
        let writer = tokio::spawn(async move { ours.write_all(input.as_bytes()).await });
        let (mut read, mut output) = (theirs, Vec::new());
        StartCompletion::new(start, 4711).forward_until_start(&mut read, &mut output).await.unwrap();
        tokio::io::copy(&mut read, &mut output).await.unwrap();
        writer.await.unwrap().unwrap();
        String::from_utf8(output).unwrap()
    }

    fn request(command: &str, arguments: Value) -> Value {
        json!({"seq": 2, "type": "request", "command": command, "arguments": arguments})
    }

    #[tokio::test]
    async fn a_request_without_a_target_is_completed_and_all_else_is_forwarded_as_it_is() {
        let (first, later) = (frame(&request("initialize", json!({}))), frame(&request("launch", json!({"b": 1}))));
        let given =
            json!({"type": "easy-dotnet", "request": "attach", "host": "127.0.0.1", "port": 4711, "justMyCode": false});
        for size in [1, 7, 4096] {
            let output =
                forward(&[first.as_str(), &frame(&request("attach", given.clone())), &later].concat(), size).await;
            let rest = output.strip_prefix(&first).and_then(|rest| rest.strip_suffix(&later)).unwrap();
            let completed: Value = serde_json::from_str(rest.split_once("\r\n\r\n").unwrap().1).unwrap();
            let expected = json!({"type": "coreclr", "request": "launch", "program": "/a.dll", "env": {"A": "1"}, "justMyCode": false});
            assert_eq!(completed, request("launch", expected));
        }
    }

    #[tokio::test]
    async fn a_request_that_names_its_target_is_forwarded_byte_for_byte() {
        for arguments in
            [json!({"program": "/b.dll"}), json!({"pid": 7}), json!({"port": 4712}), json!({"__pendingTargetId": "1"})]
        {
            let input = frame(&request("launch", arguments));
            assert_eq!(forward(&input, 4096).await, input);
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_is_forwarded() {
        for input in ["hello", "hello\r\n\r\nworld", "Content-Length: 9\r\n\r\nhalf", "Content-Length: x\r\n\r\n{}", ""]
        {
            assert_eq!(forward(input, 3).await, input);
        }
        let not_json = "Content-Length: 3\r\n\r\n{x}Content-Length: 2\r\n\r\n{}";
        assert_eq!(forward(not_json, 4096).await, not_json);
    }
}
