//! The tether, told as the scenarios of its design: front ends and supervisors come and go, the window stays.
//!
//! The real `tether`, spoken to by a real MCP client over its stdio, with real windows.

mod lifecycle_scenarios;
mod notifications;
mod process_exits;
mod random_kills;
mod vscode_as_client;
