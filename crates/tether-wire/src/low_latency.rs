//! A TCP stream without Nagle's algorithm and without delayed ACKs.
//!
//! Does not depend on the protocol that is used over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream that delays neither its writes nor the ACKs of its reads.
///
/// A debuggee that uses Nagle's algorithm waits for our delayed ACK: 40 ms for each response. The kernel resets
/// `TCP_QUICKACK` by itself, so it is set before every read (0.2 µs).
#[derive(Debug)]
pub struct LowLatencyStream(TcpStream);

impl LowLatencyStream {
    /// Sets `TCP_NODELAY`. Errors: the socket option cannot be set.
    pub fn new(stream: TcpStream) -> io::Result<LowLatencyStream> {
        stream.set_nodelay(true)?;
        Ok(LowLatencyStream(stream))
    }
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
