//! A TCP stream without Nagle's algorithm and without delayed ACKs, which notices that another machine is gone.
//!
//! Does not depend on the protocol that is used over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// When an idle connection to another machine is probed first, how often then, and how many probes may be lost.
const PROBED_AFTER: Duration = Duration::from_secs(15);
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
/// When a connection to another machine is given up that has not acknowledged what was sent, in milliseconds.
const GIVEN_UP_AFTER_MS: u32 = 30_000;

/// A TCP stream that delays neither its writes nor the ACKs of its reads.
///
/// A debuggee that uses Nagle's algorithm waits for our delayed ACK: 40 ms for each response. The kernel resets
/// `TCP_QUICKACK` by itself, so it is set before every read (0.2 µs).
#[derive(Debug)]
pub struct LowLatencyStream(TcpStream);

impl LowLatencyStream {
    /// Sets `TCP_NODELAY`; to another machine, a connection whose other end is silently gone ends within
    /// half a minute. Errors: a socket option cannot be set.
    pub fn new(stream: TcpStream) -> io::Result<LowLatencyStream> {
        stream.set_nodelay(true)?;
        if stream.peer_addr().is_ok_and(|peer| !peer.ip().to_canonical().is_loopback()) {
            give_up_when_silent(&stream)?;
        }
        Ok(LowLatencyStream(stream))
    }
}

/// Whether idle or with data that is not acknowledged.
fn give_up_when_silent(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_tcp_user_timeout(stream, GIVEN_UP_AFTER_MS)?;
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(stream, PROBED_AFTER)?;
    rustix::net::sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL)?;
    rustix::net::sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

impl AsyncRead for LowLatencyStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.0, true);
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for LowLatencyStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_to_a_machine_that_is_silently_gone_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let own = LowLatencyStream::new(stream).unwrap().0;
        assert!(!rustix::net::sockopt::socket_keepalive(&own).unwrap(), "no other machine");
        give_up_when_silent(&own).unwrap();
        assert!(rustix::net::sockopt::socket_keepalive(&own).unwrap());
        let idle = rustix::net::sockopt::tcp_keepidle(&own).unwrap();
        let interval = rustix::net::sockopt::tcp_keepintvl(&own).unwrap();
        let given_up = idle + interval * rustix::net::sockopt::tcp_keepcnt(&own).unwrap();
        assert_eq!(given_up, Duration::from_secs(30));
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&own).unwrap(), GIVEN_UP_AFTER_MS);
    }
}
