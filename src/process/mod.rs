//! Processes: started in groups of their own, watched by pidfd, identified beyond their PID, stopped whole.
//!
//! | file | owns |
//! |---|---|
//! | `environment` | what a started program inherits, and what it must not |
//! | `spawn` | starting a program detached: own session, output in a file |
//! | `piped` | starting a program whose streams are ours: adapters |
//! | `handle` | [`Process`]: one process held by its pidfd; signals, exit |
//! | `tree` | who belongs to a process or a launch id; the sweep |
//! | `stop` | TERM → grace → KILL of a whole tree |
//! | `captured` | a command run to its end with bounded output: builds |
//! | `output` | the tail of an output file, and waiting for a line in it |
//! | `linux` | the only file that reads `/proc`; another platform provides the same few functions |
//!
//! Must not know windows, sessions or any other room but `error`.

mod captured;
mod environment;
mod handle;
#[cfg(target_os = "linux")]
mod linux;
mod output;
mod piped;
mod spawn;
mod stop;
mod tree;

#[cfg(target_os = "linux")]
use linux as platform;

pub use captured::{CapturedCommand, CommandOutcome, FinishedCommand, run_command, run_until_line};
pub use environment::{LAUNCH_ID, clean_environment};
pub use handle::{Process, ProcessExit};
pub use output::{read_tail, truncate_to_tail, wait_for_line, watch_until};
pub use piped::{PipedProcess, spawn_piped};
pub use platform::{
    InotifyLimits, ProcessFacts, find_listener_among, has_dead_connections, is_listened_on, is_own_connection,
    is_program_replaced, list_listeners, read_arguments, read_boot_id, read_environment_value, read_facts,
    read_inotify_limits, read_name,
};
pub use spawn::{DetachedCommand, spawn_detached};
pub use stop::{StopOutcome, stop_tree};
pub use tree::{
    find_by_argument, find_file_holders_below, find_launch_processes, group_by_launch_id, kill_launch,
    kill_launch_except, list_tree, sweep_launch, wait_until_gone,
};
