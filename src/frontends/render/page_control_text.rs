//! Renders tabs, what is emulated, and storage.

use tether_base::display_text::mark_breaks;

use super::ResultText;
use super::text_format::notes_text;
use super::window_text::refresh_text;
use crate::api::page_control::{EmulationReport, PageTabs, ProfileReport, StorageReport};

impl ResultText for PageTabs {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.did.iter().cloned().collect();
        lines.extend(self.tabs.iter().map(|tab| {
            let current = if tab.current { " (current)" } else { "" };
            format!("{} {:?} {:?}{current}", tab.id, tab.title, tab.url)
        }));
        refresh_text(self.refreshed.as_ref()) + &lines.join("\n") + &notes_text(&self.notes)
    }
}

impl ResultText for EmulationReport {
    fn text(&self) -> String {
        let emulated = self.emulation.describe().map(|it| format!("pages emulate {it}"));
        emulated.unwrap_or_else(|| "nothing is emulated".to_owned()) + &notes_text(&self.notes)
    }
}

impl ResultText for ProfileReport {
    fn text(&self) -> String {
        format!("{}\nin {}", self.findings.join("\n"), self.file).trim_start().to_owned() + &notes_text(&self.notes)
    }
}

impl ResultText for StorageReport {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        lines.extend(self.did.clone());
        lines.extend(self.file.as_ref().map(|file| format!("in {file}")));
        if self.did.is_none() {
            lines.extend(self.origin.as_ref().map(|origin| format!("{origin}: {} entries", self.entries.len())));
        }
        lines.extend(self.entries.iter().map(|item| {
            let attributes = item.attributes.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
            format!("{}={}{attributes}", item.name, mark_breaks(&item.value))
        }));
        lines.extend((self.more > 0).then(|| format!("{} more", self.more)));
        lines.join("\n") + &notes_text(&self.notes)
    }
}
