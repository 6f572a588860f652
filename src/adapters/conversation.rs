//! What the conversations of the adapters in this process have in common: their beginning, their end, the bodies of
//! requests, the output of programs.
//!
//! Does not depend on any adapter.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::output_reader::OutputPiece;
use super::request_failure::RequestFailure;
use crate::dap::types::{DapCapabilities, ExceptionBreakpointsFilter, OutputEvent};
use crate::dap::{DapInbox, DapIncoming, ErrorResponse, IncomingRequest};
use crate::error::Result;

/// How a conversation goes on after a message.
pub enum NextMove {
    GoOn,
    /// The program has ended, or the connection to it.
    Ended,
    Disconnect(IncomingRequest),
    ClientGone,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DisconnectRequest {
    terminate_debuggee: Option<bool>,
}

/// Answers requests until one launches a program or attaches to it, and returns that. `None`: the client has left.
pub async fn next_start(inbox: &mut DapInbox, capabilities: &DapCapabilities) -> Option<IncomingRequest> {
    loop {
        let DapIncoming::Request(request) = inbox.next().await? else { continue };
        match request.command.as_str() {
            "initialize" => request.respond(capabilities),
            "launch" | "attach" => return Some(request),
            "disconnect" | "terminate" => {
                request.respond(&json!({}));
                return None;
            }
            // Dropping it refuses it.
            _ => {}
        }
    }
}

/// Answers a request that launches or attaches. `None`: it has failed, and another may follow.
pub fn respond_to_start<T>(request: IncomingRequest, started: Result<T>) -> Option<T> {
    match started {
        Ok(started) => {
            request.respond(&json!({}));
            Some(started)
        }
        Err(error) => {
            request.respond_error(ErrorResponse::new(error.to_string()));
            None
        }
    }
}

/// Whether a request that ends the session ends the program, too. `None`: it does not say.
pub fn requested_termination(request: &IncomingRequest) -> Option<bool> {
    let arguments: DisconnectRequest = request.read_arguments().unwrap_or_default();
    if request.command == "terminate" { Some(true) } else { arguments.terminate_debuggee }
}

/// The program has ended: waits for the client to leave.
pub async fn wait_for_disconnect(inbox: &mut DapInbox) {
    while let Some(incoming) = inbox.next().await {
        let DapIncoming::Request(request) = incoming else { continue };
        if matches!(request.command.as_str(), "disconnect" | "terminate") {
            request.respond(&json!({}));
            return;
        }
        request.respond_error(ErrorResponse::new("the program has ended"));
    }
}

/// A piece of a program's output, for the client.
pub fn output_event(piece: OutputPiece) -> OutputEvent {
    let (category, output) = match piece {
        OutputPiece::Stdout(text) => ("stdout", text),
        OutputPiece::Stderr(text) => ("stderr", text),
        OutputPiece::Dropped(count) => ("important", format!("{count} pieces of output were dropped\n")),
    };
    OutputEvent { output, category: Some(category.to_owned()) }
}

/// The arguments of a request. Errors: they have another form.
pub fn read_request<T: DeserializeOwned>(request: &IncomingRequest) -> std::result::Result<T, RequestFailure> {
    let command = &request.command;
    request.read_arguments().map_err(|cause| RequestFailure(format!("{command} has bad arguments: {cause}")))
}

/// The body of a response.
pub fn to_body(body: impl Serialize) -> std::result::Result<Value, RequestFailure> {
    serde_json::to_value(body).map_err(|cause| RequestFailure(cause.to_string()))
}

/// A filter of exceptions, as capabilities list it.
pub fn exception_filter(filter: &str, label: &str, default: bool) -> ExceptionBreakpointsFilter {
    ExceptionBreakpointsFilter { filter: filter.to_owned(), label: label.to_owned(), default }
}
