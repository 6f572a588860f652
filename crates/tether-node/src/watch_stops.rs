//! The pauses in setters of watched properties, as stops of the functions that write them.
//!
//! The setter is the innermost frame, and is not shown. A step first leaves it, which ends at the statement after the one
//! that has written.

use tether_backend::Answer;
use tether_cdp::debugger::{PausedEvent, PausedFrame, ResumeScript};
use tether_dap::types::{DataChange, StoppedEvent};

use super::data_breakpoint_table::NodeDataBreakpoint;
use super::evaluation::{self, SideEffects};
use super::isolate::{Isolate, IsolatePause, RequestedMove, StepKind};
use super::property_watches::pause_line;
use super::session::NodeSession;
use super::value_text::value_text;
use super::{breakpoints, resume};

/// The reason of a pause in a setter; the engine has no such reason.
const WATCHED_WRITE: &str = "watchedWrite";

/// Handles a pause in an accessor of a watched property; returns any other.
pub(crate) async fn handle_watch_pause(
    session: &NodeSession,
    isolate: &Isolate,
    event: PausedEvent,
) -> Answer<Option<PausedEvent>> {
    let is_leaving = session.with_data_breakpoints(|table| table.leaving_setters.remove(&isolate.id));
    let is_out = isolate.with_state(|state| state.requested) == RequestedMove::Step(StepKind::Out);
    let is_exception = matches!(event.reason.as_str(), "exception" | "promiseRejection");
    if is_leaving && is_out && !is_exception && event.hit_breakpoints.is_empty() {
        resume::send_step(isolate, StepKind::Out).await?;
        return Ok(None);
    }
    let Some(accessor) = event.call_frames.first().filter(|frame| frame.function_name == session.binding).cloned()
    else {
        return Ok(Some(event));
    };
    if Some(accessor.location.line_number) == pause_line() {
        handle_write(session, isolate, event, &accessor).await?;
    } else {
        // A step into the accessor.
        resume::send_step(isolate, StepKind::Out).await?;
    }
    Ok(None)
}

async fn handle_write(
    session: &NodeSession,
    isolate: &Isolate,
    mut event: PausedEvent,
    setter: &PausedFrame,
) -> Answer<()> {
    let writer = event.call_frames.get(1).unwrap_or(setter).clone();
    let stopping = count_writes(session, isolate, setter, &writer).await;
    let Some(name) = stopping.first().map(|entry| entry.property.name.clone()) else {
        return pass_write(session, isolate).await;
    };
    let description = Some(format!("{name} is written"));
    let (old_value, new_value) = (
        setter_value(session, isolate, setter, "it.before").await,
        setter_value(session, isolate, setter, "it.value").await,
    );
    // Written by the engine itself, there is no other frame.
    if event.call_frames.len() > 1 {
        event.call_frames.remove(0);
    }
    event.reason = WATCHED_WRITE.to_owned();
    isolate.with_state(|state| {
        state.requested = RequestedMove::Run;
        state.enter_pause(event)
    });
    breakpoints::rebind_functions(session, isolate).await;
    let stopped = StoppedEvent {
        reason: "data breakpoint".to_owned(),
        description,
        thread_id: Some(isolate.id),
        text: None,
        all_threads_stopped: false,
        hit_breakpoint_ids: stopping.iter().map(|entry| entry.id).collect(),
        data_change: Some(DataChange { name, old_value, new_value }),
        thread_name: Some(isolate.name.clone()),
    };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&stopped).await;
    Ok(())
}

/// The data breakpoints that a write stops at.
async fn count_writes(
    session: &NodeSession,
    isolate: &Isolate,
    setter: &PausedFrame,
    writer: &PausedFrame,
) -> Vec<NodeDataBreakpoint> {
    let watch = evaluation::run_expression(session, isolate, Some(setter), "it.id", SideEffects::Allow).await.ok();
    let watch = watch.and_then(|watch| watch.value?.as_i64());
    let is_written =
        |entry: &&NodeDataBreakpoint| entry.property.isolate == isolate.id && Some(entry.property.watch) == watch;
    let written: Vec<NodeDataBreakpoint> =
        session.with_data_breakpoints(|table| table.entries.iter().filter(is_written).cloned().collect());
    let mut stopping = Vec::new();
    for entry in written {
        if is_condition_met(session, isolate, &entry, writer).await && count_hit(session, entry.id) {
            stopping.push(entry);
        }
    }
    stopping
}

async fn is_condition_met(
    session: &NodeSession,
    isolate: &Isolate,
    entry: &NodeDataBreakpoint,
    writer: &PausedFrame,
) -> bool {
    let Some(condition) = entry.wanted.condition.as_deref().filter(|text| !text.trim().is_empty()) else {
        return true;
    };
    match evaluation::run_expression(
        session,
        isolate,
        Some(writer),
        &format!("!!(\n{condition}\n)"),
        SideEffects::Allow,
    )
    .await
    {
        Ok(result) => result.value == Some(true.into()),
        Err(failure) => {
            session.report_condition_failure(condition, failure.0).await;
            false
        }
    }
}

/// Counts a hit; returns whether it stops.
fn count_hit(session: &NodeSession, id: i64) -> bool {
    session.with_data_breakpoints(|table| {
        let Some(entry) = table.entries.iter_mut().find(|entry| entry.id == id) else { return false };
        entry.hit_count = entry.hit_count.saturating_add(1);
        entry.hits.is_none_or(|hits| hits.is_met(entry.hit_count))
    })
}

async fn setter_value(
    session: &NodeSession,
    isolate: &Isolate,
    setter: &PausedFrame,
    expression: &str,
) -> Option<String> {
    let value = evaluation::run_expression(session, isolate, Some(setter), expression, SideEffects::Allow).await;
    value.ok().map(|value| value_text(&value))
}

/// The write stops nothing: the isolate goes on as it did.
async fn pass_write(session: &NodeSession, isolate: &Isolate) -> Answer<()> {
    match isolate.with_state(|state| state.requested) {
        RequestedMove::Step(kind) => step_from_setter(session, isolate, kind).await,
        RequestedMove::Pause => step_from_setter(session, isolate, StepKind::Over).await,
        RequestedMove::Run => {
            isolate.call(&ResumeScript {}).await?;
            Ok(())
        }
    }
}

/// Steps from a setter as if it were not there.
pub(crate) async fn step_from_setter(session: &NodeSession, isolate: &Isolate, kind: StepKind) -> Answer<()> {
    if kind == StepKind::Out {
        session.with_data_breakpoints(|table| table.leaving_setters.insert(isolate.id));
    }
    resume::send_step(isolate, StepKind::Out).await
}

impl IsolatePause {
    /// Whether it is in the setter of a watched property.
    pub(crate) fn is_watched_write(&self) -> bool {
        self.event.reason == WATCHED_WRITE
    }
}
