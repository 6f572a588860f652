//! The pipes of an adapter: the end of its output is an error with its exit reason, instead of a bare end of file.
//!
//! Does not depend on the protocol, nor on how the reason is found.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::io::StreamReader;

/// A reader whose end of file becomes an error when there is a reason for it: `reason` is awaited once, at the end of
/// file, and resolves with `None` when that is normal.
pub(super) fn read_with_exit_reason<R: AsyncRead + Send + Unpin>(
    read: R,
    reason: impl Future<Output = Option<String>> + Send + 'static,
) -> impl AsyncRead + Send + Unpin {
    let end = reason.map(|reason| reason.map_or(Ok(Bytes::new()), |reason| Err(io::Error::other(reason))));
    read.chain(StreamReader::new(end.boxed().into_stream()))
}

/// A writer that ignores a broken pipe: the reader reports the reason. Its shutdown closes the pipe; a child's stdin
/// would otherwise stay open until it is dropped, and the child would wait for its end.
pub(super) struct BrokenPipeWriter<W>(Option<W>);

impl<W> BrokenPipeWriter<W> {
    /// A writer to a child's stdin.
    pub fn new(write: W) -> Self {
        BrokenPipeWriter(Some(write))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for BrokenPipeWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Some(write) = &mut self.0 else { return Poll::Ready(Ok(buf.len())) };
        let written = ready!(Pin::new(write).poll_write(cx, buf));
        Poll::Ready(ignore_broken_pipe(written, buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(write) = &mut self.0 else { return Poll::Ready(Ok(())) };
        let flushed = ready!(Pin::new(write).poll_flush(cx));
        Poll::Ready(ignore_broken_pipe(flushed, ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(self.as_mut().poll_flush(cx));
        self.0 = None;
        Poll::Ready(flushed)
    }
}

fn ignore_broken_pipe<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(otherwise),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn the_exit_reason_comes_once_after_all_output() {
        let check = async |reason: Option<&str>| {
            let exit_reason = reason.map(str::to_owned);
            let mut read = read_with_exit_reason(&b"last"[..], std::future::ready(exit_reason));
            let mut text = String::new();
            let outcome = read.read_to_string(&mut text).await.map_err(|error| error.to_string());
            assert_eq!((outcome.err().as_deref(), read.read(&mut [0; 4]).await.unwrap()), (reason, 0));
        };
        check(None).await;
        check(Some("it crashed")).await;
    }

    #[tokio::test]
    async fn a_broken_pipe_is_no_error_of_the_writer() {
        let (writer, reader) = tokio::io::duplex(16);
        drop(reader);
        let mut writer = BrokenPipeWriter::new(writer);
        writer.write_all(&[0; 1000]).await.unwrap();
        writer.flush().await.unwrap();
    }

    #[tokio::test]
    async fn a_shutdown_closes_the_pipe() {
        // Tokio's `shutdown` of a child's pipe does not close it.
        let mut child = tokio::process::Command::new("cat");
        let mut child = child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut kept = BrokenPipeWriter::new(child.stdin.take().unwrap());
        let mut reader = child.stdout.take().unwrap();
        kept.write_all(b"last").await.unwrap();
        kept.shutdown().await.unwrap();
        kept.write_all(b"more").await.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "last");
        assert!(child.wait().await.unwrap().success());
    }
}
