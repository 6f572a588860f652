//! The operations on the window. Fields are camelCase; times are epoch ms; durations end in `Ms`.
//!
//! The operations on the page are in `page` and `page_input`. None of these relaunches the window by itself, except
//! start and restart.

use std::fmt;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::vocabulary::{RebuildPolicy, RefreshRung};

/// Show whether the window runs, since when, and whether a source file has changed since.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowStatusParams {}

/// Start the window, or reconnect to a running one. A second call changes nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowStartParams {
    /// Name of the launch.json configuration to start.
    #[arg(long)]
    pub config: Option<String>,
    /// When to build first. `auto` (default): at a start, and after a change since the last good build.
    #[arg(long, value_enum)]
    pub rebuild: Option<RebuildPolicy>,
}

/// Close the window and end all its processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowStopParams {}

/// Build, then replace the window. If the build fails, the old window stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowRestartParams {
    /// When to build first. `auto` (default): after a change since the last good build.
    #[arg(long, value_enum)]
    pub rebuild: Option<RebuildPolicy>,
}

/// List the files that changed since the window was built, or explain whether a path is tracked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowChangesParams {
    /// Path to explain, relative to the workspace.
    pub path: Option<String>,
}

/// The state of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReportedWindowState {
    /// There is none.
    #[default]
    Absent,
    /// Launched, and not responding yet.
    Starting,
    /// It runs the current files.
    Ready,
    /// It runs, but a tracked file has changed since its build began.
    Stale,
    /// A build runs; the old window, if there is one, stays open.
    Building,
    Stopping,
    /// It exited by itself.
    Exited,
    /// Its port responds, its page does not.
    Unresponsive,
    /// The window of an earlier supervisor may run, but cannot be verified; the notes say why.
    Unverified,
}

/// How a tracked file differs from what the window was built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangedFileKind {
    Modified,
    Added,
    Removed,
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Relative to the workspace.
    pub path: String,
    pub kind: ChangedFileKind,
    /// The file's mtime; for a removed file the one that it had.
    pub modified_at: u64,
}

/// How the last build went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildReport {
    pub ok: bool,
    #[serde(default)]
    pub ended_at: u64,
    pub duration_ms: u64,
    /// The last lines of its output.
    pub tail: String,
}

/// How a window exited by itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowExitReport {
    /// Unknown when the window was not a child of this supervisor.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: u64,
    /// The calls that were under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doing: Vec<String>,
    /// The last entries of its console.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<String>,
    /// The last lines that it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// What the processes of a window use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowResources {
    pub processes: usize,
    /// The sum of their resident memory; shared memory counts for each process.
    pub memory_bytes: u64,
    /// Of one core, so two busy cores are 200: the average since the previous status, at first since the processes started.
    pub cpu_percent: u64,
}

/// "340 MiB and 4 % CPU in 12 processes"
impl fmt::Display for WindowResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB and {} % CPU", self.memory_bytes >> 20, self.cpu_percent)?;
        write!(f, " in {} process{}", self.processes, if self.processes == 1 { "" } else { "es" })
    }
}

/// The status of the window.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowStatus {
    pub state: ReportedWindowState,
    pub pid: Option<u32>,
    pub cdp_port: Option<u16>,
    /// Of the extension host, or of Node.
    pub inspector_port: Option<u16>,
    pub launch_id: Option<String>,
    pub started_at: Option<u64>,
    /// Rises with every launch; a window that is found again keeps its own.
    pub generation: u64,
    /// The window was started by an earlier supervisor.
    pub reconnected: bool,
    pub stale: bool,
    /// What the window's processes use. Only in the result of `window/status`, while a window runs.
    pub resources: Option<WindowResources>,
    /// At most 10.
    #[serde(default)]
    pub changes: Vec<ChangedFile>,
    pub last_build: Option<BuildReport>,
    /// How it was last brought up to date, if it was since it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed: Option<RefreshReport>,
    /// The ids of the active debug sessions.
    #[serde(default)]
    pub sessions: Vec<String>,
    /// When state is `exited`.
    pub exit: Option<WindowExitReport>,
    /// What is in progress, and remarks for the reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Which rule decided about a path.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackingDecision {
    pub path: String,
    pub tracked: bool,
    /// The deciding rule; none when no rule matches the path.
    pub rule: Option<String>,
    /// The file of the rule; none when it is built in.
    pub file: Option<String>,
    pub line: Option<u64>,
    /// How the path differs from what the window was built from.
    pub change: Option<ChangedFile>,
}

/// What has changed since the window was built.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowChanges {
    pub stale: bool,
    pub newest: Option<ChangedFile>,
    /// At most 100; `total` counts all.
    pub changed: Vec<ChangedFile>,
    pub total: u64,
    /// As in the status.
    #[serde(default)]
    pub generation: u64,
    /// When the build began that the window runs; none without a window.
    pub compared_to: Option<u64>,
    /// Set when `path` was given.
    #[serde(flatten)]
    pub decision: Option<TrackingDecision>,
    /// Rules that could not be read, folders that could not be entered, watches that could not be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// How a running window was last brought up to date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshReport {
    pub by: RefreshRung,
    /// Without the build.
    pub took_ms: u64,
}

/// Part of the result of a page operation that refreshed a stale window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshNotice {
    /// The newest file that had changed, and how.
    pub because: String,
    pub build_ms: u64,
    /// The time without the build.
    pub launch_ms: u64,
    #[serde(default)]
    pub by: RefreshRung,
    /// Remarks on the build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
