//! Hashes file contents for `confirm = "content"`, to tell a changed file from one with changed metadata only.
//!
//! Owns reading and hashing. Does not depend on what the hashes are compared with.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use tether_base::bounded_file::{self, Links};

use super::folder_files::{ContentHash, FileStamp};
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

/// The first half of the SHA-256 of all parts, one after the other.
pub(super) fn half_sha256(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> [u8; 16] {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

fn hash_path(path: &Path) -> io::Result<ContentHash> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        return Ok(half_sha256([b"link\0", path_bytes::as_bytes(&fs::read_link(path)?)]));
    }
    Ok(half_sha256([bounded_file::read_file(path, MAX_HASHED_BYTES, Links::Refuse)?]))
}
