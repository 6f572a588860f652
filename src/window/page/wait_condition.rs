//! Waiting for the page: until it has settled after an action, until it shows something, until something is gone.
//!
//! The page itself looks, whenever it changes; here is seen to frames that come and go.

use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::{Instant, timeout, timeout_at};

use super::SHORT;
use super::action_error::{ActionError, wait_timed_out};
use super::element_refs::{DocumentContext, lock_unpoisoned};
use super::injected_script;
use super::input_action::WaitCondition;
use super::page_client::{PageClient, PageError};

/// How long a document that an action has led to may take.
const LOADING: Duration = Duration::from_secs(5);

impl PageClient {
    /// Waits until the page has settled after an action.
    pub async fn wait_until_settled(
        &self,
        page: &str,
        visits: u64,
        quiet: Duration,
        most: Duration,
    ) -> Result<(), PageError> {
        let attached = |session: &str| lock_unpoisoned(&self.shared.targets).attached(session).cloned();
        if let Ok(frames) = self.frames(page).await
            && let Some(main) = frames.first()
        {
            let call = format!("settled({}, {})", quiet.as_millis(), most.as_millis());
            match injected_script::call_script::<bool>(self, &main.place, &call, most).await {
                Err(trouble) if trouble.is_timeout() => return Err(trouble),
                // A page that goes away, or crashes, is settled; what comes next will tell.
                _ => {}
            }
        }
        let mut stirred = self.shared.changed.subscribe();
        let read = async {
            while attached(page).is_some_and(|now| now.loading && !now.crashed) {
                let _ = stirred.changed().await;
            }
        };
        if attached(page).is_some_and(|now| now.loading || now.visits != visits) {
            // A document that never ends to load is looked at as it is.
            let _ = timeout(LOADING, read).await;
        }
        Ok(())
    }

    pub async fn wait_for(&self, page: &str, what: &WaitCondition, until: Instant) -> Result<(), ActionError> {
        let left = until.saturating_duration_since(Instant::now());
        match what {
            WaitCondition::TimeElapsed => {
                // A crash ends the waiting: what was waited for will not come.
                let _ = timeout(left, async {
                    while self.is_reachable(page) {
                        self.wait_changed().await
                    }
                })
                .await;
                Ok(())
            }
            WaitCondition::ElementGone(name) => {
                let handle = match self.resolve_ref(name) {
                    Ok(handle) => handle,
                    Err(error) if error.doing.starts_with("stale") => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
                let call = format!("gone({}, {})", handle.number, left.as_millis());
                match self.call_element_script::<bool>(&handle, &call, left, name).await {
                    Ok(true) | Err(ActionError::DocumentGone(_)) => Ok(()),
                    Ok(false) => Err(wait_timed_out(format!("{name} is still there"), left).into()),
                    Err(obstacle) => Err(obstacle),
                }
            }
            WaitCondition::TextShown(text) => match timeout_at(until + SHORT, self.wait_for_text(page, text, until))
                .await
            {
                Ok(Ok(true)) => Ok(()),
                Ok(Err(trouble)) => Err(trouble.into()),
                Ok(Ok(false)) | Err(_) => Err(wait_timed_out(format!("the page does not show {text:?}"), left).into()),
            },
        }
    }

    fn is_reachable(&self, page: &str) -> bool {
        lock_unpoisoned(&self.shared.targets).session_loss(page).is_none()
    }

    async fn wait_changed(&self) {
        let _ = self.shared.changed.subscribe().changed().await;
    }

    /// Whether one of the frames shows the text before the deadline; frames that come later are looked at, too.
    async fn wait_for_text(&self, page: &str, text: &str, until: Instant) -> Result<bool, PageError> {
        let text = serde_json::to_string(text).unwrap_or_default();
        loop {
            let version = lock_unpoisoned(&self.shared.targets).version;
            let frames = self.frames(page).await?;
            let left = until.saturating_duration_since(Instant::now());
            let call = format!("shows({text}, {})", left.as_millis());
            let places: Vec<DocumentContext> = frames.iter().map(|frame| frame.place.clone()).collect();
            tokio::select! {
                shown = self.any_frame_shows(&places, &call, left) => if shown || Instant::now() >= until { return Ok(shown) },
                () = self.wait_frames_changed(version) => {}
            }
            if let Some(lost) = lock_unpoisoned(&self.shared.targets).session_loss(page) {
                return Err(lost.into());
            }
        }
    }

    async fn any_frame_shows(&self, places: &[DocumentContext], call: &str, left: Duration) -> bool {
        let mut asked: Vec<_> = places
            .iter()
            .map(|place| Box::pin(injected_script::call_script::<bool>(self, place, call, left)))
            .collect();
        while !asked.is_empty() {
            let (answer, _, rest) = select_all(asked).await;
            if answer == Ok(true) {
                return true;
            }
            asked = rest;
        }
        false
    }

    async fn wait_frames_changed(&self, version: u64) {
        let mut stirred = self.shared.changed.subscribe();
        while lock_unpoisoned(&self.shared.targets).version == version {
            let _ = stirred.changed().await;
        }
    }
}
