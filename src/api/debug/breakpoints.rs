//! Breakpoints on lines and functions, exception breakpoints, watchpoints. They belong to the workspace: they are kept over
//! sessions, and set in every target that supports them.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Set a breakpoint on a line or function, also before any launch; with condition, hit count (">=3") or log message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointSetParams {
    /// Also "app.py:22".
    #[arg(
        value_name = "FILE:LINE",
        required_unless_present_any = ["function", "class_name"],
        help = "A file and its line"
    )]
    pub file: Option<String>,
    #[arg(
        long = "class",
        value_name = "CLASS:LINE",
        help = "A line of a Java class instead: com.example.OrderService:12",
        conflicts_with = "file"
    )]
    pub class_name: Option<String>,
    #[arg(long, help = "The line, when it is not part of the file argument")]
    pub line: Option<u32>,
    #[arg(long, help = "One of several places on the line, as in FILE:LINE:COLUMN")]
    pub column: Option<u32>,
    #[arg(long, value_name = "NAME", help = "A function or method instead", conflicts_with_all = ["file", "line", "class_name"])]
    pub function: Option<String>,
    #[arg(long, value_name = "EXPR", help = "Only when this is true")]
    pub condition: Option<String>,
    #[arg(long = "hits", value_name = "COUNT", help = "Only at this hit: `3`, `>=3`, `%2`")]
    pub hit_condition: Option<String>,
    /// Printed instead; {expr} is evaluated.
    #[arg(long = "log", value_name = "TEXT")]
    pub log_message: Option<String>,
}

/// List breakpoints, watchpoints and exceptions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointListParams {}

/// Remove one breakpoint or watchpoint, those of a file (or "app.py:22"), or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointRemoveParams {
    #[arg(value_name = "ID", help = "From `tether break list`")]
    pub breakpoint_id: Option<u32>,
    #[arg(long, help = "All of a file, or the one at FILE:LINE")]
    pub file: Option<String>,
    #[arg(long, num_args = 0, default_missing_value = "true", help = "All there are")]
    pub all: Option<bool>,
}

/// Write the breakpoints to a file, to be shared.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointExportParams {
    #[arg(help = "A new file, or an earlier export")]
    pub file: String,
}

/// Add the breakpoints of an exported file; its conditions will run in your programs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointImportParams {
    #[arg(help = "As `tether break export` has written it")]
    pub file: String,
}

/// Choose which exceptions stop the program; without arguments, show the choice.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointExceptionsParams {
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", help = "Those that are caught")]
    pub caught: Option<bool>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", help = "Those that are not caught")]
    pub uncaught: Option<bool>,
    #[arg(long, value_name = "NAME", help = "Only of this class")]
    pub class: Option<String>,
    #[arg(long = "filter", value_name = "NAME", help = "The adapter's own exception filters")]
    pub filters: Option<Vec<String>>,
}

/// Stop when a variable, or a field of a class, is written (or read), where the adapter can.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchpointSetParams {
    #[arg(value_name = "EXPR", help = "What is watched, in the frame that is stopped")]
    pub expression: Option<String>,
    #[arg(long = "class", value_name = "NAME", requires = "field_name", help = "Or a field of this class")]
    pub class_name: Option<String>,
    #[arg(long = "field", value_name = "NAME", requires = "class_name", help = "The field")]
    pub field_name: Option<String>,
    #[arg(long, value_enum, help = "Default: write")]
    pub access: Option<WatchpointAccess>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum WatchpointAccess {
    Read,
    #[default]
    Write,
    ReadWrite,
}

/// Whether a breakpoint is set in a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BreakpointState {
    /// Set in a target.
    Verified,
    /// No target that supports it runs yet.
    #[default]
    Pending,
    /// The adapter rejected it, for the reason in `message`.
    Unbound,
}

/// How an edit of its file affected a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BreakpointDrift {
    /// It moved with its line.
    Moved,
    /// Several lines look like it.
    Ambiguous,
    /// Its line is gone.
    Lost,
}

/// A breakpoint or a watchpoint, and its state.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointReport {
    pub breakpoint_id: u32,
    pub state: BreakpointState,
    pub file: Option<String>,
    pub class_name: Option<String>,
    /// Where it is; an adapter may have moved it to the next line with code.
    pub line: Option<u32>,
    /// If one was asked for: where it is bound, or is to be.
    pub column: Option<u32>,
    pub function: Option<String>,
    /// What a watchpoint watches: an expression, or `Class.field`.
    pub expression: Option<String>,
    pub access: Option<WatchpointAccess>,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
    pub log_message: Option<String>,
    pub hit_count: Option<u64>,
    pub drift: Option<BreakpointDrift>,
    /// Why it is not verified, or not where it was.
    pub message: Option<String>,
    /// The joined editor that has set it; it goes when the editor does.
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// All breakpoints and watchpoints, and the exceptions that stop a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointListReport {
    pub breakpoints: Vec<BreakpointReport>,
    pub exceptions: ExceptionBreakpointsReport,
    /// Which breakpoints of before could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Which exceptions stop a program.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionBreakpointsReport {
    pub caught: bool,
    pub uncaught: bool,
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// The filters that the adapters of the active sessions support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// What cannot be done, and why.
    pub message: Option<String>,
}
