//! The breakpoint operations of the registry: change the store, send the change to every active session, here and in other
//! processes, and report how it is bound.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::{join, join_all};
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tether_dap::types::{DataBreakpoint, DataBreakpointInfoArguments, ExceptionFilterOptions};

use super::managed_session::ManagedSession;
use super::registry::SessionRegistry;
use super::remote_sessions::{ReportedBinding, SessionBindings};
use crate::debug::breakpoints::data_sync::find_data_by_name;
use crate::debug::breakpoints::sync::{ChangedBreakpoints, unsupported_exceptions};
use crate::debug::breakpoints::{
    BindingStatus, BreakpointChanges, BreakpointConditions, BreakpointKind, BreakpointOwner, BreakpointSpec,
    EditorLine, ExceptionSpec, LinePosition, ReplacedLines, RequestedBreakpoint, RequestedLine, RequestedPlace,
    StoredBreakpoints,
};
use crate::debug::inspect;
use crate::debug::inspect::ScopedId;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::resume::Resume;
use crate::debug::session::target_handle::TargetHandle;
use crate::vocabulary::{DataAccess, RunState};

/// On which exceptions to stop, and what the adapters of the active sessions support of that.
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionSupport {
    /// As it is set.
    pub spec: ExceptionSpec,
    /// The filter ids that the adapters offer, sorted.
    pub known_filters: Vec<String>,
    /// One sentence for each session whose adapter cannot stop at some of them.
    pub unsupported: Vec<String>,
}

/// A breakpoint, and how it is bound over all active sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakpointStatus {
    /// As it is set.
    pub spec: BreakpointSpec,
    /// Verified in one session is verified.
    pub status: BindingStatus,
    /// Over all active sessions.
    pub hits: u64,
}

impl SessionRegistry {
    /// Sets a breakpoint on a line, and waits until it is bound. Errors: no such line, the file cannot be written.
    pub async fn set_line_breakpoint(
        &self,
        file: &Path,
        at: impl Into<LinePosition>,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let LinePosition { line, column } = at.into();
        let line = RequestedLine { file: file.to_owned(), line: Some(line), column, text: None };
        self.set_breakpoint(RequestedBreakpoint { place: RequestedPlace::Line(line), conditions }).await
    }

    /// Sets breakpoints, all or none, and waits until the last is bound. Their ids are in `ids` as soon as they are set, whether or
    /// not the caller still waits. Errors: no such line, the file cannot be written.
    pub async fn set_breakpoints(
        &self,
        mut requested: Vec<RequestedBreakpoint>,
        ids: Arc<Mutex<Vec<u32>>>,
    ) -> Result<Vec<BreakpointStatus>> {
        for it in &mut requested {
            if let RequestedPlace::Line(line) = &mut it.place {
                line.file = self.0.workspace.join(&line.file);
            }
        }
        let specs = self.0.breakpoints.set_all(requested, ids).await?;
        let files: BTreeSet<&Path> = specs.iter().filter_map(BreakpointSpec::file).collect();
        let has_named = specs.iter().any(|spec| spec.file().is_none());
        let named = has_named.then_some(ChangedBreakpoints::Functions(false));
        let changed: Vec<_> = files.into_iter().map(ChangedBreakpoints::File).chain(named).collect();
        self.send_to_own_sessions(&changed).await;
        if let Some(last) = specs.last() {
            self.wait_for_binding(last.clone()).await;
        }
        Ok(specs.into_iter().map(|spec| self.breakpoint_status(spec)).collect())
    }

    /// Sets a breakpoint on a function or on a line of a class, and waits until it is bound. Errors: the file cannot be
    /// written.
    pub async fn set_function_breakpoint(
        &self,
        kind: BreakpointKind,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let requested = RequestedBreakpoint { place: RequestedPlace::Named(kind), conditions };
        self.set_breakpoint(requested).await
    }

    /// As [`SessionRegistry::set_breakpoints`], for one.
    pub async fn set_breakpoint(&self, requested: RequestedBreakpoint) -> Result<BreakpointStatus> {
        let set = self.set_breakpoints(vec![requested], Arc::default()).await?;
        set.into_iter().next().ok_or_else(|| Error::other("the breakpoint was not set"))
    }

    /// Sets a data breakpoint: in the top frame of a stopped session, or by a name that an adapter finds without one. Without any
    /// session it is only stored. Errors: no adapter finds it.
    pub async fn set_data_breakpoint(&self, expression: String, access: DataAccess) -> Result<BreakpointStatus> {
        if let Some(remote) = self.0.remote.get()
            && let Some(set) = remote.watch_data(&expression, access).await
        {
            let id = set?;
            self.take_over_breakpoints().await;
            let spec = self.0.breakpoints.current().get(id).cloned();
            let spec =
                spec.ok_or_else(|| Error::other(format!("cannot watch `{expression}`")).because("it is gone again"))?;
            return Ok(self.wait_for_binding(spec).await);
        }
        let active = self.active_sessions();
        let stopped = active.iter().find(|it| it.run_state() == RunState::Stopped);
        let in_frame = match stopped {
            Some(managed) => resolve_data_breakpoint(&managed.session, &expression, access).await,
            None => {
                let error = Error::usage(format!("cannot watch `{expression}`")).because("no session is stopped");
                Err(error.hint("`tether debug pause` stops one, in a frame where the data is found"))
            }
        };
        // What is found in a frame alone may mean something else in another session.
        let name = match &in_frame {
            Ok(found) => found.persistent_name.clone(),
            Err(_) => Some(expression.clone()),
        };
        let mut by_name = Vec::new();
        for managed in &active {
            if let Some(name) = &name {
                by_name.push((managed, find_data_in_targets(&managed.session, name, access).await));
            }
        }
        let is_found_by_name = by_name.iter().any(|(_, found)| !found.is_empty());
        let in_frame = match in_frame {
            Ok(found) => Some(found),
            Err(error) if !active.is_empty() && !is_found_by_name => return Err(error),
            Err(_) => None,
        };
        let persistent_name = name.filter(|_| is_found_by_name);
        let kind = BreakpointKind::Data { expression: expression.clone(), access, persistent_name };
        let spec = self.0.breakpoints.change(|list| list.set(kind, BreakpointConditions::default())).await?;
        for (managed, found) in by_name {
            let found = found.into_iter().map(|(target, data)| ((target, spec.id), data));
            managed.session.shared.with_state(|state| state.data.extend(found));
        }
        if let (Some(FoundData { frame, data, .. }), Some(managed)) = (in_frame, stopped) {
            let now = inspect::evaluate(&managed.session, &expression, Some(frame), "watch").await.ok();
            let now = now.map(|(_, response)| response.result);
            managed.session.shared.with_state(|state| {
                state.watched.record_value(spec.id, 0, now);
                state.data.insert((frame.target, spec.id), data);
            });
        }
        self.send_to_own_sessions(&[ChangedBreakpoints::Data]).await;
        Ok(self.wait_for_binding(spec).await)
    }

    /// Sets on which exceptions to stop. Errors: the file cannot be written.
    pub async fn set_exception_spec(&self, exceptions: ExceptionSpec) -> Result<()> {
        self.0
            .breakpoints
            .change(|list| {
                list.choose_exceptions(exceptions);
                Ok(())
            })
            .await?;
        self.send_changes(&[ChangedBreakpoints::Exceptions]).await;
        Ok(())
    }

    /// Whether uncaught exceptions stop; `by_default`: also where nobody has chosen which do.
    pub fn stops_at_uncaught(&self, by_default: bool) -> bool {
        let stored = self.0.breakpoints.current();
        stored.exceptions.uncaught || (by_default && stored.has_default_exceptions())
    }

    /// On which exceptions to stop, and what the adapters support of that.
    pub fn exception_support(&self) -> ExceptionSupport {
        let spec = self.0.breakpoints.current().exceptions.clone();
        let remote: Vec<SessionBindings> = self.0.remote.get().map(|it| it.bindings()).unwrap_or_default();
        let own = self.own_exceptions();
        let mut known: Vec<String> = remote.iter().flat_map(|it| it.known_filters.clone()).chain(own.0).collect();
        let mut unsupported: Vec<String> = remote.into_iter().flat_map(|it| it.unsupported).chain(own.1).collect();
        for names in [&mut known, &mut unsupported] {
            names.sort();
            names.dedup();
        }
        ExceptionSupport { spec, known_filters: known, unsupported }
    }

    /// The filter ids that the adapters of the sessions here offer, and one sentence for each that cannot stop at some of what
    /// is set.
    fn own_exceptions(&self) -> (Vec<String>, Vec<String>) {
        let spec = self.0.breakpoints.current().exceptions.clone();
        let (mut known, mut unsupported) = (Vec::new(), Vec::new());
        for managed in self.active_sessions() {
            let targets = managed.session.shared.targets();
            for able in targets.iter().filter(|it| it.are_breakpoints_sent()).map(TargetHandle::capabilities) {
                if let Some(what) = unsupported_exceptions(&spec, &able) {
                    unsupported.push(format!("{} ({}) cannot stop at {what}", managed.id, managed.adapter.name));
                }
                known.extend(able.exception_breakpoint_filters.into_iter().map(|filter| filter.filter));
            }
        }
        (known, unsupported)
    }

    /// How the sessions here have bound all breakpoints.
    pub fn own_bindings(&self) -> SessionBindings {
        let (known_filters, unsupported) = self.own_exceptions();
        let list = self.0.breakpoints.current();
        let binding = |id| {
            let (status, hits) = self.own_binding(id);
            ReportedBinding { id, status, hits }
        };
        let bindings = list.breakpoints.iter().map(|spec| binding(spec.id)).collect();
        SessionBindings { bindings, known_filters, unsupported }
    }

    /// Sends what another process has changed.
    pub async fn take_over_breakpoints(&self) {
        self.0.breakpoints.reload().await;
        self.send_to_own_sessions(&[]).await;
    }

    /// As [`SessionRegistry::take_over_breakpoints`], also to the sessions in other processes.
    pub async fn spread_breakpoints(&self) {
        self.0.breakpoints.reload().await;
        self.send_changes(&[]).await;
    }

    /// Waits until the sessions here have bound a breakpoint, a short time at most.
    pub async fn wait_for_own_binding(&self, id: u32) {
        let active = self.active_sessions();
        join_all(active.iter().map(|managed| managed.session.wait_for_binding(id))).await;
    }

    /// All breakpoints, on the lines where their code is now.
    pub async fn list_breakpoints(&self) -> Vec<BreakpointStatus> {
        self.0.breakpoints.follow_source_changes().await;
        if let Some(remote) = self.0.remote.get() {
            remote.send_breakpoints(None).await;
        }
        let list = self.0.breakpoints.current();
        list.breakpoints.iter().map(|spec| self.breakpoint_status(spec.clone())).collect()
    }

    /// Which breakpoints are not set because their file cannot be read.
    pub async fn breakpoint_store_problem(&self) -> Option<String> {
        self.0.breakpoints.problem().await
    }

    /// The text of a file with all breakpoints, for [`SessionRegistry::import_breakpoints`].
    pub async fn export_breakpoints(&self) -> Result<Vec<u8>> {
        self.0.breakpoints.follow_source_changes().await;
        let list = StoredBreakpoints::clone(&self.0.breakpoints.current());
        list.without_editors().with_relative_paths(&self.0.workspace).to_text()
    }

    /// Adds the breakpoints of an exported text. Errors: it is no such text; the reason completes "because".
    pub async fn import_breakpoints(&self, text: &[u8]) -> Result<()> {
        let exported = StoredBreakpoints::parse(text).map_err(Error::usage)?;
        let files = exported.files();
        let workspace = self.0.workspace.clone();
        self.0.breakpoints.change(move |list| list.import(exported, &workspace)).await?;
        self.0.breakpoints.follow_source_changes().await;
        let files: Vec<PathBuf> = files.iter().map(|file| self.0.workspace.join(file)).collect();
        let mut imported: Vec<ChangedBreakpoints<'_>> = files.iter().map(|it| ChangedBreakpoints::File(it)).collect();
        imported.extend([ChangedBreakpoints::Functions(false), ChangedBreakpoints::Exceptions]);
        self.send_changes(&imported).await;
        Ok(())
    }

    /// Removes the breakpoints that `is_removed` selects, and returns them. Errors: the file cannot be written.
    pub async fn remove_breakpoints(
        &self,
        is_removed: impl Fn(&BreakpointSpec) -> bool + Send + 'static,
    ) -> Result<Vec<BreakpointSpec>> {
        self.0.breakpoints.follow_source_changes().await;
        let changed = self.0.breakpoints.change(move |list| {
            Ok(list.breakpoints.extract_if(.., |spec| is_removed(spec)).collect::<Vec<BreakpointSpec>>())
        });
        let removed = changed.await?;
        self.send_changes(&[]).await;
        Ok(removed)
    }

    /// Sends what has changed since the last time, and `also` what may not have changed, to every active session, here and in
    /// other processes. Waits for the responses.
    pub(super) async fn send_changes(&self, also: &[ChangedBreakpoints<'_>]) {
        let remote = async {
            if let Some(remote) = self.0.remote.get() {
                remote.send_breakpoints(None).await;
            }
        };
        join(self.send_to_own_sessions(also), remote).await;
    }

    /// As [`SessionRegistry::send_changes`], to the sessions here.
    async fn send_to_own_sessions(&self, also: &[ChangedBreakpoints<'_>]) {
        let changes = {
            let mut sent = lock(&self.0.sent_breakpoints);
            let now = self.0.breakpoints.current();
            let changes = BreakpointChanges::between(&sent, &now);
            *sent = now;
            changes
        };
        let mut requests: Vec<ChangedBreakpoints<'_>> = changes.requests().collect();
        requests.extend(also.iter().copied().filter(|it| !changes.requests().any(|other| other.covers(it))));
        let active = self.active_sessions();
        let send = |managed: &ManagedSession| {
            managed
                .session
                .shared
                .with_state(|state| changes.removed.iter().for_each(|id| state.remove_breakpoint(*id)));
            let (session, requests) = (managed.session.clone(), &requests);
            async move {
                for request in requests {
                    session.send_breakpoints(*request).await;
                }
            }
        };
        join_all(active.iter().map(send)).await;
    }

    async fn wait_for_binding(&self, spec: BreakpointSpec) -> BreakpointStatus {
        let remote = async {
            if let Some(remote) = self.0.remote.get() {
                remote.send_breakpoints(Some(spec.id)).await;
            }
        };
        join(self.wait_for_own_binding(spec.id), remote).await;
        self.breakpoint_status(spec)
    }

    /// Over all active sessions: verified in one session is verified.
    fn breakpoint_status(&self, spec: BreakpointSpec) -> BreakpointStatus {
        let remote = self.0.remote.get().map(|it| it.bindings()).unwrap_or_default();
        let remote = remote.into_iter().flat_map(|it| it.bindings).filter(|it| it.id == spec.id);
        let all = remote.map(|it| (it.status, it.hits)).chain([self.own_binding(spec.id)]);
        let (mut best, mut hits) = (BindingStatus::Pending(None), 0_u64);
        for (status, more) in all {
            hits = hits.saturating_add(more);
            if status_rank(&status) >= status_rank(&best) {
                best = status;
            }
        }
        BreakpointStatus { spec, status: best, hits }
    }

    /// How the sessions here have bound a breakpoint, and how often it was hit.
    fn own_binding(&self, id: u32) -> (BindingStatus, u64) {
        let active = self.active_sessions();
        let statuses = active.iter().map(|managed| managed.session.binding_status(id));
        let status = statuses.max_by_key(status_rank).unwrap_or(BindingStatus::Pending(None));
        (status, active.iter().map(|managed| managed.session.hit_count(id)).sum())
    }

    /// Resumes a stopped session until it reaches a line, or stops before.
    pub async fn run_to_line(&self, managed: &ManagedSession, file: &Path, line: u32) -> Result<()> {
        managed.session.resolve_thread(None)?;
        let file = self.0.workspace.join(file);
        if let Some(spec) = self.0.breakpoints.temporary_on_line(&file, line).await? {
            let file = spec.owned_file().unwrap_or_default();
            managed.session.shared.with_state(|state| state.temporary.push(spec));
            managed.session.send_breakpoints(ChangedBreakpoints::File(&file)).await;
        }
        managed.session.resume(Resume::Continue, None).await
    }

    // Of joined editors: each changes what belongs to its editor.

    /// Replaces an editor's breakpoints in a file; nothing is sent. Errors: no such file, it is no source file.
    pub(in crate::debug) async fn replace_editor_lines(
        &self,
        owner: &BreakpointOwner,
        file: &Path,
        lines: Vec<EditorLine>,
    ) -> Result<ReplacedLines> {
        self.0.breakpoints.replace_editor_lines(owner.clone(), &self.0.workspace.join(file), lines).await
    }

    /// Sends the breakpoints of a file to every session.
    pub(in crate::debug) async fn send_editor_lines(&self, file: &Path) {
        self.send_changes(&[ChangedBreakpoints::File(file)]).await;
    }

    /// Replaces an editor's function breakpoints; nothing is sent.
    pub(in crate::debug) async fn replace_editor_functions(
        &self,
        owner: &BreakpointOwner,
        functions: Vec<(String, BreakpointConditions)>,
    ) -> Result<(Vec<Result<BreakpointSpec>>, Vec<u32>)> {
        let owner = owner.clone();
        self.0.breakpoints.change(move |list| Ok(list.replace_editor_functions(&owner, functions))).await
    }

    /// Sends the function breakpoints to every session.
    pub(in crate::debug) async fn send_editor_functions(&self) {
        self.send_changes(&[ChangedBreakpoints::Functions(false)]).await;
    }

    /// Replaces the exceptions on which an editor wants to stop, and sends them to every session.
    pub(in crate::debug) async fn replace_editor_exceptions(
        &self,
        owner: &BreakpointOwner,
        filters: Vec<ExceptionFilterOptions>,
    ) -> Result<()> {
        let owner = owner.clone();
        let replace = move |list: &mut StoredBreakpoints| {
            list.replace_editor_exceptions(&owner, filters);
            Ok(())
        };
        self.0.breakpoints.change(replace).await?;
        self.send_changes(&[ChangedBreakpoints::Exceptions]).await;
        Ok(())
    }

    /// Removes everything of an editor, and sends that to every session.
    pub(in crate::debug) async fn remove_editor(&self, owner: &BreakpointOwner) {
        let owner = owner.clone();
        self.remove_editors(move |it| *it == owner).await;
    }

    /// Removes everything of the editors for which `is_gone` is true, and sends that to every session.
    pub async fn remove_editors(&self, is_gone: impl Fn(&BreakpointOwner) -> bool + Send + 'static) {
        let removed = self.0.breakpoints.change(move |list| {
            list.remove_editors(is_gone);
            Ok(())
        });
        if let Err(error) = removed.await {
            tracing::warn!("{error}");
        }
        self.send_changes(&[]).await;
    }
}

/// The higher, the closer to a stop.
fn status_rank(status: &BindingStatus) -> u32 {
    match status {
        BindingStatus::Verified { .. } => 3,
        BindingStatus::Pending(Some(_)) => 2,
        BindingStatus::Unbound(_) => 1,
        BindingStatus::Pending(None) => 0,
    }
}

/// Data that was found in a frame.
struct FoundData {
    frame: ScopedId,
    data: DataBreakpoint,
    /// By which name it is found in other sessions, too.
    persistent_name: Option<String>,
}

/// The data in each target of a session whose adapter finds it by that name, without a frame.
async fn find_data_in_targets(session: &DebugSession, name: &str, access: DataAccess) -> Vec<(usize, DataBreakpoint)> {
    let mut found = Vec::new();
    for target in session.shared.targets().iter().filter(|target| target.are_breakpoints_sent()) {
        let Some(client) = target.client() else { continue };
        if let Ok(data) = find_data_by_name(&client, target, name, access).await {
            found.push((target.id, data));
        }
    }
    found
}

/// The adapter's id of data in the top frame, found by the whole expression or as a variable of one of its scopes.
async fn resolve_data_breakpoint(session: &DebugSession, expression: &str, access: DataAccess) -> Result<FoundData> {
    let frame = inspect::resolve_frame(session, None).await?;
    let cannot = || Error::usage(format!("cannot watch `{expression}`"));
    if !session.shared.target(frame.target).capabilities().can("supportsDataBreakpoints") {
        let error = cannot().because("this adapter has no data breakpoints");
        return Err(error.hint(
            "set a breakpoint with a condition where it is written: `tether break set FILE:LINE --condition …`",
        ));
    }
    let place = |name: &str, frame_id, variables_reference| DataBreakpointInfoArguments {
        name: name.to_owned(),
        frame_id,
        variables_reference,
    };
    let mut places = vec![place(expression, Some(frame.id), None)];
    let scopes = inspect::list_scopes(session, frame).await?.into_iter().filter(|scope| !scope.expensive);
    places.extend(scopes.map(|scope| place(expression, None, Some(scope.variables_reference))));
    // Data that is in no scope still has an address (lldb-dap).
    places.push(place(&format!("&{expression}"), Some(frame.id), None));
    let mut reason = None;
    for place in places {
        let info = match session.request(frame.target, &place).await {
            Ok(info) => info,
            Err(cause) => {
                reason.get_or_insert(cause.to_string());
                continue;
            }
        };
        let Some(data_id) = info.data_id else {
            reason.get_or_insert(info.description);
            continue;
        };
        let access_type = access.name().to_owned();
        if !info.access_types.is_empty() && !info.access_types.contains(&access_type) {
            let offered = info.access_types.join(", ");
            return Err(cannot().because(format!("the adapter can only watch: {offered}")));
        }
        let persistent_name = Some(data_id.clone()).filter(|_| info.can_persist);
        let data = DataBreakpoint { data_id, access_type: Some(access_type), ..DataBreakpoint::default() };
        return Ok(FoundData { frame, data, persistent_name });
    }
    Err(cannot().because(reason.unwrap_or_else(|| "the adapter finds no such data here".to_owned())))
}
