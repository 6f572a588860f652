//! The operations on the window.

use std::path::Path;

use crate::api::window::{
    RebuildChoice, WindowChanges, WindowChangesParams, WindowRestartParams, WindowStartParams, WindowStatus,
    WindowStatusParams, WindowStopParams,
};
use crate::error::Result;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::RebuildPolicy;

/// Inspects the window, and lists the active sessions beside it.
pub async fn window_status(context: &SupervisorContext) -> WindowStatus {
    let sessions = context.sessions.active_sessions().into_iter().map(|it| it.id).collect();
    WindowStatus { sessions, ..convert::window::inspected_window_status(context.window.inspect().await) }
}

impl OperationHandler for WindowStatusParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<WindowStatus> {
        let (status, usage) = tokio::join!(window_status(context), context.window.measure_resources());
        Ok(WindowStatus { resources: usage.map(convert::window::window_resources), ..status })
    }
}

impl OperationHandler for WindowStartParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        context.window.start(self.config.as_deref(), rebuild_policy(self.rebuild), call).await?;
        Ok(window_status(context).await)
    }
}

impl OperationHandler for WindowStopParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        context.window.stop(call).await?;
        Ok(window_status(context).await)
    }
}

impl OperationHandler for WindowRestartParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        context.window.restart(rebuild_policy(self.rebuild), call).await?;
        Ok(window_status(context).await)
    }
}

impl OperationHandler for WindowChangesParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<WindowChanges> {
        let explanation = match &self.path {
            Some(path) => Some(context.window.explain_path(Path::new(path)).await?),
            None => None,
        };
        Ok(convert::window::window_changes(context.window.inspect_changes().await?, explanation))
    }
}

fn rebuild_policy(rebuild: Option<RebuildChoice>) -> RebuildPolicy {
    match rebuild.unwrap_or_default() {
        RebuildChoice::Auto => RebuildPolicy::Auto,
        RebuildChoice::Always => RebuildPolicy::Always,
        RebuildChoice::Never => RebuildPolicy::Never,
    }
}
