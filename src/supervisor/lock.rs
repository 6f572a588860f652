//! The lock that only one supervisor of a workspace holds. The OS lock decides; the content of the file is only information.
//!
//! ```text
//!   starting lock ──(waits in the kernel)──▶ both locks free? ──yes──▶ SupervisorLock ──▶ bind, listen ──▶ `starting` released
//!                                                  └──held──▶ its holder listens? ──yes──▶ LockHolder
//!                                                                      └──no: it is exiting──▶ wait for it
//! ```
//!
//! The starting lock serialises concurrent starts: the next process gets it only when the one before listens or has
//! failed. Two locks are held: that of the workspace, which is the same in every environment, and that of the state
//! folder, whose file is never deleted (a process that deletes one may delete another process's).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tether_base::error::{ErrorContext, Result};

use super::paths::SupervisorPaths;
use super::released_file::ReleasedFile;

/// The held lock; the kernel releases it when the process exits, however it exits.
#[derive(Debug)]
pub struct SupervisorLock {
    _state: File,
    _workspace: ReleasedFile,
    starting: Option<ReleasedFile>,
}

/// The process that holds the lock, as it wrote itself into the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockHolder {
    pub pid: u32,
    pub version: String,
    /// May differ from ours: it depends on the environment that the holder was started in.
    pub socket: PathBuf,
    /// Stays in the file after the holder's exit: the workspace of this state folder.
    #[serde(default)]
    pub workspace: PathBuf,
}

/// The result of [`acquire_lock`].
#[derive(Debug)]
pub enum LockOutcome {
    Acquired(SupervisorLock),
    Held(LockHolder),
}

/// Tries to become the supervisor. Blocks while another one is starting or ending.
pub fn acquire_lock(paths: &SupervisorPaths) -> Result<LockOutcome> {
    let starting = ReleasedFile::acquire(&paths.starting_lock)
        .doing(|| format!("cannot lock {}", paths.starting_lock.display()))?;
    let doing = || format!("cannot lock {}", paths.workspace_lock.display());
    let mut workspace = match ReleasedFile::try_acquire(&paths.workspace_lock).doing(doing)? {
        Ok(lock) => lock,
        Err(mut held) => match read_holder(&mut held).filter(is_listening) {
            Some(holder) => return Ok(LockOutcome::Held(holder)),
            None => ReleasedFile::acquire(&paths.workspace_lock).doing(doing)?,
        },
    };
    let doing = || format!("cannot lock {}", paths.lock.display());
    let mut state = open_lock_file(&paths.lock)?;
    match state.try_lock() {
        Ok(()) => {}
        // By a supervisor of before there was a lock of the workspace.
        Err(TryLockError::WouldBlock) => match read_holder(&mut state).filter(is_listening) {
            Some(holder) => return Ok(LockOutcome::Held(holder)),
            None => state.lock().doing(doing)?,
        },
        Err(TryLockError::Error(cause)) => return Err(cause).doing(doing),
    }
    for (file, path) in [(&mut state, &paths.lock), (workspace.file(), &paths.workspace_lock)] {
        write_holder(file, paths).doing(|| format!("cannot write {}", path.display()))?;
    }
    Ok(LockOutcome::Acquired(SupervisorLock { _state: state, _workspace: workspace, starting: Some(starting) }))
}

impl SupervisorLock {
    /// Lets waiting starts proceed; called once the socket listens.
    pub fn release_starting_lock(&mut self) {
        self.starting = None;
    }
}

/// The holder in one of the files, if it listens.
pub fn find_listening_holder(paths: &SupervisorPaths) -> Option<LockHolder> {
    let holder = |path: &PathBuf| read_holder(&mut File::open(path).ok()?).filter(is_listening);
    [&paths.workspace_lock, &paths.lock].into_iter().find_map(holder)
}

/// Whether a lock is held.
#[derive(Debug)]
pub enum LockStatus {
    /// With the holder, once it has written itself into the file.
    Locked(Option<LockHolder>),
    Free(LockReservation),
}

/// Blocks starting supervisors until it is dropped.
#[derive(Debug)]
pub struct LockReservation(Option<File>);

impl LockReservation {
    /// The last holder.
    pub fn last_holder(&self) -> Option<LockHolder> {
        read_holder(&mut self.0.as_ref()?.try_clone().ok()?)
    }
}

/// Tests whether the lock is held, and reserves a free one. Does not create a missing lock file.
pub fn inspect_lock(lock: &Path) -> std::io::Result<LockStatus> {
    let mut file = match OpenOptions::new().read(true).write(true).open(lock) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Ok(LockStatus::Free(LockReservation(None)));
        }
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(LockStatus::Free(LockReservation(Some(file)))),
        Err(TryLockError::WouldBlock) => Ok(LockStatus::Locked(read_holder(&mut file))),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

fn open_lock_file(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .doing(|| format!("cannot open {}", path.display()))
}

fn read_holder(file: &mut File) -> Option<LockHolder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(64 * 1024).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn is_listening(holder: &LockHolder) -> bool {
    UnixStream::connect(&holder.socket).is_ok()
}

fn write_holder(file: &mut File, paths: &SupervisorPaths) -> std::io::Result<()> {
    let holder = LockHolder {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        socket: paths.socket.clone(),
        workspace: paths.workspace.clone(),
    };
    let text = serde_json::to_string(&holder)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    // Not to nothing before: some file systems take milliseconds to free the block, and to find one again.
    file.set_len(text.len() as u64)
}
