//! Breakpoints on lines and functions, exception breakpoints, watchpoints. They belong to the workspace: they are kept over
//! sessions, and set in every target that supports them.

use std::path::Path;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::make_absolute;

/// Set a breakpoint, also before any launch: on a line or function, with condition, hit count (">=3") or log message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointSetParams {
    /// Also "app.py:22".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(value_name = "FILE:LINE", required_unless_present = "function", help = "A file and its line")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, help = "The line, when it is not part of the file argument")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "NAME", help = "A function or method instead", conflicts_with_all = ["file", "line"])]
    pub function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "EXPR", help = "Only when this is true")]
    pub condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "hits", value_name = "COUNT", help = "Only at this hit: `3`, `>=3`, `%2`")]
    pub hit_condition: Option<String>,
    /// Printed instead of stopping; {expr} is evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "log", value_name = "TEXT")]
    pub log_message: Option<String>,
}

impl BreakpointSetParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        make_absolute(&mut self.file, folder);
    }
}

/// List breakpoints, watchpoints and exceptions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointListParams {}

/// Remove one breakpoint or watchpoint, those of a file (or "app.py:22"), or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointRemoveParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(value_name = "ID", help = "From `tether break list`")]
    pub breakpoint_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, help = "All of a file, or the one at FILE:LINE")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, num_args = 0, default_missing_value = "true", help = "All there are")]
    pub all: Option<bool>,
}

impl BreakpointRemoveParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        make_absolute(&mut self.file, folder);
    }
}

/// Choose which exceptions stop the program, replacing the last choice; without arguments, show it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointExceptionsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", help = "Those that are caught")]
    pub caught: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", help = "Those that are not caught")]
    pub uncaught: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, value_name = "NAME", help = "Only of this class")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "filter", value_name = "NAME", help = "The adapter's own exception filters")]
    pub filters: Option<Vec<String>>,
}

/// Stop when a variable, or a field of a class, is written (or read), where the adapter can.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchpointSetParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(value_name = "EXPR", help = "What is watched, in the frame that is stopped")]
    pub expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "class", value_name = "NAME", requires = "field_name", help = "Or a field of this class")]
    pub class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long = "field", value_name = "NAME", requires = "class_name", help = "The field")]
    pub field_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointReport {
    pub breakpoint_id: u32,
    pub state: BreakpointState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it is; an adapter may have moved it to the next line with code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What a watchpoint watches: an expression, or `Class.field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<WatchpointAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<BreakpointDrift>,
    /// Why it is not verified, or not where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// All breakpoints and watchpoints, and the exceptions that stop a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakpointListReport {
    pub breakpoints: Vec<BreakpointReport>,
    pub exceptions: ExceptionBreakpointsReport,
}

/// Which exceptions stop a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionBreakpointsReport {
    pub caught: bool,
    pub uncaught: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// The filters that the adapters of the active sessions support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// What cannot be done, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
