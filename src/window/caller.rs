//! Who asks something of the window: told what is being done, able to call it off, remembered while it waits.
//!
//! Must not know what is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::actor::ActorMessage;
use super::handle::Window;

/// Who waits for an operation.
pub trait Caller: Send + Sync {
    /// Told what is being done meanwhile.
    fn report_progress(&self, doing: &str);
    /// Whether it has called the operation off, rather than gone away: a front end that ends touches nothing.
    fn is_cancelled(&self) -> bool;
}

/// Who waits for an operation, while it does.
pub type Progress<'a> = &'a dyn Caller;

/// What is done with the window, and by that what its end would cut off.
#[derive(Default)]
pub struct InFlight(Mutex<Vec<InFlightCall>>);

struct InFlightCall {
    number: u64,
    what: String,
    ended: Option<Instant>,
}

impl InFlightCall {
    /// A connection that breaks ends what is done over it, a moment before the end of the window is known.
    fn is_recent(&self) -> bool {
        const JUST_NOW: Duration = Duration::from_secs(1);
        self.ended.is_none_or(|ended| ended.elapsed() < JUST_NOW)
    }
}

impl InFlight {
    fn lock_calls(&self) -> MutexGuard<'_, Vec<InFlightCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn track(&self, what: String) -> InFlightGuard<'_> {
        let mut all = self.lock_calls();
        all.retain(InFlightCall::is_recent);
        let number = all.last().map_or(0, |last| last.number + 1);
        all.push(InFlightCall { number, what, ended: None });
        InFlightGuard { deeds: self, number }
    }

    /// What is being done just now; when it is nothing, what ended last, if it was a moment ago.
    pub fn describe_calls(&self) -> Vec<String> {
        let all = self.lock_calls();
        let running: Vec<_> = all.iter().filter(|deed| deed.ended.is_none()).collect();
        let last = all.iter().filter(|deed| deed.is_recent()).max_by_key(|deed| deed.ended);
        let told = if running.is_empty() { last.into_iter().collect() } else { running };
        told.into_iter().map(|deed| deed.what.clone()).collect()
    }
}

/// Something that is being done; over when dropped.
pub struct InFlightGuard<'a> {
    deeds: &'a InFlight,
    number: u64,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let now = Some(Instant::now());
        self.deeds.lock_calls().iter_mut().filter(|deed| deed.number == self.number).for_each(|deed| deed.ended = now);
    }
}

impl Window {
    /// Notes what is being done with the window, for the case that it ends meanwhile.
    pub fn track_call(&self, what: String) -> InFlightGuard<'_> {
        self.shared.deeds.track(what)
    }
}

/// Tells the actor, when a wish is called off before it is fulfilled.
pub struct CancelGuard<'a> {
    wishes: &'a mpsc::Sender<ActorMessage>,
    asker: Progress<'a>,
}

impl<'a> CancelGuard<'a> {
    pub fn new(wishes: &'a mpsc::Sender<ActorMessage>, asker: Progress<'a>) -> Self {
        CancelGuard { wishes, asker }
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.asker.is_cancelled() {
            // An inbox that is full of wishes: others want the work.
            let _ = self.wishes.try_send(ActorMessage::CalledOff);
        }
    }
}
