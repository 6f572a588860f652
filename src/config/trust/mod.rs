//! Consent to run what the files of a workspace want to run.

mod consent;
mod consent_record;
mod consented_programs;
mod programs;

pub use consent::WorkspaceCommands;
pub use consent_record::CommandPurpose;
pub use consented_programs::consented_programs;
