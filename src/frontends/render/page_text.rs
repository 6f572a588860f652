//! Renders the results of page operations: snapshot, input, console.

use tether_base::display_text::mark_breaks;

use super::ResultText;
use super::text_format::notes_text;
use super::window_text::{refresh_text, stopped_text};
use crate::api::page::{ConsoleEntries, PageLogCursor, PageSnapshotResult};
use crate::api::page_input::PageInputResult;

impl ResultText for PageSnapshotResult {
    fn text(&self) -> String {
        refresh_text(self.refreshed.as_ref()) + &self.text + &notes_text(&self.notes)
    }
}

impl ResultText for PageInputResult {
    fn text(&self) -> String {
        let mut out = refresh_text(self.refreshed.as_ref()) + &stopped_text(self.stopped.as_ref());
        for step in &self.actions {
            out += &format!("{}\n", step.did);
            out.extend(step.notes.iter().map(|note| format!("  {}\n", mark_breaks(note))));
        }
        out.extend(self.notes.iter().map(|note| format!("note: {}\n", mark_breaks(note))));
        out.extend(self.snapshot.as_deref());
        out.trim_end().to_owned()
    }
}

impl ResultText for ConsoleEntries {
    fn text(&self) -> String {
        let mut out = String::new();
        for entry in &self.entries {
            let place = entry.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            let source = if entry.source == "page" { String::new() } else { format!("{} ", entry.source) };
            out += &format!("[{source}{}] {}{place}\n", entry.level, mark_breaks(&entry.text));
        }
        out + &cursor_line(&self.place, self.entries.is_empty())
    }
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
