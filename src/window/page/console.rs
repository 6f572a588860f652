//! What a console says: the entries that CDP's console events come to.

use std::fmt::Write;

use crate::cdp::CdpEvent;
use crate::cdp::events::{ConsoleApiCalled, ExceptionThrown, LogEntryAdded};
use crate::cdp::types::{ObjectPreview, RemoteObject, StackTrace};
use crate::ring::RingEntry;

const TEXT_BYTES: usize = 4096;

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleSource {
    Page,
    Iframe,
    Worker,
    ExtensionHost,
    /// A Node service.
    Node,
    /// We: a dialog, a crash, a download.
    Tether,
}

impl ConsoleSource {
    pub fn name(self) -> &'static str {
        match self {
            ConsoleSource::Page => "page",
            ConsoleSource::Iframe => "iframe",
            ConsoleSource::Worker => "worker",
            ConsoleSource::ExtensionHost => "extensionHost",
            ConsoleSource::Node => "node",
            ConsoleSource::Tether => "tether",
        }
    }
}

/// One entry of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleMessage {
    /// Epoch milliseconds.
    pub at: u64,
    pub source: ConsoleSource,
    /// `log`, `info`, `debug`, `warning`, `error`; `exception` for an uncaught one.
    pub level: String,
    /// At most 4 KiB.
    pub text: String,
    /// `file.js:12:3`, where it is known.
    pub place: Option<String>,
}

impl RingEntry for ConsoleMessage {
    fn bytes(&self) -> usize {
        self.text.len() + self.level.len() + self.place.as_ref().map_or(0, String::len) + 80
    }

    fn matches(&self, filter: &str) -> bool {
        self.level == filter
            || self.source.name().eq_ignore_ascii_case(filter)
            || self.text.to_lowercase().contains(filter)
    }
}

/// The entry that an event of `Runtime` or `Log` makes.
pub fn parse_console_event(event: &CdpEvent, source: ConsoleSource) -> Option<ConsoleMessage> {
    if let Some(called) = event.parse_as::<ConsoleApiCalled>("Runtime.consoleAPICalled") {
        let place = called.stack_trace.as_ref().and_then(first_location);
        return Some(bounded_message(called.timestamp, source, called.kind, format_arguments(&called.args), place));
    }
    if let Some(thrown) = event.parse_as::<ExceptionThrown>("Runtime.exceptionThrown") {
        let text = thrown.exception_details.text();
        return Some(bounded_message(thrown.timestamp, source, "exception".into(), text, None));
    }
    // A worker says it itself.
    let entry = event.parse_as::<LogEntryAdded>("Log.entryAdded")?.entry;
    if entry.source == "worker" {
        return None;
    }
    let place = entry.url.filter(|url| !url.is_empty());
    let place =
        place.map(|url| if url.len() > 120 { url.split(['?', '#']).next().unwrap_or(&url).to_owned() } else { url });
    let place = place.map(|url| entry.line_number.map_or(url.clone(), |line| format!("{url}:{}", line + 1)));
    let text = format!("{}: {}", entry.source, entry.text);
    Some(bounded_message(entry.timestamp, source, entry.level, text, place))
}

/// Something that happened to the page.
pub fn page_event_message(at: u64, level: &str, text: String) -> ConsoleMessage {
    bounded_message(at as f64, ConsoleSource::Tether, level.into(), text, None)
}

fn first_location(stack: &StackTrace) -> Option<String> {
    let frame = stack.call_frames.first().filter(|frame| !frame.url.is_empty())?;
    // The folders of a source are known to whoever reads this; a long address is only in the way.
    let path = frame.url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path);
    Some(format!("{name}:{}:{}", frame.line_number + 1, frame.column_number + 1))
}

/// The words as a console shows them: placeholders of the first are filled in, styles left out.
fn format_arguments(args: &[RemoteObject]) -> String {
    let Some((first, rest)) = args.split_first() else { return String::new() };
    let mut rest = rest.iter();
    let mut out = String::new();
    let first = argument_text(first);
    let mut pieces = first.split('%');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let placeholder = piece.chars().next().filter(|it| "sdifoOc".contains(*it));
        match placeholder.and_then(|it| Some((it, rest.next()?))) {
            Some(('c', _)) => out.push_str(&piece[1..]),
            Some((_, word)) => {
                out.push_str(&argument_text(word));
                out.push_str(&piece[1..]);
            }
            None => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    rest.for_each(|word| {
        let _ = write!(out, " {}", argument_text(word));
    });
    out
}

fn argument_text(word: &RemoteObject) -> String {
    match &word.preview {
        Some(preview) if !matches!(word.subtype.as_deref(), Some("error" | "node" | "regexp" | "date")) => {
            preview_text(preview)
        }
        _ => word.text(),
    }
}

/// `{a: 1, b: "x"}`, `[1, 2]`; the name of a class before it.
fn preview_text(preview: &ObjectPreview) -> String {
    let list = matches!(preview.subtype.as_deref(), Some("array" | "typedarray"));
    let mut words: Vec<String> = Vec::new();
    for property in &preview.properties {
        let value = property.value.clone().unwrap_or_else(|| property.kind.clone());
        let value = if property.kind == "string" { format!("{value:?}") } else { value };
        words.push(if list { value } else { format!("{}: {value}", property.name) });
    }
    if preview.overflow {
        words.push("…".into());
    }
    let words = words.join(", ");
    let class = preview.description.as_deref().filter(|it| !list && *it != "Object");
    match (list, class) {
        (true, _) => format!("[{words}]"),
        (false, Some(class)) if words.is_empty() => class.to_owned(),
        (false, Some(class)) => format!("{class} {{{words}}}"),
        (false, None) => format!("{{{words}}}"),
    }
}

fn bounded_message(
    timestamp: f64,
    source: ConsoleSource,
    level: String,
    mut text: String,
    mut place: Option<String>,
) -> ConsoleMessage {
    truncate_text(&mut text, TEXT_BYTES);
    if let Some(place) = &mut place {
        truncate_text(place, 200);
    }
    ConsoleMessage { at: timestamp.max(0.0) as u64, source, level, text, place }
}

fn truncate_text(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::RawValue};

    fn event(method: &str, params: Value) -> CdpEvent {
        let params = RawValue::from_string(params.to_string()).unwrap();
        CdpEvent { session: None, method: method.into(), params }
    }

    #[test]
    fn events_read_as_a_console_shows_them() {
        let check = |method: &str, params: Value, expect: Option<(&str, &str, Option<&str>)>| {
            let found = parse_console_event(&event(method, params), ConsoleSource::Page);
            let found = found.as_ref().map(|it| (it.level.as_str(), it.text.as_str(), it.place.as_deref()));
            assert_eq!(found, expect);
        };
        let args = json!([{"type": "string", "value": "n ="}, {"type": "number", "value": 1, "description": "1"},
            {"type": "object", "description": "Array(2)", "objectId": "7"}, {"type": "undefined"},
            {"type": "bigint", "unserializableValue": "10n", "description": "10n"}]);
        let called = json!({"type": "log", "args": args, "timestamp": 12.5, "executionContextId": 1});
        check("Runtime.consoleAPICalled", called, Some(("log", "n = 1 Array(2) undefined 10n", None)));
        let details = json!({"text": "Uncaught", "exceptionId": 1,
            "exception": {"type": "object", "subtype": "error", "description": "Error: x\n    at y"}});
        let thrown = json!({"timestamp": 1.0, "exceptionDetails": details});
        check("Runtime.exceptionThrown", thrown, Some(("exception", "Error: x\n    at y", None)));
        let log = json!({"entry": {"source": "network", "level": "error", "text": "404", "timestamp": 1.0, "url": "http://x/y"}});
        check("Log.entryAdded", log, Some(("error", "network: 404", Some("http://x/y"))));
        check("Runtime.consoleAPICalled", json!({"args": 7}), None);
        check("Page.loadEventFired", json!({}), None);
    }

    #[test]
    fn objects_are_looked_into_and_placeholders_filled_in() {
        let check = |args: Value, expect: &str| {
            let args: Vec<RemoteObject> = serde_json::from_value(args).unwrap();
            assert_eq!(format_arguments(&args), expect);
        };
        let string = |text: &str| json!({"type": "string", "value": text});
        let number = json!({"type": "number", "value": 7, "description": "7"});
        let object = json!({"type": "object", "description": "Object", "preview": {"type": "object",
            "description": "Object", "overflow": true, "properties": [{"name": "a", "type": "number", "value": "1"},
            {"name": "b", "type": "string", "value": "x"}]}});
        let list = json!({"type": "object", "subtype": "array", "description": "Array(1)", "preview": {"type": "object",
            "subtype": "array", "description": "Array(1)", "overflow": false,
            "properties": [{"name": "0", "type": "number", "value": "1"}]}});
        check(json!([]), "");
        check(json!([string("100%")]), "100%");
        check(json!([string("%c INFO"), string("color: #33f"), string("ready")]), " INFO ready");
        check(json!([string("%s has %d%%"), string("it"), number]), "it has 7%%");
        check(json!([object, list]), "{a: 1, b: \"x\", …} [1]");
    }

    #[test]
    fn the_long_is_cut() {
        let long = bounded_message(-1.0, ConsoleSource::Page, "log".into(), "ü".repeat(TEXT_BYTES), None);
        assert_eq!((long.at, long.text.chars().count()), (0, TEXT_BYTES / 2 + 1));
    }
}
