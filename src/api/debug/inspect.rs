//! Inspection of a program: frames, variables, expressions, sources, output, events.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::results::FrameEntry;

/// The default number of frames of `debug/stack`.
pub const DEFAULT_STACK_LEVELS: u32 = 20;
/// The default number of variables, of output entries and of events.
pub const DEFAULT_ENTRY_COUNT: u32 = 50;
/// The default number of source lines on each side of a line.
pub const DEFAULT_CONTEXT_LINES: u32 = 5;

/// Show the frames of a stopped thread, innermost first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStackParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Thread to show (default: the one that stopped first).
    #[arg(long = "thread", value_name = "ID")]
    pub thread_id: Option<i64>,
    /// Number of innermost frames to skip.
    #[arg(long = "start", value_name = "N")]
    pub start_frame: Option<u32>,
    /// Maximum number of frames (default 20).
    #[arg(long, value_name = "N")]
    pub levels: Option<u32>,
}

/// Show the variables of a frame, or those inside a value.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugVariablesParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Frame id from a stack or snapshot (default: the top frame).
    #[arg(long = "frame", value_name = "ID")]
    pub frame_id: Option<i64>,
    /// Value to look into: its variablesReference from an earlier result.
    #[arg(long = "in", value_name = "REFERENCE")]
    pub variables_reference: Option<i64>,
    /// Show only the variables with these names.
    #[arg(value_name = "NAME")]
    pub names: Option<Vec<String>>,
    /// Number of variables to skip.
    #[arg(long, value_name = "N")]
    pub start: Option<u32>,
    /// Maximum number of variables (default 50).
    #[arg(long, value_name = "N")]
    pub count: Option<u32>,
}

/// Evaluate an expression in a frame, with its side effects.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugEvaluateParams {
    /// Expression in the program's language.
    #[arg(value_name = "EXPR")]
    pub expression: String,
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Frame id from a stack or snapshot (default: the top frame).
    #[arg(long = "frame", value_name = "ID")]
    pub frame_id: Option<i64>,
    /// Purpose (default watch). Some adapters accept statements only in repl.
    #[arg(long, value_enum)]
    pub context: Option<EvaluateContext>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum EvaluateContext {
    Repl,
    #[default]
    Watch,
    Hover,
}

/// Set a variable of a frame, or a field of a value.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugSetVariableParams {
    /// Name of the variable or field.
    pub name: String,
    /// New value: an expression in the program's language.
    #[arg(allow_negative_numbers = true)]
    pub value: String,
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Frame id from a stack or snapshot (default: the top frame).
    #[arg(long = "frame", value_name = "ID")]
    pub frame_id: Option<i64>,
    /// Value whose field to set: its variablesReference from an earlier result.
    #[arg(long = "in", value_name = "REFERENCE")]
    pub variables_reference: Option<i64>,
}

/// Show source lines with their numbers, around a line or the current stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugSourceParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// File, with or without a line: "app.py" or "app.py:22".
    #[arg(value_name = "FILE:LINE")]
    pub file: Option<String>,
    /// Code without a file: the sourceReference of its frame.
    #[arg(long = "reference", value_name = "REFERENCE")]
    pub source_reference: Option<i64>,
    /// Line from 1, if it is not part of `file`.
    #[arg(long)]
    pub line: Option<u32>,
    /// Number of lines before and after (default 5).
    #[arg(long, short = 'C', value_name = "N")]
    pub context: Option<u32>,
}

/// Read what the program printed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugOutputParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Cursor from an earlier result: only newer entries (default: the newest).
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum number of entries (default 50).
    #[arg(long)]
    pub limit: Option<usize>,
}

/// Read events that did not stop the program: threads, modules, classes, child processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugEventsParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Cursor from an earlier result: only newer entries (default: the newest).
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum number of entries (default 50).
    #[arg(long)]
    pub limit: Option<usize>,
    /// Show only these kinds, such as threadStarted. Class, monitor and loadedSource kinds: one per call.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kinds: Option<Vec<String>>,
    /// Java: record these kinds from now on, and no others: threadStarted, threadEnded, classPrepare, classUnload,
    /// monitorContended, monitorAcquired, monitorWait, monitorWaited.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub capture: Option<Vec<String>>,
}

/// Frames of one thread, the innermost first.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrameList {
    pub thread_id: Option<i64>,
    pub frames: Vec<FrameEntry>,
    /// What was left out, and how to get it.
    pub truncated: Option<String>,
}

/// Variables of a frame, or of what has variables inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableList {
    pub variables: Vec<super::results::VariableEntry>,
    /// Of a frame: what it has besides (globals, registers), each to be had by its reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<VariableScope>,
    /// What was left out, and how to get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
}

/// A scope of a frame besides its locals: globals, registers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableScope {
    pub name: String,
    pub variables_reference: i64,
}

/// Where the next read of a log continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugLogCursor {
    /// For the next `since`.
    pub cursor: u64,
    /// Entries after `since` that are no longer there.
    pub dropped: u64,
    /// Entries that the limit has left out: newer ones with `since`, older ones without.
    #[serde(default)]
    pub more: u64,
}

/// Oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputEntries {
    pub entries: Vec<OutputEntry>,
    #[serde(flatten)]
    pub place: DebugLogCursor,
}

/// One piece of output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputEntry {
    pub at: u64,
    /// `stdout`, `stderr`, `console` (of the adapter), `log` (of a log point), …
    pub category: String,
    pub text: String,
}

/// Oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventEntries {
    pub entries: Vec<EventEntry>,
    /// The kinds that are captured from now on, where they were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Vec<String>>,
    #[serde(flatten)]
    pub place: DebugLogCursor,
}

/// One event that did not stop the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventEntry {
    pub at: u64,
    /// `threadStarted`, `threadEnded`, `targetStarted`, `targetEnded`, `module`, `classPrepare`, `process`, `breakpoint`,
    /// `loadedSource`, `classUnload`, `monitorContended`, …
    pub event: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
}
