//! `.devtools/files`: what an operation has to hand over as a file: bodies, archives, traces. And the reading of files of the
//! workspace that a caller names.
//!
//! Nothing outside of the workspace is written or read: no link is followed on the way. The oldest files are removed beyond a
//! number. Does not depend on what is in them.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

use super::workspace_dir::{DEVTOOLS_FOLDER, make_folder};

/// The folder in `.devtools`.
const FILES_FOLDER: &str = "files";
/// Files kept; beyond that the oldest are removed.
const MAX_FILES: usize = 300;
const MAX_NAME: usize = 100;

/// Writes a file of this name, over one of the same name; returns its path from the workspace. Errors: the name is none, the
/// folder cannot be used.
pub fn write_output_file(workspace: &Path, name: &str, content: &[u8]) -> Result<String> {
    let shown = format!("{DEVTOOLS_FOLDER}/{FILES_FOLDER}/{name}");
    if !is_plain_name(name) {
        return Err(Error::usage(format!("{name:?} is no name for a file"))
            .hint("use letters, digits, `.`, `-` and `_`; the file is written to .devtools/files"));
    }
    let doing = || format!("cannot write {shown}");
    let folder = open_files_folder(workspace)?;
    remove_oldest(&folder).doing(doing)?;
    let temporary = format!(".{name}.new");
    let _ = fs::unlinkat(&folder, &temporary, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let write = || -> io::Result<()> {
        let file = fs::openat(&folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        std::fs::File::from(file).write_all(content)?;
        Ok(fs::renameat(&folder, &temporary, &folder, name)?)
    };
    if let Err(cause) = write() {
        let _ = fs::unlinkat(&folder, &temporary, AtFlags::empty());
        return Err(Error::other(doing()).because(cause).hint("free space, or make the folder writable"));
    }
    Ok(shown)
}

/// A name of one component that hides nothing.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}

fn open_files_folder(workspace: &Path) -> Result<OwnedFd> {
    let outer = make_folder(workspace)?;
    let doing = || format!("cannot use {DEVTOOLS_FOLDER}/{FILES_FOLDER}");
    match fs::mkdirat(&outer, FILES_FOLDER, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(cause) => return Err(io::Error::from(cause)).doing(doing),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(&outer, FILES_FOLDER, flags, Mode::empty()).map_err(io::Error::from).doing(doing)
}

fn remove_oldest(folder: &OwnedFd) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::Dir::read_from(folder)?.take(100 * MAX_FILES) {
        let entry = entry?;
        if let Ok(stat) = fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) != FileType::Directory
        {
            files.push((stat.st_mtime, stat.st_mtime_nsec, entry.file_name().to_owned()));
        }
    }
    files.sort();
    for (.., name) in files.iter().take((files.len() + 1).saturating_sub(MAX_FILES)) {
        let _ = fs::unlinkat(folder, name, AtFlags::empty());
    }
    Ok(())
}

/// The content of a file of the workspace: `path` is relative to it, or lies in it. Errors: it is elsewhere, behind a link, no
/// regular file, or larger than `most` bytes.
pub fn read_workspace_file(workspace: &Path, path: &str, most: u64) -> Result<Vec<u8>> {
    let doing = || format!("cannot read {path:?}");
    let parts = path_in_workspace(workspace, path)?;
    let at = |flags| OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    let open = || -> io::Result<OwnedFd> {
        let mut folder = fs::open(workspace, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let (last, outer) = parts.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        for part in outer {
            folder = fs::openat(&folder, part.as_path(), at(OFlags::DIRECTORY), Mode::empty())?;
        }
        // O_NONBLOCK: opening a FIFO must not wait for its writer.
        Ok(fs::openat(&folder, last.as_path(), at(OFlags::NONBLOCK), Mode::empty())?)
    };
    let file = open().map_err(|cause| match rustix::io::Errno::from_io_error(&cause) {
        Some(rustix::io::Errno::LOOP) => Error::new(ErrorKind::Usage, doing()).because("links are not followed"),
        _ => Error::other(doing()).because(cause),
    })?;
    let stat = fs::fstat(&file).map_err(io::Error::from).doing(doing)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Error::new(ErrorKind::Usage, doing()).because("it is not a regular file"));
    }
    let mut content = Vec::new();
    std::fs::File::from(file).take(most + 1).read_to_end(&mut content).doing(doing)?;
    if content.len() as u64 > most {
        return Err(Error::new(ErrorKind::Usage, doing()).because(format!("it has more than {most} bytes")));
    }
    Ok(content)
}

/// The absolute path of a file of the workspace, without links, for a program that opens it by itself. Errors: as above.
pub fn real_workspace_file(workspace: &Path, path: &str) -> Result<PathBuf> {
    let doing = || format!("cannot use {path:?}");
    let parts = path_in_workspace(workspace, path)?;
    let whole: PathBuf = std::iter::once(workspace).chain(parts.iter().map(PathBuf::as_path)).collect();
    let real = whole.canonicalize().doing(doing)?;
    let workspace = workspace.canonicalize().doing(doing)?;
    if !real.starts_with(&workspace) {
        return Err(outside_error(path));
    }
    match real.is_file() {
        true => Ok(real),
        false => Err(Error::new(ErrorKind::Usage, doing()).because("it is not a regular file")),
    }
}

/// The components of a path below the workspace, without `..`.
fn path_in_workspace(workspace: &Path, path: &str) -> Result<Vec<PathBuf>> {
    let given = Path::new(path);
    let relative =
        if given.is_absolute() { given.strip_prefix(workspace).map_err(|_| outside_error(path))? } else { given };
    let mut parts = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => parts.push(PathBuf::from(name)),
            Component::CurDir => {}
            _ => return Err(outside_error(path)),
        }
    }
    if parts.is_empty() { Err(outside_error(path)) } else { Ok(parts) }
}

fn outside_error(path: &str) -> Error {
    Error::usage(format!("{path:?} is not a file of the workspace")).hint("name a file by its path in the workspace")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_of_the_workspace_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("secret");
        let workspace = folder.path().join("ws");
        std::fs::create_dir_all(workspace.join("sub")).unwrap();
        std::fs::write(&outside, "secret").unwrap();
        std::fs::write(workspace.join("sub/a.json"), "{}").unwrap();
        symlink(&outside, workspace.join("link")).unwrap();
        symlink(folder.path(), workspace.join("up")).unwrap();
        let inside = workspace.join("sub/a.json");
        for path in ["sub/a.json", "./sub/a.json", inside.to_str().unwrap()] {
            assert_eq!(read_workspace_file(&workspace, path, 100).unwrap(), b"{}", "{path}");
            assert_eq!(real_workspace_file(&workspace, path).unwrap(), inside.canonicalize().unwrap());
        }
        for path in ["link", "up/secret", "../secret", "sub/../../secret", outside.to_str().unwrap(), "sub", "", "none"]
        {
            assert!(read_workspace_file(&workspace, path, 100).is_err(), "{path}");
            assert!(real_workspace_file(&workspace, path).is_err(), "{path}");
        }
        assert!(
            read_workspace_file(&workspace, "sub/a.json", 1).unwrap_err().to_string().contains("more than 1 bytes")
        );
    }

    #[test]
    fn files_are_written_below_the_folder_and_the_oldest_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = write_output_file(folder.path(), "a.har", b"1").unwrap();
        assert_eq!(
            (path.as_str(), std::fs::read(folder.path().join(&path)).unwrap()),
            (".devtools/files/a.har", b"1".to_vec())
        );
        for name in ["", ".x", "a/b", "..", "a b", "ü", &"x".repeat(101)] {
            assert!(write_output_file(folder.path(), name, b"").is_err(), "{name}");
        }
        for number in 0..MAX_FILES + 5 {
            write_output_file(folder.path(), &format!("n{number}"), b"").unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path().join(".devtools/files")).unwrap().count(), MAX_FILES);
        // A link in the place of the folder is not followed.
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::remove_dir_all(folder.path().join(".devtools/files")).unwrap();
        symlink(elsewhere.path(), folder.path().join(".devtools/files")).unwrap();
        assert!(write_output_file(folder.path(), "a.har", b"1").is_err());
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
