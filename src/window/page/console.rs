//! Console messages: parsed from CDP events, formatted as the browser's console shows them.

use std::fmt::Write;

use tether_base::clipped_text::clip_bytes;
use tether_base::ring::RingEntry;
use tether_cdp::CdpEvent;
use tether_cdp::events::{ConsoleApiCalled, ExceptionThrown, LogEntryAdded};
use tether_cdp::types::{ObjectPreview, RemoteObject, StackTrace};

use crate::window::token_redaction::redact_connection_tokens;

const MAX_TEXT_BYTES: usize = 4096;
const MAX_LOCATION_BYTES: usize = 200;

/// Where a console message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleSource {
    Page,
    /// An out-of-process frame.
    Iframe,
    Worker,
    ExtensionHost,
    /// VS Code's own parts, which write the same in every window.
    Workbench,
    /// A Node service.
    Node,
    /// Generated here: a dialog, a crash, a download, a launch.
    Tether,
}

impl ConsoleSource {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            ConsoleSource::Page => "page",
            ConsoleSource::Iframe => "iframe",
            ConsoleSource::Worker => "worker",
            ConsoleSource::ExtensionHost => "extensionHost",
            ConsoleSource::Workbench => "workbench",
            ConsoleSource::Node => "node",
            ConsoleSource::Tether => "tether",
        }
    }
}

/// One message of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleMessage {
    /// Epoch milliseconds.
    pub at: u64,
    /// Where it comes from.
    pub source: ConsoleSource,
    /// `log`, `info`, `debug`, `warning`, `error`; `exception` for an uncaught one.
    pub level: String,
    /// At most 4 KiB.
    pub text: String,
    /// `file.js:12:3`, if known.
    pub location: Option<String>,
}

impl RingEntry for ConsoleMessage {
    fn bytes(&self) -> usize {
        self.text.len() + self.level.len() + self.location.as_ref().map_or(0, String::len) + 80
    }

    fn matches(&self, filter: &str) -> bool {
        self.level == filter
            || self.source.name().eq_ignore_ascii_case(filter)
            || self.text.to_lowercase().contains(filter)
    }
}

/// The message of a `Runtime` or `Log` event; `None` for other events.
pub fn parse_console_event(event: &CdpEvent, source: ConsoleSource) -> Option<ConsoleMessage> {
    if let Some(called) = event.parse_as::<ConsoleApiCalled>("Runtime.consoleAPICalled") {
        let location = called.stack_trace.as_ref().and_then(first_location);
        let text = format_arguments(&called.args);
        let source = if is_workbench_log(&called, source, &text) { ConsoleSource::Workbench } else { source };
        return Some(bounded_message(called.timestamp, source, called.kind, text, location));
    }
    if let Some(thrown) = event.parse_as::<ExceptionThrown>("Runtime.exceptionThrown") {
        let text = thrown.exception_details.text();
        return Some(bounded_message(thrown.timestamp, source, "exception".into(), text, None));
    }
    // The worker's own session reports it as well.
    let entry = event.parse_as::<LogEntryAdded>("Log.entryAdded")?.entry;
    if entry.source == "worker" {
        return None;
    }
    let location = entry.url.filter(|url| !url.is_empty());
    let is_gallery = location.as_ref().is_some_and(|url| url.contains(GALLERY_PATH));
    let source = if is_gallery { ConsoleSource::Workbench } else { source };
    let location =
        location.map(|url| if url.len() > 120 { url.split(['?', '#']).next().unwrap_or(&url).to_owned() } else { url });
    let location =
        location.map(|url| entry.line_number.map_or(url.clone(), |line| format!("{url}:{}", line.saturating_add(1))));
    let text = format!("{}: {}", entry.source, entry.text);
    Some(bounded_message(entry.timestamp, source, entry.level, text, location))
}

/// A message about something that happened to the page; `at` in epoch milliseconds.
pub fn page_event_message(at: u64, level: &str, text: String) -> ConsoleMessage {
    bounded_message(at as f64, ConsoleSource::Tether, level.into(), text, None)
}

/// What VS Code's own parts report in every window: none of it is about the extension under development.
const WORKBENCH_PARTS: &[&str] = &[
    "[AgentHost",
    "[AccountPolicyGate]",
    "[RemoteAgentHostProtocol]",
    "[Service Worker]",
    "authentication provider 'github'",
    "queryRawGalleryExtensions",
    "@vscode/spdlog",
    "build/spdlog.node",
    "@vscode/native-watchdog",
    "[reconnection-grace-time]",
    "The web worker extension host is started in a same-origin iframe",
];

/// Where code-server asks for extensions, with or without a network.
const GALLERY_PATH: &str = "/vscode/gallery/";

/// Whether a message is VS Code's own log: a line of its logger about its own work, one that names one of its own parts, or
/// the copy of a line that the extension host has in its console. Warnings and errors about anything else are not.
fn is_workbench_log(called: &ConsoleApiCalled, source: ConsoleSource, text: &str) -> bool {
    let is_own_part = || WORKBENCH_PARTS.iter().any(|part| text.contains(part));
    if source == ConsoleSource::ExtensionHost {
        return is_own_part();
    }
    let frames = called.stack_trace.as_ref().map_or(&[][..], |stack| &stack.call_frames);
    if !frames.first().is_some_and(|frame| frame.url.contains("/out/vs/")) {
        return false;
    }
    let first = called.args.first().map(RemoteObject::text).unwrap_or_default();
    let is_copy =
        first.starts_with("%c[Extension Host]") || (first.starts_with("%c") && text.contains(" [Extension Host] "));
    let is_routine = ["%c INFO", "%cDEBUG", "%cTRACE"].iter().any(|start| first.starts_with(start));
    is_copy || is_routine || is_own_part()
}

fn first_location(stack: &StackTrace) -> Option<String> {
    let frame = stack.call_frames.first().filter(|frame| !frame.url.is_empty())?;
    // Without the folders: the reader knows them, and URLs are long.
    let path = frame.url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path);
    Some(format!("{name}:{}:{}", frame.line_number.saturating_add(1), frame.column_number.saturating_add(1)))
}

/// Formats as a console does: substitutes the placeholders of the first argument and drops `%c` styles.
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
            Some((_, argument)) => {
                out.push_str(&argument_text(argument));
                out.push_str(&piece[1..]);
            }
            None => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    rest.for_each(|argument| {
        let _ = write!(out, " {}", argument_text(argument));
    });
    out
}

fn argument_text(argument: &RemoteObject) -> String {
    match &argument.preview {
        Some(preview) if !matches!(argument.subtype.as_deref(), Some("error" | "node" | "regexp" | "date")) => {
            preview_text(preview)
        }
        _ => argument.text(),
    }
}

/// `{a: 1, b: "x"}`, `[1, 2]`; prefixed with the class name, if there is one.
fn preview_text(preview: &ObjectPreview) -> String {
    let list = matches!(preview.subtype.as_deref(), Some("array" | "typedarray"));
    let mut parts: Vec<String> = Vec::new();
    for property in &preview.properties {
        let value = property.value.clone().unwrap_or_else(|| property.kind.clone());
        let value = if property.kind == "string" { format!("{value:?}") } else { value };
        parts.push(if list { value } else { format!("{}: {value}", property.name) });
    }
    if preview.overflow {
        parts.push("…".into());
    }
    let parts = parts.join(", ");
    let class = preview.description.as_deref().filter(|it| !list && *it != "Object");
    match (list, class) {
        (true, _) => format!("[{parts}]"),
        (false, Some(class)) if parts.is_empty() => class.to_owned(),
        (false, Some(class)) => format!("{class} {{{parts}}}"),
        (false, None) => format!("{{{parts}}}"),
    }
}

/// Applies the size limits.
fn bounded_message(
    timestamp: f64,
    source: ConsoleSource,
    level: String,
    text: String,
    location: Option<String>,
) -> ConsoleMessage {
    let text = redact_and_clip(text, MAX_TEXT_BYTES);
    let location = location.map(|location| redact_and_clip(location, MAX_LOCATION_BYTES));
    ConsoleMessage { at: timestamp.max(0.0) as u64, source, level, text, location }
}

/// At most `max` bytes of a text, without connection tokens; `…` stands for the rest.
pub fn redact_and_clip(text: String, max: usize) -> String {
    clip_bytes(&redact_connection_tokens(text), max)
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
    fn events_are_formatted_as_a_console_shows_them() {
        let check = |method: &str, params: Value, expect: Option<(&str, &str, Option<&str>)>| {
            let found = parse_console_event(&event(method, params), ConsoleSource::Page);
            let found = found.as_ref().map(|it| (it.level.as_str(), it.text.as_str(), it.location.as_deref()));
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
        // Code without lines.
        let stack = json!({"callFrames": [{"url": "http://x/a.js", "lineNumber": -1, "columnNumber": -1}]});
        let called =
            json!({"type": "log", "args": [{"type": "string", "value": "a"}], "timestamp": 1.0, "stackTrace": stack});
        check("Runtime.consoleAPICalled", called, Some(("log", "a", Some("a.js:0:0"))));
        check("Runtime.consoleAPICalled", json!({"args": 7}), None);
        check("Page.loadEventFired", json!({}), None);
    }

    #[test]
    fn objects_are_previewed_and_placeholders_are_substituted() {
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
    fn long_messages_are_truncated() {
        let long = bounded_message(-1.0, ConsoleSource::Page, "log".into(), "ü".repeat(MAX_TEXT_BYTES), None);
        assert_eq!((long.at, long.text.chars().count()), (0, MAX_TEXT_BYTES / 2 + 1));
    }
}
