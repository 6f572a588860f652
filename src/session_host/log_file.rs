//! The log file that a supervisor and the hosts of its sessions share: 1 MiB, and two older ones.
//!
//! Each process appends whole events. Which of them renames a full file is decided by a lock of it; the others notice that the file
//! they have open is no longer the one at the path.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use tracing::Level;

/// Its name in the supervisor's state folder.
pub const NAME: &str = "supervisor.log";
const MAX_BYTES: u64 = 1024 * 1024;
const OLD_FILES: usize = 2;

/// Writes the log to `file`. `DEVTETHER_LOG` (`error`, `warn`, `info`, `debug`, `trace`) sets the level;
/// default `info`.
pub fn start_logging(file: &Path) {
    let level = std::env::var("DEVTETHER_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(Level::INFO);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        // A full disk loses the line, not the supervisor.
        .log_internal_errors(false)
        .with_writer(Mutex::new(EventLines(SharedLog::at(file))))
        .finish();
    // Fails only when a log is open already, which is used then.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Logs a panic into `log` and exits: a process that lost one task is worse than none, and the next one takes its place. The panic is
/// written into `note`, too, for who asks why the process has ended. Not by way of the logger, which this thread may be in.
pub fn exit_on_panic(log: PathBuf, note: Option<PathBuf>) {
    std::panic::set_hook(Box::new(move |panic| {
        let at = humantime::format_rfc3339_micros(SystemTime::now());
        let text = format!("{at} ERROR panic: {panic}\n{}\n", std::backtrace::Backtrace::force_capture());
        let _ = EventLines(SharedLog::at(&log)).write(text.as_bytes());
        if let Some(note) = &note {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(note);
            let _ = file.map(|mut file| file.write_all(panic.to_string().as_bytes()));
        }
        std::process::exit(101);
    }));
}

/// A file that several processes append to.
struct SharedLog {
    path: PathBuf,
    /// None where it could not be opened: that is tried again with the next event.
    file: Option<File>,
}

impl SharedLog {
    fn at(path: &Path) -> SharedLog {
        SharedLog { path: path.to_owned(), file: None }
    }

    /// The file at the path, which is not full.
    fn current(&mut self) -> io::Result<&mut File> {
        let is_same = |ours: &Metadata, theirs: &Metadata| (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
        if let Some(file) = &self.file {
            let ours = file.metadata()?;
            let is_current = |ours| self.path.symlink_metadata().is_ok_and(|theirs| is_same(ours, &theirs));
            if !is_current(&ours) {
                self.file = None;
            } else if ours.len() >= MAX_BYTES && file.try_lock().is_ok() {
                // Another process may have renamed it before it was locked.
                if is_current(&ours) {
                    self.rename_full();
                }
                self.file = None;
            }
        }
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let opened = OpenOptions::new().read(true).create(true).append(true).mode(0o600).open(&self.path)?;
                Ok(none.insert(opened))
            }
        }
    }

    fn rename_full(&self) {
        let old = |number: usize| {
            let mut path = self.path.clone().into_os_string();
            path.push(format!(".{number}"));
            PathBuf::from(path)
        };
        for number in (1..OLD_FILES).rev() {
            // Missing at first.
            let _ = std::fs::rename(old(number), old(number.saturating_add(1)));
        }
        // On a read-only disk it stays, and grows no more either.
        let _ = std::fs::rename(&self.path, old(1));
    }
}

impl Write for SharedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.current()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    fn several_processes_share_a_log_and_each_event_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let event = |process: usize| format!("{process} {}\n", "x".repeat(1000));
        std::thread::scope(|scope| {
            for process in 0..4 {
                let (path, event) = (&path, &event);
                scope.spawn(move || {
                    let mut log = EventLines(SharedLog::at(path));
                    for _ in 0..2000 {
                        log.write_all(event(process).as_bytes()).unwrap();
                    }
                });
            }
        });
        let mut names: Vec<String> =
            std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [NAME, "supervisor.log.1", "supervisor.log.2"]);
        for name in &names {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(text.lines().all(|line| line.len() == 1002), "{name}");
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
