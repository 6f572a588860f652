//! Stopping a whole tree of processes as one readable sequence: asked → TERM → grace → KILL.
//!
//! Must not know how a window is asked to close: the caller brings that as a future.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::process_handle::{Process, ProcessExit};
use super::process_tree;

/// What it took to end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// It had ended before, or went when asked.
    Asked(ProcessExit),
    Terminated(ProcessExit),
    Killed(ProcessExit),
}

impl StopOutcome {
    pub fn exit(self) -> ProcessExit {
        match self {
            StopOutcome::Asked(exit) | StopOutcome::Terminated(exit) | StopOutcome::Killed(exit) => exit,
        }
    }
}

/// Ends `main` and everyone below it. `ask` is polite and answers whether it was heard; it and SIGTERM get `grace`
/// each, and `async { false }` goes to SIGTERM at once.
/// Errors: someone outlives SIGKILL for seconds.
pub async fn stop_tree(
    main: &Process,
    ask: impl Future<Output = bool>,
    grace: Duration,
) -> std::io::Result<StopOutcome> {
    // Taken before: once the parents have gone, nobody can tell whose children these were.
    let tree = process_tree::list_tree(main)?;
    let ended = end_main(main, &tree, ask, grace).await;
    kill(main, &tree);
    process_tree::wait_until_gone(&tree).await?;
    let exit = timeout(Duration::from_secs(2), main.wait_for_exit()).await.map_err(std::io::Error::other)?;
    Ok(match ended {
        Some(Step::Asked) => StopOutcome::Asked(exit),
        Some(Step::Terminated) => StopOutcome::Terminated(exit),
        None => StopOutcome::Killed(exit),
    })
}

enum Step {
    Asked,
    Terminated,
}

async fn end_main(main: &Process, tree: &[Process], ask: impl Future<Output = bool>, grace: Duration) -> Option<Step> {
    let leaves = async { ask.await && timeout(grace, main.wait_for_end()).await.is_ok() };
    let gone = tokio::select! {
        () = main.wait_for_end() => true,
        gone = timeout(grace, leaves) => gone.unwrap_or(false),
    };
    if gone {
        return Some(Step::Asked);
    }
    signal_all(main, tree, Signal::TERM);
    timeout(grace, main.wait_for_end()).await.ok().map(|()| Step::Terminated)
}

/// `main` is not reaped before this, so its group's id is still its own.
fn kill(main: &Process, tree: &[Process]) {
    signal_all(main, tree, Signal::KILL);
    // Whoever was forked since the tree was taken.
    for late in process_tree::list_tree(main).unwrap_or_default() {
        let _ = late.signal(Signal::KILL);
    }
}

fn signal_all(main: &Process, tree: &[Process], signal: Signal) {
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
    async fn term_is_enough_for_the_well_behaved() {
        let (process, _folder) = shell("trap 'exit 3' TERM; echo up; sleep 60 & wait").await;
        let tree = process_tree::list_tree(&process).unwrap();
        assert_eq!(
            stop_tree(&process, async { false }, LONG).await.unwrap(),
            StopOutcome::Terminated(ProcessExit::Code(3))
        );
        assert!(tree.iter().all(|one| !one.is_alive()));
    }

    #[tokio::test]
    async fn those_deaf_to_term_are_killed_with_all_their_children() {
        let (process, _folder) =
            shell("trap '' TERM; (trap '' TERM; setsid sleep 60) & echo up; while :; do wait; done").await;
        let tree = process_tree::list_tree(&process).unwrap();
        assert!(!tree.is_empty());
        assert_eq!(
            stop_tree(&process, async { false }, SHORT).await.unwrap(),
            StopOutcome::Killed(ProcessExit::Signal(9))
        );
        assert!(tree.iter().all(|one| !one.is_alive()));
    }

    #[tokio::test]
    async fn who_leaves_when_asked_gets_no_signal() {
        let (process, _folder) = shell("trap 'exit 4' USR1; echo up; sleep 60 & wait").await;
        let ask = async { process.signal(Signal::USR1).is_ok() };
        let ended = stop_tree(&process, ask, LONG).await.unwrap();
        assert_eq!(ended, StopOutcome::Asked(ProcessExit::Code(4)));
    }

    #[tokio::test]
    async fn the_dead_are_reported_as_they_ended() {
        let (process, _folder) = shell("echo up; exit 5").await;
        process.wait_for_end().await;
        assert_eq!(
            stop_tree(&process, std::future::pending(), LONG).await.unwrap(),
            StopOutcome::Asked(ProcessExit::Code(5))
        );
    }
}
