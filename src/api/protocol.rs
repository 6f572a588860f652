//! What passes between a front end and the supervisor beside the operations: the first message, notifications.

use serde::{Deserialize, Serialize};

/// The first request on every connection. Until it is answered, nothing else is.
pub const INITIALIZE: &str = "initialize";
/// Asks the supervisor to end and to leave the window alive.
pub const SHUTDOWN: &str = "supervisor/shutdown";
/// Tells a front end that the window's state has changed; parameters as `window/status`'s result.
pub const WINDOW_DID_CHANGE_STATE: &str = "window/didChangeState";
/// Tells a front end that a debug session has begun, stopped, gone on or ended; parameters as an entry of
/// `debug/status`'s `sessions`, without what only the adapter could tell: threads, and the place of a stop.
pub const DEBUG_DID_CHANGE_STATE: &str = "debug/didChangeState";
/// Tells a front end that the console has new entries, at most twice a second; parameters: none.
pub const WINDOW_DID_CHANGE_CONSOLE: &str = "window/didChangeConsole";

/// Who opens the connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub name: String,
    /// The version of the front end's program: a newer one drains an older supervisor.
    pub version: String,
    #[serde(default)]
    pub role: ClientRole,
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// What a front end can be told and asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// It wants [`DID_CHANGE_STATE`], [`DEBUG_DID_CHANGE_STATE`] and [`DID_CHANGE_CONSOLE`]; an `editor` gets the first two
    /// anyway.
    pub did_change_state: bool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientRole {
    /// Asks; is told of changes of state when its capabilities say so.
    #[default]
    Client,
    /// Is told of changes of state.
    Editor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    pub name: String,
    pub version: String,
    pub pid: u32,
    pub workspace: String,
    /// The supervisor is older than the front end and ends itself now; the window stays. Connect anew.
    #[serde(default)]
    pub draining: bool,
}

/// How a long call is getting on, in `$/progress`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    pub message: String,
    pub elapsed_ms: u64,
}
