//! Debug commands of the real `tether` with real adapters.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

pub mod command_sandbox;
mod launch_configurations;
mod named_tests;
mod probes;
mod test_runners;
