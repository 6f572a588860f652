//! The session file `.devtools/session.json`: what a new supervisor needs to find its window again.
//!
//! The workspace, and so the file, may be hostile. Reading checks only its schema; [`super::identity`] verifies that it
//! describes our window. Safe reading and writing: [`crate::workspace::workspace_dir`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tether_base::error::{ErrorContext, Result};

use super::launch_id::is_launch_id;
use crate::workspace::workspace_dir::{self, AfterPowerFailure, WorkspaceFile};

const NAME: &str = "session.json";
/// The schema version that this program writes; newer ones are not read.
pub const VERSION: u64 = 1;

/// The content of the file. Times are epoch milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowSession {
    pub version: u64,
    pub cdp_port: u16,
    /// The window's main process, whatever the program is.
    pub electron_pid: u32,
    /// The extension host's or Node's inspector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspector_port: Option<u16>,
    /// The supervisor's socket, to which editors connect.
    pub host_bridge_path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_dir: Option<PathBuf>,
    pub debug_window_started_at: u64,
    pub persisted_at: u64,
    /// The value of `DEVTETHER_LAUNCH_ID` in the environment of the window.
    pub launch_id: String,
    pub boot_id: String,
    /// Clock ticks between boot and the start of the main process.
    pub pid_start_ticks: u64,
    /// The GUID of `webSocketDebuggerUrl`.
    pub browser_id: String,
    /// The extensions under development that the extension host on `inspector_port` is to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<PathBuf>,
}

impl WindowSession {
    /// What its generation is of: a launch, or a refresh of it.
    pub fn generation_key(&self) -> String {
        format!("{}@{}", self.launch_id, self.debug_window_started_at)
    }
}

/// Why a file is not used. Each text completes "session.json was set aside: …".
#[derive(Debug, thiserror::Error)]
pub enum SessionFileError {
    #[error(transparent)]
    File(#[from] workspace_dir::UnusableFile),
    #[error("it has the newer schema {0} (this program knows {VERSION}); a newer tether wrote it")]
    Newer(u64),
    #[error("it is not a session file: {0}")]
    Malformed(String),
}

fn state_file(workspace: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile { workspace, name: NAME, most: 64 * 1024, what: "the window keeps running" }
}

/// The path, for messages.
pub fn session_path(workspace: &Path) -> PathBuf {
    state_file(workspace).path()
}

/// Reads the file; `None` if there is none.
pub fn load_session(workspace: &Path) -> Result<Option<WindowSession>, SessionFileError> {
    state_file(workspace).read()?.map(|text| parse_session(&text)).transpose()
}

fn parse_session(text: &[u8]) -> Result<WindowSession, SessionFileError> {
    let malformed = |cause: serde_json::Error| SessionFileError::Malformed(cause.to_string());
    let value: Value = serde_json::from_slice(text).map_err(malformed)?;
    // The version first: a newer schema may have other fields.
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) if version > VERSION => return Err(SessionFileError::Newer(version)),
        _ => return Err(SessionFileError::Malformed("`version` is missing or wrong".into())),
    }
    let session: WindowSession = serde_json::from_value(value).map_err(malformed)?;
    let invalid = |what: &str| Err(SessionFileError::Malformed(format!("`{what}` has an impossible value")));
    match &session {
        s if s.electron_pid <= 1 || i32::try_from(s.electron_pid).is_err() => invalid("electronPid"),
        s if s.cdp_port == 0 => invalid("cdpPort"),
        s if s.inspector_port == Some(0) => invalid("inspectorPort"),
        s if !is_launch_id(&s.launch_id) => invalid("launchId"),
        s if !s.host_bridge_path.is_absolute() => invalid("hostBridgePath"),
        s if s.user_data_dir.as_ref().is_some_and(|dir| !dir.is_absolute()) => invalid("userDataDir"),
        s if s.extensions.iter().any(|folder| !folder.is_absolute()) => invalid("extensions"),
        _ => Ok(session),
    }
}

/// Replaces the file. Errors name the path; the window is not affected by them.
pub fn save_session(workspace: &Path, session: &WindowSession) -> Result<()> {
    write_session(workspace, session, AfterPowerFailure::OldOrNew)
}

/// As [`save_session`], of the copy in the state folder: nothing but the next supervisor reads it, and no window outlives a
/// power failure.
pub fn save_session_copy(state: &Path, session: &WindowSession) -> Result<()> {
    write_session(state, session, AfterPowerFailure::Unknown)
}

fn write_session(folder: &Path, session: &WindowSession, promised: AfterPowerFailure) -> Result<()> {
    let mut text =
        serde_json::to_vec_pretty(session).doing(|| format!("cannot write {}", session_path(folder).display()))?;
    text.push(b'\n');
    state_file(folder).replace(&text, promised)
}

/// Removes the file after the window was stopped. A missing one is fine.
pub fn remove_session(workspace: &Path) -> Result<()> {
    state_file(workspace).remove()
}

/// Renames an unusable file to `session.json.stale`. Returns a line with the reason, to be logged.
pub fn set_aside(workspace: &Path, reason: impl std::fmt::Display) -> Result<String> {
    state_file(workspace).set_aside(&reason.to_string())
}
