//! Renders the results of debug operations: sessions, breakpoints, variables, output. Stops are in `stop_text`.

use std::fmt::Write;

use super::page_text::cursor_line;
use super::result_text::ResultText;
use super::stop_text::{
    MAX_THREADS, frame_lines, probe_text, reason_text, state_text, stopped_text, variable_line, variable_lines,
};
use super::text_format::{age_text, indent_lines};
use crate::api::debug::breakpoints::{
    BreakpointDrift, BreakpointListReport, BreakpointReport, BreakpointState, ExceptionBreakpointsReport,
    WatchpointAccess,
};
use crate::api::debug::inspect::{DebugLogCursor, EventEntries, FrameList, OutputEntries, VariableList};
use crate::api::debug::results::{
    DebugSessionStatus, DebugStatus, EvaluatedValue, LaunchReport, ProbeReport, SessionEndReport, SourceExcerpt,
    StopReport, ThreadStatus,
};
use crate::api::page;

impl ResultText for LaunchReport {
    fn text(&self) -> Option<String> {
        Some(launch_text(self))
    }
}

impl ResultText for StopReport {
    fn text(&self) -> Option<String> {
        Some(stopped_text(self))
    }
}

impl ResultText for DebugStatus {
    fn text(&self) -> Option<String> {
        status_text(self)
    }
}

impl ResultText for SessionEndReport {
    fn text(&self) -> Option<String> {
        Some(end_text(self))
    }
}

impl ResultText for ProbeReport {
    fn text(&self) -> Option<String> {
        Some(probe_text(self))
    }
}

impl ResultText for BreakpointReport {
    fn text(&self) -> Option<String> {
        Some(breakpoint_text(self))
    }
}

impl ResultText for BreakpointListReport {
    fn text(&self) -> Option<String> {
        Some(breakpoints_text(self))
    }
}

impl ResultText for ExceptionBreakpointsReport {
    fn text(&self) -> Option<String> {
        Some(exceptions_text(self))
    }
}

impl ResultText for FrameList {
    fn text(&self) -> Option<String> {
        Some(append_truncation(frame_lines(&self.frames), self.truncated.clone()))
    }
}

impl ResultText for VariableList {
    fn text(&self) -> Option<String> {
        Some(variables_text(self))
    }
}

impl ResultText for EvaluatedValue {
    fn text(&self) -> Option<String> {
        Some(value_text(self))
    }
}

impl ResultText for SourceExcerpt {
    fn text(&self) -> Option<String> {
        Some(format!("{}\n{}", self.file, self.text.trim_end()))
    }
}

impl ResultText for OutputEntries {
    fn text(&self) -> Option<String> {
        Some(output_text(self))
    }
}

impl ResultText for EventEntries {
    fn text(&self) -> Option<String> {
        Some(events_text(self))
    }
}

fn launch_text(it: &LaunchReport) -> String {
    let pid = it.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let mut out = format!("session {} ({}{pid})\n{}", it.stopped.session_id, it.adapter, stopped_text(&it.stopped));
    for it in it.breakpoints.iter().filter(|it| it.state != BreakpointState::Verified) {
        let _ = write!(out, "\n{}", breakpoint_text(it));
    }
    out
}

/// `None` when it has neither one session nor a list.
fn status_text(it: &DebugStatus) -> Option<String> {
    match (&it.session, &it.sessions) {
        (Some(it), _) => Some(session_text(it)),
        (None, Some(none)) if none.is_empty() => {
            Some("no debug session: `tether debug launch PROGRAM` begins one".to_owned())
        }
        (None, Some(all)) => Some(all.iter().map(session_text).collect::<Vec<_>>().join("\n")),
        (None, None) => None,
    }
}

fn session_text(it: &DebugSessionStatus) -> String {
    let mut facts = vec![it.adapter.clone()];
    facts.extend(it.vm_name.clone());
    facts.extend(it.pid.map(|pid| format!("pid {pid}")));
    facts.push(match it.ended_at {
        Some(at) => format!("ended {} ago", age_text(at)),
        None => format!("up {}", age_text(it.started_at)),
    });
    let doing = match &it.stop_reason {
        Some(stop) => format!("stopped: {}", reason_text(stop)),
        None => state_text(it.state, it.exit_code, it.message.as_deref()),
    };
    let mut out = format!("{} {} ({}) {doing}", it.session_id, it.name, facts.join(", "));
    if let (Some(_), Some(message)) = (&it.stop_reason, &it.message) {
        let _ = write!(out, "\n  note: {message}");
    }
    if let Some(exception) = &it.exception {
        let _ = write!(out, "\n  {}: {}", exception.class, exception.message);
        if !exception.stack.trim().is_empty() {
            let _ = write!(out, "\n{}", indent_lines(&exception.stack));
        }
    }
    write_threads(&mut out, "suspended", &it.suspended_threads);
    write_threads(&mut out, "running", &it.running_threads);
    for target in it.targets.iter().filter(|_| it.targets.len() > 1) {
        let _ = write!(out, "\n  target {}: {}", target.name, state_text(target.state, None, None));
    }
    if it.stale {
        out.push_str("\n  note: a source file has changed since it began: `restart` of launch runs the new code");
    }
    out
}

/// At most [`SHOWN`] of them.
fn write_threads(out: &mut String, word: &str, threads: &[ThreadStatus]) {
    for it in threads.iter().take(MAX_THREADS) {
        let stop = it.stop_reason.as_ref().map(|stop| format!(": {}", reason_text(stop))).unwrap_or_default();
        let _ = write!(out, "\n  {word} thread {} {}{stop}", it.thread_id, it.name);
    }
    if threads.len() > MAX_THREADS {
        let _ = write!(out, "\n  … and {} more {word} threads", threads.len() - MAX_THREADS);
    }
}

fn end_text(it: &SessionEndReport) -> String {
    format!("{} {}", it.session_id, state_text(it.state, it.exit_code, it.message.as_deref()))
}

fn breakpoints_text(it: &BreakpointListReport) -> String {
    let mut lines: Vec<String> = it.breakpoints.iter().map(breakpoint_text).collect();
    if lines.is_empty() {
        lines.push("no breakpoints".to_owned());
    }
    if it.exceptions != ExceptionBreakpointsReport::default() {
        lines.push(exceptions_text(&it.exceptions));
    }
    lines.join("\n")
}

fn breakpoint_text(it: &BreakpointReport) -> String {
    let place = match (&it.file, it.line, &it.function, &it.expression) {
        (Some(file), Some(line), ..) => format!("breakpoint {} at {file}:{line}", it.breakpoint_id),
        (.., Some(function), _) => format!("breakpoint {} in {function}", it.breakpoint_id),
        (.., Some(expression)) => format!("watchpoint {} on {expression}", it.breakpoint_id),
        _ => format!("breakpoint {}", it.breakpoint_id),
    };
    let mut facts = vec![
        match it.state {
            BreakpointState::Verified => "verified",
            BreakpointState::Pending => "pending",
            BreakpointState::Unbound => "unbound",
        }
        .to_owned(),
    ];
    facts.extend(it.access.map(|access| match access {
        WatchpointAccess::Read => "when it is read".to_owned(),
        WatchpointAccess::Write => "when it is written".to_owned(),
        WatchpointAccess::ReadWrite => "when it is read or written".to_owned(),
    }));
    facts.extend(it.condition.as_ref().map(|it| format!("if {it}")));
    facts.extend(it.hit_condition.as_ref().map(|it| format!("at hits {it}")));
    facts.extend(it.log_message.as_ref().map(|it| format!("logs {it:?}")));
    facts.extend(it.hit_count.map(|hits| format!("hit {hits} ×")));
    facts.extend(it.drift.map(|drift| match drift {
        BreakpointDrift::Moved => "moved with its line".to_owned(),
        BreakpointDrift::Ambiguous => "ambiguous: several lines look like its line".to_owned(),
        BreakpointDrift::Lost => "lost: its line is gone".to_owned(),
    }));
    let message = it.message.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{place}: {}{message}", facts.join(", "))
}

fn exceptions_text(it: &ExceptionBreakpointsReport) -> String {
    let mut which = match (it.caught, it.uncaught) {
        (true, true) => vec!["caught and uncaught ones".to_owned()],
        (true, false) => vec!["caught ones".to_owned()],
        (false, true) => vec!["uncaught ones".to_owned()],
        (false, false) => Vec::new(),
    };
    which.extend(it.class.as_ref().map(|class| format!("of class {class}")));
    which.extend((!it.filters.is_empty()).then(|| format!("filters {}", it.filters.join(", "))));
    let mut out = match which.is_empty() {
        true => "exceptions: none stops the program".to_owned(),
        false => format!("exceptions that stop: {}", which.join(", ")),
    };
    if !it.known.is_empty() {
        let _ = write!(out, "\n  filters there are: {}", it.known.join(", "));
    }
    if let Some(message) = &it.message {
        let _ = write!(out, "\n  note: {message}");
    }
    out
}

fn variables_text(it: &VariableList) -> String {
    let mut out = if it.variables.is_empty() { "no variables".to_owned() } else { variable_lines(&it.variables) };
    for scope in &it.scopes {
        let _ = write!(out, "\n{} [ref {}]", scope.name, scope.variables_reference);
    }
    append_truncation(out, it.truncated.clone())
}

fn append_truncation(text: String, truncated: Option<String>) -> String {
    text + &truncated.map(|it| format!("\n… {it}")).unwrap_or_default()
}

fn value_text(it: &EvaluatedValue) -> String {
    variable_line("", &it.result, it.variables_reference)
}

fn output_text(it: &OutputEntries) -> String {
    let mut out = String::new();
    let mut last: Option<(&str, bool)> = None;
    for entry in &it.entries {
        // A line may come in several pieces.
        if last != Some((&entry.category, false)) {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            if entry.category != "stdout" {
                let _ = write!(out, "[{}] ", entry.category);
            }
        }
        out.push_str(&entry.text);
        last = Some((&entry.category, entry.text.ends_with('\n')));
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out + &debug_cursor_line(&it.place, it.entries.is_empty())
}

fn events_text(it: &EventEntries) -> String {
    let mut out = String::new();
    for entry in &it.entries {
        let thread = entry.thread_id.map(|id| format!(" (thread {id})")).unwrap_or_default();
        let _ = writeln!(out, "[{}] {}{thread}", entry.event, entry.text.trim_end().replace('\n', "\n    "));
    }
    out + &debug_cursor_line(&it.place, it.entries.is_empty())
}

fn debug_cursor_line(it: &DebugLogCursor, empty: bool) -> String {
    let DebugLogCursor { cursor, dropped, more } = *it;
    cursor_line(&page::PageLogCursor { cursor, dropped, more, ..page::PageLogCursor::default() }, empty)
}

#[cfg(test)]
mod tests;
