//! Sends commands to the sessions of the window's pages: selects and attaches pages, waits for responses.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::network::EnableNetwork;
use tether_cdp::types::{self, CdpCommand, TargetInfo};
use tether_cdp::{CdpClient, CdpError, Endpoint};
use tokio::sync::Mutex;

use super::console::ConsoleSource;
use super::emulation::emulate_in_new_session;
use super::history::PageHistory;
use super::network::response_body::{BROWSER_BODY_BYTES, BROWSER_POST_BYTES, BROWSER_TOTAL_BYTES};
use super::page_error::PageError;
use super::page_state::PageState;
use super::request_rules::paused_requests;
use super::targets::{PageNotice, page_line};

/// Deadline of commands that the browser handles without the page.
pub const BROWSER_TIMEOUT: Duration = Duration::from_secs(2);
/// Deadline for the page to handle one input event.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The objects that evaluations return are held in this group until it is released.
pub const OBJECT_GROUP: &str = "devtether";

/// Sends commands to the window's pages. Clones share the connection.
#[derive(Clone)]
pub struct PageClient {
    /// The CDP connection.
    pub(super) cdp: CdpClient,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) state: Arc<PageState>,
    /// Serialises attaching, so that concurrent callers attach a page once.
    attach_lock: Arc<Mutex<()>>,
}

/// A page that is attached.
pub struct PageSession {
    pub client: PageClient,
    /// Its session id.
    pub id: String,
}

impl PageSession {
    /// Sends a command to the page; see [`PageClient::call`].
    pub async fn call<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<C::Response, PageError> {
        self.client.call(Some(&self.id), command, deadline).await
    }

    /// Sends input events in order, and waits until the page has handled them. A page that one of them closes may be gone
    /// before it responds to any: a notice says so then. Errors: [`PageError::Closed`] if it was closed before.
    pub async fn send_events<C: CdpCommand>(&self, events: &[C]) -> Result<(), PageError> {
        if let Some(error) = self.client.state.targets().session_error(&self.id) {
            return Err(error);
        }
        let responses = join_all(events.iter().map(|event| self.call(event, EVENT_TIMEOUT))).await;
        if matches!(responses.first(), Some(Err(PageError::Closed))) {
            let notice = PageNotice::Text("the page was closed before it confirmed the input".into());
            self.client.state.targets().add_notice(notice);
        }
        responses.into_iter().try_for_each(|response| match response {
            Err(PageError::Closed) => Ok(()),
            response => response.map(drop),
        })
    }

    /// How often the page has navigated; `None` if it was closed.
    pub fn navigations(&self) -> Option<u64> {
        self.client.state.targets().sessions.get(&self.id).map(|target| target.navigations)
    }
}

impl PageClient {
    pub(super) fn new(cdp: CdpClient, endpoint: Endpoint, state: Arc<PageState>) -> PageClient {
        PageClient { cdp, endpoint: Arc::new(endpoint), state, attach_lock: Arc::default() }
    }

    /// The program behind the CDP port.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The history that the connection records into.
    pub fn history(&self) -> &PageHistory {
        &self.state.history
    }

    /// Whether the page itself responds within `deadline`. `false` while the port responds: the page is frozen.
    pub async fn ping(&self, deadline: Duration) -> bool {
        let responds = async {
            let session = self.select_session(None).await.ok()?;
            self.call(session.as_deref(), &noop_evaluation(), deadline).await.ok()
        };
        tokio::time::timeout(deadline, responds).await.is_ok_and(|response| response.is_some())
    }

    /// Removes and returns the pending notices: dialogs, crashes, downloads, new pages.
    pub fn take_notices(&self) -> Vec<String> {
        self.state.targets().take_notices()
    }

    /// An operation begins: what pages have loaded since the last one was not its doing.
    pub fn notice_loads(&self) {
        self.state.targets().notice_loads();
    }

    /// What pages have loaded so far is told otherwise.
    pub fn mark_loads_told(&self) {
        self.state.targets().mark_loads_told();
    }

    /// Whether a dev server tells a page of changes.
    pub fn has_server_channel(&self) -> bool {
        self.state.targets().server_updates.has_channel
    }

    /// The error that a dev server has told a page, or the script that it failed to make, while nothing newer has followed.
    pub fn server_error(&self) -> Option<String> {
        let told = self.state.targets().server_updates.latest_error().map(str::to_owned);
        told.or_else(|| self.history().describe_failed_script().filter(|_| self.has_server_channel()))
    }

    /// Whether it is a browser that shows no page now.
    pub async fn has_no_page(&self) -> bool {
        let listed = self.cdp.call(None, &types::GetTargets {}, BROWSER_TIMEOUT);
        self.endpoint.is_browser && listed.await.is_ok_and(|it| it.target_infos.iter().all(|info| info.kind != "page"))
    }

    /// Requests the browser to close, as a user would; returns whether it accepted. Node has no such command.
    pub async fn request_close(&self) -> bool {
        self.endpoint.is_browser && self.call(None, &types::CloseBrowser {}, BROWSER_TIMEOUT).await.is_ok()
    }

    /// Resolves when the WebSocket has been closed, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.cdp.wait_closed().await
    }

    /// Enables event reporting. A browser without a page is fine: one is looked for with each operation.
    pub(super) async fn enable_domains(&self) -> Result<(), CdpError> {
        if !self.endpoint.is_browser {
            return enable_node_runtime(&self.cdp).await;
        }
        let infos = self.cdp.call(None, &types::GetTargets {}, BROWSER_TIMEOUT).await?.target_infos;
        let best = {
            let mut targets = self.state.targets();
            for info in infos {
                targets.set_page(info);
            }
            targets.is_listed = true;
            targets.find_page(None)
        };
        if let Some(best) = best {
            match self.attach_page(&best).await {
                Ok(_)
                | Err(
                    PageError::Closed
                    | PageError::Crashed
                    | PageError::ElementRemoved
                    | PageError::Cdp(CdpError::ErrorResponse { .. }),
                ) => {}
                Err(PageError::Cdp(cause)) => return Err(cause),
            }
        }
        // Also reports the pages that were opened since they were listed.
        self.cdp.send(None, &types::SetDiscoverTargets { discover: true }).await?;
        let others: Vec<TargetInfo> = self.state.targets().pages().into_iter().skip(1).cloned().collect();
        for page in others {
            let client = self.clone();
            tokio::spawn(async move { client.attach_page(&page).await });
        }
        Ok(())
    }

    /// The session of the best page, or of the one with `part` in its URL or title; `None` for Node.
    pub(super) async fn select_session(&self, part: Option<&str>) -> Result<Option<String>> {
        if !self.endpoint.is_browser {
            return Ok(None);
        }
        self.refresh_titles().await;
        let page = self.state.targets().find_page(part);
        let page = page.ok_or_else(|| self.no_page_error(part))?;
        self.attach_page(&page).await.map(Some).map_err(|error| self.user_error(error))
    }

    /// As [`PageClient::select_session`], for operations that need a page; `doing` begins the error for Node.
    pub(super) async fn select_page(&self, part: Option<&str>, doing: &str) -> Result<PageSession> {
        let no_pages = || Error::usage(doing).because(format!("{} has no page to show", self.endpoint.product));
        let id = self.select_session(part).await?.ok_or_else(no_pages)?;
        match self.state.targets().session_error(&id) {
            Some(error) => Err(self.user_error(error)),
            None => Ok(PageSession { client: self.clone(), id }),
        }
    }

    /// The page that contains the element of a ref. Errors: not a ref, never assigned, stale.
    pub(super) fn page_of_ref(&self, name: &str) -> Result<PageSession> {
        let session = self.state.resolve_ref(name)?.document.session;
        let page = self.state.targets().page_of(&session);
        let id = page.ok_or_else(|| self.user_error(PageError::Closed))?;
        Ok(PageSession { client: self.clone(), id })
    }

    /// Fetches the titles when there are several pages: browsers send no event for a changed title alone.
    async fn refresh_titles(&self) {
        if self.state.targets().pages().len() < 2 {
            return;
        }
        if let Ok(list) = self.cdp.call(None, &types::GetTargets {}, BROWSER_TIMEOUT).await {
            let mut targets = self.state.targets();
            for info in list.target_infos {
                targets.update_page(info);
            }
        }
    }

    /// The session of a page; attaches to it if it has none.
    pub(super) async fn attach_page(&self, page: &TargetInfo) -> Result<String, PageError> {
        // One that is being enabled would miss what happens to it first.
        let attached = || {
            let targets = self.state.targets();
            targets.session_of_page(&page.target_id).filter(|session| targets.enabled_sessions.contains(session))
        };
        if let Some(session) = attached() {
            return Ok(session);
        }
        let _attaching = self.attach_lock.lock().await;
        if let Some(session) = attached() {
            return Ok(session);
        }
        let attach = types::AttachToTarget { target_id: page.target_id.clone(), flatten: true };
        let session = self.cdp.call(None, &attach, BROWSER_TIMEOUT).await?.session_id;
        self.enable_session(&session, ConsoleSource::Page).await?;
        self.state.targets().enabled_sessions.insert(session.clone());
        Ok(session)
    }

    /// Enables event reporting of a session, without waiting for the responses: a frozen page sends none, and later
    /// commands are handled after these anyway.
    pub(super) async fn enable_session(&self, session: &str, source: ConsoleSource) -> Result<(), CdpError> {
        emulate_in_new_session(self, session, source).await?;
        let (cdp, session) = (&self.cdp, Some(session));
        if source != ConsoleSource::Worker {
            cdp.send(session, &types::EnablePage {}).await?;
            cdp.send(session, &types::EnableInspector {}).await?;
        }
        cdp.send(session, &types::EnableRuntime {}).await?;
        cdp.send(session, &types::EnableLog {}).await?;
        let network = EnableNetwork {
            max_total_buffer_size: BROWSER_TOTAL_BYTES,
            max_resource_buffer_size: BROWSER_BODY_BYTES,
            max_post_data_size: BROWSER_POST_BYTES,
            enable_durable_messages: true,
        };
        cdp.send(session, &network).await?;
        if let Some(paused) = paused_requests(&self.history().settings) {
            cdp.send(session, &paused).await?;
        }
        let inner = types::SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: false, flatten: true };
        cdp.send(session, &inner).await
    }

    /// Sends a command to a session (none: the connection's own target) and waits for its result. Fails at once when
    /// the page crashes or is closed.
    pub(super) async fn call<C: CdpCommand>(
        &self,
        session: Option<&str>,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Response, PageError> {
        let Some(session) = session else {
            return Ok(self.cdp.call(None, command, deadline).await?);
        };
        tokio::select! {
            biased; // a response that has arrived counts, whatever happened after it
            response = self.cdp.call(Some(session), command, deadline) => Ok(response?),
            error = self.state.wait_for_targets(|targets| targets.session_error(session)) => Err(error),
        }
    }

    /// The user-facing error.
    pub(super) fn user_error(&self, error: PageError) -> Error {
        error.into_error(self.endpoint.port)
    }

    pub(super) fn no_page_error(&self, part: Option<&str>) -> Error {
        let targets = self.state.targets();
        match part {
            Some(part) if !targets.pages().is_empty() => {
                let pages: Vec<String> = targets.pages().into_iter().take(10).map(page_line).collect();
                Error::new(ErrorKind::NotFound, format!("there is no page with {part:?} in its address or title"))
                    .hint(format!("there are: {}", pages.join(", ")))
            }
            _ => Error::new(ErrorKind::NotFound, "the window shows no page").hint("`tether start` opens it again"),
        }
    }
}

/// The cheapest command that only an idle page responds to.
pub fn noop_evaluation() -> types::Evaluate {
    types::Evaluate {
        expression: "0".into(),
        object_group: OBJECT_GROUP.into(),
        user_gesture: true,
        ..types::Evaluate::default()
    }
}

/// Enables event reporting of a Node process, including the event that it has finished.
pub async fn enable_node_runtime(cdp: &CdpClient) -> Result<(), CdpError> {
    cdp.send(None, &types::EnableRuntime {}).await?;
    cdp.send(None, &types::EnableNodeRuntime {}).await?;
    cdp.send(None, &types::NotifyWhenWaitingForDisconnect { enabled: true }).await
}
