//! The state of debug sessions.

use crate::api::debug::DebugStatusParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus, TargetStatus, ThreadStatus};
use crate::debug::{ManagedSession, SessionRegistry};
use crate::error::Result;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::debug as convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
impl OperationHandler for DebugStatusParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<DebugStatus> {
        let sessions = &context.sessions;
        let all = sessions.list_sessions();
        let living = all.iter().filter(|hosted| !hosted.is_ended()).count();
        if self.session_id.is_some() || living == 1 {
            let hosted = sessions.find_session(self.session_id.as_deref())?;
            return Ok(DebugStatus { session: Some(full_status(sessions, &hosted).await), sessions: None });
        }
        let (ended, living): (Vec<ManagedSession>, Vec<ManagedSession>) =
            all.into_iter().partition(ManagedSession::is_ended);
        let mut told = Vec::new();
        for hosted in living.iter().chain(&ended) {
            told.push(full_status(sessions, hosted).await);
        }
        Ok(DebugStatus { session: None, sessions: Some(told) })
    }
}

async fn full_status(sessions: &SessionRegistry, hosted: &ManagedSession) -> DebugSessionStatus {
    let workspace = sessions.workspace();
    let snapshot = hosted.session.snapshot();
    let mut reasons = Vec::new();
    for (target, stop) in snapshot.stops() {
        reasons.push(hosted.session.stop_cause(target, stop).await);
    }
    let threads = hosted.session.threads().await;
    let thread = |it: &crate::debug::inspect::ThreadInfo| ThreadStatus {
        thread_id: it.id.to_external(),
        name: it.name.clone(),
        stop_reason: reasons
            .iter()
            .find(|reason| reason.thread == Some(it.id))
            .map(|reason| convert::stop_reason(reason, workspace)),
    };
    let thrown = reasons.first().filter(|reason| reason.kind == crate::debug::StopKind::Exception);
    DebugSessionStatus {
        stop_reason: reasons.first().map(|reason| convert::stop_reason(reason, workspace)),
        suspended_threads: threads.iter().filter(|it| it.stopped).map(thread).collect(),
        running_threads: threads.iter().filter(|it| !it.stopped).map(thread).collect(),
        exception: thrown.map(convert::exception_report),
        stale: hosted.is_stale(),
        ..known_status(hosted)
    }
}

/// The status without requests to the adapter: for notifications.
pub fn known_status(hosted: &ManagedSession) -> DebugSessionStatus {
    let snapshot = hosted.session.snapshot();
    let target = |target: &crate::debug::TargetSnapshot| TargetStatus {
        name: target.name.clone(),
        state: convert::session_state(target.state.phase.run_state()),
    };
    DebugSessionStatus {
        session_id: hosted.id.clone(),
        name: hosted.request.name.clone(),
        adapter: hosted.adapter.name.to_owned(),
        connected: !hosted.is_ended(),
        state: convert::session_state(snapshot.run_state()),
        stop_reason: snapshot.stops().first().map(|(target, stop)| convert::stop_reason_from_event(*target, stop)),
        targets: snapshot.targets.iter().map(target).collect(),
        pid: hosted.pid,
        started_at: hosted.started_at,
        ended_at: hosted.ended_at(),
        exit_code: hosted.exit_code(),
        message: hosted.problem().or_else(|| pending_notices(hosted)),
        ..DebugSessionStatus::default()
    }
}

/// Notices that the next result of another operation includes too.
fn pending_notices(hosted: &ManagedSession) -> Option<String> {
    Some(hosted.session.event_log().pending_notices().join("; ")).filter(|text| !text.is_empty())
}
