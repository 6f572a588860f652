//! The operations on one session, carried out in the process that it lives in.
//!
//! | file | owns |
//! |---|---|
//! | `control` | continue, step, pause, wait, stop |
//! | `status` | the state of a session |
//! | `reattached` | what is said of a session that was attached to another program |
//! | `inspect` | frames, variables, expressions, sources, output, events |
//! | `watchpoint` | data breakpoints |
//! | `wait_limit` | how long an operation with a `wait` may take |
//! | `stop_report` | waiting for the stop of a session, or for the first of several; the report of it |
//! | `end_message` | how a program ended, and what it printed last |
//! | `convert` | sessions, stops and breakpoints into the API's types |
//!
//! How a session runs, stops and ends is decided in `debug`.

pub mod control;
pub mod convert;
mod end_message;
mod inspect;
pub mod reattached;
pub mod status;
pub mod stop_report;
pub mod wait_limit;
pub mod watchpoint;

use serde_json::Value;
use tether_base::error::{Error, ErrorContext, Result};

use super::context::SessionContext;
use super::params::read_params;
use crate::api::OperationParams;
use crate::api::debug::breakpoints::WatchpointSetParams;
use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams};
use crate::api::debug::inspect::{
    DebugEvaluateParams, DebugEventsParams, DebugOutputParams, DebugSetVariableParams, DebugSourceParams,
    DebugStackParams, DebugVariablesParams,
};
use crate::api::debug::{DebugStatusParams, DebugStopParams, WaitForStopParams};

/// An operation on one session.
pub trait SessionOperation: OperationParams {
    /// Carries out the operation with these parameters.
    fn run(self, context: &SessionContext) -> impl Future<Output = Result<Self::Result>> + Send;
}

macro_rules! define_session_operations {
    ($($params:ty),* $(,)?) => {
        /// Whether a method is an operation on one session.
        pub fn is_session_operation(method: &str) -> bool {
            [$(<$params>::METHOD),*].contains(&method)
        }

        /// Carries out an operation. Errors: no such operation, wrong parameters, and those of the operation.
        pub async fn run_operation(context: &SessionContext, method: &str, params: &Value) -> Result<Value> {
            match method {
                $(<$params>::METHOD => run::<$params>(context, params).await,)*
                method => Err(Error::usage(format!("a session host has no method {method:?}"))),
            }
        }
    };
}
define_session_operations!(
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
    DebugStatusParams,
    DebugStopParams,
    WatchpointSetParams,
);

async fn run<P: SessionOperation>(context: &SessionContext, params: &Value) -> Result<Value> {
    let result = read_params::<P>(params)?.run(context).await?;
    serde_json::to_value(result).doing(|| format!("cannot serialize the result of {}", P::METHOD))
}
