//! What the inspectors send, in one queue: the events of an isolate in their order, and those of its workers.
//!
//! Responses to commands for a worker come as events of its process, and are delivered before the queue: a handler of the
//! queue may wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::mpsc;

use crate::cdp::debugger::{AttachedToWorker, DetachedFromWorker, NodeWorkerInfo, ReceivedMessageFromWorker};
use crate::cdp::{CdpClient, CdpEvent, WorkerSession};
use crate::sync::lock;

/// How many events may wait; a program that sends more is not debugged any longer.
const MAX_QUEUED: usize = 100_000;

/// One of what the inspectors send.
pub enum IsolateEvent {
    Sent {
        isolate: i64,
        event: CdpEvent,
    },
    WorkerStarted {
        isolate: i64,
        parent: i64,
        session: Arc<WorkerSession>,
        info: NodeWorkerInfo,
    },
    /// A worker has ended, or the connection to a process.
    Ended {
        isolate: i64,
    },
}

/// Numbers the isolates, and queues their events.
#[derive(Clone)]
pub struct IsolateEvents {
    queue: mpsc::Sender<IsolateEvent>,
    last_isolate: Arc<AtomicI64>,
}

/// The events of one connection.
pub struct ConnectionEvents {
    events: IsolateEvents,
    /// The isolate of the process's main thread.
    pub isolate: i64,
    client: OnceLock<CdpClient>,
    /// The workers by their session.
    workers: Mutex<HashMap<String, (i64, Arc<WorkerSession>)>>,
}

impl IsolateEvents {
    /// The queue, and its end.
    pub fn new() -> (IsolateEvents, mpsc::Receiver<IsolateEvent>) {
        let (queue, receiver) = mpsc::channel(MAX_QUEUED);
        (IsolateEvents { queue, last_isolate: Arc::default() }, receiver)
    }

    /// For another connection, whose own isolate gets the next number.
    pub fn open(&self) -> Arc<ConnectionEvents> {
        let (isolate, events) = (self.next_isolate(), self.clone());
        Arc::new(ConnectionEvents { events, isolate, client: OnceLock::new(), workers: Mutex::default() })
    }

    fn next_isolate(&self) -> i64 {
        self.last_isolate.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl ConnectionEvents {
    /// The connection is open: workers are reached through it.
    pub fn set_client(&self, client: CdpClient) {
        let _ = self.client.set(client);
    }

    /// Queues an event of the connection.
    pub fn handle_event(&self, event: &CdpEvent) {
        if let Some(attached) = event.parse_as::<AttachedToWorker>("NodeWorker.attachedToWorker") {
            return self.add_worker(attached);
        }
        if let Some(received) = event.parse_as::<ReceivedMessageFromWorker>("NodeWorker.receivedMessageFromWorker") {
            let worker = lock(&self.workers).get(&received.session_id).cloned();
            if let Some((isolate, session)) = worker
                && let Some(event) = session.dispatch(&received.message)
            {
                self.push(IsolateEvent::Sent { isolate, event });
            }
            return;
        }
        if let Some(detached) = event.parse_as::<DetachedFromWorker>("NodeWorker.detachedFromWorker") {
            if let Some((isolate, session)) = lock(&self.workers).remove(&detached.session_id) {
                session.close("the worker has ended");
                self.push(IsolateEvent::Ended { isolate });
            }
            return;
        }
        self.push(IsolateEvent::Sent { isolate: self.isolate, event: event.clone() });
    }

    fn add_worker(&self, attached: AttachedToWorker) {
        let Some(client) = self.client.get().cloned() else { return };
        let (isolate, parent) = (self.events.next_isolate(), self.isolate);
        let session = WorkerSession::new(client, attached.session_id.clone());
        lock(&self.workers).insert(attached.session_id, (isolate, Arc::clone(&session)));
        self.push(IsolateEvent::WorkerStarted { isolate, parent, session, info: attached.worker_info });
    }

    /// The connection has ended.
    pub async fn end(&self) {
        let workers: Vec<_> = lock(&self.workers).drain().map(|(_, worker)| worker).collect();
        for (isolate, session) in workers {
            session.close("its process has ended");
            // Fails when the session has ended.
            let _ = self.events.queue.send(IsolateEvent::Ended { isolate }).await;
        }
        let _ = self.events.queue.send(IsolateEvent::Ended { isolate: self.isolate }).await;
    }

    /// A full queue ends the connection: nothing may be lost unnoticed.
    fn push(&self, event: IsolateEvent) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.queue.try_send(event)
            && let Some(client) = self.client.get()
        {
            client.close();
        }
    }
}
