//! A trace of sent messages: with `DEVTETHER_DAP_RECORD=FOLDER` in its environment, a process writes every message that
//! it sends over DAP into that folder: one file per connection (`PID-NUMBER.jsonl`), one message per line.
//!
//! For the debugging of adapters, and for `cargo xtask test`, which validates all messages against the official schema.
//! Without the variable it costs nothing. The messages contain arguments and environments of programs, so the files
//! have mode 0600. Does not depend on the meaning of a message.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::warn;

/// Names the folder.
const FOLDER_VARIABLE: &str = "DEVTETHER_DAP_RECORD";

/// The trace file of one connection; `None` without the variable.
pub(super) struct MessageTrace(Option<File>);

impl MessageTrace {
    /// Opens the file if the variable is set. A failure is only logged.
    pub fn from_environment() -> MessageTrace {
        let folder = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        MessageTrace(folder.and_then(|folder| log_failure(Path::new(&folder), open_trace_file(Path::new(&folder)))))
    }

    /// Writes a message as it is sent. After a failure nothing more is written.
    pub fn write_message(&mut self, message: &[u8]) {
        let Some(mut file) = self.0.as_ref() else { return };
        // In one write, so that a killed process leaves no partial line.
        let line = [message, b"\n"].concat();
        if let Err(cause) = file.write_all(&line) {
            warn!("the DAP trace ends here, a message cannot be written: {cause}");
            self.0 = None;
        }
    }
}

fn open_trace_file(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.jsonl", std::process::id());
    // Appended to: an earlier process may have had the same id.
    OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(name))
}

fn log_failure(folder: &Path, opened: io::Result<File>) -> Option<File> {
    opened.inspect_err(|cause| warn!("{FOLDER_VARIABLE}: cannot write into {}: {cause}", folder.display())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_a_private_file_with_one_message_per_line() {
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
    fn an_unwritable_folder_only_disables_the_trace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut trace = MessageTrace(log_failure(file.path(), open_trace_file(file.path())));
        trace.write_message(b"{}");
        assert!(trace.0.is_none());
        // A full disk.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut trace = MessageTrace(Some(full));
        trace.write_message(b"{}");
        assert!(trace.0.is_none());
    }
}
