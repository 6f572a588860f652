//! Looking into the window over CDP, and acting in it: evaluate, screenshot, snapshot, input, console, network.
//!
//! ```text
//!  browser:  WebSocket of the browser ──► a flat session for each page ──► and for each iframe and worker in it
//!  Node:     WebSocket of its only target; no page, so nothing but evaluate and console
//! ```
//! | file | owns |
//! |---|---|
//! | `view`, `observe` | what is known of the browser's targets, and how its events come to it |
//! | `core` | the connection: asking a session; attaching; chores such as dismissing dialogs |
//! | `frames`, `inside` | the frames of a page, and the script that runs in each (`inside.js`) |
//! | `refs` | the names of elements |
//! | `snapshot`, `evaluate`, `screenshot` | looking |
//! | `input`, `actions`, `mouse`, `keys`, `waiting`, `obstacle` | acting |
//! | `records`, `console`, `network` | what was said and asked for, over all launches |
//! | `extension_host` | the console of VS Code's extension host |
//!
//! JavaScript dialogs are dismissed at once, since they block the page and everyone who asks it something.
//! Must not know why it is asked, and never ends or replaces the window.

mod action_error;
mod console;
mod element_refs;
mod evaluate_expression;
mod event_handler;
mod extension_host_console;
mod frame_tree;
mod history;
mod injected_script;
mod input_action;
mod keyboard;
mod mouse;
mod network;
mod page_client;
mod page_snapshot;
mod run_actions;
mod screenshot;
mod targets;
mod wait_condition;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

pub use self::console::{ConsoleMessage, ConsoleSource};
use self::element_refs::{ElementRefs, lock_unpoisoned};
pub use self::evaluate_expression::ExpressionResult;
use self::evaluate_expression::ScriptRun;
pub use self::extension_host_console::{ExtensionHostConsole, ExtensionHostInspector};
pub use self::history::PageHistory;
use self::history::ReplayCutoffs;
pub use self::input_action::{ActionKind, ActionTarget, InputAction, MouseButton, WaitCondition};
pub use self::network::RecordedRequest;
pub use self::page_client::PageError;
use self::page_client::{PageClient, run_connection};
pub use self::page_snapshot::{PageSnapshot, SnapshotRequest};
pub use self::run_actions::{ActionOutcome, BatchOutcome};
pub use self::screenshot::{CapturedImage, ImageFormat, ScreenshotRequest};
use self::targets::{BrowserTargets, PageNotice};
use crate::cdp::{self, CdpEvent, Endpoint};
use crate::error::{Error, ErrorKind, Result};
pub use crate::ring::{RingExtract, RingQuery};

/// For requests that the browser answers without the page.
const SHORT: Duration = Duration::from_secs(2);

/// A connection to the window. Dropping it closes the WebSocket and leaves the window alone.
pub struct PageConnection {
    core: PageClient,
    /// Its drop ends the task that keeps the connection going.
    _leave: oneshot::Sender<Infallible>,
}

/// What the connection's reader keeps current.
struct PageState {
    targets: Mutex<BrowserTargets>,
    refs: Mutex<ElementRefs>,
    records: Arc<PageHistory>,
    /// Console entries up to here are known from an earlier connection.
    replayed_until: ReplayCutoffs,
    /// Told whenever `view` has changed in a way that somebody may wait for.
    changed: watch::Sender<()>,
}

impl PageState {
    fn notify_changed(&self) {
        self.changed.send_replace(());
    }

    /// Something has happened that whoever asks next should know.
    fn add_notice(&self, level: &str, text: String) {
        self.records.record_page_event(level, text.clone());
        lock_unpoisoned(&self.targets).add_notice(PageNotice::Text(text));
    }
}

impl PageConnection {
    /// Connects to the window that answers on `cdp_port`, which must have been proven ours.
    pub async fn open(cdp_port: u16) -> Result<PageConnection> {
        PageConnection::open_with_history(cdp_port, Arc::new(PageHistory::new(None))).await
    }

    /// As [`Page::attach`], with the records of the window.
    pub async fn open_with_history(cdp_port: u16, records: Arc<PageHistory>) -> Result<PageConnection> {
        let endpoint =
            cdp::discover_endpoint(cdp_port).await.map_err(|cause| page_client::connection_error(cdp_port, cause))?;
        PageConnection::open_endpoint(endpoint, records).await
    }

    /// As [`Page::attach_recorded`], when [`cdp::discover`] has been asked already.
    pub async fn open_endpoint(endpoint: Endpoint, records: Arc<PageHistory>) -> Result<PageConnection> {
        let port = endpoint.port;
        let known = records.replay_cutoffs();
        let (view, refs, (stirred, _)) = (Mutex::default(), Mutex::default(), watch::channel(()));
        let shared = Arc::new(PageState { targets: view, refs, records, replayed_until: known, changed: stirred });
        let (chores, due) = mpsc::unbounded_channel();
        let seen = Arc::clone(&shared);
        let observer = Box::new(move |event: &CdpEvent| event_handler::handle_event(event, &seen, &chores));
        let connected = cdp::open_connection_with_handler(port, &endpoint.path, SHORT, observer).await;
        let (client, connection) = connected.map_err(|cause| page_client::connection_error(port, cause))?;
        let core = PageClient::new(client, endpoint, shared);
        let (leave, left) = oneshot::channel();
        tokio::spawn(run_connection(core.clone(), connection, due, left));
        core.enable_domains().await.map_err(|cause| page_client::connection_error(port, cause))?;
        Ok(PageConnection { core, _leave: leave })
    }

    /// The program that answers.
    pub fn endpoint(&self) -> &Endpoint {
        &self.core.endpoint
    }

    /// Evaluates in the page (or in Node), awaiting promises; declarations and `await` at the top level are allowed.
    /// Errors: [`ErrorKind::TimedOut`], after which the running script has been stopped; the window is gone.
    pub async fn evaluate(&self, expression: &str, timeout: Duration) -> Result<ExpressionResult> {
        self.evaluate_in(expression, timeout, None).await
    }

    /// As [`Page::evaluate`], in the page that `page` is a part of the address or title of.
    pub async fn evaluate_in(
        &self,
        expression: &str,
        timeout: Duration,
        page: Option<&str>,
    ) -> Result<ExpressionResult> {
        let session = self.core.select_session(page).await?;
        let script = ScriptRun { core: &self.core, session: session.as_deref(), timeout };
        script.run(expression).await.map_err(|why| match why {
            PageError::Cdp(cdp::CdpError::TimedOut { .. }) => evaluation_timed_out(timeout),
            trouble => self.core.user_error(trouble),
        })
    }

    /// Whether the page itself answers within `deadline`. `false` while the port answers: the page is frozen.
    pub async fn ping(&self, deadline: Duration) -> bool {
        let asking = async {
            let session = self.core.select_session(None).await.ok()?;
            self.core.call(session.as_deref(), &evaluate_expression::noop_evaluation(), deadline).await.ok()
        };
        tokio::time::timeout(deadline, asking).await.is_ok_and(|answer| answer.is_some())
    }

    /// The newest entries of the console, oldest first; at most 200.
    pub fn console(&self) -> Vec<ConsoleMessage> {
        self.core.shared.records.last_messages(200, 0)
    }

    /// Dialogs, crashes, downloads, new pages: what has happened beside what was asked for, each told once.
    pub fn take_notices(&self) -> Vec<String> {
        lock_unpoisoned(&self.core.shared.targets).take_notices()
    }

    /// Asks the browser to close, as a user would; whether it was heard. Node knows no such request.
    pub async fn request_close(&self) -> bool {
        self.core.endpoint.is_browser && self.core.call(None, &cdp::types::CloseBrowser {}, SHORT).await.is_ok()
    }

    /// Resolves when the WebSocket has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.core.client.wait_closed().await
    }
}

fn evaluation_timed_out(timeout: Duration) -> Error {
    let doing = format!("the expression did not end within {}", humantime::format_duration(timeout));
    Error::new(ErrorKind::TimedOut, doing).hint("a larger `timeoutMs` waits longer")
}
