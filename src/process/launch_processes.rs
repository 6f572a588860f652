//! Finds the processes of a launch by the launch id in their environment, and stops all of them.
//!
//! The launch id finds daemons that have left the tree and the session of the window; the tree (`process_tree`) finds
//! renderers that have overwritten their environment. Each process is opened by its pidfd first and checked second.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use rustix::process::Signal;

use super::environment::LAUNCH_ID;
use super::graceful_stop::terminate_then_kill;
use super::platform::{self, ProcessFacts};
use super::process_handle::Process;
use super::process_tree::{open_if_ours, wait_until_gone};

/// How often the sweep searches for processes that were forked while it killed others.
const ROUNDS: usize = 10;

/// The running processes of our user with `launch_id` in their environment.
pub fn find_launch_processes(launch_id: &str) -> io::Result<Vec<Process>> {
    if launch_id.is_empty() {
        return Ok(Vec::new());
    }
    let carries = |one: &&ProcessFacts| {
        let value = platform::read_environment_value(one.pid, LAUNCH_ID);
        matches!(value, Ok(Some(value)) if value == OsStr::new(launch_id))
    };
    // Read again after the process is opened: only then is it known that the pidfd's process has the launch id.
    let everyone = platform::list_processes()?;
    Ok(everyone.iter().filter(carries).filter_map(|one| open_if_ours(one).filter(|_| carries(&one))).collect())
}

/// The running processes of our user with any launch id, by that id.
pub fn group_by_launch_id() -> io::Result<BTreeMap<String, Vec<Process>>> {
    let mark_of =
        |one: &ProcessFacts| platform::read_environment_value(one.pid, LAUNCH_ID).ok().flatten()?.into_string().ok();
    let mut all: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for one in platform::list_processes()?.iter() {
        let Some(mark) = mark_of(one).filter(|mark| !mark.is_empty()) else { continue };
        // Read again after the process is opened.
        if let Some(process) = open_if_ours(one).filter(|_| mark_of(one).as_ref() == Some(&mark)) {
            all.entry(mark).or_default().push(process);
        }
    }
    Ok(all)
}

/// Sends SIGKILL to every process with `launch_id`, and does not wait: for a `Drop`.
pub fn kill_launch(launch_id: &str) {
    kill_launch_except(None, launch_id);
}

/// Sends SIGKILL to every process with `launch_id` except the one with the PID `spared`, and does not wait.
pub fn kill_launch_except(spared: Option<u32>, launch_id: &str) {
    for process in find_launch_processes(launch_id).unwrap_or_default() {
        if Some(process.pid()) != spared {
            let _ = process.signal(Signal::KILL);
        }
    }
}

/// Stops every process with `launch_id`: SIGTERM, after `grace` SIGKILL, until none is left. A `grace` of zero sends
/// SIGKILL at once. Returns the PIDs that were found. Errors: `/proc` cannot be read, or a process survives SIGKILL.
pub async fn sweep_launch(launch_id: &str, grace: Duration) -> io::Result<Vec<u32>> {
    let mut found = find_launch_processes(launch_id)?;
    let mut swept: Vec<u32> = found.iter().map(Process::pid).collect();
    if !grace.is_zero() && !found.is_empty() {
        let send = |signal| found.iter().for_each(|process| drop(process.signal(signal)));
        terminate_then_kill(send, async { drop(wait_until_gone(&found).await) }, grace).await;
        found = find_launch_processes(launch_id)?;
    }
    for _ in 0..ROUNDS {
        if found.is_empty() {
            swept.sort_unstable();
            swept.dedup();
            return Ok(swept);
        }
        for process in &found {
            process.signal(Signal::KILL)?;
            swept.push(process.pid());
        }
        wait_until_gone(&found).await?;
        found = find_launch_processes(launch_id)?;
    }
    Err(io::Error::other(format!("processes of launch {launch_id} are started again and again")))
}

#[cfg(test)]
mod tests {
    use super::super::{DetachedCommand, clean_environment, list_tree, spawn_detached, wait_for_line};
    use super::*;

    #[tokio::test]
    async fn the_sweep_finds_processes_that_have_left_tree_and_session() {
        let folder = tempfile::tempdir().unwrap();
        let launch_id = format!("sweep-{}", std::process::id());
        // The daemon leaves by a double fork into its own session; the other has an empty environment.
        let script = "(setsid sleep 61 &) ; (trap '' TERM; sleep 64) & sleep 62 & env -i sleep 63 & echo up; wait";
        let process = spawn_detached(&DetachedCommand {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            cwd: folder.path().into(),
            env: clean_environment([(LAUNCH_ID, &launch_id)]),
            output: folder.path().join("log"),
        })
        .unwrap();
        wait_for_line(&folder.path().join("log"), 0, |line| (line == "up").then_some(())).await.unwrap();
        // In the middle of an exec a process shows no environment.
        let sleeps = |all: &[Process], time: &str| {
            all.iter().any(|one| platform::read_arguments(one.pid()).is_ok_and(|line| line == ["sleep", time]))
        };
        let since = std::time::Instant::now();
        while !["61", "62", "64"].iter().all(|time| sleeps(&find_launch_processes(&launch_id).unwrap(), time))
            || !sleeps(&list_tree(&process).unwrap(), "63")
        {
            assert!(since.elapsed() < Duration::from_secs(60), "{:?}", find_launch_processes(&launch_id));
        }
        let tree = list_tree(&process).unwrap();
        assert!(tree.len() >= 2, "{tree:?}");
        let killed = sweep_launch(&launch_id, Duration::ZERO).await.unwrap();
        assert!(killed.len() >= 3, "{killed:?}");
        assert!(find_launch_processes(&launch_id).unwrap().is_empty());
        for process in tree {
            process.signal(Signal::KILL).unwrap();
            process.wait_for_exit().await;
        }
        assert!(sweep_launch(&launch_id, Duration::ZERO).await.unwrap().is_empty());
        assert!(find_launch_processes("").unwrap().is_empty());
    }
}
