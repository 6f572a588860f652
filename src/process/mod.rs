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

pub use captured::{Captured, Finished, Outcome, run, run_until};
pub use environment::{LAUNCH_ID, clean_environment};
pub use handle::{Exit, Process};
pub use output::{follow, tail, trim, until};
pub use piped::{Piped, piped};
pub use platform::{
    Facts, InotifyLimits, arguments_of, boot_id, facts, has_dead_connections, inotify_limits, is_listened_on, is_ours,
    listener_among, listeners_on, name_of, program_was_replaced, value_in_environment,
};
pub use spawn::{Spawn, spawn};
pub use stop::{Ended, stop};
pub use tree::{carrying, gone, holding_below, kill_all_but, kill_now, marked, started_with, sweep, tree_of};
