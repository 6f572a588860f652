//! What has come in and waits to be looked at, in order, for one consumer; and what may be lost of it.
//!
//! ```text
//!                 ┌─ must be kept: stops, breakpoints, requests, …   full ─▶ the reader waits
//! reader ─ push ──┤                                                                             ─▶ next ─▶ consumer
//!                 └─ may be lost: `output`, `loadedSource`           full ─▶ the oldest go, and it is said where
//! ```
//! Everything carries its place in the order, so that the two queues come out as one. Must not know what a message
//! is good for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::incoming_request::IncomingRequest;
use super::message::RawEvent;

/// Bytes of messages that must be kept; past that, reading pauses and the peer's own pipe fills.
const KEPT: usize = 64 << 20;
/// Bytes of messages that may be lost.
const LOSABLE: usize = 8 << 20;
/// What a message costs besides its body.
const OVERHEAD: usize = 256;

/// Something from the other side.
#[derive(Debug)]
pub enum DapIncoming {
    Event(RawEvent),
    /// To be answered; dropping it refuses.
    Request(IncomingRequest),
    /// Here something is missing, because the consumer was too slow.
    Lost(LostEvents),
}

/// How many events were lost, of the two kinds that may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{outputs} outputs and {loaded_sources} loaded sources were lost: they came faster than they were read")]
pub struct LostEvents {
    pub outputs: u64,
    pub loaded_sources: u64,
}

/// The consumer's end. Dropping it lets everything that comes pass by, and refuses the requests among it.
pub struct DapInbox(Arc<InboxState>);

/// The reader's end. Dropping it ends the inbox once it has been read to its end.
pub(super) struct InboxSender(Arc<InboxState>);

struct InboxState {
    queues: Mutex<InboxQueues>,
    /// Something has come in, or nothing more will.
    arrived: Notify,
    /// Something was taken, or nobody will take any more.
    taken: Notify,
}

#[derive(Default)]
struct InboxQueues {
    pushed: u64,
    kept: OrderedQueue<DapIncoming>,
    losable: OrderedQueue<RawEvent>,
    lost: LostEvents,
    no_more: bool,
    nobody: bool,
}

/// Messages, each with its place in the order of all.
struct OrderedQueue<T> {
    waiting: VecDeque<(u64, usize, T)>,
    bytes: usize,
}

impl<T> Default for OrderedQueue<T> {
    fn default() -> Self {
        OrderedQueue { waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<T> OrderedQueue<T> {
    fn push(&mut self, place: u64, bytes: usize, message: T) {
        self.bytes += bytes;
        self.waiting.push_back((place, bytes, message));
    }

    fn pop(&mut self) -> Option<T> {
        let (_, bytes, message) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(message)
    }

    fn front_position(&self) -> u64 {
        self.waiting.front().map_or(u64::MAX, |(place, ..)| *place)
    }
}

pub(super) fn open_inbox() -> (InboxSender, DapInbox) {
    let shared = Arc::new(InboxState { queues: Mutex::default(), arrived: Notify::new(), taken: Notify::new() });
    (InboxSender(Arc::clone(&shared)), DapInbox(shared))
}

impl InboxState {
    fn lock(&self) -> MutexGuard<'_, InboxQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DapInbox {
    /// What came next; `None` when the connection has ended and everything has been read. Cancel-safe.
    pub async fn next(&mut self) -> Option<DapIncoming> {
        loop {
            {
                let mut queues = self.0.lock();
                if let Some(message) = queues.pop() {
                    drop(queues);
                    self.0.taken.notify_one();
                    return Some(message);
                }
                if queues.no_more {
                    return None;
                }
            }
            // A permit is stored when it comes between the look and the wait.
            self.0.arrived.notified().await;
        }
    }
}

impl Drop for DapInbox {
    fn drop(&mut self) {
        let left = {
            let mut queues = self.0.lock();
            queues.nobody = true;
            (std::mem::take(&mut queues.kept), std::mem::take(&mut queues.losable))
        };
        drop(left);
        self.0.taken.notify_one();
    }
}

impl InboxSender {
    /// Never waits, and refuses nothing; see [`Inlet::room`].
    pub fn push_event(&self, event: RawEvent) {
        let bytes = OVERHEAD + event.body.as_ref().map_or(0, |body| body.get().len());
        let mut queues = self.0.lock();
        if is_losable(&event) {
            queues.push_losable(bytes, event);
        } else {
            queues.push_kept(bytes, DapIncoming::Event(event));
        }
        drop(queues);
        self.0.arrived.notify_one();
    }

    pub fn push_request(&self, asked: IncomingRequest) {
        let bytes = OVERHEAD + asked.argument_bytes();
        let mut queues = self.0.lock();
        // Dropped outside of the lock: that answers it.
        let refused = queues.push_kept(bytes, DapIncoming::Request(asked));
        drop(queues);
        drop(refused);
        self.0.arrived.notify_one();
    }

    /// Resolves when what must be kept fits again; the reader waits for it before it reads on.
    pub async fn wait_for_room(&self) {
        while self.is_full() {
            self.0.taken.notified().await;
        }
    }

    fn is_full(&self) -> bool {
        self.0.lock().kept.bytes > KEPT
    }
}

impl Drop for InboxSender {
    fn drop(&mut self) {
        self.0.lock().no_more = true;
        self.0.arrived.notify_one();
    }
}

impl InboxQueues {
    fn next_position(&mut self) -> u64 {
        self.pushed += 1;
        self.pushed
    }

    /// Gives back what nobody is there to take.
    fn push_kept(&mut self, bytes: usize, message: DapIncoming) -> Option<DapIncoming> {
        if self.nobody {
            return Some(message);
        }
        let place = self.next_position();
        self.kept.push(place, bytes, message);
        None
    }

    fn push_losable(&mut self, bytes: usize, event: RawEvent) {
        if self.nobody {
            return;
        }
        let place = self.next_position();
        self.losable.push(place, bytes, event);
        // The newest stays, however long it is: the end of an output is what is looked for.
        while self.losable.bytes > LOSABLE && self.losable.waiting.len() > 1 {
            match self.losable.pop() {
                Some(event) if event.name == "output" => self.lost.outputs += 1,
                _ => self.lost.loaded_sources += 1,
            }
        }
    }

    fn pop(&mut self) -> Option<DapIncoming> {
        if self.kept.front_position() < self.losable.front_position() {
            return self.kept.pop();
        }
        // All that was lost lay before the oldest that is left.
        if self.lost != LostEvents::default() {
            return Some(DapIncoming::Lost(std::mem::take(&mut self.lost)));
        }
        self.losable.pop().map(DapIncoming::Event)
    }
}

fn is_losable(event: &RawEvent) -> bool {
    matches!(event.name.as_str(), "output" | "loadedSource")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::to_raw_value;

    fn event(name: &str, body: &str) -> RawEvent {
        RawEvent { name: name.to_owned(), body: Some(to_raw_value(body).unwrap()) }
    }

    fn told(incoming: DapIncoming) -> String {
        match incoming {
            DapIncoming::Event(event) => format!("{} {}", event.name, event.body.unwrap()),
            DapIncoming::Lost(lost) => format!("lost {} {}", lost.outputs, lost.loaded_sources),
            DapIncoming::Request(asked) => format!("{asked:?}"),
        }
    }

    #[tokio::test]
    async fn everything_comes_out_in_the_order_in_which_it_came_in() {
        let (inlet, mut inbox) = open_inbox();
        let names = ["output", "stopped", "loadedSource", "output", "thread", "continued", "output"];
        for (number, name) in names.iter().enumerate() {
            inlet.push_event(event(name, &number.to_string()));
        }
        drop(inlet);
        for (number, name) in names.iter().enumerate() {
            assert_eq!(told(inbox.next().await.unwrap()), format!("{name} \"{number}\""));
        }
        assert!(inbox.next().await.is_none() && inbox.next().await.is_none());
    }

    #[tokio::test]
    async fn of_a_flood_the_oldest_outputs_go_and_the_gap_is_told_in_its_place() {
        let (inlet, mut inbox) = open_inbox();
        inlet.push_event(event("stopped", "first"));
        let long = "x".repeat(LOSABLE / 4);
        for _ in 0..5 {
            inlet.push_event(event("output", &long));
        }
        inlet.push_event(event("loadedSource", "a"));
        inlet.push_event(event("stopped", "second"));
        inlet.push_event(event("output", "the end"));
        drop(inlet);
        let mut all = Vec::new();
        while let Some(incoming) = inbox.next().await {
            all.push(told(incoming).chars().take(20).collect::<String>());
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
    async fn what_must_be_kept_makes_the_reader_wait_and_is_never_lost() {
        let (inlet, mut inbox) = open_inbox();
        let long = "x".repeat(KEPT / 4);
        for _ in 0..4 {
            inlet.wait_for_room().await;
            inlet.push_event(event("stopped", &long));
        }
        assert!(inlet.is_full());
        let (first, ()) = tokio::join!(inbox.next(), inlet.wait_for_room());
        assert!(first.is_some());
        for _ in 0..3 {
            assert!(inbox.next().await.is_some());
        }
        // Nor does it wait when nobody is left to take anything.
        for _ in 0..8 {
            inlet.push_event(event("stopped", &long));
        }
        let ((), ()) = tokio::join!(inlet.wait_for_room(), async { drop(inbox) });
        inlet.push_event(event("stopped", &long));
        assert!(!inlet.is_full());
    }
}
