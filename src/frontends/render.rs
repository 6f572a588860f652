//! Renders results as short text, for terminals and for agents beside the structured result.
//!
//! Plain text without colours; times are rendered as durations. One file per group of operations.

mod debug_text;
mod page_text;
mod result_text;
mod stop_text;
mod text_format;
mod window_text;

pub use window_text::relaunch_text;

use serde_json::Value;

use self::result_text::ResultText;
use self::text_format::parse_result;

use crate::api::debug::{breakpoints::*, control::*, inspect::*, *};
use crate::api::page::*;
use crate::api::page_input::*;
use crate::api::window::*;
use crate::api::{OperationParams, for_each_operation};

/// The text of an operation's result; its JSON when the operation or the result is unknown, as from a newer supervisor.
pub fn render_text(method: &str, result: &Value) -> String {
    macro_rules! text_by_method {
        ($($params:ty { $($row:tt)* })*) => {
            match method {
                $(<$params>::METHOD => {
                    parse_result::<<$params as OperationParams>::Result>(result).and_then(|it| it.text())
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
}
