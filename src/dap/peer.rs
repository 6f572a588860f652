//! Who waits for which answer, and when a waiting ends: the half that both sides of the protocol share.
//!
//! ```text
//! callers ──a place of 64──▶ numbered, registered ──▶ writer ──▶ peer ──▶ reader ──seq──▶ the caller's slot
//! answers ──a place of 1024──┘                                             └─ events, requests ──▶ inbox
//! ```
//! Reader and writer are separate loops. Slots are registered before sending and forgotten on drop, so a late, a
//! double or an unknown answer is nobody's and does no harm. Whatever ends the connection wakes everyone with the
//! reason. Must not know any command.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tracing::debug;

use super::DapError;
use super::connection::{DapConnection, FrameReader, FrameWriter};
use super::inbox::{DapInbox, InboxSender, open_inbox};
use super::message::{
    DapMessage, ErrorMessage, ErrorResponse, OutgoingMessage, RawJson, parse_body, parse_message, to_raw_json,
};
use super::trace::MessageTrace;
use crate::wire::frames::{FrameError, MAX_BODY};

/// Requests and events on their way to the peer; more make whoever sends wait (within its deadline).
const SENDING: usize = 64;
/// Answers on their way to the peer. One that asks on and on, and never reads, is left.
const ANSWERING: usize = 1024;
/// How long a peer may take to read what was sent before the end, and to close its side.
const FAREWELL: Duration = Duration::from_secs(1);
const CLOSED_BY_US: &str = "it was closed by us";

type ResponseResult = Result<Option<RawJson>, ErrorResponse>;

/// A handle to the other side; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub(super) struct DapPeer {
    outgoing: mpsc::UnboundedSender<QueuedMessage>,
    shared: Arc<PeerState>,
}

/// A message on its way, and the place that it takes until it is written.
struct QueuedMessage {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

struct PeerState {
    table: Mutex<PeerTable>,
    sending: Arc<Semaphore>,
    answering: Arc<Semaphore>,
    closing: Notify,
    /// Why the connection has ended.
    ended: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct PeerTable {
    last_seq: i64,
    slots: HashMap<i64, oneshot::Sender<ResponseResult>>,
    over: bool,
}

/// The future that moves the bytes: spawn it. It resolves with the reason when the connection is over, at most a
/// second after that. Dropping it cuts the connection and wakes everyone: prefer closing.
pub struct Driver(std::pin::Pin<Box<dyn Future<Output = String> + Send>>);

impl Future for Driver {
    type Output = String;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<String> {
        self.0.as_mut().poll(cx)
    }
}

pub(super) fn open_peer(connection: DapConnection) -> (DapPeer, DapInbox, Driver) {
    let (outgoing, queue) = mpsc::unbounded_channel();
    let shared = Arc::new(PeerState {
        table: Mutex::default(),
        sending: Arc::new(Semaphore::new(SENDING)),
        answering: Arc::new(Semaphore::new(ANSWERING)),
        closing: Notify::new(),
        ended: watch::Sender::new(None),
    });
    let (inlet, inbox) = open_inbox();
    let weak = outgoing.downgrade();
    let receiver = MessageReader { shared: Arc::clone(&shared), outgoing: weak, inlet };
    // Made here and not in the future, so that one that is never polled wakes everyone too.
    let over = CloseOnDrop(Arc::clone(&shared));
    let driver = Driver(Box::pin(drive_connection(connection, queue, receiver, over)));
    (DapPeer { outgoing, shared }, inbox, driver)
}

impl DapPeer {
    /// Sends a request; it is on its way, in order with all others, when this returns.
    pub async fn send_request(&self, command: &str, arguments: Option<RawJson>) -> Result<RequestTicket, DapError> {
        let size = arguments.as_ref().map_or(0, |arguments| arguments.get().len());
        check_size(command, size)?;
        let place = self.acquire_send_permit().await?;
        let (tell, answer) = oneshot::channel();
        let request = OutgoingMessage::Request { command, arguments: arguments.as_deref() };
        let seq = self.send(place, Some(tell), &request).ok_or_else(|| self.shared.closed_error())?;
        Ok(RequestTicket { seq, command: command.to_owned(), answer, shared: Arc::clone(&self.shared) })
    }

    /// Tells something; waits while the peer does not read.
    pub async fn send_event(&self, name: &str, body: Option<&RawJson>) -> Result<(), DapError> {
        check_size(name, body.map_or(0, |body| body.get().len()))?;
        let place = self.acquire_send_permit().await?;
        let event = OutgoingMessage::Event { event: name, body: body.map(|body| &**body) };
        self.send(place, None, &event).map(drop).ok_or_else(|| self.shared.closed_error())
    }

    pub fn close(&self) {
        self.shared.closing.notify_one();
    }

    pub async fn closed(&self) -> String {
        let mut ended = self.shared.ended.subscribe();
        // The sender lives in what we hold: the wait can only end with a reason.
        let reason = ended.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| CLOSED_BY_US.to_owned())
    }

    pub fn is_closed(&self) -> bool {
        self.shared.ended.borrow().is_some()
    }

    #[cfg(test)]
    pub fn pending_requests(&self) -> usize {
        self.shared.lock().slots.len()
    }

    async fn acquire_send_permit(&self) -> Result<OwnedSemaphorePermit, DapError> {
        let place = Arc::clone(&self.shared.sending).acquire_owned().await;
        place.map_err(|_| self.shared.closed_error())
    }

    /// Numbers, registers and queues in one step, so that numbers rise on the wire. `None` after the end.
    fn send(
        &self,
        place: OwnedSemaphorePermit,
        slot: Option<oneshot::Sender<ResponseResult>>,
        message: &OutgoingMessage<'_>,
    ) -> Option<i64> {
        let mut table = self.shared.lock();
        if table.over {
            return None;
        }
        table.last_seq += 1;
        let seq = table.last_seq;
        // Registered before sending: the answer may be faster than we are.
        slot.map(|slot| table.slots.insert(seq, slot));
        let sent = self.outgoing.send(QueuedMessage { bytes: message.encode(seq), _place: place });
        sent.ok().map(|()| seq)
    }

    fn respond(&self, request_seq: i64, command: &str, outcome: Result<Option<RawJson>, ErrorResponse>) {
        let Ok(place) = Arc::clone(&self.shared.answering).try_acquire_owned() else {
            return self.shared.close_with_reason(&format!("it asked {ANSWERING} times without reading an answer"));
        };
        let outcome =
            outcome.and_then(|body| match check_size(command, body.as_ref().map_or(0, |body| body.get().len())) {
                Ok(()) => Ok(body),
                Err(error) => Err(ErrorResponse::new(error.to_string())),
            });
        let (message, body) = match outcome {
            Ok(body) => (None, body),
            Err(refusal) => {
                (Some(refusal.message.clone()), to_raw_json(&ErrorBody { error: refusal.error }).ok().flatten())
            }
        };
        let (message, body) = (message.as_deref(), body.as_deref());
        let success = message.is_none();
        // After the end nobody waits for it.
        self.send(place, None, &OutgoingMessage::Response { request_seq, success, command, message, body });
    }
}

#[derive(Serialize)]
struct ErrorBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorMessage>,
}

/// Leaves the envelope room for itself.
fn check_size(command: &str, size: usize) -> Result<(), DapError> {
    let limit = MAX_BODY - 4096 - command.len().min(MAX_BODY / 2);
    if size <= limit {
        return Ok(());
    }
    let cause = format!("{size} bytes are over the limit of {MAX_BODY} for a message");
    Err(DapError::Unsendable { command: command.to_owned(), cause })
}

/// A request under way. Dropping it forgets the answer.
pub(super) struct RequestTicket {
    seq: i64,
    command: String,
    answer: oneshot::Receiver<ResponseResult>,
    shared: Arc<PeerState>,
}

impl RequestTicket {
    pub async fn response(mut self, deadline: Duration) -> Result<Option<RawJson>, DapError> {
        let answered = tokio::time::timeout(deadline, &mut self.answer).await;
        let answered = answered.map_err(|_| DapError::TimedOut { command: self.command.clone(), after: deadline })?;
        let outcome = answered.map_err(|_| self.shared.closed_error())?;
        outcome.map_err(|refusal| DapError::Refused { command: self.command.clone(), response: refusal })
    }
}

impl Drop for RequestTicket {
    fn drop(&mut self) {
        self.shared.lock().slots.remove(&self.seq);
    }
}

/// A request of the other side. It is always answered: whoever drops it has refused it.
pub struct IncomingRequest {
    pub command: String,
    pub arguments: Option<RawJson>,
    seq: i64,
    /// None once it is answered.
    open: Option<(mpsc::WeakUnboundedSender<QueuedMessage>, Arc<PeerState>)>,
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asked({} {:?})", self.command, self.arguments)
    }
}

impl IncomingRequest {
    /// The arguments as `T`; the error says why they are not.
    pub fn read_arguments<T: DeserializeOwned>(&self) -> Result<T, String> {
        parse_body(self.arguments.as_deref())
    }

    /// Does what was asked for; a `null` body is left out.
    pub fn respond(self, body: &impl Serialize) {
        let body =
            to_raw_json(body).map_err(|cause| ErrorResponse::new(format!("the answer cannot be written: {cause}")));
        self.respond_once(body);
    }

    /// As [`Asked::answer`], with a body that comes from elsewhere.
    pub fn respond_raw(self, body: Option<RawJson>) {
        self.respond_once(Ok(body));
    }

    /// Says why it is not done.
    pub fn respond_error(self, refusal: ErrorResponse) {
        self.respond_once(Err(refusal));
    }

    pub(super) fn argument_bytes(&self) -> usize {
        self.arguments.as_ref().map_or(0, |arguments| arguments.get().len())
    }

    fn respond_once(mut self, outcome: Result<Option<RawJson>, ErrorResponse>) {
        self.send_response(outcome);
    }

    fn send_response(&mut self, outcome: Result<Option<RawJson>, ErrorResponse>) {
        // Without a sender, all handles are gone: the connection is ending.
        let Some((outgoing, shared)) = self.open.take() else { return };
        if let Some(outgoing) = outgoing.upgrade() {
            DapPeer { outgoing, shared }.respond(self.seq, &self.command, outcome);
        }
    }
}

impl Drop for IncomingRequest {
    fn drop(&mut self) {
        let refusal = ErrorResponse::new(format!("{} is not supported here", self.command));
        self.send_response(Err(refusal));
    }
}

impl PeerState {
    fn lock(&self) -> MutexGuard<'_, PeerTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed_error(&self) -> DapError {
        DapError::Closed(self.ended.borrow().clone().unwrap_or_else(|| CLOSED_BY_US.to_owned()))
    }

    /// Wakes everyone; the first reason counts.
    fn close_with_reason(&self, reason: &str) {
        // The reason first: whoever is woken reads it.
        self.ended.send_if_modified(|ended| {
            let fresh = ended.is_none();
            ended.get_or_insert_with(|| reason.to_owned());
            fresh
        });
        let slots = {
            let mut table = self.lock();
            table.over = true;
            std::mem::take(&mut table.slots)
        };
        drop(slots);
        self.sending.close();
        self.answering.close();
        self.closing.notify_one();
    }
}

/// Ends the connection for everyone when dropped, however that comes about.
struct CloseOnDrop(Arc<PeerState>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close_with_reason(CLOSED_BY_US);
    }
}

async fn drive_connection(
    connection: DapConnection,
    mut queue: mpsc::UnboundedReceiver<QueuedMessage>,
    receiver: MessageReader,
    over: CloseOnDrop,
) -> String {
    let DapConnection { mut frames, sink } = connection;
    let mut voice = MessageWriter { sink, trace: MessageTrace::from_environment() };
    let reason = tokio::select! {
        biased; // who closes and drops has closed
        () = over.0.closing.notified() => CLOSED_BY_US.to_owned(),
        reason = voice.write_all(&mut queue) => reason,
        reason = receiver.read_messages(&mut frames) => reason,
    };
    // Everyone is woken first: what follows is for the peer's sake only.
    over.0.close_with_reason(&reason);
    drop(receiver);
    let _ = tokio::time::timeout(FAREWELL, finish_closing(&mut voice, &mut frames, &mut queue)).await;
    over.0.ended.borrow().clone().unwrap_or(reason)
}

/// Writes what waits, closes our direction, and reads until the peer has closed too: an adapter that writes into a
/// connection that is gone may crash over it (js-debug does), and leave its debuggee behind.
async fn finish_closing(
    voice: &mut MessageWriter,
    frames: &mut FrameReader,
    queue: &mut mpsc::UnboundedReceiver<QueuedMessage>,
) {
    queue.close();
    let write = async {
        voice.write_all(queue).await;
        let _ = SinkExt::<Bytes>::close(&mut voice.sink).await;
    };
    // Both directions at once: a peer that is still writing may not read before we do.
    tokio::join!(write, async { while let Some(Ok(_)) = frames.next().await {} });
}

/// What goes out, and where it is written down.
struct MessageWriter {
    sink: FrameWriter,
    trace: MessageTrace,
}

impl MessageWriter {
    async fn write_all(&mut self, queue: &mut mpsc::UnboundedReceiver<QueuedMessage>) -> String {
        let MessageWriter { sink, trace } = self;
        loop {
            // Ready before anything is taken off the queue: what is taken is not lost when this is dropped.
            if let Err(cause) = poll_fn(|cx| SinkExt::<Bytes>::poll_ready_unpin(sink, cx)).await {
                return write_error_reason(&cause);
            }
            let next = match queue.try_recv() {
                Ok(next) => Some(next),
                // One flush for all that waited.
                Err(_) => match SinkExt::<Bytes>::flush(sink).await {
                    Ok(()) => queue.recv().await,
                    Err(cause) => return write_error_reason(&cause),
                },
            };
            let Some(QueuedMessage { bytes, .. }) = next else { return "nobody uses it any more".to_owned() };
            trace.write_message(&bytes);
            if let Err(cause) = sink.start_send_unpin(bytes) {
                return write_error_reason(&cause);
            }
        }
    }
}

/// What a writer's error says; of a peer that is gone, the same as the reader would say.
fn write_error_reason(cause: &FrameError) -> String {
    match cause {
        FrameError::Io(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => "the peer closed it".to_owned(),
        cause => cause.to_string(),
    }
}

/// Gives each message to whom it belongs.
struct MessageReader {
    shared: Arc<PeerState>,
    outgoing: mpsc::WeakUnboundedSender<QueuedMessage>,
    inlet: InboxSender,
}

impl MessageReader {
    async fn read_messages(&self, frames: &mut FrameReader) -> String {
        loop {
            match frames.next().await {
                Some(Ok(body)) => self.dispatch_message(&body),
                Some(Err(cause)) => return cause.to_string(),
                None => return "the peer closed it".to_owned(),
            }
            self.inlet.wait_for_room().await;
        }
    }

    fn dispatch_message(&self, body: &[u8]) {
        match parse_message(body) {
            Ok(DapMessage::Response { request_seq, outcome }) => match self.shared.lock().slots.remove(&request_seq) {
                // Fails when its caller has given up in this moment.
                Some(slot) => drop(slot.send(outcome)),
                None => debug!("an answer to {request_seq}, for which nobody waits (any more)"),
            },
            Ok(DapMessage::Event(event)) => self.inlet.push_event(event),
            Ok(DapMessage::Request { seq, command, arguments }) => {
                let open = Some((self.outgoing.clone(), Arc::clone(&self.shared)));
                self.inlet.push_request(IncomingRequest { command, arguments, seq, open });
            }
            // The frame was whole, so the next one can be read.
            Err(cause) => debug!("something that is no message: {cause}"),
        }
    }
}
