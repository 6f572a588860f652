//! JSON-RPC 2.0 over a pair of byte streams, in both directions.
//!
//! Matches responses to calls. Two methods are handled here, LSP's `$/cancelRequest` (`{id}`, and with `reason: "interrupt"`
//! of a user's Ctrl-C) and `$/progress` (`{id, value}`), both about a request. Does not depend on the meaning of any other method.
//! Source: <https://www.jsonrpc.org/specification>
//!
//! ```text
//!   RpcPeer::call ──register──▶ pending ──▶ writer ──▶ bytes
//!        ▲                         │
//!        └────── response ◀────────┴────── reader ◀── bytes ──▶ RpcIncoming (requests, notifications, cancels)
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorData};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{FramedRead, FramedWrite};

use super::frames::{ContentLength, FrameError};
use super::pending::{CLOSED_BY_US, Closed, PendingRequest, PendingRequests, find_response_id};

/// JSON-RPC 2.0: what was received is not JSON.
pub const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INTERNAL_ERROR: i64 = -32603;
const VERSION: &str = "2.0";
/// The reason of a cancel that a user's Ctrl-C has caused.
const INTERRUPT: &str = "interrupt";
/// Messages that are queued for one peer; past that, a sender waits.
const MAX_OUTGOING: usize = 256;
/// Requests and notifications of one peer that are not handled yet. Past that, nothing more is read until a request is
/// taken out of the queue, and a notification is dropped.
const MAX_INCOMING: usize = 1024;

/// A request's id, as its sender chose it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RpcId {
    /// Our own calls have only numbers.
    Number(i64),
    /// Allowed by the specification: a peer may send it.
    Text(String),
}

/// An error object of JSON-RPC 2.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// One of the specification, or of [`tether_base::error::ErrorKind::rpc_code`].
    pub code: i64,
    /// For people; programs read `code` and `data`.
    pub message: String,
    /// An [`ErrorData`] if the sender is one of our own programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A message of the other side that is not a response.
#[derive(Debug)]
pub enum RpcIncoming {
    /// Its sender waits for [`RpcPeer::respond`].
    Request {
        /// The response repeats it.
        id: RpcId,
        /// Not checked: it may be unknown.
        method: String,
        /// `null` if the sender gave none.
        params: Value,
    },
    /// Has no response; dropped when too many wait.
    Notification {
        /// Neither `$/cancelRequest` nor `$/progress`.
        method: String,
        /// `null` if the sender gave none.
        params: Value,
    },
    /// The sender of request `id` no longer waits for its response.
    Cancel {
        /// The request may have been responded to already.
        id: RpcId,
        /// The user gives up what the request has started, too.
        interrupt: bool,
    },
}

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The other side has sent an error response.
    #[error("{}", .0.message)]
    Failed(RpcError),
    /// The connection has ended; the text is the reason.
    #[error("the connection ended: {0}")]
    Closed(String),
}

/// What is sent: written as it is, without a copy of what it carries.
#[derive(Serialize)]
struct OutgoingCall<'a, P> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct OutgoingResponse<'a, R> {
    jsonrpc: &'a str,
    id: &'a RpcId,
    #[serde(flatten)]
    outcome: Outcome<R>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome<R> {
    Result(R),
    Error(RpcError),
}

#[derive(Deserialize)]
struct RpcMessage {
    id: Option<RpcId>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<RpcError>,
}

/// Kept with a pending call: where its progress is sent.
pub type ProgressSender = Option<mpsc::UnboundedSender<Value>>;
type RpcResult = Result<Value, CallError>;

/// A handle to the other side. Clones share the connection; it ends when its driver is dropped.
#[derive(Clone)]
pub struct RpcPeer {
    outbox: mpsc::Sender<Outgoing>,
    /// Whether the user gives up what our calls have started.
    interrupted: Arc<AtomicBool>,
    pending: Arc<PendingRequests<RpcResult, ProgressSender>>,
}

/// A message that is to be sent.
struct Outgoing {
    body: Bytes,
    /// Told when it has been written.
    written: Option<oneshot::Sender<()>>,
}

impl From<Bytes> for Outgoing {
    fn from(body: Bytes) -> Outgoing {
        Outgoing { body, written: None }
    }
}

/// A call that waits for its response. When it is dropped before (timeout, cancelled caller), the peer is sent a
/// cancel.
struct CancelOnDrop<'a> {
    request: PendingRequest<RpcResult, ProgressSender>,
    peer: &'a RpcPeer,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.request.forget() {
            let id = self.request.id();
            let params = match self.peer.interrupted.load(Ordering::Relaxed) {
                true => json!({"id": id, "reason": INTERRUPT}),
                false => json!({"id": id}),
            };
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params});
            self.peer.send_detached(Bytes::from(cancel.to_string()).into());
        }
    }
}

impl RpcPeer {
    /// Sends a request and waits for the response. Dropping the future cancels the request.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.call_with_progress(method, params, None).await
    }

    /// As [`RpcPeer::call`]; the values of the other side's `$/progress` are forwarded to `progress`.
    pub async fn call_with_progress(
        &self,
        method: &str,
        params: &Value,
        progress: ProgressSender,
    ) -> Result<Value, CallError> {
        // Registered before it is sent: the response may arrive before `send` returns.
        let (request, id) = self.pending.register(progress, |id| id)?;
        let mut call = CancelOnDrop { request, peer: self };
        self.send(to_body(&OutgoingCall { jsonrpc: VERSION, id: Some(id), method, params })).await?;
        call.request.response().await?
    }

    /// From now on, a call that is dropped also ends what it has started, such as a build, unless others wait for it: the user
    /// has interrupted it. Otherwise only its result is not waited for.
    pub fn interrupt_calls(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether the connection has ended: a call would fail without being sent.
    pub fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.pending.wait_closed().await
    }

    /// Sends a notification, which has no response.
    pub async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), CallError> {
        self.send(to_body(&OutgoingCall { jsonrpc: VERSION, id: None, method, params })).await
    }

    /// Reports the progress of the other side's request `id`; dropped when the outgoing queue is full.
    pub fn send_progress(&self, id: &RpcId, value: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": value}});
        let _ = self.outbox.try_send(Bytes::from(message.to_string()).into());
    }

    /// Sends the response to the other side's request `id`.
    pub async fn respond(&self, id: &RpcId, outcome: Result<impl Serialize, RpcError>) -> Result<(), CallError> {
        self.send(response_body(id, outcome)).await
    }

    /// As [`RpcPeer::respond`], and waits until the response has been written: for one after which the process exits.
    pub async fn respond_and_flush(
        &self,
        id: &RpcId,
        outcome: Result<impl Serialize, RpcError>,
    ) -> Result<(), CallError> {
        let body = response_body(id, outcome).map_err(|error| unwritable(&error))?;
        let (sender, written) = oneshot::channel();
        let sent = self.outbox.send(Outgoing { body, written: Some(sender) }).await;
        sent.map_err(|_| self.closed_error())?;
        written.await.map_err(|_| self.closed_error())
    }

    /// What cannot be written as JSON (no message of ours) is not sent.
    async fn send(&self, body: Result<Bytes, serde_json::Error>) -> Result<(), CallError> {
        let body = body.map_err(|error| unwritable(&error))?;
        self.outbox.send(body.into()).await.map_err(|_| self.closed_error())
    }

    /// Sends a message without waiting: a task of its own waits for room in the outgoing queue.
    fn send_detached(&self, message: Outgoing) {
        let Err(TrySendError::Full(message)) = self.outbox.try_send(message) else { return };
        // Outside of a runtime nothing drives the connection any more.
        if let Ok(runtime) = Handle::try_current() {
            let outbox = self.outbox.clone();
            runtime.spawn(async move { outbox.send(message).await });
        }
    }

    /// Waits until the other side has read enough for another message to be queued. Returns at once when the
    /// connection has ended.
    pub async fn wait_for_room(&self) {
        let _ = self.outbox.reserve().await;
    }

    fn closed_error(&self) -> CallError {
        CallError::Closed(self.pending.close_reason())
    }
}

impl From<Closed> for CallError {
    fn from(Closed(reason): Closed) -> CallError {
        CallError::Closed(reason)
    }
}

fn unwritable(error: &serde_json::Error) -> CallError {
    CallError::Failed(RpcError::plain(INTERNAL_ERROR, error.to_string()))
}

fn to_body(message: &impl Serialize) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(message).map(Bytes::from)
}

/// A result that cannot be written as JSON is an error: who asked is told.
fn response_body(id: &RpcId, outcome: Result<impl Serialize, RpcError>) -> Result<Bytes, serde_json::Error> {
    let error = match outcome {
        Ok(result) => {
            let outcome = Outcome::Result(result);
            match to_body(&OutgoingResponse { jsonrpc: VERSION, id, outcome }) {
                Ok(body) => return Ok(body),
                Err(error) => RpcError::plain(INTERNAL_ERROR, format!("the result cannot be written: {error}")),
            }
        }
        Err(error) => error,
    };
    to_body(&OutgoingResponse::<Value> { jsonrpc: VERSION, id, outcome: Outcome::Error(error) })
}

/// Opens a connection over two byte streams. The third part drives it and must be spawned or awaited; it resolves with
/// the reason why the connection has ended. Then every pending call fails with [`CallError::Closed`], and the receiver
/// ends.
pub fn open_connection<R, W>(
    read: R,
    write: W,
) -> (RpcPeer, mpsc::Receiver<RpcIncoming>, impl Future<Output = String> + Send + 'static)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (outbox, outgoing) = mpsc::channel(MAX_OUTGOING);
    let (inbox, incoming) = mpsc::channel(MAX_INCOMING);
    let peer = RpcPeer { outbox, interrupted: Arc::default(), pending: Arc::default() };
    let driven = peer.clone();
    let driver = async move {
        let reason = tokio::select! {
            end = read_loop(read, &driven, &inbox) => match end {
                Ok(()) => "the peer closed it".to_owned(),
                Err(error) => error.to_string(),
            },
            end = write_loop(write, outgoing) => match end {
                Ok(()) => CLOSED_BY_US.to_owned(),
                Err(error) => error.to_string(),
            },
        };
        driven.pending.close(&reason);
        reason
    };
    (peer, incoming, driver)
}

async fn read_loop(
    read: impl AsyncRead + Unpin,
    peer: &RpcPeer,
    inbox: &mpsc::Sender<RpcIncoming>,
) -> Result<(), FrameError> {
    let mut frames = FramedRead::new(read, ContentLength::default());
    while let Some(body) = frames.next().await {
        if let Some(reply) = dispatch_message(&body?, peer, inbox).await {
            // An error is the end of the connection, which ends this loop too.
            let _ = peer.send(to_body(&reply)).await;
        }
    }
    Ok(())
}

/// Delivers one message. Returns the error response to a message that is malformed.
///
/// Waits for the consumer only to deliver a request or its cancel, which must not be lost. Responses and notifications
/// never wait: a consumer that makes a call waits for this loop.
async fn dispatch_message(body: &[u8], peer: &RpcPeer, inbox: &mpsc::Sender<RpcIncoming>) -> Option<Value> {
    let message: RpcMessage = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => {
            if let Some(id) = find_response_id(body, "id", &["method"]) {
                let failure = RpcError::plain(INVALID_REQUEST, format!("the response cannot be read: {error}"));
                peer.pending.complete(id, Err(CallError::Failed(failure)));
                return None;
            }
            let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
            return Some(json!({"jsonrpc": "2.0", "id": null, "error": RpcError::plain(code, error.to_string())}));
        }
    };
    let incoming = match (message.id, message.method) {
        (Some(id), Some(method)) => RpcIncoming::Request { id, method, params: message.params },
        (Some(RpcId::Number(id)), None) => {
            peer.pending.complete(id, message.error.map_or(Ok(message.result), |error| Err(CallError::Failed(error))));
            return None;
        }
        (None, Some(method)) if method == "$/progress" => {
            forward_progress(&message.params, peer);
            return None;
        }
        (None, Some(method)) if method == "$/cancelRequest" => RpcIncoming::Cancel {
            id: serde_json::from_value(message.params.get("id")?.clone()).ok()?,
            interrupt: message.params.get("reason").and_then(Value::as_str) == Some(INTERRUPT),
        },
        (None, Some(method)) => {
            let _ = inbox.try_send(RpcIncoming::Notification { method, params: message.params });
            return None;
        }
        // A response without a usable id: an error about a message that the other side could not parse.
        (_, None) => return None,
    };
    // An error means that the consumer has ended, and the connection with it.
    let _ = inbox.send(incoming).await;
    None
}

fn forward_progress(params: &Value, peer: &RpcPeer) {
    let (Some(id), Some(value)) = (params.get("id").and_then(Value::as_i64), params.get("value")) else { return };
    peer.pending.with_context(id, |progress| progress.as_ref().map(|progress| progress.send(value.clone())));
}

async fn write_loop(write: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<Outgoing>) -> Result<(), FrameError> {
    let mut frames = FramedWrite::new(write, ContentLength::default());
    while let Some(Outgoing { body, written }) = outgoing.recv().await {
        let mut waiting = Vec::from_iter(written);
        frames.feed(body).await?;
        // One flush for all that waits.
        while let Ok(Outgoing { body, written }) = outgoing.try_recv() {
            waiting.extend(written);
            frames.feed(body).await?;
        }
        frames.flush().await?;
        for written in waiting {
            // Who waited may have been cancelled.
            let _ = written.send(());
        }
    }
    Ok(())
}

impl RpcError {
    /// The error that the other side has sent; one without our data says that `doing` has failed.
    pub fn into_error(self, doing: impl Into<String>) -> Error {
        match self.data.and_then(|data| serde_json::from_value::<ErrorData>(data).ok()) {
            Some(data) => data.into(),
            None => Error::other(doing).because(self.message),
        }
    }

    /// An error without data.
    pub fn plain(code: i64, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }
}

impl From<&Error> for RpcError {
    fn from(error: &Error) -> RpcError {
        let data = serde_json::to_value(ErrorData::from(error)).ok();
        RpcError { code: error.kind.rpc_code(), message: error.to_string(), data }
    }
}

/// The parameters of a call as one object: JSON-RPC also allows a list with that object (StreamJsonRpc sends one by
/// default), or an empty one.
pub fn read_single_params(params: Value) -> Value {
    match params {
        Value::Array(mut list) if list.len() <= 1 => list.pop().unwrap_or_default(),
        params => params,
    }
}

mod serving;
#[cfg(test)]
mod tests;

pub use serving::{RpcRequest, serve_requests};
