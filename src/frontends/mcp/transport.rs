//! MCP's stdio transport for rmcp, with a response to every line, and with the text of the tools in their list.
//!
//! rmcp's own drops lines that it cannot parse (the client's request then hangs), and keeps running when stdout is closed.
//! This one responds to them with a JSON-RPC error, and notifies when a side is closed. Does not depend on any tool.

use std::sync::Arc;

use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Notify};
use tokio_util::codec::FramedRead;

use super::tool_list::{ToolSet, insert_tools, lists_tools};
use crate::frontends::stdio_lines::{InputLine, LineDecoder, MAX_LINE};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Notified when the client closes a side.
#[derive(Debug, Default)]
pub struct StdioClosed {
    /// stdin is closed: no more requests will come.
    pub input: Notify,
    /// stdout is closed: no more responses can be sent.
    pub output: Notify,
}

/// What a line is.
enum ParsedLine {
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    Blank,
    /// Not a message: the error to respond with.
    Invalid(Value),
}

fn parse_line(line: InputLine) -> ParsedLine {
    // `id` is null where it is unknown (JSON-RPC 2.0 §5); rmcp's own error would leave it out.
    let broken = |code: i64, text: String, id: Value| {
        ParsedLine::Invalid(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}))
    };
    let line = match line {
        InputLine::Whole(line) => line,
        InputLine::TooLong => {
            return broken(INVALID_REQUEST, format!("a line is longer than {MAX_LINE} bytes"), Value::Null);
        }
    };
    let text = line.strip_suffix(b"\r").unwrap_or(&line);
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return ParsedLine::Blank;
    }
    match serde_json::from_slice(text) {
        Ok(message) => ParsedLine::Message(Box::new(message)),
        Err(error) => match serde_json::from_slice::<Value>(text) {
            Err(error) => broken(PARSE_ERROR, format!("a line is not JSON: {error}"), Value::Null),
            Ok(value) => {
                let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
                broken(INVALID_REQUEST, format!("a line is not a message of JSON-RPC 2.0: {error}"), id)
            }
        },
    }
}

/// The transport: lines in, lines out.
pub struct StdioTransport<R, W> {
    lines: FramedRead<R, LineDecoder>,
    out: Arc<Mutex<Option<W>>>,
    ends: Arc<StdioClosed>,
    set: ToolSet,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> StdioTransport<R, W> {
    /// A transport over these two streams, which lists these tools; `ends` is notified when a side closes.
    pub fn new(read: R, write: W, ends: Arc<StdioClosed>, set: ToolSet) -> Self {
        StdioTransport {
            lines: FramedRead::new(read, LineDecoder::new(MAX_LINE)),
            out: Arc::new(Mutex::new(Some(write))),
            ends,
            set,
        }
    }
}

async fn write_line<W: AsyncWrite + Unpin>(
    out: &Mutex<Option<W>>,
    ends: &StdioClosed,
    mut line: Vec<u8>,
) -> std::io::Result<()> {
    line.push(b'\n');
    let mut out = out.lock().await;
    let Some(open) = out.as_mut() else { return Err(std::io::ErrorKind::NotConnected.into()) };
    let written = async {
        open.write_all(&line).await?;
        open.flush().await
    };
    let written = written.await;
    if written.is_err() {
        ends.output.notify_one();
    }
    written
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let (out, ends, set) = (Arc::clone(&self.out), Arc::clone(&self.ends), self.set);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            if lists_tools(&message) {
                insert_tools(&mut line, set);
            }
            write_line(&out, &ends, line).await
        }
    }

    /// Cancel-safe: what has been read stays in the codec's buffer. An error reply that is cut off by a cancel is the
    /// one thing that can be lost, so it is written by a task of its own.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while let Some(Ok(line)) = self.lines.next().await {
            match parse_line(line) {
                ParsedLine::Message(message) => return Some(*message),
                ParsedLine::Blank => {}
                ParsedLine::Invalid(reply) => {
                    let (out, ends) = (Arc::clone(&self.out), Arc::clone(&self.ends));
                    tokio::spawn(async move { write_line(&out, &ends, reply.to_string().into_bytes()).await });
                }
            }
        }
        self.ends.input.notify_one();
        None
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.out.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_is_no_message_is_answered_with_its_id_where_it_has_one() {
        let check = |line: &'static [u8], expect: &str| {
            let ParsedLine::Invalid(reply) = parse_line(InputLine::Whole(Bytes::from_static(line))) else {
                panic!("{line:?}")
            };
            let reply = reply.to_string();
            assert!(reply.contains(expect), "{line:?}: {reply}");
        };
        check(b"hello", r#""id":null"#);
        check(b"hello", "-32700");
        check(b"\xff\xfe", "-32700");
        check(br#"{"id": 7, "jsonrpc": "1.0"}"#, r#""id":7"#);
        check(br#"{"id": "a", "jsonrpc": "1.0"}"#, "-32600");
        let deep: &'static [u8] = Box::leak("[".repeat(200_000).into_boxed_str()).as_bytes();
        check(deep, "-32700");
    }
}
