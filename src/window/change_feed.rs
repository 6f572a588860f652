//! What is worth another look at the window: a change of its state, or of its files.
//!
//! Must not know who looks, or what they see.

use std::sync::Arc;

use tokio::sync::watch;

use super::context::PublishedState;
use super::handle::Window;
use crate::changes::ChangeTracker;

impl Window {
    /// What is worth another look, from now on.
    pub fn change_feed(&self) -> ChangeFeed {
        ChangeFeed { window: self.clone(), published: self.watch(), hints: None }
    }
}

impl Window {
    /// A count that rises with each entry of the console.
    pub fn console_count(&self) -> watch::Receiver<u64> {
        self.shared.records.said()
    }
}

/// What is worth another look at the window.
pub struct ChangeFeed {
    window: Window,
    published: watch::Receiver<PublishedState>,
    /// Of the tracker that compares.
    hints: Option<(Arc<ChangeTracker>, watch::Receiver<u64>)>,
}

impl ChangeFeed {
    /// Waits until the window's state, or a tracked file, may have changed; `false`: nothing will any more.
    pub async fn wait_for_change(&mut self) -> bool {
        let tracker = self.window.tracker().ok();
        // Another one compares after a change of `[watch]`, which comes with a change of what is published.
        if tracker.as_ref().map(Arc::as_ptr) != self.hints.as_ref().map(|(tracker, _)| Arc::as_ptr(tracker)) {
            self.hints = tracker.map(|tracker| {
                let mut hints = tracker.subscribe_hints();
                hints.mark_unchanged();
                (tracker, hints)
            });
            return true;
        }
        let hints = &mut self.hints;
        let hinted = async {
            match hints {
                Some((_, hints)) => match hints.changed().await {
                    Ok(()) => {}
                    // A tracker that has ended says nothing more.
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.published.changed() => changed.is_ok(),
            () = hinted => true,
        }
    }
}
