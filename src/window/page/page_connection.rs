//! Opens and closes the connection to the window, and runs it: the WebSocket, and the follow-ups of events.

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tether_base::error::Result;
use tether_cdp::types::HandleJavascriptDialog;
use tether_cdp::{CdpConnection, CdpEvent, Endpoint};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::event_handler::handle_event;
use super::history::PageHistory;
use super::network::response_body::take_body;
use super::page_client::{BROWSER_TIMEOUT, PageClient};
use super::page_error::connection_error;
use super::page_state::{FollowUp, PageState};
use super::request_rules::answer_request;

/// The recorded failure of a request that was in flight when the connection ended.
const CONNECTION_ENDED: &str = "no longer followed: the connection to the window has ended";

/// An open connection to the window. Dropping it closes the WebSocket and does not affect the window.
pub struct PageConnection {
    client: PageClient,
    /// Dropping it ends the task that runs the connection.
    _close: oneshot::Sender<Infallible>,
}

impl fmt::Debug for PageConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageConnection").field("endpoint", self.client.endpoint()).finish_non_exhaustive()
    }
}

impl Deref for PageConnection {
    type Target = PageClient;

    fn deref(&self) -> &PageClient {
        &self.client
    }
}

impl PageConnection {
    /// Connects to the window on `cdp_port`, whose identity the caller has verified.
    pub async fn open(cdp_port: u16) -> Result<PageConnection> {
        PageConnection::open_with_history(cdp_port, Arc::new(PageHistory::new(None))).await
    }

    /// As [`PageConnection::open`]; records into `history`.
    pub async fn open_with_history(cdp_port: u16, history: Arc<PageHistory>) -> Result<PageConnection> {
        let endpoint =
            tether_cdp::discover_endpoint(cdp_port).await.map_err(|cause| connection_error(cdp_port, cause))?;
        PageConnection::open_endpoint(endpoint, history).await
    }

    /// As [`PageConnection::open_with_history`], for an endpoint that is already discovered.
    pub async fn open_endpoint(endpoint: Endpoint, history: Arc<PageHistory>) -> Result<PageConnection> {
        let port = endpoint.port;
        let (follow_ups, queued) = mpsc::unbounded_channel();
        let state = Arc::new(PageState::new(history, follow_ups));
        let handler_state = Arc::clone(&state);
        let handler = Box::new(move |event: &CdpEvent| handle_event(event, &handler_state));
        let opened = tether_cdp::open_connection_with_handler(port, &endpoint.path, BROWSER_TIMEOUT, handler).await;
        let (cdp, connection) = opened.map_err(|cause| connection_error(port, cause))?;
        let client = PageClient::new(cdp, endpoint, state);
        let (close, closing) = oneshot::channel();
        tokio::spawn(run_page_connection(client.clone(), connection, queued, closing));
        client.enable_domains().await.map_err(|cause| connection_error(port, cause))?;
        Ok(PageConnection { client, _close: close })
    }
}

/// Runs the connection until it ends, its [`PageConnection`] is dropped, or Node has finished and waits for its clients
/// to leave. Then closes it, which takes at most a second, and ends the requests in flight.
async fn run_page_connection(
    client: PageClient,
    connection: CdpConnection,
    follow_ups: mpsc::UnboundedReceiver<FollowUp>,
    closing: oneshot::Receiver<Infallible>,
) {
    tokio::pin!(connection);
    let has_ended = tokio::select! {
        _ = &mut connection => true,
        () = run_follow_ups(client.clone(), follow_ups) => false,
        _ = closing => false,
    };
    if !has_ended {
        client.cdp.close();
        connection.await;
    }
    // Only those of this connection: others may be followed over another one.
    let sessions: Vec<String> = client.state.targets().sessions.keys().cloned().collect();
    for session in sessions {
        client.state.history.end_requests(&session, CONNECTION_ENDED);
    }
}

/// Runs follow-ups concurrently, until [`FollowUp::Disconnect`].
async fn run_follow_ups(client: PageClient, mut follow_ups: mpsc::UnboundedReceiver<FollowUp>) {
    let mut running = JoinSet::new();
    while let Some(follow_up) = follow_ups.recv().await {
        while running.try_join_next().is_some() {}
        if matches!(follow_up, FollowUp::Disconnect) {
            return;
        }
        let client = client.clone();
        running.spawn(async move { run_follow_up(&client, follow_up).await });
    }
}

/// Failures are ignored: they mean that the target has changed again in the meantime.
async fn run_follow_up(client: &PageClient, follow_up: FollowUp) {
    match follow_up {
        FollowUp::AnswerDialog { session, accept, text: prompt_text } => {
            let answer = HandleJavascriptDialog { accept, prompt_text };
            let _ = client.cdp.call(session.as_deref(), &answer, BROWSER_TIMEOUT).await;
        }
        FollowUp::AttachPage(page) => {
            let _ = client.attach_page(&page).await;
        }
        FollowUp::EnableSession { session, source } => {
            let _ = client.enable_session(&session, source).await;
        }
        FollowUp::TakeBody(wanted) => take_body(client, &wanted).await,
        FollowUp::AnswerRequest { session, paused } => answer_request(client, &session, *paused).await,
        FollowUp::Disconnect => {}
    }
}
