//! The wire: Content-Length frames and JSON-RPC 2.0, shared by DAP and by our own API.
//!
//! Knows bytes, frames and messages. Must not know what any message means.

pub mod frames;
pub mod rpc;
