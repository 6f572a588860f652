//! Reads the text files of a workspace within bounds, replaces files atomically, and names the origin of values.
//!
//! A file of a workspace may be a FIFO, a link, a gigabyte, or not UTF-8. Does not depend on what is in the files.

use std::fmt;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, Result};
use tether_base::file_owner::stranger_of;

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
    let mut text = match bounded_file::read_text(path, MAX_BYTES, Links::Follow) {
        Ok(text) => text,
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(Error::usage(format!("cannot read {}", path.display())).because(cause)),
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(Some(text))
}

/// As [`read_text`], for a file that chooses what is run. Errors: a stranger has put it into a shared folder, too.
pub fn read_own_text(path: &Path) -> Result<Option<String>> {
    match stranger_of(path) {
        None => read_text(path),
        Some(owner) => Err(Error::usage(format!("cannot use {}", path.display()))
            .because(format!("it belongs to user {owner}, and everybody may write in its folder"))
            .hint(format!("`ls -l \"{}\"` shows it; remove it, or make it yours with `chown`", path.display()))),
    }
}

/// Replaces a file atomically. Its folder must exist.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")))?;
    draft.write_all(content)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    Ok(())
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
