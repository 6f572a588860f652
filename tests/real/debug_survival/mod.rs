//! Debug sessions outlive front ends and, where their runtime allows it, supervisors; and they follow the window.

mod cut_connections;
mod detached_programs;
mod detached_ruby;
mod front_end_exit;
mod neutral_attach;
mod previous_version;
mod session_hosts;
mod session_secrets;
mod supervisor_exit;
pub mod surviving_debuggees;
mod timelines;
mod window_follow;
