//! The output, the monitor events and the loaded sources of a session, in bounded rings with cursors.
//!
//! Monitor events never stop the program: threads, modules, loaded sources, breakpoints that were bound, classes, contention
//! for monitors. Each kind of which there may be thousands is in a ring of its own, and pushes no other out.

use std::sync::Mutex;

use tether_base::clipped_text::{clip_bytes, first_bytes};
use tether_base::clock::now_ms;
use tether_base::ring::{Ring, RingEntry, RingExtract, RingLimits, RingQuery};
use tether_base::sync::lock;
use tether_dap::RawEvent;
use tether_dap::types::{
    BreakpointEvent, LoadedSourceEvent, ModuleEvent, MonitorEvent, OutputEvent, ProcessEvent, ThreadEvent,
};
use tokio::sync::watch;

use super::condition_failures::ConditionFailures;
use super::unread_maps::UnreadMaps;
use crate::adapters::Quirks;

const OUTPUT: RingLimits = RingLimits { entries: 20_000, bytes: 4 << 20 };
const EVENTS: RingLimits = RingLimits { entries: 5_000, bytes: 1 << 20 };
/// The kind of an event about a source file that the program has loaded.
const LOADED_SOURCE: &str = "loadedSource";
/// The kinds of which there may be thousands: each is in a ring, with cursors, of its own, and is read alone.
pub const NOISY_KINDS: [&str; 7] = [
    LOADED_SOURCE,
    "classPrepare",
    "classUnload",
    "monitorContended",
    "monitorAcquired",
    "monitorWait",
    "monitorWaited",
];
/// The longest piece of output that is kept whole, in bytes.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// The longest text of an event, in bytes: more than a path.
const MAX_EVENT_BYTES: usize = 5 << 10;
/// How many notices wait for the next result; a program may cause any number of them.
const MAX_NOTICES: usize = 20;
/// The longest notice, in bytes.
const MAX_NOTICE_BYTES: usize = 2 << 10;

/// A piece of output, or a monitor event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Epoch ms.
    pub at: u64,
    /// Of output its category: `stdout`, `stderr`, `console`, `important`; of an event: `threadStarted`, `threadEnded`,
    /// `targetStarted`, `targetEnded`, `module`, `loadedSource`, `breakpoint`, `process`, `lost`, …
    pub kind: String,
    /// Of output as the adapter sent it, with its line breaks.
    pub text: String,
    /// Its thread, if it has one.
    pub thread: Option<i64>,
}

impl LoggedEvent {
    fn new(kind: &str, text: String, thread: Option<i64>) -> LoggedEvent {
        LoggedEvent { at: now_ms(), kind: kind.to_owned(), text, thread }
    }
}

impl RingEntry for LoggedEvent {
    fn bytes(&self) -> usize {
        self.text.len().saturating_add(self.kind.len()).saturating_add(64)
    }

    fn matches(&self, filter: &str) -> bool {
        self.kind.to_lowercase().contains(filter) || self.text.to_lowercase().contains(filter)
    }
}

/// The first notices since the last result, and how many came after them.
#[derive(Clone, Default)]
struct PendingNotices {
    first: Vec<String>,
    others: u64,
}

impl PendingNotices {
    fn push(&mut self, text: &str) {
        if self.first.len() >= MAX_NOTICES {
            self.others = self.others.saturating_add(1);
            return;
        }
        self.first.push(clip_bytes(text, MAX_NOTICE_BYTES));
    }

    fn into_texts(mut self) -> Vec<String> {
        if self.others > 0 {
            self.first.push(format!("{} more notices: `tether debug events` lists them", self.others));
        }
        self.first
    }
}

/// The rings of one session.
pub struct EventLog {
    output: Mutex<Ring<LoggedEvent>>,
    events: Mutex<Ring<LoggedEvent>>,
    /// One for each of [`NOISY_KINDS`].
    noisy_events: [Mutex<Ring<LoggedEvent>>; NOISY_KINDS.len()],
    /// Rises with each piece of output.
    output_changed: watch::Sender<u64>,
    /// To be reported with the next result about the session.
    notices: Mutex<PendingNotices>,
    condition_failures: Mutex<ConditionFailures>,
    unread_maps: Mutex<UnreadMaps>,
}

impl Default for EventLog {
    fn default() -> Self {
        EventLog {
            output: Mutex::new(Ring::new(OUTPUT)),
            events: Mutex::new(Ring::new(EVENTS)),
            noisy_events: NOISY_KINDS.map(|_| Mutex::new(Ring::new(EVENTS))),
            output_changed: watch::Sender::default(),
            notices: Mutex::default(),
            condition_failures: Mutex::default(),
            unread_maps: Mutex::default(),
        }
    }
}

impl EventLog {
    /// Reads what an adapter reports in its output only: failed conditions, source maps that were not read.
    pub fn read_reports(&self, quirks: &Quirks) {
        lock(&self.condition_failures).add_reports(quirks.condition_reports);
        lock(&self.unread_maps).add_words(quirks.map_report);
    }

    /// Which source maps the adapter says it has not read, and why.
    pub fn unread_maps(&self) -> Option<String> {
        lock(&self.unread_maps).describe()
    }

    /// Reads output from a cursor on.
    pub fn read_output(&self, query: &RingQuery) -> RingExtract<LoggedEvent> {
        lock(&self.output).read(query)
    }

    /// Reads events of these kinds from a cursor on; without kinds all but [`NOISY_KINDS`], each of which stands alone: it
    /// has cursors of its own.
    pub fn read_events(&self, query: &RingQuery, kinds: &[String]) -> RingExtract<LoggedEvent> {
        let ring = kinds.iter().find_map(|kind| self.noisy_ring(kind)).unwrap_or(&self.events);
        lock(ring).read_where(query, |event| kinds.is_empty() || kinds.contains(&event.kind))
    }

    /// Whether the adapter has reported that the program loaded this source file, and the report is still kept.
    pub fn has_loaded_source(&self, path: &str) -> bool {
        let is_of = |event: &LoggedEvent| event.text.split_once(' ').is_some_and(|it| it.1 == path);
        self.noisy_ring(LOADED_SOURCE).is_some_and(|ring| lock(ring).iter().any(is_of))
    }

    fn noisy_ring(&self, kind: &str) -> Option<&Mutex<Ring<LoggedEvent>>> {
        NOISY_KINDS.iter().zip(&self.noisy_events).find(|(it, _)| **it == kind).map(|(_, ring)| ring)
    }

    fn push_logged(&self, mut event: LoggedEvent) {
        for text in [&mut event.kind, &mut event.text] {
            text.truncate(text.floor_char_boundary(MAX_EVENT_BYTES));
        }
        lock(self.noisy_ring(&event.kind).unwrap_or(&self.events)).push(event);
    }

    /// A count that rises with each piece of output.
    pub fn watch_output(&self) -> watch::Receiver<u64> {
        self.output_changed.subscribe()
    }

    /// The cursor behind the newest output.
    pub fn output_cursor(&self) -> u64 {
        lock(&self.output).cursor()
    }

    /// Adds output of the program or its adapter; a long piece is cut.
    pub fn push_output(&self, category: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let kept = first_bytes(text, MAX_ENTRY_BYTES);
        let left_out = text.len().saturating_sub(kept.len());
        let note = if left_out == 0 { String::new() } else { format!("… ({left_out} bytes left out)\n") };
        let text = format!("{kept}{note}");
        lock(&self.output).push(LoggedEvent::new(category, text, None));
        self.output_changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Adds an event.
    pub fn push_event(&self, kind: &str, text: String) {
        self.push_logged(LoggedEvent::new(kind, text, None));
    }

    /// As [`EventLog::push_event`], and reports it with the next result about the session.
    pub fn push_notice(&self, kind: &str, text: String) {
        lock(&self.notices).push(&text);
        self.push_event(kind, text);
    }

    /// Removes and returns the notices that have not been reported yet.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices)).into_texts()
    }

    /// The notices that have not been reported yet.
    pub fn pending_notices(&self) -> Vec<String> {
        lock(&self.notices).clone().into_texts()
    }

    /// Why the condition of a breakpoint could not be evaluated since that output cursor, as the adapter reports it.
    /// `was_hit`: the program is stopped at the breakpoint.
    pub fn condition_failure(&self, condition: &str, since: u64, was_hit: bool) -> Option<String> {
        lock(&self.condition_failures).find_reason(condition, since, was_hit)
    }

    /// As [`EventLog::condition_failure`], of a condition that the adapter does not name.
    pub fn unnamed_condition_failure(&self, since: u64) -> Option<String> {
        lock(&self.condition_failures).find_unnamed_reason(since)
    }

    /// Records an event if it is output or a monitor event.
    pub(in crate::debug) fn record_event(&self, event: &RawEvent) {
        if let Some(output) = event.read_body::<OutputEvent>() {
            let category = output.category.as_deref().unwrap_or("console");
            let is_own = matches!(category, "stdout" | "telemetry");
            let is_repeated = !is_own && {
                lock(&self.unread_maps).record_output(&output.output);
                let at = self.output_cursor();
                lock(&self.condition_failures).record_output(at, category, &output)
            };
            if category != "telemetry" && !is_repeated {
                self.push_output(category, &output.output);
            }
        } else if let Some(thread) = event.read_body::<ThreadEvent>() {
            let kind = if thread.reason == "started" { "threadStarted" } else { "threadEnded" };
            let text = format!("thread {}", thread.thread_id);
            self.push_logged(LoggedEvent::new(kind, text, Some(thread.thread_id)));
        } else if let Some(module) = event.read_body::<ModuleEvent>() {
            let name = module.module.path.unwrap_or(module.module.name);
            self.push_event("module", format!("{} {name}", module.reason));
        } else if let Some(loaded) = event.read_body::<LoadedSourceEvent>() {
            let source = loaded.source;
            let name = source.path.or(source.name).unwrap_or_default();
            let text = format!("{} {name}", loaded.reason);
            self.push_event(LOADED_SOURCE, text);
        } else if let Some(MonitorEvent { kind, text, thread_id }) = event.read_body::<MonitorEvent>() {
            self.push_logged(LoggedEvent::new(&kind, text, thread_id));
        } else if let Some(changed) = event.read_body::<BreakpointEvent>() {
            self.push_event("breakpoint", format!("{} {}", changed.reason, describe_breakpoint(&changed)));
        } else if let Some(process) = event.read_body::<ProcessEvent>() {
            let pid = process.system_process_id.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            self.push_event("process", format!("{}{pid}", process.name));
        }
    }
}

fn describe_breakpoint(changed: &BreakpointEvent) -> String {
    let breakpoint = &changed.breakpoint;
    let path = breakpoint.source.as_ref().and_then(|source| source.path.as_deref()).unwrap_or_default();
    let line = breakpoint.line.map(|line| format!(":{line}")).unwrap_or_default();
    let verified = if breakpoint.verified { "verified" } else { "not verified" };
    let message = breakpoint.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{path}{line} {verified}{message}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_source_is_named_by_its_whole_path() {
        let log = EventLog::default();
        let body = r#"{"reason": "new", "source": {"path": "/lib/a b.js"}}"#.to_owned();
        let body = Some(serde_json::value::RawValue::from_string(body).unwrap());
        log.record_event(&RawEvent { name: "loadedSource".to_owned(), body });
        assert!(log.has_loaded_source("/lib/a b.js"));
        assert!(!log.has_loaded_source("/lib/a") && !log.has_loaded_source("b.js"));
    }

    #[test]
    fn notices_are_bounded_and_those_that_are_left_out_are_counted() {
        let log = EventLog::default();
        log.push_notice("x", "é".repeat(MAX_NOTICE_BYTES));
        for number in 0..100_000 {
            log.push_notice("x", format!("notice {number}"));
        }
        let pending = log.pending_notices();
        assert_eq!(pending, log.take_notices());
        assert_eq!(pending.len(), MAX_NOTICES + 1);
        assert!(pending[0].len() < MAX_NOTICE_BYTES + 4 && pending[0].ends_with('…'), "{}", pending[0].len());
        assert_eq!(pending[1], "notice 0");
        assert_eq!(pending[MAX_NOTICES], "99981 more notices: `tether debug events` lists them");
        assert_eq!(log.take_notices(), [""; 0], "the count starts again");
    }

    #[test]
    fn a_long_event_is_cut() {
        let log = EventLog::default();
        log.push_event("module", "é".repeat(1 << 20));
        let entries = log.read_events(&RingQuery::default(), &[]).entries;
        assert_eq!(entries[0].text.len(), MAX_EVENT_BYTES);
    }

    #[test]
    fn events_become_output_or_monitor_events_and_telemetry_is_dropped() {
        let event = |name: &str, body: &str| RawEvent {
            name: name.to_owned(),
            body: Some(serde_json::value::RawValue::from_string(body.to_owned()).unwrap()),
        };
        let record = EventLog::default();
        record.record_event(&event("output", r#"{"output": "hello\n", "category": "stdout"}"#));
        record.record_event(&event("output", r#"{"output": "{}", "category": "telemetry"}"#));
        record.record_event(&event("thread", r#"{"reason": "started", "threadId": 7}"#));
        record
            .record_event(&event("module", r#"{"reason": "new", "module": {"id": 1, "name": "m", "path": "/m.so"}}"#));
        record.record_event(&event("thread", r#"{"reason": "exited", "threadId": 7}"#));
        record.record_event(&event("loadedSource", r#"{"reason": "new", "source": {"path": "/a.js"}}"#));
        let prepared = r#"{"kind": "classPrepare", "text": "a.B", "threadId": 7}"#;
        for _ in 0..2 * EVENTS.entries {
            record.record_event(&event("monitorEvent", prepared));
        }
        record.record_event(&event("monitorEvent", r#"{"kind": "monitorWait", "text": "Lock", "threadId": 7}"#));
        record.record_event(&event("stopped", r#"{"reason": "step"}"#));
        assert!(!record.has_loaded_source("/m.so"), "a module is not a source");
        record.push_output("stderr", &"é".repeat(MAX_ENTRY_BYTES));
        let all = RingQuery { limit: 100, ..RingQuery::default() };
        let output = record.read_output(&all).entries;
        assert_eq!((output.len(), output[0].kind.as_str(), output[0].text.as_str()), (2, "stdout", "hello\n"));
        assert!(output[1].text.len() < MAX_ENTRY_BYTES + 50 && output[1].text.ends_with("bytes left out)\n"));
        let check = |kinds: &[&str], expect: &[(&str, &str)]| {
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let events = record.read_events(&all, &kinds).entries;
            let events: Vec<_> = events.iter().map(|it| (it.kind.as_str(), it.text.as_str())).collect();
            assert_eq!(events, expect, "{kinds:?}");
        };
        let (started, ended) = (("threadStarted", "thread 7"), ("threadEnded", "thread 7"));
        check(&[], &[started, ("module", "new /m.so"), ended]);
        check(&["threadEnded", "threadStarted"], &[started, ended]);
        check(&["loadedSource"], &[("loadedSource", "new /a.js")]);
        check(&["monitorWait"], &[("monitorWait", "Lock")]);
        check(&["classPrepare"], &[("classPrepare", "a.B"); 100]);
    }
}
