//! Results as short text: what a person reads in a terminal, and an agent beside the structured result.
//!
//! Plain text without colours; times are told as durations. `window`, `page` and `debug` tell those of their groups.

mod debug_text;
mod page_text;
mod stop_text;
mod text_format;
mod window_text;

pub use window_text::relaunch_text;

use serde_json::Value;

use self::text_format::parse_result;

use crate::api::OperationParams;
use crate::api::page::{PageImage, PageScreenshotParams};

/// The text of an operation's result.
pub fn render_text(method: &str, answer: &Value) -> String {
    let told = window_text::window_text(method, answer).or_else(|| page_text::page_text(method, answer));
    // A result of a newer supervisor that we cannot read is better shown raw than not at all.
    told.or_else(|| debug_text::debug_text(method, answer)).unwrap_or_else(|| answer.to_string())
}

/// The picture, when the result of this operation is one.
pub fn read_picture(method: &str, answer: &Value) -> Option<PageImage> {
    (method == PageScreenshotParams::METHOD).then(|| parse_result(answer)).flatten()
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
