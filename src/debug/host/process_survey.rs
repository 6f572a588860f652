//! Finds the processes below a program that run what some adapter debugs, and are not debugged.
//!
//! ```text
//!  an interpreter is started ──┐
//!  a result is made ───────────┼─▶ look: the tree below the targets ─▶ candidates ─▶ judge: not a target, and cannot become one
//!  the program has ended ──────┘                                                        └─▶ SessionShared::report_undebugged
//! ```
//! A child that may still be debugged is not reported: until it has ended, it has some time to connect. What is not seen: one that
//! has ended before it was looked at and runs no interpreter of `PATH` or of the program, and a fork that ends within a second.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_base::secret_values::SecretValues;
use tether_base::sync::{lock, run_blocking};
use tether_process::{LAUNCH_ID, ProcessFacts, ProcessTable, ProgramWatch, command_line, is_runtime};
use tokio::time::interval;
use tracing::warn;

use crate::adapters::{ADAPTERS, Adapter, DebugTarget, DebuggedChildren, ProcessRuntime};
use crate::debug::session::session_shared::SessionShared;
use crate::debug::session::snapshot::SessionSnapshot;
use crate::debug::session::undebugged_processes::UndebuggedProcess;

/// How long a child that runs may take to be debugged.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// A fork may be about to run another program until it is that old.
const FORK_TIME: Duration = Duration::from_secs(1);
/// When the tree is looked at after the start of an interpreter: a process shows its new program a moment later.
const LOOKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(2), Duration::from_millis(4), Duration::from_millis(10)];
/// How many programs are watched, at most.
const MAX_WATCHED: usize = 64;
const WITHOUT_ENVIRONMENT: &str = "without the program's environment";
/// Where a shell finds programs whose environment was cleared.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is looked for below one program of a session.
pub(super) struct ProcessSurvey {
    shared: Arc<SessionShared>,
    /// The index of the program.
    program: usize,
    adapter: &'static Adapter,
    children: DebuggedChildren,
    /// It was started for the session, so that its children inherit the launch id.
    is_launched: bool,
    places: Arc<SurveyPlaces>,
    /// Its `PATH`.
    path: OsString,
    secrets: SecretValues,
    seen: Arc<Mutex<SeenProcesses>>,
}

/// The folders by which processes are told apart.
struct SurveyPlaces {
    workspace: PathBuf,
    /// Where the adapter's own scripts lie: processes that run one are not the program's.
    tool_folder: Option<PathBuf>,
}

/// What the looks have found.
#[derive(Default)]
struct SeenProcesses {
    /// The start of each process that is debugged, or was started for that, by its PID.
    roots: BTreeMap<u32, u64>,
    /// The process of the adapter, if one was started: what that starts is the program, whatever the adapter says of it.
    adapter: Option<u32>,
    processes: ProcessTable,
    /// By their PID and start.
    candidates: BTreeMap<(u32, u64), Candidate>,
}

/// A process that runs what some adapter debugs.
#[derive(Clone)]
struct Candidate {
    facts: ProcessFacts,
    program: PathBuf,
    runtime: ProcessRuntime,
    /// Whole: it is masked before it is cut.
    command: String,
    /// It has inherited the launch id.
    has_environment: bool,
    /// The process that has started it, and its name, if that is another program of the tree.
    through: Option<(u32, String)>,
    is_running: bool,
    /// Why its options deny it a debugger.
    denied: Option<&'static str>,
}

/// What a survey is of.
pub(super) struct SurveyScope<'a> {
    /// The index of the program in its session.
    pub program: usize,
    pub adapter: &'static Adapter,
    pub target: &'a DebugTarget,
    /// The process of the program that was started or attached to.
    pub first: Option<u32>,
    /// The process of the adapter, if one was started.
    pub adapter_process: Option<u32>,
    /// As [`SurveyPlaces::tool_folder`].
    pub tool_folder: Option<PathBuf>,
}

impl ProcessSurvey {
    pub fn new(shared: Arc<SessionShared>, scope: SurveyScope<'_>) -> ProcessSurvey {
        let SurveyScope { program, adapter, target, first, adapter_process, tool_folder } = scope;
        let mut seen = SeenProcesses { adapter: adapter_process, ..SeenProcesses::default() };
        first.into_iter().chain(adapter_process).for_each(|pid| seen.add_root(pid));
        let path = target.env().get("PATH").cloned().flatten().map(OsString::from);
        ProcessSurvey {
            shared,
            program,
            adapter,
            children: (adapter.children)(target),
            is_launched: !target.is_attach(),
            places: Arc::new(SurveyPlaces {
                workspace: target.cwd.canonicalize().unwrap_or_else(|_| target.cwd.clone()),
                tool_folder,
            }),
            path: path.or_else(|| std::env::var_os("PATH")).unwrap_or_default(),
            secrets: target.secrets.clone(),
            seen: Arc::new(Mutex::new(seen)),
        }
    }

    /// The processes of the program's targets, ended or not.
    fn own_targets(&self) -> Vec<u32> {
        let snapshot = self.shared.snapshot.borrow();
        let own = snapshot.targets.iter().filter(|target| target.program == self.program);
        own.filter_map(|target| target.pid).collect()
    }

    /// Looks at the processes below the program, and reports those that are not debugged.
    pub async fn run(&self) {
        let own = self.own_targets();
        let (seen, places) = (Arc::clone(&self.seen), Arc::clone(&self.places));
        let looked = run_blocking(move || {
            let mut seen = lock(&seen);
            own.iter().for_each(|pid| seen.add_root(*pid));
            let first = seen.roots.values().copied().min().unwrap_or_default();
            seen.processes.read_since(first)?;
            seen.look(&own, &places);
            Ok::<_, io::Error>(seen.candidates.values().cloned().collect())
        });
        let candidates = looked.await.unwrap_or_else(|cause| {
            warn!("cannot read the processes of the program: {cause}");
            Vec::new()
        });
        let snapshot = self.shared.snapshot.borrow().clone();
        let mut debugged = self.shared.with_state(|state| state.debugged.clone());
        debugged.extend(snapshot.targets.iter().filter_map(|target| target.pid));
        for candidate in candidates.iter().filter(|it| !debugged.contains(&it.facts.pid)) {
            if let Some(reason) = self.judge(candidate, &snapshot) {
                let process = UndebuggedProcess {
                    pid: candidate.facts.pid,
                    command: command_line(&[self.secrets.mask(&candidate.command).into()]),
                    reason,
                    runtime: Some(candidate.runtime),
                };
                // What is attached to may have had its helpers for long.
                self.shared.report_undebugged(process, self.is_launched);
            }
        }
    }

    /// Why a process that is no target is not debugged, as far as that is proven. `None`: it may be, or it still may become one.
    fn judge(&self, it: &Candidate, snapshot: &SessionSnapshot) -> Option<Option<String>> {
        if !it.runtime.is_of(self.adapter) {
            return Some(Some(format!("{} debugs no {}", self.adapter.name, it.runtime.language())));
        }
        let without_environment = self.is_launched && !it.has_environment;
        match self.children {
            DebuggedChildren::None(why) => return Some(Some(why.to_owned())),
            DebuggedChildren::ForkedOnly(why) => return (!it.facts.is_fork).then(|| Some(why.to_owned())),
            DebuggedChildren::WithEnvironment if without_environment => {
                return Some(Some(format!("it was started {WITHOUT_ENVIRONMENT}")));
            }
            DebuggedChildren::WithEnvironment | DebuggedChildren::StartedByProgram => {}
        }
        if it.is_running && it.facts.age() < CONNECT_TIME && !snapshot.is_program_ended(self.program) {
            return None;
        }
        if self.children != DebuggedChildren::StartedByProgram {
            return Some(it.denied.map(str::to_owned));
        }
        let through = it.through.as_ref().filter(|(pid, _)| snapshot.find_process(*pid).is_none());
        let through = through.map(|(_, name)| format!("it was started through `{name}`"));
        Some(match (through, without_environment) {
            (Some(through), true) => Some(format!("{through}, {WITHOUT_ENVIRONMENT}")),
            (None, true) => Some(format!("it was started {WITHOUT_ENVIRONMENT}, and no debugger was attached to it")),
            (through, false) => through,
        })
    }

    /// Looks each time an interpreter is started. Never returns.
    pub async fn watch(&self) {
        if let Err(cause) = self.watch_starts().await {
            self.shared.with_state(|state| state.undebugged.set_blind(cause.to_string()));
        }
        std::future::pending().await
    }

    /// Returns when enough processes are known. Errors: the starts of programs cannot be watched.
    async fn watch_starts(&self) -> io::Result<()> {
        let watch = ProgramWatch::open()?;
        let path = self.path.clone();
        for program in run_blocking(move || list_runtimes(&path)).await {
            add_program(&watch, &program)?;
        }
        let mut snapshots = self.shared.snapshot.subscribe();
        let mut known = BTreeSet::new();
        loop {
            let targets: Vec<u32> = snapshots.borrow_and_update().targets.iter().filter_map(|it| it.pid).collect();
            for program in targets.into_iter().filter(|pid| known.insert(*pid)).filter_map(tether_process::program_path)
            {
                add_program(&watch, &program)?;
            }
            tokio::select! {
                started = watch.started() => started?,
                changed = snapshots.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Ok(()),
                },
            }
            self.look_again().await;
            if self.shared.with_state(|state| state.undebugged.is_full()) {
                return Ok(());
            }
        }
    }

    /// Looks at new processes now, and again a moment later; and then at all. The first looks are not put off to another thread: a
    /// short script has ended when that begins. They take a small part of the time that an interpreter takes to start.
    async fn look_again(&self) {
        let own = self.own_targets();
        let mut pauses = interval(CONNECT_TIME);
        for pause in LOOKS {
            pauses.reset_after(pause);
            pauses.tick().await;
            let mut seen = lock(&self.seen);
            if seen.processes.read_new().is_ok() {
                seen.look(&own, &self.places);
            }
        }
        self.run().await;
    }
}

impl SeenProcesses {
    fn add_root(&mut self, pid: u32) {
        if !self.roots.contains_key(&pid)
            && let Ok(facts) = tether_process::read_facts(pid)
        {
            self.roots.insert(pid, facts.start_ticks);
        }
    }

    /// Looks below the roots, of which these are.
    fn look(&mut self, targets: &[u32], places: &SurveyPlaces) {
        targets.iter().for_each(|pid| self.add_root(*pid));
        let below = self.processes.list_below(&self.roots);
        let running: HashSet<(u32, u64)> = below.iter().map(|one| (one.pid, one.start_ticks)).collect();
        for (key, known) in &mut self.candidates {
            known.is_running = running.contains(key);
        }
        let started = below.iter().filter(|one| self.adapter == Some(one.parent));
        self.roots.extend(started.map(|one| (one.pid, one.start_ticks)));
        for facts in &below {
            if !self.roots.contains_key(&facts.pid) {
                self.add_candidate(facts, places, &running);
            }
        }
    }

    fn add_candidate(&mut self, facts: &ProcessFacts, places: &SurveyPlaces, running: &HashSet<(u32, u64)>) {
        let (key, is_new_fork) = ((facts.pid, facts.start_ticks), facts.is_fork && facts.age() < FORK_TIME);
        let Some(program) = tether_process::program_path(facts.pid).filter(|_| !is_new_fork) else { return };
        if self.candidates.get(&key).is_some_and(|known| known.program == program) {
            return;
        }
        let Some(found) = read_candidate(facts, program, &places.workspace) else { return };
        let is_helper = |folder: &Path| found.words.iter().skip(1).any(|word| Path::new(word).starts_with(folder));
        if !facts.is_fork && places.tool_folder.as_deref().is_some_and(is_helper) {
            return;
        }
        let is_other = running.iter().any(|(pid, _)| *pid == facts.parent) && !self.roots.contains_key(&facts.parent);
        let through = is_other.then(|| Some((facts.parent, tether_process::read_name(facts.parent)?))).flatten();
        self.candidates.insert(key, Candidate { through, ..found.candidate });
    }
}

/// A process that has just been read.
struct ReadProcess {
    candidate: Candidate,
    words: Vec<OsString>,
}

/// Reads what a process runs. `None`: nothing that an adapter debugs, another debugger has it, or it is gone.
fn read_candidate(facts: &ProcessFacts, program: PathBuf, workspace: &Path) -> Option<ReadProcess> {
    let pid = facts.pid;
    let runtime = ProcessRuntime::of_program(&program, workspace)?;
    // In the middle of an exec it has neither arguments nor an environment.
    let words = tether_process::read_arguments(pid).ok().filter(|words| words.iter().any(|word| !word.is_empty()))?;
    let environment = tether_process::read_environment(pid).ok()?;
    let is_same = tether_process::read_facts(pid).is_ok_and(|now| now.start_ticks == facts.start_ticks && !now.zombie);
    if !is_same || tether_process::is_traced(pid) {
        return None;
    }
    let has_environment = environment.is_some_and(|it| it.contains_key(OsStr::new(LAUNCH_ID)));
    let line = || words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let command = if facts.is_fork { format!("a fork of process {}", facts.parent) } else { line() };
    let (facts, is_running) = (*facts, true);
    let denied = runtime.denied_debugger(&words);
    let candidate = Candidate { facts, program, runtime, command, has_environment, through: None, is_running, denied };
    Some(ReadProcess { candidate, words })
}

/// A program that is gone meanwhile, or that we may not read, is not watched.
fn add_program(watch: &ProgramWatch, program: &Path) -> io::Result<()> {
    match watch.add(program) {
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(()),
        added => added,
    }
}

/// The interpreters in these folders and in those of the system.
fn list_runtimes(path: &OsStr) -> Vec<PathBuf> {
    let is_wanted = |file: &DirEntry| {
        let name = file.file_name();
        ADAPTERS.iter().any(|row| is_runtime(Path::new(&name), row.runtimes))
    };
    let folders = std::env::split_paths(path).chain(std::env::split_paths(DEFAULT_PATH));
    let folders = folders.flat_map(|folder| managed_folders(&folder).into_iter().chain([folder]));
    // On most systems `/bin` is `/usr/bin`.
    let folders: BTreeSet<PathBuf> = folders.filter_map(|folder| folder.canonicalize().ok()).collect();
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    // The folders are resolved: only links are left, and to resolve each file takes long where there are hundreds.
    let resolve = |file: DirEntry| match file.file_type().ok()?.is_symlink() {
        true => file.path().canonicalize().ok(),
        false => Some(file.path()),
    };
    let programs = files.filter(is_wanted).filter_map(resolve);
    let programs: BTreeSet<PathBuf> = programs.collect();
    programs.into_iter().take(MAX_WATCHED).collect()
}

/// Where the programs are that the shims of a version manager start: `ROOT/versions/*/bin` (pyenv, rbenv, nodenv), or
/// `ROOT/installs/*/*/bin` (asdf, mise).
fn managed_folders(folder: &Path) -> Vec<PathBuf> {
    let Some(root) = folder.parent().filter(|_| folder.ends_with("shims")) else { return Vec::new() };
    let list = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let installs = list(&root.join("installs")).into_iter().flat_map(|language| list(&language));
    list(&root.join("versions")).into_iter().chain(installs).map(|version| version.join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_of_a_path_and_behind_shims_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file.canonicalize().unwrap()
        };
        let expected = ["shims/python3", "versions/3.12.1/bin/python3.12", "installs/ruby/3.3.0/bin/ruby"].map(write);
        write("shims/python3-config");
        std::os::unix::fs::symlink(&expected[1], expected[1].with_file_name("python3")).unwrap();
        let found = list_runtimes(folder.path().join("shims").as_os_str());
        let own: Vec<&PathBuf> = found.iter().filter(|file| file.starts_with(folder.path())).collect();
        assert_eq!(own.len(), expected.len(), "{own:?}");
        assert!(expected.iter().all(|file| own.contains(&file)), "{own:?}");
    }
}
