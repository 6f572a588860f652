//! The transport: a WebSocket to a port of the loopback, bounded and without delays.
//!
//! Dials `127.0.0.1` only; where a peer says that its WebSocket lies elsewhere, only the path of that is used.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::cdp_error::CdpError;
use super::client::{CdpClient, CdpConnection, EventHandler};
use crate::wire::LowLatencyStream;

/// The largest message taken from a peer (a screenshot of a large page is a few MiB).
const MAX_MESSAGE: usize = 64 << 20;
/// More than this waiting to be written means that the peer does not read.
const MAX_UNWRITTEN: usize = 64 << 20;

/// Opens the WebSocket at `path` (`/devtools/browser/…`) of a loopback port, within `deadline`.
/// The [`Connection`] must be polled (spawned) for anything to happen; dropping it closes the socket.
pub async fn open_connection(
    port: u16,
    path: &str,
    deadline: Duration,
) -> Result<(CdpClient, CdpConnection), CdpError> {
    open_connection_with_handler(port, path, deadline, Box::new(|_| {})).await
}

/// As [`connect`], with somebody who sees every event.
pub async fn open_connection_with_handler(
    port: u16,
    path: &str,
    deadline: Duration,
    observer: EventHandler,
) -> Result<(CdpClient, CdpConnection), CdpError> {
    let opening = open_websocket(port, path);
    let what = || format!("the WebSocket {path} on port {port}");
    let opened = tokio::time::timeout(deadline, opening).await;
    let socket = opened.map_err(|_| CdpError::TimedOut { what: what(), after: deadline })??;
    Ok(CdpClient::from_websocket(socket, observer))
}

async fn open_websocket(port: u16, path: &str) -> Result<WebSocketStream<LowLatencyStream>, CdpError> {
    let unreachable = |cause: String| CdpError::Unreachable { port, cause };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect(address).await.map_err(|cause| unreachable(cause.to_string()))?;
    let stream = LowLatencyStream::new(stream).map_err(|cause| unreachable(cause.to_string()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .max_write_buffer_size(MAX_UNWRITTEN);
    // No Origin header: Chromium accepts none, and refuses foreign ones.
    let url = format!("ws://127.0.0.1:{port}{path}");
    let shaken = client_async_with_config(url, stream, Some(config)).await;
    Ok(shaken.map_err(|cause| unreachable(cause.to_string()))?.0)
}
