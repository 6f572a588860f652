//! Serves the requests of one connection, concurrently; each gets a response, a cancelled one too.
//!
//! Does not depend on the meaning of any method.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tether_base::error::{Error, ErrorKind};
use tokio::sync::mpsc;
use tokio::task::{self, AbortHandle, JoinSet};

use super::{RpcError, RpcId, RpcIncoming, RpcPeer};

/// A request that is being handled.
pub struct RpcRequest {
    /// The response repeats it.
    pub id: RpcId,
    /// Not checked: it may be unknown.
    pub method: String,
    /// `null` if the sender gave none.
    pub params: Value,
    /// Set when the user has interrupted the request, before its handler is dropped.
    pub interrupted: Arc<AtomicBool>,
}

/// Runs a handler for each request, which responds to it, and passes notifications on. Returns when the connection has ended;
/// what is still being handled is dropped then.
pub async fn serve_requests<F: Future<Output = ()> + Send + 'static>(
    peer: &RpcPeer,
    incoming: &mut mpsc::Receiver<RpcIncoming>,
    handle: impl Fn(RpcRequest) -> F,
    notified: impl Fn(String, Value),
) {
    let mut running = RunningRequests::default();
    loop {
        tokio::select! {
            // A client that does not read its responses is not read from.
            message = async { peer.wait_for_room().await; incoming.recv().await } => match message {
                None => return,
                Some(RpcIncoming::Request { id, method, params }) => {
                    let interrupted = Arc::new(AtomicBool::new(false));
                    let request = RpcRequest { id: id.clone(), method, params, interrupted: Arc::clone(&interrupted) };
                    running.start(id, interrupted, handle(request));
                }
                Some(RpcIncoming::Cancel { id, interrupt }) => running.cancel(&id, interrupt),
                Some(RpcIncoming::Notification { method, params }) => notified(method, params),
            },
            Some(id) = running.next_unanswered() => {
                let error = Error::new(ErrorKind::Cancelled, "the request was cancelled");
                let _ = peer.respond(&id, Err::<Value, _>(RpcError::from(&error))).await;
            }
        }
    }
}

/// The requests of one connection that are in progress; aborted on drop.
#[derive(Default)]
struct RunningRequests {
    tasks: JoinSet<()>,
    requests: HashMap<task::Id, RpcId>,
    ends: HashMap<RpcId, (AbortHandle, Arc<AtomicBool>)>,
}

impl RunningRequests {
    fn start(&mut self, id: RpcId, interrupted: Arc<AtomicBool>, handler: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks.spawn(handler);
        self.requests.insert(handle.id(), id.clone());
        self.ends.insert(id, (handle, interrupted));
    }

    /// Cancels a request. With `interrupt` what it has started is given up, too; otherwise that goes on for a while, as after
    /// the end of the connection.
    fn cancel(&mut self, id: &RpcId, interrupt: bool) {
        if let Some((handle, interrupted)) = self.ends.get(id) {
            interrupted.store(interrupt, Ordering::SeqCst);
            handle.abort();
        }
    }

    /// Waits for the next request that ended without sending a response.
    async fn next_unanswered(&mut self) -> Option<RpcId> {
        let (task, cancelled) = match self.tasks.join_next_with_id().await? {
            Ok((task, ())) => (task, false),
            Err(error) => (error.id(), error.is_cancelled()),
        };
        let id = self.requests.remove(&task)?;
        self.ends.remove(&id);
        cancelled.then_some(id)
    }
}
