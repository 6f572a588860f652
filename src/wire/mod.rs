//! The wire: Content-Length frames and JSON-RPC 2.0, shared by DAP and by our own API; and the TCP stream that debuggees are
//! spoken to over.
//!
//! Knows bytes, frames and messages. Must not know what any message means.

pub mod frames;
mod low_latency;
pub mod pending;
pub mod rpc;

pub use low_latency::LowLatencyStream;
