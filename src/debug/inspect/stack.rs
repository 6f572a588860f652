//! The stack of a stopped thread and the scopes of its frames, each requested once per stop.

use tether_base::error::{Error, Result};
use tether_dap::types::{DapScope, ScopesArguments, StackTraceArguments, StackTraceResponse};

use super::frame::{StackFrameInfo, ThreadStack};
use super::scoped_id::ScopedId;
use crate::debug::session::debug_session::DebugSession;

/// The stack of a stopped thread, without one of the thread of the primary stop: `levels` frames from `start` on.
pub async fn read_stack(
    session: &DebugSession,
    thread: Option<ScopedId>,
    start: Option<i64>,
    levels: Option<i64>,
) -> Result<ThreadStack> {
    let generation = session.snapshot().generation;
    let (target, id) = session.resolve_thread(thread.map(|it| (it.target, it.id)))?;
    let thread = ScopedId { target, id };
    let from_top = start.unwrap_or(0) == 0;
    // All for none or 0.
    let most = levels.filter(|levels| *levels > 0).map_or(usize::MAX, |levels| levels as usize);
    let _turn = session.shared.stack_requests.lock().await;
    let known = session.shared.with_state(|state| state.stop_cache.stack(generation, thread, most));
    if let Some(known) = known.filter(|_| from_top) {
        return Ok(known);
    }
    let request = StackTraceArguments { thread_id: id, start_frame: start, levels };
    let answer: StackTraceResponse =
        session.request(target, &request).await.map_err(|cause| session.request_error("read the stack", cause))?;
    let mut frames: Vec<StackFrameInfo> =
        answer.stack_frames.into_iter().map(|frame| StackFrameInfo::from_response(thread, frame)).collect();
    // Some adapters return all frames whatever `levels` is.
    frames.truncate(most);
    let stack = ThreadStack { thread, frames, total: answer.total_frames };
    if from_top {
        session.shared.with_state(|state| state.stop_cache.insert_stack(generation, stack.clone(), most));
    }
    Ok(stack)
}

/// That frame, or the top one of the primary stop.
pub async fn resolve_frame(session: &DebugSession, frame: Option<ScopedId>) -> Result<ScopedId> {
    if let Some(frame) = frame {
        return Ok(frame);
    }
    let stack = read_stack(session, None, None, Some(1)).await?;
    let none = || Error::other("cannot choose a frame").because("the stopped thread has none");
    stack.frames.first().map(|frame| frame.id).ok_or_else(none)
}

/// The scopes of a frame.
pub async fn list_scopes(session: &DebugSession, frame: ScopedId) -> Result<Vec<DapScope>> {
    let generation = session.snapshot().generation;
    if let Some(known) = session.shared.with_state(|state| state.stop_cache.scopes(generation, frame)) {
        return Ok(known);
    }
    let answer = session.request(frame.target, &ScopesArguments { frame_id: frame.id }).await;
    let scopes = answer.map_err(|cause| session.request_error("read the scopes", cause))?.scopes;
    session.shared.with_state(|state| state.stop_cache.insert_scopes(generation, frame, scopes.clone()));
    Ok(scopes)
}
