//! The graceful stop: close request → SIGTERM → grace period → SIGKILL, of one process or of a whole tree.
//!
//! Does not depend on how a program is requested to close: the caller passes that as a future.

use std::time::Duration;

use rustix::process::Signal;
use tether_base::sync::run_blocking;
use tokio::time::timeout;

use super::process_handle::{Process, ProcessExit};
use super::process_search::{list_tree, wait_until_gone};

/// How long a killed process may take to be reaped; longer means that it hangs in the kernel.
const KILLED_WITHIN: Duration = Duration::from_secs(2);

/// How long processes that have ended may take to be reaped: the first process of some containers does that every 2 s.
const REAPED_WITHIN: Duration = Duration::from_secs(4);

/// What ended the process, and its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// It had exited before, or exited after the close request.
    OnRequest(ProcessExit),
    /// It exited after SIGTERM.
    Terminated(ProcessExit),
    /// It was killed.
    Killed(ProcessExit),
}

impl StopOutcome {
    /// How the process exited.
    pub fn exit(self) -> ProcessExit {
        match self {
            StopOutcome::OnRequest(exit) | StopOutcome::Terminated(exit) | StopOutcome::Killed(exit) => exit,
        }
    }
}

/// Stops `main` with all its descendants. `request_close` resolves to whether the request was received; it and SIGTERM
/// get `grace` each, and `async { false }` goes to SIGTERM at once. Descendants are killed when `main` has exited.
/// Errors: the processes cannot be listed (then only `main` and its group are stopped), or one survives SIGKILL for 2
/// s.
pub async fn stop_tree(
    main: &Process,
    request_close: impl Future<Output = bool>,
    grace: Duration,
) -> std::io::Result<StopOutcome> {
    let tree = list_tree_aside(main).await;
    let request_close = async { request_close.await && timeout(grace, main.wait_for_end()).await.is_ok() };
    let closed = tokio::select! {
        () = main.wait_for_end() => true,
        closed = timeout(grace, request_close) => closed.unwrap_or(false),
    };
    if closed {
        return end_tree(main, tree, StopOutcome::OnRequest).await;
    }
    terminate_tree(main, tree, grace, main.wait_for_end()).await
}

/// As [`stop_tree`] without a close request, but the descendants have the same grace period: `main` may be a shell, which
/// exits at SIGTERM before what it has started. Waits, also after an error, until the descendants are reaped by their parents,
/// no longer than `REAPED_WITHIN`: until then others take them for running.
pub async fn stop_tree_gently(main: &Process, grace: Duration) -> std::io::Result<StopOutcome> {
    let tree = list_tree_aside(main).await;
    let all = tree.as_deref().unwrap_or_default().to_vec();
    let ended = async {
        main.wait_for_end().await;
        for process in &all {
            process.wait_for_end().await;
        }
    };
    let stopped = terminate_tree(main, tree, grace, ended).await;
    let reaped = async {
        for process in &all {
            process.wait_until_reaped().await;
        }
    };
    let _ = timeout(REAPED_WITHIN, reaped).await;
    stopped
}

async fn terminate_tree(
    main: &Process,
    tree: std::io::Result<Vec<Process>>,
    grace: Duration,
    ended: impl Future<Output = ()>,
) -> std::io::Result<StopOutcome> {
    signal_tree(main, tree.as_deref().unwrap_or_default(), Signal::TERM);
    let terminated = timeout(grace, ended).await.is_ok();
    end_tree(main, tree, if terminated { StopOutcome::Terminated } else { StopOutcome::Killed }).await
}

/// Kills what is left of the tree, and waits until it has exited. Errors: as of [`stop_tree`].
async fn end_tree(
    main: &Process,
    tree: std::io::Result<Vec<Process>>,
    outcome: impl Fn(ProcessExit) -> StopOutcome,
) -> std::io::Result<StopOutcome> {
    let listed = tree.as_deref().unwrap_or_default();
    signal_tree(main, listed, Signal::KILL);
    // Those that were forked since the tree was listed.
    let late = list_tree_aside(main).await.unwrap_or_default();
    late.iter().for_each(|process| drop(process.signal(Signal::KILL)));
    wait_until_gone(listed).await?;
    wait_until_gone(&late).await?;
    let exit = timeout(KILLED_WITHIN, main.wait_for_exit()).await.map_err(std::io::Error::other)?;
    tree.map(|_| outcome(exit))
}

/// Listed before the first signal: the children of a process that has exited are no longer known as its own.
async fn list_tree_aside(main: &Process) -> std::io::Result<Vec<Process>> {
    let main = main.clone();
    run_blocking(move || list_tree(&main)).await
}

/// Stops this process alone: SIGTERM, after `grace` SIGKILL. Returns at the latest 2 s after SIGKILL.
pub async fn stop_process(process: &Process, grace: Duration) {
    let send = |signal| drop(process.signal(signal));
    terminate_then_kill(send, process.wait_for_end(), grace).await;
    let _ = timeout(KILLED_WITHIN, process.wait_for_exit()).await;
}

/// Sends SIGTERM, waits up to `grace` for `ended`, and sends SIGKILL in either case: what `ended` stands for may have
/// left others. Returns whether it ended within the grace period.
pub(super) async fn terminate_then_kill(
    send: impl Fn(Signal),
    ended: impl Future<Output = ()>,
    grace: Duration,
) -> bool {
    send(Signal::TERM);
    let terminated = timeout(grace, ended).await.is_ok();
    send(Signal::KILL);
    terminated
}

/// `main` must not be reaped yet, so that its group's id is still its own.
fn signal_tree(main: &Process, tree: &[Process], signal: Signal) {
    let _ = main.signal(signal);
    main.signal_group(signal);
    for process in tree {
        let _ = process.signal(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DetachedCommand, clean_environment, spawn_detached, wait_for_line};
    use super::*;

    async fn shell(script: &str) -> (Process, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("log");
        let process = spawn_detached(&DetachedCommand {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            cwd: folder.path().into(),
            env: clean_environment::<&str, &str>([]),
            output: output.clone(),
        })
        .unwrap();
        wait_for_line(&output, 0, |line| (line == "up").then_some(())).await.unwrap();
        (process, folder)
    }

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_process_that_handles_term_is_not_killed() {
        let (process, _folder) = shell("trap 'exit 3' TERM; echo up; sleep 60 & wait").await;
        let tree = list_tree(&process).unwrap();
        assert_eq!(
            stop_tree(&process, async { false }, LONG).await.unwrap(),
            StopOutcome::Terminated(ProcessExit::Code(3))
        );
        assert!(tree.iter().all(|one| !one.is_alive()));
    }

    #[tokio::test]
    async fn what_a_shell_has_started_has_time_to_end_after_it_when_the_tree_is_stopped_gently() {
        let script = "sh -c 'trap \"sleep 0.3; echo ended; exit 0\" TERM; echo up; while :; do sleep 0.05; done'; true";
        for is_gentle in [true, false] {
            let (process, folder) = shell(script).await;
            let tree = list_tree(&process).unwrap();
            let stopped = match is_gentle {
                true => stop_tree_gently(&process, LONG).await,
                false => stop_tree(&process, async { false }, LONG).await,
            };
            assert_eq!(stopped.unwrap(), StopOutcome::Terminated(ProcessExit::Signal(15)));
            assert!(tree.iter().all(|one| !one.is_alive()));
            let output = std::fs::read_to_string(folder.path().join("log")).unwrap();
            assert_eq!(output.contains("ended"), is_gentle, "{output}");
        }
    }

    #[tokio::test]
    async fn processes_that_ignore_term_are_killed_with_their_children() {
        let (process, _folder) =
            shell("trap '' TERM; (trap '' TERM; setsid sleep 60) & echo up; while :; do wait; done").await;
        let tree = list_tree(&process).unwrap();
        assert!(!tree.is_empty());
        assert_eq!(
            stop_tree(&process, async { false }, SHORT).await.unwrap(),
            StopOutcome::Killed(ProcessExit::Signal(9))
        );
        assert!(tree.iter().all(|one| !one.is_alive()));
    }

    #[tokio::test]
    async fn a_process_that_exits_after_the_close_request_gets_no_signal() {
        let (process, _folder) = shell("trap 'exit 4' USR1; echo up; sleep 60 & wait").await;
        let request_close = async { process.signal(Signal::USR1).is_ok() };
        let ended = stop_tree(&process, request_close, LONG).await.unwrap();
        assert_eq!(ended, StopOutcome::OnRequest(ProcessExit::Code(4)));
    }

    #[tokio::test]
    async fn a_process_that_has_exited_before_is_reported_with_its_exit() {
        let (process, _folder) = shell("echo up; exit 5").await;
        process.wait_for_end().await;
        assert_eq!(
            stop_tree(&process, std::future::pending(), LONG).await.unwrap(),
            StopOutcome::OnRequest(ProcessExit::Code(5))
        );
    }
}
