//! The log file that a supervisor and the hosts of its sessions share: 1 MiB, and two older ones.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use file_rotate::{ContentLimit, FileRotate, compression::Compression, suffix::AppendCount};
use tracing::Level;

/// Its name in the supervisor's state folder.
pub const NAME: &str = "supervisor.log";
const MAX_BYTES: usize = 1024 * 1024;
const OLD_FILES: usize = 2;

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
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        // A full disk loses the line, not the supervisor.
        .log_internal_errors(false)
        .with_writer(Mutex::new(EventLines(rotate)))
        .finish();
    // Fails only when a log is open already, which is used then.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Logs a panic and exits: a process that lost one task is worse than none, and the next one takes its place. The panic is written
/// into `note`, too, for who asks why the process has ended.
pub fn exit_on_panic(note: Option<PathBuf>) {
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("panic: {panic}\n{}", std::backtrace::Backtrace::force_capture());
        if let Some(note) = &note {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(note);
            let _ = file.map(|mut file| file.write_all(panic.to_string().as_bytes()));
        }
        std::process::exit(101);
    }));
}

/// Begins each further line of an event: none looks like the first line of another event.
const CONTINUATION: &str = "\n  | ";

/// Writes one event at a time, which may contain the words of a peer: an adapter, a page, a program. Further lines are
/// indented, and control characters are escaped.
struct EventLines<W>(W);

impl<W: Write> Write for EventLines<W> {
    /// `event` is one whole event, with its line end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event.strip_suffix(b"\n").unwrap_or(event));
        let mut escaped = String::with_capacity(text.len() + 1);
        for character in text.chars() {
            match character {
                '\n' => escaped.push_str(CONTINUATION),
                '\t' => escaped.push('\t'),
                control if control.is_control() => escaped.extend(control.escape_default()),
                other => escaped.push(other),
            }
        }
        escaped.push('\n');
        self.0.write_all(escaped.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracing::subscriber::with_default;

    /// A writer whose content can be read while a subscriber owns it.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            tether_base::sync::lock(&self.0).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_newline_in_the_words_of_a_peer_cannot_forge_a_log_line() {
        let written = Shared::default();
        let writer = Mutex::new(EventLines(written.clone()));
        let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(writer).finish();
        with_default(subscriber, || {
            let words = "no\n2026-01-01T00:00:00Z  INFO ending\r\u{1b}[2K\u{85}x";
            tracing::info!(name = words, "failed: {words}");
            tracing::info!("next");
        });
        let text = String::from_utf8(std::mem::take(&mut *tether_base::sync::lock(&written.0))).unwrap();
        let events: Vec<&str> = text.lines().filter(|line| !line.starts_with("  | ")).collect();
        assert_eq!(events.len(), 2, "{text}");
        assert!(text.lines().any(|line| line.starts_with("  | 2026-01-01")), "{text}");
        assert!(!text.chars().any(|it| it.is_control() && it != '\n'), "{text:?}");
    }
}
