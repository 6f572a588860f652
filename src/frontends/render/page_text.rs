//! Renders the results of page operations: snapshot, input, console, network.

use std::fmt::Write;

use super::result_text::ResultText;
use super::text_format::{duration_text, notes_text};
use super::window_text::relaunch_text;
use crate::api::page::{ConsoleEntries, NetworkEntries, NetworkEntry, PageLogCursor, PageSnapshotResult};
use crate::api::page_input::PageInputResult;

impl ResultText for PageSnapshotResult {
    fn text(&self) -> Option<String> {
        Some(relaunch_text(self.relaunched.as_ref()) + &self.text + &notes_text(&self.notes))
    }
}

impl ResultText for PageInputResult {
    fn text(&self) -> Option<String> {
        Some(input_text(self))
    }
}

impl ResultText for ConsoleEntries {
    fn text(&self) -> Option<String> {
        Some(console_text(self))
    }
}

impl ResultText for NetworkEntries {
    fn text(&self) -> Option<String> {
        Some(network_text(self))
    }
}

fn input_text(it: &PageInputResult) -> String {
    let mut out = relaunch_text(it.relaunched.as_ref());
    for step in &it.actions {
        let _ = writeln!(out, "{}", step.did);
        for note in &step.notes {
            let _ = writeln!(out, "  {note}");
        }
    }
    out.push_str(notes_text(&it.notes).trim_start());
    if let Some(snapshot) = &it.snapshot {
        out.push_str(snapshot);
    }
    out.trim_end().to_owned()
}

fn console_text(it: &ConsoleEntries) -> String {
    let mut out = String::new();
    for entry in &it.entries {
        let place = entry.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let source = if entry.source == "page" { String::new() } else { format!("{} ", entry.source) };
        let _ = writeln!(out, "[{source}{}] {}{place}", entry.level, entry.text.replace('\n', "\n    "));
    }
    out + &cursor_line(&it.place, it.entries.is_empty())
}

fn network_text(it: &NetworkEntries) -> String {
    let mut out = String::new();
    it.entries.iter().chain(&it.pending).for_each(|request| {
        let _ = writeln!(out, "{}", request_line(request));
    });
    out + &cursor_line(&it.place, it.entries.is_empty() && it.pending.is_empty())
}

fn request_line(it: &NetworkEntry) -> String {
    let mut out = format!("{} {}", it.method, it.url);
    match (it.status, &it.failure) {
        (_, Some(failure)) => {
            let _ = write!(out, " failed: {failure}");
        }
        (Some(status), None) => {
            let _ = write!(out, " {status}");
        }
        (None, None) if it.duration_ms.is_none() && it.kind != "WebSocket" => out.push_str(" (on its way)"),
        (None, None) => {}
    }
    let mut facts = vec![it.kind.clone()];
    facts.extend((it.bytes > 0).then(|| format!("{} bytes", it.bytes)));
    facts.extend(it.duration_ms.map(duration_text));
    facts.extend(it.from.as_ref().map(|from| format!("from {from}")));
    facts.retain(|fact| !fact.is_empty());
    let _ = write!(out, " ({})", facts.join(", "));
    out
}

/// The last line of what is read with a cursor.
pub(super) fn cursor_line(it: &PageLogCursor, empty: bool) -> String {
    let mut words = Vec::new();
    words.extend(empty.then(|| "nothing".to_owned()));
    words.extend((it.more > 0).then(|| format!("{} more", it.more)));
    words.extend((it.dropped > 0).then(|| format!("{} dropped", it.dropped)));
    words.extend(it.note.clone());
    words.push(format!("cursor {}", it.cursor));
    words.join(", ")
}
