//! The operations on debug sessions.
//!
//! | file | owns |
//! |---|---|
//! | `launch_attach` | launch, attach: from parameters to a session request |
//! | `swap_or_relaunch` | whether changed code is swapped into a session, or that is launched again |
//! | `editor_session` | which session a joined editor means |
//! | `probe` | runs a program to a line, evaluates there, ends it |
//! | `launch_config` | sessions as a configuration of launch.json describes them, with its tasks and its parts |
//! | `named_test_request`, `cargo_test` | a test by its name; building the programs that contain Rust's tests |
//! | `control` | continue, step, pause, wait, stop |
//! | `status` | the state of sessions |
//! | `inspect` | frames, variables, expressions, sources, output, events |
//! | `breakpoints` | breakpoints, watchpoints, exceptions |
//! | `wait_limit` | how long an operation with a `wait` may take |
//! | `started_programs` | several programs as one session: all of them start, or none |
//! | `stop_report` | waiting for the stop of a session, or for the first of several; the report of it |
//! | `end_message` | how a program ended, and what it printed last |
//! | `convert` | sessions, stops and breakpoints into the API's types |
//!
//! How sessions run, stop and end is decided in `debug`.

mod breakpoints;
mod cargo_test;
mod control;
pub(super) mod convert;
pub(in crate::supervisor) mod editor_session;
mod end_message;
mod inspect;
pub(in crate::supervisor) mod launch_attach;
pub(in crate::supervisor) mod launch_config;
mod named_test_request;
mod probe;
mod started_programs;
pub(in crate::supervisor) mod status;
mod stop_report;
mod swap_or_relaunch;
mod wait_limit;
