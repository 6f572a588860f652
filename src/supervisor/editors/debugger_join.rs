//! `debugger/join`: a port on which an editor joins a debug session that is there, or, where none is named, the one that its
//! own `attach` names or its `launch` starts (`tether dap`).
//!
//! The port of a session in a host is the host's own: the editor stays joined whatever becomes of the supervisor. Does not
//! depend on what is said over the connection.

use std::sync::Arc;

use serde::Deserialize;
use tether_base::error::Result;

use crate::debug::join::SessionChoice;
use crate::session_host::editor_join::serve_joined_editor;
use crate::session_host::loopback_listener::{LoopbackListener, OpenedPort};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::debug::editor_session::{choose_by_editor, find_active_session};
use crate::supervisor::hosted_sessions::ListedSession;

/// The parameters; those that are not known are ignored, as with `debugger/start`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DebuggerJoinParams {
    session_id: Option<String>,
    /// Only a session in a host is meant, by its id or the only active one: there is no port for any other.
    hosted_only: bool,
    /// The session is to be started by the editor's `launch` or `attach`, in a host of its own.
    new_host: bool,
}

/// Opens the port, and serves the editor that connects to it. Errors: there is no such session, or it has ended.
pub async fn join_debugger(supervisor: &Arc<SupervisorContext>, params: &DebuggerJoinParams) -> Result<OpenedPort> {
    if params.new_host {
        return supervisor.hosted.open_editor_host().await;
    }
    let choice = if params.session_id.is_some() || params.hosted_only {
        match find_active_session(supervisor, params.session_id.as_deref()).await? {
            ListedSession::Hosted(hosted) => return hosted.open_editor_port().await,
            ListedSession::Here(_) if params.hosted_only => return Ok(OpenedPort::default()),
            ListedSession::Here(managed) => SessionChoice::Session(managed),
        }
    } else {
        choose_by_editor(supervisor)
    };
    let Some(listener) = LoopbackListener::open_for_editor() else { return Ok(OpenedPort::default()) };
    let (port, sessions) = (Some(listener.port()), supervisor.sessions.clone());
    supervisor.editors.conversations.spawn_conversation(|end| serve_joined_editor(sessions, listener, choice, end));
    Ok(OpenedPort { success: true, port })
}
