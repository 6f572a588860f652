//! The operations that the extension inside the window carries out: requests to the window bridge of the present window.
//!
//! Does not depend on what a command does.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::time::timeout;

use super::window::refresh_report;
use super::window_stops::until_stopped;
use crate::api::OperationParams;
use crate::api::protocol::ClientRole;
use crate::api::window_bridge::{
    CommandArgument, WindowCommandParams, WindowCommandResult, WindowOutputParams, WindowOutputResult,
};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::editors::connected_editors::ConnectedEditor;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::PageResult;

/// A command may show a dialog, and wait for its user.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the extension of a window that was just launched may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

impl OperationHandler for WindowCommandParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowCommandResult> {
        let fresh = context.window.open_fresh_page(call).await?;
        let running = async {
            let bridge = find_bridge(context).await?;
            let args: Vec<Value> = self.args.into_iter().flatten().map(CommandArgument::into_value).collect();
            let params = json!({"command": self.command, "args": args});
            bridge.send_request(WindowCommandParams::METHOD, &params, COMMAND_TIMEOUT).await
        };
        let PageResult { value, generation, refreshed, notes } =
            fresh.finish(until_stopped(context, running).await.done())?;
        let value = value.get("value").cloned().unwrap_or_default();
        Ok(WindowCommandResult { value, generation, refreshed: refreshed.map(refresh_report), notes })
    }
}

impl OperationHandler for WindowOutputParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<WindowOutputResult> {
        let bridge = find_bridge(context).await?;
        let mut params = serde_json::to_value(&self).doing(|| "cannot serialize the request".to_owned())?;
        if let Some(members) = params.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        let answer = bridge.send_request(WindowOutputParams::METHOD, &params, OUTPUT_TIMEOUT).await?;
        let doing = || format!("cannot read the answer of {}", bridge.client.name);
        serde_json::from_value(answer).doing(doing)
    }
}

/// The bridge of the present window; that of one which was launched a moment ago is waited for.
async fn find_bridge(context: &SupervisorContext) -> Result<Arc<ConnectedEditor>> {
    let Some(window) = context.window.wait_for_search().await.window else {
        return Err(Error::new(ErrorKind::NotFound, "there is no debug window").hint("`tether start` starts it"));
    };
    let session = &window.session;
    let connected = &context.editors.connected;
    // Watched before the first look, so that no connection is missed.
    let changed = connected.watch();
    let find = || {
        let is_bridge = |editor: &ConnectedEditor| editor.client.role == ClientRole::WindowBridge;
        connected.find_newest(|editor| is_bridge(editor) && editor.launch_id.as_deref() == Some(&session.launch_id))
    };
    let age = tether_base::clock::now_ms().saturating_sub(session.debug_window_started_at);
    let deadline = CONNECT_TIMEOUT.saturating_sub(Duration::from_millis(age));
    let cause = tokio::select! {
        biased;
        found = timeout(deadline, wait_for_bridge(&find, changed)) => match found.ok().flatten().or_else(find) {
            Some(bridge) => return Ok(bridge),
            None => "tether's own extension (devtether.tether) does not run in it, or is not connected",
        },
        () = window.wait_for_missing_bridge() => "tether's own extension (devtether.tether) is not in it",
    };
    let error = Error::new(ErrorKind::NotFound, "cannot reach VS Code's side of the debug window").because(cause);
    Err(error
        .hint("tether brings it into each VS Code that it launches, unless `profile` in devtools.toml keeps the extensions of that one")
        .hint("`tether restart` launches a new one; remove `--disable-extensions` from its arguments"))
}

/// `None` when no editor can connect any more.
async fn wait_for_bridge(
    find: impl Fn() -> Option<Arc<ConnectedEditor>>,
    mut changed: tokio::sync::watch::Receiver<u64>,
) -> Option<Arc<ConnectedEditor>> {
    loop {
        if let Some(bridge) = find() {
            return Some(bridge);
        }
        changed.changed().await.ok()?;
    }
}
