//! Waiting for a started program to get ready: against its exit and a deadline.
//!
//! The kernel tells nobody that a port is listened on, so [`listening`] is the one place that looks again and again,
//! less and less often.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::LaunchAttempt;
use crate::cdp::{self, Endpoint};
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, Process, ProcessExit};
use crate::window::identity::verify_tree_port;

/// How long an ending program may take from its first refusal to its exit.
const ENDING: Duration = Duration::from_secs(2);
/// How much of a failed program's output an error shows.
const TAIL_LINES: usize = 20;
const FIRST_LOOK: Duration = Duration::from_millis(5);
const SELDOMEST: Duration = Duration::from_millis(200);

/// Resolves with what `ready` finds. Errors when the process ends before, or the deadline passes; `who` and `what`
/// make sentences: "`who` ended before it `what`".
pub async fn wait_for<T>(
    launch: &LaunchAttempt<'_>,
    process: &Process,
    who: &str,
    what: &str,
    ready: impl Future<Output = Result<T>>,
) -> Result<T> {
    wait_until(launch, process, process.wait_for_exit(), who, what, ready).await
}

/// As [`wait_for`], for a launcher that ends with 0 when it has started the real program: what counts is the end of
/// everything that is `living`.
pub async fn wait_for_launcher<T>(
    launch: &LaunchAttempt<'_>,
    launcher: &Process,
    living: impl Fn() -> Vec<Process>,
    who: &str,
    what: &str,
    ready: impl Future<Output = Result<T>>,
) -> Result<T> {
    let ended = async {
        let exit = launcher.wait_for_exit().await;
        if exit.is_success() {
            wait_for_exit_of(living).await;
        }
        exit
    };
    wait_until(launch, launcher, ended, who, what, ready).await
}

async fn wait_for_exit_of(living: impl Fn() -> Vec<Process>) {
    loop {
        let left = living();
        if left.is_empty() {
            return;
        }
        for process in left {
            process.wait_for_exit().await;
        }
    }
}

async fn wait_until<T>(
    launch: &LaunchAttempt<'_>,
    process: &Process,
    ended: impl Future<Output = ProcessExit>,
    who: &str,
    what: &str,
    ready: impl Future<Output = Result<T>>,
) -> Result<T> {
    let deadline = launch.deadline();
    tokio::pin!(ended);
    let exited = tokio::select! {
        biased; // what is ready is ready, even if the program ends in the same moment
        ready = ready => match ready {
            Ok(found) => return Ok(found),
            // A program that is ending refuses connections first; its exit says more than that.
            Err(error) => timeout(ENDING, ended).await.map_err(|_| error)?,
        },
        exit = &mut ended => exit,
        () = tokio::time::sleep(deadline) => {
            let waited = humantime::format_duration(deadline);
            let error = Error::new(ErrorKind::TimedOut, format!("{who} has not {what} within {waited}"));
            let cause = match process.is_alive() {
                true => format!("process {} still runs and was stopped", process.pid()),
                false => "what it started still runs and was stopped".to_owned(),
            };
            return Err(append_output_tail(error, cause, &launch.output));
        }
    };
    let error = Error::other(format!("{who} ended before it {what}"));
    Err(append_output_tail(error, exited.to_string(), &launch.output))
}

fn append_output_tail(error: Error, cause: String, output: &Path) -> Error {
    let tail = process::read_tail(output, TAIL_LINES).unwrap_or_default();
    let cause = if tail.is_empty() {
        format!("{cause}, without any output")
    } else {
        format!("{cause}; its last output:\n{tail}")
    };
    error.because(cause).hint(format!("`cat {}` shows all of its output", output.display()))
}

/// Proves that `port` is the process's own, then asks who answers there, again and again while it is still too busy.
pub async fn wait_for_endpoint(process: &Process, port: u16) -> Result<Endpoint> {
    verify_tree_port(process, port).map_err(super::untrusted_port)?;
    loop {
        match cdp::discover_endpoint(port).await {
            Err(cdp::CdpError::TimedOut { .. }) => {} // raced against the deadline of the launch
            found => {
                let doing = || format!("the program that was launched does not answer on its debugging port {port}");
                return found.doing(doing);
            }
        }
    }
}

/// Resolves when somebody answers on the port; errors when it is nobody that is `ours`.
pub async fn wait_for_listener(port: u16, ours: impl Fn(u16) -> Result<()>) -> Result<Endpoint> {
    let mut pause = FIRST_LOOK;
    loop {
        if process::is_listened_on(port).unwrap_or(false) {
            ours(port)?;
            // It listens, but may not serve yet.
            if let Ok(endpoint) = cdp::discover_endpoint(port).await {
                return Ok(endpoint);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SELDOMEST);
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
    use super::*;

    #[test]
    fn the_inspectors_port_is_read_from_nodes_own_line() {
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
