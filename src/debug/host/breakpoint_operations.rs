//! The breakpoint operations of the registry: change the store, send the change to every active session, and report how it
//! is bound.

use std::path::Path;

use futures_util::future::join_all;

use super::managed_session::ManagedSession;
use super::registry::SessionRegistry;
use crate::dap::types::{DataBreakpoint, DataBreakpointInfoArguments};
use crate::debug::breakpoints::sync::unsupported_exceptions;
use crate::debug::breakpoints::{
    BindingStatus, BreakpointConditions, BreakpointKind, BreakpointSpec, DataAccess, ExceptionSpec,
};
use crate::debug::inspect::ScopedId;
use crate::debug::session::debug_session::{ChangedBreakpoints, DebugSession};
use crate::debug::session::requests::Resume;
use crate::debug::session::snapshot::RunState;
use crate::debug::session::target_handle::TargetHandle;
use crate::error::{Error, Result};

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
    /// What was wrong with the file of the breakpoints.
    pub fn store_problem(&self) -> Option<String> {
        self.0.breakpoints.problem().map(str::to_owned)
    }

    /// Sets a breakpoint on a line, and waits until it is bound. Errors: no such line, the file cannot be written.
    pub async fn set_line_breakpoint(
        &self,
        file: &Path,
        line: u32,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let file = self.0.workspace.join(file);
        let spec = self.0.breakpoints.set_line(&file, line, conditions).await?;
        self.send_to_sessions(ChangedBreakpoints::File(spec.file().unwrap_or(&file))).await;
        Ok(self.wait_for_binding(spec).await)
    }

    /// Sets a breakpoint on a function, and waits until it is bound. Errors: the file cannot be written.
    pub async fn set_function_breakpoint(
        &self,
        name: String,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointStatus> {
        let spec = self.0.breakpoints.set(BreakpointKind::Function { name }, conditions).await?;
        self.send_to_sessions(ChangedBreakpoints::Functions(false)).await;
        Ok(self.wait_for_binding(spec).await)
    }

    /// Sets a data breakpoint in the top frame of a stopped session; without any session it is only stored.
    pub async fn set_data_breakpoint(&self, expression: String, access: DataAccess) -> Result<BreakpointStatus> {
        let active = self.active_sessions();
        let stopped = active.iter().find(|it| it.run_state() == RunState::Stopped);
        let found = match stopped {
            Some(hosted) => Some((hosted, resolve_data_breakpoint(&hosted.session, &expression, access).await?)),
            None if active.is_empty() => None,
            None => {
                let error = Error::usage(format!("cannot watch `{expression}`")).because("no session is stopped");
                return Err(error.hint("`tether debug pause` stops one, in a frame where the data is found"));
            }
        };
        let kind = BreakpointKind::Data { expression: expression.clone(), access };
        let spec = self.0.breakpoints.set(kind, BreakpointConditions::default()).await?;
        if let Some((hosted, (frame, data))) = found {
            let now = hosted.session.evaluate(&expression, Some(frame), "watch").await.ok();
            let now = now.map(|(_, response)| response.result);
            hosted.session.shared.with_state(|state| {
                state.watched.record_value(spec.id, 0, now);
                state.insert_data(frame.target, spec.id, data);
            });
            hosted.session.send_breakpoints(ChangedBreakpoints::Data).await;
        }
        Ok(self.wait_for_binding(spec).await)
    }

    /// Sets on which exceptions to stop. Errors: the file cannot be written.
    pub async fn set_exception_spec(&self, exceptions: ExceptionSpec) -> Result<()> {
        self.0.breakpoints.set_exceptions(exceptions).await?;
        self.send_to_sessions(ChangedBreakpoints::Exceptions).await;
        Ok(())
    }

    /// On which exceptions to stop, and what the adapters support of that.
    pub fn exception_support(&self) -> ExceptionSupport {
        let spec = self.0.breakpoints.current().exceptions().clone();
        let (mut known, mut unsupported) = (Vec::new(), Vec::new());
        for hosted in self.active_sessions() {
            let targets = hosted.session.targets();
            for able in targets.iter().filter(|it| it.are_breakpoints_sent()).map(TargetHandle::capabilities) {
                if let Some(what) = unsupported_exceptions(&spec, &able) {
                    unsupported.push(format!("{} ({}) cannot stop at {what}", hosted.id, hosted.adapter.name));
                }
                known.extend(able.exception_breakpoint_filters.into_iter().map(|filter| filter.filter));
            }
        }
        for names in [&mut known, &mut unsupported] {
            names.sort();
            names.dedup();
        }
        ExceptionSupport { spec, known_filters: known, unsupported }
    }

    /// All breakpoints, on the lines where their code is now.
    pub async fn list_breakpoints(&self) -> Vec<BreakpointStatus> {
        self.0.breakpoints.follow_source_changes().await;
        let list = self.0.breakpoints.current();
        list.all().iter().map(|spec| self.breakpoint_status(spec.clone())).collect()
    }

    /// Removes the breakpoints that `is_removed` selects, and returns them. Errors: the file cannot be written.
    pub async fn remove_breakpoints(
        &self,
        is_removed: impl Fn(&BreakpointSpec) -> bool + Send + 'static,
    ) -> Result<Vec<BreakpointSpec>> {
        self.0.breakpoints.follow_source_changes().await;
        let removed = self.0.breakpoints.remove(is_removed).await?;
        let mut files: Vec<&Path> = removed.iter().filter_map(BreakpointSpec::file).collect();
        files.sort();
        files.dedup();
        for hosted in self.active_sessions() {
            removed.iter().for_each(|spec| hosted.session.forget_breakpoint(spec.id));
            for file in &files {
                hosted.session.send_breakpoints(ChangedBreakpoints::File(file)).await;
            }
            if removed.iter().any(|spec| matches!(spec.kind, BreakpointKind::Function { .. })) {
                hosted.session.send_breakpoints(ChangedBreakpoints::Functions(true)).await;
            }
            if removed.iter().any(|spec| matches!(spec.kind, BreakpointKind::Data { .. })) {
                hosted.session.send_breakpoints(ChangedBreakpoints::Data).await;
            }
        }
        Ok(removed)
    }

    async fn send_to_sessions(&self, changed: ChangedBreakpoints<'_>) {
        let active = self.active_sessions();
        join_all(active.iter().map(|hosted| hosted.session.send_breakpoints(changed))).await;
    }

    async fn wait_for_binding(&self, spec: BreakpointSpec) -> BreakpointStatus {
        let active = self.active_sessions();
        join_all(active.iter().map(|hosted| hosted.session.wait_for_binding(spec.id))).await;
        self.breakpoint_status(spec)
    }

    /// Over all active sessions: verified in one session is verified.
    fn breakpoint_status(&self, spec: BreakpointSpec) -> BreakpointStatus {
        let active = self.active_sessions();
        let statuses = active.iter().map(|hosted| hosted.session.binding_status(spec.id));
        let rank = |status: &BindingStatus| match status {
            BindingStatus::Verified { .. } => 2,
            BindingStatus::Unbound(_) => 1,
            BindingStatus::Pending => 0,
        };
        let status = statuses.max_by_key(rank).unwrap_or(BindingStatus::Pending);
        let hits = active.iter().map(|hosted| hosted.session.hit_count(spec.id)).sum();
        BreakpointStatus { spec, status, hits }
    }

    /// Resumes a stopped session until it reaches a line, or stops before.
    pub async fn run_to_line(&self, hosted: &ManagedSession, file: &Path, line: u32) -> Result<()> {
        hosted.session.resolve_thread(None)?;
        let file = self.0.workspace.join(file);
        if let Some(spec) = self.0.breakpoints.temporary_on_line(&file, line).await? {
            hosted.session.set_temporary_breakpoint(spec).await;
        }
        hosted.session.resume(Resume::Continue, None).await
    }
}

/// The adapter's id of data in the top frame, found by the whole expression or as a variable of one of its scopes.
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
    // Data that is in no scope still has an address (lldb-dap).
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
                        return Err(cannot().because(format!("the adapter can only watch: {can}")));
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
