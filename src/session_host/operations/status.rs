//! The state of one debug session.

use tether_base::error::Result;

use super::convert;
use crate::api::debug::DebugStatusParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus, TargetStatus, ThreadStatus, UnreachedReport};
use crate::debug::inspect;
use crate::debug::inspect::{ThreadInfo, ThreadList};
use crate::debug::{FileNames, ManagedSession, SessionRegistry, TargetSnapshot};
use crate::session_host::context::SessionContext;
use crate::session_host::operations::SessionOperation;
use crate::vocabulary::StopKind;

impl SessionOperation for DebugStatusParams {
    /// Of one session, which the supervisor names.
    async fn run(self, context: &SessionContext) -> Result<DebugStatus> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let session = Some(full_status(&context.sessions, &managed, false).await);
        Ok(DebugStatus { session, ..DebugStatus::default() })
    }
}

/// A session in the window is stale when the window is.
pub async fn full_status(
    sessions: &SessionRegistry,
    managed: &ManagedSession,
    is_window_stale: bool,
) -> DebugSessionStatus {
    let names = sessions.file_names_of(managed);
    names.prepare().await;
    let snapshot = managed.session.snapshot();
    let mut reasons = Vec::new();
    for (target, stop) in snapshot.stops() {
        reasons.push(inspect::stop_cause(&managed.session, target, stop).await);
    }
    let ThreadList { threads, unlisted } = inspect::read_threads(&managed.session).await;
    let thread = |it: &ThreadInfo| {
        let reason = reasons.iter().find(|reason| reason.thread == Some(it.id));
        let stop_reason = reason.map(|reason| convert::stop_reason(reason, &names));
        let ThreadInfo { name, state, holds, waits_for, .. } = it.clone();
        ThreadStatus { thread_id: it.id.to_external(), name, stop_reason, state, holds, waits_for }
    };
    managed.find_undebugged_processes().await;
    let mut known = known_status(managed);
    for target in &mut known.targets {
        let own = threads.iter().filter(|thread| thread.id.target == target.target_id);
        target.thread_ids = own.map(|thread| thread.id.to_external()).collect();
    }
    let thrown = reasons.first().filter(|reason| reason.kind == StopKind::Exception);
    DebugSessionStatus {
        stop_reason: reasons.first().map(|reason| convert::stop_reason(reason, &names)),
        suspended_threads: threads.iter().filter(|it| it.stopped).map(thread).collect(),
        unlisted_threads: (unlisted > 0).then_some(unlisted),
        running_threads: threads.iter().filter(|it| !it.stopped).map(thread).collect(),
        exception: thrown.map(convert::exception_report),
        not_reached: unreached_once_ended(managed, &names),
        stale: if managed.is_following() && managed.request.follows_window() {
            is_window_stale
        } else {
            managed.is_stale()
        },
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
        not_reached: unreached_once_ended(managed, &managed.absolute_file_names()),
        ..DebugSessionStatus::default()
    }
}

fn unreached_once_ended(managed: &ManagedSession, names: &FileNames) -> Vec<UnreachedReport> {
    if managed.is_ended() { convert::unreached_reports(managed, names) } else { Vec::new() }
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
