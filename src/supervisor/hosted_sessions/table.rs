//! All debug sessions in hosts: started, found again, lost; and the breakpoints over all of them.
//!
//! ```text
//!  stored ─▶ host started ─▶ host stored ─▶ connected ─▶ session started ─▶ … ─▶ session ended ─▶ expired: host ends
//!                                              ▲                │
//!   an earlier supervisor's ── proven ─────────┘                └─ the host ends before it: lost, with the reason
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tether_base::bounded_file;
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_process::Process;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::empty_host::{EXIT_TIMEOUT, EmptyHost, HostParts, end_host, host_record};
use super::host_link::{HostLink, silent_host};
use super::host_start::start_host;
use super::hosted_session::HostedSession;
use crate::api::OperationParams;
use crate::api::debug::breakpoints::{BreakpointReport, WatchpointSetParams};
use crate::config::TestRunner;
use crate::debug::{
    HostReunion, HostedEntry, RemoteSessions, SessionBindings, SessionHosts, SessionRegistry, SessionRequest,
    StoredSession, expired_sessions,
};
use crate::session_host::facts::SessionFacts;
use crate::session_host::loopback_listener::OpenedPort;
use crate::session_host::protocol::{
    BreakpointsParams, EditorStart, HelloResult, HostedRequest, JOIN, JoinParams, SEND_BREAKPOINTS, START, StartParams,
    StartResult,
};
use crate::session_host::server::panic_note;
use crate::supervisor::paths::SupervisorPaths;
use crate::vocabulary::{DataAccess, RunState};

/// More of a panic is not shown, in bytes.
const MAX_PANIC_NOTE: u64 = 1000;
/// How long the tasks after sessions may take, when all of them are ended at once.
const AFTER_END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an adapter may take to be sent breakpoints, over all its requests.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// All sessions in hosts; clones share them.
#[derive(Clone)]
pub struct HostedSessions(Arc<HostedInner>);

struct HostedInner {
    paths: SupervisorPaths,
    /// The program that is a host.
    program: PathBuf,
    /// Those in this process, and what is stored.
    sessions: SessionRegistry,
    table: Mutex<BTreeMap<String, HostedSlot>>,
    /// Hosts whose editors have not said yet what they debug, by their launch ids.
    for_editors: Mutex<BTreeMap<String, Arc<EmptyHost>>>,
    editor_starts: OnceLock<EditorStarter>,
    /// How many tasks after the end of programs are left.
    after_end_tasks: watch::Sender<usize>,
}

/// Starts what an editor debugs, in its host. Returns what is to be said of the start.
pub type EditorStarter =
    Box<dyn Fn(Arc<EmptyHost>, EditorStart) -> BoxFuture<'static, Result<Vec<String>>> + Send + Sync>;

/// What a session that is being started has taken over from its host: it is given back unless it starts.
struct StartingHost<'a> {
    host: &'a EmptyHost,
    parts: Option<HostParts>,
}

impl StartingHost<'_> {
    fn complete(mut self) -> Option<HostParts> {
        self.parts.take()
    }
}

impl Drop for StartingHost<'_> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.host.put_back(parts);
        }
    }
}

/// A session to start.
pub struct SessionStart {
    /// What it debugs.
    pub request: SessionRequest,
    /// What runs the test, if it is one.
    pub test_runner: Option<TestRunner>,
    /// Further programs follow.
    pub awaits_programs: bool,
}

struct HostedSlot {
    session: Arc<HostedSession>,
    /// Removed from the file when the host has ended.
    entry: HostedEntry,
    bindings: SessionBindings,
}

/// The process of a host.
enum HostProcess {
    Child(Child),
    /// It was started by an earlier supervisor.
    Found(Process),
}

impl HostedSessions {
    /// None yet.
    pub fn new(paths: SupervisorPaths, program: PathBuf, sessions: SessionRegistry) -> HostedSessions {
        let inner = HostedInner {
            paths,
            program,
            sessions: sessions.clone(),
            table: Mutex::default(),
            for_editors: Mutex::default(),
            editor_starts: OnceLock::new(),
            after_end_tasks: watch::Sender::default(),
        };
        let hosted = HostedSessions(Arc::new(inner));
        sessions.reach_other_processes(Arc::new(hosted.clone()));
        hosted
    }

    /// All sessions that are readable.
    pub fn list_sessions(&self) -> Vec<Arc<HostedSession>> {
        let all: Vec<Arc<HostedSession>> = lock(&self.0.table).values().map(|it| Arc::clone(&it.session)).collect();
        let ended_at = |facts: &SessionFacts| facts.status.ended_at.filter(|_| !facts.is_following);
        let ended = all.iter().filter_map(|it| Some((it.read_facts(ended_at)?, it.id.as_str()))).collect();
        let expired = expired_sessions(ended, now_ms());
        let (expired, kept): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|it| expired.contains(&it.id));
        for session in expired {
            lock(&self.0.table).remove(&session.id);
            self.0.sessions.run_task(async move { end_host(&session.link).await });
        }
        kept
    }

    /// The session with this id, if it has not ended.
    pub fn find_active(&self, id: &str) -> Option<Arc<HostedSession>> {
        let session = Arc::clone(&lock(&self.0.table).get(id)?.session);
        (!session.is_ended()).then_some(session)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        lock(&self.0.table).is_empty()
    }

    /// Those of them that have not ended.
    pub fn active_sessions(&self) -> Vec<Arc<HostedSession>> {
        self.list_sessions().into_iter().filter(|it| !it.is_ended()).collect()
    }

    /// Starts a host for a session that is stored, before its first process runs: the next supervisor knows everything that is
    /// started. Errors: it cannot be started.
    async fn open_host(&self, mut entry: HostedEntry) -> Result<EmptyHost> {
        let (sessions, launch_id) = (&self.0.sessions, entry.entry.launch_id.clone());
        let socket = self.0.paths.host_socket(&launch_id);
        let child = start_host(&self.0.program, &self.0.paths, &launch_id, &socket).await?;
        let record = host_record(&child, &socket)?;
        let pid = record.pid;
        sessions.record_host(&mut entry, record).await;
        let (link, _) = self.connect(&socket, &launch_id).await?;
        Ok(EmptyHost::new(self.clone(), link, HostParts { entry, child, pid }))
    }

    /// Starts a session in a host of its own. Errors: it cannot be started; nothing of it is left then.
    pub async fn start_session(&self, start: SessionStart) -> Result<Arc<HostedSession>> {
        // What is wrong in it needs no host.
        self.0.sessions.check_adapter(&start.request)?;
        let entry = self.0.sessions.store_hosted().await;
        self.start_stored(entry, start).await
    }

    async fn start_stored(&self, entry: HostedEntry, start: SessionStart) -> Result<Arc<HostedSession>> {
        let host = self.open_host(entry).await?;
        let started = self.start_in(&host, start).await;
        if started.is_err() {
            host.end().await;
        }
        started
    }

    /// Starts a session in a host that is there. Errors: it cannot be started; the host is as it was.
    pub async fn start_in(&self, host: &EmptyHost, start: SessionStart) -> Result<Arc<HostedSession>> {
        let SessionStart { request, test_runner, awaits_programs } = start;
        let adapter = self.0.sessions.check_adapter(&request)?;
        let taken = || Error::usage("cannot start a debug session in this host").because("it has one already");
        let mut parts = host.take_parts().ok_or_else(taken)?;
        let (id, launch_id) = (parts.entry.entry.id.clone(), parts.entry.entry.launch_id.clone());
        self.0.sessions.record_request(&mut parts.entry, adapter, &request).await;
        let params = StartParams {
            session_id: id.clone(),
            launch_id: launch_id.clone(),
            request: request.clone(),
            secrets: request.debug_target.secrets.clone(),
            test_runner,
            awaits_programs,
        };
        // Ended where the caller is cancelled.
        let starting = StartingHost { host, parts: Some(parts) };
        let started: StartResult = host.link.request(START, &params).await?;
        let HostParts { entry, child, pid } = starting.complete().ok_or_else(taken)?;
        let (request, link) = (Arc::new(request), Arc::clone(&host.link));
        let session = Arc::new(HostedSession { id, request, note: started.note, launch_id, host_pid: pid, link });
        self.insert(Arc::clone(&session), entry, HostProcess::Child(child));
        Ok(session)
    }

    /// Joins a session of an earlier supervisor again, in its host.
    async fn rejoin_host(&self, stored: StoredSession) -> HostReunion {
        let Some(record) = stored.host.clone() else { return HostReunion::Gone };
        let is_same = |process: &Process| process.start_ticks() == record.start_ticks;
        let Some(process) = Process::open(record.pid).ok().filter(is_same) else {
            let _ = std::fs::remove_file(&record.socket);
            return HostReunion::Gone;
        };
        let (link, hello) = match self.connect(&record.socket, &stored.launch_id).await {
            Ok(connected) => connected,
            Err(error) => {
                warn!("{}: {error}", stored.id);
                if error.kind == ErrorKind::TimedOut {
                    return HostReunion::Silent(silent_host("a new supervisor", record.pid));
                }
                return HostReunion::Gone;
            }
        };
        if hello.pid != record.pid {
            warn!("{}: process {} listens in the place of its host", stored.id, hello.pid);
            return HostReunion::Gone;
        }
        let Some(HostedRequest { session_id, mut request, secrets, note }) = hello.session else {
            if hello.has_editor {
                // It has not started anything yet, and is told so when it tries.
                return HostReunion::Joined;
            }
            // Its supervisor has ended while it was being started, which was undone.
            end_host(&link).await;
            return HostReunion::Gone;
        };
        request.debug_target.secrets = secrets;
        let (launch_id, host_pid) = (stored.launch_id.clone(), record.pid);
        info!("{session_id} goes on in its host, process {host_pid}");
        let mut entry = self.0.sessions.adopt_hosted(stored);
        if entry.entry.adapter.is_empty() {
            // It was found by its socket.
            let adapter = link.read_facts(|facts| facts.status.adapter.clone());
            self.0.sessions.record_request(&mut entry, &adapter, &request).await;
        }
        let link = Arc::new(link);
        let session = HostedSession { id: session_id, request: Arc::new(request), note, launch_id, host_pid, link };
        self.insert(Arc::new(session), entry, HostProcess::Found(process));
        HostReunion::Joined
    }

    /// Leaves the sessions to the next supervisor; the hosts of those that have ended are ended.
    pub async fn leave_all(&self) {
        let is_over = |facts: &SessionFacts| facts.is_ended && !facts.is_following && !facts.is_reconnecting;
        // Of one whose host was lost, the next supervisor ends what is left, if this one has not done so yet.
        let is_ended = |it: &Arc<HostedSession>| it.read_facts(is_over) && !it.link.is_closed();
        let (ended, active): (Vec<_>, Vec<_>) = self.list_sessions().into_iter().partition(is_ended);
        {
            // At once: afterwards, the stored sessions are not changed any more.
            let mut table = lock(&self.0.table);
            active.iter().filter_map(|it| table.get_mut(&it.id).map(|slot| slot.entry.keep())).for_each(drop);
            ended.iter().for_each(|it| drop(table.remove(&it.id)));
        }
        join_all(ended.iter().map(|session| end_host(&session.link))).await;
    }

    /// Ends all sessions and their hosts, and waits for that.
    pub async fn end_all(&self) {
        let all = self.list_sessions();
        join_all(all.iter().map(|session| end_host(&session.link))).await;
        let mut changed = self.0.sessions.watch();
        let gone = changed.wait_for(|_| lock(&self.0.table).is_empty());
        let _ = timeout(EXIT_TIMEOUT, gone).await;
        // Such as a `postDebugTask`.
        let mut left = self.0.after_end_tasks.subscribe();
        let _ = timeout(AFTER_END_TIMEOUT, left.wait_for(|count| *count == 0)).await;
    }

    async fn connect(&self, socket: &Path, launch_id: &str) -> Result<(HostLink, HelloResult)> {
        let (sessions, hosts, launch_id) = (self.0.sessions.clone(), self.clone(), launch_id.to_owned());
        let breakpoints_changed = move || {
            let spreading = sessions.clone();
            sessions.run_task(async move { spreading.spread_breakpoints().await });
        };
        let open_session = move |start| {
            let (hosts, launch_id) = (hosts.clone(), launch_id.clone());
            async move { hosts.open_for_editor(&launch_id, start).await }.boxed()
        };
        HostLink::connect(socket, breakpoints_changed, open_session).await
    }

    /// Starts a host for an editor that is about to say what it debugs, and returns the port to which it connects.
    pub async fn open_editor_host(&self) -> Result<OpenedPort> {
        let entry = self.0.sessions.store_hosted().await;
        let launch_id = entry.entry.launch_id.clone();
        let host = self.open_host(entry).await?;
        let link = Arc::clone(&host.link);
        lock(&self.0.for_editors).insert(launch_id.clone(), Arc::new(host));
        let hosts = self.clone();
        let watched = Arc::clone(&link);
        self.run_task(async move {
            watched.wait_closed().await;
            // Its editor has left before it has said anything.
            drop(lock(&hosts.0.for_editors).remove(&launch_id));
        });
        link.request(JOIN, &JoinParams { chooses_session: true }).await
    }

    /// Starts what an editor debugs, in the host to which it is connected.
    async fn open_for_editor(&self, launch_id: &str, start: EditorStart) -> Result<Vec<String>> {
        let gone = || Error::usage("cannot start a debug session in this host").because("it has one already");
        let host = lock(&self.0.for_editors).get(launch_id).cloned().ok_or_else(gone)?;
        match self.0.editor_starts.get() {
            Some(open) => open(host, start).await,
            None => Err(Error::other("cannot start a debug session").because("its supervisor is ending")),
        }
    }

    /// What is done for an editor that says what it debugs.
    pub fn start_for_editors(&self, start: EditorStarter) {
        let _ = self.0.editor_starts.set(start);
    }

    /// Runs a task as long as the supervisor.
    pub fn run_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.sessions.run_task(task);
    }

    /// Runs a task once nothing of a program of a session is left, unless this supervisor exits before.
    pub fn run_after_end(
        &self,
        session: &Arc<HostedSession>,
        program: usize,
        then: impl Future<Output = ()> + Send + 'static,
    ) {
        let (session, left) = (Arc::clone(session), self.0.after_end_tasks.clone());
        left.send_modify(|count| *count += 1);
        self.run_task(async move {
            session.wait_until_program_ended(program).await;
            then.await;
            left.send_modify(|count| *count -= 1);
        });
    }

    fn insert(&self, session: Arc<HostedSession>, entry: HostedEntry, process: HostProcess) {
        let slot = HostedSlot { session: Arc::clone(&session), entry, bindings: SessionBindings::default() };
        lock(&self.0.table).insert(session.id.clone(), slot);
        self.0.sessions.report_change();
        let hosts = self.clone();
        self.0.sessions.run_task(async move { hosts.follow_session(session, process).await });
    }

    async fn record_end(&self, session: &HostedSession) {
        // Taken out meanwhile: the file is written without the lock.
        let entry = lock(&self.0.table).get_mut(&session.id).map(|slot| slot.entry.take());
        if let Some(mut entry) = entry {
            self.0.sessions.record_end(&mut entry).await;
            if let Some(slot) = lock(&self.0.table).get_mut(&session.id) {
                slot.entry = entry;
            }
        }
    }

    /// Reports the changes of a session, until its host has ended.
    async fn follow_session(self, session: Arc<HostedSession>, process: HostProcess) {
        let (sessions, mut facts) = (&self.0.sessions, session.watch_facts());
        let mut is_end_recorded = false;
        loop {
            if !is_end_recorded && session.read_facts(is_over) {
                is_end_recorded = true;
                self.record_end(&session).await;
            }
            tokio::select! {
                Ok(()) = facts.changed() => {
                    let (released, recorded) = {
                        let report = facts.borrow_and_update();
                        (report.facts.released.clone(), report.recorded)
                    };
                    sessions.timeline().report_recorded(recorded);
                    released.iter().for_each(|launch_id| sessions.record_released(launch_id));
                    sessions.report_change();
                }
                () = session.link.wait_closed() => break,
            }
        }
        let was_ended = session.link.close_session();
        sessions.report_change();
        let exit = match process {
            HostProcess::Child(mut child) => {
                let exit = timeout(EXIT_TIMEOUT, child.wait()).await;
                exit.ok().and_then(Result::ok).map(|exit| exit.to_string())
            }
            HostProcess::Found(process) => {
                let _ = timeout(EXIT_TIMEOUT, process.wait_for_exit()).await;
                None
            }
        };
        let stored = lock(&self.0.table).get(&session.id).map(|slot| slot.entry.entry.clone());
        if let Some(stored) = stored.filter(|_| !was_ended) {
            let socket = stored.host.as_ref().map(|host| host.socket.clone()).unwrap_or_default();
            let panic = take_panic_note(&socket);
            let how = panic.or(exit).map(|how| format!(": {how}")).unwrap_or_default();
            let pid = session.host_pid;
            let reason =
                format!("lost: its session host, process {pid}, has ended{how}; `tether logs` shows what it did");
            sessions.lose_hosted(&stored, reason).await;
        }
        // Only now: it is listed all the time. One that follows the window stays stored.
        let removed = lock(&self.0.table).remove(&session.id);
        if let Some(mut slot) = removed.filter(|_| !was_ended && session.request.follows.is_some()) {
            slot.entry.keep();
        }
        sessions.report_change();
    }
}

/// Whether a session has ended for good.
fn is_over(now: &SessionFacts) -> bool {
    now.is_ended && !now.is_reconnecting && !now.is_following
}

/// What a host has written of its panic before it has ended.
fn take_panic_note(socket: &Path) -> Option<String> {
    let _ = std::fs::remove_file(socket);
    let note = panic_note(socket);
    let text = bounded_file::read_start(&note, MAX_PANIC_NOTE).ok()?;
    let _ = std::fs::remove_file(note);
    Some(format!("it panicked, {}", String::from_utf8_lossy(&text).replace('\n', " ")))
}

impl RemoteSessions for HostedSessions {
    fn send_breakpoints(&self, bound: Option<u32>) -> BoxFuture<'_, ()> {
        async move {
            // Also to those that are being attached to again: their next target gets what is set meanwhile.
            let mut open = self.list_sessions();
            open.retain(|session| !session.read_facts(is_over));
            join_all(open.iter().map(|session| async move {
                let params = BreakpointsParams { bound };
                let sent = session.link.request::<SessionBindings>(SEND_BREAKPOINTS, &params);
                match timeout(SEND_TIMEOUT, sent).await {
                    Ok(Ok(bindings)) => {
                        if let Some(slot) = lock(&self.0.table).get_mut(&session.id) {
                            slot.bindings = bindings;
                        }
                    }
                    Ok(Err(error)) => warn!("{}: {error}", session.id),
                    Err(_) => warn!("{}: its breakpoints were not sent within {SEND_TIMEOUT:?}", session.id),
                }
            }))
            .await;
        }
        .boxed()
    }

    fn bindings(&self) -> Vec<SessionBindings> {
        let active = self.active_sessions();
        let table = lock(&self.0.table);
        active.iter().filter_map(|it| Some(table.get(&it.id)?.bindings.clone())).collect()
    }

    fn watch_data<'a>(&'a self, expression: &'a str, access: DataAccess) -> BoxFuture<'a, Option<Result<u32>>> {
        async move {
            let active = self.active_sessions();
            let is_stopped = |it: &&Arc<HostedSession>| it.read_facts(|facts| facts.status.state == RunState::Stopped);
            let here = self.0.sessions.active_sessions();
            let session = match active.iter().find(is_stopped) {
                Some(stopped) => stopped,
                None if !here.is_empty() => return None,
                None => active.first()?,
            };
            let (expression, access) = (Some(expression.to_owned()), Some(access));
            let params = WatchpointSetParams { expression, access, ..WatchpointSetParams::default() };
            let set = session.link.request::<BreakpointReport>(WatchpointSetParams::METHOD, &params).await;
            Some(set.map(|report| report.breakpoint_id))
        }
        .boxed()
    }
}

impl SessionHosts for HostedSessions {
    fn rejoin(&self, stored: StoredSession) -> BoxFuture<'_, HostReunion> {
        self.rejoin_host(stored).boxed()
    }

    fn attach_again<'a>(
        &'a self,
        lost: &'a StoredSession,
        request: SessionRequest,
        why: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            self.0.sessions.check_adapter(&request)?;
            let entry = self.0.sessions.store_hosted_again(lost).await;
            let start = SessionStart { request, test_runner: None, awaits_programs: false };
            let attached = self.start_stored(entry, start).await?;
            match why {
                Some(why) => attached.report_reattached(why, None).await,
                None => Ok(()),
            }
        }
        .boxed()
    }
}
