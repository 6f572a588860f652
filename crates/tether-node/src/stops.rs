//! From the pauses of the engine to the stops of DAP.
//!
//! A pause is of one isolate; the others run on. A pause before a script with a map is for us: its breakpoints are bound
//! before it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tether_backend::Answer;
use tether_cdp::debugger::{PausedEvent, RemoveBreakpoint, ResumeScript};
use tether_dap::types::StoppedEvent;

use super::breakpoint_table::{NodeBreakpoint, NodeBreakpointPlace};
use super::evaluation::{SideEffects, run_expression};
use super::isolate::{Isolate, IsolatePause, RequestedMove, StepKind, StepStart};
use super::module_announcements::announce_worker_modules;
use super::resume::{self, restore_speed};
use super::session::NodeSession;
use super::{breakpoints, map_loading, watch_stops};

/// Of so many frames of a pause the source maps are read at once; of the others when they are shown.
const MAX_MAPPED_FRAMES: usize = 20;
/// How many more steps one step may take through code without a source.
const MAX_STEPS_WITHOUT_SOURCE: usize = 200;

/// The engine's name of the pause at the first line of a program, or worker, that was told to wait.
const AT_START: &str = "Break on start";
/// The engine's name of the pause before a script with a source map.
pub(crate) const BEFORE_SCRIPT: &str = "beforeScriptWithSourceMapExecution";

/// How the session goes on at a pause of the engine.
enum PauseOutcome {
    Stop(StopReport),
    Resume,
    /// A step was sent: the isolate pauses again.
    StepsOn,
}

/// A stop as it is reported.
#[derive(Debug, Default)]
struct StopReport {
    reason: &'static str,
    description: Option<String>,
    text: Option<String>,
    breakpoints: Vec<i64>,
}

/// The isolate runs on as it did before a pause that was for us.
async fn leave_preparation(isolate: &Isolate) -> Answer<()> {
    match isolate.with_state(|state| state.requested) {
        RequestedMove::Step(StepKind::Into) | RequestedMove::Pause => resume::send_step(isolate, StepKind::Into).await,
        // Back to where the script is loaded from.
        RequestedMove::Step(_) => resume::send_step(isolate, StepKind::Out).await,
        RequestedMove::Run => {
            isolate.call(&ResumeScript {}).await?;
            Ok(())
        }
    }
}

/// Stops, goes on with a step, or lets the isolate run: the engine has paused.
pub(crate) async fn handle_paused(session: &NodeSession, isolate: &Arc<Isolate>, event: PausedEvent) -> Answer<()> {
    if event.reason == "instrumentation" || event.hit_breakpoints.iter().any(|id| is_instrumentation(id)) {
        let script = event.data.as_ref().and_then(|data| data["scriptId"].as_str());
        if let Some(script) = script.and_then(|id| session.script(isolate.id, id)) {
            map_loading::load_map(session, isolate, &script).await;
        }
        return leave_preparation(isolate).await;
    }
    let Some(event) = watch_stops::handle_watch_pause(session, isolate, event).await? else { return Ok(()) };
    let top = event.call_frames.first().and_then(|frame| session.script(isolate.id, &frame.location.script_id));
    if top.is_some_and(|script| session.is_hook(&script)) {
        return leave_preparation(isolate).await;
    }
    // Maps of frames whose scripts were parsed before we were there.
    for frame in event.call_frames.iter().take(MAX_MAPPED_FRAMES) {
        if let Some(script) = session.script(isolate.id, &frame.location.script_id) {
            map_loading::load_map(session, isolate, &script).await;
        }
    }
    if event.reason == AT_START && !isolate.is_main() {
        announce_worker_modules(session, isolate).await;
    }
    isolate.with_state(|state| state.slowed.record(&event));
    match find_report(session, isolate, &event).await? {
        PauseOutcome::Stop(report) => {
            isolate.with_state(|state| {
                state.requested = RequestedMove::Run;
                state.enter_pause(event)
            });
            breakpoints::rebind_functions(session, isolate).await;
            send_stopped(session, isolate, report).await;
        }
        PauseOutcome::Resume => {
            restore_speed(isolate).await;
            isolate.call(&ResumeScript {}).await?;
        }
        PauseOutcome::StepsOn => {}
    }
    Ok(())
}

async fn send_stopped(session: &NodeSession, isolate: &Isolate, report: StopReport) {
    let stopped = StoppedEvent {
        reason: report.reason.to_owned(),
        description: report.description,
        thread_id: Some(isolate.id),
        text: report.text,
        all_threads_stopped: false,
        hit_breakpoint_ids: report.breakpoints,
        data_change: None,
        thread_name: Some(isolate.name.clone()),
    };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&stopped).await;
}

async fn find_report(session: &NodeSession, isolate: &Arc<Isolate>, event: &PausedEvent) -> Answer<PauseOutcome> {
    if matches!(event.reason.as_str(), "exception" | "promiseRejection") {
        let is_requested = isolate.with_state(|state| state.requested) == RequestedMove::Pause;
        let pause = || is_requested.then(|| StopReport { reason: "pause", ..StopReport::default() });
        let report = exception_report(session, isolate, event).or_else(pause);
        return Ok(report.map_or(PauseOutcome::Resume, PauseOutcome::Stop));
    }
    let (stopping, is_entry) = count_hits(session, isolate, event).await;
    if is_entry {
        return Ok(PauseOutcome::Stop(StopReport { reason: "entry", ..StopReport::default() }));
    }
    if !stopping.is_empty() {
        let report = StopReport { reason: "breakpoint", breakpoints: stopping, ..StopReport::default() };
        return Ok(PauseOutcome::Stop(report));
    }
    // A worker that was told to wait for us pauses at its first line.
    if event.reason == AT_START {
        return Ok(PauseOutcome::Resume);
    }
    let requested = isolate.with_state(|state| state.requested);
    match requested {
        RequestedMove::Step(kind) => {
            if let Some(back) = step_back(isolate, event, kind) {
                resume::send_step(isolate, back).await?;
                return Ok(PauseOutcome::StepsOn);
            }
            if is_without_source(session, isolate, event) && step_on(isolate, kind).await? {
                return Ok(PauseOutcome::StepsOn);
            }
            Ok(PauseOutcome::Stop(StopReport { reason: "step", ..StopReport::default() }))
        }
        RequestedMove::Pause => Ok(PauseOutcome::Stop(StopReport { reason: "pause", ..StopReport::default() })),
        // Reached a breakpoint whose condition on its count does not hold.
        _ if !event.hit_breakpoints.is_empty() => Ok(PauseOutcome::Resume),
        RequestedMove::Run => {
            let description = Some("Paused on debugger statement".to_owned());
            Ok(PauseOutcome::Stop(StopReport { reason: "pause", description, ..StopReport::default() }))
        }
    }
}

fn exception_report(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> Option<StopReport> {
    let data = event.data.as_ref()?;
    let is_uncaught = data["uncaught"].as_bool().unwrap_or(false);
    let settings = session.with_settings(|settings| *settings);
    let top = event.call_frames.first().and_then(|frame| session.script(isolate.id, &frame.location.script_id));
    // What Node throws and catches itself is nobody's exception.
    let is_own = top.is_none_or(|script| !script.is_skipped);
    let is_failure = (settings.stops_at_assertions || settings.stops_at_failures) && is_assertion(data);
    let stops = match is_uncaught {
        // The engine may take for uncaught what a runner throws again.
        _ if is_failure => is_new_failure(session, isolate, event, data),
        true => settings.stops_at_uncaught,
        false => {
            (settings.stops_at_caught && is_own)
                || (settings.stops_at_failures && is_own_throw(session, isolate, event))
        }
    };
    stops.then(|| StopReport {
        reason: "exception",
        description: Some("Paused on exception".to_owned()),
        text: thrown_text(data),
        ..StopReport::default()
    })
}

/// Whether the user's own code throws: a test fails with that, though its runner catches it.
fn is_own_throw(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> bool {
    let script = event.call_frames.first().and_then(|top| session.script(isolate.id, &top.location.script_id));
    let path = script.filter(|script| !script.is_skipped).and_then(|script| script.path.clone());
    path.is_some_and(|path| session.maps.covers(&path))
}

/// Whether a failed assertion was not reported yet: what is thrown leaves several functions, and rejects promises.
fn is_new_failure(session: &NodeSession, isolate: &Isolate, event: &PausedEvent, thrown: &Value) -> bool {
    if is_retried(event) || !comes_from_user(session, isolate, event) {
        return false;
    }
    // Its message and its stack.
    let failure = thrown["description"].as_str().map(str::to_owned);
    isolate.with_state(|state| std::mem::replace(&mut state.last_failure, failure.clone()) != failure)
}

/// Whether the user's own code has called, or awaits, what throws. A runner throws again what a test has thrown.
fn comes_from_user(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> bool {
    let is_own = |id: &str| {
        let script = session.script(isolate.id, id);
        script.is_some_and(|script| !script.is_skipped && script.path.is_some() && !session.is_hook(&script))
    };
    let awaiting = std::iter::successors(event.async_stack_trace.as_ref(), |trace| trace.parent.as_deref());
    event.call_frames.iter().any(|frame| is_own(&frame.location.script_id))
        || awaiting.flat_map(|trace| &trace.call_frames).any(|frame| is_own(&frame.script_id))
}

/// Functions that call assertions until none fails: of testing-library, of vitest, of Playwright.
const RETRYING: [&str; 4] = ["checkCallback", "waitFor", "poll", "toPass"];

fn is_retried(event: &PausedEvent) -> bool {
    let last_word = |name: &str| name.rsplit(['.', ' ']).next().is_some_and(|word| RETRYING.contains(&word));
    event.call_frames.iter().any(|frame| last_word(&frame.function_name))
}

/// Whether it is what `node:assert`, chai (vitest, mocha) or the `expect` of jest or Playwright throw.
fn is_assertion(thrown: &Value) -> bool {
    let class = thrown["className"].as_str().unwrap_or_default();
    let first = thrown["description"].as_str().and_then(|text| text.lines().next()).unwrap_or_default();
    // Jest's is an `Error` outside of its own module; its message begins so, with the colours of the terminal.
    class.ends_with("AssertionError") || first.starts_with("AssertionError") || first.contains("expect(")
}

/// Which of the breakpoints that were reached stop the isolate, and whether it is at its entry.
async fn count_hits(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> (Vec<i64>, bool) {
    let (mut stopping, mut entry, mut reached) = (Vec::new(), None, BTreeSet::new());
    let line = original_line(session, isolate, event);
    let script = event.call_frames.first().and_then(|top| session.script(isolate.id, &top.location.script_id));
    session.with_breakpoints(|breakpoints| {
        for engine_id in &event.hit_breakpoints {
            let Some((found, bound)) = breakpoints.find_bound(isolate.id, engine_id) else { continue };
            if !script.as_ref().is_none_or(|script| found.is_stop(&bound, script, line)) {
                continue;
            }
            if matches!(found.wanted.place, NodeBreakpointPlace::Entry(_)) {
                entry = Some((found.id, engine_id.clone()));
                continue;
            }
            // One stop may be at two places of the engine: by the URL, and in the script.
            if !reached.insert(found.id) {
                continue;
            }
            if found.count_hit() {
                stopping.push(found.id);
            }
        }
    });
    if event.reason == AT_START {
        for id in hits_at_start(session, isolate, event).await {
            if reached.insert(id)
                && session.with_breakpoints(|all| all.entries.get_mut(&id).is_some_and(NodeBreakpoint::count_hit))
            {
                stopping.push(id);
            }
        }
    }
    if let Some((id, breakpoint_id)) = &entry {
        session.with_breakpoints(|breakpoints| breakpoints.entries.remove(id));
        // Fails when the isolate has ended.
        let _ = isolate.call(&RemoveBreakpoint { breakpoint_id: breakpoint_id.clone() }).await;
    }
    stopping.sort_unstable();
    (stopping, entry.is_some())
}

/// The breakpoints at the place where a worker starts that were bound there once it had paused: the engine does not stop there
/// again.
async fn hits_at_start(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> Vec<i64> {
    let Some(top) = event.call_frames.first() else { return Vec::new() };
    let Some(script) = session.script(isolate.id, &top.location.script_id) else { return Vec::new() };
    let place = script.map().and_then(|map| map.original_place(top.location.line_number, top.location.column_number));
    let Some(place) = place else { return Vec::new() };
    let is_there = |entry: &&NodeBreakpoint| {
        let is_line = entry.place.is_some_and(|(line, _)| line == place.line);
        is_line && entry.file() == Some(&place.path) && entry.is_in_script(isolate.id, &script)
    };
    let there: Vec<NodeBreakpoint> =
        session.with_breakpoints(|breakpoints| breakpoints.entries.values().filter(is_there).cloned().collect());
    let mut hits = Vec::new();
    for entry in there {
        let holds = match breakpoints::condition_of(session, &entry) {
            None => true,
            Some(condition) => {
                let value = run_expression(session, isolate, Some(top), &condition, SideEffects::Allow).await;
                value.is_ok_and(|value| value.value == Some(Value::Bool(true)))
            }
        };
        if holds {
            hits.push(entry.id);
        }
    }
    hits
}

/// Whether the isolate is in code that a compiler has added.
fn is_without_source(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> bool {
    let at = event.call_frames.first().map(|frame| &frame.location);
    let script = at.and_then(|at| session.script(isolate.id, &at.script_id));
    script.is_some_and(|script| script.map().is_some()) && original_line(session, isolate, event).is_none()
}

/// The line of the source that the isolate is on, by a map.
fn original_line(session: &NodeSession, isolate: &Isolate, event: &PausedEvent) -> Option<i64> {
    let at = event.call_frames.first().map(|frame| &frame.location)?;
    let script = session.script(isolate.id, &at.script_id)?;
    Some(script.map()?.original_place(at.line_number, at.column_number)?.line)
}

/// Steps once more, unless it has often enough.
async fn step_on(isolate: &Isolate, kind: StepKind) -> Answer<bool> {
    let steps = isolate.with_state(|state| {
        state.steps_without_source = state.steps_without_source.saturating_add(1);
        state.steps_without_source
    });
    if steps > MAX_STEPS_WITHOUT_SOURCE {
        return Ok(false);
    }
    resume::send_step(isolate, kind).await?;
    Ok(true)
}

/// A step that has reached a breakpoint which does not stop there ends in no function that it would have passed over: how it
/// goes on. `None`: it has ended.
fn step_back(isolate: &Isolate, event: &PausedEvent, kind: StepKind) -> Option<StepKind> {
    let now = StepStart::of(event);
    isolate.with_state(|state| {
        let is_interrupted = !event.hit_breakpoints.is_empty();
        let next = next_step_back(kind, state.step_start, now, (is_interrupted, state.is_stepping_back));
        state.is_stepping_back = next.is_some();
        next
    })
}

fn next_step_back(
    kind: StepKind,
    start: StepStart,
    now: StepStart,
    (is_interrupted, is_stepping_back): (bool, bool),
) -> Option<StepKind> {
    let deepest = match kind {
        StepKind::Into => return None,
        StepKind::Over => start.depth,
        StepKind::Out => start.depth.saturating_sub(1),
    };
    if now.depth > deepest {
        return (is_interrupted || is_stepping_back).then_some(StepKind::Out);
    }
    // Back in the statement that has called.
    (kind == StepKind::Over && is_stepping_back && now == start).then_some(StepKind::Over)
}

fn is_instrumentation(engine_id: &str) -> bool {
    engine_id.split_once(':').is_some_and(|(_, name)| name == BEFORE_SCRIPT)
}

/// The first line of what was thrown.
fn thrown_text(data: &Value) -> Option<String> {
    let text = data["description"].as_str().map(str::to_owned).or_else(|| match &data["value"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    text.map(|text| text.lines().next().unwrap_or_default().to_owned())
}

impl IsolatePause {
    /// Whether it is at an exception.
    pub(crate) fn is_exception(&self) -> bool {
        matches!(self.event.reason.as_str(), "exception" | "promiseRejection")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_was_interrupted_goes_back_to_where_it_may_end() {
        let check = |kind, now: (usize, i64), is_stepping_back: bool, next| {
            let [start, now] = [(2, 10), now].map(|(depth, line)| StepStart { depth, line });
            let how = (!is_stepping_back, is_stepping_back);
            assert_eq!(next_step_back(kind, start, now, how), next, "{kind:?} {now:?} {is_stepping_back}");
        };
        for is_stepping_back in [false, true] {
            check(StepKind::Over, (3, 50), is_stepping_back, Some(StepKind::Out));
            check(StepKind::Over, (2, 11), is_stepping_back, None);
            check(StepKind::Over, (1, 90), is_stepping_back, None);
            check(StepKind::Out, (3, 50), is_stepping_back, Some(StepKind::Out));
            check(StepKind::Out, (2, 10), is_stepping_back, Some(StepKind::Out));
            check(StepKind::Out, (1, 90), is_stepping_back, None);
            check(StepKind::Into, (3, 50), is_stepping_back, None);
        }
        check(StepKind::Over, (2, 10), true, Some(StepKind::Over));
        check(StepKind::Over, (2, 10), false, None);
        // Nothing has interrupted it.
        let [start, now] = [1, 2].map(|depth| StepStart { depth, line: 1 });
        assert_eq!(next_step_back(StepKind::Over, start, now, (false, false)), None);
    }
}
