//! A bounded ring of entries that readers follow with a cursor: no entry is read twice, and what was dropped is
//! counted.
//!
//! A cursor is the number of the last entry that was read. Numbers start at the creation time of the ring in µs, so
//! that a cursor of an earlier supervisor is recognised. Does not depend on what its entries mean.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// An entry of a ring.
pub trait RingEntry: Clone {
    /// Its approximate size in memory.
    fn bytes(&self) -> usize;
    /// Whether it matches the reader's filter, which is not empty and lower case.
    fn matches(&self, filter: &str) -> bool;
}

/// The newest entries; older ones are dropped and counted.
pub struct Ring<T> {
    entries: VecDeque<T>,
    bytes: usize,
    most: RingLimits,
    /// The number of the first entry that ever was.
    first: u64,
    /// The number of the next entry.
    next: u64,
}

/// How much a ring holds.
#[derive(Clone, Copy, Debug)]
pub struct RingLimits {
    /// Beyond this many, the oldest are dropped.
    pub entries: usize,
    /// The sum of [`RingEntry::bytes`]; the newest entry stays even if it alone is larger.
    pub bytes: usize,
}

/// A read request.
#[derive(Clone, Debug)]
pub struct RingQuery {
    /// Only what is newer; without it, the newest.
    pub since: Option<u64>,
    /// How many entries are returned, at most.
    pub limit: usize,
    /// Entries beyond it are left out, but never the first one.
    pub max_bytes: usize,
    /// Made lower case for [`RingEntry::matches`]; `None` and the empty text select every entry.
    pub filter: Option<String>,
}

/// All entries.
impl Default for RingQuery {
    fn default() -> RingQuery {
        RingQuery { since: None, limit: usize::MAX, max_bytes: usize::MAX, filter: None }
    }
}

/// The result of a read, oldest entry first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingExtract<T> {
    /// Those that match, within the limits of the query.
    pub entries: Vec<T>,
    /// `since` of the next read.
    pub cursor: u64,
    /// Entries after `since` that are no longer there; whether they matched the filter is not known.
    pub dropped: u64,
    /// Entries that the limit has left out: newer ones with `since`, older ones without.
    pub more: u64,
    /// `since` is not of this ring: entries may be read again.
    pub foreign: bool,
}

impl<T: RingEntry> Ring<T> {
    /// An empty ring.
    pub fn new(most: RingLimits) -> Ring<T> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(since.as_micros()).unwrap_or(1).max(1);
        Ring { entries: VecDeque::new(), bytes: 0, most, first, next: first }
    }

    /// Adds an entry, and drops the oldest ones beyond the limits.
    pub fn push(&mut self, entry: T) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        self.next += 1;
        while self.entries.len() > self.most.entries || (self.bytes > self.most.bytes && self.entries.len() > 1) {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// The cursor behind the newest entry.
    pub fn cursor(&self) -> u64 {
        self.next - 1
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.entries.iter()
    }

    /// The matching entries after `since`, or the newest ones.
    pub fn read(&self, query: &RingQuery) -> RingExtract<T> {
        self.read_where(query, |_| true)
    }

    /// As [`Ring::read`], of the entries that `selects` accepts.
    pub fn read_where(&self, query: &RingQuery, selects: impl Fn(&T) -> bool) -> RingExtract<T> {
        let filter = query.filter.as_deref().filter(|filter| !filter.is_empty()).map(str::to_lowercase);
        let matches = |entry: &&T| selects(entry) && filter.as_deref().is_none_or(|filter| entry.matches(filter));
        match query.since {
            None => self.read_newest(query, matches),
            Some(since) => self.read_after(since, query, matches),
        }
    }

    fn read_newest(&self, query: &RingQuery, matches: impl Fn(&&T) -> bool) -> RingExtract<T> {
        let mut matching = self.entries.iter().rev().filter(matches).peekable();
        let (mut entries, mut bytes): (Vec<T>, usize) = (Vec::new(), 0);
        while let Some(entry) = matching.next_if(|entry| {
            entries.len() < query.limit && (entries.is_empty() || bytes + entry.bytes() <= query.max_bytes)
        }) {
            bytes += entry.bytes();
            entries.push(entry.clone());
        }
        entries.reverse();
        RingExtract { entries, cursor: self.next - 1, dropped: 0, more: matching.count() as u64, foreign: false }
    }

    fn read_after(&self, since: u64, query: &RingQuery, matches: impl Fn(&&T) -> bool) -> RingExtract<T> {
        let foreign = since < self.first - 1 || since >= self.next;
        let since = if foreign { self.first - 1 } else { since };
        let oldest = self.next - self.entries.len() as u64;
        let from = oldest.max(since + 1);
        let mut numbered = (from..).zip(self.entries.iter().skip((from - oldest) as usize));
        let (mut entries, mut bytes, mut cursor) = (Vec::new(), 0, self.next - 1);
        for (number, entry) in numbered.by_ref().filter(|(_, entry)| matches(entry)) {
            bytes += entry.bytes();
            entries.push(entry.clone());
            if entries.len() >= query.limit || bytes >= query.max_bytes {
                cursor = number;
                break;
            }
        }
        let more = numbered.filter(|(_, entry)| matches(entry)).count() as u64;
        // No matching entry is left: the cursor passes the rest.
        let cursor = if more == 0 { self.next - 1 } else { cursor };
        RingExtract { entries, cursor, dropped: from - (since + 1), more, foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RingEntry for String {
        fn bytes(&self) -> usize {
            self.len()
        }

        fn matches(&self, filter: &str) -> bool {
            self.contains(filter)
        }
    }

    fn ring(entries: usize, bytes: usize, count: usize) -> Ring<String> {
        let mut ring = Ring::new(RingLimits { entries, bytes });
        (0..count).for_each(|number| ring.push(format!("entry {number}")));
        ring
    }

    fn query(since: Option<u64>, limit: usize, filter: &str) -> RingQuery {
        RingQuery { since, limit, filter: Some(filter.to_owned()), ..RingQuery::default() }
    }

    #[test]
    fn a_read_is_bounded_by_bytes_and_has_one_entry_at_least() {
        let ring = ring(100, 1000, 10);
        let read = |since, max_bytes| {
            let extract = ring.read(&RingQuery { max_bytes, ..query(since, 100, "") });
            (extract.entries.len(), extract.more, extract.entries[0].clone(), extract.cursor)
        };
        let first = ring.first - 1;
        assert_eq!(read(None, 21), (3, 7, "entry 7".to_owned(), ring.next - 1));
        assert_eq!(read(None, 0), (1, 9, "entry 9".to_owned(), ring.next - 1));
        assert_eq!(read(Some(first), 21), (3, 7, "entry 0".to_owned(), first + 3));
        assert_eq!(read(Some(first + 3), 0), (1, 6, "entry 3".to_owned(), first + 4));
    }

    #[test]
    fn the_newest_stay_within_entries_and_bytes() {
        for (entries, bytes, expect) in [(3, 1000, 3), (100, 24, 3), (100, 0, 1)] {
            let kept: Vec<String> = ring(entries, bytes, 10).iter().cloned().collect();
            assert_eq!(kept.len(), expect, "{entries} {bytes}");
            assert_eq!(kept.last().unwrap(), "entry 9");
        }
    }

    #[test]
    fn a_reader_who_follows_the_cursor_gets_each_entry_once() {
        for filter in ["", "entry", "1"] {
            let mut ring = ring(100, 10_000, 0);
            let (mut cursor, mut seen) = (ring.read(&query(None, 10, filter)).cursor, Vec::new());
            for round in 0..7 {
                (0..round * 3).for_each(|number| ring.push(format!("entry {round}.{number}")));
                loop {
                    let part = ring.read(&query(Some(cursor), 4, filter));
                    assert_eq!((part.dropped, part.foreign), (0, false));
                    cursor = part.cursor;
                    seen.extend(part.entries);
                    if part.more == 0 {
                        break;
                    }
                }
            }
            let all: Vec<String> = ring.iter().filter(|it| it.contains(filter)).cloned().collect();
            assert_eq!(seen, all, "{filter:?}");
        }
    }

    #[test]
    fn what_a_slow_reader_has_missed_is_counted() {
        let mut ring = ring(5, 10_000, 3);
        let cursor = ring.read(&query(None, 10, "")).cursor;
        (3..13).for_each(|number| ring.push(format!("entry {number}")));
        let part = ring.read(&query(Some(cursor), 2, ""));
        assert_eq!((part.entries.len(), part.dropped, part.more), (2, 5, 3));
        let rest = ring.read(&query(Some(part.cursor), 10, ""));
        assert_eq!((rest.entries.len(), rest.dropped, rest.more), (3, 0, 0));
    }

    #[test]
    fn a_cursor_of_another_ring_is_reported() {
        let ring = ring(5, 10_000, 3);
        for since in [0, 7, u64::MAX] {
            let part = ring.read(&query(Some(since), 10, ""));
            assert_eq!((part.entries.len(), part.dropped, part.foreign), (3, 0, true), "{since}");
        }
    }

    #[test]
    fn without_a_cursor_the_newest_are_returned() {
        let part = ring(20, 10_000, 10).read(&query(None, 3, ""));
        assert_eq!(part.entries, ["entry 7", "entry 8", "entry 9"]);
        assert_eq!((part.more, part.dropped), (7, 0));
    }
}
