//! Why a CDP request has no result.

use std::time::Duration;

/// Why a CDP request has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CdpError {
    /// The peer returned an error object.
    #[error("{method} failed: {message} ({code})")]
    ErrorResponse {
        /// `Domain.command`
        method: String,
        /// JSON-RPC's: -32601 if the peer has no such command.
        code: i64,
        /// In the words of the peer.
        message: String,
    },
    /// No response within the deadline.
    #[error("{what} was not answered within {after:?}")]
    TimedOut {
        /// The command, or the path and the port that were requested.
        what: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection has ended, for this reason.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The response does not have the shape that the protocol defines.
    #[error("unexpected response to {what}: {cause}")]
    Unexpected {
        /// The command, or the path and the port that were requested.
        what: String,
        /// How the response differs from what was expected.
        cause: String,
    },
    /// The connection could not be opened.
    #[error("cannot connect to 127.0.0.1:{port}: {cause}")]
    Unreachable {
        /// On the loopback.
        port: u16,
        /// The error of the operating system, or of the handshake.
        cause: String,
    },
}
