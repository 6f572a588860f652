//! JSON-RPC 2.0 over a pair of byte streams, both ways.
//!
//! Owns who waits for which answer, and when a waiting ends. Must not know what any method means; the two methods
//! that it handles itself are LSP's `$/cancelRequest` (`{id}`) and `$/progress` (`{id, value}`), both about a request.
//! Source: <https://www.jsonrpc.org/specification>
//!
//! ```text
//!   Peer::call ──register──▶ pending ──▶ writer ──▶ bytes
//!        ▲                      │
//!        └──── answer ◀─────────┴────── reader ◀── bytes ──▶ Incoming (requests, notifications, cancels)
//! ```

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, FramedWrite};

use super::frames::{ContentLength, FrameError};
use super::pending::{Closed, PendingRequest, PendingRequests};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const BUSY: i64 = -32000;
/// Messages to one peer that wait for its socket; past that, whoever sends waits.
const OUTBOX: usize = 256;
/// Requests and notifications of one peer that wait to be looked at; past that, it is told "busy".
const INBOX: usize = 1024;

/// A request's id, as its sender chose it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RpcId {
    Number(i64),
    Text(String),
}

/// An error object of JSON-RPC 2.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// What the other side asks or tells.
#[derive(Debug)]
pub enum RpcIncoming {
    Request {
        id: RpcId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The sender of request `id` no longer waits for its answer.
    Cancel {
        id: RpcId,
    },
}

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    #[error("{}", .0.message)]
    Refused(RpcError),
    #[error("the connection ended: {0}")]
    Closed(String),
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

/// What is kept with a call: where its progress goes.
type ProgressSender = Option<mpsc::UnboundedSender<Value>>;
type CallResult = Result<Value, CallError>;

/// A handle to the other side. Clones share the connection; it ends when its driver is dropped.
#[derive(Clone)]
pub struct RpcPeer {
    outbox: mpsc::Sender<Bytes>,
    pending: Arc<PendingRequests<CallResult, ProgressSender>>,
}

/// A call that waits for its response. When it is dropped before (timeout, cancelled caller), the peer is sent a cancel.
struct CancelOnDrop<'a> {
    request: PendingRequest<CallResult, ProgressSender>,
    peer: &'a RpcPeer,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.request.forget() {
            let params = json!({"id": self.request.id()});
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params});
            // A full outbox means a peer that reads nothing: then it does not matter that it goes on working.
            let _ = self.peer.outbox.try_send(Bytes::from(cancel.to_string()));
        }
    }
}

impl RpcPeer {
    /// Asks, and waits for the answer. Dropping the future cancels the request.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.send_call(method, params, None).await
    }

    /// As [`Peer::call`]; what the other side tells meanwhile with `$/progress` is passed on.
    pub async fn call_with_progress(
        &self,
        method: &str,
        params: &Value,
        progress: mpsc::UnboundedSender<Value>,
    ) -> Result<Value, CallError> {
        self.send_call(method, params, Some(progress)).await
    }

    async fn send_call(
        &self,
        method: &str,
        params: &Value,
        progress: Option<mpsc::UnboundedSender<Value>>,
    ) -> Result<Value, CallError> {
        // Registered before it is sent: the response may arrive before `send` returns.
        let build = |id| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let (request, message) = self.pending.register(progress, build)?;
        let mut call = CancelOnDrop { request, peer: self };
        self.send(&message).await?;
        call.request.response().await?
    }

    /// Whether the connection has ended: a call would fail without being sent.
    pub fn is_closed(&self) -> bool {
        self.pending.is_closed()
    }

    /// Tells, without an answer.
    pub async fn notify(&self, method: &str, params: &Value) -> Result<(), CallError> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Tells how request `id` of the other side is getting on; dropped when the other side does not keep up.
    pub fn send_progress(&self, id: &RpcId, value: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"id": id, "value": value}});
        let _ = self.outbox.try_send(Bytes::from(message.to_string()));
    }

    /// Answers request `id` of the other side.
    pub async fn respond(&self, id: &RpcId, outcome: Result<Value, RpcError>) -> Result<(), CallError> {
        self.send(&response_message(id, outcome)).await
    }

    async fn send(&self, message: &Value) -> Result<(), CallError> {
        self.outbox.send(Bytes::from(message.to_string())).await.map_err(|_| self.closed_error())
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

fn response_message(id: &RpcId, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

/// Sets up a connection. The third part drives it and must be spawned or awaited: it answers why the connection ended.
/// When it ends, every waiting call is answered [`CallError::Closed`] and the receiver runs dry.
pub fn open_connection<R, W>(
    read: R,
    write: W,
) -> (RpcPeer, mpsc::Receiver<RpcIncoming>, impl Future<Output = String> + Send + 'static)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (outbox, outgoing) = mpsc::channel(OUTBOX);
    let (inbox, incoming) = mpsc::channel(INBOX);
    let peer = RpcPeer { outbox, pending: Arc::default() };
    let driven = peer.clone();
    let driver = async move {
        let reason = tokio::select! {
            end = read_loop(read, &driven, &inbox) => match end {
                Ok(()) => "the other side closed it".to_owned(),
                Err(error) => error.to_string(),
            },
            end = write_loop(write, outgoing) => match end {
                Ok(()) => "it was closed on this side".to_owned(),
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
        // Never waits for a consumer: one that asks a question back would wait for this loop.
        if let Some(reply) = dispatch_message(&body?, peer, inbox) {
            let _ = peer.outbox.try_send(Bytes::from(reply.to_string()));
        }
    }
    Ok(())
}

/// Hands one message to whom it concerns; answers what must be replied to a message that concerns nobody.
fn dispatch_message(body: &[u8], peer: &RpcPeer, inbox: &mpsc::Sender<RpcIncoming>) -> Option<Value> {
    let message: RpcMessage = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => {
            let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
            return Some(json!({"jsonrpc": "2.0", "id": null, "error": RpcError::plain(code, error.to_string())}));
        }
    };
    let incoming = match (message.id, message.method) {
        (Some(id), Some(method)) => RpcIncoming::Request { id, method, params: message.params },
        (Some(RpcId::Number(id)), None) => {
            peer.pending.complete(id, message.error.map_or(Ok(message.result), |error| Err(CallError::Refused(error))));
            return None;
        }
        (None, Some(method)) if method == "$/progress" => {
            pass_progress(&message.params, peer);
            return None;
        }
        (None, Some(method)) if method == "$/cancelRequest" => {
            RpcIncoming::Cancel { id: serde_json::from_value(message.params.get("id")?.clone()).ok()? }
        }
        (None, Some(method)) => RpcIncoming::Notification { method, params: message.params },
        // An answer to nothing that we asked: an error about a message of ours that it could not read.
        (_, None) => return None,
    };
    match inbox.try_send(incoming) {
        Err(mpsc::error::TrySendError::Full(RpcIncoming::Request { id, .. })) => {
            let text = format!("{INBOX} requests of this connection wait already");
            Some(response_message(&id, Err(RpcError::plain(BUSY, text))))
        }
        _ => None,
    }
}

fn pass_progress(params: &Value, peer: &RpcPeer) {
    let (Some(id), Some(value)) = (params.get("id").and_then(Value::as_i64), params.get("value")) else { return };
    peer.pending.with_context(id, |progress| progress.as_ref().map(|progress| progress.send(value.clone())));
}

async fn write_loop(write: impl AsyncWrite + Unpin, mut outgoing: mpsc::Receiver<Bytes>) -> Result<(), FrameError> {
    let mut frames = FramedWrite::new(write, ContentLength::default());
    while let Some(body) = outgoing.recv().await {
        frames.feed(body).await?;
        // One flush for all that waits.
        while let Ok(body) = outgoing.try_recv() {
            frames.feed(body).await?;
        }
        frames.flush().await?;
    }
    Ok(())
}

impl RpcError {
    /// An error without data.
    pub fn plain(code: i64, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

    fn side(stream: DuplexStream) -> (RpcPeer, mpsc::Receiver<RpcIncoming>) {
        let (read, write) = split(stream);
        let (peer, incoming, driver) = open_connection(read, write);
        tokio::spawn(driver);
        (peer, incoming)
    }

    fn frame(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_call_is_answered_with_progress_on_the_way() {
        let (ours, theirs) = duplex(64);
        let ((asker, _inbox), (answerer, mut asked)) = (side(ours), side(theirs));
        let (progress, mut told) = mpsc::unbounded_channel();
        let call = tokio::spawn(async move { asker.call_with_progress("double", &json!(21), progress).await });
        let Some(RpcIncoming::Request { id, method, params }) = asked.recv().await else { panic!("no request") };
        assert_eq!(method, "double");
        answerer.send_progress(&id, &json!("half way"));
        answerer.respond(&id, Ok(json!(params.as_i64().unwrap() * 2))).await.unwrap();
        assert_eq!(call.await.unwrap().unwrap(), json!(42));
        assert_eq!(told.recv().await, Some(json!("half way")));
    }

    #[tokio::test]
    async fn a_dropped_call_is_cancelled_and_its_late_answer_forgotten() {
        let (ours, theirs) = duplex(4096);
        let ((asker, _inbox), (answerer, mut asked)) = (side(ours), side(theirs));
        {
            let call = asker.call("slow", &Value::Null);
            tokio::pin!(call);
            tokio::select! {
                _ = &mut call => panic!("nobody answered"),
                request = asked.recv() => assert!(matches!(request, Some(RpcIncoming::Request { .. }))),
            }
        }
        let Some(RpcIncoming::Cancel { id }) = asked.recv().await else { panic!("no cancel") };
        answerer.respond(&id, Ok(Value::Null)).await.unwrap();
        let next = tokio::spawn(async move { asker.call("next", &Value::Null).await });
        let Some(RpcIncoming::Request { id, .. }) = asked.recv().await else { panic!("no request") };
        answerer.respond(&id, Ok(json!("mine"))).await.unwrap();
        assert_eq!(next.await.unwrap().unwrap(), json!("mine"));
    }

    #[tokio::test]
    async fn every_waiting_call_ends_with_the_connection() {
        let (ours, mut theirs) = duplex(4096);
        let (asker, _inbox) = side(ours);
        let waiting = tokio::spawn({
            let asker = asker.clone();
            async move { asker.call("never", &Value::Null).await }
        });
        let mut seen = [0; 1];
        theirs.read_exact(&mut seen).await.unwrap();
        theirs.write_all(b"Content-Length: abc\r\n\r\n").await.unwrap();
        let error = waiting.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("\"abc\""), "{error}");
        let error = asker.call("later", &Value::Null).await.unwrap_err();
        assert!(matches!(error, CallError::Closed(_)), "{error}");
    }

    #[tokio::test]
    async fn a_message_that_is_none_gets_an_error_and_the_next_is_heard() {
        let (ours, mut theirs) = duplex(4096);
        let (_peer, mut asked) = side(ours);
        for (body, code) in [("{", "-32700"), ("[1]", "-32600"), (r#"{"method":7}"#, "-32600")] {
            theirs.write_all(frame(body).as_bytes()).await.unwrap();
            let mut reply = vec![0; 400];
            let n = theirs.read(&mut reply).await.unwrap();
            assert!(String::from_utf8_lossy(&reply[..n]).contains(code), "{body}");
        }
        theirs.write_all(frame(r#"{"jsonrpc":"2.0","id":"a","method":"x"}"#).as_bytes()).await.unwrap();
        let Some(RpcIncoming::Request { id, .. }) = asked.recv().await else { panic!("no request") };
        assert_eq!(id, RpcId::Text("a".into()));
    }
}
