//! One CDP connection: commands with their responses, and events, for any number of callers and subscribers.
//!
//! ```text
//! callers ──bounded queue──► writer ──► peer ──► reader ──response──► the pending request
//!                                                     └─event──► the handler, at once; then
//!                                                                broadcast (1024; a slow subscriber gets the number lost)
//! ```
//! Reader and writer are separate loops, and the reader never waits: a subscriber may send commands itself. The handler
//! runs in the reader, so when a response is delivered it has handled every event that preceded it.
//! Does not depend on particular commands or events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tether_base::sync::lock;
use tether_wire::pending::{CLOSED_BY_US, Closed, PendingRequests, find_response_id};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::cdp_error::CdpError;
use super::types::CdpCommand;

/// Commands queued for the writer; further callers wait, within their deadline.
const QUEUE_LENGTH: usize = 64;
/// How long the peer may take to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long [`CdpClient::send`] waits for a full queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Events buffered for each subscriber; beyond that the oldest are lost.
const EVENT_BACKLOG: usize = 1024;

/// An event from the peer.
#[derive(Clone, Debug)]
pub struct CdpEvent {
    /// The flat session that it belongs to; none for the connection's own target.
    pub session: Option<String>,
    /// `Domain.event`
    pub method: String,
    /// The parameters, unparsed.
    pub params: Box<RawValue>,
}

impl CdpEvent {
    /// The parameters as `T`, if the event is `method` and is well-formed.
    pub fn parse_as<T: DeserializeOwned>(&self, method: &str) -> Option<T> {
        (self.method == method).then(|| serde_json::from_str(self.params.get()).ok())?
    }
}

/// Called with each event, in order, by the reader: it misses none, and must neither block nor be slow.
pub type EventHandler = Box<dyn Fn(&CdpEvent) + Send + Sync>;

/// The subscriber was too slow and has lost this many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were lost")]
pub struct EventsLost(pub u64);

/// The events since it was created.
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
    connection: Arc<CdpConnectionState>,
}

struct CdpConnectionState {
    pending: Arc<PendingRequests<CdpCommandResult>>,
    /// None when the connection has ended.
    events: Mutex<Option<broadcast::Sender<Arc<CdpEvent>>>>,
    close_requested: Notify,
    handler: EventHandler,
}

/// The result of a command, or the peer's error.
pub(super) type CdpCommandResult = Result<Box<RawValue>, CdpErrorObject>;

/// JSON-RPC's error object.
#[derive(Debug, Deserialize)]
pub(super) struct CdpErrorObject {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// The future that runs the connection: spawn it. It resolves with the reason when the connection has ended. Dropping
/// it resets the socket and ends all pending commands: prefer [`CdpClient::close`], or dropping all clients.
pub type CdpConnection = BoxFuture<'static, String>;

impl CdpClient {
    /// A client over an open WebSocket, and the future that runs it.
    pub(super) fn from_websocket<S>(socket: WebSocketStream<S>, handler: EventHandler) -> (CdpClient, CdpConnection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (outgoing, queue) = mpsc::channel(QUEUE_LENGTH);
        let connection = Arc::new(CdpConnectionState {
            pending: Arc::default(),
            events: Mutex::new(Some(broadcast::Sender::new(EVENT_BACKLOG))),
            close_requested: Notify::new(),
            handler,
        });
        let guard = CloseGuard(connection.clone());
        (CdpClient { outgoing, connection }, Box::pin(run_connection(socket, queue, guard)))
    }

    /// Sends a command (to a flat session, if given) and waits for its result, all within `deadline`.
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

    /// As [`CdpClient::call`], for commands without a type; returns the unparsed result.
    pub async fn call_raw(
        &self,
        session: Option<&str>,
        method: &str,
        params: &impl Serialize,
        deadline: Duration,
    ) -> Result<Box<RawValue>, CdpError> {
        let result = tokio::time::timeout(deadline, self.send_and_wait(session, method, params)).await;
        result.map_err(|_| CdpError::TimedOut { what: method.to_owned(), after: deadline })?
    }

    async fn send_and_wait(
        &self,
        session: Option<&str>,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, CdpError> {
        let (mut request, ()) = self.connection.pending.register((), |_| ())?;
        let text = encode_command(request.id(), session, method, params)?;
        self.outgoing.send(text).await.map_err(|_| self.closed_error())?;
        request.response().await?.map_err(|error| response_error(method, error))
    }

    /// Sends a command without waiting for its response, in order with all others; waits at most 2 s for a full queue.
    pub async fn send<C: CdpCommand>(&self, session: Option<&str>, command: &C) -> Result<(), CdpError> {
        let id = self.connection.pending.assign_id(|id| id)?;
        let text = encode_command(id, session, C::METHOD, command)?;
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.outgoing.send(text)).await;
        let sent = sent.map_err(|_| CdpError::TimedOut { what: C::METHOD.to_owned(), after: SEND_TIMEOUT })?;
        sent.map_err(|_| self.closed_error())
    }

    /// As [`CdpClient::send`], for `Drop` implementations. In order with all others; when the queue is full, as soon as
    /// it is not.
    pub fn send_nowait<C: CdpCommand>(&self, session: Option<&str>, command: &C) {
        let Ok(id) = self.connection.pending.assign_id(|id| id) else { return };
        let Ok(text) = encode_command(id, session, C::METHOD, command) else { return };
        if let Err(TrySendError::Full(text)) = self.outgoing.try_send(text)
            && let Ok(runtime) = Handle::try_current()
        {
            let outgoing = self.outgoing.clone();
            // Ends at the latest with the connection.
            runtime.spawn(async move { outgoing.send(text).await });
        }
    }

    /// Subscribes to all events from now on.
    pub fn subscribe(&self) -> EventSubscription {
        let receiver = lock(&self.connection.events).as_ref().map(broadcast::Sender::subscribe);
        // After the end: a receiver whose sender is dropped, so that its first `next` returns `None`.
        EventSubscription(receiver.unwrap_or_else(|| broadcast::Sender::new(1).subscribe()))
    }

    /// Starts to close the connection; its [`CdpConnection`] resolves when the peer has closed too, at most a second
    /// later.
    pub fn close(&self) {
        self.connection.close_requested.notify_one();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.connection.pending.wait_closed().await
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.connection.pending.is_closed()
    }

    fn closed_error(&self) -> CdpError {
        CdpError::Closed(self.connection.pending.close_reason())
    }
}

/// What a command has failed with.
pub(super) fn response_error(method: &str, error: CdpErrorObject) -> CdpError {
    CdpError::ErrorResponse { method: method.to_owned(), code: error.code, message: error.message }
}

pub(super) fn encode_command(
    id: i64,
    session: Option<&str>,
    method: &str,
    params: &impl Serialize,
) -> Result<String, CdpError> {
    let text = serde_json::to_string(&OutgoingCommand { id, method, params, session_id: session });
    text.map_err(|cause| CdpError::Unexpected { what: method.to_owned(), cause: cause.to_string() })
}

impl From<Closed> for CdpError {
    fn from(Closed(reason): Closed) -> CdpError {
        CdpError::Closed(reason)
    }
}

impl CdpConnectionState {
    /// Delivers a response or an event. Messages that are neither are ignored.
    fn dispatch_message(&self, text: &str) {
        let Some(message) = parse_message(text) else { return };
        match message.id {
            // A late response finds no request.
            Some(id) => drop(self.pending.complete(id, message.into_result())),
            None => {
                let Some(event) = message.into_event() else { return };
                (self.handler)(&event);
                // Fails without subscribers.
                let _ = lock(&self.events).as_ref().map(|events| events.send(Arc::new(event)));
            }
        }
    }

    /// Ends all pending commands and subscriptions. The first reason counts.
    fn end(&self, reason: &str) {
        self.pending.close(reason);
        *lock(&self.events) = None;
    }
}

/// Ends the connection when dropped, also when its future is.
struct CloseGuard(Arc<CdpConnectionState>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.end(CLOSED_BY_US);
    }
}

async fn run_connection<S>(socket: WebSocketStream<S>, queue: mpsc::Receiver<String>, guard: CloseGuard) -> String
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let CloseGuard(connection) = &guard;
    let (mut sink, mut stream) = socket.split();
    let reason = tokio::select! {
        biased; // a caller that closes and then drops its client has closed it
        () = connection.close_requested.notified() => CLOSED_BY_US.to_owned(),
        reason = write_messages(&mut sink, queue) => reason,
        reason = read_messages(&mut stream, connection) => reason,
    };
    // Before the closing handshake, which only matters to the peer.
    connection.end(&reason);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, close_websocket(&mut sink, &mut stream)).await;
    reason
}

/// The closing handshake; reads until the peer has closed too. A socket that is dropped with unread data is reset
/// instead, which has crashed Node.
async fn close_websocket(
    sink: &mut (impl Sink<Message> + Unpin),
    stream: &mut (impl Stream<Item = Result<Message, SocketError>> + Unpin),
) {
    // Both directions at once: a peer that is still writing may not read before its data is read.
    let (_, ()) = tokio::join!(sink.close(), async { while let Some(Ok(_)) = stream.next().await {} });
}

async fn read_messages(
    mut stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    connection: &CdpConnectionState,
) -> String {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => connection.dispatch_message(&text),
            Some(Ok(Message::Close(Some(frame)))) => return format!("the peer closed it: {frame}"),
            Some(Ok(_)) => {} // the library responds to pings
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
    "it is no longer used".to_owned()
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

/// A response (with `id`) or an event (with `method`).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IncomingMessage<'a> {
    pub id: Option<i64>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    session_id: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<CdpErrorObject>,
}

/// `None`: it is not a message of the protocol. A response that is malformed is the failure of its command, which would wait
/// until its deadline.
pub(super) fn parse_message(text: &str) -> Option<IncomingMessage<'_>> {
    match serde_json::from_str(text) {
        Ok(message) => Some(message),
        Err(cause) => {
            let id = find_response_id(text.as_bytes(), "id", &["method"])?;
            let error = CdpErrorObject { code: 0, message: format!("the response cannot be read: {cause}") };
            let (id, error) = (Some(id), Some(error));
            Some(IncomingMessage { id, method: None, params: None, session_id: None, result: None, error })
        }
    }
}

impl IncomingMessage<'_> {
    /// As the response to a command.
    pub(crate) fn into_result(self) -> CdpCommandResult {
        match (self.error, self.result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => Ok(result.to_owned()),
            (None, None) => Ok(RawValue::NULL.to_owned()),
        }
    }

    /// `None`: it is no event.
    pub(crate) fn into_event(self) -> Option<CdpEvent> {
        let params = self.params.unwrap_or(RawValue::NULL).to_owned();
        Some(CdpEvent { session: self.session_id, method: self.method?, params })
    }
}

#[cfg(test)]
mod tests;
