//! One connection to a virtual machine: requests with deadlines, events in order.
//!
//! ```text
//! requests ─▶ registered, numbered ─▶ writer ─▶ VM ─▶ reader ─id─▶ pending request
//!                                                       └─ composite events ─▶ bounded queue ─▶ JdwpEvents
//! ```
//! The reader never waits for the consumer of the events, who may be waiting for a reply: a virtual machine that sends more
//! events than are taken is disconnected. Whatever ends the connection ends all pending requests with the reason.
//!
//! A command that changes what runs is sent by [`JdwpClient::send`]: its reply counts whenever it comes, also when nobody
//! waits for it any more.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tether_wire::LowLatencyStream;
use tether_wire::pending::{CLOSED_BY_US, Closed, PendingRequest, PendingRequests};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_util::codec::FramedRead;
use tracing::debug;

use super::commands::JdwpCommand;
use super::commands::virtual_machine::{IdSizesOfVm, IdSizesReply};
use super::events::CompositeEvent;
use super::id_sizes::IdSizes;
use super::jdwp_error::{JdwpError, JdwpErrorCode};
use super::packet::{JdwpPacket, MAX_PACKET, PacketDecoder, encode_command};
use super::reader::{JdwpDecode, PacketReader};
use super::writer::PacketWriter;

/// What both sides send first (JDWP: Handshake).
const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
/// For the handshake and the sizes of ids.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// For each request that runs no code of the program.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How many events may wait for their consumer.
const MAX_QUEUED_EVENTS: usize = 1 << 16;
/// How many bytes of events may wait for their consumer.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// The read buffer, in bytes.
const READ_BUFFER: usize = 16 * 1024;
/// Event command set, Composite.
const COMPOSITE: (u8, u8) = (64, 100);

/// The reason where the virtual machine has closed the connection.
const CLOSED_BY_VM: &str = "the virtual machine closed it";

/// The error code and the data of a reply; the length of one that was too large.
type ReplyData = Result<(u16, Bytes), usize>;

/// A handle to a virtual machine; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct JdwpClient {
    state: Arc<ClientState>,
    outgoing: mpsc::UnboundedSender<Bytes>,
}

struct ClientState {
    pending: Arc<PendingRequests<ReplyData>>,
    /// Unset until the virtual machine has reported them.
    sizes: OnceLock<IdSizes>,
    /// The id of the newest request. On the wire, ids have 32 bits.
    newest: AtomicI64,
    queued_bytes: AtomicUsize,
    closing: Notify,
}

/// The events of a virtual machine, in order.
pub struct JdwpEvents {
    queue: mpsc::Receiver<Bytes>,
    state: Arc<ClientState>,
}

/// Reads and writes the connection: spawn it. It resolves with the reason when the connection has ended.
pub type JdwpDriver = BoxFuture<'static, String>;

impl JdwpClient {
    /// Opens a connection over a stream: the handshake, then the sizes of ids.
    pub async fn open(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(JdwpClient, JdwpEvents, JdwpDriver), JdwpError> {
        let timed_out =
            |_| JdwpError::Handshake(format!("no answer within {}", humantime::format_duration(OPEN_TIMEOUT)));
        tokio::time::timeout(OPEN_TIMEOUT, open_connection(stream)).await.map_err(timed_out)?
    }

    /// As [`JdwpClient::open`], over a TCP connection: small packets are sent at once.
    pub async fn open_tcp(stream: TcpStream) -> Result<(JdwpClient, JdwpEvents, JdwpDriver), JdwpError> {
        let stream = LowLatencyStream::new(stream).map_err(|cause| JdwpError::Handshake(cause.to_string()))?;
        JdwpClient::open(stream).await
    }

    /// Sends a command and waits for its reply.
    pub async fn request<C: JdwpCommand>(&self, command: &C) -> Result<C::Reply, JdwpError> {
        self.request_within(command, REQUEST_TIMEOUT).await
    }

    /// As [`JdwpClient::request`], with a deadline of its own.
    pub async fn request_within<C: JdwpCommand>(&self, command: &C, within: Duration) -> Result<C::Reply, JdwpError> {
        let reply = tokio::time::timeout(within, self.send(command)?.reply()).await;
        reply.map_err(|_| JdwpError::TimedOut { command: C::NAME, after: within })?
    }

    /// Queues a command at once: commands reach the virtual machine in the order of these calls. Errors: it is too large, or
    /// the connection has ended.
    pub fn send<C: JdwpCommand>(&self, command: &C) -> Result<SentCommand<C::Reply>, JdwpError> {
        let sizes = self.state.sizes();
        let mut writer = PacketWriter::new(sizes);
        command.encode_arguments(&mut writer);
        let data = writer.into_bytes();
        if data.len() > MAX_PACKET / 2 {
            return Err(JdwpError::Unsendable { command: C::NAME });
        }
        let (set, number) = C::NUMBERS;
        let queue = |id: i64| {
            self.state.newest.store(id, Ordering::Release);
            // Only the low 32 bits go over the wire. Fails after the end of the connection, which ends the request.
            let _ = self.outgoing.send(encode_command(id as u32, set, number, &data));
        };
        let (pending, ()) =
            self.state.pending.register((), queue).map_err(|Closed(reason)| JdwpError::Closed(reason))?;
        Ok(SentCommand { pending, command: C::NAME, sizes, kind: PhantomData })
    }

    /// Starts the close: pending requests end.
    pub fn close(&self) {
        self.state.closing.notify_one();
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.state.pending.is_closed()
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.state.pending.wait_closed().await
    }
}

/// A command that was sent. Dropping it ignores its reply.
pub struct SentCommand<R> {
    pending: PendingRequest<ReplyData>,
    command: &'static str,
    sizes: IdSizes,
    kind: PhantomData<fn() -> R>,
}

impl<R: JdwpDecode> SentCommand<R> {
    /// Waits for the reply without a limit. Errors: it was refused, is no such reply, or the connection has ended.
    pub async fn reply(mut self) -> Result<R, JdwpError> {
        let reply = self.pending.response().await.map_err(|Closed(reason)| JdwpError::Closed(reason))?;
        let (error, data) = reply.map_err(|length| JdwpError::TooLarge { command: self.command, length })?;
        if error != 0 {
            return Err(JdwpError::Refused { command: self.command, code: JdwpErrorCode(error) });
        }
        R::decode(&mut PacketReader::new(&data, self.sizes))
    }
}

impl JdwpEvents {
    /// The next events; `None` when the connection has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<CompositeEvent, JdwpError>> {
        let data = self.queue.recv().await?;
        self.state.queued_bytes.fetch_sub(data.len(), Ordering::AcqRel);
        Some(CompositeEvent::decode(&mut PacketReader::new(&data, self.state.sizes())))
    }
}

impl ClientState {
    fn sizes(&self) -> IdSizes {
        self.sizes.get().copied().unwrap_or_default()
    }

    /// The whole id of a request, by its low 32 bits.
    fn whole_id(&self, low: u32) -> i64 {
        let newest = self.newest.load(Ordering::Acquire);
        let id = (newest & !0xffff_ffff) | i64::from(low);
        if id > newest { id.wrapping_sub(1 << 32) } else { id }
    }
}

async fn open_connection(
    mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<(JdwpClient, JdwpEvents, JdwpDriver), JdwpError> {
    let failed = |cause: std::io::Error| JdwpError::Handshake(cause.to_string());
    stream.write_all(HANDSHAKE).await.map_err(failed)?;
    let mut answer = [0; HANDSHAKE.len()];
    stream.read_exact(&mut answer).await.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::UnexpectedEof => JdwpError::Handshake("the other side closed the connection".to_owned()),
        _ => failed(cause),
    })?;
    if answer != *HANDSHAKE {
        let answer = String::from_utf8_lossy(&answer).into_owned();
        return Err(JdwpError::Handshake(format!("the answer was {answer:?}")));
    }
    let (client, events, mut driver) = drive_stream(stream);
    let sizes = tokio::select! {
        sizes = client.request(&IdSizesOfVm {}) => sizes?,
        reason = &mut driver => return Err(JdwpError::Closed(reason)),
    };
    let IdSizesReply { field, method, object, reference_type, frame } = sizes;
    let sizes = IdSizes::from_reply([field, method, object, reference_type, frame])?;
    let _ = client.state.sizes.set(sizes); // set once, here
    Ok((client, events, driver))
}

/// A client over a stream on which the handshake is done.
fn drive_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> (JdwpClient, JdwpEvents, JdwpDriver) {
    let (outgoing, mut queue) = mpsc::unbounded_channel::<Bytes>();
    let (event_sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
    let state = Arc::new(ClientState {
        pending: Arc::default(),
        sizes: OnceLock::new(),
        newest: AtomicI64::new(0),
        queued_bytes: AtomicUsize::new(0),
        closing: Notify::new(),
    });
    // Created here and not in the future, so that a driver that is never polled closes the connection too.
    let closed = CloseOnDrop(Arc::clone(&state));
    let driver = Box::pin(async move {
        let closed = closed;
        let (read, mut write) = split(stream);
        let mut packets = FramedRead::with_capacity(read, PacketDecoder::default(), READ_BUFFER);
        let reason = tokio::select! {
            biased; // a caller that closes and then drops its handle has closed
            () = closed.0.closing.notified() => CLOSED_BY_US.to_owned(),
            reason = write_packets(&mut write, &mut queue) => reason,
            reason = read_packets(&mut packets, &closed.0, event_sender) => reason,
        };
        closed.0.pending.close(&reason);
        reason
    });
    let client = JdwpClient { state: Arc::clone(&state), outgoing };
    (client, JdwpEvents { queue: events, state }, driver)
}

/// Ends all pending requests when the driver is dropped.
struct CloseOnDrop(Arc<ClientState>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.pending.close(CLOSED_BY_US);
    }
}

async fn write_packets(write: &mut (impl AsyncWrite + Unpin), queue: &mut mpsc::UnboundedReceiver<Bytes>) -> String {
    while let Some(packet) = queue.recv().await {
        if let Err(cause) = write.write_all(&packet).await {
            return cause.to_string();
        }
    }
    "its last handle was dropped".to_owned()
}

async fn read_packets(
    packets: &mut FramedRead<impl AsyncRead + Unpin, PacketDecoder>,
    state: &ClientState,
    events: mpsc::Sender<Bytes>,
) -> String {
    loop {
        match packets.next().await {
            None => return CLOSED_BY_VM.to_owned(),
            Some(Err(cause)) => return cause.to_string(),
            Some(Ok(JdwpPacket::Reply { id, error, data })) => {
                if !state.pending.complete(state.whole_id(id), Ok((error, data))) {
                    debug!("ignored a reply to {id}, which is not pending");
                }
            }
            Some(Ok(JdwpPacket::LargeReply { id, length })) => {
                if !state.pending.complete(state.whole_id(id), Err(length)) {
                    debug!("ignored a reply to {id}, which is not pending");
                }
            }
            Some(Ok(JdwpPacket::Command { set, command, data })) if (set, command) == COMPOSITE => {
                let queued = state.queued_bytes.fetch_add(data.len(), Ordering::AcqRel);
                if queued.saturating_add(data.len()) > MAX_QUEUED_BYTES || events.try_send(data).is_err() {
                    return "the virtual machine sent more events than could be taken".to_owned();
                }
            }
            Some(Ok(JdwpPacket::Command { set, command, .. })) => debug!("ignored the command {set}, {command}"),
        }
    }
}

#[cfg(test)]
mod tests;
