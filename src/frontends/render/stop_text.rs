//! Renders a stop and its snapshot: frames, locals, source, output.

use tether_base::clipped_text::clip_bytes;
use tether_base::display_text::{mark_breaks, mark_lines};

use super::ResultText;
use super::text_format::{duration_text, notes_text};
use crate::api::debug::results::{
    FrameEntry, ProbeHit, ProbeReport, SourceExcerpt, StopLocation, StopReason, StopReport, StopSnapshot,
    UnreachedReport, VariableEntry,
};
use crate::vocabulary::{RunState, StopKind};

/// How many breakpoints that have not stopped a session a text has.
const MAX_UNREACHED: usize = 10;
/// How many threads a text has; the structured result has all.
pub const MAX_THREADS: usize = 10;
/// How much of a value a cell of a table has, in bytes.
const MAX_CELL: usize = 60;

/// The state of a session after an operation.
impl ResultText for StopReport {
    fn text(&self) -> String {
        let outcome = match &self.stop_reason {
            Some(stop) => format!("stopped: {}", reason_text(stop)),
            None => state_text(self.state, self.exit_code, self.message.as_deref()),
        };
        let mut out = format!("{} {outcome}", self.session_id).trim_start().to_owned();
        let others = self.also_stopped.iter().take(MAX_THREADS);
        out.extend(others.map(|other| format!("\nalso stopped: {}", reason_text(other))));
        let left_out = self.also_stopped.len().saturating_sub(MAX_THREADS);
        out.extend((left_out > 0).then(|| format!("\n… and {left_out} more threads")));
        let note = self.message.iter().filter(|_| self.stop_reason.is_some());
        out.extend(note.map(|message| format!("\nnote: {}", mark_breaks(message))));
        out.extend(self.snapshot.iter().map(snapshot_text));
        out + &unreached_text(&self.not_reached) + &notes_text(&self.notes)
    }
}

/// Breakpoints that have not stopped a session: at most [`MAX_UNREACHED`] lines; the structured result has all.
pub fn unreached_text(unreached: &[UnreachedReport]) -> String {
    let line = |it: &UnreachedReport| {
        let (place, reason) = (mark_breaks(&it.place), mark_breaks(&it.reason));
        let link = link_text(it.real_path.as_deref());
        format!("\n  breakpoint {} at {place}{link} has not stopped it: {reason}", it.breakpoint_id)
    };
    let left_out = unreached.len().saturating_sub(MAX_UNREACHED);
    let more = (left_out > 0).then(|| format!("\n  … and {left_out} more breakpoints have not stopped it"));
    unreached.iter().take(MAX_UNREACHED).map(line).chain(more).collect()
}

impl ResultText for ProbeReport {
    fn text(&self) -> String {
        if !self.hits.is_empty() {
            return hits_text(self) + &unreached_text(&self.not_reached) + &notes_text(&self.notes);
        }
        let mut out = match (&self.stop_reason, &self.message) {
            (Some(stop), None) => format!("stopped: {}", reason_text(stop)),
            (Some(stop), Some(message)) => format!("stopped: {}\nnote: {}", reason_text(stop), mark_breaks(message)),
            (None, message) => state_text(self.state, self.exit_code, message.as_deref()),
        };
        out += &format!(" (after {})", duration_text(self.waited_ms));
        for probe in &self.values {
            out += "\n";
            out += &match (&probe.value, &probe.error) {
                (Some(value), _) => variable_line(&probe.expression, &value.result, value.variables_reference),
                (None, error) => {
                    format!("{}: {}", probe.expression, mark_breaks(error.as_deref().unwrap_or("no value")))
                }
            };
        }
        out + &snapshot_text(&self.snapshot) + &notes_text(&self.notes)
    }
}

/// A table of the hits of a probe, with a column for each expression.
fn hits_text(probe: &ProbeReport) -> String {
    let mut names: Vec<&str> = Vec::new();
    for value in probe.hits.iter().flat_map(|hit| &hit.values) {
        if !names.contains(&value.expression.as_str()) {
            names.push(&value.expression);
        }
    }
    let title = ["#", "at"].into_iter().chain(names.iter().copied()).map(str::to_owned).collect();
    let row = |(number, hit): (usize, &ProbeHit)| {
        let cell = |name: &&str| {
            let value = hit.values.iter().find(|value| value.expression == **name)?;
            let failed = || format!("({})", value.error.as_deref().unwrap_or("no value"));
            Some(value.value.as_ref().map_or_else(failed, |it| it.result.clone()))
        };
        let cells = names.iter().map(|name| cell(name).unwrap_or_default());
        [number.to_string(), hit.at.clone()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = [title].into_iter().chain((1..).zip(&probe.hits).map(row)).collect();
    let hits = if probe.hits.len() == 1 { "1 hit".to_owned() } else { format!("{} hits", probe.hits.len()) };
    let end = match probe.state {
        RunState::Stopped => probe.message.as_deref().map(mark_breaks).unwrap_or_default(),
        state => format!("the program {}", state_text(state, probe.exit_code, probe.message.as_deref())),
    };
    format!("{hits} (after {}); {end}", duration_text(probe.waited_ms)) + &table_text(&rows)
}

/// Rows of cells on lines of their own, in columns.
fn table_text(rows: &[Vec<String>]) -> String {
    let shown = |cell: &String| clip_bytes(&mark_breaks(cell).replace('\n', " "), MAX_CELL);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|it| it.chars().count()).max();
    let line = |row: &Vec<String>| {
        let padded = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column).unwrap_or(0)));
        format!("\n  {}", padded.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The state of a session without a stop reason.
pub fn state_text(state: RunState, exit_code: Option<i64>, message: Option<&str>) -> String {
    let word = match (state, exit_code) {
        (RunState::Starting, _) => "is starting".to_owned(),
        (RunState::Running, _) => "is running".to_owned(),
        (RunState::Stopped, _) => "is stopped".to_owned(),
        (RunState::Terminated, Some(code)) => format!("has ended with code {code}"),
        (RunState::Terminated, None) => "has ended".to_owned(),
        (RunState::Disconnected, _) => "is disconnected".to_owned(),
    };
    // The end is said once, with what follows it.
    let message = message.map(|it| it.strip_prefix(&format!("the program {word}")).unwrap_or(it));
    let message = message.map(|it| it.trim_start_matches("; ")).filter(|it| !it.is_empty());
    word + &message.map(|it| format!(": {}", mark_breaks(it))).unwrap_or_default()
}

/// Why, where and on which thread.
pub fn reason_text(it: &StopReason) -> String {
    let mut out = stop_type_text(it);
    out.extend(it.location.iter().map(|location| format!(" {}", location_text(location))));
    let thread = it.thread_name.clone().or(it.thread_id.map(|id| id.to_string()));
    out.extend(thread.map(|thread| format!(", thread {thread}")));
    out
}

fn stop_type_text(it: &StopReason) -> String {
    let details = &it.details;
    let field = || details.field_name.as_deref().unwrap_or("a watched value");
    match it.kind {
        StopKind::BreakpointHit => {
            let id = details.breakpoint_id.map_or_else(|| "a breakpoint".to_owned(), |id| format!("breakpoint {id}"));
            id + &details.hit_count.filter(|hits| *hits > 1).map(|hits| format!(" (hit {hits})")).unwrap_or_default()
        }
        StopKind::StepComplete => "step".to_owned(),
        StopKind::Exception => {
            let class = details.exception_type.as_deref().or(details.text.as_deref()).unwrap_or("exception");
            match details.exception_message.as_deref().filter(|message| !message.is_empty()) {
                Some(message) => format!("exception {class}: {}", mark_breaks(message)),
                None => format!("exception {class}").replacen("exception exception", "exception", 1),
            }
        }
        StopKind::WatchpointAccess => format!("{} was read", field()),
        StopKind::WatchpointModify => match (&details.old_value, &details.new_value) {
            (Some(old), Some(new)) => format!("{} was written ({old} → {new})", field()),
            (None, Some(new)) => format!("{} was written (→ {new})", field()),
            _ => format!("{} was written", field()),
        },
        StopKind::MethodEntry => "a method begins".to_owned(),
        StopKind::MethodExit => "a method ends".to_owned(),
        StopKind::VmStart => "the VM has started".to_owned(),
        StopKind::VmDeath => "the VM ends".to_owned(),
        StopKind::UserSuspend => "paused".to_owned(),
        StopKind::Entry => "entry".to_owned(),
    }
}

/// Where a program is stopped.
pub fn location_text(it: &StopLocation) -> String {
    let class = it.class_name.as_ref().map(|class| format!("{class}.")).unwrap_or_default();
    let within = format!("in {class}{}", callable_name(&it.method_name));
    match &it.source_path {
        Some(path) => format!("at {path}:{}{} {within}", it.line_number, link_text(it.real_path.as_deref())),
        None => format!("{within}, line {}", it.line_number),
    }
}

/// Behind a path that leads over a link.
pub fn link_text(real_path: Option<&str>) -> String {
    real_path.map(|path| format!(" (links to {})", mark_breaks(path))).unwrap_or_default()
}

/// `total` is `total()`; what has signs of its own, such as `<module>` or `main(int)`, stays.
fn callable_name(name: &str) -> String {
    let plain = name.ends_with(|it: char| it.is_alphanumeric() || it == '_');
    if plain { format!("{name}()") } else { name.to_owned() }
}

fn snapshot_text(it: &StopSnapshot) -> String {
    let mut out = String::new();
    out.extend(it.source.iter().map(|source| format!("\n{}{}", source.text.trim_end(), source_note_text(source))));
    let of_frame = it.frame_id.map(|id| format!(" of #{id}")).unwrap_or_default();
    out.extend((!it.locals.is_empty()).then(|| format!("\nlocals{of_frame}:\n{}", variable_lines(&it.locals))));
    out.extend((!it.frames.is_empty()).then(|| format!("\nframes:\n{}", frame_lines(&it.frames))));
    out.extend((!it.output.trim().is_empty()).then(|| format!("\noutput:\n{}", mark_lines(&it.output))));
    out.extend(it.cut.iter().map(|cut| format!("\n… {cut}")));
    out
}

/// The note of a source whose file has changed.
pub fn source_note_text(it: &SourceExcerpt) -> String {
    it.note.as_ref().map(|note| format!("\nnote: {}", mark_breaks(note))).unwrap_or_default()
}

/// A line per frame.
pub fn frame_lines(frames: &[FrameEntry]) -> String {
    let line = |it: &FrameEntry| {
        if let Some(count) = it.folded {
            let frames = if count == 1 { "frame" } else { "frames" };
            return format!("  … {count} {frames} of {}", it.name);
        }
        let column = it.column.filter(|column| *column > 1).map(|column| format!(":{column}")).unwrap_or_default();
        let place = match (&it.file, it.source_reference) {
            (Some(file), _) => format!(" at {file}:{}{column}", it.line),
            (None, Some(reference)) => format!(", line {} of source {reference}", it.line),
            (None, None) => String::new(),
        };
        format!("  #{} {}{place}", it.frame_id, callable_name(&it.name))
    };
    if frames.is_empty() { "no frames".to_owned() } else { frames.iter().map(line).collect::<Vec<_>>().join("\n") }
}

/// A line per variable.
pub fn variable_lines(variables: &[VariableEntry]) -> String {
    let line = |it: &VariableEntry| format!("  {}", variable_line(&it.name, &it.value, it.variables_reference));
    variables.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `name = value`, and the reference of what is inside.
pub fn variable_line(name: &str, value: &str, inside: Option<i64>) -> String {
    let name = if name.is_empty() { String::new() } else { format!("{name} = ") };
    let inside = inside.filter(|it| *it != 0).map(|it| format!(" [ref {it}]")).unwrap_or_default();
    format!("{name}{}{inside}", mark_breaks(value))
}
