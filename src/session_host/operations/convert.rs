//! Conversion of sessions, stops and breakpoints into the API's types.

use tether_base::clipped_text::clip_counted;
use tether_base::line_anchor::AnchorStatus;
use tether_base::secret_shapes::mask_secrets;

use crate::api::debug::breakpoints::{BreakpointDrift, BreakpointReport, BreakpointState};
use crate::api::debug::results::{
    EvaluatedValue, ExceptionReport, FrameEntry, SourceExcerpt, StopDetails, StopLocation, StopReason, StopSnapshot,
    UnreachedReport, VariableEntry,
};
use crate::debug::breakpoints;
use crate::debug::inspect::{
    self, DapVariable, MAX_VALUE_CHARS, ScopedId, StackFrameInfo, StopCause, StopSummary, SummaryFrame,
    ThrownException, UnreachedBreakpoint,
};
use crate::debug::session::source_memory::SourceChange;
use crate::debug::{BreakpointStatus, FileNames, ManagedSession, ShownFile, ShownPlace, ThreadStop};
use crate::vocabulary::StopKind;

/// What is said of a snapshot with masked values.
const MASKED: &str = "masked secrets: `tether debug variables NAME`";

/// The breakpoints that have not stopped a session, and why.
pub fn unreached_reports(managed: &ManagedSession, names: &FileNames) -> Vec<UnreachedReport> {
    let report = |it: UnreachedBreakpoint| {
        let ShownPlace { text: place, real_path } = names.show_place(&it.kind);
        UnreachedReport { breakpoint_id: it.spec_id, place, real_path, reason: it.reason }
    };
    inspect::unreached_breakpoints(managed).into_iter().map(report).collect()
}

/// Why, where and on which thread a program stopped.
pub fn stop_reason(reason: &StopCause, names: &FileNames) -> StopReason {
    let top = reason.top_frame.as_ref();
    let location = top.map(|top| {
        let (class_name, method_name) = class_and_method(top);
        let (source_path, real_path) = shown_source(top, names);
        StopLocation { class_name, method_name, line_number: line_number(top.line), source_path, real_path }
    });
    let exception = Some(reason).filter(|it| it.kind == StopKind::Exception).map(exception_report).unwrap_or_default();
    let watched = reason.watched.clone().map(|(field, old, new)| (Some(field), old, new));
    let (field_name, old_value, new_value) = watched.unwrap_or_default();
    let full = |text: String| Some(text).filter(|text| !text.is_empty());
    StopReason {
        kind: reason.kind,
        thread_id: reason.thread.map(ScopedId::to_external),
        thread_name: full(reason.thread_name.clone()),
        location,
        details: StopDetails {
            breakpoint_id: reason.hit.map(|(id, _)| id),
            hit_count: reason.hit.map(|(_, count)| count),
            exception_type: full(exception.class),
            exception_message: full(exception.message),
            field_name,
            old_value,
            new_value,
            text: reason.text.clone(),
        },
    }
}

/// The user's name for the file of a frame, and where that leads to over a link.
fn shown_source(frame: &StackFrameInfo, names: &FileNames) -> (Option<String>, Option<String>) {
    let shown = frame.path().map(|path| names.show(path));
    shown.map(|ShownFile { name, real_path }| (Some(name), real_path)).unwrap_or_default()
}

/// The class and the method of a frame. Only the frames of Java have both in their name: `com.example.Order.total`.
fn class_and_method(frame: &StackFrameInfo) -> (Option<String>, String) {
    let file = frame.source.as_ref().and_then(|source| source.name.as_deref()).unwrap_or_default();
    match frame.name.rsplit_once('.').filter(|_| file.ends_with(".java")) {
        Some((class, method)) => (Some(class.to_owned()), method.to_owned()),
        None => (None, frame.name.clone()),
    }
}

/// A stop as far as its DAP event describes it, without a request to the adapter.
pub fn stop_reason_from_event(target: usize, stop: &ThreadStop) -> StopReason {
    StopReason {
        kind: stop.kind,
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

/// A stack frame.
pub fn frame_entry(frame: &StackFrameInfo, names: &FileNames) -> FrameEntry {
    let reference = frame.source.as_ref().and_then(|source| source.source_reference).filter(|id| *id > 0);
    let (file, real_path) = shown_source(frame, names);
    FrameEntry {
        frame_id: frame.id.to_external(),
        name: frame.name.clone(),
        file,
        real_path,
        source_reference: reference.map(|id| ScopedId { target: frame.id.target, id }.to_external()),
        line: line_number(frame.line),
        column: u32::try_from(frame.column).ok().filter(|column| *column > 0),
        folded: None,
    }
}

fn summary_frame_entry(frame: &SummaryFrame, names: &FileNames) -> FrameEntry {
    match frame {
        SummaryFrame::Frame(frame) => frame_entry(frame, names),
        SummaryFrame::Folded { first, count, owners } => FrameEntry {
            frame_id: first.to_external(),
            name: owners.join(", "),
            folded: Some(*count as u32),
            ..FrameEntry::default()
        },
    }
}

fn line_number(line: i64) -> u32 {
    u32::try_from(line).unwrap_or_default()
}

/// Variables of a target, their values cut.
pub fn variable_entries(target: usize, variables: Vec<DapVariable>) -> Vec<VariableEntry> {
    let entry = |it: DapVariable| VariableEntry {
        name: it.name,
        value: clip_counted(&it.value, MAX_VALUE_CHARS),
        of: it.kind,
        variables_reference: value_reference(target, it.variables_reference),
    };
    variables.into_iter().map(entry).collect()
}

/// As [`variable_entries`], with the secrets in them masked: for those that nobody has asked for by name. Returns whether there was
/// one.
pub fn masked_entries(target: usize, mut variables: Vec<DapVariable>) -> (Vec<VariableEntry>, bool) {
    let mut has_masked = false;
    for variable in &mut variables {
        if let Some(masked) = mask_secrets(&variable.name, &variable.value) {
            (variable.value, has_masked) = (masked, true);
        }
    }
    (variable_entries(target, variables), has_masked)
}

/// The value of an expression, cut, with the reference to what is inside.
pub fn evaluated_value(value: String, of: Option<String>, inside: ScopedId) -> EvaluatedValue {
    let variables_reference = value_reference(inside.target, inside.id);
    EvaluatedValue { result: clip_counted(&value, MAX_VALUE_CHARS), of, variables_reference, note: None }
}

/// The reference to the variables inside a value; `None`: there are none.
pub fn value_reference(target: usize, id: i64) -> Option<i64> {
    (id > 0).then(|| ScopedId { target, id }.to_external())
}

/// How the text of a source is related to its file, which has changed.
pub fn source_note(managed: &ManagedSession, change: SourceChange) -> String {
    let id = &managed.id;
    match change {
        SourceChange::Remembered => {
            format!(
                "the file has changed since {id} loaded it: these are the lines that run, and not those of the file"
            )
        }
        SourceChange::Unknown => {
            format!("the file has changed since {id} began: what runs may be an earlier text of it")
        }
    }
}

/// Frames, locals, source and output of a stop.
pub fn stop_snapshot(managed: &ManagedSession, summary: StopSummary, names: &FileNames) -> StopSnapshot {
    let shown = summary.shown.as_ref();
    let target = shown.map_or(0, |shown| shown.id.target);
    let source = shown.filter(|_| !summary.source.is_empty()).map(|shown| {
        let name = shown.source.as_ref().and_then(|source| source.name.clone());
        let file = shown_source(shown, names).0.or(name).unwrap_or_default();
        let excerpt = SourceExcerpt::with_line_numbers(&file, &summary.source, Some(shown.line));
        SourceExcerpt { note: summary.source_change.map(|change| source_note(managed, change)), ..excerpt }
    });
    let is_top = |frame: &&StackFrameInfo| matches!(summary.frames.first(), Some(SummaryFrame::Frame(top)) if top.id == frame.id);
    let (locals, has_masked) = masked_entries(target, summary.locals);
    let masked = has_masked.then(|| MASKED.to_owned());
    StopSnapshot {
        frame_id: shown.filter(|shown| !is_top(shown)).map(|shown| shown.id.to_external()),
        frames: summary.frames.iter().map(|frame| summary_frame_entry(frame, names)).collect(),
        locals,
        source,
        output: summary.output,
        cut: summary.omitted.into_iter().chain(masked).collect(),
    }
}

/// A breakpoint or watchpoint, and its state.
pub fn breakpoint_report(reported: &BreakpointStatus, names: &FileNames) -> BreakpointReport {
    let breakpoints::BreakpointSpec { id, kind, conditions, owner } = &reported.spec;
    let (state, bound, message) = match &reported.status {
        breakpoints::BindingStatus::Verified { line, column, note } => {
            (BreakpointState::Verified, (*line, *column), note.clone())
        }
        breakpoints::BindingStatus::Pending(reason) => (BreakpointState::Pending, (None, None), reason.clone()),
        breakpoints::BindingStatus::Unbound(reason) => (BreakpointState::Unbound, (None, None), Some(reason.clone())),
    };
    let mut report = BreakpointReport {
        breakpoint_id: *id,
        state,
        condition: conditions.condition.clone(),
        hit_condition: conditions.hit_condition.clone(),
        log_message: conditions.log_message.clone(),
        hit_count: Some(reported.hits).filter(|hits| *hits > 0),
        message,
        owner: owner.as_ref().map(|owner| owner.name.to_string()),
        ..BreakpointReport::default()
    };
    match kind {
        breakpoints::BreakpointKind::Line { file, named, line, column, anchor_status, .. } => {
            let ShownFile { name, real_path } = names.show_breakpoint_file(file, named.as_deref());
            (report.file, report.real_path) = (Some(name), real_path);
            report.line = Some(bound.0.unwrap_or(*line));
            // Where a column was asked for; other answers stay short.
            report.column = column.map(|column| bound.1.unwrap_or(column));
            (report.drift, report.message) = breakpoint_drift(anchor_status, *line, report.message);
        }
        breakpoints::BreakpointKind::Function { name } => report.function = Some(name.clone()),
        breakpoints::BreakpointKind::ClassLine { class_name, line } => {
            report.class_name = Some(class_name.clone());
            report.line = Some(bound.0.unwrap_or(*line));
        }
        breakpoints::BreakpointKind::Data { expression, access, .. } => {
            report.expression = Some(expression.clone());
            report.access = Some(*access);
        }
    }
    report
}

fn breakpoint_drift(
    anchor_status: &AnchorStatus,
    line: u32,
    message: Option<String>,
) -> (Option<BreakpointDrift>, Option<String>) {
    match anchor_status {
        AnchorStatus::Kept => (None, message),
        AnchorStatus::Moved { from } => (
            Some(BreakpointDrift::Moved),
            message.or_else(|| Some(format!("its code moved from line {from} to {line}"))),
        ),
        AnchorStatus::Ambiguous { from, lines } => {
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            let message = format!("the code of line {from} is now on lines {}: set it again", lines.join(", "));
            (Some(BreakpointDrift::Ambiguous), Some(message))
        }
        AnchorStatus::Lost { from } => {
            (Some(BreakpointDrift::Lost), Some(format!("the code of line {from} is gone: set it again")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_stops_have_the_names_of_the_design() {
        let names = [
            (StopKind::BreakpointHit, "\"BREAKPOINT_HIT\""),
            (StopKind::WatchpointModify, "\"WATCHPOINT_MODIFY\""),
            (StopKind::VmStart, "\"VM_START\""),
        ];
        for (kind, name) in names {
            assert_eq!(serde_json::to_string(&kind).unwrap(), name);
        }
    }
}
