//! What outlives a connection, and a window: console, network, the numbers of refs, and whose turn it is to act.
//!
//! One for a workspace's window over all its launches, so that a reader's cursor stays good over a relaunch.

use std::path::PathBuf;
use std::sync::Mutex;

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
    known: Mutex<Known>,
}

/// Up to when the console is known: epoch ms of the newest entry, over each kind of connection. A new connection is
/// told again what the one before it was told; what others have heard meanwhile says nothing about that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    page: u64,
    extension_host: u64,
    node: u64,
}

impl Known {
    /// That of the connection that a source is heard over.
    fn of(&mut self, source: Source) -> &mut u64 {
        match source {
            Source::Page | Source::Iframe | Source::Worker | Source::Tether => &mut self.page,
            Source::ExtensionHost => &mut self.extension_host,
            Source::Node => &mut self.node,
        }
    }

    fn hear(&mut self, entry: &Entry) {
        let newest = self.of(entry.source);
        *newest = entry.at.max(*newest);
    }
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
            known: Mutex::default(),
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
    pub(super) fn known(&self) -> Known {
        *lock(&self.known)
    }

    /// Keeps what an event says to console or network; `known` is what was known when its connection was made.
    pub(super) fn note(&self, event: &Event, source: Source, mut known: Known) {
        if event.method.starts_with("Network.") {
            lock(&self.network).note(event);
        } else if let Some(entry) = console::entry(event, source).filter(|entry| entry.at > *known.of(source)) {
            lock(&self.known).hear(&entry);
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

    /// Ends the requests of a session that nothing more will be heard of.
    pub(super) fn end_requests(&self, session: &str, why: &str) {
        lock(&self.network).end_all_of(session, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::RawValue};

    fn said(records: &Records, source: Source, known: Known, lines: &[(u64, &str)]) {
        for (at, text) in lines {
            let args = json!([{"type": "string", "value": text}]);
            let params = json!({"type": "log", "args": args, "timestamp": at}).to_string();
            let params = RawValue::from_string(params).unwrap();
            records.note(&Event { session: None, method: "Runtime.consoleAPICalled".into(), params }, source, known);
        }
    }

    #[test]
    fn what_one_connection_has_heard_hides_nothing_of_another_and_nothing_is_told_twice() {
        let records = Records::new(None);
        let check = |expect: &[&str]| {
            let told: Vec<String> = records.last_entries(100, 0).into_iter().map(|entry| entry.text).collect();
            assert_eq!(told, expect);
        };
        let page = [(10, "page"), (30, "page, later")];
        said(&records, Source::Page, records.known(), &page);
        // The extension host said this before the page said its last, and is connected to afterwards.
        let host = [(20, "activated"), (40, "still at it")];
        said(&records, Source::ExtensionHost, records.known(), &host[..1]);
        check(&["page", "page, later", "activated"]);
        said(&records, Source::ExtensionHost, records.known(), &host);
        check(&["page", "page, later", "activated", "still at it"]);
        // The page is connected to anew: it repeats what it said, and tells what nobody has heard.
        let known = records.known();
        said(&records, Source::Page, known, &page);
        said(&records, Source::Page, known, &[(35, "page, unheard")]);
        said(&records, Source::Worker, known, &[(5, "worker"), (36, "worker, unheard")]);
        check(&["page", "page, later", "activated", "still at it", "page, unheard", "worker, unheard"]);
        said(&records, Source::Node, records.known(), &[(1, "node")]);
        said(&records, Source::Node, records.known(), &[(1, "node")]);
        assert_eq!(records.last_entries(1, 0)[0].text, "node");
        assert_eq!(records.known(), Known { page: 36, extension_host: 40, node: 1 });
    }
}
