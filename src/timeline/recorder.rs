//! The handle to a workspace's timeline. Clones share it.
//!
//! A timeline that cannot be written loses events, and nothing else: the log says so once.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_base::clipped_text::clip_chars;
use tether_base::clock::now_ms;
use tether_base::error::{ErrorContext, Result};
use tether_base::sync::lock;
use tokio::sync::watch;
use tracing::warn;

use super::event_file::{EventFile, TimelineExtract, TimelineQuery};
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// Of each text of an event, in characters.
const MAX_TEXT_CHARS: usize = 400;
/// How long an event waits for another process that appends one, which takes microseconds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// Records events, and reads them.
#[derive(Clone, Default)]
pub struct Timeline(Option<Arc<TimelineInner>>);

struct TimelineInner {
    file: Mutex<EventFile>,
    /// The number of the event that this process has recorded last.
    recorded: watch::Sender<u64>,
    is_failing: AtomicBool,
}

/// An event of now, with nothing but a text.
pub fn event_now(kind: TimelineKind, text: impl Into<String>) -> TimelineEvent {
    let (number, session_id, place, by, took_ms, failed) = (0, None, None, None, None, None);
    TimelineEvent { number, at: now_ms(), kind, session_id, text: text.into(), place, by, took_ms, failed }
}

impl Timeline {
    /// Opens the timeline in a state folder. One that cannot be opened records nothing.
    pub fn open(folder: &Path) -> Timeline {
        match EventFile::open(folder) {
            Ok(file) => {
                let (recorded, is_failing) = (watch::Sender::default(), AtomicBool::default());
                Timeline(Some(Arc::new(TimelineInner { file: Mutex::new(file), recorded, is_failing })))
            }
            Err(error) => {
                warn!("there is no timeline: cannot open it in {}: {error}", folder.display());
                Timeline(None)
            }
        }
    }

    /// Adds an event.
    pub fn record(&self, mut event: TimelineEvent) {
        let Some(inner) = &self.0 else { return };
        for text in [Some(&mut event.text), event.place.as_mut(), event.by.as_mut()].into_iter().flatten() {
            *text = clip_chars(text.trim_end(), MAX_TEXT_CHARS);
        }
        // A process that was stopped while it appended holds up the others once.
        let within = if inner.is_failing.load(Ordering::Relaxed) { Duration::ZERO } else { LOCK_TIMEOUT };
        let appended = lock(&inner.file).append(&mut event, within);
        match appended {
            Ok(number) => {
                inner.is_failing.store(false, Ordering::Relaxed);
                inner.recorded.send_replace(number);
            }
            Err(error) => {
                if !inner.is_failing.swap(true, Ordering::Relaxed) {
                    warn!("events are lost: cannot write the timeline: {error}");
                }
            }
        }
    }

    /// The number of the event that this process has recorded last, from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        match &self.0 {
            Some(inner) => inner.recorded.subscribe(),
            None => watch::Sender::default().subscribe(),
        }
    }

    /// The number of the event that this process has recorded last; 0: none.
    pub fn last_recorded(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| *inner.recorded.borrow())
    }

    /// An event that another process has recorded: it wakes those that wait here.
    pub fn report_recorded(&self, number: u64) {
        if let Some(inner) = &self.0 {
            inner.recorded.send_if_modified(|last| {
                let is_newer = number > *last;
                *last = number.max(*last);
                is_newer
            });
        }
    }

    /// Reads events. Blocks for a moment. Errors: the file cannot be read.
    pub fn read(&self, query: &TimelineQuery) -> Result<TimelineExtract> {
        let Some(inner) = &self.0 else { return Ok(TimelineExtract::default()) };
        let read = lock(&inner.file).read(query);
        read.doing(|| "cannot read the timeline".into())
    }
}
