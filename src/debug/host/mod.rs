//! Hosting debug sessions: the registry of all sessions, how each is started, ended, stored and recovered.
//!
//! | file | owns |
//! |---|---|
//! | `registry` | all sessions of a workspace |
//! | `ended_sessions` | how long ended ones stay readable |
//! | `adapter_relay` | an adapter that an editor talks to itself |
//! | `breakpoint_operations` | setting, removing and listing breakpoints over all sessions, also for joined editors |
//! | `code_swap` | changed code is swapped into a running program |
//! | `edited_files` | sends breakpoints anew whose files are edited while a program runs |
//! | `launch_breakpoints` | the breakpoints that a launch sets, undone when it fails |
//! | `start` | preparing and starting a session |
//! | `remote_sessions` | the sessions in other processes, as far as breakpoints are concerned |
//! | `session_end` | the steps of a session's end: a pure function |
//! | `session_request` | what is to be debugged, and with what |
//! | `session_end_driver` | performs the steps of a session's end |
//! | `session_log` | what the supervisor's log has of a session |
//! | `prepared_session` | a session that can be started, and its start |
//! | `managed_session` | one session with its adapter process, until nothing of it is left |
//! | `process_survey` | finds the processes of a program that are not debugged |
//! | `store` | the file from which the next supervisor learns of the sessions |
//! | `reconnect` | attaches a session again whose connection was lost |
//! | `recover` | what becomes of the sessions of an earlier supervisor |

pub mod adapter_relay;
pub(super) mod breakpoint_operations;
pub(super) mod code_swap;
mod edited_files;
pub(super) mod ended_sessions;
pub(super) mod launch_breakpoints;
pub(super) mod managed_session;
mod prepared_session;
mod process_survey;
mod reconnect;
pub(super) mod recover;
pub(super) mod registry;
pub(super) mod remote_sessions;
mod session_end;
mod session_end_driver;
mod session_log;
pub(super) mod session_request;
pub(super) mod start;
pub mod store;
