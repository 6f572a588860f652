//! A TCP stream without the 40 ms: nothing waits on our side, and what a peer sends is acknowledged at once.
//!
//! Must not know what is spoken over it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream that neither delays what it writes nor the acknowledgement of what it reads.
///
/// A debuggee's Nagle waits for our delayed ACK: 40 ms an answer. The kernel forgets the option again by itself,
/// so it is set before every read (0.2 µs).
#[derive(Debug)]
pub struct LowLatencyStream(TcpStream);

impl LowLatencyStream {
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
