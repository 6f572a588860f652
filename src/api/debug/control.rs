//! Continue, pause, step, run to a line.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Seconds;

/// Continue a stopped program. With `wait`, also wait for its next stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugContinueParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Continue only this thread, if the adapter supports it.
    #[arg(long = "thread", value_name = "ID")]
    pub thread_id: Option<i64>,
    /// Seconds to wait for the next stop. Without it, the call returns at once.
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

/// Pause a running program, and show where it stops.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugPauseParams {
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Pause only this thread, if the adapter supports it.
    #[arg(long = "thread", value_name = "ID")]
    pub thread_id: Option<i64>,
    /// Seconds to wait for the stop (default 5).
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

/// Step, and show where the program stops next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStepParams {
    /// Step over the line, into its calls, or out of the function.
    #[serde(default)]
    #[arg(value_enum, default_value = "over")]
    pub kind: StepKind,
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Thread to step (default: the one that stopped first).
    #[arg(long = "thread", value_name = "ID")]
    pub thread_id: Option<i64>,
    /// Seconds to wait for the next stop (default 5).
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    #[default]
    Over,
    #[serde(alias = "in")]
    #[value(alias = "in")]
    Into,
    Out,
}

/// Continue to a line, or to an earlier stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugRunToParams {
    /// File and line, such as "app.py:22", or the file alone with `line`.
    #[arg(value_name = "FILE:LINE")]
    pub file: String,
    /// Line from 1, if it is not part of `file`.
    #[arg(long)]
    pub line: Option<u32>,
    /// Session id. Needed only when several are active.
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Seconds to wait for the stop (default 30).
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}
