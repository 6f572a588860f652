//! Waits for the page: until it has settled after an action, until it shows a text, until an element is gone.
//!
//! The injected script checks whenever the page changes; frames that appear or disappear meanwhile are handled here.

use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::{Instant, timeout, timeout_at};

use super::action_error::{ActionError, wait_timed_out};
use super::element_point::call_on_element;
use super::element_refs::DocumentContext;
use super::frame_tree::find_frames;
use super::injected_script::call_script;
use super::input_action::WaitCondition;
use super::page_client::{BROWSER_TIMEOUT, PageClient};
use super::page_error::PageError;

/// Maximum wait for a document to load after a navigation.
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the page has settled: its DOM is unchanged for `quiet` (waiting at most `max_wait`), and a navigation since
/// `navigations` has loaded.
pub async fn wait_until_settled(
    client: &PageClient,
    page: &str,
    navigations: u64,
    quiet: Duration,
    max_wait: Duration,
) -> Result<(), PageError> {
    if let Ok(frames) = find_frames(client, page).await
        && let Some(main) = frames.first()
    {
        let call = format!("waitUntilSettled({}, {})", quiet.as_millis(), max_wait.as_millis());
        match call_script::<bool>(client, &main.document, &call, max_wait).await {
            Err(error) if error.is_timeout() => return Err(error),
            // A page that navigates or crashes counts as settled; the next command reports it.
            _ => {}
        }
    }
    let may_load = {
        let targets = client.state.targets();
        targets.session(page).is_some_and(|now| now.loading || now.navigations != navigations)
    };
    if may_load {
        let loaded = client.state.wait_for_targets(|targets| {
            let is_loading = targets.session(page).is_some_and(|now| now.loading && !now.crashed);
            (!is_loading).then_some(())
        });
        // A document that never finishes loading is used as it is.
        let _ = timeout(LOAD_TIMEOUT, loaded).await;
    }
    Ok(())
}

/// Waits until the condition is met, at most until `until`.
pub async fn wait_for_condition(
    client: &PageClient,
    page: &str,
    condition: &WaitCondition,
    until: Instant,
) -> Result<(), ActionError> {
    let left = until.saturating_duration_since(Instant::now());
    match condition {
        WaitCondition::TimeElapsed => {
            // Ends early when the page crashes or is closed.
            let lost = client.state.wait_for_targets(|targets| targets.session_error(page));
            let _ = timeout(left, lost).await;
            Ok(())
        }
        WaitCondition::ElementGone(name) => wait_until_gone(client, name, left).await,
        WaitCondition::TextShown(text) => {
            match timeout_at(until + BROWSER_TIMEOUT, wait_for_text(client, page, text, until)).await {
                Ok(Ok(true)) => Ok(()),
                Ok(Err(error)) => Err(error.into()),
                Ok(Ok(false)) | Err(_) => Err(wait_timed_out(format!("the page does not show {text:?}"), left).into()),
            }
        }
    }
}

/// Waits until an element is hidden or removed; a stale ref counts as removed.
async fn wait_until_gone(client: &PageClient, name: &str, left: Duration) -> Result<(), ActionError> {
    let handle = match client.state.resolve_ref(name) {
        Ok(handle) => handle,
        Err(error) if error.doing.starts_with("stale") => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let call = format!("waitUntilGone({}, {})", handle.number, left.as_millis());
    match call_on_element::<bool>(client, &handle, &call, left, name).await {
        Ok(true) | Err(ActionError::DocumentGone(_)) => Ok(()),
        Ok(false) => Err(wait_timed_out(format!("{name} is still there"), left).into()),
        Err(error) => Err(error),
    }
}

/// Whether one of the frames shows the text before the deadline; includes frames that appear meanwhile.
async fn wait_for_text(client: &PageClient, page: &str, text: &str, until: Instant) -> Result<bool, PageError> {
    let text = serde_json::to_string(text).unwrap_or_default();
    loop {
        let version = client.state.targets().frames_version;
        let frames = find_frames(client, page).await?;
        let left = until.saturating_duration_since(Instant::now());
        let call = format!("waitForText({text}, {})", left.as_millis());
        let documents: Vec<&DocumentContext> = frames.iter().map(|frame| &frame.document).collect();
        let frames_changed = client.state.wait_for_targets(|targets| (targets.frames_version != version).then_some(()));
        tokio::select! {
            shown = any_frame_shows(client, &documents, &call, left) => {
                if shown || Instant::now() >= until { return Ok(shown) }
            }
            () = frames_changed => {}
        }
        if let Some(error) = client.state.targets().session_error(page) {
            return Err(error);
        }
    }
}

async fn any_frame_shows(client: &PageClient, documents: &[&DocumentContext], call: &str, left: Duration) -> bool {
    let calls = documents.iter().map(|document| Box::pin(call_script::<bool>(client, document, call, left)));
    let mut pending: Vec<_> = calls.collect();
    while !pending.is_empty() {
        let (shown, _, rest) = select_all(pending).await;
        if shown == Ok(true) {
            return true;
        }
        pending = rest;
    }
    false
}
