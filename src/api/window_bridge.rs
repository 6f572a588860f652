//! The operations that the extension inside the window carries out: commands of VS Code, and what it has printed.
//!
//! A command checks for changes first, and rebuilds and relaunches when there are some; output is only read.

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
    /// Arguments of the command, as JSON values.
    #[arg(value_name = "JSON", value_parser = parse_json_or_text, help = "Arguments of the command, as JSON or plain text")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "argument_list_schema")]
    pub args: Option<Vec<Value>>,
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

/// Any JSON values but null, spelled out because some clients reject a schema that constrains nothing.
fn argument_list_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let any = ["object", "array", "string", "number", "boolean"];
    schemars::json_schema!({"type": "array", "items": {"type": any}})
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

fn parse_json_or_text(text: &str) -> Result<Value, std::convert::Infallible> {
    Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}
