//! Continue, step, pause, wait, stop.

use std::path::Path;
use std::time::Duration;

use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams, StepKind};
use crate::api::debug::results::{SessionEndReport, StopReport};
use crate::api::debug::values::{FileLine, Seconds};
use crate::api::debug::{DEFAULT_STEP_TIMEOUT, DEFAULT_STOP_TIMEOUT, DebugStopParams, WaitForStopParams};
use crate::debug::inspect::ScopedId;
use crate::debug::{ManagedSession, Resume, RunState, SessionRegistry};
use crate::error::Result;
use crate::ring::RingQuery;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::debug as convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

impl OperationHandler for WaitForStopParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<StopReport> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let timeout = self.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT);
        wait_and_report(sessions, &hosted, Some(timeout), self.budget).await
    }
}

impl OperationHandler for DebugContinueParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<StopReport> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        hosted.session.resume(Resume::Continue, thread_key(self.thread_id)).await?;
        wait_and_report(sessions, &hosted, self.wait, self.budget).await
    }
}

impl OperationHandler for DebugPauseParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<StopReport> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        hosted.session.pause(self.thread_id.map(ScopedId::from_external)).await?;
        wait_and_report(sessions, &hosted, Some(self.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)), self.budget).await
    }
}

impl OperationHandler for DebugStepParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<StopReport> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let how = match self.kind {
            StepKind::Over => Resume::Over,
            StepKind::Into => Resume::Into,
            StepKind::Out => Resume::Out,
        };
        hosted.session.resume(how, thread_key(self.thread_id)).await?;
        wait_and_report(sessions, &hosted, Some(self.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)), self.budget).await
    }
}

impl OperationHandler for DebugRunToParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<StopReport> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let spot = FileLine::parse(&self.file, self.line)?;
        sessions.run_to_line(&hosted, Path::new(&spot.file), spot.line).await?;
        wait_and_report(sessions, &hosted, Some(self.wait.unwrap_or(DEFAULT_STOP_TIMEOUT)), self.budget).await
    }
}

fn thread_key(id: Option<i64>) -> Option<(usize, i64)> {
    id.map(ScopedId::from_external).map(|it| (it.target, it.id))
}

/// Waits for a stop if `wait` is given, and reports the state of the session.
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
                Some(format!("{vain}{} reports: {said}", hosted.adapter.name))
            }
            None => vain,
        };
    }
    Ok(convert::stop_report(hosted, waited, budget, sessions.workspace()).await)
}

/// The newest `important` output of the adapter since `since`, its first line; such as that a condition cannot be evaluated.
fn important_message(hosted: &ManagedSession, since: u64) -> Option<String> {
    let query = RingQuery { since: Some(since), limit: usize::MAX, filter: None };
    let mut said = hosted.session.event_log().read_output(&query).entries;
    said.retain(|it| it.category == "important");
    said.last()?.text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

impl OperationHandler for DebugStopParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<SessionEndReport> {
        let hosted = context.sessions.find_session(self.session_id.as_deref())?;
        // A session that its user stops no longer follows the window.
        context.followers.remove(&hosted.id);
        let detach = self.detach.unwrap_or_else(|| hosted.is_attached());
        let state = context.sessions.stop_session(&hosted, detach).await;
        Ok(SessionEndReport {
            session_id: hosted.id.clone(),
            state: convert::session_state(state),
            exit_code: hosted.exit_code(),
            message: hosted.problem(),
        })
    }
}
