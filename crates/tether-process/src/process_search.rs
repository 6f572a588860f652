//! Finds processes: the descendants of one, those with a file open, those with an argument.
//!
//! Each is opened by its pidfd first and checked second. PID 0, 1, our own, and those of other users are never
//! returned.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::platform::{self, ProcessFacts};
use super::process_handle::Process;

/// How long a killed process may take to exit; longer means that it hangs in the kernel.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// How the names of programs begin that listen for a debugger themselves.
const DEBUGGED_PROGRAMS: [&str; 11] =
    ["node", "java", "python", "ruby", "dlv", "lldb-server", "gdbserver", "chrome", "chromium", "electron", "code"];

/// The processes of the machine, as they were when they were read.
#[derive(Default)]
pub struct ProcessTable {
    /// By their PID; none: a thread of the kernel, or gone when it was to be read.
    known: BTreeMap<u32, Option<ProcessFacts>>,
}

impl ProcessTable {
    /// Reads them again, but for threads of the kernel and what was started before `start`, in ticks since boot: such a process
    /// is below nothing that was started then or later.
    pub fn read_since(&mut self, start: u64) -> io::Result<()> {
        self.known.retain(|_, known| known.is_none_or(|one| one.start_ticks < start));
        self.read_new()
    }

    /// Reads those only that were not there the last time; the others are as they were.
    pub fn read_new(&mut self) -> io::Result<()> {
        let pids: BTreeSet<u32> = platform::list_pids()?.collect();
        self.known.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            self.known.entry(pid).or_insert_with(|| platform::read_listed_facts(pid));
        }
        Ok(())
    }

    /// The processes of our user below some others, which may have exited since: their descendants, and the members of the
    /// sessions that they lead. `roots` has the start of each by its PID. Roots are returned where they are below others.
    pub fn list_below(&self, roots: &BTreeMap<u32, u64>) -> Vec<ProcessFacts> {
        let everyone: Vec<ProcessFacts> = self.known.values().flatten().copied().collect();
        let (us, me) = (rustix::process::getuid().as_raw(), std::process::id());
        let below = select_below(roots, &everyone).into_iter();
        below.filter(|one| one.uid == us && one.pid != me && !one.zombie).copied().collect()
    }
}

/// A root whose PID is another process's now is left out.
fn select_below<'a>(roots: &BTreeMap<u32, u64>, everyone: &'a [ProcessFacts]) -> Vec<&'a ProcessFacts> {
    let reused = everyone.iter().filter(|one| roots.get(&one.pid).is_some_and(|start| *start != one.start_ticks));
    let reused: HashSet<u32> = reused.map(|one| one.pid).collect();
    let led = |one: &ProcessFacts| {
        !reused.contains(&one.session) && roots.get(&one.session).is_some_and(|start| *start <= one.start_ticks)
    };
    let first: HashSet<u32> = roots.keys().copied().filter(|root| !reused.contains(root)).collect();
    let mut inside: HashSet<u32> = everyone.iter().filter(|one| led(one)).map(|one| one.pid).collect();
    inside.extend(&first);
    add_descendants(&mut inside, everyone);
    let is_below =
        |one: &&ProcessFacts| inside.contains(&one.pid) && (!first.contains(&one.pid) || inside.contains(&one.parent));
    everyone.iter().filter(is_below).collect()
}

/// The running descendants of `root` and the members of the session that it leads, without `root` itself.
pub fn list_tree(root: &Process) -> io::Result<Vec<Process>> {
    let everyone = platform::list_processes()?;
    // Until `root` is reaped its PID is its own, so that no other process's children are taken for its children.
    let known = everyone.iter().any(|one| one.pid == root.pid() && one.start_ticks == root.start_ticks());
    if !known {
        return Ok(Vec::new());
    }
    let members = select_members(root.pid(), &everyone);
    Ok(members.into_iter().filter_map(open_if_ours).collect())
}

fn select_members(root: u32, everyone: &[ProcessFacts]) -> Vec<&ProcessFacts> {
    let session = everyone.iter().filter(|one| one.session == root).map(|one| one.pid);
    let mut inside: HashSet<u32> = session.chain([root]).collect();
    add_descendants(&mut inside, everyone);
    everyone.iter().filter(|one| one.pid != root && inside.contains(&one.pid)).collect()
}

/// Adds the descendants of all processes in `inside`.
pub(super) fn add_descendants(inside: &mut HashSet<u32>, everyone: &[ProcessFacts]) {
    loop {
        let before = inside.len();
        let found = everyone.iter().filter(|one| inside.contains(&one.parent)).map(|one| one.pid);
        inside.extend(found.collect::<Vec<u32>>());
        if inside.len() == before {
            return;
        }
    }
}

/// Opens the process of these facts, unless it has exited, is another user's, or is our own.
pub(super) fn open_if_ours(facts: &ProcessFacts) -> Option<Process> {
    let ours = facts.uid == rustix::process::getuid().as_raw() && !facts.zombie;
    let process = ours.then(|| Process::open(facts.pid).ok())??;
    (process.start_ticks() == facts.start_ticks).then_some(process)
}

/// The running processes of our user that have a file below `folder` open.
pub fn find_file_holders_below(folder: &Path) -> io::Result<Vec<Process>> {
    Ok(platform::list_holders_below(folder)?.iter().filter_map(open_if_ours).collect())
}

/// The running processes of our user with one of `words` on their command line.
pub fn find_by_argument(words: &[&OsStr]) -> io::Result<Vec<Process>> {
    let has_one = |one: &&ProcessFacts| {
        platform::read_arguments(one.pid).is_ok_and(|line| line.iter().any(|word| words.contains(&word.as_os_str())))
    };
    let everyone = platform::list_processes()?;
    Ok(everyone.iter().filter(has_one).filter_map(|one| open_if_ours(one).filter(|_| has_one(&one))).collect())
}

/// The running program of our user that listens for its debugger on a port of this machine. `None`: the host is another one, nobody
/// listens, several processes share the socket (such as a program and a child that it has just forked), or who listens is no
/// runtime or debug server: a tunnel such as `ssh -L` ends without the program behind it.
pub fn find_listening_program(host: &str, port: u16) -> Option<Process> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host != "localhost" && !host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()) {
        return None;
    }
    let listeners = platform::list_listeners(port).ok()?;
    let [pid] = listeners.as_slice() else { return None };
    let program = platform::program_path(*pid)?;
    let name = program.file_name()?.to_string_lossy().into_owned();
    let is_debugged = DEBUGGED_PROGRAMS.iter().any(|start| name.starts_with(start));
    platform::read_facts(*pid).ok().filter(|_| is_debugged).and_then(|facts| open_if_ours(&facts))
}

/// Waits until all have exited. Errors: one has not after 2 s.
pub async fn wait_until_gone(processes: &[Process]) -> io::Result<()> {
    for process in processes {
        let error = format!("process {} does not exit", process.pid());
        timeout(GONE_WITHIN, process.wait_for_exit())
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pid: u32, parent: u32, session: u32) -> ProcessFacts {
        ProcessFacts { pid, parent, session, uid: 1000, start_ticks: 1, zombie: false, is_fork: false }
    }

    #[test]
    fn a_table_has_those_that_were_started_since_it_was_read() {
        let mut table = ProcessTable::default();
        table.read_new().unwrap();
        let me = std::process::id();
        let own = BTreeMap::from([(me, platform::read_facts(me).unwrap().start_ticks)]);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let has_child = |table: &ProcessTable| table.list_below(&own).iter().any(|one| one.pid == child.id());
        assert!(!has_child(&table));
        table.read_new().unwrap();
        assert!(has_child(&table));
        child.kill().unwrap();
        child.wait().unwrap();
        let pid = child.id();
        table.read_new().unwrap();
        assert!(table.list_below(&own).iter().all(|one| one.pid != pid));
    }

    #[test]
    fn those_below_are_descendants_and_members_of_sessions_also_when_the_root_is_gone() {
        let everyone = [
            facts(10, 1, 10),
            facts(11, 10, 10),
            facts(12, 11, 12),
            facts(13, 1, 10), // an orphan
            facts(14, 13, 14),
            facts(20, 1, 20), // strangers
            facts(21, 20, 20),
        ];
        let check = |roots: &[(u32, u64)], everyone: &[ProcessFacts], expect: &[u32]| {
            let pids: Vec<u32> =
                select_below(&roots.iter().copied().collect(), everyone).iter().map(|one| one.pid).collect();
            assert_eq!(pids, expect, "{roots:?}");
        };
        check(&[(10, 1)], &everyone, &[11, 12, 13, 14]);
        check(&[(10, 1), (11, 1)], &everyone, &[11, 12, 13, 14]);
        check(&[(10, 1)], &everyone[2..], &[13, 14]);
        check(&[(10, 1), (12, 1)], &everyone[2..], &[13, 14]);
        // The PID is a stranger's now.
        check(&[(20, 0)], &everyone, &[]);
    }

    #[tokio::test]
    async fn a_listener_is_found_only_where_no_other_process_shares_its_socket() {
        let listening = "import os, socket, sys; it = socket.create_server(('127.0.0.1', 0)); \
                         child = os.fork() if sys.argv[1] == 'shared' else 1; \
                         child and print(it.getsockname()[1], flush=True); sys.stdin.read()";
        for (how, is_found) in [("alone", true), ("shared", false)] {
            let mut command = std::process::Command::new("python3");
            command
                .args(["-c", listening, how])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(&mut io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
            let found = find_listening_program("127.0.0.1", line.trim().parse().unwrap()).map(|process| process.pid());
            assert_eq!(found, is_found.then_some(child.id()), "{how}");
            assert!(find_listening_program("192.0.2.1", line.trim().parse().unwrap()).is_none());
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn a_listener_that_is_no_runtime_is_not_the_program_behind_it() {
        // As a tunnel does: this test program listens.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(find_listening_program("localhost", listener.local_addr().unwrap().port()).is_none());
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
}
