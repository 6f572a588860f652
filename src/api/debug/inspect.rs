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

/// Show frames of a stopped thread (default: the first that stopped).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStackParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "thread", value_name = "ID", help = "Which thread [default: the one that stopped first]")]
    pub thread_id: Option<i64>,
    #[arg(long = "start", value_name = "N", help = "Leave out so many of the innermost")]
    pub start_frame: Option<u32>,
    #[arg(long, value_name = "N", help = "At most so many [default: 20]")]
    pub levels: Option<u32>,
}

/// Show variables of a frame (default: the top one), or inside a variablesReference.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugVariablesParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "frame", value_name = "ID", help = "From `tether debug stack` [default: the top one]")]
    pub frame_id: Option<i64>,
    #[arg(long = "in", value_name = "REFERENCE", help = "What is inside the value with this reference")]
    pub variables_reference: Option<i64>,
    #[arg(value_name = "NAME", help = "Only these")]
    pub names: Option<Vec<String>>,
    #[arg(long, value_name = "N", help = "Leave out so many")]
    pub start: Option<u32>,
    #[arg(long, value_name = "N", help = "At most so many [default: 50]")]
    pub count: Option<u32>,
}

/// Evaluate an expression in a frame (default: the top one), with its side effects.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugEvaluateParams {
    #[arg(value_name = "EXPR", help = "In the program's language")]
    pub expression: String,
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "frame", value_name = "ID", help = "From `tether debug stack` [default: the top one]")]
    pub frame_id: Option<i64>,
    #[arg(long, value_enum, help = "What it is for; some adapters take statements in `repl` only [default: watch]")]
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

/// Set a variable of a frame, or a field in a variablesReference.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugSetVariableParams {
    #[arg(help = "The variable, or the field")]
    pub name: String,
    /// An expression.
    #[arg(allow_negative_numbers = true)]
    pub value: String,
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "frame", value_name = "ID", help = "From `tether debug stack` [default: the top one]")]
    pub frame_id: Option<i64>,
    #[arg(long = "in", value_name = "REFERENCE", help = "A field of the value with this reference")]
    pub variables_reference: Option<i64>,
}

/// Show numbered source lines (default: around the stop), also of code without a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugSourceParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(value_name = "FILE:LINE", help = "A file and its line")]
    pub file: Option<String>,
    #[arg(long = "reference", value_name = "REFERENCE", help = "Code without a file: the reference in its frame")]
    pub source_reference: Option<i64>,
    #[arg(long, help = "The line, when it is not part of the file argument")]
    pub line: Option<u32>,
    /// Lines on each side (default 5).
    #[arg(long, short = 'C', value_name = "N")]
    pub context: Option<u32>,
}

/// Read what the program has printed; `cursor` continues.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugOutputParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long, help = "A cursor; without it, the newest")]
    pub since: Option<u64>,
    #[arg(long, help = "At most so many [default: 50]")]
    pub limit: Option<usize>,
}

/// Read what happened without stopping it: threads, modules, classes, targets; `cursor` continues.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugEventsParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long, help = "A cursor; without it, the newest")]
    pub since: Option<u64>,
    #[arg(long, help = "At most so many [default: 50]")]
    pub limit: Option<usize>,
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        help = "Only these; those of classes, monitors and loaded sources each alone, and only by name"
    )]
    pub kinds: Option<Vec<String>>,
    // Of Java; each kind that is not named is no longer captured.
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        help = "Record these kinds from now on, and no others (Java): threadStarted, threadEnded, classPrepare, classUnload, \
                monitorContended, monitorAcquired, monitorWait, monitorWaited"
    )]
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
