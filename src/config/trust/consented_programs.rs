//! Compares the programs of a workspace with those that the user has consented to.

use std::path::{Path, PathBuf};

use crate::config::trust::consent::{WorkspaceCommands, owner_line};
use crate::config::trust::consent_record::{CommandPurpose, ConsentRecord};
use crate::config::trust::programs::{path_of_line, program_line};
use crate::workspace::workspace_programs::ProgramConsent;

/// The programs that the user has consented to, as they are now.
pub fn consented_programs(workspace: &Path) -> ProgramConsent {
    let record = ConsentRecord::load(workspace).unwrap_or_default();
    let agreed = record.find(None, CommandPurpose::Programs).map(|it| it.commands.as_slice()).unwrap_or_default();
    let is_unchanged = |path: &PathBuf| program_line(workspace, path).is_some_and(|line| agreed.contains(&line.text));
    // What another user can change at any time is not what was seen.
    let owner = owner_line(workspace).is_none_or(|line| agreed.contains(&line.text));
    let paths = agreed.iter().filter(|_| owner).filter_map(|text| path_of_line(text));
    ProgramConsent {
        consented: paths.filter(is_unchanged).map(|path| workspace.join(path)).collect(),
        trust_command: WorkspaceCommands::empty(workspace, CommandPurpose::Programs).trust_command(),
    }
}
