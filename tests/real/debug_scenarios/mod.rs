//! The debug scenarios by their numbers: the real `tether` command line with real adapters. Each call is a separate
//! process; the supervisor holds the sessions.

mod breakpoint_persistence;
mod edited_sources;
mod native_stops;
mod one_shot;
mod program_failures;
mod session_end;
mod session_events;
mod stops;
pub mod targets;
