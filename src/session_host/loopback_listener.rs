//! A port of 127.0.0.1 for one connection, from a process of our own user, within a limited time.
//!
//! ```text
//!  open ─▶ listens ─┬─ a connection of our user ─▶ closed: further ones are refused; the connection is returned
//!                   ├─ one of another user ──────▶ it is closed; listens on
//!                   └─ the time is over ─────────▶ closed
//! ```
//! Does not depend on what is said over the connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

/// How long an editor may take to connect.
pub const LISTENER_LIFETIME: Duration = Duration::from_secs(30);
/// Connections that wait to be accepted: one of us, and those of other users before it.
const BACKLOG: u32 = 16;

/// Why a listener has ended without a connection.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("no connection came in time")]
    TimedOut,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The port that an editor connects to. `success` is false when none could be opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenedPort {
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A listener for one connection. Dropping it closes the port.
#[derive(Debug)]
pub struct LoopbackListener {
    listener: TcpListener,
    address: SocketAddr,
    until: Instant,
}

impl LoopbackListener {
    /// Listens on a free port, until `lifetime` is over. Errors: there is none, or no file descriptor.
    pub fn open(lifetime: Duration) -> io::Result<LoopbackListener> {
        Self::open_on(0, lifetime)
    }

    /// Listens for an editor. `None`: there is no port, which the log says.
    pub fn open_for_editor() -> Option<LoopbackListener> {
        let opened = Self::open(LISTENER_LIFETIME);
        opened.inspect_err(|error| warn!("cannot listen on 127.0.0.1 for an editor: {error}")).ok()
    }

    /// Listens on a port that an earlier listener has had.
    pub fn open_on(port: u16, lifetime: Duration) -> io::Result<LoopbackListener> {
        let socket = TcpSocket::new_v4()?;
        // The connection that the earlier listener has accepted has the port as well.
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
        let listener = socket.listen(BACKLOG)?;
        Ok(LoopbackListener { address: listener.local_addr()?, listener, until: Instant::now() + lifetime })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Waits for the one connection, and closes the port.
    pub async fn accept(self) -> Result<TcpStream, ListenerError> {
        self.accept_next().await
    }

    /// Waits for a connection, and keeps the port open.
    pub async fn accept_next(&self) -> Result<TcpStream, ListenerError> {
        loop {
            let accepted = timeout_at(self.until, self.listener.accept()).await;
            let (stream, from) = accepted.map_err(|_| ListenerError::TimedOut)??;
            if tether_process::is_own_connection(from, self.address)? {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            warn!("refused a debug connection of another user to port {}", self.port());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A process that another test has just forked holds the port until it executes its program.
    async fn is_refused(port: u16) -> bool {
        let until = std::time::Instant::now() + Duration::from_secs(5);
        while std::time::Instant::now() < until {
            let connected = TcpStream::connect(("127.0.0.1", port)).await;
            if connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                return true;
            }
        }
        false
    }

    #[tokio::test]
    async fn one_connection_is_taken_and_the_next_is_refused() {
        let listener = LoopbackListener::open(LISTENER_LIFETIME).unwrap();
        let port = listener.port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut accepted = listener.accept().await.unwrap();
        assert!(is_refused(port).await);
        client.write_all(b"hello").await.unwrap();
        let mut read = [0; 5];
        accepted.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
        // The port can be opened again while its first connection lives.
        let again = LoopbackListener::open_on(port, LISTENER_LIFETIME).unwrap();
        let _second = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        again.accept().await.unwrap();
        assert!(is_refused(port).await);
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_time_is_over_the_port_is_closed() {
        let opened = Instant::now();
        let listener = LoopbackListener::open(LISTENER_LIFETIME).unwrap();
        let port = listener.port();
        assert!(matches!(listener.accept().await, Err(ListenerError::TimedOut)));
        let taken = opened.elapsed();
        assert!(taken >= LISTENER_LIFETIME && taken < LISTENER_LIFETIME + Duration::from_secs(1), "{taken:?}");
        assert!(is_refused(port).await);
    }
}
