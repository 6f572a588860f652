//! From a request's method to the handler of its operation, by the operation table.

use serde_json::Value;
use tether_base::error::{Error, ErrorContext, Result};

use super::context::SupervisorContext;
use super::handlers::debug::hosted;
use super::operation_call::{OperationCall, OperationHandler};
use super::timeline_records::record_call;
use crate::api::debug::{breakpoints::*, control::*, inspect::*, *};
use crate::api::extension_tests::*;
use crate::api::page::*;
use crate::api::page_control::*;
use crate::api::page_input::*;
use crate::api::page_network::*;
use crate::api::timeline::*;
use crate::api::window::*;
use crate::api::window_bridge::*;
use crate::api::{OPERATIONS, Operation, OperationGroup, OperationParams, find_operation, for_each_operation};
use crate::session_host::params::read_params;

/// Operations of the window group that only read recorded state: not listed as in flight when the window exits.
const READS_RECORDED_STATE: [&str; 5] = [
    WindowStatusParams::METHOD,
    WindowChangesParams::METHOD,
    PageConsoleParams::METHOD,
    PageNetworkParams::METHOD,
    WindowOutputParams::METHOD,
];

/// Operations of the debug group that start a session, or change what belongs to the workspace: a session of an earlier
/// supervisor gets the breakpoints as they are when it is recovered.
const MEANS_NO_SESSION: [&str; 8] = [
    DebugLaunchParams::METHOD,
    DebugAttachParams::METHOD,
    DebugProbeParams::METHOD,
    BreakpointSetParams::METHOD,
    BreakpointListParams::METHOD,
    BreakpointRemoveParams::METHOD,
    BreakpointExportParams::METHOD,
    BreakpointImportParams::METHOD,
];
/// Operations of the debug group that report on every session, or on any that is stopped.
const MEANS_EVERY_SESSION: [&str; 3] =
    [DebugStatusParams::METHOD, WatchpointSetParams::METHOD, BreakpointExceptionsParams::METHOD];
/// The parameters that name a session.
const SESSION_PARAM: &str = "sessionId";
const RESTART_PARAM: &str = "restart";

/// Carries out one call, and records it. Errors: no such method, wrong parameters, and those of the handler.
pub(super) async fn dispatch(context: &SupervisorContext, call: &OperationCall<'_>) -> Result<Value> {
    let operation = find_operation(call.method).ok_or_else(|| no_such_method(call.method))?;
    let outcome = carry_out(context, operation, call).await;
    record_call(context, operation, call, outcome.as_ref().ok());
    outcome
}

async fn carry_out(context: &SupervisorContext, operation: &Operation, call: &OperationCall<'_>) -> Result<Value> {
    let in_flight = match operation.group {
        OperationGroup::Debug => {
            wait_for_sessions(context, call).await;
            if let Some(result) = hosted::call_in_host(context, call).await {
                return result;
            }
            None
        }
        OperationGroup::Both => None,
        OperationGroup::Window if READS_RECORDED_STATE.contains(&call.method) => None,
        OperationGroup::Window => Some(context.window.track_call(call.summary())),
    };
    macro_rules! handle_by_method {
        ($($params:ty { $($row:tt)* })*) => {
            match call.method {
                $(<$params>::METHOD => handle::<$params>(context, call).await,)*
                method => Err(no_such_method(method)),
            }
        };
    }
    let outcome = for_each_operation!(handle_by_method);
    if let Some(in_flight) = in_flight.filter(|_| outcome.is_ok()) {
        in_flight.succeeded();
    }
    outcome
}

/// Waits for the session that an operation means: the named one, or, where none is named, until it is decided which.
async fn wait_for_sessions(context: &SupervisorContext, call: &OperationCall<'_>) {
    let session = [SESSION_PARAM, RESTART_PARAM].iter().find_map(|name| call.params.get(*name)?.as_str());
    if session.is_some() || MEANS_EVERY_SESSION.contains(&call.method) {
        context.wait_until_settled(session).await;
    } else if !MEANS_NO_SESSION.contains(&call.method) {
        context.wait_until_decided().await;
    }
}

async fn handle<P: OperationHandler>(context: &SupervisorContext, call: &OperationCall<'_>) -> Result<Value> {
    let result = read_params::<P>(&call.params)?.handle(context, call).await?;
    serde_json::to_value(result).doing(|| format!("cannot serialize the result of {}", P::METHOD))
}

fn no_such_method(method: &str) -> Error {
    let known: Vec<_> = OPERATIONS.iter().map(|operation| operation.method).collect();
    Error::usage(format!("there is no method {method:?}")).hint(format!("there are: {}", known.join(", ")))
}
