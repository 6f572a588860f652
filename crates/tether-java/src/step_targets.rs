//! The requests of a step into a chosen call: what can be chosen, and how such a step goes on.

use tether_backend::Answer;
use tether_base::bounded_file::{self, Links};
use tether_dap::types::{StepInTarget, StepInTargetsResponse};
use tether_jdwp::StepDepth;
use tether_jdwp::commands::threads::FrameCount;
use tether_jdwp::values::ObjectId;

use super::blocking::run_blocking;
use super::session::{FrameSpot, JavaSession};
use super::smart_step::{SmartStep, StepEnd, calls_on_line};
use super::{frames, resume};

/// The largest source that is parsed, in bytes.
const MAX_SOURCE: u64 = 4 << 20;

/// The calls on the line of a frame, in the order in which they are written.
pub(crate) async fn step_in_targets(session: &JavaSession, frame_id: i64) -> Answer<StepInTargetsResponse> {
    let spot = session.frame_spot(frame_id)?;
    let frame = frames::read_frame(session, spot).await?;
    let line = frames::frame_line(session, &frame).await?;
    let path = frames::source_of(session, &frame.class).await?.and_then(|source| source.path);
    let path = path.ok_or_else(|| format!("the source of {} is not found", frame.class.name()))?;
    let shown = path.clone();
    let calls = run_blocking(move || {
        let text = bounded_file::read_text(path.as_ref(), MAX_SOURCE, Links::Follow)?;
        Ok::<_, std::io::Error>(calls_on_line(&text, usize::try_from(line).unwrap_or(0)))
    });
    let names = calls.await?.map_err(|cause| format!("{shown} cannot be read: {cause}"))?;
    let targets = (1..).zip(names.clone()).map(|(id, label)| StepInTarget { id, label }).collect();
    session.with_tables(|tables| tables.step_targets = names);
    Ok(StepInTargetsResponse { targets })
}

/// Steps into the call with that id.
pub(crate) async fn step_into_target(session: &JavaSession, thread_id: i64, target: i64) -> Answer<()> {
    let thread = session.thread(thread_id)?;
    let index = target.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    let method = session.with_tables(|tables| tables.step_targets.get(index?).cloned());
    let method = method.ok_or_else(|| format!("there is no call {target} on this line"))?;
    let frame = frames::read_frame(session, FrameSpot { thread, depth: 0 }).await?;
    let line = frames::frame_line(session, &frame).await?;
    let frames = session.vm.request(&FrameCount { thread }).await?;
    let step = SmartStep { method, frames, caller: frame.location.method, line };
    session.with_tables(|tables| tables.smart_steps.insert(thread, step));
    let stepped = resume::step_thread(session, thread_id, StepDepth::Into).await;
    if stepped.is_err() {
        session.with_tables(|tables| tables.smart_steps.remove(&thread));
    }
    stepped
}

/// A step has ended: the step that follows it, if it was one into a chosen method that has not been reached.
pub(crate) async fn next_smart_step(session: &JavaSession, thread: ObjectId) -> Answer<Option<StepDepth>> {
    let Some(step) = session.with_tables(|tables| tables.smart_steps.get(&thread).cloned()) else { return Ok(None) };
    let frame = frames::read_frame(session, FrameSpot { thread, depth: 0 }).await?;
    let line = frames::frame_line(session, &frame).await?;
    let frames = session.vm.request(&FrameCount { thread }).await?;
    let short_name = frame.class.short_name();
    let end = StepEnd {
        frames,
        class_name: short_name.rsplit('.').next().unwrap_or_default(),
        method_name: &frame.method.name,
        method: frame.location.method,
        line,
    };
    Ok(step.next_step(end))
}
