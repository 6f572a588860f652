//! The real `tether` binary in temporary workspaces: races, kills, hostile files, other users.

mod builds;
mod change_detection;
mod completions_and_man;
mod configuration;
mod desktop_vscode;
mod doctor_command;
mod other_users;
mod single_supervisor;
#[path = "../support/mod.rs"]
mod support;
mod tool_installs;
