//! What protocols share: Content-Length frames (DAP, JSON-RPC), JSON-RPC 2.0, the table of pending requests, and a TCP
//! stream without delays for debuggees.
//!
//! Does not depend on the meaning of any message.

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

pub mod frames;
mod low_latency;
#[cfg(any(test, feature = "test-util"))]
pub mod mutation;
pub mod pending;
pub mod rpc;

pub use low_latency::LowLatencyStream;
