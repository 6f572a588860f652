//! The side that asks: typed requests with deadlines, any number at once; events and the peer's own requests come
//! to one consumer, in order.
//!
//! Must not know what is asked, nor when.

use std::marker::PhantomData;
use std::time::Duration;

use super::Error;
use super::connection::Connection;
use super::inbox::Inbox;
use super::message::{Raw, raw, read};
use super::peer::{self, Driver, Peer, Ticket};
use super::types::Request;

/// A handle to an adapter; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct Client(Peer);

/// A request that is under way. Dropping it forgets the answer.
pub struct Awaited<R> {
    ticket: Ticket,
    kind: PhantomData<fn() -> R>,
}

impl Client {
    /// A client over a connection, what will come in, and the future that drives it.
    pub fn over(connection: Connection) -> (Client, Inbox, Driver) {
        let (peer, inbox, driver) = peer::over(connection);
        (Client(peer), inbox, driver)
    }

    /// Asks, and waits for the answer. Dropping the future forgets it.
    pub async fn request<R: Request>(&self, request: &R, deadline: Duration) -> Result<R::Answer, Error> {
        let body = self.request_raw(R::COMMAND, write(request)?, deadline).await?;
        answer::<R>(body)
    }

    /// As [`Client::request`], for what comes from elsewhere and is passed on as it is.
    pub async fn request_raw(
        &self,
        command: &str,
        arguments: Option<Raw>,
        deadline: Duration,
    ) -> Result<Option<Raw>, Error> {
        let asking = async { self.0.begin(command, arguments).await?.answer(deadline).await };
        let asked = tokio::time::timeout(deadline, asking).await;
        asked.map_err(|_| Error::TimedOut { command: command.to_owned(), after: deadline })?
    }

    /// Asks without waiting for the answer: when this returns, the request is on its way, before any later one.
    /// For `launch` and `attach`, which many adapters answer only after they have been configured.
    pub async fn begin<R: Request>(&self, request: &R) -> Result<Awaited<R>, Error> {
        let ticket = self.0.begin(R::COMMAND, write(request)?).await?;
        Ok(Awaited { ticket, kind: PhantomData })
    }

    /// Ends the connection: everyone who waits is woken, what is on its way is still written.
    pub fn close(&self) {
        self.0.close();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn closed(&self) -> String {
        self.0.closed().await
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Both sides may ask.
impl From<Peer> for Client {
    fn from(peer: Peer) -> Client {
        Client(peer)
    }
}

impl<R: Request> Awaited<R> {
    pub async fn answer(self, deadline: Duration) -> Result<R::Answer, Error> {
        answer::<R>(self.ticket.answer(deadline).await?)
    }
}

fn write<R: Request>(request: &R) -> Result<Option<Raw>, Error> {
    raw(request).map_err(|cause| Error::Unsendable { command: R::COMMAND.to_owned(), cause })
}

fn answer<R: Request>(body: Option<Raw>) -> Result<R::Answer, Error> {
    read(body.as_deref()).map_err(|cause| Error::Unexpected { command: R::COMMAND.to_owned(), cause })
}

#[cfg(test)]
mod tests;
