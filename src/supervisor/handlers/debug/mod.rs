//! The operations on debug sessions.
//!
//! | file | owns |
//! |---|---|
//! | `launch` | launch: from parameters to session requests, their breakpoints, and the report |
//! | `attach` | attach: from parameters to a session request, or to the session that is there |
//! | `core_dump` | which program wrote a core dump, and what is to be known of it |
//! | `swap_or_relaunch` | whether changed code is swapped into a session, or that is launched again |
//! | `editor_session` | which session a joined editor means |
//! | `probe` | runs a program to a line, evaluates there, ends it |
//! | `launch_config` | sessions as a configuration of launch.json describes them, with its tasks and its parts |
//! | `named_test_request`, `test_program`, `cargo_test` | a test by its name; the program that runs it; building those that contain Rust's tests |
//! | `status` | the state of all sessions |
//! | `breakpoints` | breakpoints, exceptions |
//! | `started_programs` | several programs as one session: all of them start, or none |
//! | `hosted` | operations on sessions in hosts, passed on |
//! | `here` | the same operations on sessions in this process |
//!
//! What an operation on one session does is in `session_host`; how sessions run, stop and end is decided in `debug`.

mod attach;
mod breakpoints;
mod cargo_environment;
mod cargo_test;
mod core_dump;
pub(in crate::supervisor) mod editor_session;
mod here;
pub(in crate::supervisor) mod hosted;
pub(in crate::supervisor) mod launch;
pub(in crate::supervisor) mod launch_config;
mod named_test_request;
mod probe;
pub(in crate::supervisor) mod started_programs;
mod status;
mod swap_or_relaunch;
mod test_program;
