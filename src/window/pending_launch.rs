//! The record of a window that is being launched: it is in no session file yet, and the one that it replaces is closed.
//!
//! It is written before an old window is closed. A supervisor that finds it was preceded by one that exited in the middle
//! of the launch, and finishes it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tether_base::error::{Error, Result};
use tracing::warn;

use super::launch_id::is_launch_id;
use crate::workspace::workspace_dir::{AfterPowerFailure, WorkspaceFile};

/// How often a launch is begun again: a launch during which supervisors are killed again and again is given up.
const MAX_ATTEMPTS: u32 = 2;

/// A launch that has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingLaunch {
    /// Of the new window. The snapshot of the files that it was built from is stored under it.
    pub launch_id: String,
    /// Nobody waits for a launch that was begun before the machine was started.
    pub boot_id: String,
    /// How often it was begun.
    pub attempts: u32,
}

impl PendingLaunch {
    /// The first attempt to launch this window.
    pub fn first(launch_id: String) -> Result<PendingLaunch> {
        let boot_id =
            tether_process::read_boot_id().map_err(|cause| Error::other("cannot read the boot id").because(cause))?;
        Ok(PendingLaunch { launch_id, boot_id, attempts: 1 })
    }

    /// The next attempt, under another launch id; `None` after the last one.
    pub fn next(self, launch_id: String) -> Option<PendingLaunch> {
        (self.attempts < MAX_ATTEMPTS).then(|| PendingLaunch { launch_id, attempts: self.attempts + 1, ..self })
    }
}

fn record_file(state: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile {
        workspace: state,
        name: "pending-launch.json",
        most: 4096,
        what: "no window is launched, and an old one keeps running",
    }
}

/// Writes the record, over the one before.
pub fn save_pending_launch(state: &Path, pending: &PendingLaunch) -> Result<()> {
    let text = serde_json::to_vec(pending).map_err(|cause| Error::other("cannot write a record").because(cause))?;
    record_file(state).replace(&text, AfterPowerFailure::Unknown)
}

/// The launch that an earlier supervisor has begun since this boot. An unusable record counts as none.
pub fn load_pending_launch(state: &Path) -> Option<PendingLaunch> {
    let text = record_file(state).read().unwrap_or_else(|error| {
        warn!("the record of a pending launch is ignored: {error}");
        None
    })?;
    let pending: PendingLaunch = serde_json::from_slice(&text).ok()?;
    let is_of_this_boot = tether_process::read_boot_id().is_ok_and(|boot_id| boot_id == pending.boot_id);
    (is_of_this_boot && is_launch_id(&pending.launch_id)).then_some(pending)
}

/// Removes the record: the new window is in the session files, or will not be launched.
pub fn remove_pending_launch(state: &Path) {
    if let Err(error) = record_file(state).remove() {
        warn!("{error}");
    }
}
