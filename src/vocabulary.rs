//! Words that the API, the window and the debug sessions share: each is one type, on the wire and inside.
//!
//! Depends on nothing else.

mod page_emulation;
mod page_settings;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use self::page_emulation::{ColorScheme, CssMedia, DEVICES, NetworkPreset, PageEmulation};
pub use self::page_settings::RequestRule;

/// What a session is doing: of its targets' states the greatest, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunState {
    /// The program has exited, or was detached from.
    Terminated,
    /// The adapter or the connection to it has ended; the state of the program is unknown.
    Disconnected,
    #[default]
    Starting,
    Running,
    /// At least one of its targets is.
    Stopped,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StopKind {
    BreakpointHit,
    StepComplete,
    Exception,
    WatchpointAccess,
    WatchpointModify,
    MethodEntry,
    MethodExit,
    VmStart,
    VmDeath,
    UserSuspend,
    Entry,
}

/// How a window was made to run the new code, from the cheapest to the dearest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RefreshRung {
    /// The extension host was restarted; page, editors and panels stay.
    RestartExtensionHost,
    /// The page was loaded again, without its caches; its storage stays.
    Reload,
    /// All its processes were replaced.
    #[default]
    Relaunch,
}

/// Something that has happened in the workspace, as the timeline records it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEvent {
    /// Its number in the timeline of the workspace, which rises.
    pub number: u64,
    /// When it happened, or ended, in epoch ms.
    pub at: u64,
    /// What kind of thing.
    pub kind: TimelineKind,
    /// The debug session that it is of.
    pub session_id: Option<String>,
    /// What has happened, and why, in one line.
    pub text: String,
    /// Where: `app.py:12`.
    pub place: Option<String>,
    /// Who has done it: a front end, or a joined editor.
    pub by: Option<String>,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Whether it failed; absent where it cannot.
    pub failed: Option<bool>,
}

// No docs on the variants of those below: they would turn the short `enum` of the tools' schemas into a long `oneOf`.

/// The accesses at which a data breakpoint stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum DataAccess {
    Read,
    #[default]
    Write,
    ReadWrite,
}

/// When to build before a launch. `auto`: at a start, and after a change since the last good build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum RebuildPolicy {
    #[default]
    Auto,
    Always,
    Never,
}

/// Encoding of a screenshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

/// A button of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MouseButton {
    #[default]
    Left,
    Middle,
    Right,
}

/// What kind of thing a timeline event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
#[value(rename_all = "camelCase")]
pub enum TimelineKind {
    SupervisorStarted,
    SupervisorEnded,
    Edited,
    Built,
    Checked,
    WindowLaunched,
    WindowFound,
    WindowRefreshed,
    RefreshHeld,
    WindowEnded,
    ConsoleError,
    SessionStarted,
    Stopped,
    Resumed,
    SessionEnded,
    Called,
}
