//! Waiting until a started program is ready, or exits, or a deadline passes.
//!
//! The kernel has no notification for a new listening socket, so [`wait_for_listener`] polls, at growing intervals.

use std::path::Path;
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_cdp::Endpoint;
use tether_process::{Process, ProcessExit};
use tokio::time::timeout;

use super::attempt::{StartedProgram, untrusted_port_error};
use crate::window::identity::verify_tree_port;
use crate::window::token_redaction::redact_connection_tokens;

/// The time between the first refused connection to an exiting program and its exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many searches for processes have to find none, and the time between them.
const SEARCHES: u32 = 20;
const SEARCH_INTERVAL: Duration = Duration::from_millis(50);
/// How many lines of a failed program's output an error contains.
const TAIL_LINES: usize = 20;
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(200);

impl StartedProgram<'_> {
    /// Waits for `ready`. Errors: the process exits first, or the deadline passes. `what` is a part of the message: "the
    /// browser ended before it had `what`".
    pub async fn wait_for<T>(&self, what: &str, ready: impl Future<Output = Result<T>>) -> Result<T> {
        self.wait_until(self.process.wait_for_exit(), what, ready).await
    }

    /// Waits until the program responds on `port`.
    pub async fn wait_for_endpoint(&self, what: &str, port: u16) -> Result<Endpoint> {
        self.wait_for(what, discover_owned_endpoint(&self.process, port)).await
    }

    /// As [`Self::wait_for`], for a launcher that exits with 0 after it has started the real program: waits for the exit
    /// of all processes that `running` returns.
    pub async fn wait_for_launched<T>(
        &self,
        running: impl Fn() -> Vec<Process>,
        what: &str,
        ready: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let ended = async {
            let exit = self.process.wait_for_exit().await;
            if exit.is_success() {
                wait_for_last_exit(running).await;
            }
            exit
        };
        self.wait_until(ended, what, ready).await
    }

    async fn wait_until<T>(
        &self,
        exit: impl Future<Output = ProcessExit>,
        what: &str,
        ready: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let (deadline, output) = (self.attempt.deadline(), &self.attempt.output);
        tokio::pin!(exit);
        let status = tokio::select! {
            biased; // ready counts even if the program exits at the same moment
            ready = ready => match ready {
                Ok(found) => return Ok(found),
                // An exiting program refuses connections first; its exit is the better error.
                Err(error) => timeout(EXIT_TIMEOUT, exit).await.map_err(|_| error)?,
            },
            status = &mut exit => status,
            () = tokio::time::sleep(deadline) => {
                let waited = humantime::format_duration(deadline);
                let doing = format!("{} has not {what} within {waited}", self.name);
                let cause = match self.process.is_alive() {
                    true => format!("process {} still runs and was stopped", self.process.pid()),
                    false => "what it started still runs and was stopped".to_owned(),
                };
                return Err(append_output_tail(Error::new(ErrorKind::TimedOut, doing), cause, output));
            }
        };
        let error = Error::other(format!("{} ended before it had {what}", self.name));
        Err(append_output_tail(error, status.to_string(), output))
    }
}

/// Waits until `running` returns no process in [`SEARCHES`] searches in a row: a process that is just replacing its
/// program has no command line and no environment in /proc, so a single search can miss it.
async fn wait_for_last_exit(running: impl Fn() -> Vec<Process>) {
    let mut without = 0;
    while without < SEARCHES {
        match running().pop() {
            Some(process) => {
                process.wait_for_exit().await;
                without = 0;
            }
            None => {
                tokio::time::sleep(SEARCH_INTERVAL).await;
                without += 1;
            }
        }
    }
}

fn append_output_tail(error: Error, cause: String, output: &Path) -> Error {
    let tail = redact_connection_tokens(tether_process::read_tail(output, TAIL_LINES).unwrap_or_default());
    let cause = if tail.is_empty() {
        format!("{cause}, without any output")
    } else {
        format!("{cause}; its last output:\n{tail}")
    };
    error.because(cause).hint(format!("`cat {}` shows all of its output", output.display()))
}

/// Verifies that the process owns `port`, then requests its endpoint, repeatedly while the program is too busy.
pub async fn discover_owned_endpoint(process: &Process, port: u16) -> Result<Endpoint> {
    let owner = process.clone();
    run_blocking(move || verify_tree_port(&owner, port)).await.map_err(untrusted_port_error)?;
    loop {
        match tether_cdp::discover_endpoint(port).await {
            Err(tether_cdp::CdpError::TimedOut { .. }) => {} // bounded by the caller's deadline
            found => {
                let doing = || format!("the launched program does not respond on its debugging port {port}");
                return found.doing(doing);
            }
        }
    }
}

/// Resolves when a program responds on the port; `check_owner`, which may read all of `/proc`, returns an error for a program
/// of another launch.
pub async fn wait_for_listener(
    port: u16,
    check_owner: impl Fn(u16) -> Result<()> + Clone + Send + 'static,
) -> Result<Endpoint> {
    let mut pause = MIN_POLL_INTERVAL;
    loop {
        let check_owner = check_owner.clone();
        let check = move || match tether_process::is_listened_on(port).unwrap_or(false) {
            true => check_owner(port).map(|()| true),
            false => Ok(false),
        };
        if run_blocking(check).await? {
            // It may listen before it responds.
            if let Ok(endpoint) = tether_cdp::discover_endpoint(port).await {
                return Ok(endpoint);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_POLL_INTERVAL);
    }
}

/// The port in Node's line "Debugger listening on ws://127.0.0.1:38351/0f2c936f-…".
pub fn parse_inspector_port(line: &str) -> Option<u16> {
    let (_, url) = line.split_once("Debugger listening on ws://")?;
    let (host, _) = url.split_once('/')?;
    host.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_that_some_searches_miss_is_waited_for() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        let searches = Cell::new(0);
        let running = || {
            searches.set(searches.get() + 1);
            let is_missed = searches.get() % 2 == 1;
            if is_missed || !process.is_alive() { Vec::new() } else { vec![process.clone()] }
        };
        let exit = wait_for_last_exit(running);
        tokio::pin!(exit);
        assert!(timeout(Duration::from_secs(60), &mut exit).await.is_err(), "it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
        exit.await;
        assert!(searches.get() > SEARCHES);
    }

    #[test]
    fn the_inspector_port_is_parsed_from_the_line_that_node_prints() {
        let check = |line: &str, expect: Option<u16>| assert_eq!(parse_inspector_port(line), expect, "{line}");
        check("Debugger listening on ws://127.0.0.1:38351/0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e", Some(38351));
        check("Debugger listening on ws://[::1]:9229/0f2c", Some(9229));
        check(
            "[21:39] [x][ExtensionHostConnection] <7><stderr> Debugger listening on ws://127.0.0.1:9871/3b",
            Some(9871),
        );
        check("Debugger listening on ws://127.0.0.1:99999/0f2c", None);
        check("Starting inspector on 127.0.0.1:9229 failed: address already in use", None);
        check("", None);
    }
}
