//! The messages between a front end and the supervisor besides operations: `initialize`, shutdown, notifications.

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

/// The parameters of [`INITIALIZE`]: the front end that connects.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub name: String,
    /// The version of the front end's program: an older supervisor exits for a newer one.
    pub version: String,
    #[serde(default)]
    pub role: ClientRole,
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// What the supervisor may send to a front end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// Receives [`WINDOW_DID_CHANGE_STATE`], [`DEBUG_DID_CHANGE_STATE`] and [`WINDOW_DID_CHANGE_CONSOLE`]; an `editor`
    /// always receives the first two.
    pub did_change_state: bool,
    /// Starts no supervisor: one whose program was replaced stays for it.
    pub keeps_supervisor: bool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientRole {
    /// Sends requests; receives notifications of changed states if its capabilities include that.
    #[default]
    Client,
    /// Receives notifications of changed states.
    Editor,
}

/// The result of [`INITIALIZE`]: the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// The parameters of `$/progress`: the progress of a long call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    pub message: String,
    pub elapsed_ms: u64,
}
