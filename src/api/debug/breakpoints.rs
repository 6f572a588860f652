//! Breakpoints on lines and functions, exception breakpoints, watchpoints. They belong to the workspace: they are kept over
//! sessions, and set in every target that supports them.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str::FromStr;

use clap::Args;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::vocabulary::DataAccess;

/// Set a breakpoint on a line or function, even before a launch. It stays for later sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointSetParams {
    /// File and line, such as "app.py:22", or the file alone with `line`.
    #[arg(
        value_name = "FILE:LINE",
        required_unless_present_any = ["function", "class_name"]
    )]
    pub file: Option<String>,
    /// Java class and line, instead of a file: "com.example.Order:12", or the class alone with `line`.
    #[arg(long = "class", value_name = "CLASS:LINE", conflicts_with = "file")]
    pub class_name: Option<String>,
    /// Line from 1, if it is not part of `file`.
    #[arg(long)]
    pub line: Option<u32>,
    /// Column number from 1, to choose among several places on the line.
    #[arg(long)]
    pub column: Option<u32>,
    /// Text on the line, instead of its number; with both, it is refused where the line is another.
    #[serde(alias = "expect")]
    #[arg(long, alias = "expect", conflicts_with_all = ["function", "class_name"])]
    pub text: Option<String>,
    /// Function or method, instead of a file.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "line", "class_name"])]
    pub function: Option<String>,
    /// Stop only when this expression is true.
    #[arg(long, value_name = "EXPR")]
    pub condition: Option<String>,
    /// Stop only at certain hits: "3", ">=3" or "%2".
    #[arg(long = "hits", value_name = "COUNT")]
    pub hit_condition: Option<String>,
    /// Print this text instead of stopping. {expr} shows the value of an expression.
    #[arg(long = "log", value_name = "TEXT")]
    pub log_message: Option<String>,
}

/// A breakpoint that a launch sets: text such as "app.py:22", or an object with the parameters of `breakpoint/set`.
#[derive(Clone, Debug)]
pub struct LaunchBreakpoint(pub BreakpointSetParams);

impl FromStr for LaunchBreakpoint {
    type Err = Infallible;

    fn from_str(file: &str) -> Result<LaunchBreakpoint, Infallible> {
        Ok(LaunchBreakpoint(BreakpointSetParams { file: Some(file.to_owned()), ..BreakpointSetParams::default() }))
    }
}

impl Serialize for LaunchBreakpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?;
        let given = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        match (given.get("file"), given.len()) {
            (Some(file), 1) => file.serialize(serializer),
            _ => given.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LaunchBreakpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LaunchBreakpoint, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(file) => Ok(file.parse().unwrap_or_else(|never: Infallible| match never {})),
            fields @ Value::Object(_) => serde_json::from_value(fields).map(LaunchBreakpoint).map_err(D::Error::custom),
            other => Err(D::Error::custom(format!("{other} is neither \"FILE:LINE\" nor an object with a `file`"))),
        }
    }
}

impl JsonSchema for LaunchBreakpoint {
    fn schema_name() -> Cow<'static, str> {
        "LaunchBreakpoint".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The short form only: some clients take one type for each value.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// List the breakpoints and watchpoints, and the exceptions that stop a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointListParams {}

/// Remove one breakpoint or watchpoint, those of a file or line, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointRemoveParams {
    /// Id from the list of breakpoints.
    #[arg(value_name = "ID")]
    pub breakpoint_id: Option<u32>,
    /// File whose breakpoints to remove; or one line, such as "app.py:22".
    #[arg(long)]
    pub file: Option<String>,
    /// Remove all breakpoints and watchpoints, except those of joined editors.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub all: Option<bool>,
}

/// Write the breakpoints to a file, to share them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointExportParams {
    /// New file, or an earlier export to replace.
    pub file: String,
}

/// Add the breakpoints of an exported file. Their conditions will run in your programs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointImportParams {
    /// File that `tether break export` wrote.
    pub file: String,
}

/// Choose which exceptions stop the program, instead of the earlier choice. Without arguments, show it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BreakpointExceptionsParams {
    /// Stop at exceptions that the program catches.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub caught: Option<bool>,
    /// Stop at exceptions that nothing catches.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub uncaught: Option<bool>,
    /// Stop only at exceptions of this class.
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// The debug adapter's own exception filters.
    #[arg(
        long = "filter",
        value_name = "NAME",
        help = "One of the debug adapter's own exception filters; may be repeated"
    )]
    pub filters: Option<Vec<String>>,
}

/// Stop when a variable or a field is written (or read), if the adapter supports it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchpointSetParams {
    /// Variable or field to watch, as an expression in the stopped frame.
    #[arg(value_name = "EXPR")]
    pub expression: Option<String>,
    /// Class of the field to watch, instead of `expression`.
    #[arg(long = "class", value_name = "NAME", requires = "field_name")]
    pub class_name: Option<String>,
    /// Name of the field in the class.
    #[arg(long = "field", value_name = "NAME", requires = "class_name")]
    pub field_name: Option<String>,
    /// Accesses that stop the program (default write).
    #[arg(long, value_enum)]
    pub access: Option<DataAccess>,
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
    /// Where `file` leads to over a link, if it does.
    pub real_path: Option<String>,
    pub class_name: Option<String>,
    /// Where it is; an adapter may have moved it to the next line with code.
    pub line: Option<u32>,
    /// If one was asked for: where it is bound, or is to be.
    pub column: Option<u32>,
    pub function: Option<String>,
    /// What a watchpoint watches: an expression, or `Class.field`.
    pub expression: Option<String>,
    pub access: Option<DataAccess>,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
    pub log_message: Option<String>,
    pub hit_count: Option<u64>,
    pub drift: Option<BreakpointDrift>,
    /// Why it is not verified, not where it was, or not at its column.
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
