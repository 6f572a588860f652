//! Converts paths to bytes and back, and joins and splits such bytes.
//!
//! On Unix lossless; elsewhere names are UTF-8.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The bytes of a name or of a path.
#[cfg(unix)]
pub(super) fn as_bytes(name: &(impl AsRef<OsStr> + ?Sized)) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(name.as_ref())
}

/// The path that the bytes name.
#[cfg(unix)]
pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(super) fn as_bytes(name: &(impl AsRef<OsStr> + ?Sized)) -> &[u8] {
    name.as_ref().as_encoded_bytes()
}

#[cfg(not(unix))]
pub(super) fn as_path(bytes: &[u8]) -> &Path {
    // Bytes that are not UTF-8 give a name that does not exist, so such a file counts as removed.
    Path::new(std::str::from_utf8(bytes).unwrap_or("\u{fffd}"))
}

/// `folder/name`, or `name` alone in the root (whose path is empty).
pub(super) fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(folder.len() + 1 + name.len());
    joined.extend_from_slice(folder);
    if !folder.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The folder and the last component of a relative path.
pub(super) fn split_path(rel: &[u8]) -> (&[u8], &[u8]) {
    match rel.iter().rposition(|b| *b == b'/') {
        Some(slash) => (&rel[..slash], &rel[slash + 1..]),
        None => (&[], rel),
    }
}

/// Whether `rel` is below `folder` (the root contains every other path).
pub(super) fn is_below(rel: &[u8], folder: &[u8]) -> bool {
    match rel.strip_prefix(folder) {
        Some(rest) if folder.is_empty() => !rest.is_empty(),
        Some(rest) => rest.first() == Some(&b'/'),
        None => false,
    }
}

/// The owned path that the bytes name.
pub(super) fn to_path(rel: &[u8]) -> PathBuf {
    as_path(rel).to_path_buf()
}
