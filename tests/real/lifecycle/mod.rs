//! The lifecycle scenarios of the design: front ends and supervisors restart, the window stays.
//!
//! The real `tether`, a real MCP client on its stdio, real windows.

mod dev_server;
mod killed_processes;
mod lifecycle_scenarios;
mod notifications;
pub mod panicking_supervisor;
mod process_exits;
mod random_kills;
mod refresh;
mod vscode_as_client;
mod web_projects;
