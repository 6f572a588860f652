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

use super::Error;
use crate::wire::Prompt;
use crate::wire::frames::ContentLength;

/// Read at once: fewer system calls in a flood, and still little for a session that is idle.
const READ: usize = 16 * 1024;
/// What one side of a pair in memory may be ahead of the other.
const PAIR: usize = 16 * 1024;

pub(super) type Frames = FramedRead<Box<dyn AsyncRead + Send + Unpin>, ContentLength>;
pub(super) type Sink = FramedWrite<Box<dyn AsyncWrite + Send + Unpin>, ContentLength>;

/// An open connection over which nothing has been said yet. Dropping it closes it.
pub struct Connection {
    pub(super) frames: Frames,
    pub(super) sink: Sink,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    /// Over any two streams: a child's standard output and input.
    pub fn over(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Connection {
        let frames = FramedRead::with_capacity(Box::new(read) as Box<_>, ContentLength::default(), READ);
        Connection { frames, sink: FramedWrite::new(Box::new(write) as Box<_>, ContentLength::default()) }
    }

    /// Over a TCP stream that we have dialled or accepted.
    pub fn tcp(stream: TcpStream) -> io::Result<Connection> {
        let (read, write) = split(Prompt::new(stream)?);
        Ok(Connection::over(read, write))
    }

    /// Over a Unix socket that we have dialled or accepted.
    pub fn unix(stream: UnixStream) -> Connection {
        let (read, write) = stream.into_split();
        Connection::over(read, write)
    }

    /// Dials an adapter's port.
    pub async fn dial_tcp(address: SocketAddr, deadline: Duration) -> Result<Connection, Error> {
        let stream = dial(&address.to_string(), TcpStream::connect(address), deadline).await?;
        Connection::tcp(stream).map_err(|cause| unreachable(&address.to_string(), cause))
    }

    /// Dials an adapter's Unix socket.
    pub async fn dial_unix(path: &Path, deadline: Duration) -> Result<Connection, Error> {
        let address = path.display().to_string();
        Ok(Connection::unix(dial(&address, UnixStream::connect(path), deadline).await?))
    }

    /// The two ends of a connection within this process: for adapters of our own, and for tests.
    pub fn pair() -> (Connection, Connection) {
        let (one, other) = tokio::io::duplex(PAIR);
        let end = |stream| {
            let (read, write) = split(stream);
            Connection::over(read, write)
        };
        (end(one), end(other))
    }
}

async fn dial<T>(address: &str, dialling: impl Future<Output = io::Result<T>>, deadline: Duration) -> Result<T, Error> {
    match tokio::time::timeout(deadline, dialling).await {
        Ok(dialled) => dialled.map_err(|cause| unreachable(address, cause)),
        Err(_) => Err(Error::TimedOut { command: format!("connecting to {address}"), after: deadline }),
    }
}

fn unreachable(address: &str, cause: io::Error) -> Error {
    Error::Unreachable { address: address.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, UnixListener};

    use crate::dap::types::Threads;
    use crate::dap::{Client, Incoming, Server};

    /// A question over the connection gets the answer of the other end.
    async fn speak(ours: Connection, theirs: Connection) {
        let (client, _inbox, driver) = Client::over(ours);
        let (_server, mut asked, serving) = Server::over(theirs);
        let (driver, serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let answering = async {
            let Some(Incoming::Request(asked)) = asked.next().await else { panic!("no request") };
            asked.answer(&serde_json::json!({"threads": [{"id": 1, "name": "Grüße"}]}));
        };
        let (threads, ()) = tokio::join!(client.request(&Threads {}, Duration::from_secs(10)), answering);
        assert_eq!(threads.unwrap().threads[0].name, "Grüße");
        drop(client);
        driver.await.unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn every_transport_carries_a_conversation() {
        const DEADLINE: Duration = Duration::from_secs(10);
        let (ours, theirs) = Connection::pair();
        speak(ours, theirs).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = Connection::dial_tcp(listener.local_addr().unwrap(), DEADLINE).await.unwrap();
        speak(ours, Connection::tcp(listener.accept().await.unwrap().0).unwrap()).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adäpter.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ours = Connection::dial_unix(&path, DEADLINE).await.unwrap();
        speak(ours, Connection::unix(listener.accept().await.unwrap().0)).await;
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no.sock");
        let error = Connection::dial_unix(&missing, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains("no.sock"), "{error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = Connection::dial_tcp(address, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
