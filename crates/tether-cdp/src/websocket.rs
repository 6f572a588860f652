//! Opens the WebSocket on a loopback port, with size limits and without transmission delays.
//!
//! Connects to `127.0.0.1` only; of the address that a peer reports, only the path is used.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tether_wire::LowLatencyStream;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::cdp_error::CdpError;
use super::client::{CdpClient, CdpConnection, EventHandler};

/// The largest message accepted from a peer, in bytes (a screenshot of a large page is a few MiB).
const MAX_MESSAGE: usize = 64 << 20;
/// Unwritten bytes beyond which the peer counts as not reading.
const MAX_UNWRITTEN: usize = 64 << 20;

/// Opens the WebSocket at `path` (`/devtools/browser/…`) of a loopback port, within `deadline`.
/// The connection must be polled (spawned) for anything to happen; dropping it closes the socket.
pub async fn open_connection(
    port: u16,
    path: &str,
    deadline: Duration,
) -> Result<(CdpClient, CdpConnection), CdpError> {
    open_connection_with_handler(port, path, deadline, Box::new(|_| {})).await
}

/// As [`open_connection`], with a handler that is called with every event.
pub async fn open_connection_with_handler(
    port: u16,
    path: &str,
    deadline: Duration,
    handler: EventHandler,
) -> Result<(CdpClient, CdpConnection), CdpError> {
    let opening = open_websocket(port, path);
    let what = || format!("the WebSocket {path} on port {port}");
    let opened = tokio::time::timeout(deadline, opening).await;
    let socket = opened.map_err(|_| CdpError::TimedOut { what: what(), after: deadline })??;
    Ok(CdpClient::from_websocket(socket, handler))
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
    // Without an Origin header: Chromium rejects foreign origins, but accepts a missing one.
    let url = format!("ws://127.0.0.1:{port}{path}");
    let connected = client_async_with_config(url, stream, Some(config)).await;
    Ok(connected.map_err(|cause| unreachable(cause.to_string()))?.0)
}
