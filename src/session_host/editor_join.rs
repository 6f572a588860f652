//! An editor that joins a session: a port of 127.0.0.1 for its one connection, over which it speaks DAP.
//!
//! Does not depend on what is said.

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::loopback_listener::{ListenerError, LoopbackListener};
use crate::debug::SessionRegistry;
use crate::debug::join::{SessionChoice, serve_tcp_editor};

/// Waits for the editor, and serves it until it leaves, or `end` is cancelled.
pub async fn serve_joined_editor(
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
