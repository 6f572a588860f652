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

mod actions;
mod console;
mod core;
mod evaluate;
mod extension_host;
mod frames;
mod input;
mod inside;
mod keys;
mod mouse;
mod network;
mod observe;
mod obstacle;
mod records;
mod refs;
mod screenshot;
mod snapshot;
mod view;
mod waiting;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

pub use self::actions::{Action, At, Button, Does, Until};
pub use self::console::{Entry, Source};
pub use self::core::Trouble;
use self::core::{Core, drive};
pub use self::evaluate::Evaluated;
use self::evaluate::Script;
pub use self::extension_host::{ExtensionHost, Inspected};
pub use self::input::{Acted, Step};
pub use self::network::Request;
use self::records::Known;
pub use self::records::Records;
use self::refs::{Refs, lock};
pub use self::screenshot::{Format, Picture, Shot};
pub use self::snapshot::{Look, Snapshot};
use self::view::{Notice, View};
use crate::cdp::{self, Endpoint, Event};
use crate::error::{Error, Kind, Result};
pub use crate::ring::{Extract, Query};

/// For requests that the browser answers without the page.
const SHORT: Duration = Duration::from_secs(2);

/// A connection to the window. Dropping it closes the WebSocket and leaves the window alone.
pub struct Page {
    core: Core,
    /// Its drop ends the task that keeps the connection going.
    _leave: oneshot::Sender<Infallible>,
}

/// What the connection's reader keeps current.
struct Shared {
    view: Mutex<View>,
    refs: Mutex<Refs>,
    records: Arc<Records>,
    /// Console entries up to here are known from an earlier connection.
    known: Known,
    /// Told whenever `view` has changed in a way that somebody may wait for.
    stirred: watch::Sender<()>,
}

impl Shared {
    fn stir(&self) {
        self.stirred.send_replace(());
    }

    /// Something has happened that whoever asks next should know.
    fn tell(&self, level: &str, text: String) {
        self.records.tell(level, text.clone());
        lock(&self.view).notice(Notice::Told(text));
    }
}

impl Page {
    /// Connects to the window that answers on `cdp_port`, which must have been proven ours.
    pub async fn attach(cdp_port: u16) -> Result<Page> {
        Page::attach_recorded(cdp_port, Arc::new(Records::new(None))).await
    }

    /// As [`Page::attach`], with the records of the window.
    pub async fn attach_recorded(cdp_port: u16, records: Arc<Records>) -> Result<Page> {
        let endpoint = cdp::discover(cdp_port).await.map_err(|cause| core::unreachable(cdp_port, cause))?;
        Page::attach_to(endpoint, records).await
    }

    /// As [`Page::attach_recorded`], when [`cdp::discover`] has been asked already.
    pub async fn attach_to(endpoint: Endpoint, records: Arc<Records>) -> Result<Page> {
        let port = endpoint.port;
        let known = records.known();
        let (view, refs, (stirred, _)) = (Mutex::default(), Mutex::default(), watch::channel(()));
        let shared = Arc::new(Shared { view, refs, records, known, stirred });
        let (chores, due) = mpsc::unbounded_channel();
        let seen = Arc::clone(&shared);
        let observer = Box::new(move |event: &Event| observe::observe(event, &seen, &chores));
        let connected = cdp::connect_observed(port, &endpoint.path, SHORT, observer).await;
        let (client, connection) = connected.map_err(|cause| core::unreachable(port, cause))?;
        let core = Core::new(client, endpoint, shared);
        let (leave, left) = oneshot::channel();
        tokio::spawn(drive(core.clone(), connection, due, left));
        core.enable().await.map_err(|cause| core::unreachable(port, cause))?;
        Ok(Page { core, _leave: leave })
    }

    /// The program that answers.
    pub fn endpoint(&self) -> &Endpoint {
        &self.core.endpoint
    }

    /// Evaluates in the page (or in Node), awaiting promises; declarations and `await` at the top level are allowed.
    /// Errors: [`Kind::TimedOut`], after which the running script has been stopped; the window is gone.
    pub async fn evaluate(&self, expression: &str, timeout: Duration) -> Result<Evaluated> {
        self.evaluate_in(expression, timeout, None).await
    }

    /// As [`Page::evaluate`], in the page that `page` is a part of the address or title of.
    pub async fn evaluate_in(&self, expression: &str, timeout: Duration, page: Option<&str>) -> Result<Evaluated> {
        let session = self.core.session(page).await?;
        let script = Script { core: &self.core, session: session.as_deref(), timeout };
        script.run(expression).await.map_err(|why| match why {
            Trouble::Cdp(cdp::Error::TimedOut { .. }) => timed_out(timeout),
            trouble => self.core.explain(trouble),
        })
    }

    /// Whether the page itself answers within `deadline`. `false` while the port answers: the page is frozen.
    pub async fn ping(&self, deadline: Duration) -> bool {
        let asking = async {
            let session = self.core.session(None).await.ok()?;
            self.core.call(session.as_deref(), &evaluate::alive(), deadline).await.ok()
        };
        tokio::time::timeout(deadline, asking).await.is_ok_and(|answer| answer.is_some())
    }

    /// The newest entries of the console, oldest first; at most 200.
    pub fn console(&self) -> Vec<Entry> {
        self.core.shared.records.last_entries(200, 0)
    }

    /// Dialogs, crashes, downloads, new pages: what has happened beside what was asked for, each told once.
    pub fn take_notices(&self) -> Vec<String> {
        lock(&self.core.shared.view).take_notices()
    }

    /// Asks the browser to close, as a user would; whether it was heard. Node knows no such request.
    pub async fn ask_to_close(&self) -> bool {
        self.core.endpoint.is_browser && self.core.call(None, &cdp::types::CloseBrowser {}, SHORT).await.is_ok()
    }

    /// Resolves when the WebSocket has ended, with the reason.
    pub async fn closed(&self) -> String {
        self.core.client.closed().await
    }
}

fn timed_out(timeout: Duration) -> Error {
    let doing = format!("the expression did not end within {}", humantime::format_duration(timeout));
    Error::new(Kind::TimedOut, doing).hint("a larger `timeoutMs` waits longer")
}
