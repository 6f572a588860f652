//! Reads what a started process prints: in pieces for one receiver, and the last lines for error messages.
//!
//! A piece is a line with its line end, or the part of one that has come when there was a pause (a prompt). A receiver
//! that keeps reading gets everything; for one that does not read for a while the newest pieces are dropped, and their
//! number is sent. Does not depend on which process it is, nor on the meaning of its output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tether_base::sync::lock;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Pieces that are queued for the receiver.
const MAX_QUEUED_PIECES: usize = 1024;
/// How long the receiver may read nothing before pieces are dropped: until then the process waits for it.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// After this pause within a line, its beginning is sent.
const LINE_PAUSE: Duration = Duration::from_millis(50);
/// A longer line is sent in parts, in bytes.
const MAX_PIECE_BYTES: usize = 16 * 1024;
/// The last lines that are kept for error messages.
const KEPT_LINES: usize = 20;
/// Their size in bytes; one longer line is kept whole.
const KEPT_BYTES: usize = 8 * 1024;

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// From its stdout.
    Stdout(String),
    /// From its stderr.
    Stderr(String),
    /// This many pieces were dropped here.
    Dropped(u64),
}

/// The stream that a piece came from.
#[derive(Clone, Copy, Debug)]
pub enum OutputStream {
    /// Its stdout.
    Stdout,
    /// Its stderr.
    Stderr,
}

/// The output of one process; clones share it.
#[derive(Clone)]
pub struct OutputReader {
    pieces: mpsc::Sender<OutputPiece>,
    kept: Arc<Mutex<LastLines>>,
    /// How many streams have not ended.
    open: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct LastLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl OutputReader {
    /// A reader without streams, and the end that receives the pieces.
    pub fn new() -> (OutputReader, mpsc::Receiver<OutputPiece>) {
        let (pieces, output) = mpsc::channel(MAX_QUEUED_PIECES);
        (OutputReader { pieces, kept: Arc::default(), open: Arc::new(watch::Sender::new(0)) }, output)
    }

    /// Reads a stream to its end in a task of its own, which runs as long as the pipe is open: a detached program can
    /// go on printing. `line` is called with each complete line before it is sent.
    pub fn read_stream(
        &self,
        stream: OutputStream,
        pipe: impl AsyncRead + Send + Unpin + 'static,
        line: impl FnMut(&str) + Send + 'static,
    ) {
        self.open.send_modify(|open| *open = open.saturating_add(1));
        let reader = self.clone();
        tokio::spawn(async move {
            let dropped =
                StreamReader { output: &reader, stream, pipe, rest: Vec::new(), dropped: 0 }.read_to_end(line).await;
            reader.open.send_modify(|open| *open = open.saturating_sub(1));
            if dropped > 0 {
                // For a receiver that starts reading again.
                let _ = reader.pieces.send(OutputPiece::Dropped(dropped)).await;
            }
        });
    }

    /// Waits until both streams have ended; at most `within`, since a daemon may keep them open.
    pub async fn wait_for_end(&self, within: Duration) {
        let _ = timeout(within, self.open.subscribe().wait_for(|open| *open == 0)).await;
    }

    /// The last lines; empty when nothing was printed.
    pub fn tail(&self) -> String {
        let kept = self.lock_last_lines();
        kept.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn lock_last_lines(&self) -> MutexGuard<'_, LastLines> {
        lock(&self.kept)
    }

    fn keep_line(&self, piece: &str) {
        let line = piece.trim_end();
        if line.is_empty() {
            return;
        }
        let mut kept = self.lock_last_lines();
        kept.bytes = kept.bytes.saturating_add(line.len());
        kept.lines.push_back(line.to_owned());
        while kept.lines.len() > KEPT_LINES || (kept.bytes > KEPT_BYTES && kept.lines.len() > 1) {
            let oldest = kept.lines.pop_front().unwrap_or_default();
            kept.bytes = kept.bytes.saturating_sub(oldest.len());
        }
    }
}

/// Reads one stream of the process.
struct StreamReader<'a, P> {
    output: &'a OutputReader,
    stream: OutputStream,
    pipe: P,
    /// The beginning of a line, not sent yet.
    rest: Vec<u8>,
    /// Pieces that were dropped since the last one that was sent.
    dropped: u64,
}

impl<P: AsyncRead + Unpin> StreamReader<'_, P> {
    /// Returns how many of the last pieces were dropped.
    async fn read_to_end(mut self, mut line: impl FnMut(&str)) -> u64 {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let pause = if whole_characters(&self.rest) > 0 { LINE_PAUSE } else { Duration::MAX };
            // Reading a pipe is cancel-safe.
            match timeout(pause, self.pipe.read(&mut chunk)).await {
                Err(_) => self.send_partial_line().await,
                Ok(Ok(count @ 1..)) => {
                    self.rest.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    self.send_lines(&mut line).await;
                }
                Ok(_) => break,
            }
        }
        let rest = std::mem::take(&mut self.rest);
        self.send_piece(&rest).await;
        self.dropped
    }

    async fn send_lines(&mut self, line: &mut impl FnMut(&str)) {
        let rest = std::mem::take(&mut self.rest);
        for whole in rest.split_inclusive(|byte| *byte == b'\n') {
            if !whole.ends_with(b"\n") {
                self.rest = whole.to_vec();
                break;
            }
            line(String::from_utf8_lossy(whole).trim_end());
            self.send_piece(whole).await;
        }
        while self.rest.len() > MAX_PIECE_BYTES {
            self.send_partial_line().await;
        }
    }

    /// Sends the beginning of a line, up to its last complete character.
    async fn send_partial_line(&mut self) {
        let whole = whole_characters(self.rest.get(..MAX_PIECE_BYTES).unwrap_or(&self.rest));
        let rest = self.rest.split_off(whole);
        let piece = std::mem::replace(&mut self.rest, rest);
        self.send_piece(&piece).await;
    }

    async fn send_piece(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(piece).into_owned();
        self.output.keep_line(&text);
        let piece = match self.stream {
            OutputStream::Stdout => OutputPiece::Stdout(text),
            OutputStream::Stderr => OutputPiece::Stderr(text),
        };
        // After a drop, the receiver is not waited for again until it has read something.
        let send_timeout = if self.dropped == 0 { SEND_TIMEOUT } else { Duration::ZERO };
        let Ok(Ok(mut permits)) =
            timeout(send_timeout, self.output.pieces.reserve_many(if self.dropped > 0 { 2 } else { 1 })).await
        else {
            self.dropped = self.dropped.saturating_add(1); // or the receiver was dropped
            return;
        };
        let dropped = std::mem::take(&mut self.dropped);
        for piece in (dropped > 0).then_some(OutputPiece::Dropped(dropped)).into_iter().chain([piece]) {
            if let Some(permit) = permits.next() {
                permit.send(piece);
            }
        }
    }
}

/// The number of bytes before a character that is not complete yet.
fn whole_characters(bytes: &[u8]) -> usize {
    // A character has at most four bytes: what is invalid before the last four stays invalid.
    let from = bytes.len().saturating_sub(4);
    let is_begun = |end: &[u8]| {
        std::str::from_utf8(end).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (from..bytes.len()).find(|at| bytes.get(*at..).is_some_and(is_begun)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn out(text: &str) -> OutputPiece {
        OutputPiece::Stdout(text.to_owned())
    }

    #[tokio::test]
    async fn lines_come_whole_and_a_prompt_without_its_line_end() {
        let (reader, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64);
        let (line_sender, mut lines) = mpsc::unbounded_channel();
        reader.read_stream(OutputStream::Stdout, pipe, move |line| drop(line_sender.send(line.to_owned())));
        for piece in ["o", "ne\r\ntw", "o\nwhat? ä"] {
            writer.write_all(piece.as_bytes()).await.unwrap();
        }
        for expect in ["one\r\n", "two\n", "what? ä"] {
            let mut text = String::new();
            // A pause of the reading task may split a line.
            while text.len() < expect.len() {
                let Some(OutputPiece::Stdout(piece)) = output.recv().await else { panic!("{text:?}") };
                text.push_str(&piece);
            }
            assert_eq!(text, expect);
        }
        drop(writer);
        assert_eq!(output.recv().next_or_end(&reader).await, None);
        assert_eq!(lines.recv().await.unwrap(), "one");
    }

    trait NextOrEnd {
        async fn next_or_end(self, reader: &OutputReader) -> Option<OutputPiece>;
    }

    impl<F: Future<Output = Option<OutputPiece>>> NextOrEnd for F {
        async fn next_or_end(self, reader: &OutputReader) -> Option<OutputPiece> {
            reader.wait_for_end(Duration::from_secs(10)).await;
            timeout(Duration::ZERO, self).await.ok().flatten()
        }
    }

    #[tokio::test]
    async fn a_character_that_is_split_arrives_whole() {
        let (reader, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64);
        reader.read_stream(OutputStream::Stderr, pipe, |_| {});
        writer.write_all(b"a\xc3").await.unwrap();
        assert_eq!(output.recv().await, Some(OutputPiece::Stderr("a".to_owned())));
        writer.write_all(b"\xa4\n").await.unwrap();
        let mut text = String::new();
        while !text.ends_with('\n') {
            let Some(OutputPiece::Stderr(piece)) = output.recv().await else { panic!("{text:?}") };
            text.push_str(&piece);
        }
        assert_eq!(text, "ä\n");
        assert_eq!(reader.tail(), "a\nä");
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_read_loses_the_newest_pieces_and_gets_their_number() {
        let (reader, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64 * 1024);
        reader.read_stream(OutputStream::Stdout, pipe, |_| {});
        for number in 0..MAX_QUEUED_PIECES + 500 {
            writer.write_all(format!("{number}\n").as_bytes()).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        drop(writer);
        reader.wait_for_end(Duration::from_secs(60)).await;
        for number in 0..MAX_QUEUED_PIECES {
            assert_eq!(output.recv().await, Some(out(&format!("{number}\n"))));
        }
        assert_eq!(output.recv().await, Some(OutputPiece::Dropped(500)));
        assert_eq!(reader.tail().lines().last(), Some(format!("{}", MAX_QUEUED_PIECES + 499)).as_deref());
    }

    #[tokio::test]
    async fn a_flood_arrives_whole_at_a_receiver_that_reads() {
        let (reader, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64 * 1024);
        reader.read_stream(OutputStream::Stdout, pipe, |_| {});
        drop(reader);
        let writing = tokio::spawn(async move {
            for number in 0..100_000 {
                writer.write_all(format!("{number}\n").as_bytes()).await.unwrap();
            }
        });
        let mut text = String::new();
        while let Some(OutputPiece::Stdout(piece)) = output.recv().await {
            text.push_str(&piece);
        }
        writing.await.unwrap();
        assert!((0..100_000).map(|number| number.to_string()).eq(text.lines().map(str::to_owned)));
    }
}
