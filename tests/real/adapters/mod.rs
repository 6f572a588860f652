//! The table of adapters against the real ones: from what a user wants to a stopped program, and nothing left running.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

mod adapter_session;
mod go;
mod javascript;
mod native;
mod python;
mod ruby;
mod start_failures;
