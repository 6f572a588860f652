//! The state of debug sessions.

use tether_base::error::Result;

use super::convert;
use crate::api::debug::DebugStatusParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus, TargetStatus, ThreadStatus};
use crate::debug::inspect;
use crate::debug::inspect::ThreadInfo;
use crate::debug::{ManagedSession, SessionRegistry, TargetSnapshot};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::vocabulary::StopKind;

impl OperationHandler for DebugStatusParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<DebugStatus> {
        let sessions = &context.sessions;
        let all = sessions.list_sessions();
        let notes = Vec::from_iter(sessions.breakpoint_store_problem().await);
        let living = all.iter().filter(|managed| !managed.is_ended()).count();
        let is_in_window = |managed: &ManagedSession| managed.is_following() && !managed.is_ended();
        let is_window_stale = all.iter().any(is_in_window) && context.window.find_stale_cause().await.is_some();
        if self.session_id.is_some() || living == 1 {
            let managed = sessions.find_session(self.session_id.as_deref())?;
            let session = Some(full_status(sessions, &managed, is_window_stale).await);
            return Ok(DebugStatus { session, sessions: None, notes });
        }
        let (ended, living): (Vec<ManagedSession>, Vec<ManagedSession>) =
            all.into_iter().partition(ManagedSession::is_ended);
        let mut listed = Vec::new();
        for managed in living.iter().chain(&ended) {
            listed.push(full_status(sessions, managed, is_window_stale).await);
        }
        Ok(DebugStatus { session: None, sessions: Some(listed), notes })
    }
}

/// A session in the window is stale when the window is.
async fn full_status(
    sessions: &SessionRegistry,
    managed: &ManagedSession,
    is_window_stale: bool,
) -> DebugSessionStatus {
    let workspace = sessions.workspace();
    let snapshot = managed.session.snapshot();
    let mut reasons = Vec::new();
    for (target, stop) in snapshot.stops() {
        reasons.push(inspect::stop_cause(&managed.session, target, stop).await);
    }
    let threads = inspect::list_threads(&managed.session).await;
    let thread = |it: &ThreadInfo| {
        let reason = reasons.iter().find(|reason| reason.thread == Some(it.id));
        let stop_reason = reason.map(|reason| convert::stop_reason(reason, workspace));
        let ThreadInfo { name, state, holds, waits_for, .. } = it.clone();
        ThreadStatus { thread_id: it.id.to_external(), name, stop_reason, state, holds, waits_for }
    };
    let mut known = known_status(managed);
    for target in &mut known.targets {
        let own = threads.iter().filter(|thread| thread.id.target == target.target_id);
        target.thread_ids = own.map(|thread| thread.id.to_external()).collect();
    }
    let thrown = reasons.first().filter(|reason| reason.kind == StopKind::Exception);
    DebugSessionStatus {
        stop_reason: reasons.first().map(|reason| convert::stop_reason(reason, workspace)),
        suspended_threads: threads.iter().filter(|it| it.stopped).map(thread).collect(),
        running_threads: threads.iter().filter(|it| !it.stopped).map(thread).collect(),
        exception: thrown.map(convert::exception_report),
        stale: if managed.is_following() { is_window_stale } else { managed.is_stale() },
        ..known
    }
}

/// The status without requests to the adapter: for notifications.
pub fn known_status(managed: &ManagedSession) -> DebugSessionStatus {
    let snapshot = managed.session.snapshot();
    let programs = managed.programs();
    let target = |(target_id, target): (usize, &TargetSnapshot)| {
        let program = programs.get(target.program);
        let first = snapshot.targets.iter().position(|it| it.program == target.program);
        TargetStatus {
            target_id,
            parent: target.parent,
            name: target.name.clone(),
            state: target.state.phase.run_state(),
            pid: target.pid.or_else(|| program?.program_pid().filter(|_| first == Some(target_id))),
            thread_ids: Vec::new(),
            language: program.and_then(program_language),
        }
    };
    DebugSessionStatus {
        session_id: managed.id.clone(),
        name: managed.request.name.clone(),
        adapter: managed.adapter.name.to_owned(),
        connected: !managed.is_ended(),
        vm_name: snapshot.targets.iter().find_map(|target| target.vm_name.clone()),
        state: snapshot.run_state(),
        stop_reason: snapshot.stops().first().map(|(target, stop)| convert::stop_reason_from_event(*target, stop)),
        targets: snapshot.targets.iter().enumerate().map(target).collect(),
        pid: managed.program_pid(),
        adapter_pid: managed.adapter_pid(),
        started_at: managed.started_at,
        ended_at: managed.ended_at(),
        exit_code: managed.exit_code(),
        message: managed.problem().or_else(|| signal_message(managed)).or_else(|| pending_notices(managed)),
        editors: snapshot.editors.iter().map(|editor| editor.name.to_string()).collect(),
        resumed_by: snapshot.last_resume().map(|it| format!("{} ({})", it.by, it.how.name())),
        ..DebugSessionStatus::default()
    }
}

/// A native debugger does not say which of its languages a program is written in.
fn program_language(program: &ManagedSession) -> Option<String> {
    match program.adapter.languages {
        [first, ..] if !program.adapter.languages.contains(&"rust") => Some((*first).to_owned()),
        _ => program.request.language.clone(),
    }
}

/// The end of a program that was ended by a signal, and so has no exit code.
fn signal_message(managed: &ManagedSession) -> Option<String> {
    let ends = managed.program_ends();
    let signal = ends.iter().find_map(|end| end.signal)?;
    Some(format!("the program was ended by signal {signal}"))
}

/// Notices that the next result of another operation includes too.
fn pending_notices(managed: &ManagedSession) -> Option<String> {
    Some(managed.session.event_log().pending_notices().join("; ")).filter(|text| !text.is_empty())
}
