//! All debug sessions of a workspace.
//!
//! Does not depend on the wire API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::future::{FutureExt, join_all};
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::{TaskSender, lock, open_task_set};
use tokio::sync::watch;

use super::ended_sessions::expired_ids;
use super::managed_session::ManagedSession;
use super::remote_sessions::RemoteSessions;
use super::session_request::{SessionRequest, locate_adapter};
use super::start::random_suffix;
use super::store::{HostRecord, HostedEntry, LeftoverSessions, SessionStore, StoredSession, session_number};
use crate::adapters::{AdapterSearch, wait_for_late_workers, waiting_command};
use crate::debug::breakpoints::{BreakpointStore, StoredBreakpoints};
use crate::debug::file_names::FileNames;
use crate::timeline::Timeline;
use crate::vocabulary::RunState;
use crate::workspace::workspace_programs::ProgramConsent;

/// All sessions of a workspace; clones share them.
#[derive(Clone)]
pub struct SessionRegistry(pub(in crate::debug) Arc<RegistryInner>);

/// What the clones share.
pub(in crate::debug) struct RegistryInner {
    pub(in crate::debug) workspace: PathBuf,
    consented_programs: fn(&Path) -> ProgramConsent,
    /// The prefix of the launch ids of all sessions.
    pub(in crate::debug) launch_id_prefix: String,
    /// The launch id of the session, in a process that hosts one.
    pub(in crate::debug) host: Option<Arc<str>>,
    pub(in crate::debug) breakpoints: BreakpointStore,
    file_names: FileNames,
    /// The breakpoints that the sessions here have been told of.
    pub(in crate::debug) sent_breakpoints: Mutex<Arc<StoredBreakpoints>>,
    /// The sessions in other processes.
    pub(in crate::debug) remote: OnceLock<Arc<dyn RemoteSessions>>,
    pub(in crate::debug) store: Arc<SessionStore>,
    /// The sessions of an earlier supervisor, until they are recovered.
    pub(in crate::debug) leftover: Mutex<LeftoverSessions>,
    /// The ids of the sessions of an earlier supervisor that are not recovered yet; whether each may be attached to again.
    pub(in crate::debug) unrecovered: watch::Sender<BTreeMap<String, bool>>,
    table: Mutex<SessionTable>,
    /// Runs tasks as long as the supervisor.
    pub(in crate::debug) tasks: TaskSender,
    /// What happens in the workspace.
    pub(in crate::debug) timeline: Timeline,
    /// Rises with each change of any session.
    pub(in crate::debug) changed: watch::Sender<u64>,
}

/// Where a registry is.
struct RegistryPlace<'a> {
    workspace: &'a Path,
    timeline: Timeline,
    launch_id_prefix: String,
    host: Option<Arc<str>>,
}

#[derive(Default)]
struct SessionTable {
    last_number: u32,
    sessions: Vec<ManagedSession>,
}

impl SessionRegistry {
    /// The sessions of a workspace, and the future that drives them, to be spawned. Dropping that ends them all.
    /// `launch_id_prefix` begins the launch ids of their processes. `consented_programs` reads which programs of the
    /// workspace the user has consented to run. With a `folder` the sessions and the breakpoints are stored there for
    /// the next supervisor, and those of the last one wait for [`SessionRegistry::recover_sessions`].
    pub fn open(
        folder: Option<&Path>,
        workspace: &Path,
        launch_id_prefix: String,
        consented_programs: fn(&Path) -> ProgramConsent,
    ) -> (SessionRegistry, impl Future<Output = ()> + Send + 'static) {
        let breakpoints = folder.map_or_else(BreakpointStore::in_memory, BreakpointStore::open);
        let place = RegistryPlace {
            workspace,
            timeline: folder.map(Timeline::open).unwrap_or_default(),
            launch_id_prefix,
            host: None,
        };
        Self::open_in(place, SessionStore::open(folder), breakpoints, consented_programs)
    }

    /// As [`SessionRegistry::open`], for the process that hosts one session, whose launch id this is: it shares the breakpoints in
    /// the folder, and stores no sessions.
    pub fn open_in_host(
        folder: &Path,
        workspace: &Path,
        launch_id: &str,
        consented_programs: fn(&Path) -> ProgramConsent,
    ) -> (SessionRegistry, impl Future<Output = ()> + Send + 'static) {
        let place = RegistryPlace {
            workspace,
            timeline: Timeline::open(folder),
            launch_id_prefix: launch_id.to_owned(),
            host: Some(Arc::from(launch_id)),
        };
        Self::open_in(place, SessionStore::open(None), BreakpointStore::open(folder), consented_programs)
    }

    fn open_in(
        RegistryPlace { workspace, timeline, launch_id_prefix, host }: RegistryPlace<'_>,
        (store, leftover): (SessionStore, LeftoverSessions),
        breakpoints: BreakpointStore,
        consented_programs: fn(&Path) -> ProgramConsent,
    ) -> (SessionRegistry, impl Future<Output = ()> + Send + 'static) {
        let (tasks, driver) = open_task_set();
        let inner = RegistryInner {
            workspace: workspace.to_owned(),
            consented_programs,
            launch_id_prefix,
            host,
            sent_breakpoints: Mutex::new(breakpoints.current()),
            file_names: FileNames::of_workspace(workspace, breakpoints.clone()),
            breakpoints,
            remote: OnceLock::new(),
            table: Mutex::new(SessionTable { last_number: leftover.last, sessions: Vec::new() }),
            unrecovered: watch::Sender::new(leftover.unrecovered_ids()),
            store: Arc::new(store),
            leftover: Mutex::new(leftover),
            tasks,
            timeline,
            changed: watch::Sender::default(),
        };
        (SessionRegistry(Arc::new(inner)), driver)
    }

    /// From now on, breakpoints are sent to these, too.
    pub fn reach_other_processes(&self, remote: Arc<dyn RemoteSessions>) {
        let _ = self.0.remote.set(remote);
    }

    /// The breakpoints as they are now.
    pub fn current_breakpoints(&self) -> Arc<StoredBreakpoints> {
        self.0.breakpoints.current()
    }

    /// The folder of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.0.workspace
    }

    /// The user's own names for the files of the workspace.
    pub fn file_names(&self) -> &FileNames {
        &self.0.file_names
    }

    /// The same for what a session shows, whose breakpoints may be its own.
    pub fn file_names_of(&self, managed: &ManagedSession) -> FileNames {
        self.0.file_names.with_breakpoints(managed.session.shared.breakpoints.clone())
    }

    /// What happens in the workspace.
    pub fn timeline(&self) -> &Timeline {
        &self.0.timeline
    }

    /// A count that rises with each change of any session.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// The sessions of an earlier supervisor that are not recovered yet; whether each may be attached to again.
    pub fn watch_unrecovered(&self) -> watch::Receiver<BTreeMap<String, bool>> {
        self.0.unrecovered.subscribe()
    }

    /// All sessions that are readable, the oldest first.
    pub fn list_sessions(&self) -> Vec<ManagedSession> {
        let table = lock(&self.0.table);
        let expired = expired_ids(&table.sessions, now_ms());
        table.sessions.iter().filter(|it| !expired.contains(&it.id)).cloned().collect()
    }

    /// Adds a session, or replaces the one that had its id. Expired ones are evicted.
    pub(in crate::debug) fn insert_session(&self, session: ManagedSession) {
        let mut table = lock(&self.0.table);
        let expired = expired_ids(&table.sessions, now_ms());
        table.sessions.retain(|it| !expired.contains(&it.id));
        match table.sessions.iter_mut().find(|it| it.id == session.id) {
            Some(before) => *before = session,
            None => table.sessions.push(session),
        }
        drop(table);
        self.0.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Removes a session from the list.
    pub(in crate::debug) fn remove_session(&self, id: &str) {
        lock(&self.0.table).sessions.retain(|it| it.id != id);
    }

    /// The id of a new session.
    pub(in crate::debug) fn next_id(&self) -> String {
        let mut table = lock(&self.0.table);
        table.last_number = table.last_number.saturating_add(1);
        format!("d{}", table.last_number)
    }

    /// The sessions that have not ended.
    pub fn active_sessions(&self) -> Vec<ManagedSession> {
        self.list_sessions().into_iter().filter(|it| !it.is_ended()).collect()
    }

    /// The session with that id; without one the only active session, or, if none is active, the one that ended last.
    pub fn find_session(&self, id: Option<&str>) -> Result<ManagedSession> {
        choose_session(self.list_sessions(), id)
    }

    /// Where adapters are searched for now: the user may have consented to more since the last search.
    pub(in crate::debug) fn adapter_search(&self) -> Result<AdapterSearch> {
        AdapterSearch::for_workspace(&self.0.workspace, (self.0.consented_programs)(&self.0.workspace))
    }

    /// A command of somebody else's as it is started to wait for its debugger, and the language by which that is found. Errors: it cannot
    /// be debugged like this.
    pub fn plan_waiting_command(&self, command: &[String]) -> Result<(Vec<String>, String)> {
        let planned = waiting_command(command, &self.adapter_search()?)?;
        Ok((planned.argv, planned.language.to_owned()))
    }

    /// Checks that the adapter of a request is known and installed, and returns its name. Nothing is started.
    pub fn check_adapter(&self, request: &SessionRequest) -> Result<&'static str> {
        Ok(locate_adapter(request, self.adapter_search()?)?.0.name)
    }

    /// Stores a session that a process of its own is about to host, for the next supervisor to find: `record_host` completes it.
    pub async fn store_hosted(&self) -> HostedEntry {
        let id = self.next_id();
        let launch_id = self.new_launch_id(&id);
        self.store_entry(unrecorded_session(id, launch_id, None)).await
    }

    /// As [`SessionRegistry::store_hosted`], for a session that was lost: it keeps its id.
    pub async fn store_hosted_again(&self, lost: &StoredSession) -> HostedEntry {
        let StoredSession { id, adapter, request, .. } = lost.clone();
        let launch_id = self.new_launch_id(&id);
        self.store_entry(StoredSession { adapter, request, ..unrecorded_session(id, launch_id, None) }).await
    }

    /// The launch id of the processes of a session that is about to start.
    pub(in crate::debug) fn new_launch_id(&self, session_id: &str) -> String {
        format!("{}-{session_id}-{:08x}", self.0.launch_id_prefix, random_suffix())
    }

    async fn store_entry(&self, entry: StoredSession) -> HostedEntry {
        let guard = self.0.store.add_session(entry.clone()).await;
        HostedEntry { entry, guard: Some(guard) }
    }

    /// Records what a hosted session debugs. When this returns, it is in the file.
    pub async fn record_request(&self, hosted: &mut HostedEntry, adapter: &str, request: &SessionRequest) {
        (hosted.entry.adapter, hosted.entry.request) = (adapter.to_owned(), request.without_environment());
        if request.debug_target.is_listener() {
            hosted.entry.loss.push_str(", and what was attached to could not be attached to again");
        }
        self.replace_hosted(hosted).await;
    }

    /// Records that a hosted session has ended: only its host knows more of it.
    pub async fn record_end(&self, hosted: &mut HostedEntry) {
        hosted.entry.ended = true;
        self.replace_hosted(hosted).await;
    }

    async fn replace_hosted(&self, hosted: &mut HostedEntry) {
        let replaced = self.0.store.add_session(hosted.entry.clone()).await;
        if let Some(first) = hosted.guard.replace(replaced) {
            first.keep();
        }
    }

    /// Records which process hosts a session. When this returns, it is in the file.
    pub async fn record_host(&self, hosted: &mut HostedEntry, host: HostRecord) {
        hosted.entry.host = Some(host);
        self.replace_hosted(hosted).await;
    }

    /// The stored entry of a session that an earlier supervisor has started in a host.
    pub fn adopt_hosted(&self, entry: StoredSession) -> HostedEntry {
        let guard = self.0.store.guard_stored(&entry);
        HostedEntry { entry, guard: Some(guard) }
    }

    /// Has hosts recovered that run and are not stored, such as those of a supervisor whose disk was full: their launch ids, and what
    /// they are.
    pub fn add_unstored_hosts(&self, running: Vec<(String, HostRecord)>) {
        let prefix = format!("{}-", self.0.launch_id_prefix);
        let mut leftover = lock(&self.0.leftover);
        for (launch_id, host) in running {
            let id = launch_id.strip_prefix(&prefix).and_then(|it| it.split('-').next());
            let Some(id) = id.map(str::to_owned) else { continue };
            leftover.running.insert(launch_id.clone());
            match leftover.sessions.iter_mut().find(|it| it.launch_id == launch_id) {
                Some(stored) => stored.host = stored.host.take().or(Some(host)),
                None => {
                    let mut table = lock(&self.0.table);
                    table.last_number = table.last_number.max(session_number(&id));
                    leftover.sessions.push(unrecorded_session(id, launch_id, Some(host)));
                }
            }
        }
        self.0.unrecovered.send_replace(leftover.unrecovered_ids());
    }

    /// Records that a program runs on without its session.
    pub fn record_released(&self, launch_id: &str) {
        self.0.store.add_released(launch_id);
    }

    /// Raises the count of [`SessionRegistry::watch`].
    pub fn report_change(&self) {
        self.0.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Runs a task as long as the supervisor.
    pub fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The receiver exists as long as the supervisor.
        let _ = self.0.tasks.send(task.boxed());
    }

    /// Ends all sessions, detaching from programs that were attached to.
    pub async fn end_all(&self) {
        let programs = self.active_sessions().into_iter().flat_map(|it| it.programs());
        let launch_ids: Vec<String> = programs.map(|it| it.launch_id).collect();
        self.0
            .store
            .close_store("its supervisor was ended, and the program that it had launched with it", launch_ids)
            .await;
        join_all(self.active_sessions().iter().map(|it| it.stop(None))).await;
        wait_for_late_workers().await;
    }
}

/// What tells the sessions of a list apart.
pub trait SessionEntry {
    /// The session's id.
    fn id(&self) -> &str;
    /// Its name, for readers.
    fn name(&self) -> &str;
    /// What it is doing.
    fn run_state(&self) -> RunState;
    /// Whether it has ended.
    fn is_ended(&self) -> bool;
    /// When the last of it was gone, in epoch ms.
    fn ended_at(&self) -> Option<u64>;
}

impl SessionEntry for ManagedSession {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.request.name
    }

    fn run_state(&self) -> RunState {
        ManagedSession::run_state(self)
    }

    fn is_ended(&self) -> bool {
        ManagedSession::is_ended(self)
    }

    fn ended_at(&self) -> Option<u64> {
        ManagedSession::ended_at(self)
    }
}

/// What is stored of a session of which nothing else is known yet.
fn unrecorded_session(id: String, launch_id: String, host: Option<HostRecord>) -> StoredSession {
    StoredSession {
        id,
        adapter: String::new(),
        request: SessionRequest::default(),
        launch_id,
        started_at: now_ms(),
        listed: true,
        loss: "its session host has ended".to_owned(),
        ended: false,
        host,
    }
}

/// The session with that id; without one the only active session, or, if none is active, the one that ended last.
pub fn choose_session<S: SessionEntry + Clone>(all: Vec<S>, id: Option<&str>) -> Result<S> {
    if let Some(id) = id {
        return all.iter().find(|it| it.id() == id).cloned().ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, format!("there is no debug session {id:?}"));
            match describe_sessions(&all) {
                names if names.is_empty() => error.hint("`tether debug launch PROGRAM` starts one"),
                names => error.hint(format!("there are: {names}")),
            }
        });
    }
    let active: Vec<S> = all.iter().filter(|it| !it.is_ended()).cloned().collect();
    match active.as_slice() {
        [only] => Ok(only.clone()),
        [] => all.into_iter().max_by_key(|it| it.ended_at().unwrap_or(u64::MAX)).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no debug session")
                .hint("`tether debug launch PROGRAM` starts one")
        }),
        several => {
            let error = Error::usage("there are several debug sessions, and none is named");
            Err(error.hint(format!("name one of: {}", describe_sessions(several))))
        }
    }
}

fn describe_sessions(all: &[impl SessionEntry]) -> String {
    let named = all.iter().map(|it| format!("{} ({}, {})", it.id(), it.name(), it.run_state().name()));
    named.collect::<Vec<_>>().join(", ")
}
