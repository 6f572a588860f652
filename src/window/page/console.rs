//! The last words of a window's console: a bounded ring, and what CDP's console events come to.

use std::collections::VecDeque;

use crate::cdp::Event;
use crate::cdp::types::{ConsoleApiCalled, EntryAdded, ExceptionThrown, RemoteObject};

const ENTRIES: usize = 200;
const TEXT_BYTES: usize = 2048;

/// One entry of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Epoch milliseconds.
    pub at: u64,
    /// `log`, `info`, `debug`, `warning`, `error`; `exception` for an uncaught one.
    pub level: String,
    /// At most 2 KiB.
    pub text: String,
}

/// The newest entries; older ones are dropped.
#[derive(Default)]
pub struct Ring(VecDeque<Entry>);

impl Ring {
    pub fn push(&mut self, entry: Entry) {
        if self.0.len() == ENTRIES {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    /// Says in place that events were lost.
    pub fn lost(&mut self, count: u64) {
        let at = self.0.back().map_or(0, |last| last.at);
        self.push(Entry { at, level: "warning".into(), text: format!("… {count} events were lost here") });
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.0.iter().cloned().collect()
    }
}

/// The entry that an event of `Runtime` or `Log` makes.
pub fn entry(event: &Event) -> Option<Entry> {
    if let Some(called) = event.read::<ConsoleApiCalled>("Runtime.consoleAPICalled") {
        let words: Vec<String> = called.args.iter().map(RemoteObject::text).collect();
        return Some(cut(called.timestamp, called.kind, words.join(" ")));
    }
    if let Some(thrown) = event.read::<ExceptionThrown>("Runtime.exceptionThrown") {
        return Some(cut(thrown.timestamp, "exception".into(), thrown.exception_details.text()));
    }
    let entry = event.read::<EntryAdded>("Log.entryAdded")?.entry;
    let place = entry.url.filter(|url| !url.is_empty()).map(|url| format!(" ({url})")).unwrap_or_default();
    Some(cut(entry.timestamp, entry.level, format!("{}: {}{place}", entry.source, entry.text)))
}

fn cut(timestamp: f64, level: String, mut text: String) -> Entry {
    if text.len() > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.push('…');
    }
    Entry { at: timestamp.max(0.0) as u64, level, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::RawValue};

    fn event(method: &str, params: Value) -> Event {
        let params = RawValue::from_string(params.to_string()).unwrap();
        Event { session: None, method: method.into(), params }
    }

    #[test]
    fn events_read_as_a_console_shows_them() {
        let check = |method: &str, params: Value, expect: Option<(&str, &str)>| {
            let found = entry(&event(method, params));
            let found = found.as_ref().map(|entry| (entry.level.as_str(), entry.text.as_str()));
            assert_eq!(found, expect);
        };
        let args = json!([{"type": "string", "value": "n ="}, {"type": "number", "value": 1, "description": "1"},
            {"type": "object", "description": "Array(2)", "objectId": "7"}, {"type": "undefined"},
            {"type": "bigint", "unserializableValue": "10n", "description": "10n"}]);
        let called = json!({"type": "log", "args": args, "timestamp": 12.5, "executionContextId": 1});
        check("Runtime.consoleAPICalled", called, Some(("log", "n = 1 Array(2) undefined 10n")));
        let details = json!({"text": "Uncaught", "exceptionId": 1,
            "exception": {"type": "object", "subtype": "error", "description": "Error: x\n    at y"}});
        let thrown = json!({"timestamp": 1.0, "exceptionDetails": details});
        check("Runtime.exceptionThrown", thrown, Some(("exception", "Error: x\n    at y")));
        let log = json!({"entry": {"source": "network", "level": "error", "text": "404", "timestamp": 1.0, "url": "http://x/y"}});
        check("Log.entryAdded", log, Some(("error", "network: 404 (http://x/y)")));
        check("Runtime.consoleAPICalled", json!({"args": 7}), None);
        check("Page.loadEventFired", json!({}), None);
    }

    #[test]
    fn the_ring_keeps_the_newest_and_cuts_the_long() {
        let mut ring = Ring::default();
        for number in 0..ENTRIES + 5 {
            ring.push(cut(number as f64, "log".into(), format!("entry {number}")));
        }
        let entries = ring.entries();
        assert_eq!((entries.len(), entries[0].text.as_str(), entries[0].at), (ENTRIES, "entry 5", 5));
        ring.lost(3);
        assert_eq!(ring.entries().last().unwrap().text, "… 3 events were lost here");
        let long = cut(-1.0, "log".into(), "ü".repeat(TEXT_BYTES));
        assert_eq!((long.at, long.text.chars().count()), (0, TEXT_BYTES / 2 + 1));
    }
}
