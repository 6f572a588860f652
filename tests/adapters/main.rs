//! The table of adapters against the real ones: from what a user wants to a stopped program, and nothing left running.
//!
//! A missing adapter skips loudly on a laptop and fails where `CI=true`.

#[path = "../common/mod.rs"]
mod common;

mod faults;
mod go;
mod javascript;
mod native;
mod python;
mod ruby;
mod stage;
