//! Results as short text: what a person reads in a terminal, and an agent beside the structured result.
//!
//! Plain text without colours; times are told as durations. `window`, `page` and `debug` tell those of their groups.

mod debug;
mod page;
mod window;

pub use window::relaunch_text;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::OperationParams;
use crate::api::page::{PageImage, PageScreenshotParams};

use crate::clock::now_ms;

/// The text of an operation's result.
pub fn render_text(method: &str, answer: &Value) -> String {
    let told = window::window_text(method, answer).or_else(|| page::page_text(method, answer));
    // A result of a newer supervisor that we cannot read is better shown raw than not at all.
    told.or_else(|| debug::debug_text(method, answer)).unwrap_or_else(|| answer.to_string())
}

/// The picture, when the result of this operation is one.
pub fn read_picture(method: &str, answer: &Value) -> Option<PageImage> {
    (method == PageScreenshotParams::METHOD).then(|| parse_result(answer)).flatten()
}

fn parse_result<T: DeserializeOwned>(answer: &Value) -> Option<T> {
    serde_json::from_value(answer.clone()).ok()
}

/// What happened besides.
fn notes_text(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\nnote: {note}")).collect()
}

fn indent_lines(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn age_text(at_ms: u64) -> String {
    duration_text(now_ms().saturating_sub(at_ms))
}

/// A duration in ms as a person says it: "240 ms", "3.2 s", "4 min".
pub fn duration_text(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} days", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_read_is_shown_raw() {
        let check = |method: &str| assert_eq!(render_text(method, &json!({"a": {}})), r#"{"a":{}}"#, "{method}");
        check("some/thing");
        check("window/status");
        check("debug/launch");
        check("debug/status");
    }
}
