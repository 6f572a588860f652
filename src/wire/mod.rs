//! What protocols share: Content-Length frames (DAP, JSON-RPC), JSON-RPC 2.0, the table of pending requests, and a TCP
//! stream without delays for debuggees.
//!
//! Does not depend on the meaning of any message.

pub mod frames;
mod low_latency;
#[cfg(test)]
pub mod mutation;
pub mod pending;
pub mod rpc;

pub use low_latency::LowLatencyStream;
