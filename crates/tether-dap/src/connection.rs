//! The transports of DAP: a child's pipes, TCP, a Unix socket, an in-memory pair. Each is a pair of byte streams.
//!
//! Does not depend on the messages, nor on how the process at the other end was started.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tether_wire::LowLatencyStream;
use tether_wire::frames::ContentLength;
use tokio::io::{AsyncRead, AsyncWrite, split};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::codec::{FramedRead, FramedWrite};

use super::dap_error::DapError;

/// The read buffer, in bytes: few system calls for a flood of events, and little memory for an idle session.
const READ_BUFFER: usize = 16 * 1024;
/// The buffer of an in-memory pair, in bytes.
const PAIR_BUFFER: usize = 16 * 1024;

pub(super) type FrameReader = FramedRead<Box<dyn AsyncRead + Send + Unpin>, ContentLength>;
pub(super) type FrameWriter = FramedWrite<Box<dyn AsyncWrite + Send + Unpin>, ContentLength>;

/// An open connection over which no message has been sent yet. Dropping it closes it.
pub struct DapConnection {
    pub(super) frames: FrameReader,
    pub(super) sink: FrameWriter,
}

impl fmt::Debug for DapConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DapConnection")
    }
}

impl DapConnection {
    /// Over any two streams: a child's standard output and input.
    pub fn over(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> DapConnection {
        let frames = FramedRead::with_capacity(Box::new(read) as Box<_>, ContentLength::default(), READ_BUFFER);
        DapConnection { frames, sink: FramedWrite::new(Box::new(write) as Box<_>, ContentLength::default()) }
    }

    /// Over a TCP stream, connected or accepted. Errors: its socket options cannot be set.
    pub fn tcp(stream: TcpStream) -> io::Result<DapConnection> {
        let (read, write) = split(LowLatencyStream::new(stream)?);
        Ok(DapConnection::over(read, write))
    }

    /// Over a Unix socket, connected or accepted.
    pub fn unix(stream: UnixStream) -> DapConnection {
        let (read, write) = stream.into_split();
        DapConnection::over(read, write)
    }

    /// Connects to an adapter's TCP port.
    pub async fn connect_tcp(address: SocketAddr, deadline: Duration) -> Result<DapConnection, DapError> {
        let connecting = async { DapConnection::tcp(TcpStream::connect(address).await?) };
        match tokio::time::timeout(deadline, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err(DapError::Unreachable { address: address.to_string(), cause: cause.to_string() }),
            Err(_) => Err(DapError::TimedOut { command: format!("connecting to {address}"), after: deadline }),
        }
    }

    /// The streams themselves, for one who forwards their bytes: nothing has been read yet.
    pub fn into_streams(self) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        (self.frames.into_inner(), self.sink.into_inner())
    }

    /// The two ends of a connection within this process: for in-process adapters, and for tests.
    pub fn pair() -> (DapConnection, DapConnection) {
        let (one, other) = tokio::io::duplex(PAIR_BUFFER);
        let end = |stream| {
            let (read, write) = split(stream);
            DapConnection::over(read, write)
        };
        (end(one), end(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, UnixListener};

    use crate::types::ThreadsArguments;
    use crate::{DapClient, DapIncoming, DapServer};

    /// A request over the connection gets the response of the other end.
    async fn exchange(ours: DapConnection, theirs: DapConnection) {
        let (client, _inbox, driver) = DapClient::over(ours);
        let (_server, mut requests, serving) = DapServer::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let responding = async {
            let Some(DapIncoming::Request(request)) = requests.next().await else { panic!("no request") };
            request.respond(&serde_json::json!({"threads": [{"id": 1, "name": "Grüße"}]}));
        };
        let (threads, ()) = tokio::join!(client.request(&ThreadsArguments {}, Duration::from_secs(10)), responding);
        assert_eq!(threads.unwrap().threads[0].name, "Grüße");
        drop(client);
        driver.await.unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn every_transport_carries_requests_and_responses() {
        const DEADLINE: Duration = Duration::from_secs(10);
        let (ours, theirs) = DapConnection::pair();
        exchange(ours, theirs).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = DapConnection::connect_tcp(listener.local_addr().unwrap(), DEADLINE).await.unwrap();
        exchange(ours, DapConnection::tcp(listener.accept().await.unwrap().0).unwrap()).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adäpter.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ours = DapConnection::unix(UnixStream::connect(&path).await.unwrap());
        exchange(ours, DapConnection::unix(listener.accept().await.unwrap().0)).await;
    }

    #[tokio::test]
    async fn the_error_of_a_failed_connect_names_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = DapConnection::connect_tcp(address, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
