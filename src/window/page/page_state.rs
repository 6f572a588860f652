//! State of one connection to the window, written by the event handler and read by everyone else.

use std::sync::{Arc, Mutex, MutexGuard};

use tether_base::error::Result;
use tether_base::sync::lock;
use tether_cdp::network::RequestPaused;
use tether_cdp::types::TargetInfo;
use tokio::sync::{mpsc, watch};

use super::console::ConsoleSource;
use super::element_refs::{ElementHandle, ElementRefs};
use super::history::{PageHistory, ReplayCutoffs};
use super::network::BodyToTake;
use super::network::response_body::BodyPermits;
use super::targets::{BrowserTargets, PageNotice};

/// A command that an event makes necessary.
#[derive(Debug)]
pub enum FollowUp {
    /// Close a JavaScript dialog, which blocks the page.
    AnswerDialog { session: Option<String>, accept: bool, text: Option<String> },
    /// Attach to a page that was opened.
    AttachPage(TargetInfo),
    /// Enable the domains of a frame or worker that was attached automatically.
    EnableSession { session: String, source: ConsoleSource },
    /// Take the body of a response from the browser.
    TakeBody(BodyToTake),
    /// Answer a request that a rule has paused.
    AnswerRequest { session: String, paused: Box<RequestPaused> },
    /// Disconnect: Node has finished, and exits when its clients have left.
    Disconnect,
}

/// State of one connection to the window.
pub struct PageState {
    targets: Mutex<BrowserTargets>,
    refs: Mutex<ElementRefs>,
    /// What outlives the connection.
    pub history: Arc<PageHistory>,
    /// How many bodies are taken at the same time.
    pub body_permits: BodyPermits,
    /// One recording at a time.
    pub profile_lock: tokio::sync::Mutex<()>,
    /// Console messages up to here were recorded over an earlier connection.
    pub cutoffs: ReplayCutoffs,
    targets_changed: watch::Sender<()>,
    follow_ups: mpsc::UnboundedSender<FollowUp>,
}

impl PageState {
    /// The state of a connection that is being opened.
    pub fn new(history: Arc<PageHistory>, follow_ups: mpsc::UnboundedSender<FollowUp>) -> PageState {
        let (cutoffs, targets_changed) = (history.replay_cutoffs(), watch::Sender::default());
        let mut targets = BrowserTargets::default();
        targets.chosen = history.settings().chosen_page();
        PageState {
            targets: Mutex::new(targets),
            refs: Mutex::default(),
            history,
            body_permits: BodyPermits::default(),
            profile_lock: tokio::sync::Mutex::default(),
            cutoffs,
            targets_changed,
            follow_ups,
        }
    }

    /// Queues a command. The queue is unbounded, but limited by the browser: one entry per target, one dialog per page at a
    /// time, and one per request.
    pub fn queue_follow_up(&self, follow_up: FollowUp) {
        // Fails only when the connection is being closed.
        let _ = self.follow_ups.send(follow_up);
    }

    /// The browser's targets. Not to be held across an await.
    pub fn targets(&self) -> MutexGuard<'_, BrowserTargets> {
        lock(&self.targets)
    }

    /// The name of an element's ref, `e12`: the existing one, or a new one.
    pub fn assign_ref(&self, handle: &ElementHandle) -> String {
        format!("e{}", lock(&self.refs).assign_ref(handle, &self.history.ref_counter))
    }

    /// The element of a ref.
    pub fn resolve_ref(&self, name: &str) -> Result<ElementHandle> {
        lock(&self.refs).resolve_ref(name, &self.history.ref_counter)
    }

    /// Makes the refs of a session's documents stale, or those of one execution context.
    pub fn remove_documents(&self, session: &str, context: Option<i64>) {
        lock(&self.refs).remove_documents(session, context);
    }

    /// Wakes the tasks that wait for a change of the targets.
    pub fn notify_changed(&self) {
        self.targets_changed.send_replace(());
    }

    /// Resolves to the first `Some` that `read` returns; calls it now and after each change of the targets.
    pub async fn wait_for_targets<T>(&self, mut read: impl FnMut(&mut BrowserTargets) -> Option<T>) -> T {
        let mut changed = self.targets_changed.subscribe();
        loop {
            if let Some(value) = read(&mut self.targets()) {
                return value;
            }
            // The sender is a field of `self`, so this cannot fail.
            let _ = changed.changed().await;
        }
    }

    /// Records something that happened to the page, in the console and as a notice.
    pub fn report_page_event(&self, level: &str, text: String) {
        self.history.record_page_event(level, text.clone());
        self.targets().add_notice(PageNotice::Text(text));
    }
}
