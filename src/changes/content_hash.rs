//! Contents, for `confirm = "content"`: is a file whose metadata moved still what it was?
//!
//! Owns the reading and hashing. Must not know what the answer is used for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::folder_files::{ContentHash, FileStamp};
use super::path_bytes;
use super::read_dir::{self, FileKind};

/// Larger files are judged by their metadata alone: reading them would cost more than the relaunch that it may save.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// The print of the file at `path`, if it is still as `stamp` says once it has been read.
///
/// The stamp is compared after the read, so that a print never belongs to another state of the file than its stamp.
pub(super) fn hash_if_unchanged(path: &Path, stamp: FileStamp) -> Option<ContentHash> {
    if stamp.size > MAX_HASHED_BYTES {
        return None;
    }
    let hash = hash_path(path).ok()?;
    matches!(read_dir::read_metadata(path), Ok((FileKind::File, now)) if now == stamp).then_some(hash)
}

fn hash_path(path: &Path) -> io::Result<ContentHash> {
    let mut hash = Sha256::new();
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        hash.update(b"link\0");
        hash.update(path_bytes::as_bytes(&fs::read_link(path)?));
    } else if kind.is_file() {
        hash_file(&mut hash, path)?;
    } else {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut print = ContentHash::default();
    print.copy_from_slice(&hash.finalize()[..16]);
    Ok(print)
}

fn hash_file(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = open_nonblocking(path)?.take(MAX_HASHED_BYTES + 1);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens without following a link and without waiting, should the file have become a FIFO meanwhile.
#[cfg(unix)]
fn open_nonblocking(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
