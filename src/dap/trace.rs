//! A trace of what we say: with `DEVTETHER_DAP_RECORD=FOLDER` in its environment, a process writes every message that
//! it sends over DAP into that folder, a file for each connection (`PID-NUMBER.jsonl`), a message on each line.
//!
//! For whoever looks into a conversation with an adapter, and for `cargo xtask test`, which holds all of it against the
//! official schema. Without the variable it costs nothing. Arguments and environments of programs are in it: the files
//! are for their owner only. Must not know what is said.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::warn;

const FOLDER: &str = "DEVTETHER_DAP_RECORD";

/// Where one connection's messages go; nowhere unless that is wished.
pub(super) struct MessageTrace(Option<File>);

impl MessageTrace {
    /// As the environment wishes. A folder that cannot be written to is told in the log, and ends nothing.
    pub fn from_environment() -> MessageTrace {
        let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        MessageTrace(folder.and_then(|folder| log_failure(Path::new(&folder), open_trace_file(Path::new(&folder)))))
    }

    /// Writes a message down, as it goes over the wire. After a failure nothing more is written.
    pub fn write_message(&mut self, message: &[u8]) {
        let Some(mut file) = self.0.as_ref() else { return };
        // In one piece, so that a process that is killed leaves no half of a line.
        let line = [message, b"\n"].concat();
        if let Err(cause) = file.write_all(&line) {
            warn!("what is said over DAP is written down no more: {cause}");
            self.0 = None;
        }
    }
}

fn open_trace_file(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.jsonl", std::process::id());
    // Another process may have had our number before us.
    OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(name))
}

fn log_failure(folder: &Path, opened: io::Result<File>) -> Option<File> {
    opened.inspect_err(|cause| warn!("{FOLDER}: cannot write into {}: {cause}", folder.display())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_a_file_of_its_owners_with_a_message_on_each_line() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a träce/of it");
        for text in ["one", "two"] {
            let mut trace = MessageTrace(log_failure(&folder, open_trace_file(&folder)));
            trace.write_message(text.as_bytes());
            trace.write_message(b"{}");
        }
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort_by_key(|file| std::fs::read_to_string(file).unwrap());
        let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(texts, ["one\n{}\n", "two\n{}\n"]);
        assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_ends_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut trace = MessageTrace(log_failure(file.path(), open_trace_file(file.path())));
        trace.write_message(b"{}");
        assert!(trace.0.is_none());
        // Nor does a disk that is full.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut trace = MessageTrace(Some(full));
        trace.write_message(b"{}");
        assert!(trace.0.is_none());
    }
}
