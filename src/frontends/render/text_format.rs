//! Small pieces of rendered text: notes, durations.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tether_base::clock::now_ms;
use tether_base::display_text::{escape_line, mark_breaks};

/// The result as its type; `None` when it does not parse.
pub fn parse_result<T: DeserializeOwned>(answer: &Value) -> Option<T> {
    serde_json::from_value(answer.clone()).ok()
}

/// Fields of results whose texts have lines; those of all others are names, and one line each.
const TEXTS: [&str; 16] = [
    "body",
    "requestBody",
    "text",
    "tail",
    "output",
    "snapshot",
    "stack",
    "value",
    "result",
    "exception",
    "exceptionMessage",
    "message",
    "error",
    "notes",
    "console",
    "data",
];

/// Escapes the line breaks in the names of a result.
pub fn escape_names(value: &mut Value) {
    match value {
        Value::String(name) => *name = escape_line(name),
        Value::Array(items) => items.iter_mut().for_each(escape_names),
        Value::Object(members) => {
            let names = members.iter_mut().filter(|(field, _)| !TEXTS.contains(&field.as_str()));
            names.for_each(|(_, value)| escape_names(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A note per line; the further lines of one are marked.
pub fn notes_text(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\nnote: {}", mark_breaks(note))).collect()
}

/// The time since `at_ms`, in epoch ms, as a duration.
pub fn age_text(at_ms: u64) -> String {
    duration_text(now_ms().saturating_sub(at_ms))
}

/// A duration in ms in one unit: "240 ms", "3.2 s", "4 min".
pub fn duration_text(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} days", ms / 86_400_000),
    }
}
