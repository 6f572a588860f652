//! Follows edits of the files with breakpoints while a program runs whose adapter finds lines by their code: what the program
//! loads next has its breakpoints where they are now, before it runs.
//!
//! To other adapters a line that has moved is not sent: their program runs the text that it was started with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tether_changes::WrittenFiles;

use super::registry::SessionRegistry;
use crate::debug::breakpoints::sync::{ChangedBreakpoints, send_changed_breakpoints};
use crate::debug::session::target_handle::TargetHandle;

impl SessionRegistry {
    /// Follows edits for as long as it is polled.
    pub async fn follow_edited_files(self) {
        let (mut sessions, mut breakpoints) = (self.watch(), self.0.breakpoints.watch());
        let mut written = WrittenFiles::default();
        loop {
            sessions.borrow_and_update();
            breakpoints.borrow_and_update();
            let is_followed = !self.anchoring_targets().is_empty();
            written.watch(if is_followed { self.0.breakpoints.current().files() } else { BTreeSet::new() });
            tokio::select! {
                files = written.next() => self.send_edited(files).await,
                _ = sessions.changed() => {}
                _ = breakpoints.changed() => {}
            }
        }
    }

    async fn send_edited(&self, files: BTreeSet<PathBuf>) {
        self.0.breakpoints.follow_source_changes().await;
        let targets = self.anchoring_targets();
        for file in files {
            send_changed_breakpoints(&targets, ChangedBreakpoints::File(&file)).await;
        }
    }

    /// The targets here whose adapter finds a line by its anchor.
    fn anchoring_targets(&self) -> Vec<TargetHandle> {
        let active = self.active_sessions();
        let targets = active.iter().flat_map(|managed| managed.session.shared.targets());
        targets.filter(|target| target.quirks().finds_lines_by_anchor).collect()
    }
}
