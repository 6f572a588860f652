//! Waiting for the page: until it has settled after an action, until it shows something, until something is gone.
//!
//! The page itself looks, whenever it changes; here is seen to frames that come and go.

use std::time::Duration;

use futures_util::future::select_all;
use tokio::time::{Instant, timeout, timeout_at};

use super::SHORT;
use super::actions::Until;
use super::core::{Core, Trouble};
use super::inside;
use super::obstacle::{Obstacle, waited};
use super::refs::{Place, lock};

/// How long a document that an action has led to may take.
const LOADING: Duration = Duration::from_secs(5);

impl Core {
    /// Waits until the page has settled after an action.
    pub async fn settle(&self, page: &str, visits: u64, quiet: Duration, most: Duration) -> Result<(), Trouble> {
        let attached = |session: &str| lock(&self.shared.view).attached(session).cloned();
        if let Ok(frames) = self.frames(page).await
            && let Some(main) = frames.first()
        {
            let call = format!("settled({}, {})", quiet.as_millis(), most.as_millis());
            match inside::call::<bool>(self, &main.place, &call, most).await {
                Err(trouble) if trouble.timed_out() => return Err(trouble),
                // A page that goes away, or crashes, is settled; what comes next will tell.
                _ => {}
            }
        }
        let mut stirred = self.shared.stirred.subscribe();
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

    pub async fn wait(&self, page: &str, what: &Until, until: Instant) -> Result<(), Obstacle> {
        let left = until.saturating_duration_since(Instant::now());
        match what {
            Until::Passed => {
                // A crash ends the waiting: what was waited for will not come.
                let _ = timeout(left, async {
                    while self.answers(page) {
                        self.stirred().await
                    }
                })
                .await;
                Ok(())
            }
            Until::Gone(name) => {
                let handle = match self.handle(name) {
                    Ok(handle) => handle,
                    Err(error) if error.doing.starts_with("stale") => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
                let call = format!("gone({}, {})", handle.number, left.as_millis());
                match self.inside::<bool>(&handle, &call, left, name).await {
                    Ok(true) | Err(Obstacle::Left(_)) => Ok(()),
                    Ok(false) => Err(waited(format!("{name} is still there"), left).into()),
                    Err(obstacle) => Err(obstacle),
                }
            }
            Until::Shows(text) => match timeout_at(until + SHORT, self.shown(page, text, until)).await {
                Ok(Ok(true)) => Ok(()),
                Ok(Err(trouble)) => Err(trouble.into()),
                Ok(Ok(false)) | Err(_) => Err(waited(format!("the page does not show {text:?}"), left).into()),
            },
        }
    }

    fn answers(&self, page: &str) -> bool {
        lock(&self.shared.view).lost(page).is_none()
    }

    async fn stirred(&self) {
        let _ = self.shared.stirred.subscribe().changed().await;
    }

    /// Whether one of the frames shows the text before the deadline; frames that come later are looked at, too.
    async fn shown(&self, page: &str, text: &str, until: Instant) -> Result<bool, Trouble> {
        let text = serde_json::to_string(text).unwrap_or_default();
        loop {
            let version = lock(&self.shared.view).version;
            let frames = self.frames(page).await?;
            let left = until.saturating_duration_since(Instant::now());
            let call = format!("shows({text}, {})", left.as_millis());
            let places: Vec<Place> = frames.iter().map(|frame| frame.place.clone()).collect();
            tokio::select! {
                shown = self.one_shows(&places, &call, left) => if shown || Instant::now() >= until { return Ok(shown) },
                () = self.other_frames(version) => {}
            }
            if let Some(lost) = lock(&self.shared.view).lost(page) {
                return Err(lost.into());
            }
        }
    }

    async fn one_shows(&self, places: &[Place], call: &str, left: Duration) -> bool {
        let mut asked: Vec<_> =
            places.iter().map(|place| Box::pin(inside::call::<bool>(self, place, call, left))).collect();
        while !asked.is_empty() {
            let (answer, _, rest) = select_all(asked).await;
            if answer == Ok(true) {
                return true;
            }
            asked = rest;
        }
        false
    }

    async fn other_frames(&self, version: u64) {
        let mut stirred = self.shared.stirred.subscribe();
        while lock(&self.shared.view).version == version {
            let _ = stirred.changed().await;
        }
    }
}
