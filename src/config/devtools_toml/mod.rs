//! `devtools.toml`: reads it, writes a first one, and applies it on top of what other files describe.

pub mod init;
pub mod overrides;
pub mod settings;
