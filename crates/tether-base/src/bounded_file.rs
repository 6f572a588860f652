//! The one reader of files that others may have written, such as those of a workspace.
//!
//! A path may lead to a FIFO, a device, a terabyte, or a link to one: the read never blocks, opens nothing but regular
//! files, and keeps no more than the caller's bound. Does not depend on any other module.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a symbolic link is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The file that the link leads to is read.
    Follow,
    /// A link at the end of the path is an error; in its folders it is followed.
    Refuse,
}

/// The bytes of a regular file of at most `most` bytes. Errors, each a clause about the file: it is no regular file, it
/// is larger, it cannot be read; of kind `NotFound` when there is none.
pub fn read_file(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    let (file, metadata) = open_regular(path, links)?;
    let too_large = |size: u64| io::Error::other(format!("it has {size} bytes, more than the {most} that are read"));
    if metadata.len() > most {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes)? as u64;
    if read > most { Err(too_large(read)) } else { Ok(bytes) }
}

/// As [`read_file`], as text. Errors: it is not UTF-8, too.
pub fn read_text(path: &Path, most: u64, links: Links) -> io::Result<String> {
    String::from_utf8(read_file(path, most, links)?).map_err(|_| io::Error::other("it is not valid UTF-8"))
}

/// The first bytes of a regular file of any size, at most `most`; links are followed. Errors: as [`read_file`].
pub fn read_start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path, Links::Follow)?.0.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_regular(path: &Path, links: Links) -> io::Result<(File, Metadata)> {
    // Looked at first: opening a device has effects of its own.
    let metadata = match links {
        Links::Follow => std::fs::metadata(path)?,
        Links::Refuse => std::fs::symlink_metadata(path)?,
    };
    check_kind(metadata.file_type())?;
    let refuse = if links == Links::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() };
    // It may have been replaced meanwhile: opening a FIFO must not wait for its writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | refuse;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    check_kind(metadata.file_type())?;
    Ok((file, metadata))
}

fn check_kind(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => "a symbolic link, which is not followed",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::other(format!("it is {what}, not a regular file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::fs::write(at("small"), "text").unwrap();
        File::create(at("huge")).unwrap().set_len(500 << 20).unwrap();
        for (to, link) in [("fifo", "to fifo"), ("/dev/zero", "to zero"), ("small", "to small")] {
            std::os::unix::fs::symlink(to, at(link)).unwrap();
        }
        let check = |name: &str, links: Links, expect: &str| {
            let error = read_file(&at(name), 4, links).unwrap_err();
            assert!(error.to_string().contains(expect), "{name}: {error}");
        };
        check("fifo", Links::Follow, "it is a FIFO, not a regular file");
        check("to fifo", Links::Follow, "it is a FIFO");
        check("to zero", Links::Follow, "it is a device");
        check("to small", Links::Refuse, "it is a symbolic link, which is not followed");
        check(".", Links::Follow, "it is a folder");
        check("huge", Links::Follow, "it has 524288000 bytes, more than the 4 that are read");
        assert_eq!(read_file(&at("none"), 4, Links::Follow).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_text(&at("to small"), 4, Links::Follow).unwrap(), "text");
        assert_eq!(read_start(&at("huge"), 3).unwrap(), [0, 0, 0]);
        assert!(read_start(&at("to fifo"), 3).is_err());
    }
}
