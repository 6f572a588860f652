//! What the processes of a program report over a pipe in the session's private folder, by a script that their runtime loads: a
//! child that it runs without a debugger, or what its debugger does not debug.
//!
//! Does not depend on any adapter.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tether_base::clipped_text::clip_bytes;
use tether_base::error::{ErrorContext, Result};
use tokio::net::unix::pipe;

/// The pipe's name in `{scratch}`. A report is `PID NUL ARGUMENT NUL … LF` of a process that is not debugged, `!PID NUL TEXT LF` of
/// one that is, written at once, of at most 4,096 bytes: such reports are not mixed.
const PIPE: &str = "children";
/// A report that is longer than what the system writes at once is none, in bytes.
const MAX_REPORT_BYTES: usize = 4096;
/// The longest command that is shown, in bytes.
const MAX_COMMAND_BYTES: usize = 200;
/// The longest text of a process that is debugged, in bytes.
const MAX_TEXT_BYTES: usize = 1000;

/// A script that reports something of the process that loads it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessReporter {
    /// Its text.
    pub script: &'static str,
    /// Where its runtime looks for it, in `{scratch}`.
    pub path: &'static str,
    /// Other files in `{scratch}`, for the program: their paths and their texts.
    pub others: &'static [(&'static str, &'static str)],
    /// Why the processes that are not debugged are not, for readers.
    pub reason: &'static str,
}

impl ProcessReporter {
    /// Writes the script into the private folder of a session, and opens the pipe. Must be called in a runtime.
    pub(super) fn install(self, folder: &Path) -> Result<ProcessReports> {
        let path = folder.join(PIPE);
        let doing = |path: &Path| format!("cannot write {}", path.display());
        for (file, text) in std::iter::once(&(self.path, self.script)).chain(self.others) {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap_or(folder)).doing(|| doing(&file))?;
            std::fs::write(&file, text).doing(|| doing(&file))?;
        }
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(io::Error::from)
            .doing(|| doing(&path))?;
        // With a writer of our own it does not end with the first child.
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&path).doing(|| doing(&path))?;
        Ok(ProcessReports { pipe, received: Vec::new(), reason: self.reason })
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

/// What a process reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessReport {
    Undebugged(UndebuggedChild),
    /// Code of a debugged process in which nothing stops: why, for readers.
    Blind {
        pid: u32,
        reason: String,
    },
}

/// Receives the reports.
pub struct ProcessReports {
    pipe: pipe::Receiver,
    /// What has been read of further reports.
    received: Vec<u8>,
    /// Why they are not debugged, for readers.
    pub reason: &'static str,
}

impl ProcessReports {
    /// The next report. Cancel-safe. Errors: the pipe cannot be read.
    pub async fn next(&mut self) -> io::Result<ProcessReport> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let report: Vec<u8> = self.received.drain(..=end).collect();
                match parse_report(&report) {
                    Some(report) => return Ok(report),
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

fn parse_report(report: &[u8]) -> Option<ProcessReport> {
    let text = String::from_utf8_lossy(report);
    let (pid, rest) = text.trim_end_matches(['\n', '\0']).split_once('\0')?;
    if let Some(pid) = pid.strip_prefix('!') {
        return Some(ProcessReport::Blind { pid: pid.parse().ok()?, reason: clip_bytes(rest, MAX_TEXT_BYTES) });
    }
    let command = clip_bytes(&rest.replace('\0', " "), MAX_COMMAND_BYTES);
    Some(ProcessReport::Undebugged(UndebuggedChild { pid: pid.parse().ok()?, command }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn undebugged(pid: u32, command: &str) -> ProcessReport {
        ProcessReport::Undebugged(UndebuggedChild { pid, command: command.to_owned() })
    }

    #[test]
    fn a_report_is_a_process_and_its_command() {
        let check = |report: &[u8], expect: Option<(u32, &str)>| {
            let expect = expect.map(|(pid, command)| undebugged(pid, command));
            assert_eq!(parse_report(report), expect, "{report:?}");
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
        let blind = ProcessReport::Blind { pid: 12, reason: "a reason".to_owned() };
        assert_eq!(parse_report(b"!12\0a reason\n"), Some(blind));
    }

    #[tokio::test]
    async fn each_writer_is_received_and_what_is_no_report_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let reporter = ProcessReporter { script: "text", path: "deep/er/script", others: &[], reason: "why" };
        let mut children = reporter.install(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("deep/er/script")).unwrap(), "text");
        let write = |bytes: &[u8]| {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(folder.path().join(PIPE)).unwrap();
            pipe.write_all(bytes).unwrap();
        };
        write(b"1\0ruby\0a\0\n2\0ruby\0\n");
        assert_eq!(children.next().await.unwrap(), undebugged(1, "ruby a"));
        assert_eq!(children.next().await.unwrap(), undebugged(2, "ruby"));
        write(&[b'x'; 3 * MAX_REPORT_BYTES]);
        write(b"\n3\0ruby\0\n");
        assert_eq!(children.next().await.unwrap(), undebugged(3, "ruby"));
    }
}
