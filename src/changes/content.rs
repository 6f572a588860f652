//! Contents, for `confirm = "content"`: is a file whose metadata moved still what it was?
//!
//! Owns the reading and hashing. Must not know what the answer is used for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::folder::{Print, Stamp};
use super::list::{self, Kind};
use super::name;

/// Larger files are judged by their metadata alone: reading them would cost more than the relaunch that it may save.
const LARGEST: u64 = 16 << 20;

/// The print of the file at `path`, if it is still as `stamp` says once it has been read.
///
/// The stamp is compared after the read, so that a print never belongs to another state of the file than its stamp.
pub(super) fn print(path: &Path, stamp: Stamp) -> Option<Print> {
    if stamp.size > LARGEST {
        return None;
    }
    let hash = hash(path).ok()?;
    matches!(list::look(path), Ok((Kind::File, now)) if now == stamp).then_some(hash)
}

fn hash(path: &Path) -> io::Result<Print> {
    let mut hash = Sha256::new();
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        hash.update(b"link\0");
        hash.update(name::bytes(&fs::read_link(path)?));
    } else if kind.is_file() {
        read_into(&mut hash, path)?;
    } else {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut print = Print::default();
    print.copy_from_slice(&hash.finalize()[..16]);
    Ok(print)
}

fn read_into(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = open(path)?.take(LARGEST + 1);
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
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
