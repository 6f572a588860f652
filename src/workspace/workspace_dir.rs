//! `.devtools`: the folder for our files in a workspace.
//!
//! It is in the workspace, so its content is not trusted: reading never follows links, never blocks, and takes no more
//! than a bounded file of our own user. Writing is temp file + rename, all below one opened folder: a reader sees the old
//! file or the new one, never half of one. What a reader finds after a power failure is promised per file, since each fsync
//! takes milliseconds. Does not depend on the files' content.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

/// The folder of ours in a workspace.
pub const DEVTOOLS_FOLDER: &str = ".devtools";

/// One file of ours in a workspace.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceFile<'a> {
    pub workspace: &'a Path,
    pub name: &'a str,
    /// The size limit, in bytes.
    pub most: u64,
    /// What a failed writing does not harm, for its hint: "the window keeps running".
    pub what: &'a str,
}

/// What a reader finds when the power has failed after a file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPowerFailure {
    /// The new file.
    New,
    /// The old file or the new one.
    OldOrNew,
    /// Perhaps half of one: for what counts only until the machine is started again.
    Unknown,
}

/// Why a file is not used. Each text follows "… was set aside: ".
#[derive(Debug, thiserror::Error)]
pub enum UnusableFile {
    #[error("{DEVTOOLS_FOLDER} is not a folder of ours: {0}")]
    Folder(String),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it belongs to another user ({0})")]
    Foreign(u32),
    #[error("it has {0} bytes, more than such a file ever has")]
    Huge(u64),
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl From<rustix::io::Errno> for UnusableFile {
    fn from(cause: rustix::io::Errno) -> Self {
        UnusableFile::Unreadable(cause.into())
    }
}

impl WorkspaceFile<'_> {
    /// The path, for messages.
    pub fn path(&self) -> PathBuf {
        self.workspace.join(DEVTOOLS_FOLDER).join(self.name)
    }

    /// Its bytes; `None` when there is none.
    pub fn read(&self) -> Result<Option<Vec<u8>>, UnusableFile> {
        let Some(folder) = open_folder(self.workspace)? else { return Ok(None) };
        // O_NONBLOCK: opening a FIFO must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::openat(&folder, self.name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(UnusableFile::NotRegular),
            Err(cause) => return Err(cause.into()),
        };
        check_file(&file, self.most)?;
        let mut text = Vec::new();
        std::fs::File::from(file).take(self.most).read_to_end(&mut text)?;
        Ok(Some(text))
    }

    /// Replaces it. Errors name the path.
    pub fn replace(&self, text: &[u8], promised: AfterPowerFailure) -> Result<()> {
        let folder = make_folder(self.workspace)?;
        let temporary = format!("{}.new", self.name);
        replace_file(&folder, self.name, &temporary, text, promised).map_err(|cause| {
            let _ = fs::unlinkat(&folder, &temporary, AtFlags::empty());
            Error::other(format!("cannot write {}", self.path().display()))
                .because(cause)
                .hint(format!("{}; free space or make the folder writable, then run `tether status`", self.what))
        })
    }

    /// Removes it; it need not exist.
    pub fn remove(&self) -> Result<()> {
        let doing = || format!("cannot remove {}", self.path().display());
        let Ok(Some(folder)) = open_folder(self.workspace) else { return Ok(()) };
        match fs::unlinkat(&folder, self.name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(cause) => Err(io::Error::from(cause)).doing(doing),
        }
    }

    /// Renames one that is not to be used to `<name>.stale`. Returns the line to be logged, with the reason.
    pub fn set_aside(&self, reason: &str) -> Result<String> {
        let doing = || format!("cannot set {} aside ({reason})", self.path().display());
        let Ok(Some(folder)) = open_folder(self.workspace) else {
            return Ok(format!("{} is ignored: {reason}", self.path().display()));
        };
        let stale = format!("{}.stale", self.name);
        match fs::renameat(&folder, self.name, &folder, &stale) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(cause) => return Err(io::Error::from(cause)).doing(doing),
        }
        Ok(format!("{} was set aside as {stale}: {reason}", self.path().display()))
    }
}

fn replace_file(
    folder: &OwnedFd,
    name: &str,
    temporary: &str,
    text: &[u8],
    promised: AfterPowerFailure,
) -> io::Result<()> {
    // Left by a supervisor that was killed in the middle; there is only one supervisor.
    let _ = fs::unlinkat(folder, temporary, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(fs::openat(folder, temporary, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text)?;
    if promised != AfterPowerFailure::Unknown {
        file.sync_all()?;
    }
    fs::renameat(folder, temporary, folder, name)?;
    if promised == AfterPowerFailure::New {
        fs::fsync(folder)?;
    }
    Ok(())
}

fn check_file(file: &OwnedFd, most: u64) -> Result<(), UnusableFile> {
    let stat = fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(UnusableFile::NotRegular);
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(UnusableFile::Foreign(stat.st_uid));
    }
    match u64::try_from(stat.st_size) {
        Ok(size) if size <= most => Ok(()),
        size => Err(UnusableFile::Huge(size.unwrap_or(u64::MAX))),
    }
}

/// Opens `.devtools` if it is a folder of ours and no link to one.
fn open_folder(workspace: &Path) -> Result<Option<OwnedFd>, UnusableFile> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match fs::open(workspace.join(DEVTOOLS_FOLDER), flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(UnusableFile::Folder("it is a link or a file".into()));
        }
        Err(cause) => return Err(cause.into()),
    };
    let owner = fs::fstat(&folder)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return Err(UnusableFile::Folder(format!("it belongs to user {owner}")));
    }
    Ok(Some(folder))
}

/// Makes `.devtools` with its own `.gitignore`, unless it is there.
pub(super) fn make_folder(workspace: &Path) -> Result<OwnedFd> {
    let folder = workspace.join(DEVTOOLS_FOLDER);
    let doing = || format!("cannot use {}", folder.display());
    match fs::mkdir(&folder, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(cause) => {
            let error = Error::other(format!("cannot make {}", folder.display())).because(io::Error::from(cause));
            let hint = "make the workspace writable: the next supervisor finds a window by this folder only";
            return Err(error.hint(hint));
        }
    }
    let opened = open_folder(workspace).map_err(|cause| {
        Error::new(ErrorKind::Usage, doing())
            .because(cause)
            .hint(format!("remove {} yourself if it is not needed", folder.display()))
    })?;
    let opened = opened.ok_or_else(|| Error::other(doing()).because("it was removed in this moment"))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(file) = fs::openat(&opened, ".gitignore", flags, Mode::from_raw_mode(0o644)) {
        std::fs::File::from(file).write_all(b"*\n").doing(doing)?;
    }
    Ok(opened)
}
