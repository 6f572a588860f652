//! Checks our own state: what is kept of workspaces that are gone.

use std::time::Duration;

use tether_base::error::ErrorContext;
use tether_base::xdg;

use super::finding::FindingLevel::{Ok as Good, Warning};
use super::finding::{Finding, FindingTopic};
use crate::supervisor::deleted_workspaces::{DeletedWorkspace, KEPT_UNUSED, find_deleted_workspaces};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of each workspace that is gone.
pub fn check_states() -> Vec<Finding> {
    let found = xdg::state_dir().and_then(|states| match find_deleted_workspaces(&states) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cause).doing(|| format!("cannot read {}", states.display()))
        }
        found => Ok(found.unwrap_or_default()),
    });
    match found {
        Ok(found) => found.iter().map(deleted_workspace_finding).collect(),
        Err(error) => vec![Finding::from_error(FindingTopic::Machine, Warning, &error)],
    }
}

fn deleted_workspace_finding(it: &DeletedWorkspace) -> Finding {
    let days = |time: Duration| time.as_secs() / DAY.as_secs();
    let text = format!(
        "the workspace {} is gone; its state was last used {} days ago: after {} days a supervisor removes it",
        it.workspace.display(),
        days(it.unused),
        days(KEPT_UNUSED)
    );
    Finding::new(FindingTopic::Machine, Good, text).hint(format!("`rm -r {}` removes it now", it.state.display()))
}
