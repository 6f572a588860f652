//! Processes: started in groups of their own, watched by pidfd, identified beyond their PID, stopped whole.
//!
//! | file | owns |
//! |---|---|
//! | `environment` | what a started program inherits, and what it must not |
//! | `command_spawn` | starting a program detached: own session, output in a file |
//! | `piped_process` | starting a program whose streams are ours: adapters |
//! | `process_handle` | [`Process`]: one process held by its pidfd; signals, exit |
//! | `process_tree` | who belongs to a process or a launch id; the sweep |
//! | `graceful_stop` | TERM → grace → KILL of a whole tree |
//! | `captured_command` | a command run to its end with bounded output: builds |
//! | `output_file` | the tail of an output file, and waiting for a line in it |
//! | `linux` | the only file that reads `/proc`; another platform provides the same few functions |
//!
//! Must not know windows, sessions or any other room but `error`.

mod captured_command;
mod command_spawn;
mod environment;
mod graceful_stop;
mod output_file;
mod piped_process;
mod platform;
mod process_handle;
mod process_tree;

pub use captured_command::{CapturedCommand, CommandOutcome, FinishedCommand, run_command, run_until_line};
pub use command_spawn::{DetachedCommand, spawn_detached};
pub use environment::{LAUNCH_ID, clean_environment};
pub use graceful_stop::{StopOutcome, stop_tree};
pub use output_file::{read_tail, truncate_to_tail, wait_for_line, watch_until};
pub use piped_process::{PipedProcess, spawn_piped};
pub use platform::{
    InotifyLimits, ProcessFacts, find_listener_among, has_dead_connections, is_listened_on, is_own_connection,
    is_program_replaced, list_listeners, read_arguments, read_boot_id, read_environment_value, read_facts,
    read_inotify_limits, read_name,
};
pub use process_handle::{Process, ProcessExit};
pub use process_tree::{
    find_by_argument, find_file_holders_below, find_launch_processes, group_by_launch_id, kill_launch,
    kill_launch_except, list_tree, sweep_launch, wait_until_gone,
};
