//! Continue, pause, step, run to a line.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Seconds;

/// Continue a stopped program; with `wait` (seconds), wait for its next stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugContinueParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "thread", value_name = "ID", help = "Only this thread, where the adapter can")]
    pub thread_id: Option<i64>,
    #[arg(long, value_name = "SECONDS", help = "Wait for the next stop")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "How long the stop's snapshot may be [default: 1500]")]
    pub budget: Option<u32>,
}

/// Stop a running program where it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugPauseParams {
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "thread", value_name = "ID", help = "Only this thread, where the adapter can")]
    pub thread_id: Option<i64>,
    #[arg(long, value_name = "SECONDS", help = "How long to wait for the stop [default: 5]")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "How long the stop's snapshot may be [default: 1500]")]
    pub budget: Option<u32>,
}

/// Step, and show where the program stops next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStepParams {
    #[serde(default)]
    #[arg(value_enum, default_value = "over", help = "Over the line, into its calls, or out of the function")]
    pub kind: StepKind,
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    #[arg(long = "thread", value_name = "ID", help = "Which thread [default: the one that stopped first]")]
    pub thread_id: Option<i64>,
    /// Seconds (default 5).
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "How long the stop's snapshot may be [default: 1500]")]
    pub budget: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    #[default]
    Over,
    Into,
    Out,
}

/// Continue to a line, or an earlier stop.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugRunToParams {
    /// Also "app.py:22".
    #[arg(value_name = "FILE:LINE", help = "A file and its line")]
    pub file: String,
    #[arg(long, help = "The line, when it is not part of the file argument")]
    pub line: Option<u32>,
    #[arg(long = "session", value_name = "ID", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    /// Seconds (default 30).
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "How long the stop's snapshot may be [default: 1500]")]
    pub budget: Option<u32>,
}
