//! Finds the processes of a launch by the launch id in their environment, and stops those that are tied to it.
//!
//! ```text
//! spawn ──► leads a session; DEVTETHER_LAUNCH_ID and DEVTETHER_LAUNCH_SESSION (its own PID) are inherited by all below
//!             ├─ in that session, or a descendant of one that is ──────────► tied: ends with the launch
//!             └─ has left both (a browser, a tmux server, a build daemon) ─► detached: only the user ends it
//! ```
//! In the middle of an exec a process shows no environment (Linux, `fs/proc/base.c`): it is tied by its session or parent alone.
//! The tree (`process_search`) finds renderers that have overwritten their environment. Each process is opened by its
//! pidfd first and checked second.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tether_base::sync::run_blocking;

use super::environment::{LAUNCH_ID, LAUNCH_SESSION};
use super::platform::{self, ProcessFacts};
use super::process_handle::Process;
use super::process_search::{add_descendants, open_if_ours, wait_until_gone};
use super::tree_stop::terminate_then_kill;

/// How often the sweep searches for processes that were forked while it killed others.
const ROUNDS: usize = 10;

/// The running processes of our user with one launch id.
#[derive(Debug, Default)]
pub struct LaunchMembers {
    /// In a session that was started for the launch, or descendants of one in it.
    pub tied: Vec<Process>,
    /// They have inherited the launch id and left tree and session: never ended by us.
    pub detached: Vec<Process>,
}

impl LaunchMembers {
    /// Counts as tied the detached processes with a file open below `folder`, which is this launch's own: the launcher of VS Code
    /// detaches the window itself.
    pub fn include_users_of(&mut self, folder: &Path) {
        let uses_folder = |process: &Process| platform::has_open_below(process.pid(), folder);
        self.tied.extend(self.detached.extract_if(.., |process| uses_folder(process)));
    }
}

/// What a process has inherited from a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LaunchMark {
    Launch {
        launch_id: String,
        /// The PID of the program that was started for the launch, which led its session.
        session: Option<u32>,
    },
    /// It has an environment without a launch id.
    Absent,
    /// It shows no environment: it is in the middle of an exec, has none, or is another user's.
    Unknown,
}

impl LaunchMark {
    fn read(pid: u32) -> LaunchMark {
        let Ok(Some(mut environment)) = platform::read_environment(pid) else { return LaunchMark::Unknown };
        let mut take = |name: &str| environment.remove(OsStr::new(name))?.into_string().ok();
        match take(LAUNCH_ID).filter(|launch_id| !launch_id.is_empty()) {
            Some(launch_id) => {
                LaunchMark::Launch { launch_id, session: take(LAUNCH_SESSION).and_then(|session| session.parse().ok()) }
            }
            None => LaunchMark::Absent,
        }
    }
}

/// The running processes of our user with `launch_id` in their environment, tied and detached.
pub fn find_launch_processes(launch_id: &str) -> io::Result<Vec<Process>> {
    let LaunchMembers { mut tied, detached } = find_launch_members(launch_id)?;
    tied.extend(detached);
    Ok(tied)
}

/// As [`find_launch_processes`], told apart.
pub fn find_launch_members(launch_id: &str) -> io::Result<LaunchMembers> {
    Ok(group_by_launch_id()?.remove(launch_id).unwrap_or_default())
}

/// The running processes of our user with any launch id, by that id.
pub fn group_by_launch_id() -> io::Result<BTreeMap<String, LaunchMembers>> {
    let everyone = platform::list_processes()?;
    let marked: Vec<(ProcessFacts, LaunchMark)> =
        everyone.into_iter().map(|one| (one, LaunchMark::read(one.pid))).collect();
    let launch_ids: BTreeSet<&str> = marked
        .iter()
        .filter_map(|(_, mark)| match mark {
            LaunchMark::Launch { launch_id, .. } => Some(&**launch_id),
            _ => None,
        })
        .collect();
    let group = |launch_id: &str| {
        let tied = select_tied(launch_id, &marked);
        let mut members = LaunchMembers::default();
        for (one, mark) in &marked {
            let is_tied = tied.contains(&one.pid);
            let has_id = matches!(mark, LaunchMark::Launch { launch_id: id, .. } if id == launch_id);
            // It has started when the listed one had: the mark, read in between, is its own.
            let opened = (is_tied || has_id).then(|| open_if_ours(one)).flatten();
            match is_tied {
                true => members.tied.extend(opened),
                false => members.detached.extend(opened),
            }
        }
        (launch_id.to_owned(), members)
    };
    Ok(launch_ids.into_iter().map(group).collect())
}

/// The PIDs in the session of the launch, and their descendants: with its id, or without any environment.
fn select_tied(launch_id: &str, marked: &[(ProcessFacts, LaunchMark)]) -> HashSet<u32> {
    let own_session = |one: &ProcessFacts, mark: &LaunchMark| match mark {
        LaunchMark::Launch { launch_id: id, session } => id == launch_id && *session == Some(one.session),
        _ => false,
    };
    let sessions: HashSet<u32> =
        marked.iter().filter(|(one, mark)| own_session(one, mark)).map(|(one, _)| one.session).collect();
    let candidates: Vec<ProcessFacts> = marked
        .iter()
        .filter(|(_, mark)| match mark {
            LaunchMark::Launch { launch_id: id, .. } => id == launch_id,
            LaunchMark::Absent => false,
            LaunchMark::Unknown => true,
        })
        .map(|(one, _)| *one)
        .collect();
    let mut tied = candidates.iter().filter(|one| sessions.contains(&one.session)).map(|one| one.pid).collect();
    add_descendants(&mut tied, &candidates);
    tied
}

/// Sends SIGKILL to every process that is tied to `launch_id`, and does not wait: for a `Drop`.
pub fn kill_launch(launch_id: &str) {
    kill_launch_except(None, launch_id);
}

/// Sends SIGKILL to every process that is tied to `launch_id` except the one with the PID `spared`, until none is found that
/// has not got it, and does not wait.
pub fn kill_launch_except(spared: Option<u32>, launch_id: &str) {
    let mut killed: HashSet<u32> = spared.into_iter().collect();
    for _ in 0..ROUNDS {
        let mut found = find_launch_members(launch_id).unwrap_or_default().tied;
        found.retain(|process| killed.insert(process.pid()));
        if found.is_empty() {
            return;
        }
        found.iter().for_each(|process| drop(process.signal(Signal::KILL)));
    }
}

/// Stops every process that is tied to `launch_id`: SIGTERM, after `grace` SIGKILL, until none is left. A `grace` of
/// zero sends SIGKILL at once. `folder` is the launch's own ([`LaunchMembers::include_users_of`]). Returns the PIDs that were
/// found. Errors: `/proc` cannot be read, or a process survives SIGKILL.
pub async fn sweep_launch(launch_id: &str, folder: Option<&Path>, grace: Duration) -> io::Result<Vec<u32>> {
    let mut found = find_to_sweep(launch_id, folder).await?;
    let mut swept: Vec<u32> = found.iter().map(Process::pid).collect();
    if !grace.is_zero() && !found.is_empty() {
        let send = |signal| found.iter().for_each(|process| drop(process.signal(signal)));
        terminate_then_kill(send, async { drop(wait_until_gone(&found).await) }, grace).await;
        found = find_to_sweep(launch_id, folder).await?;
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
        found = find_to_sweep(launch_id, folder).await?;
    }
    Err(io::Error::other(format!("processes of launch {launch_id} are started again and again")))
}

async fn find_to_sweep(launch_id: &str, folder: Option<&Path>) -> io::Result<Vec<Process>> {
    let (launch_id, folder) = (launch_id.to_owned(), folder.map(Path::to_owned));
    run_blocking(move || {
        let mut members = find_launch_members(&launch_id)?;
        if let Some(folder) = &folder {
            members.include_users_of(folder);
        }
        Ok(members.tied)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::super::{DetachedCommand, clean_environment, list_tree, spawn_detached, wait_for_line};
    use super::*;

    fn sleeps(all: &[Process], time: &str) -> bool {
        all.iter().any(|one| platform::read_arguments(one.pid()).is_ok_and(|line| line == ["sleep", time]))
    }

    async fn launch(folder: &Path, launch_id: &str, script: &str) -> Process {
        let output = folder.join("log");
        let process = spawn_detached(&DetachedCommand {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            cwd: folder.into(),
            env: clean_environment([(LAUNCH_ID, launch_id)]),
            output: output.clone(),
        })
        .unwrap();
        wait_for_line(&output, 0, |line| (line == "up").then_some(())).await.unwrap();
        process
    }

    #[tokio::test]
    async fn the_sweep_ends_what_is_tied_by_tree_or_session_and_leaves_what_has_detached_itself() {
        let folder = tempfile::tempdir().unwrap();
        let launch_id = format!("sweep-{}", std::process::id());
        // 61 leaves tree and session; 65 leaves only the session, 62 only the tree; 63 has no environment.
        let script = "(setsid sleep 61 &) ; (sleep 62 &) ; setsid sleep 65 & (trap '' TERM; exec sleep 64) & \
                      env -i sleep 63 & echo up; wait";
        let process = launch(folder.path(), &launch_id, script).await;
        // In the middle of an exec a process shows no environment.
        let since = std::time::Instant::now();
        loop {
            let LaunchMembers { tied, detached } = find_launch_members(&launch_id).unwrap();
            if ["62", "63", "64", "65"].iter().all(|time| sleeps(&tied, time))
                && (sleeps(&detached, "61") && detached.len() == 1)
            {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{tied:?} {detached:?}");
        }
        let tree = list_tree(&process).unwrap();
        let killed = sweep_launch(&launch_id, None, Duration::ZERO).await.unwrap();
        assert!(killed.len() >= 5, "{killed:?}");
        let LaunchMembers { tied, detached } = find_launch_members(&launch_id).unwrap();
        assert!(tied.is_empty() && sleeps(&detached, "61"), "{tied:?} {detached:?}");
        for process in tree.into_iter().chain(detached) {
            process.signal(Signal::KILL).unwrap();
            process.wait_for_exit().await;
        }
        assert!(sweep_launch(&launch_id, None, Duration::ZERO).await.unwrap().is_empty());
        assert!(find_launch_processes("").unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_process_in_the_middle_of_an_exec_is_tied() {
        let folder = tempfile::tempdir().unwrap();
        // It execs itself without end, in a session of its own.
        std::fs::write(folder.path().join("again"), "exec sh again").unwrap();
        let launch_id = format!("exec-{}", std::process::id());
        let process = launch(folder.path(), &launch_id, "setsid sh again & echo up; wait").await;
        for _ in 0..50 {
            assert_eq!(find_launch_members(&launch_id).unwrap().tied.len(), 2);
        }
        let tree = list_tree(&process).unwrap();
        kill_launch(&launch_id);
        wait_until_gone(&tree).await.unwrap();
        process.wait_for_exit().await;
        assert!(sweep_launch(&launch_id, None, Duration::ZERO).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_detached_process_that_uses_the_folder_of_the_launch_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().canonicalize().unwrap().join("own");
        std::fs::create_dir(&own).unwrap();
        let launch_id = format!("folder-{}", std::process::id());
        let script = "(setsid sh -c 'exec 7>own/lock; echo up; exec sleep 66' &)";
        launch(folder.path(), &launch_id, script).await.wait_for_exit().await;
        assert!(sweep_launch(&launch_id, None, Duration::ZERO).await.unwrap().is_empty());
        assert_eq!(sweep_launch(&launch_id, Some(&own), Duration::ZERO).await.unwrap().len(), 1);
    }
}
