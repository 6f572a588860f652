//! Reads the text files of a workspace within bounds, and names the origin of values.
//!
//! A file of a workspace may be a FIFO, a link, a gigabyte, or not UTF-8. Does not depend on what is in the files.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// A larger configuration file is a mistake, or hostile.
const MAX_BYTES: u64 = 1 << 20;

/// The file and line of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Relative to the workspace when it is in it.
    pub file: PathBuf,
    /// 1-based; `None` for the file as a whole.
    pub line: Option<usize>,
}

impl Origin {
    /// A line of a file, whose path is made relative when it is in the workspace.
    pub fn new(workspace: &Path, file: &Path, line: Option<usize>) -> Origin {
        Origin { file: file.strip_prefix(workspace).unwrap_or(file).to_owned(), line }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The text of a file without its byte order mark; `None` when there is no such file. Errors: not a regular file of at
/// most 1 MiB, not UTF-8, not readable.
pub fn read_text(path: &Path) -> Result<Option<String>> {
    let unreadable = |cause: io::Error| Error::usage(format!("cannot read {}", path.display())).because(cause);
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(unreadable(cause)),
    };
    // A FIFO would block forever; a huge file would fill the memory.
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Err(unreadable(io::Error::other("it is not a regular file of at most 1 MiB")));
    }
    let mut text = std::fs::read_to_string(path).map_err(unreadable)?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(Some(text))
}

/// The path without `.` and `..`, by its text: links are not resolved.
pub fn normalize_path(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
        normal
    })
}
