//! Processes: spawned in their own groups, held by pidfd, identified beyond their PID, stopped with their whole tree.
//!
//! | file | responsibility |
//! |---|---|
//! | `environment` | the environment of a started program |
//! | `command_spawn` | spawns a program in its own session: detached with output in a file, or with pipes (adapters) |
//! | `process_handle` | [`Process`]: one process held by its pidfd; signals, exit |
//! | `exit_status` | how a process has ended that is not our child |
//! | `process_search` | finds a process's descendants, and processes by their files and arguments |
//! | `launch_environment` | the environment of a program of a launch, with its own PID |
//! | `launch_processes` | finds the processes of a launch id, and stops those that are tied to it |
//! | `tree_stop` | close request → SIGTERM → grace period → SIGKILL |
//! | `resources` | memory and CPU usage of a group of processes |
//! | `captured_command` | runs a command to its end with bounded output: builds |
//! | `output_file` | the tail of an output file, and waiting for a line in it |
//! | `output_pipes` | readers for the output of a program that outlives us |
//! | `socket_owner` | whose processes are at the ends of a local connection |
//! | `mounted_folders` | which folders another process has elsewhere, as in a container |
//! | `platform` | what the operating system reports about processes |
//! | `program_facts` | what it reports about the program of one |
//! | `program_watch` | reports that a program is started |
//!

#![warn(missing_docs, unreachable_pub)]

mod captured_command;
mod command_spawn;

mod environment;
mod exit_status;
mod launch_environment;
mod launch_processes;
mod mounted_folders;
mod output_file;
mod output_pipes;
mod platform;
mod process_handle;
mod process_search;
mod program_facts;
mod program_watch;
mod resources;
mod socket_owner;
mod tree_stop;

pub use captured_command::{CapturedCommand, FinishedCommand, RunOutcome, run_command, run_until_line};
pub use command_spawn::{DetachedCommand, PipedProcess, command_line, spawn_background, spawn_detached, spawn_piped};
pub use environment::{LAUNCH_ID, LAUNCH_SESSION, caller_environment, clean_environment, differing_variables};
pub use launch_processes::{
    LaunchMembers, find_launch_members, find_launch_processes, group_by_launch_id, kill_launch, kill_launch_except,
    sweep_launch,
};
pub use mounted_folders::find_mounted_folders;
pub use output_file::{keep_trimmed, read_tail, truncate_to_tail, wait_for_line, watch_until};
pub use output_pipes::OutputPipes;
pub use platform::{
    InotifyLimits, ProcessFacts, find_listened_port, find_listener_among, find_listener_owner, find_own_program,
    has_dead_connections, is_any_listening, is_listened_on, is_own_connection, is_program_replaced, is_traced,
    list_listeners, list_ports_of, program_path, read_account_home, read_arguments, read_boot_id, read_environment,
    read_environment_value, read_environment_values, read_facts, read_inotify_limits, read_name, read_ticks_since_boot,
    read_tracer, runs_program,
};
pub use process_handle::{Process, ProcessExit};
pub use process_search::{
    ProcessTable, find_by_argument, find_file_holders_below, find_listening_program, list_tree, wait_until_gone,
};
pub use program_facts::{catches_signal, is_node_program, is_runtime, list_mapped_files};
pub use program_watch::ProgramWatch;
pub use resources::{ResourceMonitor, ResourceUsage};
pub use socket_owner::{accept_own_user, foreign_listener};
pub use tree_stop::{StopOutcome, stop_process, stop_tree, stop_tree_gently};
