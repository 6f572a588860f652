//! Consent to run what the files of a workspace want to run.

mod commands;
mod consent_record;

pub use commands::WorkspaceCommands;
pub use consent_record::CommandPurpose;
