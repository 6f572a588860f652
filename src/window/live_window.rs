//! A window that lives: its facts, its process, the connection to it; and how it came to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Mutex;

use super::identity::{IdentityError, VerifiedWindow};
use super::launch::LaunchedWindow;
use super::page::{ConsoleMessage, ExtensionHostConsole, ExtensionHostInspector, PageConnection, PageHistory};
use super::session_file::WindowSession;
use crate::clock::now_ms;
use crate::error::{Error, ErrorKind, Result};
use crate::process::{self, Process, ProcessExit};

/// How much of its output and its console a window's last words are.
const LAST_LINES: usize = 20;
const LAST_ENTRIES: usize = 10;
const LAST_ERRORS: usize = 5;
const LOOKED_AT: usize = 2000;

/// Nobody closes a window so soon after its launch.
const SOON: Duration = Duration::from_secs(10);

/// The size of its output, in bytes, at which it is cut, and what is kept then.
const MOST_OUTPUT: u64 = 64 << 20;
const KEPT_OUTPUT: u64 = 1 << 20;

/// A living window.
pub struct LiveWindow {
    /// As in `session.json`.
    pub facts: WindowSession,
    pub process: Process,
    /// Found again rather than launched by this supervisor.
    pub reconnected: bool,
    /// Where it prints to.
    output: PathBuf,
    /// The CDP connection, made anew when it has ended or never was: a frozen window may thaw.
    page: Mutex<Option<Arc<PageConnection>>>,
    /// What it says and asks for, over all launches.
    records: Arc<PageHistory>,
    /// Its drop ends the listening.
    _extension_host: Option<ExtensionHostConsole>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl LiveWindow {
    /// A window that was just launched. A page that cannot be reached yet is not fatal: the window is there.
    pub async fn launched(
        launched: LaunchedWindow,
        facts: WindowSession,
        notes: Vec<String>,
        records: Arc<PageHistory>,
    ) -> LiveWindow {
        records.record_launch();
        let page = PageConnection::open_endpoint(launched.endpoint, Arc::clone(&records)).await.ok().map(Arc::new);
        LiveWindow {
            _extension_host: listen_to_extension_host(&facts, &launched.output, &records),
            records,
            facts,
            process: launched.process,
            reconnected: false,
            output: launched.output,
            page: Mutex::new(page),
            notes,
        }
    }

    /// A window that was found again. One that is proven ours but frozen counts, too: it is not replaced silently.
    pub async fn from_session(
        facts: WindowSession,
        proof: Result<VerifiedWindow, IdentityError>,
        output: PathBuf,
        records: Arc<PageHistory>,
    ) -> Result<LiveWindow, IdentityError> {
        let (process, page) = match proof {
            Ok(proof) => (
                proof.process,
                PageConnection::open_endpoint(proof.endpoint, Arc::clone(&records)).await.ok().map(Arc::new),
            ),
            Err(IdentityError::Unresponsive { process, .. }) => (process, None),
            Err(doubt) => return Err(doubt),
        };
        let _extension_host = listen_to_extension_host(&facts, &output, &records);
        let page = Mutex::new(page);
        Ok(LiveWindow { facts, process, reconnected: true, output, page, records, _extension_host, notes: vec![] })
    }

    /// The page, connected to.
    pub async fn page(&self) -> Result<Arc<PageConnection>> {
        let mut slot = self.page.lock().await;
        if let Some(page) = slot.as_ref().filter(|page| page.wait_closed().now_or_never().is_none()) {
            return Ok(Arc::clone(page));
        }
        let page = PageConnection::open_with_history(self.facts.cdp_port, Arc::clone(&self.records))
            .await
            .map_err(|error| self.explain_error(error))?;
        Ok(Arc::clone(slot.insert(Arc::new(page))))
    }

    /// Whether the page answers within `deadline`.
    pub async fn is_responsive(&self, deadline: Duration) -> bool {
        let asked = async {
            match self.page().await {
                Ok(page) => page.ping(deadline).await,
                Err(_) => false,
            }
        };
        tokio::time::timeout(deadline, asked).await.unwrap_or(false)
    }

    /// Asks it to close, as a user would; whether it was heard.
    pub async fn request_close(&self) -> bool {
        match self.page.lock().await.as_ref() {
            Some(page) => page.request_close().await,
            None => false,
        }
    }

    /// Closes the connection; the window lives on.
    pub async fn disconnect(&self) {
        self.page.lock().await.take();
    }

    /// Keeps a window that prints for days from filling the disk.
    pub fn trim_output(&self) {
        // Nothing is lost that anybody is shown; on an error there is only more of it.
        let _ = process::truncate_to_tail(&self.output, MOST_OUTPUT, KEPT_OUTPUT);
    }

    /// What the window said before it ended.
    pub fn exit_report(&self, exit: ProcessExit, doing: Vec<String>) -> WindowExit {
        let started = self.facts.debug_window_started_at;
        let at_ms = now_ms();
        let console = select_last_entries(self.records.last_messages(LOOKED_AT, started));
        WindowExit {
            exit,
            at_ms,
            lived: Duration::from_millis(at_ms.saturating_sub(started)),
            doing,
            console: console.iter().map(|entry| format!("[{}] {}", entry.level, entry.text)).collect(),
            output: process::read_tail(&self.output, LAST_LINES).unwrap_or_default(),
        }
    }

    /// An error of an operation on the page; when the window has died under it, that is what is told.
    pub fn explain_error(&self, error: Error) -> Error {
        if error.kind == ErrorKind::TimedOut || self.process.is_alive() {
            return error;
        }
        Error::new(ErrorKind::NotFound, "the window ended during the operation")
            .because(error)
            .hint("`tether status` tells how it ended; `tether start` starts it again")
    }
}

/// Listens to the extension host, when the window has one: then its inspector is not the window's own port.
fn listen_to_extension_host(
    facts: &WindowSession,
    output: &Path,
    records: &Arc<PageHistory>,
) -> Option<ExtensionHostConsole> {
    let port = facts.inspector_port.filter(|port| *port != facts.cdp_port)?;
    let inspected = ExtensionHostInspector { port, launch_id: facts.launch_id.clone(), output: output.to_owned() };
    Some(ExtensionHostConsole::start(inspected, Arc::clone(records)))
}

/// The newest errors, and what was said last, in their order.
fn select_last_entries(said: Vec<ConsoleMessage>) -> Vec<ConsoleMessage> {
    let is_error = |entry: &ConsoleMessage| matches!(entry.level.as_str(), "error" | "exception");
    let errors: Vec<usize> = (0..said.len()).rev().filter(|at| is_error(&said[*at])).take(LAST_ERRORS).collect();
    let mut left = LAST_ENTRIES - errors.len();
    let mut kept: Vec<ConsoleMessage> = Vec::new();
    for (at, entry) in said.into_iter().enumerate().rev() {
        if errors.contains(&at) {
            kept.push(entry);
        } else if left > 0 {
            left -= 1;
            kept.push(entry);
        }
    }
    kept.reverse();
    kept
}

/// How a window ended by itself.
#[derive(Clone, Debug)]
pub struct WindowExit {
    pub exit: ProcessExit,
    pub at_ms: u64,
    /// Since its launch.
    pub lived: Duration,
    /// What was being done with it.
    pub doing: Vec<String>,
    /// Its last console entries.
    pub console: Vec<String>,
    /// Its last lines of output.
    pub output: String,
}

impl WindowExit {
    pub fn code(&self) -> Option<i32> {
        match self.exit {
            ProcessExit::Code(code) => Some(code),
            ProcessExit::Signal(_) | ProcessExit::Unknown => None,
        }
    }

    pub fn signal(&self) -> Option<i32> {
        match self.exit {
            ProcessExit::Signal(signal) => Some(signal),
            ProcessExit::Code(_) | ProcessExit::Unknown => None,
        }
    }

    /// Whether it ended as no user ends a window. How one that was never our child ended cannot be known: one that has
    /// lived for a while was closed.
    pub fn is_crash(&self) -> bool {
        match self.exit {
            ProcessExit::Code(code) => code != 0,
            ProcessExit::Signal(_) => true,
            ProcessExit::Unknown => self.lived < SOON,
        }
    }

    /// In one paragraph.
    pub fn describe(&self) -> String {
        let mut told = format!("it ended by itself: {}", self.exit);
        for doing in &self.doing {
            told.push_str(&format!("\nwhile {doing}"));
        }
        for line in self.console.iter().map(String::as_str).chain(self.output.lines()) {
            told.push('\n');
            told.push_str(line);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::page::ConsoleSource;

    #[test]
    fn errors_are_among_the_last_words_however_much_was_said_after_them() {
        let entry = |at: u64, level: &str| {
            let (level, text) = (level.to_owned(), at.to_string());
            ConsoleMessage { at, source: ConsoleSource::Page, level, text, place: None }
        };
        let mut said = vec![entry(0, "log"), entry(1, "error"), entry(2, "exception")];
        said.extend((3..50).map(|at| entry(at, "log")));
        let told: Vec<u64> = select_last_entries(said).iter().map(|it| it.at).collect();
        assert_eq!(told, [1, 2, 42, 43, 44, 45, 46, 47, 48, 49]);
        let few = select_last_entries(vec![entry(0, "log"), entry(1, "error")]);
        assert_eq!(few.iter().map(|it| it.at).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_window_that_was_nobodys_child_and_lived_for_a_while_was_closed() {
        let check = |exit: ProcessExit, lived: u64, expect: bool| {
            let lived = Duration::from_secs(lived);
            let ended = WindowExit { exit, at_ms: 0, lived, doing: vec![], console: vec![], output: String::new() };
            assert_eq!(ended.is_crash(), expect, "{exit:?} {lived:?}");
        };
        check(ProcessExit::Code(0), 1, false);
        check(ProcessExit::Code(1), 99, true);
        check(ProcessExit::Signal(11), 99, true);
        check(ProcessExit::Unknown, 99, false);
        check(ProcessExit::Unknown, 1, true);
    }
}
