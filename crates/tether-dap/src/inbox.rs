//! Bounded inbox of received messages, in order, for one consumer; only `output` and `loadedSource` may be dropped.
//!
//! ```text
//!                 ┌─ kept: stops, breakpoints, requests, …   full ─▶ the reader waits
//! reader ─ push ──┤                                                                        ─▶ next ─▶ consumer
//!                 └─ droppable: `output`, `loadedSource`     full ─▶ the oldest are dropped, a `Lost` marks the gap
//! ```
//! Each message has a position, so that the two queues are read as one. Does not depend on the meaning of a message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tether_base::sync::lock;
use tokio::sync::Notify;

use super::incoming_request::IncomingRequest;
use super::message::RawEvent;

/// Bytes of kept messages; past that, reading pauses and the peer's pipe fills.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// Bytes of droppable messages.
const MAX_DROPPABLE_BYTES: usize = 8 << 20;
/// What a message is counted for besides its body, in bytes.
const MESSAGE_OVERHEAD: usize = 256;

/// A received event or request, or the mark of a gap.
#[derive(Debug)]
pub enum DapIncoming {
    /// Needs no response.
    Event(RawEvent),
    /// Must be responded to; dropping it sends an error response.
    Request(IncomingRequest),
    /// Events were dropped here, because the consumer was too slow.
    Lost(LostEvents),
}

/// How many events were dropped, of the two kinds that may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{outputs} outputs and {loaded_sources} loaded sources were dropped: they came faster than they were read")]
pub struct LostEvents {
    /// Events named `output`.
    pub outputs: u64,
    /// Events named `loadedSource`.
    pub loaded_sources: u64,
}

/// The consumer's end. Dropping it discards everything received later; requests get an error response.
pub struct DapInbox(Arc<InboxState>);

/// The reader's end. Dropping it ends the inbox after the queued messages.
pub(super) struct InboxSender(Arc<InboxState>);

struct InboxState {
    queues: Mutex<InboxQueues>,
    /// A message was pushed, or the sender was dropped.
    arrived: Notify,
    /// A message was taken, or the inbox was dropped.
    taken: Notify,
}

#[derive(Default)]
struct InboxQueues {
    pushed: u64,
    kept: OrderedQueue<DapIncoming>,
    droppable: OrderedQueue<RawEvent>,
    lost: LostEvents,
    sender_dropped: bool,
    inbox_dropped: bool,
}

/// Messages with their position in the order of all, and their size in bytes.
struct OrderedQueue<T> {
    messages: VecDeque<(u64, usize, T)>,
    bytes: usize,
}

impl<T> Default for OrderedQueue<T> {
    fn default() -> Self {
        OrderedQueue { messages: VecDeque::new(), bytes: 0 }
    }
}

impl<T> OrderedQueue<T> {
    fn push(&mut self, position: u64, bytes: usize, message: T) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages.push_back((position, bytes, message));
    }

    fn pop(&mut self) -> Option<T> {
        let (_, bytes, message) = self.messages.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(message)
    }

    fn front_position(&self) -> u64 {
        self.messages.front().map_or(u64::MAX, |(position, ..)| *position)
    }
}

/// The two ends of an inbox.
pub(super) fn open_inbox() -> (InboxSender, DapInbox) {
    let state = Arc::new(InboxState { queues: Mutex::default(), arrived: Notify::new(), taken: Notify::new() });
    (InboxSender(Arc::clone(&state)), DapInbox(state))
}

impl InboxState {
    fn lock(&self) -> MutexGuard<'_, InboxQueues> {
        lock(&self.queues)
    }
}

impl DapInbox {
    /// The next message; `None` when the connection has ended and everything has been read. Cancel-safe.
    pub async fn next(&mut self) -> Option<DapIncoming> {
        loop {
            {
                let mut queues = self.0.lock();
                if let Some(message) = queues.pop() {
                    drop(queues);
                    self.0.taken.notify_one();
                    return Some(message);
                }
                if queues.sender_dropped {
                    return None;
                }
            }
            // `Notify` stores a permit: a push between the check and this wait is not missed.
            self.0.arrived.notified().await;
        }
    }
}

impl Drop for DapInbox {
    fn drop(&mut self) {
        let left = {
            let mut queues = self.0.lock();
            queues.inbox_dropped = true;
            (std::mem::take(&mut queues.kept), std::mem::take(&mut queues.droppable))
        };
        drop(left);
        self.0.taken.notify_one();
    }
}

impl InboxSender {
    /// Never waits, and accepts everything; the bound is [`InboxSender::wait_for_room`].
    pub(crate) fn push_event(&self, event: RawEvent) {
        let bytes = event.body.as_ref().map_or(0, |body| body.get().len()).saturating_add(MESSAGE_OVERHEAD);
        let mut queues = self.0.lock();
        if is_droppable(&event) {
            queues.push_droppable(bytes, event);
        } else {
            queues.push_kept(bytes, DapIncoming::Event(event));
        }
        drop(queues);
        self.0.arrived.notify_one();
    }

    /// As [`InboxSender::push_event`].
    pub(crate) fn push_request(&self, request: IncomingRequest) {
        let bytes = request.argument_bytes().saturating_add(MESSAGE_OVERHEAD);
        let mut queues = self.0.lock();
        // Dropped outside of the lock: the drop sends an error response.
        let rejected = queues.push_kept(bytes, DapIncoming::Request(request));
        drop(queues);
        drop(rejected);
        self.0.arrived.notify_one();
    }

    /// Resolves when the kept messages are below their bound; the reader waits for it before each read.
    pub(crate) async fn wait_for_room(&self) {
        while self.is_full() {
            self.0.taken.notified().await;
        }
    }

    fn is_full(&self) -> bool {
        self.0.lock().kept.bytes > MAX_KEPT_BYTES
    }
}

impl Drop for InboxSender {
    fn drop(&mut self) {
        self.0.lock().sender_dropped = true;
        self.0.arrived.notify_one();
    }
}

impl InboxQueues {
    fn next_position(&mut self) -> u64 {
        self.pushed = self.pushed.saturating_add(1);
        self.pushed
    }

    /// Returns the message when the inbox has been dropped.
    fn push_kept(&mut self, bytes: usize, message: DapIncoming) -> Option<DapIncoming> {
        if self.inbox_dropped {
            return Some(message);
        }
        let position = self.next_position();
        self.kept.push(position, bytes, message);
        None
    }

    fn push_droppable(&mut self, bytes: usize, event: RawEvent) {
        if self.inbox_dropped {
            return;
        }
        let position = self.next_position();
        self.droppable.push(position, bytes, event);
        // The newest stays, whatever its size: the end of an output matters most.
        while self.droppable.bytes > MAX_DROPPABLE_BYTES && self.droppable.messages.len() > 1 {
            let lost = match self.droppable.pop() {
                Some(event) if event.name == "output" => &mut self.lost.outputs,
                _ => &mut self.lost.loaded_sources,
            };
            *lost = lost.saturating_add(1);
        }
    }

    fn pop(&mut self) -> Option<DapIncoming> {
        if self.kept.front_position() < self.droppable.front_position() {
            return self.kept.pop();
        }
        // All dropped events came before the oldest one that is left.
        if self.lost != LostEvents::default() {
            return Some(DapIncoming::Lost(std::mem::take(&mut self.lost)));
        }
        self.droppable.pop().map(DapIncoming::Event)
    }
}

fn is_droppable(event: &RawEvent) -> bool {
    matches!(event.name.as_str(), "output" | "loadedSource")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    fn event(name: &str, body: &str) -> RawEvent {
        RawEvent { name: name.to_owned(), body: Some(to_raw_value(body).unwrap()) }
    }

    fn describe(incoming: DapIncoming) -> String {
        match incoming {
            DapIncoming::Event(event) => format!("{} {}", event.name, event.body.unwrap()),
            DapIncoming::Lost(lost) => format!("lost {} {}", lost.outputs, lost.loaded_sources),
            DapIncoming::Request(request) => format!("{request:?}"),
        }
    }

    #[tokio::test]
    async fn messages_are_read_in_the_order_of_their_arrival() {
        let (sender, mut inbox) = open_inbox();
        let names = ["output", "stopped", "loadedSource", "output", "thread", "continued", "output"];
        for (number, name) in names.iter().enumerate() {
            sender.push_event(event(name, &number.to_string()));
        }
        drop(sender);
        for (number, name) in names.iter().enumerate() {
            assert_eq!(describe(inbox.next().await.unwrap()), format!("{name} \"{number}\""));
        }
        assert!(inbox.next().await.is_none() && inbox.next().await.is_none());
    }

    #[tokio::test]
    async fn a_flood_drops_the_oldest_outputs_and_marks_the_gap() {
        let (sender, mut inbox) = open_inbox();
        sender.push_event(event("stopped", "first"));
        let long = "x".repeat(MAX_DROPPABLE_BYTES / 4);
        for _ in 0..5 {
            sender.push_event(event("output", &long));
        }
        sender.push_event(event("loadedSource", "a"));
        sender.push_event(event("stopped", "second"));
        sender.push_event(event("output", "the end"));
        drop(sender);
        let mut all = Vec::new();
        while let Some(incoming) = inbox.next().await {
            all.push(describe(incoming).chars().take(20).collect::<String>());
        }
        let output = "output \"xxxxxxxxxxxx";
        assert_eq!(
            all,
            [
                "stopped \"first\"",
                "lost 2 0",
                output,
                output,
                output,
                "loadedSource \"a\"",
                "stopped \"second\"",
                "output \"the end\""
            ]
        );
    }

    #[tokio::test]
    async fn kept_messages_make_the_reader_wait_and_are_never_dropped() {
        let (sender, mut inbox) = open_inbox();
        let long = "x".repeat(MAX_KEPT_BYTES / 4);
        for _ in 0..4 {
            sender.wait_for_room().await;
            sender.push_event(event("stopped", &long));
        }
        assert!(sender.is_full());
        let (first, ()) = tokio::join!(inbox.next(), sender.wait_for_room());
        assert!(first.is_some());
        for _ in 0..3 {
            assert!(inbox.next().await.is_some());
        }
        // It does not wait after the inbox was dropped.
        for _ in 0..8 {
            sender.push_event(event("stopped", &long));
        }
        let ((), ()) = tokio::join!(sender.wait_for_room(), async { drop(inbox) });
        sender.push_event(event("stopped", &long));
        assert!(!sender.is_full());
    }
}
