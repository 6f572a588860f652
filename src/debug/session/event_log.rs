//! The output and the monitor events of a session, in bounded rings with cursors.
//!
//! Monitor events never stop the program: threads, modules, loaded sources, breakpoints that were bound.

use std::sync::Mutex;

use tokio::sync::watch;

use crate::clock::now_ms;
use crate::dap::RawEvent;
use crate::dap::types::{BreakpointEvent, LoadedSourceEvent, ModuleEvent, OutputEvent, ProcessEvent, ThreadEvent};
use crate::ring::{Ring, RingEntry, RingExtract, RingLimits, RingQuery};
use crate::sync::lock;

const OUTPUT: RingLimits = RingLimits { entries: 20_000, bytes: 4 << 20 };
const EVENTS: RingLimits = RingLimits { entries: 5_000, bytes: 1 << 20 };
/// The kind of an event about a source file that the program has loaded.
const LOADED_SOURCE: &str = "loadedSource";
/// The longest piece of output that is kept whole, in bytes.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// A piece of output, or a monitor event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Epoch ms.
    pub at: u64,
    /// Of output its category: `stdout`, `stderr`, `console`, `important`; of an event: `threadStarted`, `threadExited`,
    /// `module`, `loadedSource`, `breakpoint`, `process`, `lost`, …
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
        self.text.len() + self.kind.len() + 64
    }

    fn matches(&self, filter: &str) -> bool {
        self.kind.to_lowercase().contains(filter) || self.text.to_lowercase().contains(filter)
    }
}

/// Both rings of one session.
pub struct EventLog {
    output: Mutex<Ring<LoggedEvent>>,
    events: Mutex<Ring<LoggedEvent>>,
    /// Rises with each piece of output.
    output_changed: watch::Sender<u64>,
    /// To be reported with the next result about the session.
    notices: Mutex<Vec<String>>,
}

impl Default for EventLog {
    fn default() -> Self {
        EventLog {
            output: Mutex::new(Ring::new(OUTPUT)),
            events: Mutex::new(Ring::new(EVENTS)),
            output_changed: watch::Sender::default(),
            notices: Mutex::default(),
        }
    }
}

impl EventLog {
    /// Reads output from a cursor on.
    pub fn read_output(&self, query: &RingQuery) -> RingExtract<LoggedEvent> {
        lock(&self.output).read(query)
    }

    /// Reads events from a cursor on.
    pub fn read_events(&self, query: &RingQuery) -> RingExtract<LoggedEvent> {
        lock(&self.events).read(query)
    }

    /// Whether the adapter has reported that the program loaded this source file, and the report is still kept.
    pub fn has_loaded_source(&self, path: &str) -> bool {
        let all = RingQuery { filter: Some(LOADED_SOURCE.to_lowercase()), ..RingQuery::default() };
        let loaded = |event: &LoggedEvent| {
            event.kind == LOADED_SOURCE && event.text.split_once(' ').is_some_and(|it| it.1 == path)
        };
        lock(&self.events).read(&all).entries.iter().any(loaded)
    }

    /// A count that rises with each piece of output.
    pub fn watch_output(&self) -> watch::Receiver<u64> {
        self.output_changed.subscribe()
    }

    /// The cursor behind the newest output.
    pub fn output_cursor(&self) -> u64 {
        lock(&self.output).read(&RingQuery { limit: 0, ..RingQuery::default() }).cursor
    }

    /// Adds output of the program or its adapter; a long piece is cut.
    pub fn push_output(&self, category: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut end = text.len().min(MAX_ENTRY_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let cut = text.len() - end;
        let note = if cut > 0 { format!("… ({cut} bytes left out)\n") } else { String::new() };
        let text = format!("{}{note}", &text[..end]);
        lock(&self.output).push(LoggedEvent::new(category, text, None));
        self.output_changed.send_modify(|count| *count += 1);
    }

    /// Adds an event.
    pub fn push_event(&self, kind: &str, text: String) {
        lock(&self.events).push(LoggedEvent::new(kind, text, None));
    }

    /// As [`EventLog::push_event`], and reports it with the next result about the session.
    pub fn push_notice(&self, kind: &str, text: String) {
        lock(&self.notices).push(text.clone());
        self.push_event(kind, text);
    }

    /// Removes and returns the notices that have not been reported yet.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notices))
    }

    /// The notices that have not been reported yet.
    pub fn pending_notices(&self) -> Vec<String> {
        lock(&self.notices).clone()
    }

    /// Records an event if it is output or a monitor event.
    pub(in crate::debug) fn record_event(&self, event: &RawEvent) {
        if let Some(output) = event.read_body::<OutputEvent>() {
            match output.category.as_deref() {
                Some("telemetry") => {}
                category => self.push_output(category.unwrap_or("console"), &output.output),
            }
        } else if let Some(thread) = event.read_body::<ThreadEvent>() {
            let kind = if thread.reason == "started" { "threadStarted" } else { "threadExited" };
            let text = format!("thread {}", thread.thread_id);
            lock(&self.events).push(LoggedEvent::new(kind, text, Some(thread.thread_id)));
        } else if let Some(module) = event.read_body::<ModuleEvent>() {
            let name = module.module.path.unwrap_or(module.module.name);
            self.push_event("module", format!("{} {name}", module.reason));
        } else if let Some(loaded) = event.read_body::<LoadedSourceEvent>() {
            let source = loaded.source;
            let name = source.path.or(source.name).unwrap_or_default();
            self.push_event(LOADED_SOURCE, format!("{} {name}", loaded.reason));
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
    fn n5_a_loaded_source_is_named_by_its_whole_path() {
        let log = EventLog::default();
        let body = r#"{"reason": "new", "source": {"path": "/lib/a b.js"}}"#.to_owned();
        let body = Some(serde_json::value::RawValue::from_string(body).unwrap());
        log.record_event(&RawEvent { name: "loadedSource".to_owned(), body });
        assert!(log.has_loaded_source("/lib/a b.js"));
        assert!(!log.has_loaded_source("/lib/a") && !log.has_loaded_source("b.js"));
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
        record.record_event(&event("stopped", r#"{"reason": "step"}"#));
        assert!(!record.has_loaded_source("/m.so"), "a module is no source");
        record.push_output("stderr", &"é".repeat(MAX_ENTRY_BYTES));
        let all = RingQuery { limit: 100, ..RingQuery::default() };
        let output = record.read_output(&all).entries;
        assert_eq!((output.len(), output[0].kind.as_str(), output[0].text.as_str()), (2, "stdout", "hello\n"));
        assert!(output[1].text.len() < MAX_ENTRY_BYTES + 50 && output[1].text.ends_with("bytes left out)\n"));
        let kinds: Vec<_> = record.read_events(&all).entries.into_iter().map(|it| (it.kind, it.text)).collect();
        let expect =
            [("threadStarted", "thread 7"), ("module", "new /m.so")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(kinds, expect);
    }
}
