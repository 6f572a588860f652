//! Why a CDP request has no result.

use std::time::Duration;

/// Why a CDP request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CdpError {
    /// The peer returned an error object: JSON-RPC code and message.
    #[error("{method} failed: {message} ({code})")]
    ErrorResponse { method: String, code: i64, message: String },
    /// No response within the deadline.
    #[error("{what} was not answered within {after:?}")]
    TimedOut { what: String, after: Duration },
    /// The connection has ended, for this reason.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The response does not have the shape that the protocol defines.
    #[error("unexpected response to {what}: {cause}")]
    Unexpected { what: String, cause: String },
    /// The connection could not be opened.
    #[error("cannot connect to 127.0.0.1:{port}: {cause}")]
    Unreachable { port: u16, cause: String },
}
