//! How a program has exited, by the report of the adapter that has started it: the adapter is its parent, and the only one
//! that the kernel tells.
//!
//! For an adapter that does not pass it on: a script that it loads writes it into a file of the session's folder. Does not
//! depend on any adapter.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tether_base::bounded_file;
use tether_base::error::{ErrorContext, Result};
use tether_process::ProcessExit;
use tokio::time::timeout;

/// The script's name in `{scratch}`.
pub(super) const SCRIPT: &str = "report_exit.js";
/// The file in `{scratch}` to which it appends a line for each exit: `{"code":3,"signal":null}`.
const REPORT: &str = "exits.jsonl";
/// A larger report is none, in bytes: a program that is restarted without end has filled it.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// A script that an adapter loads, and that reports how the program exits.
#[derive(Clone, Copy, Debug)]
pub struct ExitReporter {
    /// Its text; it is written to `{scratch}/report_exit.js`, and writes into `{scratch}/exits.jsonl`.
    pub script: &'static str,
}

impl ExitReporter {
    /// Writes the script into the private folder of a session.
    pub(super) fn install(self, folder: &Path) -> Result<()> {
        let script = folder.join(SCRIPT);
        std::fs::write(&script, self.script).doing(|| format!("cannot write {}", script.display()))
    }
}

/// One line of the report.
#[derive(Deserialize)]
struct ReportedExit {
    code: Option<i32>,
    signal: Option<i32>,
}

/// How the program has exited last, once that is reported; `None`: it is not reported in time.
pub(super) async fn read_reported_exit(folder: &Path, limit: Duration) -> Option<ProcessExit> {
    let report = folder.join(REPORT);
    // Nearly always it is there already: the adapter writes it before it reports the end.
    if let Some(exit) = read_last_exit(&report) {
        return Some(exit);
    }
    timeout(limit, tether_process::watch_until(folder, || Ok(read_last_exit(&report)))).await.ok()?.ok()
}

fn read_last_exit(report: &Path) -> Option<ProcessExit> {
    let text = bounded_file::read_start(report, MAX_REPORT_BYTES).ok()?;
    parse_last_exit(&text)
}

fn parse_last_exit(report: &[u8]) -> Option<ProcessExit> {
    let last = report.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    match serde_json::from_slice(last).ok()? {
        ReportedExit { signal: Some(signal), .. } => Some(ProcessExit::Signal(signal)),
        ReportedExit { code: Some(code), .. } => Some(ProcessExit::Code(code)),
        ReportedExit { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_is_the_exit() {
        let check = |report: &str, expect| assert_eq!(parse_last_exit(report.as_bytes()), expect, "{report:?}");
        check("", None);
        check("{\"code\":3", None);
        check("{\"code\":3,\"signal\":null}\n", Some(ProcessExit::Code(3)));
        check("{\"code\":3,\"signal\":null}\n{\"code\":null,\"signal\":9}\n", Some(ProcessExit::Signal(9)));
        check("{\"code\":null,\"signal\":null}\n", None);
        check("no report\n", None);
    }

    #[tokio::test]
    async fn a_report_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let waiting = read_reported_exit(&path, Duration::from_secs(30));
        let writing = async { std::fs::write(folder.path().join(REPORT), "{\"code\":7,\"signal\":null}\n").unwrap() };
        let (exit, ()) = tokio::join!(waiting, writing);
        assert_eq!(exit, Some(ProcessExit::Code(7)));
    }
}
