//! The Debug Adapter Protocol, both sides of it: a client of adapters, and a server for editors and tests.
//!
//! | file | owns |
//! |---|---|
//! | `types` | the requests, responses and events that are used, as typed structs |
//! | `message` | the envelope: parsed once, its body kept as raw JSON |
//! | `connection` | the transports: pipes, TCP, Unix sockets, an in-memory pair |
//! | `inbox` | received messages in order, for one consumer; which of them may be dropped |
//! | `incoming_request` | a request of the peer, which is always responded to |
//! | `peer` | requests and responses in both directions, and the end of the connection |
//! | `client` | the client side: typed requests with deadlines |
//! | `server` | the server side: requests in, responses and events out |
//! | `trace` | a record of all messages (`DEVTETHER_DAP_RECORD`) |
//! | `fuzz_frames` | decodes arbitrary bytes, for tests and the fuzz target |
//!
//! Does not depend on sessions or adapters; of the crate's modules only on `wire`.
//!
//! <https://microsoft.github.io/debug-adapter-protocol/specification>

#![warn(missing_docs, unreachable_pub)]
// What is read here comes from outside.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod client;
mod connection;
mod dap_error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz_frames;
mod inbox;
mod incoming_request;
mod message;
mod peer;
mod server;
mod trace;
pub mod types;

pub use client::{DapClient, SentRequest};
pub use connection::DapConnection;
pub use dap_error::DapError;
pub use inbox::{DapInbox, DapIncoming, LostEvents};
pub use incoming_request::IncomingRequest;
pub use message::{ErrorResponse, RawEvent, RawJson};
pub use peer::Driver;
pub use server::DapServer;
pub use types::{DapEvent, DapRequest};
