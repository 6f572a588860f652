//! Change detection on real file systems, with the kernel's watches and the real git.
#![cfg(target_os = "linux")]

mod git_agreement;
mod noticed_changes;
mod random;
mod random_edits;
mod unusual_files;
mod workspace_fixture;
