//! The supervisor's log file: 1 MiB, and two older ones.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use file_rotate::{ContentLimit, FileRotate, compression::Compression, suffix::AppendCount};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

const MAX_BYTES: usize = 1024 * 1024;
const OLD_FILES: usize = 2;

struct LogFile(Mutex<FileRotate<AppendCount>>);

/// Writes the log to `file`. `DEVTETHER_LOG` (`error`, `warn`, `info`, `debug`, `trace`) sets the level;
/// default `info`.
pub fn start_logging(file: &Path) {
    let mut options = OpenOptions::new();
    options.read(true).create(true).append(true).mode(0o600);
    let rotate = FileRotate::new(
        file,
        AppendCount::new(OLD_FILES),
        ContentLimit::BytesSurpassed(MAX_BYTES),
        Compression::None,
        Some(options),
    );
    let level = std::env::var("DEVTETHER_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(Level::INFO);
    let journal = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .with_writer(LogFile(Mutex::new(rotate)))
        .finish();
    // Fails only when a log is open already, which is used then.
    let _ = tracing::subscriber::set_global_default(journal);
}

/// One line, written whole. A full disk loses the line, not the supervisor.
struct LogLine<'a>(&'a LogFile);

impl Write for LogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine(self)
    }
}
