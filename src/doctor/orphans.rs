//! Processes that carry a launch id of ours and belong to no window that anybody will find again.
//!
//! ```text
//! launch id ──► its state folder ──► does a supervisor hold the lock? ──yes──► Supervised
//!                    │ unknown                │ no: the lock's last words name the workspace
//!                    ▼                        ▼
//!                Elsewhere       session.json proves the window? ──yes──► Reconnectable
//!                                             └──no──► Orphan
//! ```
//! A window outlives its supervisor on purpose: without a supervisor it is no orphan while `session.json` can prove it.
//! What debug sessions have started ends with their supervisor, except a program that was let go on purpose.
//! Launches that another state folder knows of (another `XDG_STATE_HOME`, a test) are never judged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::folders;
use crate::debug::host::store;
use crate::error::{Context, Result};
use crate::process;
use crate::supervisor::connect::SupervisorPaths;
use crate::supervisor::lock::{LockHolder, LockReservation, LockStatus, inspect_lock};
use crate::window::identity::{IdentityError, verify_process};
use crate::window::{cleanup, launch, session_file};

/// How long an orphan may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The living processes that carry one launch id.
#[derive(Debug)]
pub struct Launch {
    pub id: String,
    /// With their command lines.
    pub processes: Vec<(u32, String)>,
    pub fate: Fate,
}

/// To whom a launch belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its supervisor lives, and looks after it.
    Supervised(PathBuf),
    /// The next supervisor of this workspace finds it again.
    Reconnectable(PathBuf),
    /// Its state folder; nobody will find it again.
    Orphan(PathBuf),
    /// A program that a debug session has launched, and let go on purpose.
    Released,
    /// It is known here, but not of which workspace it is: left alone.
    Unknown,
    /// Not known in this user's state folder: left alone.
    Elsewhere,
}

impl Launch {
    pub fn is_orphan(&self) -> bool {
        matches!(self.fate, Fate::Orphan(_))
    }
}

/// Every launch that has a living process of this user.
pub fn find() -> Result<Vec<Launch>> {
    let marked = process::marked().doing(|| "cannot look at the running processes".into())?;
    let state = folders::state_dir()?;
    let launches = marked.into_iter().map(|(id, processes)| {
        let processes = processes.iter().map(|process| (process.pid(), command_of(process.pid()))).collect();
        let fate = home_of(&state, &id).map_or(Fate::Elsewhere, |home| judge(&home, &id).0);
        Launch { id, processes, fate }
    });
    Ok(launches.collect())
}

/// Ends an orphan and removes what it had, unless it has found a home meanwhile; answers whether it has been ended.
/// While it happens, no supervisor can begin to look after it.
pub async fn reap(launch: &Launch) -> Result<bool> {
    let Fate::Orphan(home) = &launch.fate else { return Ok(false) };
    let (Fate::Orphan(_), Some(_vacancy)) = judge(home, &launch.id) else { return Ok(false) };
    let doing = || format!("cannot end launch {}", launch.id);
    if is_build(home, &launch.id) || is_debugged(home, &launch.id) {
        process::sweep(&launch.id, GRACE).await.doing(doing)?;
    } else {
        cleanup::clean_up_launch(&launch.id, home).await?;
    }
    Ok(true)
}

/// The state folder that knows of this launch.
fn home_of(state: &Path, id: &str) -> Option<PathBuf> {
    let homes = std::fs::read_dir(state).ok()?.flatten().map(|entry| entry.path());
    let knows = |home: &PathBuf| {
        is_build(home, id)
            || is_debugged(home, id)
            || (launch::is_launch_id(id)
                && (launch::scratch_dir_of(home, id).exists() || launch::output_file_of(home, id).exists()))
    };
    homes.into_iter().find(knows)
}

/// Whether the id is that of the builds of this state folder's workspace.
fn is_build(home: &Path, id: &str) -> bool {
    SupervisorPaths::build_launch_id_in(home) == id
}

/// Whether the id is that of a debug session of this state folder's workspace.
fn is_debugged(home: &Path, id: &str) -> bool {
    id.strip_prefix(&SupervisorPaths::debug_launch_id_prefix_in(home)).is_some_and(|rest| rest.starts_with('-'))
}

/// The lock is given along for as long as the judgement is to hold.
fn judge(home: &Path, id: &str) -> (Fate, Option<LockReservation>) {
    match inspect_lock(&home.join(SupervisorPaths::LOCK_FILE)) {
        Ok(LockStatus::Locked(holder)) => {
            (Fate::Supervised(holder.map(|holder| holder.workspace).unwrap_or_default()), None)
        }
        Ok(LockStatus::Free(vacancy)) => match vacancy.last_holder().map(|last: LockHolder| last.workspace) {
            Some(workspace) if workspace.is_absolute() => {
                let fate = if is_proven([&workspace, home], id) {
                    Fate::Reconnectable(workspace)
                } else if store::is_released(home, id) {
                    Fate::Released
                } else {
                    Fate::Orphan(home.to_owned())
                };
                (fate, Some(vacancy))
            }
            _ => (Fate::Unknown, None),
        },
        Err(_) => (Fate::Unknown, None),
    }
}

/// Whether `session.json`, in the workspace or in the state folder, is about this launch, and its window lives. What
/// cannot be examined counts as living.
fn is_proven(roots: [&Path; 2], id: &str) -> bool {
    roots.into_iter().any(|root| match session_file::load_session(root) {
        Ok(Some(session)) if session.launch_id == id => {
            matches!(
                verify_process(&session),
                Ok(_) | Err(IdentityError::Unreadable(_) | IdentityError::Unresponsive { .. })
            )
        }
        _ => false,
    })
}

fn command_of(pid: u32) -> String {
    let words = process::arguments_of(pid).unwrap_or_default();
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
