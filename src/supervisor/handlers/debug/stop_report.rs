//! Waits for the stop of a session, or for the first of several, and reports it.
//!
//! Does not depend on why a caller waits.

use futures_util::FutureExt;
use futures_util::future::select_all;
use tether_base::error::Result;
use tether_base::ring::RingQuery;

use super::convert;
use super::end_message::require_test_run;
use super::wait_limit::WaitLimit;
use crate::api::debug::results::StopReport;
use crate::debug::ManagedSession;
use crate::supervisor::context::SupervisorContext;
use crate::vocabulary::RunState;

/// Waits for a stop if there is a wait, and reports the state of the session.
pub async fn wait_and_report(
    context: &SupervisorContext,
    managed: &ManagedSession,
    limit: WaitLimit,
    budget: Option<u32>,
) -> Result<StopReport> {
    let since = managed.session.event_log().output_cursor();
    let mut waited = managed.session.wait_for_stop(limit.remaining()).await;
    if matches!(waited.state, RunState::Starting | RunState::Running) {
        let timeout = waited.message.filter(|_| limit.has_wait());
        waited.message = match important_message(managed, since) {
            Some(line) => {
                let timeout = timeout.map_or_else(String::new, |message| message + "; ");
                Some(format!("{timeout}{} reports: {line}", managed.adapter.name))
            }
            None => timeout,
        };
    }
    let report =
        convert::stop_report(managed, waited, (limit.request_time(), budget), context.sessions.workspace()).await;
    require_test_run(context.launch_memory.test_runner(&managed.id), managed, report.state)?;
    Ok(report)
}

/// The newest `important` output of the adapter since `since`, its first line; such as that a condition cannot be evaluated.
fn important_message(managed: &ManagedSession, since: u64) -> Option<String> {
    let query = RingQuery { since: Some(since), ..RingQuery::default() };
    let mut entries = managed.session.event_log().read_output(&query).entries;
    entries.retain(|it| it.kind == "important");
    entries.last()?.text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Reports the first stop or end of the sessions, of which there is at least one; its `sessionId` says which it is of.
pub async fn wait_for_first_stop(
    context: &SupervisorContext,
    sessions: &[ManagedSession],
    limit: WaitLimit,
    budget: Option<u32>,
) -> Result<StopReport> {
    let waits = sessions.iter().map(|managed| managed.session.wait_for_stop(limit.remaining()).boxed());
    // Of several that have stopped already, the oldest session.
    let (waited, index, _) = select_all(waits).await;
    let report = wait_and_report(context, &sessions[index], limit, budget).await?;
    let report = StopReport { waited_ms: waited.waited.as_millis() as u64, ..report };
    Ok(match waited.state {
        RunState::Starting | RunState::Running => {
            let ids: Vec<&str> = sessions.iter().map(|managed| managed.id.as_str()).collect();
            let reason = report.message.unwrap_or_default();
            StopReport { message: Some(format!("{reason} (of {})", ids.join(", "))), ..report }
        }
        RunState::Stopped | RunState::Terminated | RunState::Disconnected => report,
    })
}
