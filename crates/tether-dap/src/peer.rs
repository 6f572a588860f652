//! One DAP connection, as both sides use it: sends requests, responses and events, and matches responses to requests.
//!
//! ```text
//! requests, events ──64 permits──▶ numbered, registered ──▶ writer ──▶ peer ──▶ reader ──seq──▶ pending request
//! responses ──────1024 permits──┘                                                └─ events, requests ──▶ inbox
//! ```
//! Reader and writer are separate loops. Requests are registered before sending and forgotten on drop, so a late,
//! repeated or unknown response is ignored. Whatever ends the connection ends all pending requests with the reason.
//! Does not depend on any command.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tether_wire::frames::{FrameError, MAX_BODY};
use tether_wire::pending::{CLOSED_BY_US, Closed, PendingRequest, PendingRequests};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::debug;

use super::connection::{DapConnection, FrameReader, FrameWriter};
use super::dap_error::DapError;
use super::inbox::{DapInbox, InboxSender, open_inbox};
use super::incoming_request::IncomingRequest;
use super::message::{
    DapMessage, ErrorMessage, ErrorResponse, OutgoingMessage, RawJson, ResponseResult, parse_message, to_raw_json,
};
use super::trace::{MessageDirection, MessageTrace};

/// Requests and events that are queued for the peer; past that, a sender waits (within its deadline).
const MAX_QUEUED_REQUESTS: usize = 64;
/// Responses that are queued for the peer. A peer that sends more requests without reading a response is disconnected.
const MAX_QUEUED_RESPONSES: usize = 1024;
/// How long a peer may take to read what was queued before the close, and to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A handle to the other side; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct DapPeer {
    outgoing: mpsc::UnboundedSender<QueuedMessage>,
    state: Arc<PeerState>,
}

/// An encoded message, and the permit that it holds until it is written.
struct QueuedMessage {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

struct PeerState {
    pending: Arc<PendingRequests<ResponseResult>>,
    request_permits: Arc<Semaphore>,
    response_permits: Arc<Semaphore>,
    /// Notified when this side closes the connection.
    closing: Notify,
}

/// The future that reads and writes the connection: spawn it. It resolves with the reason when the connection has
/// ended, at most a second later. Dropping it cuts the connection and ends all pending requests: prefer closing.
pub type Driver = BoxFuture<'static, String>;

impl DapPeer {
    /// A peer over a connection, the inbox of what it sends, and the future that drives both.
    pub fn over(connection: DapConnection) -> (DapPeer, DapInbox, Driver) {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let state = Arc::new(PeerState {
            pending: Arc::default(),
            request_permits: Arc::new(Semaphore::new(MAX_QUEUED_REQUESTS)),
            response_permits: Arc::new(Semaphore::new(MAX_QUEUED_RESPONSES)),
            closing: Notify::new(),
        });
        let (inbox_sender, inbox) = open_inbox();
        let reader = MessageReader { state: Arc::clone(&state), outgoing: outgoing.downgrade(), inbox: inbox_sender };
        // Created here and not in the future, so that a driver that is never polled closes the connection too.
        let close_on_drop = CloseOnDrop(Arc::clone(&state));
        let driver = Box::pin(drive_connection(connection, queue, reader, close_on_drop));
        (DapPeer { outgoing, state }, inbox, driver)
    }

    /// Sends a request; when this returns, it is queued, in order with all others.
    pub(super) async fn send_raw_request(
        &self,
        command: &str,
        arguments: Option<RawJson>,
    ) -> Result<RequestTicket, DapError> {
        check_size(command, raw_size(arguments.as_ref()))?;
        let permit = self.acquire_send_permit().await?;
        let message = OutgoingMessage::Request { command, arguments: arguments.as_deref() };
        // Registered before sending: the response may arrive before this returns.
        let (request, queued) = self.state.pending.register((), |seq| self.queue_message(permit, &message, seq))?;
        queued.then_some(()).ok_or_else(|| self.state.closed_error())?;
        Ok(RequestTicket { request, command: command.to_owned() })
    }

    /// Sends an event; waits while the peer does not read.
    pub(super) async fn send_raw_event(&self, name: &str, body: Option<&RawJson>) -> Result<(), DapError> {
        check_size(name, raw_size(body))?;
        let permit = self.acquire_send_permit().await?;
        let message = OutgoingMessage::Event { event: name, body: body.map(|body| &**body) };
        let queued = self.state.pending.assign_id(|seq| self.queue_message(permit, &message, seq))?;
        queued.then_some(()).ok_or_else(|| self.state.closed_error())
    }

    /// Starts the close: pending requests end, queued messages are still written.
    pub fn close(&self) {
        self.state.closing.notify_one();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.state.pending.wait_closed().await
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.state.pending.is_closed()
    }

    /// How many requests wait for their response.
    #[cfg(test)]
    pub fn pending_count(&self) -> usize {
        self.state.pending.len()
    }

    async fn acquire_send_permit(&self) -> Result<OwnedSemaphorePermit, DapError> {
        let permit = Arc::clone(&self.state.request_permits).acquire_owned().await;
        permit.map_err(|_| self.state.closed_error())
    }

    /// Called with the table of pending requests locked, so that sequence numbers rise on the wire. `false` after the
    /// end.
    fn queue_message(&self, permit: OwnedSemaphorePermit, message: &OutgoingMessage<'_>, seq: i64) -> bool {
        self.outgoing.send(QueuedMessage { bytes: message.encode(seq), _permit: permit }).is_ok()
    }

    fn send_response(&self, request_seq: i64, command: &str, result: ResponseResult) {
        let Ok(permit) = Arc::clone(&self.state.response_permits).try_acquire_owned() else {
            let reason = format!("it sent {MAX_QUEUED_RESPONSES} requests without reading a response");
            return self.state.close(&reason);
        };
        let result = result.and_then(|body| match check_size(command, raw_size(body.as_ref())) {
            Ok(()) => Ok(body),
            Err(error) => Err(ErrorResponse::new(error.to_string())),
        });
        let (message, body) = match result {
            Ok(body) => (None, body),
            Err(error) => (Some(error.message), to_raw_json(&ErrorBody { error: error.error }).ok().flatten()),
        };
        let (message, body) = (message.as_deref(), body.as_deref());
        let success = message.is_none();
        let response = OutgoingMessage::Response { request_seq, success, command, message, body };
        // Fails only after the end of the connection, when the response has no reader.
        let _ = self.state.pending.assign_id(|seq| self.queue_message(permit, &response, seq));
    }
}

#[derive(Serialize)]
struct ErrorBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorMessage>,
}

fn raw_size(json: Option<&RawJson>) -> usize {
    json.map_or(0, |json| json.get().len())
}

/// The limit of a frame, less what the envelope takes.
fn check_size(command: &str, size: usize) -> Result<(), DapError> {
    let limit = (MAX_BODY - 4096).saturating_sub(command.len().min(MAX_BODY / 2));
    if size <= limit {
        return Ok(());
    }
    let cause = format!("{size} bytes are over the limit of {MAX_BODY} for a message");
    Err(DapError::Unsendable { command: command.to_owned(), cause })
}

/// A sent request. Dropping it ignores the response.
pub(super) struct RequestTicket {
    request: PendingRequest<ResponseResult>,
    command: String,
}

impl RequestTicket {
    /// Waits for the response. Errors: an error response, the deadline, the end of the connection.
    pub(crate) async fn response(mut self, deadline: Duration) -> Result<Option<RawJson>, DapError> {
        let received = tokio::time::timeout(deadline, self.request.response()).await;
        let received = received.map_err(|_| DapError::TimedOut { command: self.command.clone(), after: deadline })?;
        received?.map_err(|response| DapError::Refused { command: self.command, response })
    }
}

impl From<Closed> for DapError {
    fn from(Closed(reason): Closed) -> DapError {
        DapError::Closed(reason)
    }
}

impl PeerState {
    fn closed_error(&self) -> DapError {
        DapError::Closed(self.pending.close_reason())
    }

    /// Ends everything that waits on the connection; the first reason counts.
    fn close(&self, reason: &str) {
        self.pending.close(reason);
        self.request_permits.close();
        self.response_permits.close();
        self.closing.notify_one();
    }
}

/// Closes the connection when dropped, on every path out of the driver.
struct CloseOnDrop(Arc<PeerState>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close(CLOSED_BY_US);
    }
}

async fn drive_connection(
    connection: DapConnection,
    mut queue: mpsc::UnboundedReceiver<QueuedMessage>,
    reader: MessageReader,
    close_on_drop: CloseOnDrop,
) -> String {
    let DapConnection { mut frames, sink } = connection;
    let trace = MessageTrace::from_environment();
    let mut writer = MessageWriter { sink, trace: trace.clone() };
    let state = &close_on_drop.0;
    let reason = tokio::select! {
        biased; // a caller that closes and then drops its handle has closed
        () = state.closing.notified() => CLOSED_BY_US.to_owned(),
        reason = writer.write_queued(&mut queue) => reason,
        reason = reader.read_messages(&mut frames, trace) => reason,
    };
    // Pending requests end first: what follows is only for the peer.
    state.close(&reason);
    drop(reader);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, finish_closing(&mut writer, &mut frames, &mut queue)).await;
    // `send_response` may have closed the connection with a reason of its own.
    state.pending.close_reason()
}

/// Writes what is queued, closes this direction, and reads until the peer has closed too: an adapter that writes into
/// a closed connection may crash (js-debug does) and leave its debuggee running.
async fn finish_closing(
    writer: &mut MessageWriter,
    frames: &mut FrameReader,
    queue: &mut mpsc::UnboundedReceiver<QueuedMessage>,
) {
    queue.close();
    let write = async {
        writer.write_queued(queue).await;
        let _ = SinkExt::<Bytes>::close(&mut writer.sink).await;
    };
    // Both directions at once: a peer that is still writing may not read before its output is read.
    tokio::join!(write, async { while let Some(Ok(_)) = frames.next().await {} });
}

/// Writes queued messages, and the trace of them.
struct MessageWriter {
    sink: FrameWriter,
    trace: MessageTrace,
}

impl MessageWriter {
    /// Runs until the queue is closed and empty, or a write fails; returns why.
    async fn write_queued(&mut self, queue: &mut mpsc::UnboundedReceiver<QueuedMessage>) -> String {
        let MessageWriter { sink, trace } = self;
        loop {
            // Ready before anything is taken from the queue: no message is lost when this future is dropped.
            if let Err(cause) = poll_fn(|cx| SinkExt::<Bytes>::poll_ready_unpin(sink, cx)).await {
                return write_error_reason(&cause);
            }
            let next = match queue.try_recv() {
                Ok(next) => Some(next),
                // One flush for all that were queued.
                Err(_) => match SinkExt::<Bytes>::flush(sink).await {
                    Ok(()) => queue.recv().await,
                    Err(cause) => return write_error_reason(&cause),
                },
            };
            let Some(QueuedMessage { bytes, .. }) = next else { return "its last handle was dropped".to_owned() };
            trace.write_message(MessageDirection::Sent, &bytes);
            if let Err(cause) = sink.start_send_unpin(bytes) {
                return write_error_reason(&cause);
            }
        }
    }
}

/// The reason of a failed write; for a peer that has closed, the same text as the reader's.
fn write_error_reason(cause: &FrameError) -> String {
    match cause {
        FrameError::Io(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => "the peer closed it".to_owned(),
        cause => cause.to_string(),
    }
}

/// Delivers received messages: responses to their requests, events and requests to the inbox.
struct MessageReader {
    state: Arc<PeerState>,
    outgoing: mpsc::WeakUnboundedSender<QueuedMessage>,
    inbox: InboxSender,
}

impl MessageReader {
    /// Runs until the peer closes, or sends what is no frame; returns why.
    async fn read_messages(&self, frames: &mut FrameReader, mut trace: MessageTrace) -> String {
        loop {
            match frames.next().await {
                Some(Ok(body)) => {
                    trace.write_message(MessageDirection::Received, &body);
                    self.dispatch_message(&body);
                }
                Some(Err(cause)) => return cause.to_string(),
                None => return "the peer closed it".to_owned(),
            }
            self.inbox.wait_for_room().await;
        }
    }

    fn dispatch_message(&self, body: &[u8]) {
        match parse_message(body) {
            Ok(DapMessage::Response { request_seq, outcome }) => {
                if !self.state.pending.complete(request_seq, outcome) {
                    debug!("ignored a response to {request_seq}, which is not pending");
                }
            }
            Ok(DapMessage::Event(event)) => self.inbox.push_event(event),
            Ok(DapMessage::Request { seq, command, arguments }) => {
                let (outgoing, state) = (self.outgoing.clone(), Arc::clone(&self.state));
                let send_response = move |command: &str, result| {
                    // Without a sender, all handles have been dropped: the connection is closing.
                    if let Some(outgoing) = outgoing.upgrade() {
                        DapPeer { outgoing, state }.send_response(seq, command, result);
                    }
                };
                self.inbox.push_request(IncomingRequest::new(command, arguments, send_response));
            }
            // The frame was whole, so the next one can be read.
            Err(cause) => debug!("ignored a frame that is not a DAP message: {cause}"),
        }
    }
}
