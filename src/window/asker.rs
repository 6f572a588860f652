//! Who asks something of the window: told what is being done, able to call it off, remembered while it waits.
//!
//! Must not know what is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::actor::Message;
use super::handle::Window;

/// Who waits for an operation.
pub trait Asker: Send + Sync {
    /// Told what is being done meanwhile.
    fn tell(&self, doing: &str);
    /// Whether it has called the operation off, rather than gone away: a front end that ends touches nothing.
    fn has_withdrawn(&self) -> bool;
}

/// Who waits for an operation, while it does.
pub type Progress<'a> = &'a dyn Asker;

/// What is done with the window, and by that what its end would cut off.
#[derive(Default)]
pub struct Deeds(Mutex<Vec<Deed>>);

struct Deed {
    number: u64,
    what: String,
    ended: Option<Instant>,
}

impl Deed {
    /// A connection that breaks ends what is done over it, a moment before the end of the window is known.
    fn counts(&self) -> bool {
        const JUST_NOW: Duration = Duration::from_secs(1);
        self.ended.is_none_or(|ended| ended.elapsed() < JUST_NOW)
    }
}

impl Deeds {
    fn all(&self) -> MutexGuard<'_, Vec<Deed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, what: String) -> Doing<'_> {
        let mut all = self.all();
        all.retain(Deed::counts);
        let number = all.last().map_or(0, |last| last.number + 1);
        all.push(Deed { number, what, ended: None });
        Doing { deeds: self, number }
    }

    /// What is being done just now; when it is nothing, what ended last, if it was a moment ago.
    pub fn now(&self) -> Vec<String> {
        let all = self.all();
        let running: Vec<_> = all.iter().filter(|deed| deed.ended.is_none()).collect();
        let last = all.iter().filter(|deed| deed.counts()).max_by_key(|deed| deed.ended);
        let told = if running.is_empty() { last.into_iter().collect() } else { running };
        told.into_iter().map(|deed| deed.what.clone()).collect()
    }
}

/// Something that is being done; over when dropped.
pub struct Doing<'a> {
    deeds: &'a Deeds,
    number: u64,
}

impl Drop for Doing<'_> {
    fn drop(&mut self) {
        let now = Some(Instant::now());
        self.deeds.all().iter_mut().filter(|deed| deed.number == self.number).for_each(|deed| deed.ended = now);
    }
}

impl Window {
    /// Notes what is being done with the window, for the case that it ends meanwhile.
    pub fn doing(&self, what: String) -> Doing<'_> {
        self.shared.deeds.begin(what)
    }
}

/// Tells the actor, when a wish is called off before it is fulfilled.
pub struct CallOff<'a> {
    wishes: &'a mpsc::Sender<Message>,
    asker: Progress<'a>,
}

impl<'a> CallOff<'a> {
    pub fn new(wishes: &'a mpsc::Sender<Message>, asker: Progress<'a>) -> Self {
        CallOff { wishes, asker }
    }
}

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        if self.asker.has_withdrawn() {
            // An inbox that is full of wishes: others want the work.
            let _ = self.wishes.try_send(Message::CalledOff);
        }
    }
}
