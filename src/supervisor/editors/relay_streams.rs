//! Copies bytes between an editor and an adapter, both ways, until either side ends.
//!
//! Does not depend on the messages, except that the editor's first requests may pass through a [`StartCompletion`].

use std::io;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::start_completion::StartCompletion;
use crate::debug::host::adapter_relay::AdapterStreams;

/// How much is copied at once, in bytes: what a pipe holds.
const COPY_BUFFER: usize = 64 * 1024;
/// How long an adapter may still send after the editor has closed its side.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// The request of an adapter that the editor opens another connection, as it stands in a message. In a text of the program
/// its quotes are escaped.
const START_DEBUGGING: &[u8] = b"\"startDebugging\"";

/// Copies until either side has ended. `children` gets a permit for each `startDebugging` of the adapter, before the editor
/// can read it.
pub async fn relay_streams(
    editor: TcpStream,
    (mut adapter_read, mut adapter_write): AdapterStreams,
    completion: Option<StartCompletion>,
    children: Option<&Semaphore>,
) {
    let (mut editor_read, mut editor_write) = editor.into_split();
    let to_adapter = async {
        if let Some(completion) = completion {
            completion.forward_until_start(&mut editor_read, &mut adapter_write).await?;
        }
        copy_until_end(&mut editor_read, &mut adapter_write, |_| false).await?;
        adapter_write.shutdown().await
    };
    let to_editor = async {
        let mut scanner = RequestScanner::default();
        let see = |piece: &[u8]| {
            let requests = children.map_or(0, |_| scanner.count_requests(piece));
            if let Some(children) = children.filter(|_| requests > 0) {
                children.add_permits(requests);
            }
            requests > 0
        };
        copy_until_end(&mut adapter_read, &mut editor_write, see).await?;
        editor_write.shutdown().await
    };
    tokio::pin!(to_adapter, to_editor);
    // How a side has ended makes no difference: the other one sees the end of its stream.
    tokio::select! {
        _ = &mut to_editor => {}
        _ = &mut to_adapter => drop(timeout(LAST_OUTPUT_TIMEOUT, &mut to_editor).await),
    }
}

/// Copies all bytes. When `see` returns true for a piece, the rest of the task runs once before the piece is written: it opens
/// the port to which the receiver connects next.
async fn copy_until_end(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    mut see: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        let count = read.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        if see(&buffer[..count]) {
            tokio::task::yield_now().await;
        }
        write.write_all(&buffer[..count]).await?;
    }
}

/// Finds requests in a stream that comes in pieces.
#[derive(Default)]
struct RequestScanner {
    /// The end of the last piece, shorter than what is searched for.
    tail: Vec<u8>,
}

impl RequestScanner {
    fn count_requests(&mut self, piece: &[u8]) -> usize {
        let keep = START_DEBUGGING.len() - 1;
        let mut seam = std::mem::take(&mut self.tail);
        seam.extend_from_slice(&piece[..piece.len().min(keep)]);
        let found =
            memmem::find_iter(&seam, START_DEBUGGING).count() + memmem::find_iter(piece, START_DEBUGGING).count();
        // Shorter than what is searched for: nothing is counted twice.
        let whole = if piece.len() >= keep { piece } else { &seam };
        self.tail = whole[whole.len().saturating_sub(keep)..].to_vec();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_once_whatever_the_split() {
        let stream = br#"{"command":"startDebugging","x":"\"startDebugging\""}{"command":"startDebugging"}"#;
        for size in 1..=stream.len() {
            let mut scanner = RequestScanner::default();
            let found: usize = stream.chunks(size).map(|piece| scanner.count_requests(piece)).sum();
            assert_eq!(found, 2, "pieces of {size}");
        }
    }
}
