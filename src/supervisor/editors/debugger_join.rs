//! `debugger/join`: a port on which an editor joins a debug session that is there, or, where none is named, the one that its
//! own `attach` names or its `launch` starts (`tether dap`).
//!
//! Does not depend on what is said over the connection.

use std::sync::Arc;

use serde::Deserialize;
use tether_base::error::Result;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::loopback_listener::{ListenerError, LoopbackListener, OpenedPort};
use crate::debug::SessionRegistry;
use crate::debug::join::{SessionChoice, serve_tcp_editor};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::debug::editor_session::choose_session;

/// The parameters; those that are not known are ignored, as with `debugger/start`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DebuggerJoinParams {
    session_id: Option<String>,
}

/// Opens the port, and serves the editor that connects to it. Errors: there is no such session, or it has ended.
pub async fn join_debugger(supervisor: &Arc<SupervisorContext>, params: &DebuggerJoinParams) -> Result<OpenedPort> {
    let choice = choose_session(supervisor, params.session_id.as_deref()).await?;
    let Some(listener) = LoopbackListener::open_for_editor() else { return Ok(OpenedPort::default()) };
    let (port, sessions) = (Some(listener.port()), supervisor.sessions.clone());
    supervisor.editors.conversations.spawn_conversation(|end| serve_joined_editor(sessions, listener, choice, end));
    Ok(OpenedPort { success: true, port })
}

async fn serve_joined_editor(
    sessions: SessionRegistry,
    listener: LoopbackListener,
    choice: SessionChoice,
    end: CancellationToken,
) {
    let port = listener.port();
    let serving = async {
        match listener.accept().await {
            Ok(stream) => {
                if let Err(error) = serve_tcp_editor(stream, sessions, choice).await {
                    warn!("the connection of an editor to port {port} has ended: {error}");
                }
            }
            Err(ListenerError::TimedOut) => info!("no editor has connected to port {port}: it is closed"),
            Err(error) => warn!("port {port} is closed: {error}"),
        }
    };
    tokio::select! {
        () = serving => {}
        () = end.cancelled() => {}
    }
}
