//! Who belongs to a process or to a launch, and the sweep that leaves nothing of a launch behind.
//!
//! Two nets, since each has holes: the *tree* (descendants, and everyone in the leader's session) finds renderers
//! that have overwritten their environment; the *launch id* finds daemons that have left tree and session.
//! Everyone is held by pidfd first and proven second. Never touched: PID 0, 1, ourselves, other users' processes.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::environment::LAUNCH_ID;
use super::platform::{self, ProcessFacts};
use super::process_handle::Process;

/// How often the sweep looks again for what was forked while it killed.
const ROUNDS: usize = 10;
/// How long a killed process may take to be gone; more means that it hangs in the kernel.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// The living descendants of `root` and the members of the session it leads, `root` itself not included.
pub fn list_tree(root: &Process) -> io::Result<Vec<Process>> {
    let everyone = platform::list_processes()?;
    // While `root` lives (or is our zombie) its PID is its own, so nobody else's children are taken for its.
    let known = everyone.iter().any(|one| one.pid == root.pid() && one.start_ticks == root.start_ticks());
    if !known {
        return Ok(Vec::new());
    }
    let members = select_members(root.pid(), &everyone);
    Ok(members.into_iter().filter_map(open_if_ours).collect())
}

fn select_members(root: u32, everyone: &[ProcessFacts]) -> Vec<&ProcessFacts> {
    let mut inside = HashSet::from([root]);
    loop {
        let before = inside.len();
        let belongs = |one: &&ProcessFacts| inside.contains(&one.parent) || one.session == root;
        let found: Vec<u32> = everyone.iter().filter(belongs).map(|one| one.pid).collect();
        inside.extend(found);
        if inside.len() == before {
            return everyone.iter().filter(|one| one.pid != root && inside.contains(&one.pid)).collect();
        }
    }
}

/// The living processes of our user whose environment carries `launch_id`.
pub fn find_launch_processes(launch_id: &str) -> io::Result<Vec<Process>> {
    if launch_id.is_empty() {
        return Ok(Vec::new());
    }
    let carries = |one: &&ProcessFacts| {
        let value = platform::read_environment_value(one.pid, LAUNCH_ID);
        matches!(value, Ok(Some(value)) if value == OsStr::new(launch_id))
    };
    // Held first, asked again second: the one that is held is the one that carries it.
    let everyone = platform::list_processes()?;
    Ok(everyone.iter().filter(carries).filter_map(|one| open_if_ours(one).filter(|_| carries(&one))).collect())
}

/// Holds the process that `facts` tell of, unless it has ended, is another user's, or is ourselves.
fn open_if_ours(facts: &ProcessFacts) -> Option<Process> {
    let ours = facts.uid == rustix::process::getuid().as_raw() && !facts.zombie;
    let process = ours.then(|| Process::open(facts.pid).ok())??;
    (process.start_ticks() == facts.start_ticks).then_some(process)
}

/// The living processes of our user that have a file below `folder` open.
pub fn find_file_holders_below(folder: &Path) -> io::Result<Vec<Process>> {
    Ok(platform::list_holders_below(folder)?.iter().filter_map(open_if_ours).collect())
}

/// The living processes of our user that carry a launch id, by that id.
pub fn group_by_launch_id() -> io::Result<BTreeMap<String, Vec<Process>>> {
    let mark_of =
        |one: &ProcessFacts| platform::read_environment_value(one.pid, LAUNCH_ID).ok().flatten()?.into_string().ok();
    let mut all: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for one in platform::list_processes()?.iter() {
        let Some(mark) = mark_of(one).filter(|mark| !mark.is_empty()) else { continue };
        // Held first, asked again second.
        if let Some(process) = open_if_ours(one).filter(|_| mark_of(one).as_ref() == Some(&mark)) {
            all.entry(mark).or_default().push(process);
        }
    }
    Ok(all)
}

/// The living processes of our user with one of `words` on their command line.
pub fn find_by_argument(words: &[&OsStr]) -> io::Result<Vec<Process>> {
    let has_one = |one: &&ProcessFacts| {
        platform::read_arguments(one.pid).is_ok_and(|line| line.iter().any(|word| words.contains(&word.as_os_str())))
    };
    let everyone = platform::list_processes()?;
    Ok(everyone.iter().filter(has_one).filter_map(|one| open_if_ours(one).filter(|_| has_one(&one))).collect())
}

/// Kills at once, without waiting, everyone who carries `launch_id`: for a `Drop`.
pub fn kill_launch(launch_id: &str) {
    kill_launch_except(None, launch_id);
}

/// Kills at once, without waiting, everyone who carries `launch_id` except this one.
pub fn kill_launch_except(spared: Option<u32>, launch_id: &str) {
    for process in find_launch_processes(launch_id).unwrap_or_default() {
        if Some(process.pid()) != spared {
            let _ = process.signal(Signal::KILL);
        }
    }
}

/// Ends everyone who carries `launch_id`, with SIGTERM and after `grace` with SIGKILL, and waits until they are gone.
/// Returns the PIDs that were found. Errors: `/proc` cannot be read, or someone outlives SIGKILL.
pub async fn sweep_launch(launch_id: &str, grace: Duration) -> io::Result<Vec<u32>> {
    let mut swept = terminate_launch(launch_id, grace).await?;
    for _ in 0..ROUNDS {
        let found = find_launch_processes(launch_id)?;
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
    }
    Err(io::Error::other(format!("processes of launch {launch_id} keep coming back")))
}

async fn terminate_launch(launch_id: &str, grace: Duration) -> io::Result<Vec<u32>> {
    let found = if grace.is_zero() { Vec::new() } else { find_launch_processes(launch_id)? };
    for process in &found {
        process.signal(Signal::TERM)?;
    }
    // Whoever is left gets the other signal.
    let _ = timeout(grace, wait_until_gone(&found)).await;
    Ok(found.iter().map(Process::pid).collect())
}

/// Waits until all are gone; an error after 2 s.
pub async fn wait_until_gone(processes: &[Process]) -> io::Result<()> {
    for process in processes {
        let told = format!("process {} does not end", process.pid());
        timeout(GONE_WITHIN, process.wait_for_exit())
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, told))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{DetachedCommand, clean_environment, spawn_detached, wait_for_line};
    use super::*;

    fn facts(pid: u32, parent: u32, session: u32) -> ProcessFacts {
        ProcessFacts { pid, parent, session, uid: 1000, start_ticks: 1, zombie: false }
    }

    #[test]
    fn a_tree_is_made_of_descendants_and_of_the_session() {
        let everyone = [
            facts(10, 1, 10),  // the root
            facts(11, 10, 10), // its child
            facts(12, 11, 12), // a grandchild in a session of its own
            facts(13, 1, 10),  // an orphan of the session
            facts(14, 13, 14), // the orphan's child
            facts(20, 1, 20),  // strangers
            facts(21, 20, 20),
        ];
        let pids: Vec<u32> = select_members(10, &everyone).iter().map(|one| one.pid).collect();
        assert_eq!(pids, [11, 12, 13, 14]);
    }

    #[tokio::test]
    async fn the_sweep_finds_those_who_left_tree_and_session() {
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
