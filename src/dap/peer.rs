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

use super::Error;
use super::connection::{Connection, Frames, Sink};
use super::inbox::{Inbox, Inlet, inbox};
use super::message::{ErrorMessage, Message, Outgoing, Raw, Refusal, parse, raw, read};
use super::trace::Trace;
use crate::wire::frames::{FrameError, MAX_BODY};

/// Requests and events on their way to the peer; more make whoever sends wait (within its deadline).
const SENDING: usize = 64;
/// Answers on their way to the peer. One that asks on and on, and never reads, is left.
const ANSWERING: usize = 1024;
/// How long a peer may take to read what was sent before the end, and to close its side.
const FAREWELL: Duration = Duration::from_secs(1);
const CLOSED_BY_US: &str = "it was closed by us";

type Answer = Result<Option<Raw>, Refusal>;

/// A handle to the other side; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub(super) struct Peer {
    outgoing: mpsc::UnboundedSender<Sent>,
    shared: Arc<Shared>,
}

/// A message on its way, and the place that it takes until it is written.
struct Sent {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

struct Shared {
    table: Mutex<Table>,
    sending: Arc<Semaphore>,
    answering: Arc<Semaphore>,
    closing: Notify,
    /// Why the connection has ended.
    ended: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct Table {
    last_seq: i64,
    slots: HashMap<i64, oneshot::Sender<Answer>>,
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

pub(super) fn over(connection: Connection) -> (Peer, Inbox, Driver) {
    let (outgoing, queue) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        table: Mutex::default(),
        sending: Arc::new(Semaphore::new(SENDING)),
        answering: Arc::new(Semaphore::new(ANSWERING)),
        closing: Notify::new(),
        ended: watch::Sender::new(None),
    });
    let (inlet, inbox) = inbox();
    let weak = outgoing.downgrade();
    let receiver = Receiver { shared: Arc::clone(&shared), outgoing: weak, inlet };
    // Made here and not in the future, so that one that is never polled wakes everyone too.
    let over = Over(Arc::clone(&shared));
    let driver = Driver(Box::pin(drive(connection, queue, receiver, over)));
    (Peer { outgoing, shared }, inbox, driver)
}

impl Peer {
    /// Sends a request; it is on its way, in order with all others, when this returns.
    pub async fn begin(&self, command: &str, arguments: Option<Raw>) -> Result<Ticket, Error> {
        let size = arguments.as_ref().map_or(0, |arguments| arguments.get().len());
        fits(command, size)?;
        let place = self.place().await?;
        let (tell, answer) = oneshot::channel();
        let request = Outgoing::Request { command, arguments: arguments.as_deref() };
        let seq = self.send(place, Some(tell), &request).ok_or_else(|| self.shared.closed_error())?;
        Ok(Ticket { seq, command: command.to_owned(), answer, shared: Arc::clone(&self.shared) })
    }

    /// Tells something; waits while the peer does not read.
    pub async fn event(&self, name: &str, body: Option<&Raw>) -> Result<(), Error> {
        fits(name, body.map_or(0, |body| body.get().len()))?;
        let place = self.place().await?;
        let event = Outgoing::Event { event: name, body: body.map(|body| &**body) };
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
    pub fn waiting(&self) -> usize {
        self.shared.lock().slots.len()
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        let place = Arc::clone(&self.shared.sending).acquire_owned().await;
        place.map_err(|_| self.shared.closed_error())
    }

    /// Numbers, registers and queues in one step, so that numbers rise on the wire. `None` after the end.
    fn send(
        &self,
        place: OwnedSemaphorePermit,
        slot: Option<oneshot::Sender<Answer>>,
        message: &Outgoing<'_>,
    ) -> Option<i64> {
        let mut table = self.shared.lock();
        if table.over {
            return None;
        }
        table.last_seq += 1;
        let seq = table.last_seq;
        // Registered before sending: the answer may be faster than we are.
        slot.map(|slot| table.slots.insert(seq, slot));
        let sent = self.outgoing.send(Sent { bytes: message.encode(seq), _place: place });
        sent.ok().map(|()| seq)
    }

    fn answer(&self, request_seq: i64, command: &str, outcome: Result<Option<Raw>, Refusal>) {
        let Ok(place) = Arc::clone(&self.shared.answering).try_acquire_owned() else {
            return self.shared.end(&format!("it asked {ANSWERING} times without reading an answer"));
        };
        let outcome = outcome.and_then(|body| match fits(command, body.as_ref().map_or(0, |body| body.get().len())) {
            Ok(()) => Ok(body),
            Err(error) => Err(Refusal::new(error.to_string())),
        });
        let (message, body) = match outcome {
            Ok(body) => (None, body),
            Err(refusal) => (Some(refusal.message.clone()), raw(&ErrorBody { error: refusal.error }).ok().flatten()),
        };
        let (message, body) = (message.as_deref(), body.as_deref());
        let success = message.is_none();
        // After the end nobody waits for it.
        self.send(place, None, &Outgoing::Response { request_seq, success, command, message, body });
    }
}

#[derive(Serialize)]
struct ErrorBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorMessage>,
}

/// Leaves the envelope room for itself.
fn fits(command: &str, size: usize) -> Result<(), Error> {
    let limit = MAX_BODY - 4096 - command.len().min(MAX_BODY / 2);
    if size <= limit {
        return Ok(());
    }
    let cause = format!("{size} bytes are over the limit of {MAX_BODY} for a message");
    Err(Error::Unsendable { command: command.to_owned(), cause })
}

/// A request under way. Dropping it forgets the answer.
pub(super) struct Ticket {
    seq: i64,
    command: String,
    answer: oneshot::Receiver<Answer>,
    shared: Arc<Shared>,
}

impl Ticket {
    pub async fn answer(mut self, deadline: Duration) -> Result<Option<Raw>, Error> {
        let answered = tokio::time::timeout(deadline, &mut self.answer).await;
        let answered = answered.map_err(|_| Error::TimedOut { command: self.command.clone(), after: deadline })?;
        let outcome = answered.map_err(|_| self.shared.closed_error())?;
        outcome.map_err(|refusal| Error::Refused { command: self.command.clone(), refusal })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shared.lock().slots.remove(&self.seq);
    }
}

/// A request of the other side. It is always answered: whoever drops it has refused it.
pub struct Asked {
    pub command: String,
    pub arguments: Option<Raw>,
    seq: i64,
    /// None once it is answered.
    open: Option<(mpsc::WeakUnboundedSender<Sent>, Arc<Shared>)>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asked({} {:?})", self.command, self.arguments)
    }
}

impl Asked {
    /// The arguments as `T`; the error says why they are not.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(self.arguments.as_deref())
    }

    /// Does what was asked for; a `null` body is left out.
    pub fn answer(self, body: &impl Serialize) {
        let body = raw(body).map_err(|cause| Refusal::new(format!("the answer cannot be written: {cause}")));
        self.settle(body);
    }

    /// As [`Asked::answer`], with a body that comes from elsewhere.
    pub fn answer_raw(self, body: Option<Raw>) {
        self.settle(Ok(body));
    }

    /// Says why it is not done.
    pub fn refuse(self, refusal: Refusal) {
        self.settle(Err(refusal));
    }

    pub(super) fn size(&self) -> usize {
        self.arguments.as_ref().map_or(0, |arguments| arguments.get().len())
    }

    fn settle(mut self, outcome: Result<Option<Raw>, Refusal>) {
        self.reply(outcome);
    }

    fn reply(&mut self, outcome: Result<Option<Raw>, Refusal>) {
        // Without a sender, all handles are gone: the connection is ending.
        let Some((outgoing, shared)) = self.open.take() else { return };
        if let Some(outgoing) = outgoing.upgrade() {
            Peer { outgoing, shared }.answer(self.seq, &self.command, outcome);
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let refusal = Refusal::new(format!("{} is not supported here", self.command));
        self.reply(Err(refusal));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed_error(&self) -> Error {
        Error::Closed(self.ended.borrow().clone().unwrap_or_else(|| CLOSED_BY_US.to_owned()))
    }

    /// Wakes everyone; the first reason counts.
    fn end(&self, reason: &str) {
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
struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.end(CLOSED_BY_US);
    }
}

async fn drive(
    connection: Connection,
    mut queue: mpsc::UnboundedReceiver<Sent>,
    receiver: Receiver,
    over: Over,
) -> String {
    let Connection { mut frames, sink } = connection;
    let mut voice = Voice { sink, trace: Trace::of_environment() };
    let reason = tokio::select! {
        biased; // who closes and drops has closed
        () = over.0.closing.notified() => CLOSED_BY_US.to_owned(),
        reason = voice.say_all(&mut queue) => reason,
        reason = receiver.read_all(&mut frames) => reason,
    };
    // Everyone is woken first: what follows is for the peer's sake only.
    over.0.end(&reason);
    drop(receiver);
    let _ = tokio::time::timeout(FAREWELL, say_farewell(&mut voice, &mut frames, &mut queue)).await;
    over.0.ended.borrow().clone().unwrap_or(reason)
}

/// Writes what waits, closes our direction, and reads until the peer has closed too: an adapter that writes into a
/// connection that is gone may crash over it (js-debug does), and leave its debuggee behind.
async fn say_farewell(voice: &mut Voice, frames: &mut Frames, queue: &mut mpsc::UnboundedReceiver<Sent>) {
    queue.close();
    let write = async {
        voice.say_all(queue).await;
        let _ = SinkExt::<Bytes>::close(&mut voice.sink).await;
    };
    // Both directions at once: a peer that is still writing may not read before we do.
    tokio::join!(write, async { while let Some(Ok(_)) = frames.next().await {} });
}

/// What goes out, and where it is written down.
struct Voice {
    sink: Sink,
    trace: Trace,
}

impl Voice {
    async fn say_all(&mut self, queue: &mut mpsc::UnboundedReceiver<Sent>) -> String {
        let Voice { sink, trace } = self;
        loop {
            // Ready before anything is taken off the queue: what is taken is not lost when this is dropped.
            if let Err(cause) = poll_fn(|cx| SinkExt::<Bytes>::poll_ready_unpin(sink, cx)).await {
                return lost(&cause);
            }
            let next = match queue.try_recv() {
                Ok(next) => Some(next),
                // One flush for all that waited.
                Err(_) => match SinkExt::<Bytes>::flush(sink).await {
                    Ok(()) => queue.recv().await,
                    Err(cause) => return lost(&cause),
                },
            };
            let Some(Sent { bytes, .. }) = next else { return "nobody uses it any more".to_owned() };
            trace.note(&bytes);
            if let Err(cause) = sink.start_send_unpin(bytes) {
                return lost(&cause);
            }
        }
    }
}

/// What a writer's error says; of a peer that is gone, the same as the reader would say.
fn lost(cause: &FrameError) -> String {
    match cause {
        FrameError::Io(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => "the peer closed it".to_owned(),
        cause => cause.to_string(),
    }
}

/// Gives each message to whom it belongs.
struct Receiver {
    shared: Arc<Shared>,
    outgoing: mpsc::WeakUnboundedSender<Sent>,
    inlet: Inlet,
}

impl Receiver {
    async fn read_all(&self, frames: &mut Frames) -> String {
        loop {
            match frames.next().await {
                Some(Ok(body)) => self.deliver(&body),
                Some(Err(cause)) => return cause.to_string(),
                None => return "the peer closed it".to_owned(),
            }
            self.inlet.room().await;
        }
    }

    fn deliver(&self, body: &[u8]) {
        match parse(body) {
            Ok(Message::Response { request_seq, outcome }) => match self.shared.lock().slots.remove(&request_seq) {
                // Fails when its caller has given up in this moment.
                Some(slot) => drop(slot.send(outcome)),
                None => debug!("an answer to {request_seq}, for which nobody waits (any more)"),
            },
            Ok(Message::Event(event)) => self.inlet.event(event),
            Ok(Message::Request { seq, command, arguments }) => {
                let open = Some((self.outgoing.clone(), Arc::clone(&self.shared)));
                self.inlet.request(Asked { command, arguments, seq, open });
            }
            // The frame was whole, so the next one can be read.
            Err(cause) => debug!("something that is no message: {cause}"),
        }
    }
}
