//! Reads source files within bounds: a path in a workspace may lead to a device or a pipe.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// A longer file is not a source file.
const MAX_BYTES: u64 = 32 << 20;

/// The text of a file; bytes that are not UTF-8 are replaced. Blocks. Errors: not a regular file, or too long.
pub fn read_source(path: &Path) -> io::Result<String> {
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if about.len() > MAX_BYTES {
        return Err(io::Error::other("it has more than 32 MiB"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As [`read_source`], on a blocking thread.
pub async fn load_source(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_source(&path)).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
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
            assert_eq!(read_source(path).unwrap_err().to_string(), "it is no file", "{}", path.display());
        }
        let file = folder.path().join("ä.py");
        std::fs::write(&file, b"a\xffb\n").unwrap();
        assert_eq!(read_source(&file).unwrap(), "a\u{fffd}b\n");
    }
}
