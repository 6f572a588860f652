//! Reads source files within bounds: a path in a workspace may lead to a device or a pipe.

use std::io;
use std::path::{Path, PathBuf};

use tether_base::bounded_file::{self, Links};

/// A longer file is not a source file.
const MAX_BYTES: u64 = 32 << 20;

/// The path of a file without links in it; of a file that is not there, and of code without a file, the path itself. Blocks
/// shortly.
pub fn canonical_path(path: &Path) -> PathBuf {
    let canonical = if path.is_absolute() { path.canonicalize().ok() } else { None };
    canonical.unwrap_or_else(|| path.to_owned())
}

/// The text of a file; bytes that are not UTF-8 are replaced. Blocks. Errors: not a regular file, or too long.
pub fn read_source(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bounded_file::read_file(path, MAX_BYTES, Links::Follow)?).into_owned())
}

/// As [`read_source`], on a blocking thread.
pub async fn load_source(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_source(&path)).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}

/// As [`load_source`], for a path that must lead into `folder`, over links too. `None`: it leads elsewhere.
pub async fn load_source_within(folder: &Path, path: &Path) -> io::Result<Option<String>> {
    let (folder, path) = (folder.to_owned(), path.to_owned());
    let load = move || {
        let path = path.canonicalize()?;
        if path.starts_with(folder.canonicalize()?) { read_source(&path).map(Some) } else { Ok(None) }
    };
    tokio::task::spawn_blocking(load).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            let error = read_source(path).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{}: {error}", path.display());
        }
        let file = folder.path().join("ä.py");
        std::fs::write(&file, b"a\xffb\n").unwrap();
        assert_eq!(read_source(&file).unwrap(), "a\u{fffd}b\n");
    }
}
