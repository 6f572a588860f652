//! The results of operations as results of MCP tools.
//!
//! Does not depend on how the supervisor is called.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use tether_base::display_text::{escape_line, escape_text};
use tether_base::error::{Error, Result};

use super::tool_names::{error_with_tools, name_tools};
use crate::api::Operation;
use crate::frontends::render;

/// The field of a result that holds an image.
pub(super) const IMAGE_FIELD: &str = "data";

/// The result of a call: structured content, and a text beside it. An image is content, and not structured. What is text by
/// nature is in both: some clients (VS Code) show their model only the structured content, others only the text.
pub fn call_result(operation: &Operation, outcome: Result<Value>) -> CallToolResult {
    let mut answer = match outcome {
        Ok(answer) => answer,
        Err(error) => return error_result(&error),
    };
    name_tools(&mut answer);
    let mut content = vec![ContentBlock::text(escape_text(&render::render_text(operation.method, &answer)))];
    if let Some(picture) = render::read_picture(operation.method, &answer) {
        content.insert(0, ContentBlock::image(picture.data, picture.mime_type));
        answer.as_object_mut().map(|answer| answer.remove(IMAGE_FIELD));
    }
    let mut result = CallToolResult::success(content);
    escape_values(&mut answer);
    result.structured_content = Some(answer);
    result
}

pub fn error_result(error: &Error) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error_with_tools(error).to_string())])
}

/// Escapes every text in a result: a model reads it as it is.
pub fn escape_values(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape_text(text),
        Value::Array(items) => items.iter_mut().for_each(escape_values),
        Value::Object(members) => {
            let all = std::mem::take(members).into_iter();
            members.extend(all.map(|(name, mut value)| {
                escape_values(&mut value);
                (escape_line(&name), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
