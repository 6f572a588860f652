//! Who waits for which answer: one WebSocket, any number of callers and listeners.
//!
//! ```text
//! callers ──bounded queue──► writer ──► peer ──► reader ──id──► the caller's slot
//!                                                     └─event──► the observer, at once; then
//!                                                                broadcast (1024; a slow listener is told how many it lost)
//! ```
//! Reader and writer are separate loops, and the reader waits for nobody: a listener may ask questions itself. The
//! observer is called by the reader, so that it has seen every event that came before an answer when that is delivered.
//! Slots are registered before sending and forgotten on drop; a late answer is normal. Whatever ends the
//! connection wakes everyone with the reason. Must not know what is asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::cdp_error::CdpError;
use super::types::CdpCommand;
use crate::wire::pending::{CLOSED_BY_US, Closed, PendingRequests};

/// Requests on their way to the peer; more make callers wait (within their deadline).
const QUEUE_LENGTH: usize = 64;
/// How long a peer may take to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Events that a listener may be behind before it loses the oldest.
const EVENT_BACKLOG: usize = 1024;

/// An event of the peer.
#[derive(Clone, Debug)]
pub struct CdpEvent {
    /// The flat session it belongs to; none for the connection's own target.
    pub session: Option<String>,
    pub method: String,
    /// The parameters, unparsed.
    pub params: Box<RawValue>,
}

impl CdpEvent {
    /// The parameters as `T`, if the event is called `method` and is well-formed.
    pub fn parse_as<T: DeserializeOwned>(&self, method: &str) -> Option<T> {
        (self.method == method).then(|| serde_json::from_str(self.params.get()).ok())?
    }
}

/// Is called with each event, in order, by the reader itself: it loses none, and must neither block nor be slow.
pub type EventHandler = Box<dyn Fn(&CdpEvent) + Send + Sync>;

/// A listener was too slow and has lost this many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were lost")]
pub struct EventsLost(pub u64);

/// The events since its creation.
pub struct EventSubscription(broadcast::Receiver<Arc<CdpEvent>>);

impl EventSubscription {
    /// The next event; `None` when the connection has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Arc<CdpEvent>, EventsLost>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Err(EventsLost(count))),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// A handle to the connection; clones share it.
/// The connection ends when the last one is dropped.
#[derive(Clone)]
pub struct CdpClient {
    outgoing: mpsc::Sender<String>,
    shared: Arc<CdpConnectionState>,
}

struct CdpConnectionState {
    pending: Arc<PendingRequests<CommandOutcome>>,
    /// `None` after the end of the connection, which ends the subscriptions.
    events: Mutex<Option<broadcast::Sender<Arc<CdpEvent>>>>,
    closing: Notify,
    observer: EventHandler,
}

type CommandOutcome = Result<Box<RawValue>, CdpErrorObject>;

#[derive(Debug, Deserialize)]
struct CdpErrorObject {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// The future that moves the bytes: spawn it. It resolves with the reason when the connection is over; dropping it
/// resets the socket and wakes everyone: prefer [`Client::close`], or dropping all clients.
pub struct CdpConnection(std::pin::Pin<Box<dyn Future<Output = String> + Send>>);

impl Future for CdpConnection {
    type Output = String;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<String> {
        self.0.as_mut().poll(cx)
    }
}

impl CdpClient {
    /// A client over an open WebSocket, and the future that drives it.
    pub(super) fn from_websocket<S>(socket: WebSocketStream<S>, observer: EventHandler) -> (CdpClient, CdpConnection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (outgoing, queue) = mpsc::channel(QUEUE_LENGTH);
        let shared = Arc::new(CdpConnectionState {
            pending: Arc::default(),
            events: Mutex::new(Some(broadcast::Sender::new(EVENT_BACKLOG))),
            closing: Notify::new(),
            observer,
        });
        let over = CloseGuard(shared.clone());
        (CdpClient { outgoing, shared }, CdpConnection(Box::pin(run_connection(socket, queue, over))))
    }

    /// Sends a command (to a flat session, if given) and waits for its answer, all within `deadline`.
    pub async fn call<C: CdpCommand>(
        &self,
        session: Option<&str>,
        command: &C,
        deadline: Duration,
    ) -> Result<C::Response, CdpError> {
        let raw = self.call_raw(session, C::METHOD, command, deadline).await?;
        serde_json::from_str(raw.get())
            .map_err(|cause| CdpError::Unexpected { what: C::METHOD.to_owned(), cause: cause.to_string() })
    }

    /// As [`Client::call`], for commands without a type; answers the unparsed result.
    pub async fn call_raw(
        &self,
        session: Option<&str>,
        method: &str,
        params: &impl Serialize,
        deadline: Duration,
    ) -> Result<Box<RawValue>, CdpError> {
        let asking = self.send_and_wait(session, method, params);
        let answered = tokio::time::timeout(deadline, asking).await;
        answered.map_err(|_| CdpError::TimedOut { what: method.to_owned(), after: deadline })?
    }

    async fn send_and_wait(
        &self,
        session: Option<&str>,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, CdpError> {
        // Registered before sending: the response may be faster than we are.
        let (mut request, text) = self.shared.pending.register((), |id| encode_command(id, session, method, params))?;
        self.outgoing.send(text?).await.map_err(|_| self.closed_error())?;
        let refused = |refusal: CdpErrorObject| CdpError::ErrorResponse {
            method: method.to_owned(),
            code: refusal.code,
            message: refusal.message,
        };
        request.response().await?.map_err(refused)
    }

    /// Sends a command whose answer nobody waits for, in order with all others; waits at most 2 s for a full queue.
    pub async fn send<C: CdpCommand>(&self, session: Option<&str>, command: &C) -> Result<(), CdpError> {
        const DEADLINE: Duration = Duration::from_secs(2);
        let text = self.shared.pending.assign_id(|id| encode_command(id, session, C::METHOD, command))??;
        let sent = tokio::time::timeout(DEADLINE, self.outgoing.send(text)).await;
        let sent = sent.map_err(|_| CdpError::TimedOut { what: C::METHOD.to_owned(), after: DEADLINE })?;
        sent.map_err(|_| self.closed_error())
    }

    /// As [`Client::post`], for whoever is being dropped and can neither wait nor be told. In order with all others,
    /// unless the queue is full: then as soon as it is not.
    pub fn send_nowait<C: CdpCommand>(&self, session: Option<&str>, command: &C) {
        let encode = |id| encode_command(id, session, C::METHOD, command);
        let Ok(Ok(text)) = self.shared.pending.assign_id(encode) else { return };
        if let Err(TrySendError::Full(text)) = self.outgoing.try_send(text)
            && let Ok(runtime) = Handle::try_current()
        {
            let outgoing = self.outgoing.clone();
            // Ends with the connection, if not before.
            runtime.spawn(async move { outgoing.send(text).await });
        }
    }

    /// All events from now on.
    pub fn subscribe(&self) -> EventSubscription {
        let sender = self.shared.lock_events().as_ref().map(broadcast::Sender::subscribe);
        // After the end: a receiver whose sender is gone, so that it says so.
        EventSubscription(sender.unwrap_or_else(|| broadcast::Sender::new(1).subscribe()))
    }

    /// Ends the connection; its [`Connection`] resolves when the peer has heard of it, at most a second later.
    pub fn close(&self) {
        self.shared.closing.notify_one();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.shared.pending.wait_closed().await
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.pending.is_closed()
    }

    fn closed_error(&self) -> CdpError {
        CdpError::Closed(self.shared.pending.close_reason())
    }
}

impl CdpConnectionState {
    fn lock_events(&self) -> MutexGuard<'_, Option<broadcast::Sender<Arc<CdpEvent>>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a message to whom it belongs. What is no message of the protocol is nobody's.
    fn dispatch_message(&self, text: &str) {
        let Ok(message) = serde_json::from_str::<IncomingMessage>(text) else { return };
        match message {
            IncomingMessage { id: Some(id), error, result, .. } => {
                let answer = match (error, result) {
                    (Some(refusal), _) => Err(refusal),
                    (None, Some(result)) => Ok(result.to_owned()),
                    (None, None) => Ok(RawValue::NULL.to_owned()),
                };
                self.pending.complete(id, answer);
            }
            IncomingMessage { method: Some(method), params, session_id, .. } => {
                let params = params.unwrap_or(RawValue::NULL).to_owned();
                let event = CdpEvent { session: session_id, method, params };
                (self.observer)(&event);
                // Fails when nobody listens.
                let _ = self.lock_events().as_ref().map(|events| events.send(Arc::new(event)));
            }
            IncomingMessage { .. } => {}
        }
    }
}

/// Ends the connection for everyone when dropped, however that comes about.
struct CloseGuard(Arc<CdpConnectionState>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.pending.close(CLOSED_BY_US);
        *self.0.lock_events() = None;
    }
}

async fn run_connection<S>(socket: WebSocketStream<S>, queue: mpsc::Receiver<String>, over: CloseGuard) -> String
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sink, mut stream) = socket.split();
    let reason = tokio::select! {
        biased; // who closes and drops has closed
        () = over.0.closing.notified() => CLOSED_BY_US.to_owned(),
        reason = write_messages(&mut sink, queue) => reason,
        reason = read_messages(&mut stream, &over.0) => reason,
    };
    // Everyone is woken first: what follows is for the peer's sake only.
    over.0.pending.close(&reason);
    drop(over);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, close_websocket(&mut sink, &mut stream)).await;
    reason
}

/// Closes as the protocol wants it, and reads until the peer has closed too. A socket that is dropped with unread data
/// is reset instead, and Node has crashed over that.
async fn close_websocket(
    sink: &mut (impl Sink<Message> + Unpin),
    stream: &mut (impl Stream<Item = Result<Message, SocketError>> + Unpin),
) {
    // Both directions at once: a peer that is still writing may not read before we do.
    let (_, ()) = tokio::join!(sink.close(), async { while let Some(Ok(_)) = stream.next().await {} });
}

async fn read_messages(
    mut stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    shared: &CdpConnectionState,
) -> String {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => shared.dispatch_message(&text),
            Some(Ok(Message::Close(Some(frame)))) => return format!("the peer closed it: {frame}"),
            Some(Ok(_)) => {} // pings are answered by the library
            Some(Err(cause)) => return cause.to_string(),
            None => return "the peer closed it".to_owned(),
        }
    }
}

async fn write_messages(
    mut sink: impl Sink<Message, Error = SocketError> + Unpin,
    mut queue: mpsc::Receiver<String>,
) -> String {
    while let Some(text) = queue.recv().await {
        if let Err(cause) = sink.send(Message::text(text)).await {
            return cause.to_string();
        }
    }
    "nobody uses it any more".to_owned()
}

impl From<Closed> for CdpError {
    fn from(Closed(reason): Closed) -> CdpError {
        CdpError::Closed(reason)
    }
}

fn encode_command(id: i64, session: Option<&str>, method: &str, params: &impl Serialize) -> Result<String, CdpError> {
    let request = OutgoingCommand { id, method, params, session_id: session };
    serde_json::to_string(&request)
        .map_err(|cause| CdpError::Unexpected { what: method.to_owned(), cause: cause.to_string() })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutgoingCommand<'a, P> {
    id: i64,
    method: &'a str,
    params: &'a P,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IncomingMessage<'a> {
    id: Option<i64>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    session_id: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<CdpErrorObject>,
}

#[cfg(test)]
mod tests;
