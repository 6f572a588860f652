//! Debug sessions through the real `tether`, with real adapters, as its users have them.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

mod command_sandbox;
mod launch_configurations;
mod named_tests;
mod probes;
