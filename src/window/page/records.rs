//! What outlives a connection, and a window: console, network, the numbers of refs, and whose turn it is to act.
//!
//! One for a workspace's window over all its launches, so that a reader's cursor stays good over a relaunch.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::console::{self, Entry, Source};
use super::network::{Network, Request};
use super::refs::{Numbers, lock};
use crate::cdp::Event;
use crate::ring::{Extract, Limits, Query, Ring};
use crate::window::launch::now_ms;

const CONSOLE: Limits = Limits { entries: 5000, bytes: 2 << 20 };

/// See the module.
pub struct Records {
    console: Mutex<Ring<Entry>>,
    network: Mutex<Network>,
    pub(super) numbers: Numbers,
    /// Held by who acts on the page: the actions of two agents never mix.
    pub(super) acting: tokio::sync::Mutex<()>,
    /// Rises with each console entry.
    said: watch::Sender<u64>,
    /// Epoch ms of the newest console entry that came from the window; a new connection is told the old ones again.
    newest: AtomicU64,
}

impl Records {
    /// `refs` is the file that keeps the numbers of refs from being given again.
    pub fn new(refs: Option<PathBuf>) -> Records {
        Records {
            console: Mutex::new(Ring::new(CONSOLE)),
            network: Mutex::default(),
            numbers: Numbers::new(refs),
            acting: tokio::sync::Mutex::default(),
            said: watch::Sender::default(),
            newest: AtomicU64::new(0),
        }
    }

    /// A count that rises with each console entry.
    pub fn said(&self) -> watch::Receiver<u64> {
        self.said.subscribe()
    }

    fn keep(&self, entry: Entry) {
        lock(&self.console).push(entry);
        self.said.send_modify(|count| *count += 1);
    }

    /// The last entries of the console since `from` (epoch ms), oldest first.
    pub fn last_entries(&self, count: usize, from: u64) -> Vec<Entry> {
        let ring = lock(&self.console);
        let mut last: Vec<Entry> = ring.iter().rev().take_while(|it| it.at >= from).take(count).cloned().collect();
        last.reverse();
        last
    }

    pub fn console(&self, query: &Query) -> Extract<Entry> {
        lock(&self.console).read(query)
    }

    /// Those that have ended, and those on their way.
    pub fn network(&self, query: &Query) -> (Extract<Request>, Vec<Request>) {
        let network = lock(&self.network);
        (network.read(query), network.under_way())
    }

    /// Up to when a connection that is made now will repeat what is known.
    pub(super) fn known_until(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Keeps what an event says to console or network; `known_until` is that of its connection.
    pub(super) fn note(&self, event: &Event, source: Source, known_until: u64) {
        if event.method.starts_with("Network.") {
            lock(&self.network).note(event);
        } else if let Some(entry) = console::entry(event, source).filter(|entry| entry.at > known_until) {
            self.newest.fetch_max(entry.at, Ordering::Relaxed);
            self.keep(entry);
        }
    }

    /// Sets down that there is another window now.
    pub fn launched(&self) {
        self.tell("info", "the window was launched".into());
    }

    /// Sets down something that happened to the page.
    pub(super) fn tell(&self, level: &str, text: String) {
        self.keep(console::told(now_ms(), level, text));
    }

    pub(super) fn forget_requests(&self, session: &str) {
        lock(&self.network).forget(session);
    }
}
