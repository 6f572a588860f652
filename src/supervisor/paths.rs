//! The paths of a workspace's supervisor: socket, lock, state.
//!
//! Owns the names and the checks of these folders. Does not depend on what is written into them.
//!
//! | what | where |
//! |---|---|
//! | socket | `$XDG_RUNTIME_DIR/devtether`, else `/tmp/devtether-<uid>`: mode 0700, ours, not a link |
//! | lock of the state, log, snapshot, the window's output and profile | `$XDG_STATE_HOME/devtether/<hash>`, else `~/.local/state/…` |
//! | lock of the workspace | `.local/state/devtether-locks` in the home folder of the user database, else `/tmp/devtether-<uid>-locks` |
//!
//! The lock of the workspace depends on no environment variable: an editor and a terminal may differ in all of them, and
//! two locks would be two supervisors. The lock of the state keeps two supervisors out of one state folder.

use std::env;
use std::fs::{DirBuilder, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tether_base::error::{Error, ErrorContext, Result};
use tether_base::xdg;

use crate::session_host::log_file;

/// The longest path of a Unix socket that every platform takes, in bytes (macOS: 104, Linux: 108).
const MAX_SOCKET_PATH: usize = 103;

/// The paths of the supervisor of one workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorPaths {
    /// Canonical: the same workspace through a symlink has the same supervisor.
    pub workspace: PathBuf,
    pub socket: PathBuf,
    pub lock: PathBuf,
    /// As `lock`, by the same process; where no environment variable leads to.
    pub workspace_lock: PathBuf,
    /// Locked by a starting supervisor until it listens.
    pub starting_lock: PathBuf,
    pub state: PathBuf,
}

impl SupervisorPaths {
    /// The paths for the workspace `folder`; creates and checks the folders.
    pub fn of_workspace(folder: &Path) -> Result<SupervisorPaths> {
        let workspace = folder.canonicalize().map_err(|cause| not_a_workspace(folder).because(cause))?;
        if !workspace.is_dir() {
            return Err(not_a_workspace(folder).because("it is not a folder"));
        }
        SupervisorPaths::of_canonical(workspace)
    }

    /// The paths for a workspace that may have been deleted: only for connecting to a running supervisor.
    pub fn of_deleted_workspace(folder: &Path) -> Result<SupervisorPaths> {
        let absolute = std::path::absolute(folder).doing(|| format!("cannot resolve {}", folder.display()))?;
        let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
        let workspace = match (parent, absolute.file_name()) {
            (Some(parent), Some(name)) => parent.join(name),
            _ => absolute,
        };
        SupervisorPaths::of_canonical(workspace)
    }

    fn of_canonical(workspace: PathBuf) -> Result<SupervisorPaths> {
        let digest = Sha256::digest(workspace.as_os_str().as_bytes());
        let name = hex::encode(&digest[..8]);
        let state = xdg::state_dir()?.join(&name);
        make_private(&state)?;
        let locks = locks_folder()?;
        Ok(SupervisorPaths {
            socket: runtime_folder(&name)?.join(format!("{name}.sock")),
            lock: state.join(SupervisorPaths::LOCK_FILE),
            workspace_lock: locks.join(lock_name(&state)),
            starting_lock: locks.join(format!("{name}.starting")),
            workspace,
            state,
        })
    }

    /// The name of the lock in a state folder.
    pub const LOCK_FILE: &str = "supervisor.lock";

    /// The lock of a workspace, by its state folder.
    pub fn workspace_lock_of(state: &Path) -> Result<PathBuf> {
        Ok(locks_folder()?.join(lock_name(state)))
    }

    /// The launch id of the processes of a workspace's builds, by its state folder.
    pub fn build_launch_id_in(state: &Path) -> String {
        format!("build-{}", state.file_name().unwrap_or_default().display())
    }

    /// The prefix of the launch ids of a workspace's background tasks, by its state folder.
    pub fn task_launch_id_prefix_in(state: &Path) -> String {
        format!("task-{}", state.file_name().unwrap_or_default().display())
    }

    /// The prefix of the launch ids of a workspace's debug sessions, by its state folder.
    pub fn debug_launch_id_prefix_in(state: &Path) -> String {
        format!("debug-{}", state.file_name().unwrap_or_default().display())
    }

    /// Where the host of the session with this launch id listens: beside the supervisor.
    pub fn host_socket(&self, launch_id: &str) -> PathBuf {
        // It ends in the session's id and a random number, which no other session of the workspace has.
        let name = launch_id.rsplit_once(&*self.state.file_name().unwrap_or_default().to_string_lossy());
        let name = name.map_or(launch_id, |(_, name)| name.trim_start_matches('-'));
        let beside = self.socket.with_extension(name);
        if beside.as_os_str().len() <= MAX_SOCKET_PATH {
            return beside;
        }
        // The random number alone.
        self.socket.with_extension(name.rsplit('-').next().unwrap_or(name))
    }

    /// The supervisor's log file.
    pub fn log_file(&self) -> PathBuf {
        self.state.join(log_file::NAME)
    }
}

/// The name of the lock of a workspace, by its state folder.
fn lock_name(state: &Path) -> String {
    format!("{}.lock", state.file_name().unwrap_or_default().display())
}

/// Errors: the socket's file belongs to another user; it is neither connected to nor removed.
pub(super) fn check_socket_owner(socket: &Path) -> Result<()> {
    let us = rustix::process::getuid().as_raw();
    match socket.symlink_metadata() {
        Ok(seen) if seen.uid() != us => Err(Error::other(format!("cannot use the socket {}", socket.display()))
            .because(format!("it belongs to user {}, not to user {us}", seen.uid()))
            .hint(format!("`ls -l {0}` shows it; `rm {0}` removes it", socket.display()))),
        _ => Ok(()),
    }
}

fn not_a_workspace(folder: &Path) -> Error {
    Error::usage(format!("{} cannot be a workspace", folder.display())).hint("name a folder with `--workspace DIR`")
}

/// `$XDG_RUNTIME_DIR/devtether` when it is usable, else `/tmp/devtether-<uid>`.
fn runtime_folder(name: &str) -> Result<PathBuf> {
    let by_session = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute() && folder.is_dir())
        .map(|folder| folder.join("devtether"))
        .filter(|folder| folder.as_os_str().len() + name.len() + "/.sock".len() <= MAX_SOCKET_PATH);
    let folder =
        by_session.unwrap_or_else(|| PathBuf::from(format!("/tmp/devtether-{}", rustix::process::getuid().as_raw())));
    make_private(&folder)?;
    Ok(folder)
}

/// The folder of the locks of workspaces: the same for all processes of a user, whatever their environment.
fn locks_folder() -> Result<PathBuf> {
    // Not every account has a home folder that it may write to.
    let at_home = tether_process::read_account_home().map(|home| home.join(".local/state/devtether-locks"));
    if let Some(folder) = at_home.filter(|folder| make_private(folder).is_ok()) {
        return Ok(folder);
    }
    let folder = PathBuf::from(format!("/tmp/devtether-{}-locks", rustix::process::getuid().as_raw()));
    make_private(&folder)?;
    Ok(folder)
}

/// Creates the folder with mode 0700, or checks that the existing one is ours and closed to others.
fn make_private(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|cause| unmakeable_folder(folder, cause))?;
    let seen = folder.symlink_metadata().map_err(|cause| unusable_folder(folder).because(cause))?;
    match insecure_because(&seen) {
        None => Ok(()),
        Some(reason) => Err(unusable_folder(folder).because(std::io::Error::new(ErrorKind::PermissionDenied, reason))),
    }
}

/// The error of a folder that cannot be created: usually a home folder that is not writable, or not there.
fn unmakeable_folder(folder: &Path, cause: std::io::Error) -> Error {
    let existing = folder.ancestors().find(|above| above.exists()).unwrap_or(folder);
    Error::other(format!("cannot make the folder {}", folder.display()))
        .because(cause)
        .hint(format!("make {0} writable: `ls -ld {0}` shows it", existing.display()))
        .hint("or set XDG_STATE_HOME to a folder of yours that is: tether keeps its state there")
}

fn unusable_folder(folder: &Path) -> Error {
    Error::other(format!("cannot use the folder {}", folder.display()))
        .hint(format!("`ls -ld {}` shows it; move it away if it is not yours", folder.display()))
}

/// Why a folder is not safe for a socket; `None`: it is.
fn insecure_because(seen: &Metadata) -> Option<String> {
    let us = rustix::process::getuid().as_raw();
    if seen.is_symlink() {
        Some("it is a symbolic link".into())
    } else if !seen.is_dir() {
        Some("it is not a folder".into())
    } else if seen.uid() != us {
        Some(format!("it belongs to user {}, not to user {us}", seen.uid()))
    } else if seen.mode() & 0o077 != 0 {
        Some(format!("its mode is {:o}: other users may enter; `chmod 700` closes it", seen.mode() & 0o777))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_can_reach_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let check = |name: &str, expect: Option<&str>| {
            let outcome = make_private(&home.path().join(name)).err().map(|error| error.to_string());
            match (&outcome, expect) {
                (None, None) => {}
                (Some(error), Some(part)) if error.contains(part) => {}
                _ => panic!("{name}: {outcome:?}, expected {expect:?}"),
            }
        };
        fs::create_dir(home.path().join("open")).unwrap();
        fs::set_permissions(home.path().join("open"), Permissions::from_mode(0o755)).unwrap();
        symlink(home.path(), home.path().join("link")).unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        check("new", None);
        check("new", None);
        check("open", Some("its mode is 755"));
        check("link", Some("symbolic link"));
        check("file", Some("cannot make the folder"));
        check("file/below", Some("XDG_STATE_HOME"));
    }
}
