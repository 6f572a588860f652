//! The children of a program that run without a debugger: each reports itself over a pipe in the session's private folder, by a
//! script that its runtime loads.
//!
//! Does not depend on any adapter.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tether_base::clipped_text::clip_bytes;
use tether_base::error::{ErrorContext, Result};
use tokio::net::unix::pipe;

/// The pipe's name in `{scratch}`. A report is `PID NUL ARGUMENT NUL … LF`, written at once, of at most 4,096 bytes: such
/// reports are not mixed.
const PIPE: &str = "children";
/// A report that is longer than what the system writes at once is none, in bytes.
const MAX_REPORT_BYTES: usize = 4096;
/// The longest command that is shown, in bytes.
const MAX_COMMAND_BYTES: usize = 200;

/// A script that reports the process that loads it.
#[derive(Clone, Copy, Debug)]
pub struct ChildReporter {
    /// Its text.
    pub script: &'static str,
    /// Where its runtime looks for it, in `{scratch}`.
    pub path: &'static str,
    /// Why these processes are not debugged, for readers.
    pub reason: &'static str,
}

impl ChildReporter {
    /// Writes the script into the private folder of a session, and opens the pipe. Must be called in a runtime.
    pub(super) fn install(self, folder: &Path) -> Result<UndebuggedChildren> {
        let (script, path) = (folder.join(self.path), folder.join(PIPE));
        let doing = |path: &Path| format!("cannot write {}", path.display());
        std::fs::create_dir_all(script.parent().unwrap_or(folder)).doing(|| doing(&script))?;
        std::fs::write(&script, self.script).doing(|| doing(&script))?;
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(io::Error::from)
            .doing(|| doing(&path))?;
        // With a writer of our own it does not end with the first child.
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&path).doing(|| doing(&path))?;
        Ok(UndebuggedChildren { pipe, received: Vec::new(), reason: self.reason })
    }
}

/// A child that runs without a debugger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndebuggedChild {
    /// Its process.
    pub pid: u32,
    /// Its command for readers, cut where it is long.
    pub command: String,
}

/// Receives the reports of children.
pub struct UndebuggedChildren {
    pipe: pipe::Receiver,
    /// What has been read of further reports.
    received: Vec<u8>,
    /// Why they are not debugged, for readers.
    pub reason: &'static str,
}

impl UndebuggedChildren {
    /// The next child. Cancel-safe. Errors: the pipe cannot be read.
    pub async fn next(&mut self) -> io::Result<UndebuggedChild> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let report: Vec<u8> = self.received.drain(..=end).collect();
                match parse_report(&report) {
                    Some(child) => return Ok(child),
                    None => continue,
                }
            }
            if self.received.len() > MAX_REPORT_BYTES {
                self.received.clear();
            }
            self.pipe.readable().await?;
            match self.pipe.try_read_buf(&mut self.received) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn parse_report(report: &[u8]) -> Option<UndebuggedChild> {
    let text = String::from_utf8_lossy(report);
    let (pid, command) = text.trim_end_matches(['\n', '\0']).split_once('\0')?;
    let command = clip_bytes(&command.replace('\0', " "), MAX_COMMAND_BYTES);
    Some(UndebuggedChild { pid: pid.parse().ok()?, command })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_report_is_a_process_and_its_command() {
        let check = |report: &[u8], expect: Option<(u32, &str)>| {
            let child = parse_report(report).map(|it| (it.pid, it.command));
            assert_eq!(child, expect.map(|(pid, command)| (pid, command.to_owned())), "{report:?}");
        };
        check(b"12\0ruby\0a b.rb\0\n", Some((12, "ruby a b.rb")));
        check(b"12\0ruby\0\n", Some((12, "ruby")));
        check(b"-1\0ruby\0\n", None);
        check(b"12\n", None);
        check(b"\n", None);
        check(b"12\0\xff\0\n", Some((12, "\u{fffd}")));
        let long = "é".repeat(MAX_COMMAND_BYTES);
        let cut = format!("{}…", "é".repeat(MAX_COMMAND_BYTES / 2));
        check(format!("12\0{long}\0\n").as_bytes(), Some((12, &cut)));
    }

    #[tokio::test]
    async fn each_writer_is_received_and_what_is_no_report_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let reporter = ChildReporter { script: "text", path: "deep/er/script", reason: "why" };
        let mut children = reporter.install(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("deep/er/script")).unwrap(), "text");
        let write = |bytes: &[u8]| {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(folder.path().join(PIPE)).unwrap();
            pipe.write_all(bytes).unwrap();
        };
        write(b"1\0ruby\0a\0\n2\0ruby\0\n");
        assert_eq!(children.next().await.unwrap().pid, 1);
        assert_eq!(children.next().await.unwrap().pid, 2);
        write(&[b'x'; 3 * MAX_REPORT_BYTES]);
        write(b"\n3\0ruby\0\n");
        assert_eq!(children.next().await.unwrap(), UndebuggedChild { pid: 3, command: "ruby".to_owned() });
    }
}
