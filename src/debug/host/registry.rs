//! All sessions of a workspace, and what is wanted in all of them.
//!
//! Ended ones stay readable for an hour, or until ten newer ones have ended. Must not know the wire API.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::managed_session::{self, ManagedSession, SessionRequest};
use super::start::START_TIMEOUT;
use super::store::{LeftoverSessions, SessionStore};
use crate::adapters::AdapterSearch;
use crate::clock::now_ms;
use crate::dap::types::{DataBreakpoint, DataBreakpointInfoArguments};
use crate::debug::breakpoints::sync;
use crate::debug::breakpoints::{
    BindingStatus, BreakpointConditions, BreakpointKind, BreakpointSpec, BreakpointStore, DataAccess, ExceptionSpec,
};
use crate::debug::inspect::ScopedId;
use crate::debug::session::debug_session::{ChangedBreakpoints, DebugSession};
use crate::debug::session::snapshot::RunState;
use crate::debug::session::target::Resume;
use crate::debug::session::target_handle::TargetHandle;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// How long that which is done after sessions may take, when all of them are ended at once.
const AFTER_END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an ended session stays readable, and how many of them.
const ENDED_KEPT_MS: u64 = 60 * 60 * 1000;
const ENDED_KEPT: usize = 10;

/// A handle; clones are the same.
#[derive(Clone)]
pub struct SessionRegistry(pub(in crate::debug) Arc<RegistryInner>);

pub(in crate::debug) struct RegistryInner {
    pub(in crate::debug) workspace: PathBuf,
    /// Begins what the processes of all sessions are to be found by.
    pub(in crate::debug) mark: String,
    pub(in crate::debug) book: Arc<Mutex<BreakpointStore>>,
    pub(in crate::debug) ledger: Arc<SessionStore>,
    /// Not yet taken over.
    pub(in crate::debug) left: Mutex<LeftoverSessions>,
    pub(in crate::debug) recovered: watch::Sender<bool>,
    pub(in crate::debug) table: Mutex<SessionTable>,
    pub(in crate::debug) tasks: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    /// Rises with each change of any session.
    pub(in crate::debug) changed: watch::Sender<u64>,
    /// How much is still to be done after sessions.
    afterwards: watch::Sender<usize>,
}

#[derive(Default)]
pub(in crate::debug) struct SessionTable {
    last: u32,
    pub(in crate::debug) hosted: Vec<ManagedSession>,
}

/// What comes of the exceptions that are wanted, over all living sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionSupport {
    pub spec: ExceptionSpec,
    /// The filters that the adapters know.
    pub known_filters: Vec<String>,
    /// Which session's adapter cannot stop at what: sentences.
    pub unsupported: Vec<String>,
}

/// A wanted breakpoint, and where it stands over all living sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakpointStatus {
    pub spec: BreakpointSpec,
    pub status: BindingStatus,
    pub hits: u64,
}

impl SessionRegistry {
    /// The sessions of a workspace, and the future that drives them: spawn it. Dropping that ends them all.

    /// `mark` begins what their processes are to be found by.
    pub fn open(workspace: &Path, mark: String) -> (SessionRegistry, impl Future<Output = ()> + Send + 'static) {
        SessionRegistry::open_persistent(None, workspace, mark)
    }

    /// As [`Sessions::open`], and the next supervisor finds in this folder what it has to know of them. What the last one

    /// has left there waits for [`Sessions::recover`].
    pub fn open_persistent(
        folder: Option<&Path>,
        workspace: &Path,
        mark: String,
    ) -> (SessionRegistry, impl Future<Output = ()> + Send + 'static) {
        let (ledger, left) = SessionStore::open(folder);
        let (tasks, mut inbox) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        let inner = RegistryInner {
            workspace: workspace.to_owned(),
            mark,
            book: Arc::new(Mutex::new(BreakpointStore::open(workspace))),
            table: Mutex::new(SessionTable { last: left.last, hosted: Vec::new() }),
            recovered: watch::Sender::new(folder.is_none()),
            ledger: Arc::new(ledger),
            left: Mutex::new(left),
            tasks,
            changed: watch::Sender::default(),
            afterwards: watch::Sender::default(),
        };
        let driver = async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {task = inbox.recv() => match task {Some(task) => drop(running.spawn(task)), None => return}, Some(_) = running.join_next() => {}}
            }
        };
        (SessionRegistry(Arc::new(inner)), driver)
    }

    pub fn workspace(&self) -> &Path {
        &self.0.workspace
    }

    /// A count that rises with each change of any session.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// All of them, the oldest first.
    pub fn list_sessions(&self) -> Vec<ManagedSession> {
        let mut table = lock(&self.0.table);
        let now = now_ms();
        let mut ended: Vec<(u64, String)> =
            table.hosted.iter().filter_map(|it| Some((it.ended_at()?, it.id.clone()))).collect();
        ended.sort();
        let many = ended.len().saturating_sub(ENDED_KEPT);
        let old = |(index, (at, _)): &(usize, &(u64, String))| *index < many || now.saturating_sub(*at) > ENDED_KEPT_MS;
        let gone: Vec<&String> = ended.iter().enumerate().filter(old).map(|(_, (_, id))| id).collect();
        table.hosted.retain(|it| !gone.contains(&&it.id));
        table.hosted.clone()
    }

    pub fn active_sessions(&self) -> Vec<ManagedSession> {
        self.list_sessions().into_iter().filter(|it| !it.is_ended()).collect()
    }

    /// The named one; without a name the only living one, or, when none lives, the one that ended last.
    pub fn find_session(&self, id: Option<&str>) -> Result<ManagedSession> {
        let all = self.list_sessions();
        if let Some(id) = id {
            return all.iter().find(|it| it.id == id).cloned().ok_or_else(|| {
                let error = Error::new(ErrorKind::NotFound, format!("there is no debug session {id:?}"));
                match describe_sessions(&all) {
                    names if names.is_empty() => error.hint("`tether debug launch PROGRAM` starts one"),
                    names => error.hint(format!("there are: {names}")),
                }
            });
        }
        let living: Vec<ManagedSession> = all.iter().filter(|it| !it.is_ended()).cloned().collect();
        match living.as_slice() {
            [only] => Ok(only.clone()),
            [] => all.into_iter().max_by_key(|it| it.ended_at().unwrap_or(u64::MAX)).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "there is no debug session")
                    .hint("`tether debug launch PROGRAM` starts one")
            }),
            several => {
                let error = Error::usage("there are several debug sessions, and it is not said which one is meant");
                Err(error.hint(format!("name one of: {}", describe_sessions(several))))
            }
        }
    }

    /// Agrees when the adapter of a request is known and there; nothing is started.
    pub fn check_adapter(&self, request: &SessionRequest) -> Result<()> {
        managed_session::locate_adapter(request, &AdapterSearch::for_workspace(&self.0.workspace)?).map(drop)
    }

    /// Begins a session, and waits until its program runs, has stopped, or has ended. Errors: it could not be started.
    pub async fn start_session(&self, request: SessionRequest) -> Result<ManagedSession> {
        self.prepare_and_start(request, Arc::clone(&self.0.book), true).await
    }

    /// Begins a session of its own that knows one breakpoint only, and is in no list.
    pub async fn start_probe(&self, request: SessionRequest, file: &Path, line: u32) -> Result<ProbeSession> {
        let mut book = BreakpointStore::in_memory();
        book.set_line_breakpoint(&self.0.workspace.join(file), line, BreakpointConditions::default())?;
        let hosted = self.prepare_and_start(request, Arc::new(Mutex::new(book)), false).await?;
        Ok(ProbeSession { sessions: self.clone(), hosted })
    }

    async fn prepare_and_start(
        &self,
        request: SessionRequest,
        book: Arc<Mutex<BreakpointStore>>,
        listed: bool,
    ) -> Result<ManagedSession> {
        let id = {
            let mut table = lock(&self.0.table);
            table.last += 1;
            format!("d{}", table.last)
        };
        let ready = self.prepare_session(id, request, book, Arc::default())?;
        self.start_prepared(ready, listed, START_TIMEOUT).await
    }

    /// Does something once nothing of a session is left.
    pub fn run_after_end(&self, hosted: &ManagedSession, then: impl Future<Output = ()> + Send + 'static) {
        let (hosted, left) = (hosted.clone(), self.0.afterwards.clone());
        left.send_modify(|count| *count += 1);
        let task = async move {
            hosted.wait_until_ended().await;
            then.await;
            left.send_modify(|count| *count -= 1);
        };
        // The receiver lives as long as the supervisor.
        let _ = self.0.tasks.send(task.boxed());
    }

    /// Ends one that nobody wants any more, without waiting for it.
    pub fn undo_start(&self, hosted: &ManagedSession) {
        let hosted = hosted.clone();
        let ending = async move {
            hosted.stop(hosted.is_attached()).await;
        };
        let _ = self.0.tasks.send(ending.boxed());
    }

    /// Ends all of them, those that were attached to are let go; and waits for what is done after them.
    pub async fn end_all(&self) {
        let marks: Vec<String> = self.active_sessions().iter().map(|it| it.mark.clone()).collect();
        self.0.ledger.close_store("its supervisor was ended, and the program that it had launched with it", &marks);
        join_all(self.active_sessions().iter().map(|it| it.stop(it.is_attached()))).await;
        let mut left = self.0.afterwards.subscribe();
        // What takes longer is cut off with us.
        let _ = tokio::time::timeout(AFTER_END_TIMEOUT, left.wait_for(|count| *count == 0)).await;
    }
}

/// A session for one look. Dropping it ends it.
pub struct ProbeSession {
    sessions: SessionRegistry,
    pub hosted: ManagedSession,
}

impl ProbeSession {
    /// Ends it, and waits until nothing of it is left.
    pub async fn end(&self) {
        self.hosted.stop(false).await;
    }
}

impl Drop for ProbeSession {
    fn drop(&mut self) {
        self.sessions.undo_start(&self.hosted);
    }
}

fn describe_sessions(all: &[ManagedSession]) -> String {
    let named = all.iter().map(|it| format!("{} ({}, {})", it.id, it.request.name, it.run_state().name()));
    named.collect::<Vec<_>>().join(", ")
}

/// Breakpoints.
impl SessionRegistry {
    fn book<T>(&self, with: impl FnOnce(&mut BreakpointStore) -> T) -> T {
        with(&mut lock(&self.0.book))
    }

    /// What was wrong with the file that keeps them.
    pub fn store_problem(&self) -> Option<String> {
        self.book(|book| book.problem.clone())
    }

    pub async fn set_line_breakpoint(
        &self,
        file: &Path,
        line: u32,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let file = self.0.workspace.join(file);
        let wanted = self.book(|book| book.set_line_breakpoint(&file, line, conditions))?;
        self.send_to_sessions(ChangedBreakpoints::File(wanted.file().unwrap_or(&file))).await;
        Ok(self.wait_for_binding(wanted).await)
    }

    pub async fn set_function_breakpoint(
        &self,
        name: String,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let wanted = self.book(|book| book.set_breakpoint(BreakpointKind::Function { name }, conditions))?;
        self.send_to_sessions(ChangedBreakpoints::Functions(false)).await;
        Ok(self.wait_for_binding(wanted).await)
    }

    /// Watches data in the top frame of a stopped session; without one, it is only kept.
    pub async fn set_data_breakpoint(&self, expression: String, access: DataAccess) -> Result<BreakpointStatus> {
        let living = self.active_sessions();
        let stopped = living.iter().find(|it| it.run_state() == RunState::Stopped);
        let found = match stopped {
            Some(hosted) => Some((hosted, resolve_data_breakpoint(&hosted.session, &expression, access).await?)),
            None if living.is_empty() => None,
            None => {
                let error = Error::usage(format!("cannot watch `{expression}`")).because("no session is stopped");
                return Err(error.hint("`tether debug pause` stops one, and gives a frame to find it in"));
            }
        };
        let what = BreakpointKind::Data { expression: expression.clone(), access };
        let wanted = self.book(|book| book.set_breakpoint(what, BreakpointConditions::default()))?;
        if let Some((hosted, (frame, data))) = found {
            let now = hosted.session.evaluate(&expression, Some(frame), "watch").await.ok();
            lock(&hosted.session.shared.watched).record_value(wanted.id, 0, now.map(|(_, answer)| answer.result));
            lock(&hosted.session.shared.data).insert((frame.target, wanted.id), data);
            hosted.session.send_breakpoints(ChangedBreakpoints::Data).await;
        }
        Ok(self.wait_for_binding(wanted).await)
    }

    pub async fn set_exception_spec(&self, exceptions: ExceptionSpec) -> Result<()> {
        self.book(|book| book.set_exceptions(exceptions))?;
        self.send_to_sessions(ChangedBreakpoints::Exceptions).await;
        Ok(())
    }

    /// What comes of the exceptions that are wanted.
    pub fn exception_support(&self) -> ExceptionSupport {
        let wanted = self.book(|book| book.exceptions().clone());
        let (mut known, mut unable) = (Vec::new(), Vec::new());
        for hosted in self.active_sessions() {
            for able in hosted
                .session
                .targets()
                .iter()
                .filter(|seat| seat.are_breakpoints_sent())
                .map(TargetHandle::capabilities)
            {
                if let Some(what) = sync::unsupported_exceptions(&wanted, &able) {
                    unable.push(format!("{} ({}) cannot stop at {what}", hosted.id, hosted.adapter.name));
                }
                known.extend(able.exception_breakpoint_filters.into_iter().map(|filter| filter.filter));
            }
        }
        for names in [&mut known, &mut unable] {
            names.sort();
            names.dedup();
        }
        ExceptionSupport { spec: wanted, known_filters: known, unsupported: unable }
    }

    /// All breakpoints, their lines as the files are now.
    pub fn list_breakpoints(&self) -> Vec<BreakpointStatus> {
        let all = self.book(|book| {
            book.follow_source_changes();
            book.all().to_vec()
        });
        all.into_iter().map(|wanted| self.breakpoint_status(wanted)).collect()
    }

    /// Removes those that `gone` chooses; answers with them.
    pub async fn remove_breakpoints(&self, gone: impl Fn(&BreakpointSpec) -> bool) -> Result<Vec<BreakpointSpec>> {
        let removed = self.book(|book| {
            book.follow_source_changes();
            book.remove(gone)
        })?;
        let mut files: Vec<&Path> = removed.iter().filter_map(BreakpointSpec::file).collect();
        files.sort();
        files.dedup();
        for hosted in self.active_sessions() {
            removed.iter().for_each(|wanted| hosted.session.forget_breakpoint(wanted.id));
            for file in &files {
                hosted.session.send_breakpoints(ChangedBreakpoints::File(file)).await;
            }
            if removed.iter().any(|wanted| matches!(wanted.kind, BreakpointKind::Function { .. })) {
                hosted.session.send_breakpoints(ChangedBreakpoints::Functions(true)).await;
            }
            if removed.iter().any(|wanted| matches!(wanted.kind, BreakpointKind::Data { .. })) {
                hosted.session.send_breakpoints(ChangedBreakpoints::Data).await;
            }
        }
        Ok(removed)
    }

    async fn send_to_sessions(&self, changed: ChangedBreakpoints<'_>) {
        let living = self.active_sessions();
        join_all(living.iter().map(|hosted| hosted.session.send_breakpoints(changed))).await;
    }

    async fn wait_for_binding(&self, wanted: BreakpointSpec) -> BreakpointStatus {
        let living = self.active_sessions();
        join_all(living.iter().map(|hosted| hosted.session.wait_for_binding(wanted.id))).await;
        self.breakpoint_status(wanted)
    }

    /// Verified in one session is verified.
    fn breakpoint_status(&self, wanted: BreakpointSpec) -> BreakpointStatus {
        let living = self.active_sessions();
        let standings = living.iter().map(|hosted| hosted.session.binding_status(wanted.id));
        let rank = |standing: &BindingStatus| match standing {
            BindingStatus::Verified { .. } => 2,
            BindingStatus::Unbound(_) => 1,
            BindingStatus::Pending => 0,
        };
        let standing = standings.max_by_key(rank).unwrap_or(BindingStatus::Pending);
        let hits = living.iter().map(|hosted| hosted.session.hit_count(wanted.id)).sum();
        BreakpointStatus { spec: wanted, status: standing, hits }
    }

    /// Lets a stopped session run to a line.
    pub async fn run_to_line(&self, hosted: &ManagedSession, file: &Path, line: u32) -> Result<()> {
        hosted.session.resolve_thread(None)?;
        let file = self.0.workspace.join(file);
        if let Some(goal) = self.book(|book| book.temporary_breakpoint(&file, line))? {
            hosted.session.set_temporary_breakpoint(goal).await;
        }
        hosted.session.resume(Resume::Continue, None).await
    }
}

/// The adapter's own id of data, found in the top frame: by the whole expression, or as one of its variables.
async fn resolve_data_breakpoint(
    session: &DebugSession,
    expression: &str,
    access: DataAccess,
) -> Result<(ScopedId, DataBreakpoint)> {
    let frame = session.resolve_frame(None).await?;
    let cannot = || Error::usage(format!("cannot watch `{expression}`"));
    if !session.target(frame.target).capabilities().can("supportsDataBreakpoints") {
        let error = cannot().because("this adapter has no data breakpoints");
        return Err(error.hint(
            "set a breakpoint with a condition where it is written: `tether break set FILE:LINE --condition …`",
        ));
    }
    let mut places = vec![DataBreakpointInfoArguments {
        name: expression.to_owned(),
        frame_id: Some(frame.id),
        ..DataBreakpointInfoArguments::default()
    }];
    places.extend(session.scopes(frame).await?.into_iter().filter(|scope| !scope.expensive).map(|scope| {
        DataBreakpointInfoArguments {
            name: expression.to_owned(),
            variables_reference: Some(scope.variables_reference),
            ..DataBreakpointInfoArguments::default()
        }
    }));
    // What is in no scope has an address all the same (lldb-dap).
    places.push(DataBreakpointInfoArguments { name: format!("&{expression}"), ..places[0].clone() });
    let mut reason = None;
    for place in places {
        match session.request(frame.target, &place).await {
            Ok(answer) => match answer.data_id {
                Some(data_id) => {
                    let access_type = Some(access.name().to_owned())
                        .filter(|name| answer.access_types.is_empty() || answer.access_types.contains(name));
                    if access_type.is_none() {
                        let can = answer.access_types.join(", ");
                        return Err(cannot().because(format!("the adapter can only tell: {can}")));
                    }
                    return Ok((frame, DataBreakpoint { data_id, access_type, ..DataBreakpoint::default() }));
                }
                None => drop(reason.get_or_insert(answer.description)),
            },
            Err(cause) => drop(reason.get_or_insert(cause.to_string())),
        }
    }
    Err(cannot().because(reason.unwrap_or_else(|| "the adapter finds no such data here".to_owned())))
}
