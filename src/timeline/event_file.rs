//! `timeline.jsonl`: one event in each line, numbered. At most [`MAX_BYTES`], and as much again in `timeline.old.jsonl`.
//!
//! Several processes append to it: a lock file serialises them, and so the numbers rise. What a killed process has left of a
//! line is removed by the next one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::file_lock::lock_within;

use crate::vocabulary::{TimelineEvent, TimelineKind};

const NAME: &str = "timeline.jsonl";
const OLD_NAME: &str = "timeline.old.jsonl";
const LOCK: &str = "timeline.lock";
/// Of each of the two files.
const MAX_BYTES: u64 = 1 << 20;
/// Of one line: its texts are clipped before.
const MAX_LINE: u64 = 8 << 10;
/// How long a reader waits for the lock: an appender holds it for microseconds.
const READ_LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Which events to read.
#[derive(Clone, Debug)]
pub struct TimelineQuery {
    /// The events after that number, the oldest first; `None`: the newest.
    pub since: Option<u64>,
    /// At most that many.
    pub limit: usize,
    /// Only of these kinds; empty: of all.
    pub kinds: Vec<TimelineKind>,
}

/// What a query has found, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineExtract {
    pub events: Vec<TimelineEvent>,
    /// The number of the newest event that was looked at.
    pub cursor: u64,
    /// How many events after `since` are no longer kept.
    pub dropped: u64,
    /// How many further ones the limit has left out: newer ones with `since`, older ones without.
    pub more: u64,
}

/// The files of one workspace, open for appending.
pub(super) struct EventFile {
    folder: PathBuf,
    lock: File,
}

impl EventFile {
    pub(super) fn open(folder: &Path) -> io::Result<EventFile> {
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(LOCK))?;
        Ok(EventFile { folder: folder.to_owned(), lock })
    }

    /// Appends an event, and gives it its number, which is returned. Errors: also another process that keeps the lock so long.
    pub(super) fn append(&mut self, event: &mut TimelineEvent, within: Duration) -> io::Result<u64> {
        let _locked = self.lock(within)?;
        let path = self.folder.join(NAME);
        let open = || OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path);
        let mut file = open()?;
        let (mut end, mut last) = find_last(&file)?;
        if last.is_none() {
            // Just rotated, or the very first.
            last = File::open(self.folder.join(OLD_NAME)).ok().and_then(|old| find_last(&old).ok()?.1);
        }
        if end >= MAX_BYTES {
            std::fs::rename(&path, self.folder.join(OLD_NAME))?;
            (file, end) = (open()?, 0);
        }
        event.number = last.unwrap_or(0).saturating_add(1);
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        if file.metadata()?.len() != end {
            file.set_len(end)?;
        }
        if let Err(error) = file.write_all(&line) {
            // A full disk may take a part of it.
            let _ = file.set_len(end);
            return Err(error);
        }
        Ok(event.number)
    }

    /// Reads what a query asks for. Lines that cannot be read are left out.
    pub(super) fn read(&self, query: &TimelineQuery) -> io::Result<TimelineExtract> {
        let mut text = Vec::new();
        {
            let _locked = self.lock(READ_LOCK_TIMEOUT)?;
            let newest = read_file(&self.folder.join(NAME))?;
            let has_all = query.since.is_some_and(|since| first_number(&newest).is_some_and(|it| it <= since + 1));
            if !has_all {
                text = read_file(&self.folder.join(OLD_NAME))?;
            }
            text.extend(newest);
        }
        Ok(select_events(&text, query))
    }

    fn lock(&self, within: Duration) -> io::Result<Locked<'_>> {
        lock_within(&self.lock, within)?;
        Ok(Locked(&self.lock))
    }
}

/// Unlocks on drop.
struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAX_BYTES + MAX_LINE).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(bytes)
}

/// Where the last whole line ends, and its number; no number: there is no such line, or it cannot be read.
fn find_last(file: &File) -> io::Result<(u64, Option<u64>)> {
    let length = (&mut &*file).seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(2 * MAX_LINE);
    let mut tail = vec![0; usize::try_from(length - start).unwrap_or(0)];
    file.read_exact_at(&mut tail, start)?;
    let Some(end) = memchr::memrchr(b'\n', &tail) else { return Ok((start, None)) };
    let line = &tail[memchr::memrchr(b'\n', &tail[..end]).map_or(0, |at| at + 1)..end];
    Ok((start + end as u64 + 1, number_of(line)))
}

fn number_of(line: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        number: u64,
    }
    serde_json::from_slice::<Numbered>(line).ok().map(|it| it.number)
}

fn first_number(text: &[u8]) -> Option<u64> {
    number_of(text.split(|byte| *byte == b'\n').next()?)
}

fn select_events(text: &[u8], query: &TimelineQuery) -> TimelineExtract {
    let lines = || text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let oldest = lines().find_map(number_of);
    let newest = text.rsplit(|byte| *byte == b'\n').find_map(number_of).unwrap_or(0);
    let is_wanted = |event: &TimelineEvent| query.kinds.is_empty() || query.kinds.contains(&event.kind);
    let parsed = lines().filter_map(|line| serde_json::from_slice::<TimelineEvent>(line).ok());
    // A cursor of a timeline that has been removed since.
    let since = query.since.map(|since| if since > newest { 0 } else { since });
    let mut events: Vec<TimelineEvent> =
        parsed.filter(|event| since.is_none_or(|since| event.number > since)).filter(is_wanted).collect();
    let over = events.len().saturating_sub(query.limit);
    let mut cursor = newest;
    match since {
        Some(_) if over > 0 => {
            events.truncate(query.limit);
            cursor = events.last().map_or(cursor, |event| event.number);
        }
        _ => drop(events.drain(..over)),
    }
    let kept_from = oldest.unwrap_or(newest + 1);
    let dropped = since.map_or(0, |since| kept_from.saturating_sub(since + 1));
    TimelineExtract { events, cursor, dropped, more: over as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: TimelineKind, text: &str) -> TimelineEvent {
        let text = text.to_owned();
        let (number, session_id, place, by, took_ms, failed) = (0, None, None, None, None, None);
        TimelineEvent { number, at: 7, kind, session_id, text, place, by, took_ms, failed }
    }

    fn query(since: Option<u64>, limit: usize) -> TimelineQuery {
        TimelineQuery { since, limit, kinds: Vec::new() }
    }

    fn numbers(extract: &TimelineExtract) -> Vec<u64> {
        extract.events.iter().map(|event| event.number).collect()
    }

    #[test]
    fn events_are_numbered_across_openings_and_read_by_cursor_kind_and_limit() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=4 {
            let kind = if number == 3 { TimelineKind::Built } else { TimelineKind::Edited };
            let appended = EventFile::open(folder.path()).unwrap().append(&mut event(kind, "a\nb"), Duration::ZERO);
            assert_eq!(appended.unwrap(), number);
        }
        let file = EventFile::open(folder.path()).unwrap();
        let check = |query: TimelineQuery, expect: &[u64], (cursor, dropped, more): (u64, u64, u64)| {
            let found = file.read(&query).unwrap();
            assert_eq!(
                (numbers(&found), found.cursor, found.dropped, found.more),
                (expect.into(), cursor, dropped, more)
            );
        };
        check(query(None, 2), &[3, 4], (4, 0, 2));
        check(query(Some(1), 2), &[2, 3], (3, 0, 1));
        check(query(Some(4), 2), &[], (4, 0, 0));
        check(query(Some(99), 9), &[1, 2, 3, 4], (4, 0, 0));
        check(TimelineQuery { kinds: vec![TimelineKind::Built], ..query(Some(0), 9) }, &[3], (4, 0, 0));
    }

    #[test]
    fn half_a_line_is_removed_and_the_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = EventFile::open(folder.path()).unwrap();
        file.append(&mut event(TimelineKind::Edited, "a"), Duration::ZERO).unwrap();
        let mut raw = OpenOptions::new().append(true).open(folder.path().join(NAME)).unwrap();
        raw.write_all(br#"{"number":2,"at":1,"ki"#).unwrap();
        assert_eq!(numbers(&file.read(&query(Some(0), 9)).unwrap()), [1]);
        assert_eq!(file.append(&mut event(TimelineKind::Edited, "b"), Duration::ZERO).unwrap(), 2);
        assert_eq!(numbers(&file.read(&query(Some(0), 9)).unwrap()), [1, 2]);
    }

    #[test]
    fn it_is_bounded_and_says_what_it_has_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = EventFile::open(folder.path()).unwrap();
        let text = "x".repeat(4 << 10);
        let count = 3 * MAX_BYTES / (4 << 10);
        for _ in 0..count {
            file.append(&mut event(TimelineKind::Edited, &text), Duration::ZERO).unwrap();
        }
        let sizes = [NAME, OLD_NAME].map(|name| folder.path().join(name).metadata().unwrap().len());
        assert!(sizes.iter().all(|size| *size <= MAX_BYTES + MAX_LINE), "{sizes:?}");
        let all = file.read(&query(Some(0), usize::MAX)).unwrap();
        assert_eq!((all.cursor, all.events.last().unwrap().number), (count, count));
        assert_eq!(all.dropped, all.events[0].number - 1);
        assert!(all.dropped > 0 && all.events.len() as u64 == count - all.dropped);
    }
}
