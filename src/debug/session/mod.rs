//! One debug session: its targets, their state and stops, and its output.
//!
//! | file | owns |
//! |---|---|
//! | `debug_session` | the handle: wait, stop, breakpoints |
//! | `task` | the task that owns all others of one program of the session: it starts, resumes and ends targets |
//! | `target` | one connection to an adapter: how it is started, its events and end |
//! | `awaited_children` | children that may connect after the end of the program |
//! | `child_process` | a child of the program that has connected, and is not debugged |
//! | `command` | the commands to that task |
//! | `resume` | resuming a program: which thread, how, for whom |
//! | `disconnect` | disconnecting from an adapter |
//! | `session_state` | the state that targets and handles share, behind one lock |
//! | `session_shared` | that lock, and the snapshot that is published |
//! | `target_handle` | a handle to one target, and the guard of its task |
//! | `target_state` | the phases of a target: a pure table |
//! | `snapshot` | the published state of a session |
//! | `stop`, `stop_filter` | why a program stopped; whether that is reported |
//! | `event_log` | output and events, in bounded rings |
//! | `condition_failures` | what adapters print about conditions that cannot be evaluated |
//! | `source_memory` | the source files as they were when they were loaded |
//! | `detach_hook`, `detach_preparation` | a program runs on when its debugger leaves, where the adapter would end it |
//! | `output_flush` | the last output of an adapter that would lose it |
//! | `undebugged_processes` | the processes of a program that are not debugged |
//! | `unread_maps` | what adapters print about source maps that they could not read |
//! | `run_in_terminal` | the reverse request `runInTerminal` |
//!
//! Does not depend on how sessions are listed and stored.

mod awaited_children;
mod child_process;
mod command;
mod condition_failures;
pub(super) mod debug_session;
mod detach_hook;
mod detach_preparation;
pub(super) mod disconnect;
pub mod event_log;
mod output_flush;
pub(super) mod resume;
mod run_in_terminal;
pub(super) mod session_shared;
mod session_state;
pub(super) mod snapshot;
pub mod source_memory;
pub(super) mod stop;
mod stop_filter;
pub(super) mod target;
pub(super) mod target_handle;
pub mod target_state;
pub(super) mod task;
#[cfg(test)]
mod tests;
pub(super) mod undebugged_processes;
mod unread_maps;
