//! The timeline: what has happened in the workspace, and waiting for what happens next.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::debug::values::Seconds;
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// What `wait_for_any` waits for where nothing else is chosen.
pub const AWAITED_KINDS: [TimelineKind; 8] = [
    TimelineKind::Stopped,
    TimelineKind::SessionEnded,
    TimelineKind::Built,
    TimelineKind::WindowLaunched,
    TimelineKind::WindowRefreshed,
    TimelineKind::RefreshHeld,
    TimelineKind::WindowEnded,
    TimelineKind::ConsoleError,
];

/// Show what has happened in the workspace: edits, builds, launches, refreshes, stops, resumes, calls, ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimelineReadParams {
    /// Cursor of an earlier result; only newer events are returned.
    #[arg(long)]
    pub since: Option<u64>,
    /// Maximum number of events (default 50).
    #[arg(long)]
    pub limit: Option<usize>,
    /// Show only these kinds.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kinds: Option<Vec<TimelineKind>>,
}

/// Wait for the next stop, end, build, refresh or console error of anything here. Pass the `cursor` of the last result,
/// so that nothing is missed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitForAnyParams {
    /// Timeout in seconds (default 30).
    #[arg(value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
    /// Cursor of the last result. Without: from now on, or what is stopped already.
    #[arg(long)]
    pub since: Option<u64>,
    /// Wait only for these kinds.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kinds: Option<Vec<TimelineKind>>,
    // When an interrupted call began, in epoch ms: its repetition misses nothing. Not for users.
    #[arg(skip)]
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<u64>,
}

/// Events, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEvents {
    pub events: Vec<TimelineEvent>,
    /// For the next `since`.
    pub cursor: u64,
    /// Events after `since` that are no longer kept.
    #[serde(default)]
    pub dropped: u64,
    /// Events that the limit has left out: newer ones with `since`, older ones without.
    #[serde(default)]
    pub more: u64,
}

/// What has come, the oldest first.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedEvents {
    /// Empty: none in time.
    pub events: Vec<TimelineEvent>,
    /// For the next `since`.
    pub cursor: u64,
    pub waited_ms: u64,
    /// What runs, where nothing has come.
    pub message: Option<String>,
}
