//! Renders results as short text, for terminals and for agents beside the structured result.
//!
//! Plain text without colours; times are rendered as durations. One file per group of operations.

// What is read here comes from outside.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod debug_text;
mod network_text;
mod page_control_text;
mod page_text;
mod stop_text;
mod test_text;
mod text_format;
mod timeline_text;
mod window_bridge_text;
mod window_text;

pub use debug_text::session_text;
pub use text_format::{age_text, notes_text};
pub use timeline_text::event_text;
pub use window_text::{refresh_text, window_line};

use serde_json::Value;

use self::text_format::{escape_names, parse_result};
use crate::api::debug::{breakpoints::*, control::*, inspect::*, *};
use crate::api::extension_tests::*;
use crate::api::page::*;
use crate::api::page_control::*;
use crate::api::page_input::*;
use crate::api::page_network::*;
use crate::api::timeline::*;
use crate::api::window::*;
use crate::api::window_bridge::*;
use crate::api::{OperationParams, for_each_operation};

/// A result of an operation. Each result type of the operation table must implement this: [`render_text`] does not compile
/// otherwise.
trait ResultText {
    /// The result as short text.
    fn text(&self) -> String;

    /// Whether there is something to render; if not, the JSON is shown.
    fn has_text(&self) -> bool {
        true
    }
}

/// The text of an operation's result; its JSON when the operation or the result is unknown, as from a newer supervisor.
pub fn render_text(method: &str, result: &Value) -> String {
    let mut result = result.clone();
    escape_names(&mut result);
    macro_rules! text_by_method {
        ($($params:ty { $($row:tt)* })*) => {
            match method {
                $(<$params>::METHOD => {
                    parse_result::<<$params as OperationParams>::Result>(&result).filter(ResultText::has_text).map(|it| it.text())
                })*
                _ => None,
            }
        };
    }
    for_each_operation!(text_by_method).unwrap_or_else(|| result.to_string())
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

    #[test]
    fn a_name_is_one_line_and_a_text_keeps_its_lines() {
        let changed = json!([{"path": "a\nb\u{202e}", "kind": "added", "modifiedAt": 1}]);
        let text = render_text("window/changes", &json!({"stale": true, "changed": changed, "total": 1}));
        assert!(text.contains("added a\\nb\\u{202e}"), "{text}");
        assert_eq!(render_text("window/evaluate", &json!({"value": "a\nb", "generation": 1})), "a\n    | b");
    }
}
