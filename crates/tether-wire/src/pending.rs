//! The requests of one connection that wait for their response: one table for DAP, CDP and JSON-RPC.
//!
//! An id is registered before its request is sent, since the response may arrive before the send returns. Dropping a
//! [`PendingRequest`] (timeout, cancelled caller) removes it, so a late, repeated or unknown response finds no entry.
//! Closing the table ends every pending request with the reason. Does not depend on any message format.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tether_base::sync::lock;
use tokio::sync::{oneshot, watch};

/// The id of a response that cannot be read as a whole, so that its request does not wait until its deadline: the number in the
/// field `id` of an object that has none of the fields `of_others`, by which the protocol's other messages are known.
pub fn find_response_id(body: &[u8], id: &str, of_others: &[&str]) -> Option<i64> {
    let message: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    let is_other = of_others.iter().any(|field| message.contains_key(*field));
    message.get(id).filter(|_| !is_other)?.as_i64()
}

/// The reason where this side has closed the connection, or has dropped it.
pub const CLOSED_BY_US: &str = "it was closed by us";

/// The pending requests of a connection. `T` is a response; `C` is kept with a request until then.
pub struct PendingRequests<T, C = ()> {
    table: Mutex<PendingTable<T, C>>,
    /// Why the connection has ended; set before the pending requests are ended.
    closed: watch::Sender<Option<String>>,
}

struct PendingTable<T, C> {
    last_id: i64,
    entries: HashMap<i64, (oneshot::Sender<T>, C)>,
}

/// The connection has ended; the text is the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed(pub String);

/// One registered request. Dropping it removes it from the table.
pub struct PendingRequest<T, C = ()> {
    id: i64,
    response: oneshot::Receiver<T>,
    requests: Arc<PendingRequests<T, C>>,
}

impl<T, C> Default for PendingRequests<T, C> {
    fn default() -> Self {
        let table = PendingTable { last_id: 0, entries: HashMap::new() };
        PendingRequests { table: Mutex::new(table), closed: watch::Sender::new(None) }
    }
}

impl<T, C> PendingRequests<T, C> {
    /// Registers a request under the next id. `build` is called with the id while the table is locked: what it queues
    /// goes out in the order of the ids.
    pub fn register<R>(
        self: &Arc<Self>,
        context: C,
        build: impl FnOnce(i64) -> R,
    ) -> Result<(PendingRequest<T, C>, R), Closed> {
        let (sender, response) = oneshot::channel();
        let (id, built) = self.build_with_next_id(|table, id| {
            table.entries.insert(id, (sender, context));
            (id, build(id))
        })?;
        Ok((PendingRequest { id, response, requests: Arc::clone(self) }, built))
    }

    /// As [`PendingRequests::register`], for a message whose response is not awaited.
    pub fn assign_id<R>(&self, build: impl FnOnce(i64) -> R) -> Result<R, Closed> {
        self.build_with_next_id(|_, id| build(id))
    }

    /// Delivers a response. Returns `false` when the request is not pending (any more), which is normal.
    pub fn complete(&self, id: i64, response: T) -> bool {
        let entry = self.lock().entries.remove(&id);
        entry.is_some_and(|(sender, _)| sender.send(response).is_ok())
    }

    /// Reads what is kept with a pending request.
    pub fn with_context<R>(&self, id: i64, read: impl FnOnce(&C) -> R) -> Option<R> {
        self.lock().entries.get(&id).map(|(_, context)| read(context))
    }

    /// Ends all pending requests; later ones fail at once. The first reason counts.
    pub fn close(&self, reason: &str) {
        // The reason first: an ended request reads it.
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| reason.to_owned());
            first
        });
        let ended = std::mem::take(&mut self.lock().entries);
        drop(ended);
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// Why the connection has ended (or is about to).
    pub fn close_reason(&self) -> String {
        self.closed.borrow().clone().unwrap_or_else(|| CLOSED_BY_US.to_owned())
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        let mut closed = self.closed.subscribe();
        // The sender is in `self`: the wait can only end with a reason.
        let _ = closed.wait_for(Option::is_some).await;
        self.close_reason()
    }

    /// How many requests are pending.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether no request is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn build_with_next_id<R>(&self, build: impl FnOnce(&mut PendingTable<T, C>, i64) -> R) -> Result<R, Closed> {
        let mut table = self.lock();
        // Under the lock: an entry that is added before the close is ended by it.
        if self.is_closed() {
            return Err(Closed(self.close_reason()));
        }
        let id = table.last_id.saturating_add(1);
        table.last_id = id;
        Ok(build(&mut table, id))
    }

    fn lock(&self) -> MutexGuard<'_, PendingTable<T, C>> {
        lock(&self.table)
    }
}

impl<T, C> PendingRequest<T, C> {
    /// The id to be sent with the request.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Waits for the response. Cancel-safe. Errors: the connection has ended.
    pub async fn response(&mut self) -> Result<T, Closed> {
        (&mut self.response).await.map_err(|_| Closed(self.requests.close_reason()))
    }

    /// Removes it from the table. Returns whether it was still pending.
    pub fn forget(&self) -> bool {
        self.requests.lock().entries.remove(&self.id).is_some()
    }
}

impl<T, C> Drop for PendingRequest<T, C> {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(requests: &Arc<PendingRequests<&'static str>>) -> PendingRequest<&'static str> {
        requests.register((), |_| ()).unwrap().0
    }

    #[tokio::test]
    async fn each_response_reaches_its_own_request_once() {
        let requests = Arc::new(PendingRequests::default());
        let (mut first, mut second) = (register(&requests), register(&requests));
        assert!(requests.complete(second.id(), "second") && requests.complete(first.id(), "first"));
        assert_eq!((first.response().await, second.response().await), (Ok("first"), Ok("second")));
        assert!(!requests.complete(first.id(), "repeated") && !requests.complete(99, "unknown"));
        assert_eq!(requests.assign_id(|id| id), Ok(3));
    }

    #[test]
    fn a_dropped_request_is_removed_and_its_late_response_is_ignored() {
        let requests = Arc::new(PendingRequests::default());
        let request = register(&requests);
        let id = request.id();
        drop(request);
        assert!(requests.is_empty() && !requests.complete(id, "late"));
    }

    #[tokio::test]
    async fn closing_ends_every_request_with_the_first_reason() {
        let requests = Arc::new(PendingRequests::default());
        let (mut pending, mut completed) = (register(&requests), register(&requests));
        requests.complete(completed.id(), "in time");
        requests.close("the peer closed it");
        requests.close("later");
        let closed = Closed("the peer closed it".to_owned());
        assert_eq!((pending.response().await, completed.response().await), (Err(closed.clone()), Ok("in time")));
        assert_eq!(requests.register((), |_| ()).err(), Some(closed));
        assert_eq!(requests.wait_closed().await, "the peer closed it");
        assert!(requests.is_closed() && requests.is_empty());
    }
}
