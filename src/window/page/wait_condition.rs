//! Waits for the page: until it has settled after an action, until it shows a text, until an element is gone.
//!
//! The injected script checks whenever the page changes; frames that appear or disappear meanwhile are handled here.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout, timeout_at};

use super::action_error::{ActionError, wait_timed_out};
use super::element_point::{ActionContext, ReferencedElement};
use super::frame_tree::find_frames;
use super::injected_script::call_script;
use super::input_action::WaitCondition;
use super::page_client::{BROWSER_TIMEOUT, PageSession};
use super::page_error::PageError;
use super::targets::ScriptedFrame;

/// Maximum wait for a document to load after a navigation.
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the page has settled: its DOM is unchanged for `quiet` (waiting at most `max_wait`), and a navigation since
/// `navigations` has loaded.
pub async fn wait_until_settled(
    page: &PageSession,
    navigations: u64,
    quiet: Duration,
    max_wait: Duration,
) -> Result<(), PageError> {
    if let Ok(frames) = find_frames(page).await
        && let Some(main) = frames.first()
    {
        let call = format!("waitUntilSettled({}, {})", quiet.as_millis(), max_wait.as_millis());
        match call_script::<bool>(&page.client, &main.document, &call, max_wait).await {
            Err(error) if error.is_timeout() => return Err(error),
            // A page that navigates or crashes counts as settled; the next command reports it.
            _ => {}
        }
    }
    let state = &page.client.state;
    let may_load =
        state.targets().sessions.get(&page.id).is_some_and(|now| now.loading || now.navigations != navigations);
    if may_load {
        let loaded = state.wait_for_targets(|targets| {
            let is_loading = targets.sessions.get(&page.id).is_some_and(|now| now.loading && !now.crashed);
            (!is_loading).then_some(())
        });
        // A document that never finishes loading is used as it is.
        let _ = timeout(LOAD_TIMEOUT, loaded).await;
    }
    Ok(())
}

impl ActionContext<'_> {
    /// Waits until the condition is met.
    pub async fn wait_for(&self, condition: &WaitCondition) -> Result<(), ActionError> {
        let left = self.time_left();
        match condition {
            WaitCondition::TimeElapsed => {
                // Ends early when the page crashes or is closed.
                let lost = self.page.client.state.wait_for_targets(|targets| targets.session_error(&self.page.id));
                let _ = timeout(left, lost).await;
                Ok(())
            }
            WaitCondition::ElementGone(name) => self.wait_until_gone(name).await,
            WaitCondition::TextShown(text) => {
                match timeout_at(self.until + BROWSER_TIMEOUT, self.wait_for_text(text)).await {
                    Ok(Ok(true)) => Ok(()),
                    Ok(Err(error)) => Err(error.into()),
                    Ok(Ok(false)) | Err(_) => {
                        Err(wait_timed_out(format!("the page does not show {text:?}"), left).into())
                    }
                }
            }
        }
    }

    /// Tells the frame that has the focus what is typed into it, so that a wait for this text is not ended by the element
    /// that it is typed into. A frame that does not respond is not told.
    pub async fn record_typing(&self, text: &str) {
        let Ok(frames) = find_frames(self.page).await else { return };
        let call = format!("recordTyping({})", serde_json::to_string(text).unwrap_or_default());
        let record = |frame: &ScriptedFrame| {
            let document = frame.document.clone();
            let call = &call;
            async move { call_script::<bool>(&self.page.client, &document, call, Duration::ZERO).await }
        };
        join_all(frames.iter().map(record)).await;
    }

    /// Waits until an element is hidden or removed; a stale ref counts as removed.
    async fn wait_until_gone(&self, name: &str) -> Result<(), ActionError> {
        let element = match ReferencedElement::resolve(&self.page.client, name) {
            Ok(element) => element,
            Err(error) if error.doing.starts_with("stale") => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let left = self.time_left();
        let call = format!("waitUntilGone({}, {})", element.handle.number, left.as_millis());
        match element.call::<bool>(&call, left).await {
            Ok(true) | Err(ActionError::DocumentGone(_)) => Ok(()),
            Ok(false) => Err(wait_timed_out(format!("{name} is still there"), left).into()),
            Err(error) => Err(error),
        }
    }

    /// Whether one of the frames shows the text before the deadline; includes frames that appear meanwhile.
    async fn wait_for_text(&self, text: &str) -> Result<bool, PageError> {
        let text = serde_json::to_string(text).unwrap_or_default();
        let state = &self.page.client.state;
        loop {
            let version = state.targets().frames_version;
            let frames = find_frames(self.page).await?;
            let frames_changed = state.wait_for_targets(|targets| (targets.frames_version != version).then_some(()));
            tokio::select! {
                shown = self.any_frame_shows(&frames, &text) => {
                    if shown || Instant::now() >= self.until { return Ok(shown) }
                }
                () = frames_changed => {}
            }
            if let Some(error) = state.targets().session_error(&self.page.id) {
                return Err(error);
            }
        }
    }

    async fn any_frame_shows(&self, frames: &[ScriptedFrame], text: &str) -> bool {
        let left = self.time_left();
        let call = format!("waitForText({text}, {})", left.as_millis());
        let calls = frames.iter().map(|frame| call_script::<bool>(&self.page.client, &frame.document, &call, left));
        let mut pending: FuturesUnordered<_> = calls.collect();
        while let Some(shown) = pending.next().await {
            if shown == Ok(true) {
                return true;
            }
        }
        false
    }
}
