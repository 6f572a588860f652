//! What outlives a connection, and a window: console, network, the numbers of refs, and whose turn it is to act.
//!
//! One for a workspace's window over all its launches, so that a reader's cursor stays good over a relaunch.

use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::watch;

use super::console::{self, ConsoleMessage, ConsoleSource};
use super::element_refs::{RefCounter, lock_unpoisoned};
use super::network::{NetworkLog, RecordedRequest};
use crate::cdp::CdpEvent;
use crate::clock::now_ms;
use crate::ring::{Ring, RingExtract, RingLimits, RingQuery};

const CONSOLE: RingLimits = RingLimits { entries: 5000, bytes: 2 << 20 };

/// See the module.
pub struct PageHistory {
    console: Mutex<Ring<ConsoleMessage>>,
    network: Mutex<NetworkLog>,
    pub(super) numbers: RefCounter,
    /// Held by who acts on the page: the actions of two agents never mix.
    pub(super) acting: tokio::sync::Mutex<()>,
    /// Rises with each console entry.
    said: watch::Sender<u64>,
    known: Mutex<ReplayCutoffs>,
}

/// Up to when the console is known: epoch ms of the newest entry, over each kind of connection. A new connection is
/// told again what the one before it was told; what others have heard meanwhile says nothing about that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCutoffs {
    page: u64,
    extension_host: u64,
    node: u64,
}

impl ReplayCutoffs {
    /// That of the connection that a source is heard over.
    fn cutoff_of(&mut self, source: ConsoleSource) -> &mut u64 {
        match source {
            ConsoleSource::Page | ConsoleSource::Iframe | ConsoleSource::Worker | ConsoleSource::Tether => {
                &mut self.page
            }
            ConsoleSource::ExtensionHost => &mut self.extension_host,
            ConsoleSource::Node => &mut self.node,
        }
    }

    fn advance(&mut self, entry: &ConsoleMessage) {
        let newest = self.cutoff_of(entry.source);
        *newest = entry.at.max(*newest);
    }
}

impl PageHistory {
    /// `refs` is the file that keeps the numbers of refs from being given again.
    pub fn new(refs: Option<PathBuf>) -> PageHistory {
        PageHistory {
            console: Mutex::new(Ring::new(CONSOLE)),
            network: Mutex::default(),
            numbers: RefCounter::new(refs),
            acting: tokio::sync::Mutex::default(),
            said: watch::Sender::default(),
            known: Mutex::default(),
        }
    }

    /// A count that rises with each console entry.
    pub fn said(&self) -> watch::Receiver<u64> {
        self.said.subscribe()
    }

    fn push_message(&self, entry: ConsoleMessage) {
        lock_unpoisoned(&self.console).push(entry);
        self.said.send_modify(|count| *count += 1);
    }

    /// The last entries of the console since `from` (epoch ms), oldest first.
    pub fn last_messages(&self, count: usize, from: u64) -> Vec<ConsoleMessage> {
        let ring = lock_unpoisoned(&self.console);
        let mut last: Vec<ConsoleMessage> =
            ring.iter().rev().take_while(|it| it.at >= from).take(count).cloned().collect();
        last.reverse();
        last
    }

    pub fn console(&self, query: &RingQuery) -> RingExtract<ConsoleMessage> {
        lock_unpoisoned(&self.console).read(query)
    }

    /// Those that have ended, and those on their way.
    pub fn network(&self, query: &RingQuery) -> (RingExtract<RecordedRequest>, Vec<RecordedRequest>) {
        let network = lock_unpoisoned(&self.network);
        (network.read(query), network.in_flight())
    }

    /// Up to when a connection that is made now will repeat what is known.
    pub(super) fn replay_cutoffs(&self) -> ReplayCutoffs {
        *lock_unpoisoned(&self.known)
    }

    /// Keeps what an event says to console or network; `known` is what was known when its connection was made.
    pub(super) fn record_event(&self, event: &CdpEvent, source: ConsoleSource, mut known: ReplayCutoffs) {
        if event.method.starts_with("Network.") {
            lock_unpoisoned(&self.network).note(event);
        } else if let Some(entry) =
            console::parse_console_event(event, source).filter(|entry| entry.at > *known.cutoff_of(source))
        {
            lock_unpoisoned(&self.known).advance(&entry);
            self.push_message(entry);
        }
    }

    /// Sets down that there is another window now.
    pub fn record_launch(&self) {
        self.record_page_event("info", "the window was launched".into());
    }

    /// Sets down something that happened to the page.
    pub(super) fn record_page_event(&self, level: &str, text: String) {
        self.push_message(console::page_event_message(now_ms(), level, text));
    }

    /// Ends the requests of a session that nothing more will be heard of.
    pub(super) fn end_requests(&self, session: &str, why: &str) {
        lock_unpoisoned(&self.network).end_session_requests(session, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::RawValue};

    fn said(records: &PageHistory, source: ConsoleSource, known: ReplayCutoffs, lines: &[(u64, &str)]) {
        for (at, text) in lines {
            let args = json!([{"type": "string", "value": text}]);
            let params = json!({"type": "log", "args": args, "timestamp": at}).to_string();
            let params = RawValue::from_string(params).unwrap();
            records.record_event(
                &CdpEvent { session: None, method: "Runtime.consoleAPICalled".into(), params },
                source,
                known,
            );
        }
    }

    #[test]
    fn what_one_connection_has_heard_hides_nothing_of_another_and_nothing_is_told_twice() {
        let records = PageHistory::new(None);
        let check = |expect: &[&str]| {
            let told: Vec<String> = records.last_messages(100, 0).into_iter().map(|entry| entry.text).collect();
            assert_eq!(told, expect);
        };
        let page = [(10, "page"), (30, "page, later")];
        said(&records, ConsoleSource::Page, records.replay_cutoffs(), &page);
        // The extension host said this before the page said its last, and is connected to afterwards.
        let host = [(20, "activated"), (40, "still at it")];
        said(&records, ConsoleSource::ExtensionHost, records.replay_cutoffs(), &host[..1]);
        check(&["page", "page, later", "activated"]);
        said(&records, ConsoleSource::ExtensionHost, records.replay_cutoffs(), &host);
        check(&["page", "page, later", "activated", "still at it"]);
        // The page is connected to anew: it repeats what it said, and tells what nobody has heard.
        let known = records.replay_cutoffs();
        said(&records, ConsoleSource::Page, known, &page);
        said(&records, ConsoleSource::Page, known, &[(35, "page, unheard")]);
        said(&records, ConsoleSource::Worker, known, &[(5, "worker"), (36, "worker, unheard")]);
        check(&["page", "page, later", "activated", "still at it", "page, unheard", "worker, unheard"]);
        said(&records, ConsoleSource::Node, records.replay_cutoffs(), &[(1, "node")]);
        said(&records, ConsoleSource::Node, records.replay_cutoffs(), &[(1, "node")]);
        assert_eq!(records.last_messages(1, 0)[0].text, "node");
        assert_eq!(records.replay_cutoffs(), ReplayCutoffs { page: 36, extension_host: 40, node: 1 });
    }
}
