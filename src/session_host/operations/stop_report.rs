//! Waits for the stop of a session, or for the first of several, and reports it: its reason, what is visible there.
//!
//! Does not depend on why a caller waits.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tether_base::error::Result;
use tether_base::ring::RingQuery;
use tokio::time::{Instant, timeout, timeout_at};

use super::convert;
use super::end_message::{describe_end, lost_exception_notes, require_test_run};
use super::wait_limit::WaitLimit;
use crate::api::debug::DEFAULT_SNAPSHOT_TOKENS;
use crate::api::debug::results::{StopLocation, StopReason, StopReport, StopSnapshot};
use crate::debug::breakpoints::{BindingStatus, BreakpointKind, BreakpointSpec};
use crate::debug::inspect::{self, FailedCondition, ScopedId};
use crate::debug::{FileNames, ManagedSession, SessionRegistry, ThreadStop, WaitOutcome};
use crate::session_host::context::SessionContext;
use crate::session_host::protocol::ReportParams;
use crate::vocabulary::RunState;

/// For reading a stop, when the operation has no limit: longer than its requests' own deadlines together.
const MAX_REPORT_TIME: Duration = Duration::from_secs(3600);
/// How long the last output of a program that failed may take to be read.
const LAST_OUTPUT_TIME: Duration = Duration::from_secs(2);
/// Approximate.
pub const BYTES_PER_TOKEN: usize = 4;

/// A wait for the stop of a session, begun before what may cause the stop.
pub struct StopWait {
    limit: WaitLimit,
    /// Of the snapshot, in tokens.
    budget: Option<u32>,
    /// What its adapter prints from here on may be why it does not stop.
    since: u64,
}

impl StopWait {
    /// A wait that begins now.
    pub fn begin(managed: &ManagedSession, limit: WaitLimit, budget: Option<u32>) -> StopWait {
        StopWait { limit, budget, since: managed.session.event_log().output_cursor() }
    }
}

/// Waits for a stop if there is a wait, and reports the state of the session.
pub async fn wait_and_report(
    context: &SessionContext,
    managed: &ManagedSession,
    StopWait { limit, budget, since }: StopWait,
) -> Result<StopReport> {
    let (managed, mut waited) = wait_for_stop(context, managed, limit).await;
    let managed = &managed;
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
    let report = stop_report(managed, waited, (limit.time_with_grace(), budget), &context.sessions).await;
    require_test_run(context.test_runner(&managed.id), managed, report.state)?;
    Ok(report)
}

/// Waits for a stop, also while a session whose connection was lost is attached to again. Returns the session that it is of.
async fn wait_for_stop(
    context: &SessionContext,
    managed: &ManagedSession,
    limit: WaitLimit,
) -> (ManagedSession, WaitOutcome) {
    let began = Instant::now();
    let mut managed = managed.clone();
    loop {
        let waited = managed.session.wait_for_stop(limit.remaining()).await;
        let mut again = None;
        if waited.state == RunState::Disconnected && limit.has_wait() {
            let reconnection = context.sessions.wait_for_reconnection(&managed);
            again = timeout(limit.remaining(), reconnection).await.ok().flatten();
        }
        match again {
            Some(again) => managed = again,
            None => return (managed, WaitOutcome { waited: began.elapsed(), ..waited }),
        }
    }
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
    context: &SessionContext,
    sessions: &[ManagedSession],
    limit: WaitLimit,
    budget: Option<u32>,
) -> Result<StopReport> {
    let waits = sessions.iter().map(|managed| managed.session.wait_for_stop(limit.remaining()).boxed());
    // Of several that have stopped already, the oldest session.
    let (waited, index, _) = select_all(waits).await;
    let first = &sessions[index];
    let report = wait_and_report(context, first, StopWait::begin(first, limit, budget)).await?;
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

/// The report of a wait, with a snapshot when it ended with a stop. What is not read within the time is left out.
pub async fn stop_report(
    managed: &ManagedSession,
    waited: WaitOutcome,
    (time, budget): (Option<Duration>, Option<u32>),
    sessions: &SessionRegistry,
) -> StopReport {
    let names = sessions.file_names_of(managed);
    let time = time.unwrap_or(Duration::MAX);
    let until = Instant::now() + time.min(MAX_REPORT_TIME);
    let exit_code = timeout_at(until, managed.exit_code_once_ended()).await.unwrap_or_else(|_| managed.exit_code());
    if waited.state == RunState::Terminated && exit_code != Some(0) {
        // Its last output, which is part of the message, may be read after its end.
        let _ = timeout_at(until.min(Instant::now() + LAST_OUTPUT_TIME), managed.wait_until_ended()).await;
    }
    if waited.stop.is_none() {
        managed.find_undebugged_processes().await;
    }
    let mut report = StopReport {
        session_id: managed.id.clone(),
        stopped: waited.stop.is_some(),
        state: waited.state,
        waited_ms: waited.waited.as_millis() as u64,
        exit_code,
        message: managed
            .problem()
            .filter(|_| waited.state == RunState::Disconnected)
            .or_else(|| describe_end(managed, waited.state))
            .or(waited.message),
        ..StopReport::default()
    };
    report.notes.extend(managed.session.event_log().take_notices());
    report.notes.extend(lost_exception_notes(managed, report.state));
    report.notes.extend(editor_resume_note(managed));
    let Some((target, stop)) = waited.stop else {
        // They may be why nothing stopped.
        report.notes.extend(condition_notes(managed, None));
        report.not_reached = convert::unreached_reports(managed, &names);
        return report;
    };
    report.stop_reason = Some(convert::stop_reason_from_event(target, &stop));
    let read = timeout_at(until, read_stop(managed, (target, &stop), budget, &names)).await;
    match read {
        Ok((reason, snapshot, others)) => {
            (report.stop_reason, report.snapshot, report.also_stopped) = (Some(reason), snapshot, others);
        }
        Err(_) => {
            let note =
                "the stop could not be read in time: its debugger does not answer; `tether debug stack` reads it";
            report.notes.push(note.to_owned());
        }
    }
    let parts = timeout_at(until, inspect::exception_parts(&managed.session, target, &stop)).await.unwrap_or_default();
    report.notes.extend(parts.iter().map(|part| format!("it has in it: {part}")));
    report.notes.extend(stop.hits.first().and_then(|(id, _)| inspect::older_code_note(managed, *id)));
    // At last: lldb-dap reports them behind the stop.
    report.notes.extend(condition_notes(managed, Some(&stop)));
    report
}

/// That it was a joined editor that has resumed the program last.
fn editor_resume_note(managed: &ManagedSession) -> Option<String> {
    let snapshot = managed.session.snapshot();
    let resumed = snapshot.last_resume().filter(|it| it.is_by_editor)?;
    Some(format!("resumed by {} ({})", resumed.by, resumed.how.name()))
}

/// Why the session has stopped, what is visible there, and why its other targets have stopped.
async fn read_stop(
    managed: &ManagedSession,
    (target, stop): (usize, &ThreadStop),
    budget: Option<u32>,
    names: &FileNames,
) -> (StopReason, Option<StopSnapshot>, Vec<StopReason>) {
    let session = &managed.session;
    let budget = budget.unwrap_or(DEFAULT_SNAPSHOT_TOKENS) as usize * BYTES_PER_TOKEN;
    let thread = stop.thread_id.map(|id| ScopedId { target, id });
    let summary = async {
        match thread.filter(|_| budget > 0) {
            Some(thread) => inspect::summarize_stop(session, thread, stop.kind, budget).await.ok(),
            None => None,
        }
    };
    // In this order: the reason needs a part of the stack that the snapshot requests.
    let (summary, first, ()) = tokio::join!(summary, inspect::stop_cause(session, target, stop), names.prepare());
    let mut others = Vec::new();
    for (target, other) in session.snapshot().stops().into_iter().skip(1) {
        others.push(convert::stop_reason(&inspect::stop_cause(session, target, other).await, names));
    }
    (
        convert::stop_reason(&first, names),
        summary.map(|summary| convert::stop_snapshot(managed, summary, names)),
        others,
    )
}

/// Which conditions could not be evaluated.
fn condition_notes(managed: &ManagedSession, stop: Option<&ThreadStop>) -> Vec<String> {
    let note = |failed: FailedCondition| {
        let FailedCondition { candidates, reason, was_hit } = failed;
        let named: Vec<String> = candidates
            .iter()
            .map(|(id, condition)| format!("the condition `{condition}` of breakpoint {id}"))
            .collect();
        format!("{} cannot be evaluated, and counts as {was_hit}: {reason}", named.join(", or "))
    };
    inspect::failed_conditions(&managed.session, stop).into_iter().map(note).collect()
}

/// Waits for a stop after a start, if there is a wait, and reports the state; with `reports_unbound` also which breakpoints are not
/// bound.
pub async fn report_start(
    context: &SessionContext,
    managed: &ManagedSession,
    &ReportParams { wait, budget, reports_unbound }: &ReportParams,
) -> Result<StopReport> {
    let limit = WaitLimit::start(wait);
    let mut notes = Vec::new();
    if reports_unbound {
        let bound = managed.session.wait_until_bound();
        let _ = timeout(limit.time_with_grace().unwrap_or(Duration::MAX), bound).await;
        notes = unbound_notes(&context.sessions, managed);
    }
    let mut report = wait_and_report(context, managed, StopWait::begin(managed, limit, budget)).await?;
    report.notes.extend(notes);
    Ok(report)
}

/// Which line breakpoints no script of a program has that was attached to, and is running.
fn unbound_notes(sessions: &SessionRegistry, managed: &ManagedSession) -> Vec<String> {
    let list = sessions.current_breakpoints();
    let note = |spec: &BreakpointSpec| match (&spec.kind, managed.session.binding_status(spec.id)) {
        (BreakpointKind::Line { .. }, BindingStatus::Unbound(reason) | BindingStatus::Pending(Some(reason))) => {
            let place = sessions.file_names().show_place(&spec.kind).text;
            Some(format!("breakpoint {} at {place} is not bound: {reason}", spec.id))
        }
        _ => None,
    };
    list.breakpoints.iter().filter_map(note).collect()
}

/// Where a program that is stopped is.
pub async fn stop_location(sessions: &SessionRegistry, managed: &ManagedSession) -> Option<StopLocation> {
    let (target, stop) = managed.session.snapshot().stops().first().map(|(target, stop)| (*target, (*stop).clone()))?;
    let cause = inspect::stop_cause(&managed.session, target, &stop).await;
    let names = sessions.file_names_of(managed);
    names.prepare().await;
    convert::stop_reason(&cause, &names).location
}
