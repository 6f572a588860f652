//! Where an editor's session lives: in the host of the session that it joins, or in a new one, so that it outlives the
//! supervisor.
//!
//! ```text
//!  initialize ─▶ supervisor's server ─┬─ attach to a session ─▶ initialize, attach ─▶ the server of its host
//!                                     └─ launch, attach to a program ─▶ initialize, … ─▶ the server of a new host
//! ```
//! From then on, bytes are forwarded as they are. Does not depend on what else is said.

use std::net::Ipv4Addr;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use tether_wire::frames::ContentLength;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::codec::{Encoder, Framed, FramedRead};

/// What an `attach` to a program names.
const PROGRAM_TARGETS: [&str; 5] = ["port", "pid", "url", "window", "config"];
/// How much is copied at once, in bytes.
const COPY_BUFFER: usize = 16 * 1024;

/// The host that an editor means.
#[derive(Debug, PartialEq)]
pub enum MeantHost {
    /// That of a session, by its id or the only active one.
    Session(Option<String>),
    /// A new one.
    New,
}

/// Where the rest of the conversation goes.
pub struct RoutedEditor<R> {
    /// The server of the session. What the editor has sent so far was forwarded.
    pub stream: TcpStream,
    /// What the editor sends from now on.
    pub input: R,
    /// What was read of it already.
    pub buffered: Bytes,
}

/// Forwards until the editor's first `launch` or `attach`. `host_port` returns the port of a host. `None`: the server has ended before. Errors: a connection cannot be opened, or what the editor sends is no DAP.
pub async fn route_editor<R: AsyncRead + Unpin, P: Future<Output = Option<u16>>>(
    mut stream: TcpStream,
    input: R,
    output: &mut (impl AsyncWrite + Unpin),
    host_port: impl Fn(MeantHost) -> P,
) -> Result<Option<RoutedEditor<R>>> {
    let doing = || "cannot forward DAP".to_owned();
    let mut input = FramedRead::new(input, ContentLength::default());
    let (mut initialize, mut buffer) = (None, vec![0; COPY_BUFFER]);
    loop {
        let body = tokio::select! {
            count = stream.read(&mut buffer) => match count.doing(doing)? {
                0 => return Ok(None),
                count => {
                    output.write_all(&buffer[..count]).await.doing(doing)?;
                    output.flush().await.doing(doing)?;
                    continue;
                }
            },
            body = input.next() => match body {
                Some(body) => body.doing(doing)?,
                None => return Ok(Some(RoutedEditor { stream, input: input.into_inner(), buffered: Bytes::new() })),
            },
        };
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let command = request.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
        if command == "initialize" {
            initialize = Some(body.clone());
        }
        let is_last = command == "launch" || command == "attach";
        if let (Some(host), Some(initialize)) = (meant_host(&command, &request), &initialize)
            && let Some(port) = host_port(host).await
        {
            stream = switch_to_host(port, initialize, output).await?;
        }
        stream.write_all(&frame(body)?).await.doing(doing)?;
        if is_last {
            let buffered = input.read_buffer().clone().freeze();
            return Ok(Some(RoutedEditor { stream, input: input.into_inner(), buffered }));
        }
    }
}

/// The host that a request means. `None`: it is no start.
fn meant_host(command: &str, request: &Value) -> Option<MeantHost> {
    let argument = |name: &str| request.get("arguments").and_then(|arguments| arguments.get(name));
    match command {
        "launch" => Some(MeantHost::New),
        "attach" if PROGRAM_TARGETS.iter().any(|name| argument(name).is_some()) => Some(MeantHost::New),
        "attach" => Some(MeantHost::Session(argument("sessionId").and_then(Value::as_str).map(str::to_owned))),
        _ => None,
    }
}

/// Connects to the server of a host, and has it answer `initialize`: the editor, which has an answer already, is told what this
/// session can do.
async fn switch_to_host(port: u16, initialize: &Bytes, output: &mut (impl AsyncWrite + Unpin)) -> Result<TcpStream> {
    let doing = || "cannot reach the debug session".to_owned();
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.doing(doing)?;
    stream.set_nodelay(true).doing(doing)?;
    let mut frames = Framed::new(stream, ContentLength::default());
    frames.send(initialize.clone()).await.doing(doing)?;
    let closed = || Error::other(doing()).because("it has closed the connection");
    let answer = frames.next().await.ok_or_else(closed)?.doing(doing)?;
    let answer: Value = serde_json::from_slice(&answer).doing(doing)?;
    let body = json!({"capabilities": answer.get("body").cloned().unwrap_or_default()});
    let event = json!({"seq": 0, "type": "event", "event": "capabilities", "body": body});
    output.write_all(&frame(Bytes::from(event.to_string()))?).await.doing(doing)?;
    output.flush().await.doing(doing)?;
    Ok(frames.into_inner())
}

fn frame(body: Bytes) -> Result<BytesMut> {
    let mut frame = BytesMut::new();
    ContentLength::default().encode(body, &mut frame).doing(|| "cannot forward DAP".to_owned())?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_means_a_new_host_and_an_attach_without_a_target_that_of_a_session() {
        let check = |command: &str, arguments: Value, expect: Option<MeantHost>| {
            let request = json!({"command": command, "arguments": arguments});
            assert_eq!(meant_host(command, &request), expect, "{request}");
        };
        check("launch", json!({"program": "app.py"}), Some(MeantHost::New));
        check("attach", json!({}), Some(MeantHost::Session(None)));
        check("attach", json!({"sessionId": "d3", "type": "tether"}), Some(MeantHost::Session(Some("d3".to_owned()))));
        check("attach", json!({"port": 5678}), Some(MeantHost::New));
        check("attach", json!({"window": "page"}), Some(MeantHost::New));
        check("setBreakpoints", json!({}), None);
    }
}
