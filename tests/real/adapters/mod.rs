//! The table of adapters with the real adapters: from a debug target to a stopped program, and no process left.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

mod adapter_session;
mod go;
mod java;
mod java_expressions;
mod java_looks;
mod javascript;
pub mod native;
mod python;
mod ruby;
mod start_failures;
