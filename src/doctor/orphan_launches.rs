//! Finds processes with a launch id of ours that belong to no window that a supervisor will find again, and stops them.
//!
//! ```text
//! launch id ──► its state folder ──► does a supervisor hold the lock? ──yes──► Supervised
//!                    │ unknown                │ no: the lock file names the workspace
//!                    ▼                        ▼
//!                Elsewhere       session.json proves the window? ──yes──► Reconnectable
//!                                             └──no──► Orphan
//! ```
//! A window outlives its supervisor on purpose: without a supervisor it is no orphan while `session.json` can prove it.
//! Only what is tied to a launch is ended: a process that has detached itself from it is shown, for the user to decide.
//! A debug session outlives its supervisor in its host; where that has ended too, what the session has started is an orphan,
//! except a program that was let go on purpose.
//! Launches that another state folder knows of (another `XDG_STATE_HOME`, a test) are left alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::error::{ErrorContext, Result};
use tether_base::xdg;
use tether_process::Process;

use crate::debug::host::store;
use crate::supervisor::connect::SupervisorPaths;
use crate::supervisor::lock::{LockHolder, LockReservation, LockStatus, inspect_lock};
use crate::window::identity::{IdentityError, verify_without_connecting};
use crate::window::{cleanup, launch_id, session_file};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// The running processes with one launch id.
#[derive(Debug)]
pub struct LaunchProcesses {
    pub id: String,
    /// With their command lines.
    pub processes: Vec<(u32, String)>,
    /// Those that have inherited the launch id, and left its tree and session: a browser, a tmux server, a daemon.
    pub detached: Vec<(u32, String)>,
    pub owner: LaunchOwner,
}

/// What a launch belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchOwner {
    /// A supervisor runs for it, in this workspace.
    Supervised(PathBuf),
    /// The next supervisor of this workspace finds it again.
    Reconnectable(PathBuf),
    /// A debug session of this workspace, which goes on in its host without a supervisor.
    Hosted(PathBuf),
    /// Its state folder; no supervisor will find it again.
    Orphan(PathBuf),
    /// A program that a debug session has launched, and let go on purpose.
    Released,
    /// It is known here, but not of which workspace it is: left alone.
    Unknown,
    /// Not known in this user's state folder: left alone.
    Elsewhere,
}

impl LaunchProcesses {
    /// Whether no supervisor will find it again, and a process is tied to it.
    pub fn is_orphan(&self) -> bool {
        matches!(self.owner, LaunchOwner::Orphan(_)) && !self.processes.is_empty()
    }
}

/// Every launch with a running process of this user.
pub fn find_launches() -> Result<Vec<LaunchProcesses>> {
    let marked = tether_process::group_by_launch_id().doing(|| "cannot list the running processes".into())?;
    let state = xdg::state_dir()?;
    let launches = marked.into_iter().map(|(id, mut members)| {
        let home = find_state_folder(&state, &id);
        if let Some(home) = home.as_deref().filter(|_| launch_id::is_launch_id(&id)) {
            members.include_users_of(&launch_id::scratch_dir_of(home, &id));
        }
        let listed = |all: &[Process]| all.iter().map(|one| (one.pid(), command_line_of(one.pid()))).collect();
        let (processes, detached) = (listed(&members.tied), listed(&members.detached));
        let owner = home.map_or(LaunchOwner::Elsewhere, |home| find_owner(&home, &id).0);
        LaunchProcesses { id, processes, detached, owner }
    });
    Ok(launches.collect())
}

/// Ends an orphan and removes what it had, unless a supervisor has taken it meanwhile; returns whether it was ended.
/// Meanwhile no supervisor can take it: its lock is held.
pub async fn reap_orphan(launch: &LaunchProcesses) -> Result<bool> {
    let LaunchOwner::Orphan(home) = &launch.owner else { return Ok(false) };
    let (LaunchOwner::Orphan(_), Some(_vacancy)) = find_owner(home, &launch.id) else { return Ok(false) };
    let doing = || format!("cannot end launch {}", launch.id);
    let is_window =
        !is_build(home, &launch.id) && !is_debug_session(home, &launch.id) && !is_background_task(home, &launch.id);
    if !is_window {
        tether_process::sweep_launch(&launch.id, None, GRACE).await.doing(doing)?;
    } else {
        cleanup::clean_up_launch(&launch.id, home).await?;
    }
    Ok(true)
}

/// The state folder that knows of this launch.
fn find_state_folder(state: &Path, id: &str) -> Option<PathBuf> {
    let homes = std::fs::read_dir(state).ok()?.flatten().map(|entry| entry.path());
    let knows = |home: &PathBuf| {
        is_build(home, id)
            || is_debug_session(home, id)
            || is_background_task(home, id)
            || (launch_id::is_launch_id(id)
                && (launch_id::scratch_dir_of(home, id).exists() || launch_id::output_file_of(home, id).exists()))
    };
    homes.into_iter().find(knows)
}

/// Whether the id is that of the builds of this state folder's workspace.
fn is_build(home: &Path, id: &str) -> bool {
    SupervisorPaths::build_launch_id_in(home) == id
}

/// Whether the id is that of a debug session of this state folder's workspace.
fn is_debug_session(home: &Path, id: &str) -> bool {
    id.strip_prefix(&SupervisorPaths::debug_launch_id_prefix_in(home)).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether the id is that of a background task of this state folder's workspace.
fn is_background_task(home: &Path, id: &str) -> bool {
    id.strip_prefix(&SupervisorPaths::task_launch_id_prefix_in(home)).is_some_and(|rest| rest.starts_with('-'))
}

/// The lock is given along for as long as the judgement is to hold.
fn find_owner(home: &Path, id: &str) -> (LaunchOwner, Option<LockReservation>) {
    // It may run in another environment, with another state folder for the same workspace.
    if let Ok(lock) = SupervisorPaths::workspace_lock_of(home)
        && let Ok(LockStatus::Locked(holder)) = inspect_lock(&lock)
    {
        return (LaunchOwner::Supervised(holder.map(|holder| holder.workspace).unwrap_or_default()), None);
    }
    match inspect_lock(&home.join(SupervisorPaths::LOCK_FILE)) {
        Ok(LockStatus::Locked(holder)) => {
            (LaunchOwner::Supervised(holder.map(|holder| holder.workspace).unwrap_or_default()), None)
        }
        Ok(LockStatus::Free(vacancy)) => match vacancy.last_holder().map(|last: LockHolder| last.workspace) {
            Some(workspace) if workspace.is_absolute() => {
                // A background task may be used by any window.
                let launch_id = Some(id).filter(|id| !is_background_task(home, id));
                let owner = if is_reconnectable([&workspace, home], launch_id) {
                    LaunchOwner::Reconnectable(workspace)
                } else if store::is_released(home, id) {
                    LaunchOwner::Released
                } else if store::has_running_host(home, id) {
                    LaunchOwner::Hosted(workspace)
                } else {
                    LaunchOwner::Orphan(home.to_owned())
                };
                (owner, Some(vacancy))
            }
            _ => (LaunchOwner::Unknown, None),
        },
        Err(_) => (LaunchOwner::Unknown, None),
    }
}

/// Whether `session.json`, in the workspace or in the state folder, is of this launch, or of any without `id`, and its
/// window runs. What cannot be checked counts as running.
fn is_reconnectable(roots: [&Path; 2], id: Option<&str>) -> bool {
    roots.into_iter().any(|root| match session_file::load_session(root) {
        Ok(Some(session)) if id.is_none_or(|id| session.launch_id == id) => {
            matches!(
                verify_without_connecting(&session),
                Ok(_) | Err(IdentityError::Unreadable(_) | IdentityError::Unresponsive { .. })
            )
        }
        _ => false,
    })
}

fn command_line_of(pid: u32) -> String {
    let words = tether_process::read_arguments(pid).unwrap_or_default();
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
