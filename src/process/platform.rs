//! What the operating system reports about processes: one file per platform, each with the same functions.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::*;
