//! One debug session: its targets, their state and stops, and its output.
//!
//! | file | owns |
//! |---|---|
//! | `debug_session` | the handle: wait, resume, stop |
//! | `task` | the task that owns all others of the session: it starts, resumes and ends targets |
//! | `target` | one connection to an adapter: its start, events and end |
//! | `target_handle` | what targets and handles share |
//! | `target_state` | the phases of a target: a pure table |
//! | `snapshot` | the published state of a session |
//! | `stop`, `stop_filter` | why a program stopped; whether that is reported |
//! | `event_log` | output and events, in bounded rings |
//! | `output_flush` | the last output of an adapter that would lose it |
//! | `run_in_terminal` | the reverse request `runInTerminal` |
//!
//! Does not depend on how sessions are listed and stored.

pub(super) mod debug_session;
pub mod event_log;
mod output_flush;
mod run_in_terminal;
pub(super) mod snapshot;
pub(super) mod stop;
mod stop_filter;
pub(super) mod target;
pub(super) mod target_handle;
pub mod target_state;
mod task;
#[cfg(test)]
mod tests;
