//! The Debug Adapter Protocol, both sides of it: we are the client of adapters, and the adapter of editors.
//!
//! | file | owns |
//! |---|---|
//! | `types` | names and shapes of the requests, answers and events that we use |
//! | `message` | the envelope: read once, its body kept raw |
//! | `connection` | the transports: pipes, TCP, Unix sockets, a pair in memory |
//! | `inbox` | what has come in and waits to be looked at; what may be lost of it |
//! | `peer` | who waits for which answer, and when a waiting ends |
//! | `client` | the side that asks: typed requests with deadlines |
//! | `server` | the side that answers: requests in, answers and events out |
//! | `trace` | what is sent, written down for whoever looks into a conversation (`DEVTETHER_DAP_RECORD`) |
//!
//! None knows sessions, adapters or what a message is good for; of other rooms only `wire` is known.
//!
//! <https://microsoft.github.io/debug-adapter-protocol/specification>

mod client;
mod connection;
mod inbox;
mod message;
mod peer;
mod server;
mod trace;
pub mod types;

pub use client::{DapClient, SentRequest};
pub use connection::DapConnection;
pub use inbox::{DapInbox, DapIncoming, LostEvents};
pub use message::{ErrorResponse, RawEvent, RawJson};
pub use peer::{Driver, IncomingRequest};
pub use server::DapServer;
pub use types::{DapEvent, DapRequest};

use std::time::Duration;

/// Why a request over DAP has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DapError {
    /// The peer's error response.
    #[error("{command} failed: {response}")]
    Refused { command: String, response: ErrorResponse },
    #[error("no response to {command} within {after:?}")]
    TimedOut { command: String, after: Duration },
    /// The connection is over; the text says why.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The answer is not what the protocol promises.
    #[error("unexpected response to {command}: {cause}")]
    Unexpected { command: String, cause: String },
    /// It cannot be said in a message.
    #[error("{command} cannot be sent: {cause}")]
    Unsendable { command: String, cause: String },
    /// The connection could not be made.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable { address: String, cause: String },
}
