//! What a started process prints: in pieces to whoever follows it, its last lines kept for errors.
//!
//! A piece is a line with its end, or what there is of one when nothing has come for a moment (a prompt). A follower
//! that lives loses nothing; one that takes nothing for a while loses the newest pieces, and is told how many. Nobody
//! has to follow. Must not know what is started, nor what its words mean.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Pieces that wait for the follower.
const WAITING: usize = 1024;
/// How long a follower may take nothing before pieces are dropped: the process must not wait for it for ever.
const PATIENCE: Duration = Duration::from_secs(1);
/// After this long without the rest of a line, its beginning is given out.
const PAUSE: Duration = Duration::from_millis(50);
/// A longer line is given out in parts.
const LONGEST: usize = 16 * 1024;
/// What is kept for errors.
const KEPT_LINES: usize = 20;
const KEPT_BYTES: usize = 8 * 1024;

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    Stdout(String),
    Stderr(String),
    /// So many pieces were dropped here.
    Dropped(u64),
}

/// Which stream it came from.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// What becomes of the output of one process; clones are the same.
#[derive(Clone)]
pub(super) struct OutputReader {
    follower: mpsc::Sender<OutputPiece>,
    kept: Arc<Mutex<LastLines>>,
    /// Streams that have not ended.
    open: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct LastLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl OutputReader {
    pub fn new() -> (OutputReader, mpsc::Receiver<OutputPiece>) {
        let (follower, output) = mpsc::channel(WAITING);
        (OutputReader { follower, kept: Arc::default(), open: Arc::new(watch::Sender::new(0)) }, output)
    }

    /// Reads a stream to its end, beside everything else: it lives as long as the pipe, so that a program that is let
    /// go can print on. `line` sees each whole line first.
    pub fn read_stream(
        &self,
        stream: OutputStream,
        pipe: impl AsyncRead + Send + Unpin + 'static,
        line: impl FnMut(&str) + Send + 'static,
    ) {
        self.open.send_modify(|open| *open += 1);
        let ear = self.clone();
        tokio::spawn(async move {
            let lost = StreamReader { ear: &ear, stream, pipe, rest: Vec::new(), lost: 0 }.read_to_end(line).await;
            ear.open.send_modify(|open| *open -= 1);
            if lost > 0 {
                // Nobody waits for this any more but a follower who comes back.
                let _ = ear.follower.send(OutputPiece::Dropped(lost)).await;
            }
        });
    }

    /// Waits until both streams have ended; at most that long, since a daemon may hold them.
    pub async fn wait_for_end(&self, within: Duration) {
        let _ = timeout(within, self.open.subscribe().wait_for(|open| *open == 0)).await;
    }

    /// The last lines, or nothing.
    pub fn tail(&self) -> String {
        let kept = self.lock_last_lines();
        kept.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn lock_last_lines(&self) -> MutexGuard<'_, LastLines> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_line(&self, piece: &str) {
        let line = piece.trim_end();
        if line.is_empty() {
            return;
        }
        let mut kept = self.lock_last_lines();
        kept.bytes += line.len();
        kept.lines.push_back(line.to_owned());
        while kept.lines.len() > KEPT_LINES || (kept.bytes > KEPT_BYTES && kept.lines.len() > 1) {
            let oldest = kept.lines.pop_front().unwrap_or_default();
            kept.bytes -= oldest.len();
        }
    }
}

struct StreamReader<'a, P> {
    ear: &'a OutputReader,
    stream: OutputStream,
    pipe: P,
    /// The beginning of a line.
    rest: Vec<u8>,
    lost: u64,
}

impl<P: AsyncRead + Unpin> StreamReader<'_, P> {
    /// Answers with how many of the last pieces were lost.
    async fn read_to_end(mut self, mut line: impl FnMut(&str)) -> u64 {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let pause = if whole_characters(&self.rest) > 0 { PAUSE } else { Duration::MAX };
            // Reading a pipe is cancel-safe.
            match timeout(pause, self.pipe.read(&mut chunk)).await {
                Err(_) => self.send_partial_line().await,
                Ok(Ok(count @ 1..)) => {
                    self.rest.extend_from_slice(&chunk[..count]);
                    self.send_lines(&mut line).await;
                }
                Ok(_) => break,
            }
        }
        let rest = std::mem::take(&mut self.rest);
        self.send_piece(&rest).await;
        self.lost
    }

    async fn send_lines(&mut self, line: &mut impl FnMut(&str)) {
        let mut from = 0;
        let rest = std::mem::take(&mut self.rest);
        while let Some(length) = rest[from..].iter().position(|byte| *byte == b'\n') {
            let whole = &rest[from..=from + length];
            line(String::from_utf8_lossy(whole).trim_end());
            self.send_piece(whole).await;
            from += length + 1;
        }
        self.rest = rest[from..].to_vec();
        while self.rest.len() > LONGEST {
            self.send_partial_line().await;
        }
    }

    /// Gives out the beginning of a line, up to its last whole character.
    async fn send_partial_line(&mut self) {
        let whole = whole_characters(&self.rest[..self.rest.len().min(LONGEST)]);
        let rest = self.rest.split_off(whole);
        let piece = std::mem::replace(&mut self.rest, rest);
        self.send_piece(&piece).await;
    }

    async fn send_piece(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(piece).into_owned();
        self.ear.keep_line(&text);
        let said = match self.stream {
            OutputStream::Stdout => OutputPiece::Stdout(text),
            OutputStream::Stderr => OutputPiece::Stderr(text),
        };
        // Who has once been too slow is not waited for again until it takes something.
        let patience = if self.lost == 0 { PATIENCE } else { Duration::ZERO };
        let Ok(Ok(mut places)) =
            timeout(patience, self.ear.follower.reserve_many(1 + usize::from(self.lost > 0))).await
        else {
            self.lost += 1; // or nobody follows any more
            return;
        };
        let lost = std::mem::take(&mut self.lost);
        for said in (lost > 0).then_some(OutputPiece::Dropped(lost)).into_iter().chain([said]) {
            if let Some(place) = places.next() {
                place.send(said);
            }
        }
    }
}

/// How many bytes there are before a character that is not whole yet.
fn whole_characters(bytes: &[u8]) -> usize {
    // A character has at most four bytes: what is wrong before the last ones stays wrong.
    let from = bytes.len().saturating_sub(4);
    let cut = (from..bytes.len()).find(|at| {
        std::str::from_utf8(&bytes[*at..]).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    cut.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn out(text: &str) -> OutputPiece {
        OutputPiece::Stdout(text.to_owned())
    }

    #[tokio::test]
    async fn lines_come_whole_and_a_prompt_comes_without_its_end() {
        let (ear, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64);
        let (tell, mut lines) = mpsc::unbounded_channel();
        ear.read_stream(OutputStream::Stdout, pipe, move |line| drop(tell.send(line.to_owned())));
        for piece in ["o", "ne\r\ntw", "o\nwhat? ä"] {
            writer.write_all(piece.as_bytes()).await.unwrap();
        }
        for expect in ["one\r\n", "two\n", "what? ä"] {
            let mut said = String::new();
            // The machine may have paused in the middle of it.
            while said.len() < expect.len() {
                let Some(OutputPiece::Stdout(piece)) = output.recv().await else { panic!("{said:?}") };
                said.push_str(&piece);
            }
            assert_eq!(said, expect);
        }
        drop(writer);
        assert_eq!(output.recv().now_or_ended(&ear).await, None);
        assert_eq!(lines.recv().await.unwrap(), "one");
    }

    trait OrEnded {
        async fn now_or_ended(self, ear: &OutputReader) -> Option<OutputPiece>;
    }

    impl<F: Future<Output = Option<OutputPiece>>> OrEnded for F {
        async fn now_or_ended(self, ear: &OutputReader) -> Option<OutputPiece> {
            ear.wait_for_end(Duration::from_secs(10)).await;
            timeout(Duration::ZERO, self).await.ok().flatten()
        }
    }

    #[tokio::test]
    async fn a_character_that_is_cut_is_put_together_again() {
        let (ear, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64);
        ear.read_stream(OutputStream::Stderr, pipe, |_| {});
        writer.write_all(b"a\xc3").await.unwrap();
        assert_eq!(output.recv().await, Some(OutputPiece::Stderr("a".to_owned())));
        writer.write_all(b"\xa4\n").await.unwrap();
        let mut said = String::new();
        while !said.ends_with('\n') {
            let Some(OutputPiece::Stderr(piece)) = output.recv().await else { panic!("{said:?}") };
            said.push_str(&piece);
        }
        assert_eq!(said, "ä\n");
        assert_eq!(ear.tail(), "a\nä");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_follow_loses_the_newest_and_is_told_and_nobody_waits() {
        let (ear, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64 * 1024);
        ear.read_stream(OutputStream::Stdout, pipe, |_| {});
        for number in 0..WAITING + 500 {
            writer.write_all(format!("{number}\n").as_bytes()).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        drop(writer);
        ear.wait_for_end(Duration::from_secs(60)).await;
        for number in 0..WAITING {
            assert_eq!(output.recv().await, Some(out(&format!("{number}\n"))));
        }
        assert_eq!(output.recv().await, Some(OutputPiece::Dropped(500)));
        assert_eq!(ear.tail().lines().last(), Some(format!("{}", WAITING + 499)).as_deref());
    }

    #[tokio::test]
    async fn a_flood_that_is_followed_comes_whole() {
        let (ear, mut output) = OutputReader::new();
        let (mut writer, pipe) = tokio::io::duplex(64 * 1024);
        ear.read_stream(OutputStream::Stdout, pipe, |_| {});
        drop(ear);
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
