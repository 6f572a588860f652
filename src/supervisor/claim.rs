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

use super::place::Place;
use crate::error::{Context, Result};

/// The right to be the supervisor; the kernel takes it back when the process ends, however it ends.
#[derive(Debug)]
pub struct Claim {
    _supervisor: File,
    starting: Option<File>,
}

/// Who holds the claim, as it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
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
pub enum Outcome {
    Won(Claim),
    Held(Holder),
}

/// Tries to become the supervisor. Blocks while another one is starting or ending.
pub fn claim(place: &Place) -> Result<Outcome> {
    let starting = open(&place.starting)?;
    starting.lock().doing(|| format!("cannot lock {}", place.starting.display()))?;
    let mut supervisor = open(&place.lock)?;
    match supervisor.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => match read_holder(&mut supervisor).filter(answers) {
            Some(holder) => return Ok(Outcome::Held(holder)),
            None => supervisor.lock().doing(|| format!("cannot lock {}", place.lock.display()))?,
        },
        Err(TryLockError::Error(cause)) => {
            return Err(cause).doing(|| format!("cannot lock {}", place.lock.display()));
        }
    }
    describe(&mut supervisor, place).doing(|| format!("cannot write {}", place.lock.display()))?;
    Ok(Outcome::Won(Claim { _supervisor: supervisor, starting: Some(starting) }))
}

impl Claim {
    /// Says that we listen now: whoever waits to start may look.
    pub fn listening(&mut self) {
        self.starting = None;
    }
}

/// Who holds the claim, if the file says so and the holder listens.
pub fn holder(place: &Place) -> Option<Holder> {
    let mut file = File::open(&place.lock).ok()?;
    read_holder(&mut file).filter(answers)
}

/// Whether anybody holds a claim, by its lock file.
#[derive(Debug)]
pub enum Seat {
    /// With what the holder says of itself, when it has said it.
    Taken(Option<Holder>),
    Empty(Vacancy),
}

/// Nobody becomes the supervisor while this lives: whoever tries waits.
#[derive(Debug)]
pub struct Vacancy(Option<File>);

impl Vacancy {
    /// What the last holder said of itself.
    pub fn last(&self) -> Option<Holder> {
        read_holder(&mut self.0.as_ref()?.try_clone().ok()?)
    }
}

/// Looks whether the lock is held; a lock file that is not there is made by the first supervisor, and not by us.
pub fn seat(lock: &Path) -> std::io::Result<Seat> {
    let mut file = match OpenOptions::new().read(true).write(true).open(lock) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(Seat::Empty(Vacancy(None))),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Seat::Empty(Vacancy(Some(file)))),
        Err(TryLockError::WouldBlock) => Ok(Seat::Taken(read_holder(&mut file))),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .doing(|| format!("cannot open {}", path.display()))
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(64 * 1024).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn answers(holder: &Holder) -> bool {
    UnixStream::connect(&holder.socket).is_ok()
}

fn describe(file: &mut File, place: &Place) -> std::io::Result<()> {
    let holder = Holder {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        socket: place.socket.clone(),
        workspace: place.workspace.clone(),
    };
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(&holder)?.as_bytes())
}
