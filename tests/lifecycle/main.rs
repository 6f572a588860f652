//! The tether, told as the scenarios of its design: front ends and supervisors come and go, the window stays.
//!
//! The real `tether`, spoken to by a real MCP client over its stdio, with real windows.

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;

mod chaos;
mod protocol;
mod scenarios;
mod survival;
mod told;
mod workbench;
