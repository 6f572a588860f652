//! When changes were noticed, by our own clock: the time of a file may be any, as after `cp -p` or an unpacked archive.
//!
//! Does not depend on what has changed.

use std::collections::{BTreeMap, HashMap};

use super::watcher::PathEvent;

/// Paths whose times are kept; with more, all are forgotten, and count as noticed when they are asked for.
const MAX_PATHS: usize = 50_000;

/// The last event of each path, by its path relative to the root.
#[derive(Debug, Default)]
pub(super) struct NoticedTimes(HashMap<Vec<u8>, PathEvent>);

impl NoticedTimes {
    /// Adds events, each with its time.
    pub(crate) fn add_events(&mut self, events: &BTreeMap<Vec<u8>, PathEvent>) {
        if self.0.len() + events.len() > MAX_PATHS {
            self.0.clear();
        }
        // Without a time: an event that was added to read a folder again.
        let timed = events.iter().filter(|(_, event)| event.noticed_at_ms > 0);
        self.0.extend(timed.map(|(path, event)| (path.clone(), *event)));
    }

    /// When the last of the changes of a file was noticed: its own, or the move of a folder above it. One without an event was
    /// found by a scan: it counts as noticed at `now_ms`, from the first time on.
    pub(crate) fn time_of(&mut self, path: &[u8], now_ms: u64) -> u64 {
        let own = self.0.get(path).map(|event| event.noticed_at_ms);
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        let moved = above.filter_map(|folder| self.0.get(folder)).filter(|event| event.moved);
        let last = moved.map(|event| event.noticed_at_ms).chain(own).max();
        last.unwrap_or_else(|| {
            self.0.insert(path.to_vec(), PathEvent { noticed_at_ms: now_ms, ..PathEvent::default() });
            now_ms
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_at_its_last_event_or_the_move_of_its_folder_or_when_it_is_found() {
        let event = |noticed_at_ms, moved| PathEvent { noticed_at_ms, moved, written: false };
        let mut times = NoticedTimes::default();
        let add = |times: &mut NoticedTimes, path: &[u8], event| {
            times.add_events(&[(path.to_vec(), event)].into());
        };
        add(&mut times, b"a/b", event(10, false));
        add(&mut times, b"a/b", event(20, false));
        assert_eq!(times.time_of(b"a/b", 99), 20);
        // A folder whose entries have changed has not moved.
        add(&mut times, b"a", event(30, false));
        assert_eq!(times.time_of(b"a/b", 99), 20);
        add(&mut times, b"a", event(40, true));
        assert_eq!((times.time_of(b"a/b", 99), times.time_of(b"a/c", 99)), (40, 40));
        assert_eq!(times.time_of(b"ab", 50), 50);
        assert_eq!(times.time_of(b"ab", 60), 50, "noticed once");
        add(&mut times, b"ab", event(0, true));
        assert_eq!(times.time_of(b"ab", 60), 50);
    }
}
