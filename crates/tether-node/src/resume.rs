//! Continues, steps, pauses. A resume is of one isolate: the others that have stopped stay stopped.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tether_backend::Answer;
use tether_cdp::CdpError;
use tether_cdp::debugger::{
    PauseScript, RemoveBreakpoint, RestartCallFrame, ResumeScript, SetScriptBreakpoint, StepInto, StepOut, StepOver,
};
use tether_cdp::types::ReleaseObjectGroup;
use tokio::join;

use super::isolate::{Isolate, RequestedMove, StepKind, StepStart};
use super::session::NodeSession;
use super::variables::STOP_OBJECTS;
use super::watch_stops;

/// When a pause is requested again; a program that waits for an event pauses at its next code.
const PAUSE_REPEATS: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(4)];

/// How long an isolate may take to answer that it will pause.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long an isolate may take for a breakpoint that is not to stop it.
const BREAKPOINT_TIMEOUT: Duration = Duration::from_millis(500);

/// Before a paused isolate runs: lets the engine optimise the functions that it has paused in.
pub(crate) async fn restore_speed(isolate: &Isolate) {
    let places = isolate.with_state(|state| state.slowed.take_places());
    let restored = places.map(|location| async {
        // Refused where a breakpoint is: its function is slow until that is removed. Fails when the isolate has ended.
        let set = isolate.call_within(&SetScriptBreakpoint { location, condition: None }, BREAKPOINT_TIMEOUT).await;
        if let Ok(set) = set {
            let _ = isolate.send(&RemoveBreakpoint { breakpoint_id: set.breakpoint_id }).await;
        }
    });
    join_all(restored).await;
}

/// The objects that a stop has shown may be collected from now on.
async fn release_objects(isolate: &Isolate) {
    // Fails when the isolate has ended.
    let _ = isolate.call(&ReleaseObjectGroup { object_group: STOP_OBJECTS.to_owned() }).await;
}

/// Continues a thread that has stopped. Returns whether all threads run now. Errors: it has not stopped.
pub(crate) async fn continue_thread(session: &NodeSession, thread_id: i64) -> Answer<bool> {
    let isolate = leave_pause(session, thread_id, RequestedMove::Run)?;
    let resume = async {
        restore_speed(&isolate).await;
        isolate.call(&ResumeScript {}).await
    };
    join!(release_objects(&isolate), resume).1?;
    Ok(session.isolates().iter().all(|isolate| isolate.pause().is_none()))
}

/// Steps a thread that has stopped. Errors: it has not.
pub(crate) async fn step(session: &NodeSession, thread_id: i64, kind: StepKind) -> Answer<()> {
    let is_in_setter = session.isolate(thread_id)?.pause().is_some_and(|pause| pause.is_watched_write());
    let isolate = leave_pause(session, thread_id, RequestedMove::Step(kind))?;
    let step = async {
        if is_in_setter {
            watch_stops::step_from_setter(session, &isolate, kind).await
        } else {
            send_step(&isolate, kind).await
        }
    };
    join!(release_objects(&isolate), step).1
}

/// Sends a step to the engine.
pub(crate) async fn send_step(isolate: &Isolate, kind: StepKind) -> Answer<()> {
    match kind {
        StepKind::Into => isolate.call(&StepInto {}).await?,
        StepKind::Over => isolate.call(&StepOver {}).await?,
        StepKind::Out => isolate.call(&StepOut {}).await?,
    };
    Ok(())
}

/// Pauses a thread as soon as it runs code; it may wait for an event.
pub(crate) async fn pause(session: &NodeSession, thread_id: i64) -> Answer<()> {
    let isolate = session.isolate(thread_id)?;
    if isolate.pause().is_none() {
        isolate.with_state(|state| state.requested = RequestedMove::Pause);
        match isolate.call_within(&PauseScript {}, PAUSE_TIMEOUT).await {
            // It pauses once it runs code again.
            Err(CdpError::TimedOut { .. }) => {}
            answered => drop(answered?),
        }
    }
    Ok(())
}

/// Requests again the pauses that have not come: the engine may drop one that it takes up in code that steps pass over.
pub(crate) async fn repeat_pauses(session: &NodeSession) {
    for delay in PAUSE_REPEATS {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = session.dap.wait_closed() => return,
        }
        let awaits = |isolate: &Arc<Isolate>| {
            isolate.with_state(|state| state.pause.is_none() && state.requested == RequestedMove::Pause)
        };
        let waiting: Vec<_> = session.isolates().into_iter().filter(awaits).collect();
        if waiting.is_empty() {
            return;
        }
        for isolate in waiting {
            // Fails when it has ended.
            let _ = isolate.call(&PauseScript {}).await;
        }
    }
}

/// Runs a frame anew from its beginning.
pub(crate) async fn restart_frame(session: &NodeSession, frame_id: i64) -> Answer<()> {
    let (isolate, pause, frame) = session.find_frame(frame_id)?;
    let at = frame.depth.and_then(|depth| pause.event.call_frames.get(depth));
    let at = at.ok_or("a frame that waits for an asynchronous call cannot be restarted")?;
    let restart = RestartCallFrame { call_frame_id: at.call_frame_id.clone(), mode: "StepInto" };
    leave_pause(session, isolate.id, RequestedMove::Step(StepKind::Into))?;
    isolate.call(&restart).await?;
    Ok(())
}

/// What is known of a pause is forgotten before the isolate runs.
fn leave_pause(session: &NodeSession, thread_id: i64, requested: RequestedMove) -> Answer<Arc<Isolate>> {
    let isolate = session.isolate(thread_id)?;
    let was_paused = isolate.with_state(|state| {
        let left = state.pause.take();
        if let Some(pause) = &left {
            (state.requested, state.steps_without_source) = (requested, 0);
            (state.step_start, state.is_stepping_back) = (StepStart::of(&pause.event), false);
        }
        left.is_some()
    });
    if !was_paused {
        return Err("notStopped".into());
    }
    session.forget_pause(thread_id);
    Ok(isolate)
}
