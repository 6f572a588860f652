//! What outlives a connection and a window: recorded console and network, the numbers of refs, the input lock.
//!
//! There is one for all launches of a workspace's window, so that cursors stay valid over a relaunch.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tether_base::clock::now_ms;
use tether_base::ring::{Ring, RingExtract, RingLimits, RingQuery};
use tether_base::sync::lock;
use tether_cdp::CdpEvent;
use tokio::sync::watch;

use super::console::{ConsoleMessage, ConsoleSource, page_event_message, parse_console_event};
use super::element_refs::RefCounter;
use super::network::request_details::{RecordedBody, RequestDetail};
use super::network::{BodyToTake, NetworkLog, RecordedRequest};
use super::page_settings::PageSettings;
use super::profile::heap_summary::HeapSummary;

/// Capacity of the console.
const CONSOLE_LIMITS: RingLimits = RingLimits { entries: 5000, bytes: 2 << 20 };
const WORKBENCH_LIMITS: RingLimits = RingLimits { entries: 1000, bytes: 256 << 10 };

/// Console, network and refs over all launches of the window.
pub struct PageHistory {
    console: Mutex<Ring<ConsoleMessage>>,
    /// VS Code's own log, which is shown on request.
    workbench_log: Mutex<Ring<ConsoleMessage>>,
    network: Mutex<NetworkLog>,
    /// What is set for the pages.
    pub(super) settings: PageSettings,
    /// The workspace, whose files requests may get.
    workspace: Option<PathBuf>,
    /// Assigns the numbers of refs.
    pub(super) ref_counter: RefCounter,
    /// Serialises input batches, so that the events of two callers never interleave.
    pub(super) input_lock: tokio::sync::Mutex<()>,
    /// Incremented with each console message.
    console_count: watch::Sender<u64>,
    cutoffs: Mutex<ReplayCutoffs>,
    /// The classes of the heap snapshot that was taken last.
    last_heap: Mutex<Option<HeapSummary>>,
}

/// The newest recorded console message (epoch ms) for each kind of connection.
///
/// A new connection replays the console from before it was opened; messages up to the cutoff are already recorded. The
/// cutoffs are separate because a message seen over one connection does not imply that the others have seen theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCutoffs {
    page: u64,
    extension_host: u64,
    node: u64,
}

impl ReplayCutoffs {
    /// The cutoff of the connection that reports `source`.
    fn cutoff_mut(&mut self, source: ConsoleSource) -> &mut u64 {
        match source {
            ConsoleSource::Page
            | ConsoleSource::Iframe
            | ConsoleSource::Worker
            | ConsoleSource::Workbench
            | ConsoleSource::Tether => &mut self.page,
            ConsoleSource::ExtensionHost => &mut self.extension_host,
            ConsoleSource::Node => &mut self.node,
        }
    }

    fn advance(&mut self, source: ConsoleSource, at: u64) {
        let newest = self.cutoff_mut(source);
        *newest = at.max(*newest);
    }
}

impl fmt::Debug for PageHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageHistory").finish_non_exhaustive()
    }
}

impl PageHistory {
    /// `ref_file` keeps the numbers of refs from being reused by a later supervisor; beside it are the settings of pages.
    pub fn new(ref_file: Option<PathBuf>) -> PageHistory {
        PageHistory {
            console: Mutex::new(Ring::new(CONSOLE_LIMITS)),
            workbench_log: Mutex::new(Ring::new(WORKBENCH_LIMITS)),
            network: Mutex::default(),
            settings: PageSettings::load(ref_file.as_ref().map(|file| file.with_file_name("page-settings.json"))),
            workspace: None,
            ref_counter: RefCounter::new(ref_file),
            input_lock: tokio::sync::Mutex::default(),
            console_count: watch::Sender::default(),
            cutoffs: Mutex::default(),
            last_heap: Mutex::default(),
        }
    }

    /// The same, of a workspace.
    pub fn of_workspace(self, workspace: PathBuf) -> PageHistory {
        PageHistory { workspace: Some(workspace), ..self }
    }

    /// The workspace, if it is of one.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// The number of console messages so far, to wait for further ones.
    pub fn watch_console(&self) -> watch::Receiver<u64> {
        self.console_count.subscribe()
    }

    fn push_message(&self, message: ConsoleMessage) {
        if message.source == ConsoleSource::Workbench {
            return lock(&self.workbench_log).push(message);
        }
        lock(&self.console).push(message);
        self.console_count.send_modify(|count| *count += 1);
    }

    /// The last `count` console messages at or after `since` (epoch ms), oldest first.
    pub fn last_messages(&self, count: usize, since: u64) -> Vec<ConsoleMessage> {
        let ring = lock(&self.console);
        let newest_first = ring.iter().rev().take_while(|it| it.at >= since).take(count);
        let mut last: Vec<ConsoleMessage> = newest_first.cloned().collect();
        last.reverse();
        last
    }

    /// The console messages that match a query; VS Code's own log only where the filter is its source.
    pub fn console(&self, query: &RingQuery) -> RingExtract<ConsoleMessage> {
        if query.filter.as_deref().is_some_and(|filter| filter.eq_ignore_ascii_case(ConsoleSource::Workbench.name())) {
            return lock(&self.workbench_log).read(query);
        }
        lock(&self.console).read(query)
    }

    /// The completed requests that match a query, and all requests in flight.
    pub fn network(&self, query: &RingQuery) -> (RingExtract<RecordedRequest>, Vec<RecordedRequest>) {
        let network = lock(&self.network);
        (network.read(query), network.in_flight())
    }

    /// A request by its number, and what is kept of it.
    pub fn find_request(&self, id: u64) -> Option<(RecordedRequest, Option<RequestDetail>)> {
        lock(&self.network).find(id)
    }

    /// The session of a request that is kept.
    pub fn session_of_request(&self, id: u64) -> Option<String> {
        lock(&self.network).details().key(id)?.0.clone()
    }

    /// The classes of the heap snapshot that was taken last.
    pub(super) fn last_heap(&self) -> Option<HeapSummary> {
        lock(&self.last_heap).clone()
    }

    /// Keeps the classes of a heap snapshot, for the next one.
    pub(super) fn set_last_heap(&self, summary: HeapSummary) {
        *lock(&self.last_heap) = Some(summary);
    }

    /// What is set for the pages.
    pub fn settings(&self) -> &PageSettings {
        &self.settings
    }

    /// A body that is still in the browser.
    pub(super) fn body_in_browser(&self, id: u64) -> Option<BodyToTake> {
        let key = lock(&self.network).details().key(id)?.clone();
        Some(BodyToTake { id, key })
    }

    /// Records a body that was taken, or is lost.
    pub(super) fn set_body(&self, id: u64, body: RecordedBody) {
        lock(&self.network).details().set_body(id, body);
    }

    /// The HTTP status of the newest document that a session has loaded from a URL.
    pub(super) fn document_status(&self, session: &str, url: &str) -> Option<u16> {
        lock(&self.network).document_status(session, url)
    }

    /// The text of the newest script from a URL, if it is kept.
    pub(super) fn script_text(&self, url: &str) -> Option<String> {
        lock(&self.network).script_text(url)
    }

    /// Whether a page waits for a response that ends.
    pub(super) fn has_requests_in_flight(&self) -> bool {
        lock(&self.network).in_flight().iter().any(|request| request.kind != "EventSource")
    }

    /// The script that a server has failed to make, and how, while nothing newer is known of the page.
    pub(super) fn describe_failed_script(&self) -> Option<String> {
        lock(&self.network).failed_script().map(|(url, status)| format!("{url}: HTTP {status}"))
    }

    /// Forgets a script that a server has failed to make.
    pub(super) fn forget_failed_script(&self) {
        lock(&self.network).forget_failed_script();
    }

    /// The cutoffs for a connection that is opened now.
    pub(super) fn replay_cutoffs(&self) -> ReplayCutoffs {
        *lock(&self.cutoffs)
    }

    /// Records a network event; returns the body that has arrived with it, if that is to be taken.
    pub(super) fn record_network(&self, event: &CdpEvent) -> Option<BodyToTake> {
        lock(&self.network).record_event(event)
    }

    /// Records a console event; `cutoffs` are those of when its connection was opened.
    pub(super) fn record_event(&self, event: &CdpEvent, source: ConsoleSource, mut cutoffs: ReplayCutoffs) {
        if let Some(message) = parse_console_event(event, source)
            && message.at > *cutoffs.cutoff_mut(source)
        {
            lock(&self.cutoffs).advance(source, message.at);
            self.push_message(message);
        }
    }

    /// Ends what was set for one launch only.
    pub fn end_launch_settings(&self) {
        self.settings.end_launch();
    }

    /// What is set for the pages, a line each.
    pub fn describe_settings(&self) -> Vec<String> {
        self.settings.describe()
    }

    /// Records in the console that a new window is being launched.
    pub fn record_launch(&self) {
        self.record_page_event("info", "a window is being launched".into());
    }

    /// Records in the console something that happened to the page.
    pub(super) fn record_page_event(&self, level: &str, text: String) {
        self.push_message(page_event_message(now_ms(), level, text));
    }

    /// Ends the requests in flight of a session that sends no further events.
    pub(super) fn end_requests(&self, session: &str, why: &str) {
        lock(&self.network).end_session_requests(session, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::RawValue};

    fn log(history: &PageHistory, source: ConsoleSource, cutoffs: ReplayCutoffs, lines: &[(u64, &str)]) {
        for (at, text) in lines {
            let args = json!([{"type": "string", "value": text}]);
            let params = json!({"type": "log", "args": args, "timestamp": at}).to_string();
            let params = RawValue::from_string(params).unwrap();
            let event = CdpEvent { session: None, method: "Runtime.consoleAPICalled".into(), params };
            history.record_event(&event, source, cutoffs);
        }
    }

    #[test]
    fn connections_have_separate_cutoffs_and_replayed_messages_are_recorded_once() {
        let history = PageHistory::new(None);
        let check = |expect: &[&str]| {
            let texts: Vec<String> = history.last_messages(100, 0).into_iter().map(|message| message.text).collect();
            assert_eq!(texts, expect);
        };
        let page = [(10, "page"), (30, "page, later")];
        log(&history, ConsoleSource::Page, history.replay_cutoffs(), &page);
        // Older than the page's last message, but over a connection that is opened after it.
        let host = [(20, "activated"), (40, "still running")];
        log(&history, ConsoleSource::ExtensionHost, history.replay_cutoffs(), &host[..1]);
        check(&["page", "page, later", "activated"]);
        log(&history, ConsoleSource::ExtensionHost, history.replay_cutoffs(), &host);
        check(&["page", "page, later", "activated", "still running"]);
        // A new connection to the page replays what is recorded, and then what is not.
        let cutoffs = history.replay_cutoffs();
        log(&history, ConsoleSource::Page, cutoffs, &page);
        log(&history, ConsoleSource::Page, cutoffs, &[(35, "page, new")]);
        log(&history, ConsoleSource::Worker, cutoffs, &[(5, "worker"), (36, "worker, new")]);
        check(&["page", "page, later", "activated", "still running", "page, new", "worker, new"]);
        log(&history, ConsoleSource::Node, history.replay_cutoffs(), &[(1, "node")]);
        log(&history, ConsoleSource::Node, history.replay_cutoffs(), &[(1, "node")]);
        assert_eq!(history.last_messages(1, 0)[0].text, "node");
        assert_eq!(history.replay_cutoffs(), ReplayCutoffs { page: 36, extension_host: 40, node: 1 });
    }
}
