//! Debug sessions outlive front ends and, where their runtime allows it, supervisors; and they follow the window.

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;

mod crashes;
mod front_ends;
mod stage;
mod window;
