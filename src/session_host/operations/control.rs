//! Continue, step, pause, wait, stop.

use std::path::Path;

use tether_base::error::Result;

use super::stop_report::{StopWait, wait_and_report, wait_for_first_stop};
use super::wait_limit::WaitLimit;
use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams, StepKind};
use crate::api::debug::results::{SessionEndReport, StopReport};
use crate::api::debug::values::FileLine;
use crate::api::debug::{DEFAULT_STEP_TIMEOUT, DEFAULT_STOP_TIMEOUT, DebugStopParams, WaitForStopParams};
use crate::debug::inspect;
use crate::debug::inspect::ScopedId;
use crate::debug::{ManagedSession, Resume, display_path};
use crate::session_host::context::SessionContext;
use crate::session_host::operations::SessionOperation;
use crate::vocabulary::RunState;

const CANNOT_RESUME: &str = "cannot resume the program";
/// The message of a continue that does not wait.
const RUNNING: &str = "running; `tether debug wait` waits for the next stop";

impl SessionOperation for WaitForStopParams {
    async fn run(self, context: &SessionContext) -> Result<StopReport> {
        let limit = WaitLimit::start(Some(self.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT)));
        let active = context.sessions.active_sessions();
        if self.session_id.is_none() && active.len() > 1 {
            return wait_for_first_stop(context, &active, limit, self.budget).await;
        }
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        wait_and_report(context, &managed, StopWait::begin(&managed, limit, self.budget)).await
    }
}

impl SessionOperation for DebugContinueParams {
    async fn run(self, context: &SessionContext) -> Result<StopReport> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let limit = WaitLimit::start(self.wait);
        let wait = StopWait::begin(&managed, limit, self.budget);
        limit.or_timed_out(CANNOT_RESUME, managed.session.resume(Resume::Continue, thread_key(self.thread_id))).await?;
        let report = wait_and_report(context, &managed, wait).await?;
        Ok(match report.state {
            RunState::Running if !limit.has_wait() => {
                StopReport { message: report.message.or_else(|| Some(RUNNING.to_owned())), ..report }
            }
            _ => report,
        })
    }
}

impl SessionOperation for DebugPauseParams {
    async fn run(self, context: &SessionContext) -> Result<StopReport> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let limit = WaitLimit::start(Some(self.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)));
        let wait = StopWait::begin(&managed, limit, self.budget);
        let thread = self.thread_id.map(ScopedId::from_external);
        limit.or_timed_out("cannot pause the program", inspect::pause_thread(&managed.session, thread)).await?;
        wait_and_report(context, &managed, wait).await
    }
}

impl SessionOperation for DebugStepParams {
    async fn run(self, context: &SessionContext) -> Result<StopReport> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let how = match self.kind {
            StepKind::Over => Resume::Over,
            StepKind::Into => Resume::Into,
            StepKind::Out => Resume::Out,
        };
        let limit = WaitLimit::start(Some(self.wait.unwrap_or(DEFAULT_STEP_TIMEOUT)));
        let wait = StopWait::begin(&managed, limit, self.budget);
        limit.or_timed_out(CANNOT_RESUME, managed.session.resume(how, thread_key(self.thread_id))).await?;
        wait_and_report(context, &managed, wait).await
    }
}

impl SessionOperation for DebugRunToParams {
    async fn run(self, context: &SessionContext) -> Result<StopReport> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let spot = FileLine::parse(&self.file, self.line)?;
        let limit = WaitLimit::start(Some(self.wait.unwrap_or(DEFAULT_STOP_TIMEOUT)));
        let wait = StopWait::begin(&managed, limit, self.budget);
        let resumed = context.sessions.run_to_line(&managed, Path::new(&spot.file), spot.line);
        limit.or_timed_out(CANNOT_RESUME, resumed).await?;
        let mut report = wait_and_report(context, &managed, wait).await?;
        if matches!(report.state, RunState::Terminated | RunState::Disconnected) {
            let file = display_path(context.sessions.workspace(), Path::new(&spot.file));
            let never = format!("{file}:{} was never reached", spot.line);
            report.message = Some(report.message.map_or(never.clone(), |message| format!("{never}: {message}")));
        }
        Ok(report)
    }
}

fn thread_key(id: Option<i64>) -> Option<(usize, i64)> {
    id.map(ScopedId::from_external).map(|it| (it.target, it.id))
}

impl SessionOperation for DebugStopParams {
    async fn run(self, context: &SessionContext) -> Result<SessionEndReport> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let state = context.sessions.stop_session(&managed, self.detach).await?;
        Ok(end_report(&managed, state))
    }
}

/// What is to be said of a session that was ended.
pub fn end_report(managed: &ManagedSession, state: RunState) -> SessionEndReport {
    SessionEndReport {
        session_id: managed.id.clone(),
        state,
        exit_code: managed.exit_code(),
        message: managed.problem().or_else(|| managed.release_note()),
    }
}
