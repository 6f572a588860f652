//! The operations that the extension inside the window carries out: commands of VS Code, and what it has printed.
//!
//! A command checks for changes first, and rebuilds and relaunches when there are some; output is only read.

use std::convert::Infallible;
use std::str::FromStr;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::window::RefreshNotice;

/// Run a VS Code command in the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowCommandParams {
    /// Command id, such as `workbench.action.files.saveAll`.
    #[arg(value_name = "COMMAND")]
    pub command: String,
    /// Arguments of the command, each as JSON; what is not JSON is plain text.
    #[arg(value_name = "JSON", help = "Arguments of the command, as JSON or plain text")]
    pub args: Option<Vec<CommandArgument>>,
}

/// Read an output channel of the window. Without a channel, list the channels and open editors.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowOutputParams {
    /// Name of the output channel.
    pub channel: Option<String>,
    /// Cursor from an earlier result: returns only newer text (default: the newest text).
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum size in bytes (default 16384).
    #[arg(long, value_name = "BYTES")]
    pub limit: Option<u64>,
}

// A JSON value, or a text that is read as one. Its schema is a text: Gemini refuses a type with alternatives, and a server with it.
// (No doc comment: it would be in the tool's schema.)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CommandArgument(#[schemars(with = "String")] Value);

impl CommandArgument {
    /// The value for the command.
    pub fn into_value(self) -> Value {
        match self.0 {
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            value => value,
        }
    }
}

impl FromStr for CommandArgument {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<CommandArgument, Infallible> {
        Ok(CommandArgument(text.into()))
    }
}

/// What a command has returned.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowCommandResult {
    #[serde(default)]
    pub value: Value,
    pub generation: u64,
    pub refreshed: Option<RefreshNotice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The text of a channel, or which channels there are.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WindowOutputResult {
    pub channel: Option<String>,
    pub text: Option<String>,
    /// For the next `since`.
    pub cursor: Option<u64>,
    /// Bytes before the text that are left out.
    pub dropped: Option<u64>,
    /// The ones that changed last come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<OutputChannel>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub editors: Vec<OpenEditor>,
}

/// An output channel.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OutputChannel {
    pub name: String,
    pub bytes: Option<u64>,
    pub modified_at: Option<u64>,
}

/// An open editor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OpenEditor {
    pub label: String,
    pub is_active: bool,
    pub is_dirty: bool,
    pub uri: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_argument_is_a_value_or_the_text_of_one() {
        let check = |given: Value, expect: Value| {
            let argument: CommandArgument = serde_json::from_value(given.clone()).unwrap();
            assert_eq!(argument.into_value(), expect, "{given}");
        };
        check(json!("plain text"), json!("plain text"));
        check(json!("{\"a\": [1]}"), json!({"a": [1]}));
        check(json!("\"7\""), json!("7"));
        check(json!("7"), json!(7));
        check(json!({"a": 1}), json!({"a": 1}));
        check(json!(null), json!(null));
    }
}
