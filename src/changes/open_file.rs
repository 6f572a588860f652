//! Opens workspace files, which may be replaced by links, FIFOs or devices at any time.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading, without following a symlink and without blocking on a FIFO.
#[cfg(unix)]
pub(super) fn open_nonblocking(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Opens a file for reading.
#[cfg(not(unix))]
pub(super) fn open_nonblocking(path: &Path) -> io::Result<File> {
    File::open(path)
}
