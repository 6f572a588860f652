//! Renders the results of debug operations: sessions, breakpoints, variables, output. Stops are in `stop_text`.

use tether_base::display_text::{mark_breaks, mark_lines};

use super::ResultText;
use super::page_text::cursor_line;
use super::stop_text::{
    MAX_THREADS, frame_lines, link_text, reason_text, source_note_text, state_text, unreached_text, variable_line,
    variable_lines,
};
use super::text_format::{age_text, notes_text};
use crate::api::debug::breakpoints::{
    BreakpointDrift, BreakpointListReport, BreakpointReport, BreakpointState, ExceptionBreakpointsReport,
};
use crate::api::debug::inspect::{DebugLogCursor, EventEntries, FrameList, OutputEntries, VariableList};
use crate::api::debug::results::{
    DebugSessionStatus, DebugStatus, EvaluatedValue, LaunchReport, SessionEndReport, SourceExcerpt, ThreadStatus,
};
use crate::api::page;
use crate::vocabulary::DataAccess;

impl ResultText for FrameList {
    fn text(&self) -> String {
        append_truncation(frame_lines(&self.frames), self.truncated.as_deref())
    }
}

impl ResultText for SourceExcerpt {
    fn text(&self) -> String {
        format!("{}\n{}{}", self.file, self.text.trim_end(), source_note_text(self))
    }
}

impl ResultText for LaunchReport {
    fn text(&self) -> String {
        let pid = self.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let (id, stop) = (&self.stopped.session_id, self.stopped.text());
        let runtime = self.runtime.as_ref().and_then(|it| it.rsplit('/').next());
        let runtime = runtime.map(|name| format!(", {name}")).unwrap_or_default();
        let mut out = format!("session {id} ({}{pid}{runtime})\n{stop}", self.adapter);
        let is_as_requested = |it: &&BreakpointReport| it.state == BreakpointState::Verified && it.message.is_none();
        let others = self.breakpoints.iter().filter(|it| !is_as_requested(it));
        out.extend(others.map(|breakpoint| format!("\n{}", breakpoint.text())));
        out
    }
}

impl ResultText for DebugStatus {
    fn text(&self) -> String {
        let listed: Vec<String> = self.sessions.iter().flatten().map(session_text).collect();
        let text = match &self.session {
            Some(session) => session_text(session),
            None if listed.is_empty() => "no debug session: `tether debug launch PROGRAM` begins one".to_owned(),
            None => listed.join("\n"),
        };
        text + &notes_text(&self.notes)
    }

    fn has_text(&self) -> bool {
        self.session.is_some() || self.sessions.is_some()
    }
}

/// A session: its state, and where it stopped.
pub fn session_text(it: &DebugSessionStatus) -> String {
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
    let note = it.message.iter().filter(|_| it.stop_reason.is_some());
    out.extend(note.map(|message| format!("\n  note: {}", mark_breaks(message))));
    if let Some(exception) = &it.exception {
        out += &format!("\n  {}: {}", exception.class, mark_breaks(&exception.message));
        out.extend((!exception.stack.trim().is_empty()).then(|| format!("\n{}", mark_lines(&exception.stack))));
    }
    out += &threads_text("suspended", &it.suspended_threads);
    out += &threads_text("running", &it.running_threads);
    out.extend(it.unlisted_threads.map(|count| format!("\n  … and {count} threads that are not listed")));
    let targets = it.targets.iter().filter(|_| it.targets.len() > 1);
    out.extend(targets.map(|it| format!("\n  target {}: {}", it.name, state_text(it.state, None, None))));
    out.extend(it.editors.iter().map(|editor| format!("\n  joined: {editor}")));
    out.extend(it.resumed_by.iter().filter(|_| !it.editors.is_empty()).map(|by| format!("\n  last resumed by {by}")));
    out += &unreached_text(&it.not_reached);
    if it.stale {
        out += "\n  note: a source file has changed since it began: `restart` of launch runs the new code";
    }
    out
}

/// At most [`MAX_THREADS`] of them.
fn threads_text(word: &str, threads: &[ThreadStatus]) -> String {
    let line = |it: &ThreadStatus| {
        let stop = it.stop_reason.as_ref().map(|stop| format!(": {}", reason_text(stop))).unwrap_or_default();
        let doing = it.state.as_ref().filter(|state| *state != "running").map(|state| format!(" ({state})"));
        let holds = (!it.holds.is_empty()).then(|| format!(", holds {}", it.holds.join(", ")));
        let waits = it.waits_for.as_ref().map(|monitor| format!(", waits for {monitor}"));
        let monitors: String = [doing, holds, waits].into_iter().flatten().collect();
        format!("\n  {word} thread {} {}{stop}{monitors}", it.thread_id, it.name)
    };
    let left_out = threads.len().saturating_sub(MAX_THREADS);
    let more = (left_out > 0).then(|| format!("\n  … and {left_out} more {word} threads"));
    threads.iter().take(MAX_THREADS).map(line).chain(more).collect()
}

impl ResultText for SessionEndReport {
    fn text(&self) -> String {
        format!("{} {}", self.session_id, state_text(self.state, self.exit_code, self.message.as_deref()))
    }
}

impl ResultText for BreakpointListReport {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.breakpoints.iter().map(ResultText::text).collect();
        if lines.is_empty() {
            lines.push("no breakpoints".to_owned());
        }
        if self.exceptions != ExceptionBreakpointsReport::default() {
            lines.push(self.exceptions.text());
        }
        lines.join("\n") + &notes_text(&self.notes)
    }
}

impl ResultText for BreakpointReport {
    fn text(&self) -> String {
        let place = match (&self.file, self.line, &self.function, &self.expression) {
            (Some(file), Some(line), ..) => {
                let column = self.column.map(|column| format!(":{column}")).unwrap_or_default();
                let link = link_text(self.real_path.as_deref());
                format!("breakpoint {} at {file}:{line}{column}{link}", self.breakpoint_id)
            }
            (None, Some(line), None, None) if self.class_name.is_some() => {
                let class = self.class_name.as_deref().unwrap_or_default();
                format!("breakpoint {} at {class}:{line}", self.breakpoint_id)
            }
            (.., Some(function), _) => format!("breakpoint {} in {function}", self.breakpoint_id),
            (.., Some(expression)) => format!("watchpoint {} on {expression}", self.breakpoint_id),
            _ => format!("breakpoint {}", self.breakpoint_id),
        };
        let state = match self.state {
            BreakpointState::Verified => "verified",
            BreakpointState::Pending => "pending",
            BreakpointState::Unbound => "unbound",
        };
        let mut facts = vec![state.to_owned()];
        facts.extend(self.access.map(|access| match access {
            DataAccess::Read => "when it is read".to_owned(),
            DataAccess::Write => "when it is written".to_owned(),
            DataAccess::ReadWrite => "when it is read or written".to_owned(),
        }));
        facts.extend(self.condition.as_ref().map(|it| format!("if {it}")));
        facts.extend(self.hit_condition.as_ref().map(|it| format!("at hits {it}")));
        facts.extend(self.log_message.as_ref().map(|it| format!("logs {it:?}")));
        facts.extend(self.hit_count.map(|hits| format!("hit {hits} ×")));
        facts.extend(self.owner.as_ref().map(|owner| format!("set by {owner}")));
        facts.extend(self.drift.map(|drift| match drift {
            BreakpointDrift::Moved => "moved with its line".to_owned(),
            BreakpointDrift::Ambiguous => "ambiguous: several lines look like its line".to_owned(),
            BreakpointDrift::Lost => "lost: its line is gone".to_owned(),
        }));
        let message = self.message.as_ref().map(|it| format!(" ({})", mark_breaks(it))).unwrap_or_default();
        format!("{place}: {}{message}{}", facts.join(", "), notes_text(&self.notes))
    }
}

impl ResultText for ExceptionBreakpointsReport {
    fn text(&self) -> String {
        let mut which = match (self.caught, self.uncaught) {
            (true, true) => vec!["caught and uncaught ones".to_owned()],
            (true, false) => vec!["caught ones".to_owned()],
            (false, true) => vec!["uncaught ones".to_owned()],
            (false, false) => Vec::new(),
        };
        which.extend(self.class.as_ref().map(|class| format!("of class {class}")));
        which.extend((!self.filters.is_empty()).then(|| format!("filters {}", self.filters.join(", "))));
        let mut out = match which.is_empty() {
            true => "exceptions: none stops the program".to_owned(),
            false => format!("exceptions that stop: {}", which.join(", ")),
        };
        out.extend((!self.known.is_empty()).then(|| format!("\n  filters there are: {}", self.known.join(", "))));
        out.extend(self.message.iter().map(|message| format!("\n  note: {}", mark_breaks(message))));
        out
    }
}

impl ResultText for VariableList {
    fn text(&self) -> String {
        let mut out =
            if self.variables.is_empty() { "no variables".to_owned() } else { variable_lines(&self.variables) };
        out.extend(self.scopes.iter().map(|it| format!("\n{} [ref {}]", it.name, it.variables_reference)));
        append_truncation(out, self.truncated.as_deref())
    }
}

fn append_truncation(text: String, truncated: Option<&str>) -> String {
    text + &truncated.map(|it| format!("\n… {it}")).unwrap_or_default()
}

impl ResultText for EvaluatedValue {
    fn text(&self) -> String {
        let value = variable_line("", &self.result, self.variables_reference);
        self.note.iter().fold(value, |value, note| format!("{value}\nnote: {note}"))
    }
}

impl ResultText for OutputEntries {
    fn text(&self) -> String {
        let mut out = String::new();
        let mut last: Option<(&str, bool)> = None;
        for entry in &self.entries {
            // A line may come in several pieces.
            if last != Some((&entry.category, false)) {
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                out.extend((entry.category != "stdout").then(|| format!("[{}] ", entry.category)));
            }
            out.push_str(&entry.text);
            last = Some((&entry.category, entry.text.ends_with('\n')));
        }
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out + &debug_cursor_line(&self.place, self.entries.is_empty())
    }
}

impl ResultText for EventEntries {
    fn text(&self) -> String {
        let mut out = String::new();
        for entry in &self.entries {
            let thread = entry.thread_id.map(|id| format!(" (thread {id})")).unwrap_or_default();
            out += &format!("[{}] {}{thread}\n", entry.event, mark_breaks(entry.text.trim_end()));
        }
        out + &debug_cursor_line(&self.place, self.entries.is_empty())
    }
}

fn debug_cursor_line(it: &DebugLogCursor, empty: bool) -> String {
    let DebugLogCursor { cursor, dropped, more } = *it;
    cursor_line(&page::PageLogCursor { cursor, dropped, more, ..page::PageLogCursor::default() }, empty)
}

#[cfg(test)]
mod tests;
