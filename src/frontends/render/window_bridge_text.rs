//! Renders the results of the operations that the extension inside the window carries out.

use tether_base::display_text::mark_breaks;

use super::ResultText;
use super::text_format::notes_text;
use super::window_text::refresh_text;
use crate::api::window_bridge::{OpenEditor, OutputChannel, WindowCommandResult, WindowOutputResult};

impl ResultText for WindowCommandResult {
    fn text(&self) -> String {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        refresh_text(self.refreshed.as_ref()) + &mark_breaks(&value) + &notes_text(&self.notes)
    }
}

impl ResultText for WindowOutputResult {
    fn text(&self) -> String {
        let channels = self.channels.iter().map(channel_line);
        let lines = channels.chain(self.editors.iter().map(editor_line)).collect::<String>();
        let text = self.text.as_deref().map(|text| text.trim_end().to_owned() + "\n").unwrap_or_default();
        let mut words = Vec::new();
        words.extend((lines.is_empty() && text.trim().is_empty()).then(|| "nothing".to_owned()));
        words.extend(self.dropped.filter(|bytes| *bytes > 0).map(|bytes| format!("{bytes} bytes before it")));
        words.extend(self.cursor.map(|cursor| format!("cursor {cursor}")));
        (lines + &text + &words.join(", ")).trim_end().to_owned()
    }
}

fn channel_line(channel: &OutputChannel) -> String {
    let bytes = channel.bytes.map(|bytes| format!(" ({bytes} bytes)")).unwrap_or_default();
    format!("channel {}{bytes}\n", channel.name)
}

fn editor_line(editor: &OpenEditor) -> String {
    let marks = [(editor.is_active, "active"), (editor.is_dirty, "unsaved")];
    let marks: Vec<&str> = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    let uri = editor.uri.as_deref().map(|uri| format!(": {uri}")).unwrap_or_default();
    format!("editor {}{marks}{uri}\n", editor.label)
}
