//! Reading the timeline, and waiting for what comes next.

use std::time::Duration;

use tether_base::error::Result;
use tether_base::sync::run_blocking;
use tokio::time::{Instant, interval_at, timeout_at};

use crate::api::debug::DEFAULT_STOP_TIMEOUT;
use crate::api::timeline::{AWAITED_KINDS, AwaitedEvents, TimelineEvents, TimelineReadParams, WaitForAnyParams};
use crate::debug::SessionEntry;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::timeline::{TimelineExtract, TimelineQuery};
use crate::vocabulary::{RunState, TimelineEvent, TimelineKind};
use crate::window::Caller;

const DEFAULT_LIMIT: usize = 50;
/// Of what a wait returns at once.
const MAX_AWAITED: usize = 20;
/// Between two messages about what is waited for.
const PROGRESS_PERIOD: Duration = Duration::from_secs(5);

impl OperationHandler for TimelineReadParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<TimelineEvents> {
        let TimelineReadParams { since, limit, kinds } = self;
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        let found = read_timeline(context, TimelineQuery { since, limit, kinds: kinds.unwrap_or_default() }).await?;
        let TimelineExtract { events, cursor, dropped, more } = found;
        Ok(TimelineEvents { events, cursor, dropped, more })
    }
}

impl OperationHandler for WaitForAnyParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<AwaitedEvents> {
        let began = Instant::now();
        let deadline = began + self.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).duration();
        let kinds = self.kinds.unwrap_or_else(|| AWAITED_KINDS.to_vec());
        let mut recorded = context.timeline().watch();
        let mut since = match self.since {
            Some(since) => since,
            None => {
                let first = begin_wait(context, &kinds, self.began_at).await?;
                if !first.events.is_empty() {
                    return Ok(awaited(context, first, began).await);
                }
                first.cursor
            }
        };
        let mut progress = interval_at(began + PROGRESS_PERIOD, PROGRESS_PERIOD);
        loop {
            recorded.borrow_and_update();
            let query = TimelineQuery { since: Some(since), limit: MAX_AWAITED, kinds: kinds.clone() };
            let found = read_timeline(context, query).await?;
            if !found.events.is_empty() {
                return Ok(awaited(context, found, began).await);
            }
            since = found.cursor;
            let changed = async {
                loop {
                    tokio::select! {
                        changed = recorded.changed() => return changed.is_ok(),
                        _ = progress.tick() => call.report_progress(&describe_waiting(context)),
                    }
                }
            };
            if !timeout_at(deadline, changed).await.unwrap_or(false) {
                let message = Some(format!("nothing has happened; {}", describe_waiting(context)));
                let waited_ms = began.elapsed().as_millis() as u64;
                return Ok(AwaitedEvents { events: Vec::new(), cursor: since, waited_ms, message });
            }
        }
    }
}

async fn read_timeline(context: &SupervisorContext, query: TimelineQuery) -> Result<TimelineExtract> {
    let timeline = context.timeline().clone();
    run_blocking(move || timeline.read(&query)).await
}

/// What a wait without a cursor returns at once: the last stop of each session that is stopped; what has come since the wait
/// began, where it is a repetition. Else the cursor of now.
async fn begin_wait(
    context: &SupervisorContext,
    kinds: &[TimelineKind],
    began_at: Option<u64>,
) -> Result<TimelineExtract> {
    let query = TimelineQuery { since: None, limit: usize::MAX, kinds: kinds.to_vec() };
    let mut found = read_timeline(context, query).await?;
    let newest_stop = |session: ListedSession| found.events.iter().rev().find(|event| is_stop_of(event, &session));
    let stops: Vec<u64> = stopped_sessions(context).filter_map(newest_stop).map(|event| event.number).collect();
    let is_missed = |event: &TimelineEvent| began_at.is_some_and(|began_at| event.at >= began_at);
    found.events.retain(|event| stops.contains(&event.number) || is_missed(event));
    let over = found.events.len().saturating_sub(MAX_AWAITED);
    found.events.drain(..over);
    Ok(found)
}

fn stopped_sessions(context: &SupervisorContext) -> impl Iterator<Item = ListedSession> {
    context.active_sessions().into_iter().filter(|it| it.run_state() == RunState::Stopped)
}

fn is_stop_of(event: &TimelineEvent, session: &ListedSession) -> bool {
    event.kind == TimelineKind::Stopped && event.session_id.as_deref() == Some(session.id())
}

/// The result, with the place of each stop at which a program still is.
async fn awaited(context: &SupervisorContext, found: TimelineExtract, began: Instant) -> AwaitedEvents {
    let TimelineExtract { mut events, cursor, .. } = found;
    for session in stopped_sessions(context) {
        let newest = events.iter_mut().rev().find(|event| is_stop_of(event, &session));
        let Some(stop) = newest.filter(|stop| stop.place.is_none()) else { continue };
        let location = session.stop_location(&context.sessions).await;
        stop.place = location.and_then(|it| Some(format!("{}:{}", it.source_path?, it.line_number)));
    }
    AwaitedEvents { events, cursor, waited_ms: began.elapsed().as_millis() as u64, message: None }
}

/// What could still bring something: "d1 is RUNNING, the window runs".
fn describe_waiting(context: &SupervisorContext) -> String {
    let sessions = context.active_sessions();
    let mut parts: Vec<String> =
        sessions.iter().map(|it| format!("{} is {}", it.id(), it.run_state().name())).collect();
    if context.window.watch().borrow().window.is_some() {
        parts.push("the window runs".to_owned());
    }
    if parts.is_empty() { "no session and no window runs".to_owned() } else { parts.join(", ") }
}
