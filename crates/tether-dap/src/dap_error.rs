//! Why a request over DAP has no result.

use std::time::Duration;

use super::message::ErrorResponse;

/// Why a request over DAP has no result, or why a connection could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DapError {
    /// The peer has sent an error response.
    #[error("{command} failed: {response}")]
    Refused {
        /// As in the protocol: `stackTrace`, …
        command: String,
        /// In the words of the peer.
        response: ErrorResponse,
    },
    /// No response has come before the deadline.
    #[error("no response to {command} within {after:?}")]
    TimedOut {
        /// The command, or the attempt to connect.
        command: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection has ended; the text is the reason.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The response does not have the form that the protocol defines.
    #[error("unexpected response to {command}: {cause}")]
    Unexpected {
        /// As in the protocol: `stackTrace`, …
        command: String,
        /// Where the body differs from what was expected.
        cause: String,
    },
    /// The message cannot be encoded, or is too long.
    #[error("{command} cannot be sent: {cause}")]
    Unsendable {
        /// The command, or the name of an event.
        command: String,
        /// How it fails to be encoded, or its size.
        cause: String,
    },
    /// The connection could not be made.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable {
        /// The IP address and the port.
        address: String,
        /// The error of the operating system.
        cause: String,
    },
}
