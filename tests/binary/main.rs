//! The real `tether` binary in temporary workspaces: races, kills, hostile files, other users.

mod attached_listeners;
mod background_tasks;
mod breakpoint_storage;
mod builds;
mod callers_that_leave;
mod change_detection;
mod command_results;
mod completions_and_man;
mod config_selection;
mod configuration;
mod desktop_vscode;
mod disk_use;
mod displayed_text;
mod doctor_command;
mod editor_relays;
mod failed_starts;
mod held_hosts;
mod hostile_files;
mod inherited_launch_id;
mod linked_packages;
mod mcp_http;
mod other_users;
mod replaced_programs;
mod restart_requests;
mod save_refresh;
mod secrets;
mod single_supervisor;
#[path = "../support/mod.rs"]
mod support;
mod tool_installs;
mod unverified_windows;
mod watch_view;
mod window_ports;
mod window_replacement;
mod workspace_programs;
mod wrap;
