//! Conversion of sessions, stops and breakpoints into the API's types.

use std::path::Path;

use crate::api::debug::DEFAULT_SNAPSHOT_TOKENS;
use crate::api::debug::breakpoints::{BreakpointDrift, BreakpointReport, BreakpointState, WatchpointAccess};
use crate::api::debug::results::{
    DebugSessionState, ExceptionReport, FrameEntry, SourceExcerpt, StopDetails, StopLocation, StopReason, StopReport,
    StopSnapshot, StopType, VariableEntry,
};
use crate::debug::breakpoints as book;
use crate::debug::inspect::{self, ScopedId, StopCause, StopSummary, ThrownException};
use crate::debug::{BreakpointStatus, ManagedSession, RunState, StopKind, ThreadStop, WaitOutcome};

/// Approximate.
const BYTES_PER_TOKEN: usize = 4;
/// Values of variables and expressions are cut after this many characters.
const MAX_VALUE_CHARS: usize = 2000;

/// The state of a session or a target.
pub fn session_state(state: RunState) -> DebugSessionState {
    match state {
        RunState::Starting => DebugSessionState::Starting,
        RunState::Running => DebugSessionState::Running,
        RunState::Stopped => DebugSessionState::Stopped,
        RunState::Terminated => DebugSessionState::Terminated,
        RunState::Disconnected => DebugSessionState::Disconnected,
    }
}

fn stop_type(kind: StopKind) -> StopType {
    match kind {
        StopKind::BreakpointHit => StopType::BreakpointHit,
        StopKind::StepComplete => StopType::StepComplete,
        StopKind::Exception => StopType::Exception,
        StopKind::WatchpointAccess => StopType::WatchpointAccess,
        StopKind::WatchpointModify => StopType::WatchpointModify,
        StopKind::MethodEntry => StopType::MethodEntry,
        StopKind::MethodExit => StopType::MethodExit,
        StopKind::VmStart => StopType::VmStart,
        StopKind::VmDeath => StopType::VmDeath,
        StopKind::UserSuspend => StopType::UserSuspend,
        StopKind::Entry => StopType::Entry,
        StopKind::Goto => StopType::Goto,
    }
}

/// The path relative to the workspace when it is in it.
pub fn display_path(workspace: &Path, path: &str) -> String {
    let inside = Path::new(path).strip_prefix(workspace).ok().filter(|rest| !rest.as_os_str().is_empty());
    inside.map_or_else(|| path.to_owned(), |rest| rest.to_string_lossy().into_owned())
}

/// Why, where and on which thread a program stopped.
pub fn stop_reason(reason: &StopCause, workspace: &Path) -> StopReason {
    let top = reason.top_frame.as_ref();
    let location = top.map(|top| StopLocation {
        class_name: None,
        method_name: top.name.clone(),
        line_number: line_number(top.line),
        source_path: top.path().map(|path| display_path(workspace, path)),
    });
    let exception = Some(reason).filter(|it| it.kind == StopKind::Exception).map(exception_report).unwrap_or_default();
    let (field_name, old_value, new_value) = match reason.watched.clone() {
        Some((field, old, new)) => (Some(field), old, new),
        None => (None, None, None),
    };
    let full = |text: String| Some(text).filter(|text| !text.is_empty());
    StopReason {
        kind: stop_type(reason.kind),
        thread_id: reason.thread.map(ScopedId::to_external),
        thread_name: full(reason.thread_name.clone()),
        location,
        details: StopDetails {
            breakpoint_id: reason.breakpoint,
            hit_count: reason.hit_count,
            exception_type: full(exception.class),
            exception_message: full(exception.message),
            field_name,
            old_value,
            new_value,
            text: reason.text.clone(),
        },
    }
}

/// A stop as far as its DAP event describes it, without a request to the adapter.
pub fn stop_reason_from_event(target: usize, stop: &ThreadStop) -> StopReason {
    StopReason {
        kind: stop_type(stop.kind),
        thread_id: stop.thread_id.map(|id| ScopedId { target, id }.to_external()),
        thread_name: None,
        location: None,
        details: StopDetails::default(),
    }
}

/// The exception of a stop.
pub fn exception_report(reason: &StopCause) -> ExceptionReport {
    let ThrownException { class, message, stack } = reason.thrown_exception();
    ExceptionReport { class, message, stack }
}

/// A stack frame, with its path relative to the workspace.
pub fn frame_entry(frame: &inspect::StackFrameInfo, workspace: &Path) -> FrameEntry {
    let reference = frame.source.as_ref().and_then(|source| source.source_reference).filter(|id| *id > 0);
    FrameEntry {
        frame_id: frame.id.to_external(),
        name: frame.name.clone(),
        file: frame.path().map(|path| display_path(workspace, path)),
        source_reference: reference.map(|id| ScopedId { target: frame.id.target, id }.to_external()),
        line: line_number(frame.line),
        column: u32::try_from(frame.column).ok().filter(|column| *column > 0),
    }
}

fn line_number(line: i64) -> u32 {
    u32::try_from(line).unwrap_or_default()
}

/// Cuts a long value, and appends its length.
pub fn clip_value(value: String) -> String {
    match value.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
        None => value,
    }
}

/// The reference to the variables inside a value; `None`: there are none.
pub fn value_reference(target: usize, id: i64) -> Option<i64> {
    (id > 0).then(|| ScopedId { target, id }.to_external())
}

/// Frames, locals, source and output of a stop.
pub fn stop_snapshot(look: StopSummary, workspace: &Path) -> StopSnapshot {
    let top = look.frames.first();
    let target = top.map_or(0, |top| top.id.target);
    let source = top.filter(|_| !look.source.is_empty()).map(|top| {
        let name = top.source.as_ref().and_then(|source| source.name.clone());
        let file = top.path().map(|path| display_path(workspace, path)).or(name).unwrap_or_default();
        SourceExcerpt::with_line_numbers(&file, &look.source, Some(top.line))
    });
    StopSnapshot {
        frames: look.frames.iter().map(|it| frame_entry(it, workspace)).collect(),
        locals: look
            .locals
            .into_iter()
            .map(|it| VariableEntry {
                name: it.name,
                value: it.value,
                of: it.kind,
                variables_reference: value_reference(target, it.variables_reference),
            })
            .collect(),
        source,
        output: look.output,
        cut: look.omitted,
    }
}

/// The report of a wait, with a snapshot when it ended with a stop.
pub async fn stop_report(
    hosted: &ManagedSession,
    waited: WaitOutcome,
    budget: Option<u32>,
    workspace: &Path,
) -> StopReport {
    let exit_code = hosted.wait_for_exit_code().await;
    let mut answer = StopReport {
        session_id: hosted.id.clone(),
        stopped: waited.stop.is_some(),
        state: session_state(waited.state),
        waited_ms: waited.waited.as_millis() as u64,
        exit_code,
        message: hosted.problem().filter(|_| waited.state == RunState::Disconnected).or(waited.message),
        ..StopReport::default()
    };
    answer.notes.extend(hosted.session.event_log().take_notices());
    let Some((target, stop)) = waited.stop else { return answer };
    let session = &hosted.session;
    let budget = budget.unwrap_or(DEFAULT_SNAPSHOT_TOKENS) as usize * BYTES_PER_TOKEN;
    let thread = stop.thread_id.map(|id| ScopedId { target, id });
    let look = async {
        match thread.filter(|_| budget > 0) {
            Some(thread) => session.summarize_stop(thread, budget).await.ok(),
            None => None,
        }
    };
    // In this order: the reason needs a part of the stack that the snapshot requests.
    let (look, first) = tokio::join!(look, session.stop_cause(target, &stop));
    answer.stop_reason = Some(stop_reason(&first, workspace));
    answer.snapshot = look.map(|look| stop_snapshot(look, workspace));
    for (target, other) in session.snapshot().stops().into_iter().skip(1) {
        answer.also_stopped.push(stop_reason(&session.stop_cause(target, other).await, workspace));
    }
    answer
}

/// A breakpoint or watchpoint, and its state.
pub fn breakpoint_report(reported: &BreakpointStatus, workspace: &Path) -> BreakpointReport {
    let book::BreakpointSpec { id, kind: what, conditions } = &reported.spec;
    let (state, bound, message) = match &reported.status {
        book::BindingStatus::Verified { line } => (BreakpointState::Verified, *line, None),
        book::BindingStatus::Pending => (BreakpointState::Pending, None, None),
        book::BindingStatus::Unbound(reason) => (BreakpointState::Unbound, None, Some(reason.clone())),
    };
    let mut answer = BreakpointReport {
        breakpoint_id: *id,
        state,
        condition: conditions.condition.clone(),
        hit_condition: conditions.hit_condition.clone(),
        log_message: conditions.log_message.clone(),
        hit_count: Some(reported.hits).filter(|hits| *hits > 0),
        message,
        ..BreakpointReport::default()
    };
    match what {
        book::BreakpointKind::Line { file, line, anchor_status: whereabouts, .. } => {
            answer.file = Some(display_path(workspace, &file.to_string_lossy()));
            answer.line = Some(bound.unwrap_or(*line));
            (answer.drift, answer.message) = breakpoint_drift(whereabouts, *line, answer.message);
        }
        book::BreakpointKind::Function { name } => answer.function = Some(name.clone()),
        book::BreakpointKind::Data { expression, access } => {
            answer.expression = Some(expression.clone());
            answer.access = Some(match access {
                book::DataAccess::Read => WatchpointAccess::Read,
                book::DataAccess::Write => WatchpointAccess::Write,
                book::DataAccess::ReadWrite => WatchpointAccess::ReadWrite,
            });
        }
    }
    answer
}

fn breakpoint_drift(
    whereabouts: &book::AnchorStatus,
    line: u32,
    message: Option<String>,
) -> (Option<BreakpointDrift>, Option<String>) {
    match whereabouts {
        book::AnchorStatus::Kept => (None, message),
        book::AnchorStatus::Moved { from } => (
            Some(BreakpointDrift::Moved),
            message.or_else(|| Some(format!("its code moved from line {from} to {line}"))),
        ),
        book::AnchorStatus::Ambiguous { from, lines } => {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            let said = format!("the code of line {from} is now on lines {}: set it again", lines.join(", "));
            (Some(BreakpointDrift::Ambiguous), Some(said))
        }
        book::AnchorStatus::Lost { from } => {
            (Some(BreakpointDrift::Lost), Some(format!("the code of line {from} is gone: set it again")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_where_they_lie_in_the_workspace() {
        let check = |path: &str, expect: &str| assert_eq!(display_path(Path::new("/w s"), path), expect);
        check("/w s/a/b.py", "a/b.py");
        check("/w s", "/w s");
        check("/w special/b.py", "/w special/b.py");
        check("<string>", "<string>");
    }
}
