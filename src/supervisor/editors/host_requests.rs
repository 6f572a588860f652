//! Requests to the host, the extension in the VS Code that runs the MCP server: those that other editors send to it, and the
//! report that the window is gone.
//!
//! The host decides what it does. Does not depend on what a request means.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};
use tokio::time::timeout;
use tracing::{info, warn};

use super::Editors;
use super::connected_editors::ConnectedEditor;
use crate::api::protocol::HOST_STOP_SERVER;
use crate::supervisor::context::SupervisorContext;
use crate::window::{PublishedState, WindowPhase};

/// A task may take long.
const HOST_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const STOP_SERVER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a window that is gone may be replaced by another: a reload is no end.
const CLOSE_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Passes a request on to the newest host. Errors: none is connected, and those of the host.
pub async fn send_to_host(editors: &Editors, method: &str, params: &Value) -> Result<Value> {
    let host = find_host(editors).ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, format!("cannot send {method}"));
        let error = error.because("no VS Code with the tether extension is connected to this workspace");
        error.hint("install the tether extension in the VS Code that has this workspace open, and enable it there")
    })?;
    host.send_request(method, params, HOST_TIMEOUT).await
}

fn find_host(editors: &Editors) -> Option<Arc<ConnectedEditor>> {
    editors.connected.find_newest(|editor| editor.client.is_host())
}

/// Reports each window that has exited by itself and was not replaced within the grace period. Never returns.
pub async fn report_lost_window(supervisor: Arc<SupervisorContext>) {
    let mut window = supervisor.window.watch();
    let is_gone = |window: &PublishedState| window.phase == WindowPhase::Exited;
    while window.wait_for(is_gone).await.is_ok() {
        let generation = window.borrow().generation;
        let is_replaced = |window: &PublishedState| window.phase != WindowPhase::Exited;
        if timeout(CLOSE_GRACE_PERIOD, window.wait_for(is_replaced)).await.is_ok() {
            continue;
        }
        if let Some(host) = find_host(&supervisor.editors) {
            let params = json!({"reason": "the debug window has been closed", "generation": generation});
            match host.send_request(HOST_STOP_SERVER, &params, STOP_SERVER_TIMEOUT).await {
                Ok(answer) => info!("{HOST_STOP_SERVER}: {} has answered {answer}", host.client.name),
                Err(error) => warn!("{error}"),
            }
        }
        if window.wait_for(is_replaced).await.is_err() {
            return;
        }
    }
}
