//! A trace of messages: with `DEVTETHER_DAP_RECORD=FOLDER` in its environment, a process writes every message that it sends
//! or receives over DAP into that folder: one file per connection (`PID-NUMBER.jsonl`), in their order, one per line as
//! `{"at": EPOCH_MS, "sent": MESSAGE}` or `{"at": …, "received": …}`. A received frame that is no JSON is a string.
//!
//! For the debugging of adapters, and for `cargo xtask test`, which validates all messages against the official schema.
//! Without the variable it costs nothing. The messages contain arguments and environments of programs, so the files
//! have mode 0600. Does not depend on the meaning of a message.

use std::borrow::Cow;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use serde_json::value::RawValue;
use tether_base::clock::now_ms;
use tracing::warn;

/// Names the folder.
const FOLDER_VARIABLE: &str = "DEVTETHER_DAP_RECORD";

/// Who has sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageDirection {
    Sent,
    Received,
}

/// The trace file of one connection; `None` without the variable.
#[derive(Clone)]
pub(super) struct MessageTrace(Option<Arc<File>>);

impl MessageTrace {
    /// Opens the file if the variable is set. A failure is only logged.
    pub(crate) fn from_environment() -> MessageTrace {
        let folder = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
        let file = folder.and_then(|folder| log_failure(Path::new(&folder), open_trace_file(Path::new(&folder))));
        MessageTrace(file.map(Arc::new))
    }

    /// Writes a message. After a failure nothing more is written in this direction.
    pub(crate) fn write_message(&mut self, direction: MessageDirection, message: &[u8]) {
        let Some(mut file) = self.0.as_deref() else { return };
        let name = match direction {
            MessageDirection::Sent => "sent",
            MessageDirection::Received => "received",
        };
        // In one write, so that a killed process leaves no partial line.
        let line = format!("{{\"at\":{},\"{name}\":{}}}\n", now_ms(), json_line(message));
        if let Err(cause) = file.write_all(line.as_bytes()) {
            warn!("the DAP trace ends here, a message cannot be written: {cause}");
            self.0 = None;
        }
    }
}

/// The message as JSON without line breaks.
fn json_line(message: &[u8]) -> Cow<'_, str> {
    match serde_json::from_slice::<&RawValue>(message) {
        Ok(raw) if !raw.get().contains('\n') => raw.get().into(),
        Ok(raw) => serde_json::from_str(raw.get()).unwrap_or(Value::Null).to_string().into(),
        Err(_) => Value::String(String::from_utf8_lossy(message).into_owned()).to_string().into(),
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
    use serde_json::json;

    #[test]
    fn each_connection_has_a_private_file_with_one_message_per_line() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a träce/of it");
        for text in ["one", "two"] {
            let mut trace = MessageTrace(log_failure(&folder, open_trace_file(&folder)).map(Arc::new));
            trace.write_message(MessageDirection::Received, text.as_bytes());
            trace.clone().write_message(MessageDirection::Sent, b"{\n}");
        }
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort_unstable();
        let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let lines = |text: &String| -> Vec<Value> {
            let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(
                lines.iter_mut().all(|line| line.as_object_mut().unwrap().remove("at").is_some_and(|at| at.is_u64()))
            );
            lines
        };
        let mut all: Vec<Vec<Value>> = texts.iter().map(lines).collect();
        all.sort_by_key(|lines| lines[0].to_string());
        assert_eq!(all, ["one", "two"].map(|text| vec![json!({"received": text}), json!({"sent": {}})]));
        assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o600));
    }

    #[test]
    fn an_unwritable_folder_only_disables_the_trace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut trace = MessageTrace(log_failure(file.path(), open_trace_file(file.path())).map(Arc::new));
        trace.write_message(MessageDirection::Sent, b"{}");
        assert!(trace.0.is_none());
        // A full disk.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut trace = MessageTrace(Some(Arc::new(full)));
        trace.write_message(MessageDirection::Sent, b"{}");
        assert!(trace.0.is_none());
    }
}
