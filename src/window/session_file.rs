//! `.devtools/session.json`: what a new supervisor needs to find its window again.
//!
//! The file lies in a workspace, so it may be anybody's: reading it never follows links, never blocks, and believes
//! nothing but shapes; [`super::identity`] proves the rest. Writing is temp file + fsync + rename + fsync of the
//! folder, all below one opened folder: a reader sees the old file or the new one, never half of one.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::launch::is_launch_id;
use crate::error::{Context, Error, Kind, Result};

/// The folder of ours in a workspace.
pub const FOLDER: &str = ".devtools";
const NAME: &str = "session.json";
const STALE: &str = "session.json.stale";
const TEMP: &str = "session.json.new";
/// The schema that this program writes; it reads nothing newer.
pub const VERSION: u64 = 1;
const MAX_BYTES: u64 = 64 * 1024;

/// The content of the file. Times are epoch milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub version: u64,
    pub cdp_port: u16,
    /// The window's main process, whatever the program is.
    pub electron_pid: u32,
    /// The extension host's or Node's inspector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspector_port: Option<u16>,
    /// The supervisor's socket, which the editor side dials.
    pub host_bridge_path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_dir: Option<PathBuf>,
    pub debug_window_started_at: u64,
    pub persisted_at: u64,
    /// Given to the window in its environment, as `DEVTETHER_LAUNCH_ID`.
    pub launch_id: String,
    pub boot_id: String,
    /// Clock ticks between boot and the start of the main process.
    pub pid_start_ticks: u64,
    /// The GUID of `webSocketDebuggerUrl`.
    pub browser_id: String,
}

/// Why a file is not used. Each text completes "session.json was set aside: …".
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{FOLDER} is not a folder of ours: {0}")]
    Folder(String),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it belongs to another user ({0})")]
    Foreign(u32),
    #[error("it has {0} bytes, more than a session file ever has")]
    Huge(u64),
    #[error("it has the newer schema {0} (this program knows {VERSION}); a newer tether wrote it")]
    Newer(u64),
    #[error("it is not a session file: {0}")]
    Malformed(String),
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl From<rustix::io::Errno> for Unusable {
    fn from(cause: rustix::io::Errno) -> Self {
        Unusable::Unreadable(cause.into())
    }
}

/// The path, for messages.
pub fn path(workspace: &Path) -> PathBuf {
    workspace.join(FOLDER).join(NAME)
}

/// Reads the file; `None` when there is none.
pub fn load(workspace: &Path) -> Result<Option<Session>, Unusable> {
    let Some(folder) = open_folder(workspace)? else { return Ok(None) };
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match fs::openat(&folder, NAME, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(Unusable::NotRegular),
        Err(cause) => return Err(cause.into()),
    };
    check_file(&file)?;
    let mut text = Vec::new();
    std::fs::File::from(file).take(MAX_BYTES).read_to_end(&mut text)?;
    parse(&text).map(Some)
}

fn check_file(file: &OwnedFd) -> Result<(), Unusable> {
    let stat = fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Unusable::NotRegular);
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Unusable::Foreign(stat.st_uid));
    }
    match u64::try_from(stat.st_size) {
        Ok(size) if size <= MAX_BYTES => Ok(()),
        size => Err(Unusable::Huge(size.unwrap_or(u64::MAX))),
    }
}

fn parse(text: &[u8]) -> Result<Session, Unusable> {
    let malformed = |cause: serde_json::Error| Unusable::Malformed(cause.to_string());
    let value: Value = serde_json::from_slice(text).map_err(malformed)?;
    // The version first: a newer schema may differ in everything else.
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) if version > VERSION => return Err(Unusable::Newer(version)),
        _ => return Err(Unusable::Malformed("`version` is missing or wrong".into())),
    }
    let session: Session = serde_json::from_value(value).map_err(malformed)?;
    let wrong = |what: &str| Err(Unusable::Malformed(format!("`{what}` has an impossible value")));
    match &session {
        s if s.electron_pid <= 1 || i32::try_from(s.electron_pid).is_err() => wrong("electronPid"),
        s if s.cdp_port == 0 => wrong("cdpPort"),
        s if s.inspector_port == Some(0) => wrong("inspectorPort"),
        s if !is_launch_id(&s.launch_id) => wrong("launchId"),
        s if !s.host_bridge_path.is_absolute() => wrong("hostBridgePath"),
        s if s.user_data_dir.as_ref().is_some_and(|dir| !dir.is_absolute()) => wrong("userDataDir"),
        _ => Ok(session),
    }
}

/// Replaces the file. Errors name the path; the window is not affected by them.
pub fn save(workspace: &Path, session: &Session) -> Result<()> {
    let doing = || format!("cannot write {}", path(workspace).display());
    let folder = make_folder(workspace)?;
    let mut text = serde_json::to_vec_pretty(session).doing(doing)?;
    text.push(b'\n');
    replace(&folder, &text).map_err(|cause| {
        let _ = fs::unlinkat(&folder, TEMP, AtFlags::empty());
        Error::other(doing())
            .because(cause)
            .hint("the window runs on; free space or make the folder writable, then run `tether status`")
    })
}

fn replace(folder: &OwnedFd, text: &[u8]) -> io::Result<()> {
    // Left by a supervisor that was killed in the middle; there is only one supervisor.
    let _ = fs::unlinkat(folder, TEMP, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(fs::openat(folder, TEMP, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text)?;
    file.sync_all()?;
    fs::renameat(folder, TEMP, folder, NAME)?;
    Ok(fs::fsync(folder)?)
}

/// Removes the file after the window was stopped. A missing one is fine.
pub fn remove(workspace: &Path) -> Result<()> {
    let doing = || format!("cannot remove {}", path(workspace).display());
    let Ok(Some(folder)) = open_folder(workspace) else { return Ok(()) };
    match fs::unlinkat(&folder, NAME, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(cause) => Err(io::Error::from(cause)).doing(doing),
    }
}

/// Renames a file that is not to be used to `session.json.stale`. Returns the line to be logged, which says why.
pub fn set_aside(workspace: &Path, reason: impl std::fmt::Display) -> Result<String> {
    let doing = || format!("cannot set {} aside ({reason})", path(workspace).display());
    let Ok(Some(folder)) = open_folder(workspace) else {
        return Ok(format!("{} is ignored: {reason}", path(workspace).display()));
    };
    match fs::renameat(&folder, NAME, &folder, STALE) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(cause) => return Err(io::Error::from(cause)).doing(doing),
    }
    Ok(format!("{} was set aside as {STALE}: {reason}", path(workspace).display()))
}

/// Opens `.devtools` if it is a folder of ours and no link to one.
fn open_folder(workspace: &Path) -> Result<Option<OwnedFd>, Unusable> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match fs::open(workspace.join(FOLDER), flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(Unusable::Folder("it is a link or a file".into()));
        }
        Err(cause) => return Err(cause.into()),
    };
    let owner = fs::fstat(&folder)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Unusable::Folder(format!("it belongs to user {owner}")));
    }
    Ok(Some(folder))
}

/// Makes `.devtools` with its own `.gitignore`, unless it is there.
fn make_folder(workspace: &Path) -> Result<OwnedFd> {
    let folder = workspace.join(FOLDER);
    let doing = || format!("cannot use {}", folder.display());
    match fs::mkdir(&folder, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(cause) => return Err(cannot_make(&folder, cause.into())),
    }
    let opened = open_folder(workspace).map_err(|cause| {
        Error::new(Kind::Usage, doing())
            .because(cause)
            .hint(format!("remove {} yourself if nobody needs it", folder.display()))
    })?;
    let opened = opened.ok_or_else(|| Error::other(doing()).because("it was removed in this moment"))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(file) = fs::openat(&opened, ".gitignore", flags, Mode::from_raw_mode(0o644)) {
        std::fs::File::from(file).write_all(b"*\n").doing(doing)?;
    }
    Ok(opened)
}

fn cannot_make(folder: &Path, cause: io::Error) -> Error {
    let error = Error::other(format!("cannot make {}", folder.display())).because(cause);
    error.hint("the workspace must be writable: a window that nobody can find again is not started")
}
