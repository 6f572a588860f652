//! Operations on sessions in this process.

use tether_base::error::Result;

use crate::api::OperationParams;
use crate::api::debug::breakpoints::WatchpointSetParams;
use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams};
use crate::api::debug::inspect::{
    DebugEvaluateParams, DebugEventsParams, DebugOutputParams, DebugSetVariableParams, DebugSourceParams,
    DebugStackParams, DebugVariablesParams,
};
use crate::api::debug::results::SessionEndReport;
use crate::api::debug::{DebugStopParams, WaitForStopParams};
use crate::session_host::operations::SessionOperation;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

macro_rules! carry_out_here {
    ($($params:ty),* $(,)?) => {
        $(impl OperationHandler for $params {
            async fn handle(
                self,
                context: &SupervisorContext,
                _: &OperationCall<'_>,
            ) -> Result<<$params as OperationParams>::Result> {
                self.run(&context.here).await
            }
        })*
    };
}
carry_out_here!(
    WaitForStopParams,
    DebugContinueParams,
    DebugPauseParams,
    DebugStepParams,
    DebugRunToParams,
    DebugStackParams,
    DebugVariablesParams,
    DebugEvaluateParams,
    DebugSetVariableParams,
    DebugSourceParams,
    DebugOutputParams,
    DebugEventsParams,
    WatchpointSetParams,
);

impl OperationHandler for DebugStopParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<SessionEndReport> {
        // A session that its user stops no longer follows the window.
        if let Ok(managed) = context.sessions.find_session(self.session_id.as_deref()) {
            context.followers.remove(&managed.id);
        }
        self.run(&context.here).await
    }
}
