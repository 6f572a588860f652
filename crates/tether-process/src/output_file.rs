//! The output file of a started program: its tail, waiting for a line in it, keeping it small.
//!
//! Files may be huge, may be truncated while they are read, and need not be UTF-8.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// How much of a file's end is looked at for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;
/// How much of a file is searched at a time for a line, in chunks of 16 KiB.
const TURN_CHUNKS: usize = 8;
/// A longer line is cut: no awaited line is that long.
const LINE_BYTES: usize = 64 * 1024;

/// The last `lines` lines of the file, from at most its last 64 KiB. Bytes that are not UTF-8 become `�`.
pub fn read_tail(path: &Path, lines: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(last_lines(&String::from_utf8_lossy(&bytes), lines, start > 0))
}

/// The last lines of `text`; its first line is dropped when `cut`: it is then the rest of a longer line.
pub(super) fn last_lines(text: &str, lines: usize, cut: bool) -> String {
    let text = text.trim_end();
    let mut all: Vec<&str> = text.lines().collect();
    if cut && all.len() > 1 {
        all.remove(0);
    }
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Waits until a line from byte `from` on gives `find` a value, and returns that value. Lines come without
/// their ends; an unfinished last line is not offered. Never returns by itself: race it with exit and deadline.
pub async fn wait_for_line<T>(path: &Path, from: u64, mut find: impl FnMut(&str) -> Option<T>) -> io::Result<T> {
    let mut lines = LineFollower { file: File::open(path)?, position: from, line: Vec::new() };
    watch_checks(path, move || lines.find_line(&mut find)).await
}

/// What a check of a file has found.
enum FileCheck<T> {
    Found(T),
    /// It must be checked again at once: it had no time for all that is there.
    Unfinished,
    /// It is to be checked after the next change.
    Nothing,
}

struct LineFollower {
    file: File,
    position: u64,
    /// The unfinished line read so far.
    line: Vec<u8>,
}

impl LineFollower {
    /// Reads what is there, but no more than [`TURN_CHUNKS`]: other tasks of this thread wait meanwhile.
    fn find_line<T>(&mut self, find: &mut impl FnMut(&str) -> Option<T>) -> io::Result<FileCheck<T>> {
        if self.file.metadata()?.len() < self.position {
            self.position = 0; // it was truncated: what is there now is new
            self.line.clear();
        }
        let mut chunk = [0; 16 * 1024];
        for _ in 0..TURN_CHUNKS {
            let count = self.file.read_at(&mut chunk, self.position)?;
            if count == 0 {
                return Ok(FileCheck::Nothing);
            }
            for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
                self.position += part.len() as u64;
                if let Some(found) = complete_line(&mut self.line, part).and_then(|line| find(&line)) {
                    return Ok(FileCheck::Found(found));
                }
            }
        }
        Ok(FileCheck::Unfinished)
    }
}

/// Appends a part of a line to `open`, of which at most 64 KiB are kept; returns the line, without its end, once the
/// part ends it.
pub(super) fn complete_line(open: &mut Vec<u8>, part: &[u8]) -> Option<String> {
    let room = LINE_BYTES.saturating_sub(open.len());
    open.extend(&part[..part.len().min(room)]);
    let line = part.ends_with(b"\n").then(|| std::mem::take(open))?;
    Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

/// Runs `check` now and after each change of `watched` (a file, or the entries of a folder) until it finds
/// something. The kernel reports the changes; where no watch can be made the file is polled every 50 ms.
pub async fn watch_until<T>(watched: &Path, mut check: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    watch_checks(watched, move || Ok(check()?.map_or(FileCheck::Nothing, FileCheck::Found))).await
}

async fn watch_checks<T>(watched: &Path, mut check: impl FnMut() -> io::Result<FileCheck<T>>) -> io::Result<T> {
    let changed = Arc::new(Notify::new());
    let _watch = start_watch(watched, &changed)?;
    loop {
        // The watch stands, so a change during the check leaves a permit behind and none is missed.
        match check()? {
            FileCheck::Found(found) => return Ok(found),
            FileCheck::Unfinished => tokio::task::yield_now().await,
            FileCheck::Nothing => changed.notified().await,
        }
    }
}

fn start_watch(path: &Path, changed: &Arc<Notify>) -> io::Result<Box<dyn Watcher + Send>> {
    let on_event = || {
        let changed = changed.clone();
        move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| is_content_change(event.kind)) {
                changed.notify_one();
            }
        }
    };
    let kernel = RecommendedWatcher::new(on_event(), Config::default()).and_then(|mut watcher| {
        watcher.watch(path, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    if let Ok(watcher) = kernel {
        return Ok(Box::new(watcher));
    }
    let often = Config::default().with_poll_interval(Duration::from_millis(50));
    let mut watcher = PollWatcher::new(on_event(), often).map_err(io::Error::other)?;
    watcher.watch(path, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
    Ok(Box::new(watcher))
}

/// The watcher reports opens too, and a check that opens the file would trigger itself for ever.
fn is_content_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

/// Cuts a file that has grown beyond `limit` bytes down to its last `keep` bytes, in place, so that a program that
/// appends to it goes on. What it writes in that very moment may be lost. Returns whether it was cut.
pub fn truncate_to_tail(path: &Path, limit: u64, keep: u64) -> io::Result<bool> {
    // The close of a file that was open for writing is a change to those who watch it.
    if std::fs::metadata(path)?.len() <= limit {
        return Ok(false);
    }
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let keep = keep.min(length);
    let mut kept = vec![0; usize::try_from(keep).map_err(io::Error::other)?];
    file.read_exact_at(&mut kept, length - keep)?;
    file.set_len(0)?;
    (&file).write_all(&kept)?;
    Ok(true)
}

/// Trims a file with [`truncate_to_tail`] whenever it has grown too long. Ends only if it cannot be watched.
pub async fn keep_trimmed(path: PathBuf, limit: u64, keep: u64) {
    // An error leaves the file longer, and the next write to it is looked at again.
    let trim = || truncate_to_tail(&path, limit, keep).map_or(Ok(None), |_| Ok(None::<()>));
    let _ = watch_until(&path, trim).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_in_lines_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let check = |content: &[u8], lines: usize, expect: &str| {
            let path = folder.path().join("log");
            std::fs::write(&path, content).unwrap();
            assert_eq!(read_tail(&path, lines).unwrap(), expect);
        };
        check(b"", 3, "");
        check(b"one", 3, "one");
        check(b"one\ntwo\nthree\nfour\n", 2, "three\nfour");
        check(b"bad \xff byte\r\nend\n\n", 9, "bad \u{fffd} byte\nend");
        let long = [b"x".repeat(100_000), b"\nlast\n".to_vec()].concat();
        check(&long, 5, "last");
        check(&b"y".repeat(100_000), 1, &"y".repeat(65536));
    }

    #[test]
    fn the_tail_of_a_huge_file_is_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge");
        let mut file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap(); // sparse; to read all of it takes minutes
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\nthe end\n").unwrap();
        let started = std::time::Instant::now();
        assert_eq!(read_tail(&path, 1).unwrap(), "the end");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_line_is_found_before_and_after_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "old up 1\nnoise\nhalf of up").unwrap();
        let port = |line: &str| line.strip_prefix("up ").map(str::to_owned);
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { wait_for_line(&path, 0, port).await.unwrap() }
        });
        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        for piece in ["\n", "u", "p 4", "2\r\n", "up 43\n"] {
            tokio::task::yield_now().await;
            writer.write_all(piece.as_bytes()).unwrap();
        }
        assert_eq!(waiting.await.unwrap(), "42");
        assert_eq!(wait_for_line(&path, 0, port).await.unwrap(), "42");
        let past = std::fs::metadata(&path).unwrap().len() - 6;
        assert_eq!(wait_for_line(&path, past, port).await.unwrap(), "43");
    }

    #[tokio::test]
    async fn reading_a_file_and_a_look_at_its_length_are_no_change_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("port");
        std::fs::write(&path, "half").unwrap();
        let mut checks = 0;
        let check = || {
            checks += 1;
            assert!(!truncate_to_tail(&path, 100, 10)?);
            Ok(std::fs::read_to_string(&path).ok().filter(|text| text == "whole"))
        };
        // Nothing changes: a check that wakes itself is made thousands of times.
        let waited = tokio::time::timeout(Duration::from_millis(200), watch_until(folder.path(), check)).await;
        assert!(waited.is_err(), "{waited:?}");
        assert_eq!(checks, 1);
    }

    #[tokio::test]
    async fn following_survives_a_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "noise ".repeat(1000)).unwrap();
        let waiting = tokio::spawn({
            let path = path.clone();
            async move { wait_for_line(&path, 0, |line| (line == "up").then_some(())).await.unwrap() }
        });
        tokio::task::yield_now().await;
        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(truncate_to_tail(&path, 100, 10).unwrap());
        writer.write_all(b"\nup\n").unwrap();
        waiting.await.unwrap();
        assert!(!truncate_to_tail(&path, 100, 10).unwrap());
        assert!(std::fs::metadata(&path).unwrap().len() < 100);
    }
}
