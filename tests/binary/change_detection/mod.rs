//! The changes room against the real thing: real file systems, the real kernel's watches, the real git.
#![cfg(target_os = "linux")]

mod git_agreement;
mod random;
mod random_edits;
mod unusual_files;
mod workspace_fixture;
