//! Records in the timeline what this supervisor sees: its own start and end, the window, edits, errors in the console, calls.
//! Sessions record their own part, in their hosts.
//!
//! Does not depend on who reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tether_base::clipped_text::clip_chars;
use tether_base::ring::RingQuery;
use tether_base::sync::lock;
use tokio::time::sleep;

use super::context::SupervisorContext;
use super::operation_call::OperationCall;
use crate::api::{Operation, OperationEffect};
use crate::timeline::{Timeline, TimelineQuery, event_now};
use crate::vocabulary::{RefreshRung, TimelineEvent, TimelineKind};
use crate::window::{FileChange, PublishedState, Window, WindowFeed, WindowPhase};

/// Between two looks at what may come in floods: files, and the console.
const PAUSE: Duration = Duration::from_millis(200);
/// How many edits, or errors in the console, one look records; the others are counted.
const MAX_PER_LOOK: usize = 20;
/// How many edits are known, so that none is recorded twice.
const MAX_KNOWN_EDITS: usize = 2000;
/// Of an expression, or another parameter, in characters.
const MAX_SUBJECT_CHARS: usize = 120;
/// The parameters that say what a call is about, the best first.
const SUBJECTS: [&str; 8] = ["expression", "program", "config", "test", "command", "file", "restart", "name"];

/// Which edits have been recorded, also by an earlier supervisor: the texts of the events, and when each was. Read from the
/// timeline when it is needed first.
#[derive(Default)]
pub(super) struct EditLog(Mutex<Option<BTreeMap<String, u64>>>);

fn recorded_edits(timeline: &Timeline) -> BTreeMap<String, u64> {
    let query = TimelineQuery { since: None, limit: MAX_KNOWN_EDITS, kinds: vec![TimelineKind::Edited] };
    let known = timeline.read(&query).unwrap_or_default().events;
    known.into_iter().map(|event| (event.text, event.at)).collect()
}

impl EditLog {
    /// Records those of the changed files that are new.
    fn record(&self, timeline: &Timeline, changed: &[FileChange]) {
        if changed.is_empty() {
            return;
        }
        let mut known = lock(&self.0);
        let known = known.get_or_insert_with(|| recorded_edits(timeline));
        if known.len() > MAX_KNOWN_EDITS {
            known.clear();
        }
        let mut new = Vec::new();
        for change in changed {
            let (text, at) = (change.to_string(), change.modified_at_ms);
            if known.insert(text.clone(), at) != Some(at) {
                new.push(TimelineEvent { at, ..event_now(TimelineKind::Edited, text) });
            }
        }
        let others = new.len().saturating_sub(MAX_PER_LOOK);
        new.into_iter().take(MAX_PER_LOOK).for_each(|event| timeline.record(event));
        if others > 0 {
            timeline.record(event_now(TimelineKind::Edited, format!("{others} more files have changed")));
        }
    }
}

/// Records what becomes of the window. Never returns.
pub(super) async fn record_window(supervisor: Arc<SupervisorContext>, edits: Arc<EditLog>) {
    let mut published = supervisor.window.watch();
    let mut last = PublishedState::default();
    loop {
        let now = published.borrow_and_update().clone();
        let refreshed_for = now.refreshed_for.as_ref().filter(|_| now.generation != last.generation);
        refreshed_for.iter().for_each(|report| edits.record(supervisor.timeline(), &report.changed));
        for event in window_events(&last, &now) {
            supervisor.timeline().record(event);
        }
        last = now;
        if published.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// What has happened between two states.
fn window_events(last: &PublishedState, now: &PublishedState) -> Vec<TimelineEvent> {
    let mut events = Vec::new();
    let last_build = last.last_build.as_ref().map(|build| build.ended_at_ms);
    if let Some(build) = now.last_build.as_ref().filter(|build| Some(build.ended_at_ms) != last_build) {
        let text = if build.ok { "" } else { build.tail.trim().lines().last().unwrap_or_default() };
        let event = event_now(TimelineKind::Built, text);
        let took_ms = Some(build.duration.as_millis() as u64);
        events.push(TimelineEvent { at: build.ended_at_ms, took_ms, failed: Some(!build.ok), ..event });
    }
    let ended = |state: &PublishedState| state.check.as_ref().and_then(|check| check.ended_at_ms);
    if let (Some(check), Some(at)) = (&now.check, ended(now).filter(|at| Some(*at) != ended(last))) {
        let text = check.failures.iter().filter_map(|failure| failure.lines().next()).collect::<Vec<_>>().join("; ");
        let event = event_now(TimelineKind::Checked, text);
        events.push(TimelineEvent { at, failed: Some(!check.failures.is_empty()), ..event });
    }
    if let Some(exit) = now.exit.as_ref().filter(|exit| Some(exit.at_ms) != last.exit.as_ref().map(|it| it.at_ms)) {
        let event = event_now(TimelineKind::WindowEnded, format!("by itself: {}", exit.exit));
        events.push(TimelineEvent { at: exit.at_ms, failed: Some(exit.is_crash()), ..event });
    }
    match &now.window {
        Some(window) if last.window.is_none() || now.generation != last.generation => {
            let (kind, how) = match window.refreshed {
                _ if window.reconnected => (TimelineKind::WindowFound, "found again"),
                None => (TimelineKind::WindowLaunched, "launched"),
                Some(refresh) => match refresh.by {
                    RefreshRung::Relaunch => (TimelineKind::WindowLaunched, "relaunched"),
                    RefreshRung::Reload => (TimelineKind::WindowRefreshed, "its page was reloaded"),
                    RefreshRung::RestartExtensionHost => {
                        (TimelineKind::WindowRefreshed, "its extension host was restarted")
                    }
                },
            };
            let newest = now.refreshed_for.as_ref().and_then(|report| report.newest.as_ref());
            let newest = newest.filter(|_| kind != TimelineKind::WindowFound);
            let because = newest.map(|newest| format!(", because {newest}")).unwrap_or_default();
            let text = format!("window {}, process {}: {how}{because}", now.generation, window.session.electron_pid);
            let took_ms = window.refreshed.map(|refresh| refresh.took.as_millis() as u64);
            events.push(TimelineEvent { took_ms, ..event_now(kind, text) });
        }
        None if now.phase == WindowPhase::Absent && last.phase == WindowPhase::Stopping => {
            events.push(event_now(TimelineKind::WindowEnded, "stopped"));
        }
        _ => {}
    }
    events
}

/// Records edits of tracked files, as they happen. Ends with the window's actor.
pub(super) async fn record_edits(supervisor: Arc<SupervisorContext>, edits: Arc<EditLog>) {
    let mut feed = WindowFeed::follow(&supervisor.window);
    let mut published = supervisor.window.watch();
    // Without a window there is nothing to compare the files with, and they are not watched.
    while published.wait_for(|now| now.window.is_some()).await.is_ok() && feed.wait_for_change().await {
        let Ok(changes) = supervisor.window.inspect_changes().await else { continue };
        if let Some(check) = changes.check {
            edits.record(supervisor.timeline(), &check.changed);
        }
        sleep(PAUSE).await;
    }
}

/// Records errors in the window's console. Never returns.
pub(super) async fn record_console(window: Window, timeline: Timeline) {
    let mut count = window.console_count();
    let mut since = window.received_console(&RingQuery { limit: 0, ..RingQuery::default() }).cursor;
    while count.changed().await.is_ok() {
        let received = window.received_console(&RingQuery { since: Some(since), ..RingQuery::default() });
        since = received.cursor;
        let errors = received.entries.iter().filter(|it| matches!(it.level.as_str(), "error" | "exception"));
        let errors: Vec<_> = errors.collect();
        for error in errors.iter().take(MAX_PER_LOOK) {
            let text = error.text.lines().next().unwrap_or_default();
            let event = event_now(TimelineKind::ConsoleError, text);
            timeline.record(TimelineEvent { at: error.at, place: error.location.clone(), ..event });
        }
        if let Some(others) = errors.len().checked_sub(MAX_PER_LOOK).filter(|others| *others > 0) {
            timeline.record(event_now(TimelineKind::ConsoleError, format!("{others} more errors")));
        }
        sleep(PAUSE).await;
    }
    std::future::pending().await
}

/// Records a call that may have an effect: who has called what, and where that has stopped a program.
pub(super) fn record_call(
    context: &SupervisorContext,
    operation: &Operation,
    call: &OperationCall<'_>,
    result: Option<&Value>,
) {
    if operation.effect == OperationEffect::ReadOnly {
        return;
    }
    let text_of = |name: &str| call.params.get(name).and_then(Value::as_str);
    let subject = SUBJECTS.iter().find_map(|name| text_of(name));
    let line = call.params.get("line").and_then(Value::as_u64).map(|line| format!(":{line}")).unwrap_or_default();
    let subject = subject.map(|it| format!(" {}{line}", clip_chars(it, MAX_SUBJECT_CHARS))).unwrap_or_default();
    let field = |name: &str| result.and_then(|result| result.get(name));
    let location = field("stopReason").and_then(|reason| reason.get("location"));
    let place = location.and_then(|it| Some(format!("{}:{}", it["sourcePath"].as_str()?, it["lineNumber"].as_u64()?)));
    let session_id = field("sessionId").and_then(Value::as_str).or_else(|| text_of("sessionId"));
    let event = event_now(TimelineKind::Called, format!("{}{subject}", call.method));
    context.timeline().record(TimelineEvent {
        session_id: session_id.map(str::to_owned),
        place,
        by: Some(call.client.to_owned()),
        took_ms: Some(call.started.elapsed().as_millis() as u64),
        failed: Some(result.is_none()),
        ..event
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::BuildSummary;

    #[test]
    fn a_build_is_recorded_once_with_the_last_line_of_its_failure() {
        let built = |ended_at_ms, ok| {
            let tail = "a.ts(1,2)\nerror TS1\n".to_owned();
            let last_build = Some(BuildSummary { ok, ended_at_ms, duration: Duration::from_millis(5), tail });
            PublishedState { last_build, ..PublishedState::default() }
        };
        let check = |last: &PublishedState, now: &PublishedState, expect: &[(u64, bool, &str)]| {
            let events = window_events(last, now);
            let events: Vec<_> = events.iter().map(|it| (it.at, it.failed.unwrap(), it.text.as_str())).collect();
            assert_eq!(events, expect);
        };
        check(&PublishedState::default(), &built(7, false), &[(7, true, "error TS1")]);
        check(&built(7, false), &built(7, false), &[]);
        check(&built(7, false), &built(9, true), &[(9, false, "")]);
    }
}
