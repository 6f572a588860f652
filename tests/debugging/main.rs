//! Debug sessions through the real `tether`, with real adapters, as its users have them.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

#[path = "../common/mod.rs"]
mod common;

mod configured;
mod named;
mod probes;
mod stage;
