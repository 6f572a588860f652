//! Lists one folder: names, kinds and stamps, with at most one metadata call per file.
//!
//! Owns the platform's calls: getdents64 and newfstatat relative to an open folder on Linux, std elsewhere. Follows no
//! symlink in any component of the path, and opens only folders. Does not depend on what is tracked.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::folder_files::FileStamp;
#[cfg(any(not(target_os = "linux"), test))]
use super::path_bytes;

/// The kind of an entry, as far as tracking is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Folder,
    /// A regular file or a symlink, which is not followed.
    File,
    /// FIFO, socket, device: never tracked, never opened.
    Other,
}

/// The root of a workspace, opened once per scan.
pub(super) struct WorkspaceRoot {
    #[cfg(not(target_os = "linux"))]
    path: std::path::PathBuf,
    #[cfg(target_os = "linux")]
    handle: rustix::fd::OwnedFd,
}

/// The kind and the stamp of one path, without following a symlink.
pub(super) fn read_metadata(path: &Path) -> io::Result<(FileKind, FileStamp)> {
    let about = std::fs::symlink_metadata(path)?;
    Ok((kind_of(about.file_type()), FileStamp::of(&about)))
}

fn kind_of(kind: std::fs::FileType) -> FileKind {
    match kind {
        kind if kind.is_dir() => FileKind::Folder,
        kind if kind.is_file() || kind.is_symlink() => FileKind::File,
        _ => FileKind::Other,
    }
}

/// Whether the path does not exist (any more), or has a symlink in it.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || has_errno(error, Errno::LOOP)
}

/// Whether the error concerns only the path of the call, so that other paths may work.
pub(super) fn is_path_error(error: &io::Error) -> bool {
    is_gone(error) || error.kind() == io::ErrorKind::PermissionDenied || has_errno(error, Errno::NAMETOOLONG)
}

/// Whether a limit of the user or the process is exhausted.
pub(super) fn is_limit_error(error: &io::Error) -> bool {
    has_errno(error, Errno::MFILE)
}

/// For error numbers without a stable `io::ErrorKind`.
fn has_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// As `WorkspaceRoot::list_folder`, by path, with std's portable calls.
#[cfg(any(not(target_os = "linux"), test))]
fn list_folder_portably(
    folder: &Path,
    mut visit: impl FnMut(&[u8], FileKind, &dyn Fn() -> Option<(FileKind, FileStamp)>),
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(kind) = entry.file_type().map(kind_of) else { continue };
        let stamp = || entry.metadata().ok().map(|about| (kind_of(about.file_type()), FileStamp::of(&about)));
        visit(path_bytes::as_bytes(&entry.file_name()), kind, &stamp);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
impl WorkspaceRoot {
    /// Opens the root; it may be a symlink itself.
    pub fn open(path: &Path) -> io::Result<WorkspaceRoot> {
        std::fs::read_dir(path)?;
        Ok(WorkspaceRoot { path: path.to_path_buf() })
    }

    /// Calls `visit` for each entry of the folder `rel` with its name, kind, and a function for its stamp.
    pub fn list_folder(
        &self,
        rel: &[u8],
        _buffer: &mut Vec<u8>,
        visit: impl FnMut(&[u8], FileKind, &dyn Fn() -> Option<(FileKind, FileStamp)>),
    ) -> io::Result<()> {
        let folder = self.path.join(path_bytes::as_path(rel));
        if !std::fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        list_folder_portably(&folder, visit)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fd::OwnedFd;
    use rustix::fs::{AtFlags, FileType, RawDir, ResolveFlags, openat, openat2, statat};

    use super::*;

    /// Bytes per call: some 800 entries; the longest name of any file system fits many times.
    const BUFFER: usize = 32 << 10;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    impl WorkspaceRoot {
        /// Opens the root; it may be a symlink itself.
        pub(crate) fn open(path: &Path) -> io::Result<WorkspaceRoot> {
            let handle = openat(rustix::fs::CWD, path, FOLDER - OFlags::NOFOLLOW, Mode::empty())?;
            Ok(WorkspaceRoot { handle })
        }

        fn open_folder(&self, rel: &[u8]) -> rustix::io::Result<OwnedFd> {
            let rel: &[u8] = if rel.is_empty() { b"." } else { rel };
            let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(&self.handle, rel, FOLDER, Mode::empty(), inside) {
                // Kernels before 5.6, and seccomp filters that do not know the call.
                Err(Errno::NOSYS | Errno::PERM) => openat(&self.handle, rel, FOLDER, Mode::empty()),
                opened => opened,
            }
        }

        /// Calls `visit` for each entry of the folder `rel` with its name, kind, and a function for its stamp.
        pub(crate) fn list_folder(
            &self,
            rel: &[u8],
            buffer: &mut Vec<u8>,
            mut visit: impl FnMut(&[u8], FileKind, &dyn Fn() -> Option<(FileKind, FileStamp)>),
        ) -> io::Result<()> {
            buffer.clear();
            buffer.reserve(BUFFER);
            let folder = self.open_folder(rel)?;
            let mut entries = RawDir::new(&folder, buffer.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                // `None` when the file was removed between the two calls.
                let stamp = || statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stamped(&stat));
                let kind = match entry.file_type() {
                    // Some file systems do not return the kind in listings.
                    FileType::Unknown => stamp().map_or(FileKind::Other, |(kind, _)| kind),
                    kind => kind_of(kind),
                };
                visit(name.to_bytes(), kind, &stamp);
            }
            Ok(())
        }
    }

    fn stamped(stat: &rustix::fs::Stat) -> (FileKind, FileStamp) {
        let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
        #[allow(clippy::unnecessary_cast, reason = "the types differ between architectures")]
        let stamp =
            FileStamp::new(stat.st_mtime as i64, stat.st_mtime_nsec as i64, stat.st_size as u64, stat.st_ino as u64);
        (kind, stamp)
    }

    fn kind_of(kind: FileType) -> FileKind {
        match kind {
            FileType::Directory => FileKind::Folder,
            FileType::RegularFile | FileType::Symlink => FileKind::File,
            _ => FileKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_portable_listing_returns_the_same_as_the_linux_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "text").unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        let mut native = Vec::new();
        let root = WorkspaceRoot::open(folder.path()).unwrap();
        root.list_folder(b"", &mut Vec::new(), |name, kind, stamp| native.push((name.to_vec(), kind, stamp())))
            .unwrap();
        let mut portable = Vec::new();
        list_folder_portably(folder.path(), |name, kind, stamp| portable.push((name.to_vec(), kind, stamp()))).unwrap();
        native.sort_by(|a, b| a.0.cmp(&b.0));
        portable.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(native, portable);
        assert_eq!(
            native.iter().map(|entry| entry.1).collect::<Vec<_>>(),
            [FileKind::File, FileKind::File, FileKind::Other, FileKind::Folder]
        );
    }

    #[test]
    fn a_symlink_is_not_followed_in_any_component_of_the_path() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("inner")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let root = WorkspaceRoot::open(folder.path()).unwrap();
        for rel in ["link", "link/inner", ".."] {
            let listed = root.list_folder(rel.as_bytes(), &mut Vec::new(), |name, _, _| panic!("{rel} lists {name:?}"));
            assert!(listed.is_err(), "{rel}");
        }
    }
}
