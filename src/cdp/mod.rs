//! The Chrome DevTools Protocol, as much of it as we speak: to browsers, Electron and Node.
//!
//! `types` and `events` know names and shapes, `endpoint` finds the WebSocket behind a port, `socket` is the transport,
//! `client` knows who waits for which answer. None knows windows or sessions; of other rooms this one knows only `wire`'s
//! TCP stream.
//!
//! <https://chromedevtools.github.io/devtools-protocol/>

mod client;
mod endpoint;
pub mod events;
mod socket;
pub mod types;

pub use client::{Client, Connection, Event, Events, Lost, Observer};
pub use endpoint::{Endpoint, Target, discover, targets};
pub use socket::{connect, connect_observed};
pub use types::Command;

use std::time::Duration;

/// Why a request over CDP has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The peer's own refusal: JSON-RPC code and message.
    #[error("{method} was refused: {message} ({code})")]
    Refused { method: String, code: i64, message: String },
    #[error("{what} was not answered within {after:?}")]
    TimedOut { what: String, after: Duration },
    /// The connection is over; the text says why.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The answer is not what the protocol promises.
    #[error("{what} answered something else than expected: {cause}")]
    Unexpected { what: String, cause: String },
    /// The connection could not be made.
    #[error("cannot connect to 127.0.0.1:{port}: {cause}")]
    Unreachable { port: u16, cause: String },
}
