//! The connection to the window: asking a session, attaching to what appears, the chores that events bring.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::console::ConsoleSource;
use super::element_refs::lock_unpoisoned;
use super::event_handler::FollowUp;
use super::targets::SessionLoss;
use super::{PageState, SHORT};
use crate::cdp::types::{self, CdpCommand, TargetInfo};
use crate::cdp::{self, CdpClient, CdpConnection, Endpoint};
use crate::error::{Error, ErrorKind, Result};

/// What the browser keeps of the bodies of a page's requests: as good as nothing.
const BODY_BUFFER_BYTES: u64 = 64 << 10;
/// What became of a request that was on its way when the connection ended.
const CONNECTION_ENDED: &str = "no longer followed: the connection to the window has ended";

/// Shared by everybody who asks something of the window.
#[derive(Clone)]
pub struct PageClient {
    pub client: CdpClient,
    pub endpoint: Arc<Endpoint>,
    pub shared: Arc<PageState>,
    /// Two who want the same page attach to it once.
    attaching: Arc<Mutex<()>>,
}

/// Why a session did not answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PageError {
    #[error("the page crashed")]
    Crashed,
    #[error("the page was closed")]
    Closed,
    #[error(transparent)]
    Cdp(#[from] cdp::CdpError),
}

impl PageError {
    /// Whether there was no answer in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, PageError::Cdp(cdp::CdpError::TimedOut { .. }))
    }
}

impl From<SessionLoss> for PageError {
    fn from(lost: SessionLoss) -> Self {
        match lost {
            SessionLoss::Crashed => PageError::Crashed,
            SessionLoss::Gone => PageError::Closed,
        }
    }
}

impl PageClient {
    pub fn new(client: CdpClient, endpoint: Endpoint, shared: Arc<PageState>) -> PageClient {
        PageClient { client, endpoint: Arc::new(endpoint), shared, attaching: Arc::default() }
    }

    /// Begins to listen. A browser that shows no page yet will when it is asked for something.
    pub async fn enable_domains(&self) -> Result<(), cdp::CdpError> {
        if !self.endpoint.is_browser {
            self.client.send(None, &types::EnableRuntime {}).await?;
            self.client.send(None, &types::EnableNodeRuntime {}).await?;
            return self.client.send(None, &types::NotifyWhenWaitingForDisconnect { enabled: true }).await;
        }
        let targets = self.client.call(None, &types::GetTargets {}, SHORT).await?.target_infos;
        let best = {
            let mut view = lock_unpoisoned(&self.shared.targets);
            for target in targets {
                view.set_page(target);
            }
            view.listed = true;
            view.find_page(None)
        };
        if let Some(best) = best {
            match self.attach_page(&best).await {
                Ok(_)
                | Err(PageError::Closed | PageError::Crashed | PageError::Cdp(cdp::CdpError::ErrorResponse { .. })) => {
                }
                Err(PageError::Cdp(cause)) => return Err(cause),
            }
        }
        // What is opened meanwhile is told by this, too.
        self.client.send(None, &types::SetDiscoverTargets { discover: true }).await?;
        let others: Vec<TargetInfo> =
            lock_unpoisoned(&self.shared.targets).pages().into_iter().skip(1).cloned().collect();
        for page in others {
            let core = self.clone();
            tokio::spawn(async move { core.attach_page(&page).await });
        }
        Ok(())
    }

    /// The session of the page to look at: see [`super::view::View::page`]. Node has none.
    pub async fn select_session(&self, wanted: Option<&str>) -> Result<Option<String>> {
        if !self.endpoint.is_browser {
            return Ok(None);
        }
        self.refresh_titles().await;
        let page = lock_unpoisoned(&self.shared.targets).find_page(wanted);
        let page = page.ok_or_else(|| self.no_page_error(wanted))?;
        self.attach_page(&page).await.map(Some).map_err(|trouble| self.user_error(trouble))
    }

    /// Asks for the titles where they matter: browsers send no event for a change of title alone.
    async fn refresh_titles(&self) {
        if lock_unpoisoned(&self.shared.targets).pages().len() < 2 {
            return;
        }
        if let Ok(targets) = self.client.call(None, &types::GetTargets {}, SHORT).await {
            let mut view = lock_unpoisoned(&self.shared.targets);
            for target in targets.target_infos {
                view.update_page(target);
            }
        }
    }

    /// As [`Core::session`], for what only a page can.
    pub async fn select_page(&self, wanted: Option<&str>, doing: &str) -> Result<String> {
        let nothing = || Error::usage(doing).because(format!("{} has no page to show", self.endpoint.product));
        let session = self.select_session(wanted).await?.ok_or_else(nothing)?;
        match lock_unpoisoned(&self.shared.targets).session_loss(&session) {
            Some(lost) => Err(self.user_error(lost.into())),
            None => Ok(session),
        }
    }

    /// Attaches to a page, unless that has been done.
    async fn attach_page(&self, page: &TargetInfo) -> Result<String, PageError> {
        let known = || lock_unpoisoned(&self.shared.targets).session_of_page(&page.target_id);
        if let Some(session) = known() {
            return Ok(session);
        }
        let _turn = self.attaching.lock().await;
        if let Some(session) = known() {
            return Ok(session);
        }
        let attach = types::AttachToTarget { target_id: page.target_id.clone(), flatten: true };
        let session = self.client.call(None, &attach, SHORT).await?.session_id;
        self.enable_session(&session, ConsoleSource::Page).await?;
        Ok(session)
    }

    /// Begins to listen to a session. Nobody waits for the answers: a frozen page gives none, and what is asked next
    /// comes after them anyway.
    async fn enable_session(&self, session: &str, source: ConsoleSource) -> Result<(), cdp::CdpError> {
        let (client, session) = (&self.client, Some(session));
        if source != ConsoleSource::Worker {
            client.send(session, &types::EnablePage {}).await?;
            client.send(session, &types::EnableInspector {}).await?;
        }
        client.send(session, &types::EnableRuntime {}).await?;
        client.send(session, &types::EnableLog {}).await?;
        let network = types::EnableNetwork {
            max_total_buffer_size: BODY_BUFFER_BYTES,
            max_resource_buffer_size: BODY_BUFFER_BYTES,
        };
        client.send(session, &network).await?;
        let inner = types::SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: false, flatten: true };
        client.send(session, &inner).await
    }

    /// Asks a session. A page that crashes or closes meanwhile ends the waiting.
    pub async fn call<C: CdpCommand>(
        &self,
        session: Option<&str>,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Response, PageError> {
        let Some(session) = session else {
            return Ok(self.client.call(None, command, deadline).await?);
        };
        tokio::select! {
            biased; // an answer is an answer, whatever happened after it
            answer = self.client.call(Some(session), command, deadline) => Ok(answer?),
            lost = self.wait_lost(session) => Err(lost.into()),
        }
    }

    /// Resolves when a session is lost.
    async fn wait_lost(&self, session: &str) -> SessionLoss {
        let mut stirred = self.shared.changed.subscribe();
        loop {
            if let Some(lost) = lock_unpoisoned(&self.shared.targets).session_loss(session) {
                return lost;
            }
            // The sender lives in `shared`: it cannot be gone.
            let _ = stirred.changed().await;
        }
    }

    /// What a reader is told of trouble with the page.
    pub fn user_error(&self, trouble: PageError) -> Error {
        match trouble {
            PageError::Crashed => Error::new(ErrorKind::Other, "the page crashed")
                .because("its renderer process has ended; the window itself lives")
                .hint("`tether restart` (MCP: `window_restart`) launches the window anew"),
            PageError::Closed => Error::new(ErrorKind::NotFound, "the page was closed")
                .hint("`tether snapshot` shows the pages that there are; `tether restart` launches the window anew"),
            PageError::Cdp(cause) => connection_error(self.endpoint.port, cause),
        }
    }

    fn no_page_error(&self, wanted: Option<&str>) -> Error {
        let view = lock_unpoisoned(&self.shared.targets);
        match wanted {
            Some(wanted) if !view.pages().is_empty() => {
                let pages: Vec<String> = view.pages().into_iter().take(10).map(super::targets::page_line).collect();
                Error::new(ErrorKind::NotFound, format!("there is no page with {wanted:?} in its address or title"))
                    .hint(format!("there are: {}", pages.join(", ")))
            }
            _ => Error::new(ErrorKind::NotFound, "the window shows no page").hint("`tether restart` launches it anew"),
        }
    }
}

/// Keeps the connection going until it ends, the page is dropped, or Node has run to its end and stays only because we
/// look at it. Then takes at most a second to close it in peace, and ends what will not be heard of any more.
pub async fn run_connection(
    core: PageClient,
    connection: CdpConnection,
    chores: mpsc::UnboundedReceiver<FollowUp>,
    left: oneshot::Receiver<Infallible>,
) {
    tokio::pin!(connection);
    let over = tokio::select! {
        _ = &mut connection => true,
        () = run_follow_ups(core.clone(), chores) => false,
        _ = left => false,
    };
    if !over {
        core.client.close();
        connection.await;
    }
    core.end_requests();
}

/// Does what the events bring, each beside the others, until Node wants us to leave.
async fn run_follow_ups(core: PageClient, mut chores: mpsc::UnboundedReceiver<FollowUp>) {
    let mut running = JoinSet::new();
    while let Some(chore) = chores.recv().await {
        while running.try_join_next().is_some() {}
        if matches!(chore, FollowUp::Disconnect) {
            return;
        }
        let core = core.clone();
        running.spawn(async move { core.run_follow_up(chore).await });
    }
}

impl PageClient {
    /// Ends the requests that were on their way when the connection ended. Others may be heard over another one.
    fn end_requests(&self) {
        let sessions: Vec<String> = lock_unpoisoned(&self.shared.targets).session_ids().cloned().collect();
        for session in sessions {
            self.shared.records.end_requests(&session, CONNECTION_ENDED);
        }
    }

    /// Whatever fails here has changed again in the meantime.
    async fn run_follow_up(&self, chore: FollowUp) {
        match chore {
            FollowUp::AnswerDialog { session, accept } => {
                let _ = self.client.call(session.as_deref(), &types::HandleJavascriptDialog { accept }, SHORT).await;
            }
            FollowUp::AttachPage(page) => {
                let _ = self.attach_page(&page).await;
            }
            FollowUp::EnableSession { session, source } => {
                let _ = self.enable_session(&session, source).await;
            }
            FollowUp::Disconnect => {}
        }
    }
}

pub fn connection_error(port: u16, cause: cdp::CdpError) -> Error {
    if matches!(cause, cdp::CdpError::TimedOut { .. }) {
        return Error::new(ErrorKind::TimedOut, format!("the page of the window on port {port} does not answer"))
            .because(format!("{cause}: it is busy with a script that runs and runs, or it is frozen"))
            .hint("ask again when it is done; `tether restart` (MCP: `window_restart`) launches the window anew");
    }
    let error = Error::new(ErrorKind::Other, format!("cannot reach the debug window on port {port}")).because(cause);
    error.hint("`tether status` tells whether it lives, `tether restart` launches it anew")
}
