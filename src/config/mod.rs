//! What the workspace says about itself (`devtools.toml`), and what the user has said about that.
//!
//! Reads files and names what is wrong in them. Must not know windows.

pub mod folders;
pub mod trust;

mod settings;

pub use settings::{BuildSettings, Confirm, FILE_NAME, Settings, WatchSettings, WindowKind, WindowSettings};
