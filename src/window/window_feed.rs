//! Notifications that the window's state, or one of its tracked files, may have changed.
//!
//! Does not depend on the receivers, nor on how they read the state.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tether_changes::ChangeTracker;
use tokio::sync::watch;

use super::context::PublishedState;
use super::window_handle::Window;

/// A receiver of change notifications; see [`WindowFeed::follow`].
pub struct WindowFeed {
    window: Window,
    published: watch::Receiver<PublishedState>,
    /// Of the tracker that holds the window's baseline.
    hints: Option<(Arc<ChangeTracker>, watch::Receiver<u64>)>,
}

impl WindowFeed {
    /// A feed of the changes from now on.
    pub fn follow(window: &Window) -> WindowFeed {
        WindowFeed { window: window.clone(), published: window.watch(), hints: None }
    }

    /// Waits until the window's state, or a tracked file, may have changed. `false`: the window's actor has ended.
    pub async fn wait_for_change(&mut self) -> bool {
        let tracker = self.window.tracker().ok();
        // A change of `[watch]` replaces the tracker; the published state changes along with it.
        if tracker.as_ref().map(Arc::as_ptr) != self.hints.as_ref().map(|(tracker, _)| Arc::as_ptr(tracker)) {
            self.hints = tracker.map(|tracker| {
                let mut hints = tracker.subscribe_hints();
                hints.mark_unchanged();
                (tracker, hints)
            });
            return true;
        }
        let hinted = OptionFuture::from(self.hints.as_mut().map(|(_, hints)| hints.changed()));
        tokio::select! {
            changed = self.published.changed() => changed.is_ok(),
            // Without a tracker, or when it has ended, only the published state counts.
            Some(Ok(())) = hinted => true,
        }
    }
}
