//! The operations on debug sessions.
//!
//! | file | owns |
//! |---|---|
//! | `launch_attach` | launch, attach, probe: from parameters to a session request |
//! | `launch_config` | sessions as a configuration of launch.json describes them, with its tasks and its parts |
//! | `named_test_request`, `cargo_test` | a test by its name; building the programs that contain Rust's tests |
//! | `control` | continue, step, pause, wait, stop |
//! | `status` | the state of sessions |
//! | `inspect` | frames, variables, expressions, sources, output, events |
//! | `breakpoints` | breakpoints, watchpoints, exceptions |
//!
//! Does not decide anything about sessions.

mod breakpoints;
mod cargo_test;
mod control;
mod inspect;
mod launch_attach;
mod launch_config;
mod named_test_request;
pub(in crate::supervisor) mod status;
