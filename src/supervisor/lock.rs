//! Being the only supervisor of a workspace. The OS lock is the truth; what the lock file says is only information.
//!
//! ```text
//!   starting.lock ──(waits in the kernel)──▶ supervisor.lock? ──free──▶ Claim ──▶ bind, listen ──▶ `starting` let go
//!                                                  └──held──▶ its holder listens? ──yes──▶ Held
//!                                                                      └──no: it is on its way out──▶ wait for it
//! ```
//!
//! `starting.lock` is what makes a hundred starts at once one: a loser gets it only after the winner listens.
//! The lock files are never deleted: whoever deletes one may delete another's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::paths::SupervisorPaths;
use crate::error::{ErrorContext, Result};

/// The right to be the supervisor; the kernel takes it back when the process ends, however it ends.
#[derive(Debug)]
pub struct SupervisorLock {
    _supervisor: File,
    starting: Option<File>,
}

/// Who holds the claim, as it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockHolder {
    pub pid: u32,
    pub version: String,
    /// May differ from ours: it depends on the environment that the holder was started in.
    pub socket: PathBuf,
    /// Outlives the holder: it tells whose this state folder is.
    #[serde(default)]
    pub workspace: PathBuf,
}

/// What came of trying to be the supervisor.
#[derive(Debug)]
pub enum LockOutcome {
    Acquired(SupervisorLock),
    Held(LockHolder),
}

/// Tries to become the supervisor. Blocks while another one is starting or ending.
pub fn acquire_lock(paths: &SupervisorPaths) -> Result<LockOutcome> {
    let starting = open_lock_file(&paths.starting_lock)?;
    starting.lock().doing(|| format!("cannot lock {}", paths.starting_lock.display()))?;
    let mut supervisor = open_lock_file(&paths.lock)?;
    match supervisor.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => match read_holder(&mut supervisor).filter(is_listening) {
            Some(holder) => return Ok(LockOutcome::Held(holder)),
            None => supervisor.lock().doing(|| format!("cannot lock {}", paths.lock.display()))?,
        },
        Err(TryLockError::Error(cause)) => {
            return Err(cause).doing(|| format!("cannot lock {}", paths.lock.display()));
        }
    }
    write_holder(&mut supervisor, paths).doing(|| format!("cannot write {}", paths.lock.display()))?;
    Ok(LockOutcome::Acquired(SupervisorLock { _supervisor: supervisor, starting: Some(starting) }))
}

impl SupervisorLock {
    /// Says that we listen now: whoever waits to start may look.
    pub fn release_starting_lock(&mut self) {
        self.starting = None;
    }
}

/// Who holds the claim, if the file says so and the holder listens.
pub fn find_listening_holder(paths: &SupervisorPaths) -> Option<LockHolder> {
    let mut file = File::open(&paths.lock).ok()?;
    read_holder(&mut file).filter(is_listening)
}

/// Whether anybody holds a claim, by its lock file.
#[derive(Debug)]
pub enum LockStatus {
    /// With what the holder says of itself, when it has said it.
    Locked(Option<LockHolder>),
    Free(LockReservation),
}

/// Nobody becomes the supervisor while this lives: whoever tries waits.
#[derive(Debug)]
pub struct LockReservation(Option<File>);

impl LockReservation {
    /// What the last holder said of itself.
    pub fn last_holder(&self) -> Option<LockHolder> {
        read_holder(&mut self.0.as_ref()?.try_clone().ok()?)
    }
}

/// Looks whether the lock is held; a lock file that is not there is made by the first supervisor, and not by us.
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
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(&holder)?.as_bytes())
}
