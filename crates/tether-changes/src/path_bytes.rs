//! Converts paths to bytes and back without loss, and joins and splits such bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The bytes of a name or of a path.
pub(super) fn as_bytes(name: &(impl AsRef<OsStr> + ?Sized)) -> &[u8] {
    name.as_ref().as_bytes()
}

/// The path that the bytes name.
pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// `folder/name`, or `name` alone in the root (whose path is empty).
pub(super) fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    [folder, separator, name].concat()
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
    let rest = rel.strip_prefix(folder).unwrap_or_default();
    rest.starts_with(b"/") || (folder.is_empty() && !rest.is_empty())
}
