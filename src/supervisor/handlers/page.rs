//! The operations on the window's page.

use std::time::Duration;

use crate::api::page::{
    ConsoleEntries, NetworkEntries, PageConsoleParams, PageEvaluateParams, PageEvaluateResult, PageImage,
    PageNetworkParams, PageScreenshotParams, PageSnapshotParams, PageSnapshotResult,
};
use crate::api::page_input::{PageInputParams, PageInputResult};
use crate::error::Result;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::page as convert;
use crate::supervisor::convert::page_actions::input_actions;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

/// How long an expression may take when the caller does not say.
const DEFAULT_EVALUATE_TIMEOUT: Duration = Duration::from_secs(30);

impl OperationHandler for PageEvaluateParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageEvaluateResult> {
        let timeout = self.timeout_ms.map_or(DEFAULT_EVALUATE_TIMEOUT, Duration::from_millis);
        let evaluated = context.window.evaluate(&self.expression, timeout, self.page.as_deref(), call).await?;
        Ok(convert::evaluate_result(evaluated))
    }
}

impl OperationHandler for PageScreenshotParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageImage> {
        let options = convert::screenshot_options(self);
        Ok(convert::page_image(context.window.screenshot(&options, call).await?))
    }
}

impl OperationHandler for PageSnapshotParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageSnapshotResult> {
        let options = convert::snapshot_options(self);
        Ok(convert::snapshot_result(context.window.snapshot(&options, call).await?))
    }
}

impl OperationHandler for PageInputParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageInputResult> {
        let actions = input_actions(self.actions)?;
        let snapshot_bytes = self.snapshot.unwrap_or_default().then_some(convert::DEFAULT_SNAPSHOT_BYTES);
        let outcome = context.window.act(&actions, self.page.as_deref(), snapshot_bytes, call).await?;
        Ok(convert::input_result(outcome))
    }
}

impl OperationHandler for PageConsoleParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ConsoleEntries> {
        let query = convert::log_query(self.since, self.limit, self.filter);
        Ok(convert::console_entries(context.window.console(&query).await))
    }
}

impl OperationHandler for PageNetworkParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<NetworkEntries> {
        let query = convert::log_query(self.since, self.limit, self.filter);
        Ok(convert::network_entries(context.window.network(&query).await))
    }
}
