//! Hashes file contents for `confirm = "content"`, to tell a changed file from one with changed metadata only.
//!
//! Owns reading and hashing. Does not depend on what the hashes are compared with.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::folder_files::{ContentHash, FileStamp};
use super::open_file::open_nonblocking;
use super::path_bytes;
use super::read_dir::{self, FileKind};

/// Larger files are compared by metadata only: reading them would cost more than the relaunch that it may save.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// The hash of the file at `path`, or `None` if its stamp differs from `stamp` once it has been read.
///
/// The stamp is compared after the read, so that hash and stamp always belong to the same state of the file.
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
    let mut half = ContentHash::default();
    half.copy_from_slice(&hash.finalize()[..16]);
    Ok(half)
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
