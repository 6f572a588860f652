//! The messages between a front end and the supervisor besides operations: `initialize`, shutdown, notifications, and the
//! requests that the supervisor sends to editors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first request on every connection; no other is handled before it.
pub const INITIALIZE: &str = "initialize";
/// Requests the supervisor to exit; the window stays.
pub const SHUTDOWN: &str = "supervisor/shutdown";
/// Sent when the window's state has changed; parameters as `window/status`'s result.
pub const WINDOW_DID_CHANGE_STATE: &str = "window/didChangeState";
/// Sent when a debug session has started, stopped, continued or ended; parameters as an entry of
/// `debug/status`'s `sessions`, without what takes a request to the adapter: threads, and the location of a stop.
pub const DEBUG_DID_CHANGE_STATE: &str = "debug/didChangeState";
/// Sent when the console has new entries, at most twice a second; parameters: none.
pub const WINDOW_DID_CHANGE_CONSOLE: &str = "window/didChangeConsole";
/// Sent when something was recorded in the timeline, at most twice a second; parameters: none.
pub const TIMELINE_DID_CHANGE: &str = "timeline/didChange";

/// Sent by an editor: opens a port for one DAP conversation with an adapter, which is started when the editor connects.
pub const DEBUGGER_START: &str = "debugger/start";
/// Sent by an editor: as [`DEBUGGER_START`], but an editor that has the capability `startDebugSession` is requested to
/// connect.
pub const DEBUGGER_OPEN: &str = "debugger/open";
/// Sent by an editor: ends a session of [`DEBUGGER_OPEN`], and has its editor close it.
pub const DEBUGGER_CLOSE: &str = "debugger/close";
/// Requests an editor to open a debug session on `host` and `port`. Its result is the editor's id of the session, a
/// number or a string, alone or as `sessionId` of an object.
pub const START_DEBUG_SESSION: &str = "startDebugSession";
/// Requests an editor to end the session with its own `sessionId`. Its result is `true`.
pub const TERMINATE_DEBUG_SESSION: &str = "terminateDebugSession";
/// Requests the host to run a task of VS Code; parameters: `name`.
pub const HOST_RUN_TASK: &str = "host/runTask";
/// Requests the host to stop the MCP server, since the window is gone; parameters: `reason`. The host decides.
pub const HOST_STOP_SERVER: &str = "host/stopServer";
/// Requests the host to run a command of VS Code; parameters: `command` and `args`.
pub const HOST_EXECUTE_COMMAND: &str = "host/executeCommand";
/// Sent by an editor: opens a port for one DAP conversation about the session `sessionId`; without it, the conversation's
/// own `launch` or `attach` says which.
pub const DEBUGGER_JOIN: &str = "debugger/join";

/// Sent by `tether wrap --debug`: how a command is started so that it waits for its debugger.
pub const SERVER_PLAN: &str = "server/plan";
/// Sent by `tether wrap --debug`: attaches the session of its server to a process that waits for that.
pub const SERVER_ATTACH: &str = "server/attach";

/// Every method of an editor that is not an operation.
pub const EDITOR_METHODS: &[&str] = &[
    DEBUGGER_START,
    DEBUGGER_JOIN,
    DEBUGGER_OPEN,
    DEBUGGER_CLOSE,
    HOST_RUN_TASK,
    HOST_STOP_SERVER,
    HOST_EXECUTE_COMMAND,
];

/// The parameters of [`INITIALIZE`]: the front end that connects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub name: String,
    /// The version of the front end's program: an older supervisor exits for a newer one. That of a window bridge is
    /// only logged.
    pub version: String,
    #[serde(default)]
    pub role: ClientRole,
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// Of a window bridge: the launch id in the environment of its window, by which the window is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_id: Option<String>,
    /// Of `tether wrap --debug`: the name of its server, whose session ends with the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wraps: Option<String>,
    /// The environment of the front end, as far as it is UTF-8: what it launches runs with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl InitializeParams {
    /// Whether it answers the requests to a host.
    pub fn is_host(&self) -> bool {
        self.role == ClientRole::Host || self.capabilities.host
    }
}

/// What the supervisor may send to a front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Receives [`WINDOW_DID_CHANGE_STATE`], [`DEBUG_DID_CHANGE_STATE`] and [`WINDOW_DID_CHANGE_CONSOLE`]; an `editor`
    /// and a `host` always receive the first two.
    pub did_change_state: bool,
    /// Starts no supervisor: one whose program was replaced stays for it.
    pub keeps_supervisor: bool,
    /// As long as it is connected, the window is built and refreshed after each save.
    pub refresh_on_save: bool,
    /// Answers [`START_DEBUG_SESSION`].
    pub start_debug_session: bool,
    /// Answers [`TERMINATE_DEBUG_SESSION`].
    pub terminate_debug_session: bool,
    /// Answers [`HOST_RUN_TASK`], [`HOST_STOP_SERVER`] and [`HOST_EXECUTE_COMMAND`], as the role `host` does.
    pub host: bool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ClientRole {
    /// Sends requests; receives notifications of changed states if its capabilities include that.
    #[default]
    Client,
    /// Receives notifications of changed states.
    Editor,
    /// The extension inside the window: answers `window/command` and `window/output`.
    WindowBridge,
    /// The extension in the VS Code that runs the MCP server. Receives notifications of changed states.
    Host,
}

/// The result of [`INITIALIZE`]: the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    pub name: String,
    pub version: String,
    pub pid: u32,
    pub workspace: String,
    /// The supervisor is older than the front end, or the front end's program has replaced its own: it exits now, and
    /// the window stays. Connect again.
    #[serde(default)]
    pub draining: bool,
}

/// The parameters of [`SERVER_PLAN`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerPlanParams {
    pub command: Vec<String>,
}

/// The result of [`SERVER_PLAN`]: the command, which prints `Debugger listening on …` with its port to stderr, and its language.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerPlan {
    pub argv: Vec<String>,
    pub language: String,
}

/// The parameters of [`SERVER_ATTACH`]; `why`: what has started the server again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerAttachParams {
    pub name: String,
    pub port: u16,
    pub language: String,
    pub why: String,
}

/// The result of [`SERVER_ATTACH`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerAttached {
    pub session_id: String,
}

/// The parameters of `$/progress`: the progress of a long call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    pub message: String,
    pub elapsed_ms: u64,
}
