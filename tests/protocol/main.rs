//! Scripted peers through the real client: late responses, garbage, floods, half frames, silence.
//!
//! The peer is a script of the test: a browser, a debug adapter, an MCP client. The other side is the real code.

mod editor_connections;
mod editor_sessions;
mod joined_editor_errors;
mod launch_attributes;
mod mcp_errors;
mod scripted_adapter;
mod scripted_browser;
#[path = "../support/mod.rs"]
mod support;
