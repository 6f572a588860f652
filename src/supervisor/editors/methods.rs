//! The methods of editors that are no operations of the API: what opens, joins and closes debug conversations, and requests
//! that are passed on to the host.
//!
//! Does not depend on the connection that a call came from.

use std::sync::Arc;

use serde_json::Value;
use tether_base::error::{Error, ErrorContext, Result};

use super::debugger_join::join_debugger;
use super::debugger_start::{read_editor_params, start_debugger};
use super::editor_sessions::{close_in_editor, open_in_editor};
use super::host_requests;
use crate::api::protocol::{
    DEBUGGER_CLOSE, DEBUGGER_JOIN, DEBUGGER_OPEN, DEBUGGER_START, EDITOR_METHODS, HOST_EXECUTE_COMMAND, HOST_RUN_TASK,
    HOST_STOP_SERVER,
};
use crate::supervisor::context::SupervisorContext;

/// Whether a method is one of an editor, and not an operation of the API.
pub fn is_editor_method(method: &str) -> bool {
    EDITOR_METHODS.contains(&method)
}

/// Carries out one call of an editor.
pub async fn call_editor_method(supervisor: &Arc<SupervisorContext>, method: &str, params: Value) -> Result<Value> {
    match method {
        DEBUGGER_START => {
            let started = start_debugger(supervisor, &read_editor_params(method, params)?)?;
            serde_json::to_value(started).doing(|| format!("cannot serialize the result of {method}"))
        }
        DEBUGGER_JOIN => {
            let joined = join_debugger(supervisor, &read_editor_params(method, params)?).await?;
            serde_json::to_value(joined).doing(|| format!("cannot serialize the result of {method}"))
        }
        DEBUGGER_OPEN => open_in_editor(supervisor, &read_editor_params(method, params)?).await,
        DEBUGGER_CLOSE => close_in_editor(supervisor, &read_editor_params(method, params)?).await,
        HOST_RUN_TASK | HOST_STOP_SERVER | HOST_EXECUTE_COMMAND => {
            host_requests::send_to_host(&supervisor.editors, method, &params).await
        }
        method => Err(Error::usage(format!("there is no method {method:?}"))),
    }
}
