//! What the inspectors send, in one queue: the events of an isolate in their order, and those of its workers and frames.
//!
//! Responses to commands for a worker of Node come as events of its process, and are delivered before the queue: a handler of
//! the queue may wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tether_base::sync::lock;
use tether_cdp::debugger::{AttachedToWorker, DetachedFromWorker, ReceivedMessageFromWorker, RunIfWaitingForDebugger};
use tether_cdp::events::{AttachedToTarget, DetachedFromTarget};
use tether_cdp::{CdpClient, CdpEvent, CdpSession, FlatSession, WorkerSession};
use tokio::sync::{Notify, mpsc};

use super::isolate_host::IsolateHost;

/// How many events may wait; a program that sends more is not debugged any longer.
const MAX_QUEUED: usize = 100_000;

/// One of what the inspectors send.
pub(crate) enum IsolateEvent {
    Sent {
        isolate: i64,
        event: CdpEvent,
    },
    ChildStarted(StartedChild),
    /// A worker or frame has ended, or the connection to a process.
    Ended {
        isolate: i64,
    },
}

/// A worker of an isolate, or a frame of a page: it waits for its debugger.
pub(crate) struct StartedChild {
    pub isolate: i64,
    pub parent: i64,
    pub session: CdpSession,
    pub connection: Arc<ConnectionEvents>,
    pub host: IsolateHost,
    /// What the inspector calls it.
    pub title: String,
    /// It waits for its debugger; else it runs already.
    pub is_waiting: bool,
}

/// Numbers the isolates, and queues their events.
#[derive(Clone)]
pub(crate) struct IsolateEvents {
    queue: mpsc::Sender<IsolateEvent>,
    last_isolate: Arc<AtomicI64>,
}

/// The events of one connection.
pub(crate) struct ConnectionEvents {
    events: IsolateEvents,
    /// The isolate of the process's main thread, or of the page.
    pub isolate: i64,
    is_left: AtomicBool,
    /// Its process has finished, and waits until its debugger has left.
    finished: Notify,
    client: OnceLock<CdpClient>,
    /// The workers and frames by their session.
    children: Mutex<HashMap<String, (i64, CdpSession)>>,
}

impl IsolateEvents {
    /// The queue, and its end.
    pub(crate) fn new() -> (IsolateEvents, mpsc::Receiver<IsolateEvent>) {
        let (queue, receiver) = mpsc::channel(MAX_QUEUED);
        (IsolateEvents { queue, last_isolate: Arc::default() }, receiver)
    }

    /// For another connection, whose own isolate gets the next number.
    pub(crate) fn open(&self) -> Arc<ConnectionEvents> {
        let (isolate, events) = (self.next_isolate(), self.clone());
        Arc::new(ConnectionEvents {
            events,
            isolate,
            is_left: AtomicBool::new(false),
            finished: Notify::new(),
            client: OnceLock::new(),
            children: Mutex::default(),
        })
    }

    fn next_isolate(&self) -> i64 {
        self.last_isolate.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }
}

impl ConnectionEvents {
    /// The connection is open: workers and frames are reached through it.
    pub(crate) fn set_client(&self, client: CdpClient) {
        let _ = self.client.set(client);
    }

    /// Whether its process has finished, or is being left: nothing is asked of it any more.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Nothing is asked of it any more.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// Resolves when its process has finished, and waits until its debugger has left.
    pub(crate) async fn wait_finished(&self) {
        self.finished.notified().await;
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        if let Some(client) = self.client.get() {
            client.close();
        }
    }

    /// Resolves when the connection has ended, with the reason.
    pub(crate) async fn wait_closed(&self) -> String {
        match self.client.get() {
            Some(client) => client.wait_closed().await,
            None => String::new(),
        }
    }

    /// The sessions of the workers and frames that have not ended.
    pub(crate) fn child_sessions(&self) -> Vec<CdpSession> {
        lock(&self.children).values().map(|(_, session)| session.clone()).collect()
    }

    /// Queues an event of the connection.
    pub(crate) fn queue_event(self: &Arc<ConnectionEvents>, event: &CdpEvent) {
        let Some(isolate) = self.find_isolate(event) else { return };
        match event.method.as_str() {
            "NodeWorker.attachedToWorker" => {
                if let Some(attached) = event.parse_as::<AttachedToWorker>("NodeWorker.attachedToWorker") {
                    self.add_worker(isolate, attached);
                }
            }
            "NodeWorker.receivedMessageFromWorker" => {
                let received = event.parse_as::<ReceivedMessageFromWorker>("NodeWorker.receivedMessageFromWorker");
                received.into_iter().for_each(|received| self.dispatch_to_worker(&received));
            }
            "NodeWorker.detachedFromWorker" => {
                let detached = event.parse_as::<DetachedFromWorker>("NodeWorker.detachedFromWorker");
                detached.into_iter().for_each(|detached| self.remove_child(&detached.session_id));
            }
            "Target.attachedToTarget" => {
                if let Some(attached) = event.parse_as::<AttachedToTarget>("Target.attachedToTarget") {
                    self.add_target(isolate, attached);
                }
            }
            "Target.detachedFromTarget" => {
                let detached = event.parse_as::<DetachedFromTarget>("Target.detachedFromTarget");
                detached.into_iter().for_each(|detached| self.remove_child(&detached.session_id));
            }
            "NodeRuntime.waitingForDisconnect" => {
                // At once: what is asked meanwhile is not sent any more.
                self.leave();
                self.finished.notify_one();
                self.push(IsolateEvent::Sent { isolate, event: event.clone() });
            }
            _ => self.push(IsolateEvent::Sent { isolate, event: event.clone() }),
        }
    }

    /// The isolate that an event is of. `None`: it has ended.
    fn find_isolate(&self, event: &CdpEvent) -> Option<i64> {
        match &event.session {
            None => Some(self.isolate),
            Some(session) => lock(&self.children).get(session).map(|(isolate, _)| *isolate),
        }
    }

    fn dispatch_to_worker(&self, received: &ReceivedMessageFromWorker) {
        let worker = lock(&self.children).get(&received.session_id).cloned();
        if let Some((isolate, CdpSession::Worker(session))) = worker
            && let Some(event) = session.dispatch(&received.message)
        {
            self.push(IsolateEvent::Sent { isolate, event });
        }
    }

    fn add_worker(self: &Arc<ConnectionEvents>, parent: i64, attached: AttachedToWorker) {
        let Some(client) = self.client.get().cloned() else { return };
        let session = WorkerSession::new(client, attached.session_id.clone());
        if self.is_left() {
            // It was made while it had to wait for us.
            return session.send_nowait(&RunIfWaitingForDebugger {});
        }
        let session = CdpSession::Worker(session);
        let place = (parent, attached.waiting_for_debugger);
        self.add_child(place, attached.session_id, session, (IsolateHost::Node, attached.worker_info.title));
    }

    fn add_target(self: &Arc<ConnectionEvents>, parent: i64, attached: AttachedToTarget) {
        let Some(client) = self.client.get().cloned() else { return };
        let info = attached.target_info;
        let host = match info.kind.as_str() {
            "iframe" | "page" => IsolateHost::Document { frame: info.target_id },
            "service_worker" => IsolateHost::ServiceWorker,
            _ => IsolateHost::WebWorker,
        };
        let session = CdpSession::Flat(FlatSession::new(client, attached.session_id.clone()));
        self.add_child((parent, true), attached.session_id, session, (host, info.url));
    }

    fn add_child(
        self: &Arc<ConnectionEvents>,
        (parent, is_waiting): (i64, bool),
        id: String,
        session: CdpSession,
        (host, title): (IsolateHost, String),
    ) {
        let isolate = self.events.next_isolate();
        lock(&self.children).insert(id, (isolate, session.clone()));
        let connection = Arc::clone(self);
        self.push(IsolateEvent::ChildStarted(StartedChild {
            isolate,
            parent,
            session,
            connection,
            host,
            title,
            is_waiting,
        }));
    }

    fn remove_child(&self, id: &str) {
        let removed = lock(&self.children).remove(id);
        if let Some((isolate, session)) = removed {
            session.close("it has ended");
            self.push(IsolateEvent::Ended { isolate });
        }
    }

    /// The connection has ended.
    pub(crate) async fn end(&self) {
        let children: Vec<_> = lock(&self.children).drain().map(|(_, child)| child).collect();
        for (isolate, session) in children {
            session.close("its process has ended");
            // Fails when the session has ended.
            let _ = self.events.queue.send(IsolateEvent::Ended { isolate }).await;
        }
        let _ = self.events.queue.send(IsolateEvent::Ended { isolate: self.isolate }).await;
    }

    /// A full queue ends the connection: nothing may be lost unnoticed.
    fn push(&self, event: IsolateEvent) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.queue.try_send(event) {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::{SinkExt, StreamExt};
    use serde_json::Value;
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;
    use crate::isolate::{CALL_TIMEOUT, Isolate};
    use crate::lane::{Lane, SessionTasks};
    use tether_cdp::debugger::{EnableNodeWorker, EvaluateInGlobalScope, ResumeScript};
    use tether_cdp::{CdpError, open_connection_with_handler};

    /// Guards against a hang.
    const LONG: Duration = Duration::from_secs(30);

    /// Says that the process has finished; answers each command, and returns their names once the connection has ended.
    async fn serve_finished_process(listener: TcpListener) -> Vec<String> {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        socket.send(Message::text(r#"{"method":"NodeRuntime.waitingForDisconnect"}"#)).await.unwrap();
        let mut methods = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            let Message::Text(text) = message else { continue };
            let command: Value = serde_json::from_str(&text).unwrap();
            methods.push(command["method"].as_str().unwrap().to_owned());
            let answer = format!(r#"{{"id":{},"result":{{"result":{{"type":"undefined"}}}}}}"#, command["id"]);
            socket.send(Message::text(answer)).await.unwrap();
        }
        methods
    }

    #[tokio::test]
    async fn nothing_is_asked_of_a_process_and_its_workers_once_it_waits_for_our_disconnect() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let peer = tokio::spawn(serve_finished_process(listener));
        let (events, mut queue) = IsolateEvents::new();
        let connection = events.open();
        let handler = Arc::clone(&connection);
        let handle = Box::new(move |event: &CdpEvent| handler.queue_event(event));
        let (client, driver) = open_connection_with_handler(port, "/", LONG, handle).await.unwrap();
        connection.set_client(client.clone());
        tokio::spawn(driver);
        // It has come, and nobody has handled it yet.
        let event = tokio::time::timeout(LONG, queue.recv()).await.unwrap();
        assert!(matches!(event, Some(IsolateEvent::Sent { isolate: 1, .. })));
        let tasks = SessionTasks::default();
        let worker = WorkerSession::new(client.clone(), "1".to_owned());
        for session in [CdpSession::Own(client.clone()), CdpSession::Worker(worker)] {
            let isolate = Isolate {
                id: connection.isolate,
                name: "app.js [1]".to_owned(),
                host: IsolateHost::Node,
                inspector: Some((port, "/".to_owned())),
                worker_thread: None,
                session,
                connection: Arc::clone(&connection),
                lane: Lane::start(&tasks),
                state: Mutex::default(),
            };
            let evaluated = isolate.call_within(&EvaluateInGlobalScope::default(), LONG).await;
            assert!(matches!(&evaluated, Err(CdpError::Closed(reason)) if reason.contains("app.js [1] has finished")));
            assert!(isolate.call(&ResumeScript {}).await.is_err());
        }
        // What leaves it is sent all the same.
        let leaving = EnableNodeWorker { wait_for_debugger_on_start: false };
        CdpSession::Own(client.clone()).deliver(&leaving, CALL_TIMEOUT).await.unwrap();
        client.close();
        let methods = tokio::time::timeout(LONG, peer).await.unwrap().unwrap();
        assert_eq!(methods, ["NodeWorker.enable"]);
    }
}
