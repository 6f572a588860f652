//! Operations on sessions in hosts: passed on as they are.

use serde_json::{Map, Value};
use tether_base::error::{Error, ErrorKind, Result};
use tokio::time::timeout;

use crate::api::OperationParams;
use crate::api::debug::breakpoints::WatchpointSetParams;
use crate::api::debug::inspect::DebugSourceParams;
use crate::api::debug::results::StopReport;
use crate::api::debug::{DEFAULT_STOP_TIMEOUT, DebugStatusParams, DebugStopParams, WaitForStopParams};
use crate::debug::SessionEntry;
use crate::session_host::operations::is_session_operation;
use crate::session_host::operations::stop_report::{StopWait, wait_and_report};
use crate::session_host::operations::wait_limit::WaitLimit;
use crate::session_host::params::read_params;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::supervisor::operation_call::OperationCall;
use crate::vocabulary::RunState;

/// Over more than one session.
const OVER_ALL: [&str; 2] = [DebugStatusParams::METHOD, WatchpointSetParams::METHOD];
const SESSION_PARAM: &str = "sessionId";

/// Carries out an operation on a session in its host. `None`: it is of no such session.
pub async fn call_in_host(context: &SupervisorContext, call: &OperationCall<'_>) -> Option<Result<Value>> {
    if !is_session_operation(call.method) || OVER_ALL.contains(&call.method) || context.hosted.is_empty() {
        return None;
    }
    let named = call.params.get(SESSION_PARAM).and_then(Value::as_str);
    if named.is_none() && call.method == DebugSourceParams::METHOD && call.params.get("file").is_some() {
        return source_of_any(context, call).await;
    }
    if named.is_none() && call.method == WaitForStopParams::METHOD {
        let active = context.active_sessions();
        if active.len() > 1 {
            return Some(wait_for_any(context, active, call).await);
        }
    }
    match context.find_session(named) {
        Ok(ListedSession::Hosted(hosted)) => {
            if call.method == DebugStopParams::METHOD {
                // A session that its user stops no longer follows the window.
                context.followers.remove(&hosted.id);
            }
            Some(hosted.call(call.method, &call.params).await)
        }
        Ok(ListedSession::Here(_)) => None,
        Err(error) => Some(Err(error)),
    }
}

/// A file as the first session knows it whose program runs another text; as it is now, where none does.
async fn source_of_any(context: &SupervisorContext, call: &OperationCall<'_>) -> Option<Result<Value>> {
    let (mut plain, mut failure) = (None, None);
    for session in context.active_sessions() {
        let ListedSession::Hosted(hosted) = session else { continue };
        match hosted.call(call.method, &call.params).await {
            Ok(excerpt) if excerpt.get("note").is_some() => return Some(Ok(excerpt)),
            Ok(excerpt) => drop(plain.get_or_insert(excerpt)),
            Err(error) => drop(failure.get_or_insert(error)),
        }
    }
    // Those in this process may know more.
    if !context.sessions.list_sessions().is_empty() {
        return None;
    }
    plain.map(Ok).or(failure.map(Err))
}

/// Waits until one of several sessions has stopped or ended, and reports that one.
async fn wait_for_any(
    context: &SupervisorContext,
    active: Vec<ListedSession>,
    call: &OperationCall<'_>,
) -> Result<Value> {
    let params: WaitForStopParams = read_params(&call.params)?;
    let limit = WaitLimit::start(Some(params.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT)));
    let mut changed = context.sessions.watch();
    let is_settled = |it: &&ListedSession| it.is_ended() || it.run_state() == RunState::Stopped;
    let settled = async {
        loop {
            changed.borrow_and_update();
            // Of several, the oldest session.
            if let Some(settled) = active.iter().find(is_settled) {
                return settled.clone();
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let settled = timeout(limit.remaining(), settled).await.ok();
    let none = || Error::new(ErrorKind::NotFound, "there is no debug session");
    let reported = settled.clone().or_else(|| active.first().cloned()).ok_or_else(none)?;
    let waited = call.started.elapsed();
    let mut report = report_stop(context, &reported, &params, limit).await?;
    report.waited_ms = waited.as_millis() as u64;
    if settled.is_none() && !report.stopped {
        let ids: Vec<&str> = active.iter().map(SessionEntry::id).collect();
        let reason = report.message.unwrap_or_default();
        report.message = Some(format!("{reason} (of {})", ids.join(", ")));
    }
    serde_json::to_value(report).map_err(|cause| Error::other("cannot serialize the report of a stop").because(cause))
}

/// The report of a session that has stopped or ended, or has not in time.
async fn report_stop(
    context: &SupervisorContext,
    session: &ListedSession,
    params: &WaitForStopParams,
    limit: WaitLimit,
) -> Result<StopReport> {
    match session {
        ListedSession::Here(managed) => {
            wait_and_report(&context.here, managed, StopWait::begin(managed, limit, params.budget)).await
        }
        ListedSession::Hosted(hosted) => {
            let left = limit.remaining().as_secs_f64();
            let mut asked = Map::new();
            asked.insert("timeout".to_owned(), left.into());
            asked.extend(params.budget.map(|budget| ("budget".to_owned(), budget.into())));
            let report = hosted.call(WaitForStopParams::METHOD, &Value::Object(asked)).await?;
            serde_json::from_value(report)
                .map_err(|cause| Error::other("cannot read the report of a stop").because(cause))
        }
    }
}
