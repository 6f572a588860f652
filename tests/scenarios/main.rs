//! The scenarios of debugging, by their numbers: the real `tether`, as a person or an agent in a terminal would use it,
//! with real adapters. Each call is a process of its own; the supervisor holds the sessions.

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod faults;
mod kept;
mod misbehaving;
mod oneshot;
mod stage;
mod stops;
mod targets;
