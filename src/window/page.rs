//! Looking into the window over CDP: evaluate, screenshot, is it frozen, what did its console say.
//!
//! ```text
//!  browser:  WebSocket of the browser ──► its best page ──► a flat session; lost with its page, then looked for again
//!  Node:     WebSocket of its only target; no page, so no screenshot
//! ```
//! JavaScript dialogs are dismissed at once, since they block the page and everyone who asks it something.
//! Must not know why it is asked, and never ends or replaces the window.

mod console;
mod evaluate;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use self::console::Entry;
use self::console::Ring;
pub use self::evaluate::Evaluated;
use self::evaluate::Script;
use crate::cdp::types::{self, TargetInfo};
use crate::cdp::{self, Client, Connection, Endpoint, Event, Events};
use crate::error::{Error, Kind, Result};

/// For requests that the browser answers without the page.
const SHORT: Duration = Duration::from_secs(2);
const SCREENSHOT: Duration = Duration::from_secs(15);
/// A connection to the window. Dropping it closes the WebSocket and leaves the window alone.
pub struct Page {
    client: Client,
    endpoint: Endpoint,
    shared: Arc<Shared>,
    /// Its drop ends the task that keeps the connection going.
    _leave: oneshot::Sender<Infallible>,
}

struct Shared {
    /// The flat session of the page that we look at.
    attached: Mutex<Option<Attached>>,
    console: Mutex<Ring>,
}

#[derive(Clone)]
struct Attached {
    session: String,
}

impl Page {
    /// Connects to the window that answers on `cdp_port`, which must have been proven ours.
    pub async fn attach(cdp_port: u16) -> Result<Page> {
        let endpoint = cdp::discover(cdp_port).await.map_err(|cause| unreachable(cdp_port, cause))?;
        Page::attach_to(endpoint).await
    }

    /// As [`Page::attach`], when [`cdp::discover`] has been asked already.
    pub async fn attach_to(endpoint: Endpoint) -> Result<Page> {
        let port = endpoint.port;
        let connected = cdp::connect(port, &endpoint.path, SHORT).await;
        let (client, connection) = connected.map_err(|cause| unreachable(port, cause))?;
        let shared = Arc::new(Shared { attached: Mutex::new(None), console: Mutex::new(Ring::default()) });
        let (leave, left) = oneshot::channel();
        tokio::spawn(drive(client.clone(), connection, shared.clone(), left));
        let page = Page { client, endpoint, shared, _leave: leave };
        page.enable().await.map_err(|cause| unreachable(port, cause))?;
        Ok(page)
    }

    async fn enable(&self) -> Result<(), cdp::Error> {
        if !self.endpoint.is_browser {
            self.client.post(None, &types::EnableRuntime {}).await?;
            self.client.post(None, &types::EnableNodeRuntime {}).await?;
            return self.client.post(None, &types::NotifyWhenWaitingForDisconnect { enabled: true }).await;
        }
        match self.session().await {
            // A window that shows no page yet will when it is asked for something.
            Err(NoPage::None) => Ok(()),
            Err(NoPage::Failed(cause)) => Err(cause),
            Ok(_) => Ok(()),
        }
    }

    /// The program that answers.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Evaluates in the page (or in Node), awaiting promises; declarations and `await` at the top level are allowed.
    /// Errors: [`Kind::TimedOut`], after which the running script has been stopped; the window is gone.
    pub async fn evaluate(&self, expression: &str, timeout: Duration) -> Result<Evaluated> {
        let session = self.session().await.map_err(|why| self.no_page(why))?;
        let script = Script { client: &self.client, session: session.as_deref(), timeout };
        script.run(expression).await.map_err(|why| match why {
            cdp::Error::TimedOut { .. } => timed_out(timeout),
            cause => unreachable(self.endpoint.port, cause),
        })
    }

    /// Whether the page itself answers within `deadline`. `false` while the port answers: the page is frozen.
    pub async fn ping(&self, deadline: Duration) -> bool {
        let asking = async {
            let session = self.session().await.ok()?;
            self.client.call(session.as_deref(), &evaluate::alive(), deadline).await.ok()
        };
        tokio::time::timeout(deadline, asking).await.is_ok_and(|answer| answer.is_some())
    }

    /// The visible part of the page as PNG.
    pub async fn screenshot(&self) -> Result<Vec<u8>> {
        let doing = "cannot take a screenshot";
        if !self.endpoint.is_browser {
            return Err(Error::usage(doing).because(format!("{} has no page to show", self.endpoint.product)));
        }
        let session = self.session().await.map_err(|why| self.no_page(why))?;
        let command = types::CaptureScreenshot { format: "png" };
        let taken = self.client.call(session.as_deref(), &command, SCREENSHOT).await;
        let data = taken.map_err(|cause| unreachable(self.endpoint.port, cause))?.data;
        BASE64.decode(data).map_err(|cause| Error::other(doing).because(cause))
    }

    /// The last entries of the console, oldest first; at most 200.
    pub fn console(&self) -> Vec<Entry> {
        self.shared.console().entries()
    }

    /// Asks the browser to close, as a user would; whether it was heard. Node knows no such request.
    pub async fn ask_to_close(&self) -> bool {
        self.endpoint.is_browser && self.client.call(None, &types::CloseBrowser {}, SHORT).await.is_ok()
    }

    /// Resolves when the WebSocket has ended, with the reason.
    pub async fn closed(&self) -> String {
        self.client.closed().await
    }

    /// The session of the page to look at: the attached one, or else a newly attached one. Node has none.
    async fn session(&self) -> Result<Option<String>, NoPage> {
        if !self.endpoint.is_browser {
            return Ok(None);
        }
        if let Some(attached) = self.shared.attached().clone() {
            return Ok(Some(attached.session));
        }
        let targets = self.client.call(None, &types::GetTargets {}, SHORT).await?.target_infos;
        let target = best(&targets).ok_or(NoPage::None)?.target_id.clone();
        let attach = types::AttachToTarget { target_id: target, flatten: true };
        let session = self.client.call(None, &attach, SHORT).await?.session_id;
        *self.shared.attached() = Some(Attached { session: session.clone() });
        // Nobody waits for the answers: a frozen page gives none, and what is asked next comes after them anyway.
        self.client.post(Some(&session), &types::EnablePage {}).await?;
        self.client.post(Some(&session), &types::EnableRuntime {}).await?;
        self.client.post(Some(&session), &types::EnableLog {}).await?;
        Ok(Some(session))
    }

    fn no_page(&self, why: NoPage) -> Error {
        match why {
            NoPage::None => {
                Error::new(Kind::NotFound, "the window shows no page").hint("`tether restart` launches it anew")
            }
            NoPage::Failed(cause) => unreachable(self.endpoint.port, cause),
        }
    }
}

impl Shared {
    fn attached(&self) -> MutexGuard<'_, Option<Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn console(&self) -> MutexGuard<'_, Ring> {
        self.console.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum NoPage {
    /// The browser has none.
    None,
    Failed(cdp::Error),
}

impl From<cdp::Error> for NoPage {
    fn from(cause: cdp::Error) -> Self {
        NoPage::Failed(cause)
    }
}

/// Keeps the connection going until it ends, the page is dropped, or Node has run to its end and stays only because we
/// look at it. Then takes at most a second to close it in peace.
async fn drive(client: Client, connection: Connection, shared: Arc<Shared>, left: oneshot::Receiver<Infallible>) {
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        () = listen(client.events(), client.clone(), shared) => {}
        _ = left => {}
    }
    client.close();
    connection.await;
}

/// Keeps console and session current, and dismisses dialogs, until the connection ends or Node has run to its end.
async fn listen(mut events: Events, client: Client, shared: Arc<Shared>) {
    let mut dismissals = JoinSet::new();
    while let Some(event) = events.next().await {
        while dismissals.try_join_next().is_some() {}
        match event {
            Ok(event) if event.method == "Page.javascriptDialogOpening" => {
                dismissals.spawn(dismiss(client.clone(), event));
            }
            Ok(event) if event.method == "NodeRuntime.waitingForDisconnect" => return,
            Ok(event) => note(&event, &shared),
            Err(lost) => shared.console().lost(lost.0),
        }
    }
}

fn note(event: &Event, shared: &Shared) {
    if let Some(detached) = event.read::<types::Detached>("Target.detachedFromTarget") {
        shared.attached().take_if(|attached| attached.session == detached.session_id);
        return;
    }
    // Two that attach at once leave two sessions behind, of which the last counts.
    let current = shared.attached().as_ref().map(|attached| attached.session.clone());
    if event.session == current {
        console::entry(event).into_iter().for_each(|entry| shared.console().push(entry));
    }
}

async fn dismiss(client: Client, event: Arc<Event>) {
    let dismissal = types::HandleDialog { accept: false };
    // Refused when somebody else was faster.
    let _ = client.call(event.session.as_deref(), &dismissal, SHORT).await;
}

/// The page that a user would call "the window": a workbench before any other page, a shown one before an empty one.
fn best(targets: &[TargetInfo]) -> Option<&TargetInfo> {
    let rank = |target: &&TargetInfo| {
        let workbench = target.title.starts_with("[Extension Development Host]");
        let inner = ["devtools://", "chrome-extension://", "about:", "chrome://"];
        (!workbench, inner.iter().any(|prefix| target.url.starts_with(prefix)))
    };
    // The first of the best: browsers list the most recently used first.
    targets.iter().filter(|target| target.kind == "page").min_by_key(rank)
}

fn timed_out(timeout: Duration) -> Error {
    let doing = format!("the expression did not end within {}", humantime::format_duration(timeout));
    Error::new(Kind::TimedOut, doing).hint("a larger `timeoutMs` waits longer")
}

fn unreachable(port: u16, cause: cdp::Error) -> Error {
    let kind = if matches!(cause, cdp::Error::TimedOut { .. }) { Kind::TimedOut } else { Kind::Other };
    let error = Error::new(kind, format!("cannot reach the debug window on port {port}")).because(cause);
    error.hint("`tether status` tells whether it lives, `tether restart` launches it anew")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_a_user_would_call_the_window_is_looked_at() {
        let target = |kind: &str, title: &str, url: &str| TargetInfo {
            target_id: url.into(),
            kind: kind.into(),
            title: title.into(),
            url: url.into(),
        };
        let popup = target("browser_ui", "Omnibox Popup", "chrome://omnibox-popup");
        let worker = target("worker", "", "blob:x");
        let empty = target("page", "about:blank", "about:blank");
        let tools = target("page", "DevTools", "devtools://devtools/inspector.html");
        let app = target("page", "App", "http://127.0.0.1:3000/");
        let other = target("page", "Docs", "http://127.0.0.1:4000/");
        let host = target("page", "[Extension Development Host] ws", "http://127.0.0.1:5000/");
        let check = |targets: &[&TargetInfo], expect: Option<&TargetInfo>| {
            let targets: Vec<TargetInfo> = targets.iter().map(|&target| target.clone()).collect();
            assert_eq!(best(&targets), expect);
        };
        check(&[], None);
        check(&[&popup, &worker], None);
        check(&[&popup, &empty], Some(&empty));
        check(&[&empty, &tools, &app], Some(&app));
        check(&[&app, &other], Some(&app));
        check(&[&other, &app, &host, &empty], Some(&host));
    }
}
