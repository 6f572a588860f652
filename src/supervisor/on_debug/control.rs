//! Going on, stepping, pausing, waiting, ending.

use std::path::Path;
use std::time::Duration;

use super::words;
use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams, StepKind};
use crate::api::debug::results::{
    DebugSessionStatus, DebugStatus, SessionEndReport, StopReport, TargetStatus, ThreadStatus,
};
use crate::api::debug::values::{FileLine, Seconds};
use crate::api::debug::{
    DEFAULT_STEP_TIMEOUT, DEFAULT_STOP_TIMEOUT, DebugStatusParams, DebugStopParams, WaitForStopParams,
};
use crate::debug::inspect::ScopedId;
use crate::debug::{ManagedSession, Resume, RunState, SessionRegistry};
use crate::error::Result;
use crate::ring::RingQuery;
use crate::supervisor::server::SupervisorContext;

pub async fn wait_for_stop(sessions: &SessionRegistry, it: WaitForStopParams) -> Result<StopReport> {
    let hosted = sessions.find_session(it.session_id.as_deref())?;
    let timeout = it.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT);
    wait_and_report(sessions, &hosted, Some(timeout), it.budget).await
}

pub async fn go_on(sessions: &SessionRegistry, it: DebugContinueParams) -> Result<StopReport> {
    let hosted = sessions.find_session(it.session_id.as_deref())?;
    hosted.session.resume(Resume::Continue, thread_key(it.thread_id)).await?;
    wait_and_report(sessions, &hosted, it.wait, it.budget).await
}

pub async fn pause(sessions: &SessionRegistry, it: DebugPauseParams) -> Result<StopReport> {
    let hosted = sessions.find_session(it.session_id.as_deref())?;
    hosted.session.pause(it.thread_id.map(ScopedId::from_external)).await?;
    wait_and_report(sessions, &hosted, Some(it.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)), it.budget).await
}

pub async fn step(sessions: &SessionRegistry, it: DebugStepParams) -> Result<StopReport> {
    let hosted = sessions.find_session(it.session_id.as_deref())?;
    let how = match it.kind {
        StepKind::Over => Resume::Over,
        StepKind::Into => Resume::Into,
        StepKind::Out => Resume::Out,
    };
    hosted.session.resume(how, thread_key(it.thread_id)).await?;
    wait_and_report(sessions, &hosted, Some(it.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)), it.budget).await
}

pub async fn run_to(sessions: &SessionRegistry, it: DebugRunToParams) -> Result<StopReport> {
    let hosted = sessions.find_session(it.session_id.as_deref())?;
    let spot = FileLine::parse(&it.file, it.line)?;
    sessions.run_to_line(&hosted, Path::new(&spot.file), spot.line).await?;
    wait_and_report(sessions, &hosted, Some(it.wait.unwrap_or(DEFAULT_STOP_TIMEOUT)), it.budget).await
}

fn thread_key(id: Option<i64>) -> Option<(usize, i64)> {
    id.map(ScopedId::from_external).map(|it| (it.target, it.id))
}

/// Waits for a stop if that is wished, and tells where the session is then.
pub async fn wait_and_report(
    sessions: &SessionRegistry,
    hosted: &ManagedSession,
    wait: Option<Seconds>,
    budget: Option<u32>,
) -> Result<StopReport> {
    let since = hosted.session.event_log().output_cursor();
    let mut waited = hosted.session.wait_for_stop(wait.map_or(Duration::ZERO, Seconds::duration)).await;
    if matches!(waited.state, RunState::Starting | RunState::Running) {
        let vain = waited.message.filter(|_| wait.is_some());
        waited.message = match important_message(hosted, since) {
            Some(said) => {
                let vain = vain.map_or_else(String::new, |vain| vain + "; ");
                Some(format!("{vain}{} says: {said}", hosted.adapter.name))
            }
            None => vain,
        };
    }
    Ok(words::stop_report(hosted, waited, budget, sessions.workspace()).await)
}

/// What an adapter wants its user to know, such as that a condition cannot be evaluated: the first line of the newest.
fn important_message(hosted: &ManagedSession, since: u64) -> Option<String> {
    let query = RingQuery { since: Some(since), limit: usize::MAX, filter: None };
    let mut said = hosted.session.event_log().read_output(&query).entries;
    said.retain(|it| it.category == "important");
    said.last()?.text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

pub async fn stop(supervisor: &SupervisorContext, it: DebugStopParams) -> Result<SessionEndReport> {
    let hosted = supervisor.sessions.find_session(it.session_id.as_deref())?;
    // Stopped by its user, it follows the window no more.
    supervisor.followers.remove(&hosted.id);
    let detach = it.detach.unwrap_or_else(|| hosted.is_attached());
    let state = supervisor.sessions.stop_session(&hosted, detach).await;
    Ok(SessionEndReport {
        session_id: hosted.id.clone(),
        state: words::session_state(state),
        exit_code: hosted.exit_code(),
        message: hosted.problem(),
    })
}

pub async fn status(sessions: &SessionRegistry, it: DebugStatusParams) -> Result<DebugStatus> {
    let all = sessions.list_sessions();
    let living = all.iter().filter(|hosted| !hosted.is_ended()).count();
    if it.session_id.is_some() || living == 1 {
        let hosted = sessions.find_session(it.session_id.as_deref())?;
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
            .map(|reason| words::stop_reason(reason, workspace)),
    };
    let thrown = reasons.first().filter(|reason| reason.kind == crate::debug::StopKind::Exception);
    DebugSessionStatus {
        stop_reason: reasons.first().map(|reason| words::stop_reason(reason, workspace)),
        suspended_threads: threads.iter().filter(|it| it.stopped).map(thread).collect(),
        running_threads: threads.iter().filter(|it| !it.stopped).map(thread).collect(),
        exception: thrown.map(words::exception_report),
        stale: hosted.is_stale(),
        ..known_status(hosted)
    }
}

/// As far as it is known without asking the adapter anything: for notifications.
pub fn known_status(hosted: &ManagedSession) -> DebugSessionStatus {
    let snapshot = hosted.session.snapshot();
    let target = |target: &crate::debug::TargetSnapshot| TargetStatus {
        name: target.name.clone(),
        state: words::session_state(target.state.phase.run_state()),
    };
    DebugSessionStatus {
        session_id: hosted.id.clone(),
        name: hosted.request.name.clone(),
        adapter: hosted.adapter.name.to_owned(),
        connected: !hosted.is_ended(),
        state: words::session_state(snapshot.run_state()),
        stop_reason: snapshot.stops().first().map(|(target, stop)| words::stop_reason_from_event(*target, stop)),
        targets: snapshot.targets.iter().map(target).collect(),
        pid: hosted.pid,
        started_at: hosted.started_at,
        ended_at: hosted.ended_at(),
        exit_code: hosted.exit_code(),
        message: hosted.problem().or_else(|| pending_notices(hosted)),
        ..DebugSessionStatus::default()
    }
}

/// What the next answer of another operation is going to say, too.
fn pending_notices(hosted: &ManagedSession) -> Option<String> {
    Some(hosted.session.event_log().pending_notices().join("; ")).filter(|text| !text.is_empty())
}
