//! Why a request over DAP has no result.

use std::time::Duration;

use super::message::ErrorResponse;

/// Why a request over DAP has no result, or why a connection could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DapError {
    /// The peer has sent an error response.
    #[error("{command} failed: {response}")]
    Refused { command: String, response: ErrorResponse },
    /// No response has come before the deadline.
    #[error("no response to {command} within {after:?}")]
    TimedOut { command: String, after: Duration },
    /// The connection has ended; the text is the reason.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The response does not have the form that the protocol defines.
    #[error("unexpected response to {command}: {cause}")]
    Unexpected { command: String, cause: String },
    /// The message cannot be encoded, or is too long.
    #[error("{command} cannot be sent: {cause}")]
    Unsendable { command: String, cause: String },
    /// The connection could not be made.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable { address: String, cause: String },
}
