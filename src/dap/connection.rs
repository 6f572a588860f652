//! The transports: a child's pipes, TCP, a Unix socket, a pair in memory. Each is a pair of byte streams.
//!
//! Must not know what is said over it, nor how whoever is at its other end was started.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::codec::{FramedRead, FramedWrite};

use super::dap_error::DapError;
use crate::wire::LowLatencyStream;
use crate::wire::frames::ContentLength;

/// Read at once: fewer system calls in a flood, and still little for a session that is idle.
const READ: usize = 16 * 1024;
/// What one side of a pair in memory may be ahead of the other.
const PAIR: usize = 16 * 1024;

pub(super) type FrameReader = FramedRead<Box<dyn AsyncRead + Send + Unpin>, ContentLength>;
pub(super) type FrameWriter = FramedWrite<Box<dyn AsyncWrite + Send + Unpin>, ContentLength>;

/// An open connection over which nothing has been said yet. Dropping it closes it.
pub struct DapConnection {
    pub(super) frames: FrameReader,
    pub(super) sink: FrameWriter,
}

impl fmt::Debug for DapConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl DapConnection {
    /// Over any two streams: a child's standard output and input.
    pub fn over(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> DapConnection {
        let frames = FramedRead::with_capacity(Box::new(read) as Box<_>, ContentLength::default(), READ);
        DapConnection { frames, sink: FramedWrite::new(Box::new(write) as Box<_>, ContentLength::default()) }
    }

    /// Over a TCP stream that we have dialled or accepted.
    pub fn tcp(stream: TcpStream) -> io::Result<DapConnection> {
        let (read, write) = split(LowLatencyStream::new(stream)?);
        Ok(DapConnection::over(read, write))
    }

    /// Over a Unix socket that we have dialled or accepted.
    pub fn unix(stream: UnixStream) -> DapConnection {
        let (read, write) = stream.into_split();
        DapConnection::over(read, write)
    }

    /// Dials an adapter's port.
    pub async fn connect_tcp(address: SocketAddr, deadline: Duration) -> Result<DapConnection, DapError> {
        let stream = connect_within(&address.to_string(), TcpStream::connect(address), deadline).await?;
        DapConnection::tcp(stream).map_err(|cause| unreachable_error(&address.to_string(), cause))
    }

    /// Dials an adapter's Unix socket.
    pub async fn connect_unix(path: &Path, deadline: Duration) -> Result<DapConnection, DapError> {
        let address = path.display().to_string();
        Ok(DapConnection::unix(connect_within(&address, UnixStream::connect(path), deadline).await?))
    }

    /// The two ends of a connection within this process: for adapters of our own, and for tests.
    pub fn pair() -> (DapConnection, DapConnection) {
        let (one, other) = tokio::io::duplex(PAIR);
        let end = |stream| {
            let (read, write) = split(stream);
            DapConnection::over(read, write)
        };
        (end(one), end(other))
    }
}

async fn connect_within<T>(
    address: &str,
    dialling: impl Future<Output = io::Result<T>>,
    deadline: Duration,
) -> Result<T, DapError> {
    match tokio::time::timeout(deadline, dialling).await {
        Ok(dialled) => dialled.map_err(|cause| unreachable_error(address, cause)),
        Err(_) => Err(DapError::TimedOut { command: format!("connecting to {address}"), after: deadline }),
    }
}

fn unreachable_error(address: &str, cause: io::Error) -> DapError {
    DapError::Unreachable { address: address.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, UnixListener};

    use crate::dap::types::ThreadsArguments;
    use crate::dap::{DapClient, DapIncoming, DapServer};

    /// A question over the connection gets the answer of the other end.
    async fn speak(ours: DapConnection, theirs: DapConnection) {
        let (client, _inbox, driver) = DapClient::over(ours);
        let (_server, mut asked, serving) = DapServer::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let answering = async {
            let Some(DapIncoming::Request(asked)) = asked.next().await else { panic!("no request") };
            asked.respond(&serde_json::json!({"threads": [{"id": 1, "name": "Grüße"}]}));
        };
        let (threads, ()) = tokio::join!(client.request(&ThreadsArguments {}, Duration::from_secs(10)), answering);
        assert_eq!(threads.unwrap().threads[0].name, "Grüße");
        drop(client);
        driver.await.unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn every_transport_carries_a_conversation() {
        const DEADLINE: Duration = Duration::from_secs(10);
        let (ours, theirs) = DapConnection::pair();
        speak(ours, theirs).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = DapConnection::connect_tcp(listener.local_addr().unwrap(), DEADLINE).await.unwrap();
        speak(ours, DapConnection::tcp(listener.accept().await.unwrap().0).unwrap()).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adäpter.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ours = DapConnection::connect_unix(&path, DEADLINE).await.unwrap();
        speak(ours, DapConnection::unix(listener.accept().await.unwrap().0)).await;
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no.sock");
        let error = DapConnection::connect_unix(&missing, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains("no.sock"), "{error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = DapConnection::connect_tcp(address, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
