//! The scenarios of debugging, by their numbers: the real `tether`, as a person or an agent in a terminal would use it,
//! with real adapters. Each call is a process of its own; the supervisor holds the sessions.

mod breakpoint_persistence;
mod one_shot;
mod program_failures;
mod session_end;
mod stops;
mod targets;
