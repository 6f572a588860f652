//! DAP on stdio, for any editor: forwards bytes between stdin and stdout and a DAP server in the supervisor, where the session
//! of a `launch` outlives the editor, and `attach` joins one that is there.
//!
//! Does not depend on what is said.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::dap_route::{MeantHost, RoutedEditor, route_editor};
use crate::api::protocol::{DEBUGGER_JOIN, InitializeParams};
use crate::supervisor::connect::{IfNotRunning, SupervisorPaths, connect};

/// How long the supervisor may take to close the conversation once stdin is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves DAP on stdin and stdout until the editor or the supervisor ends the conversation.
pub async fn serve_dap(workspace: PathBuf) -> Result<()> {
    let paths = SupervisorPaths::of_workspace(&workspace)?;
    let (name, version) = ("tether dap".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let client = InitializeParams { name, version, ..InitializeParams::default() };
    let connection = connect(&paths, &client, IfNotRunning::Start).await?;
    // Kept open: a supervisor with a connection does not exit because it is idle.
    let connection = connection.ok_or_else(|| Error::other("there is no supervisor"))?;
    let answer = connection.call(DEBUGGER_JOIN, &json!({}), mpsc::unbounded_channel().0).await?;
    let port = answer.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    let doing = || "cannot reach the debug sessions of the supervisor".to_owned();
    let port =
        port.ok_or_else(|| Error::other(doing()).because("it can open no port").hint("`tether logs` says why"))?;
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.doing(doing)?;
    stream.set_nodelay(true).doing(doing)?;
    let mut output = tokio::io::stdout();
    let host_port = async |host: MeantHost| {
        let params = match host {
            MeantHost::Session(id) => json!({"sessionId": id, "hostedOnly": true}),
            MeantHost::New => json!({"newHost": true}),
        };
        // Where there is none, the supervisor's own server says why.
        let answer = connection.call(DEBUGGER_JOIN, &params, mpsc::unbounded_channel().0).await.ok()?;
        answer.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok())
    };
    let routed = route_editor(stream, tokio::io::stdin(), &mut output, host_port).await?;
    let Some(RoutedEditor { mut stream, input, buffered }) = routed else { return Ok(()) };
    let doing = || "cannot forward DAP".to_owned();
    stream.write_all(&buffered).await.doing(doing)?;
    forward_bytes(stream, input, output).await.doing(doing)
}

/// Copies both ways. The end of stdin closes one direction; the end of the other ends both.
async fn forward_bytes(
    stream: TcpStream,
    mut stdin: impl AsyncRead + Unpin,
    mut stdout: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let (mut read, mut write) = stream.into_split();
    let responses = copy(&mut read, &mut stdout);
    tokio::pin!(responses);
    tokio::select! {
        copied = &mut responses => return copied.map(drop),
        copied = copy(&mut stdin, &mut write) => drop(copied?),
    }
    write.shutdown().await?;
    // What the editor was not sent yet; it may be gone.
    let _ = timeout(CLOSE_TIMEOUT, responses).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn bytes_pass_both_ways_until_one_side_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let ((stdin, mut typed), (stdout, mut printed)) = (duplex(64), duplex(64));
        let forwarding = tokio::spawn(forward_bytes(stream, stdin, stdout));
        typed.write_all(b"request").await.unwrap();
        let mut read = [0; 7];
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"request");
        drop(typed);
        assert_eq!(server.read(&mut read).await.unwrap(), 0, "the end of stdin is passed on");
        server.write_all(b"last").await.unwrap();
        drop(server);
        let mut rest = String::new();
        forwarding.await.unwrap().unwrap();
        printed.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "last");
    }
}
