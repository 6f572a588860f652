//! State folders whose workspace is gone: found by the lock file in them, which names the workspace.
//!
//! A workspace on a disk that is not mounted is gone too, hence the long time until its state is removed. Does not
//! depend on what else is in a state folder.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tracing::{info, warn};

use super::lock::{LockReservation, LockStatus, inspect_lock};
use super::paths::SupervisorPaths;
use crate::window::launch_id;

/// How long the state of a workspace that is gone is kept after its last use.
pub const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The state of a workspace that is gone. No supervisor can take it until this is dropped.
#[derive(Debug)]
pub struct DeletedWorkspace {
    pub workspace: PathBuf,
    pub state: PathBuf,
    /// The time since its last use.
    pub unused: Duration,
    _reservation: LockReservation,
}

/// The state folders in `states` whose workspace is gone, and that no supervisor uses.
pub fn find_deleted_workspaces(states: &Path) -> io::Result<Vec<DeletedWorkspace>> {
    let folders = std::fs::read_dir(states)?.flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.filter_map(|entry| inspect_state(entry.path())).collect())
}

fn inspect_state(state: PathBuf) -> Option<DeletedWorkspace> {
    let Ok(LockStatus::Free(reservation)) = inspect_lock(&state.join(SupervisorPaths::LOCK_FILE)) else { return None };
    let workspace = reservation.last_holder()?.workspace;
    let is_gone = workspace.symlink_metadata().is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound);
    if !workspace.is_absolute() || !is_gone {
        return None;
    }
    let unused = read_last_use(&state)?.elapsed().unwrap_or_default();
    Some(DeletedWorkspace { workspace, state, unused, _reservation: reservation })
}

/// When the newest entry of the folder was written.
fn read_last_use(state: &Path) -> Option<SystemTime> {
    let modified = |entry: std::fs::DirEntry| entry.metadata().ok()?.modified().ok();
    std::fs::read_dir(state).ok()?.flatten().filter_map(modified).max()
}

/// Removes the state of workspaces that have been gone, and unused, for [`KEPT_UNUSED`], unless a process runs that was
/// started from it. Blocks.
pub fn remove_unused_states(states: &Path) {
    let found = find_deleted_workspaces(states).unwrap_or_default();
    for it in found.into_iter().filter(|it| it.unused > KEPT_UNUSED) {
        match has_processes(&it.state).and_then(|used| if used { Ok(false) } else { remove_state(&it.state) }) {
            Ok(true) => info!("removed {}: its workspace {} is gone", it.state.display(), it.workspace.display()),
            Ok(false) => {}
            Err(cause) => warn!("cannot remove {}: {cause}", it.state.display()),
        }
    }
}

fn remove_state(state: &Path) -> io::Result<bool> {
    std::fs::remove_dir_all(state).map(|()| true)
}

/// Whether a process runs whose launch this folder knows of.
fn has_processes(state: &Path) -> io::Result<bool> {
    let build = SupervisorPaths::build_launch_id_in(state);
    let debug = SupervisorPaths::debug_launch_id_prefix_in(state);
    let knows = |id: &String| {
        *id == build
            || id.starts_with(&debug)
            || launch_id::is_launch_id(id)
                && (launch_id::output_file_of(state, id).exists() || launch_id::scratch_dir_of(state, id).exists())
    };
    Ok(tether_process::group_by_launch_id()?.into_iter().any(|(id, _)| knows(&id)))
}
