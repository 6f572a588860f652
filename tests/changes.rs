//! The changes room against the real thing: real file systems, the real kernel's watches, the real git.
#![cfg(target_os = "linux")]

#[path = "changes/dice.rs"]
mod dice;
#[path = "changes/edits.rs"]
mod edits;
#[path = "changes/faults.rs"]
mod faults;
#[path = "changes/git.rs"]
mod git;
#[path = "changes/workspace.rs"]
mod workspace;
