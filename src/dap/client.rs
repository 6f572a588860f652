//! The side that asks: typed requests with deadlines, any number at once; events and the peer's own requests come
//! to one consumer, in order.
//!
//! Must not know what is asked, nor when.

use std::marker::PhantomData;
use std::time::Duration;

use super::connection::DapConnection;
use super::dap_error::DapError;
use super::inbox::DapInbox;
use super::message::{RawJson, parse_body, to_raw_json};
use super::peer::{self, DapPeer, Driver, RequestTicket};
use super::types::DapRequest;

/// A handle to an adapter; clones share the connection. It ends when the last one is dropped.
#[derive(Clone)]
pub struct DapClient(DapPeer);

/// A request that is under way. Dropping it forgets the answer.
pub struct SentRequest<R> {
    ticket: RequestTicket,
    kind: PhantomData<fn() -> R>,
}

impl DapClient {
    /// A client over a connection, what will come in, and the future that drives it.
    pub fn over(connection: DapConnection) -> (DapClient, DapInbox, Driver) {
        let (peer, inbox, driver) = peer::open_peer(connection);
        (DapClient(peer), inbox, driver)
    }

    /// Asks, and waits for the answer. Dropping the future forgets it.
    pub async fn request<R: DapRequest>(&self, request: &R, deadline: Duration) -> Result<R::Response, DapError> {
        let body = self.request_raw(R::COMMAND, encode_arguments(request)?, deadline).await?;
        parse_response::<R>(body)
    }

    /// As [`Client::request`], for what comes from elsewhere and is passed on as it is.
    pub async fn request_raw(
        &self,
        command: &str,
        arguments: Option<RawJson>,
        deadline: Duration,
    ) -> Result<Option<RawJson>, DapError> {
        let asking = async { self.0.send_request(command, arguments).await?.response(deadline).await };
        let asked = tokio::time::timeout(deadline, asking).await;
        asked.map_err(|_| DapError::TimedOut { command: command.to_owned(), after: deadline })?
    }

    /// Asks without waiting for the answer: when this returns, the request is on its way, before any later one.
    /// For `launch` and `attach`, which many adapters answer only after they have been configured.
    pub async fn send_request<R: DapRequest>(&self, request: &R) -> Result<SentRequest<R>, DapError> {
        let ticket = self.0.send_request(R::COMMAND, encode_arguments(request)?).await?;
        Ok(SentRequest { ticket, kind: PhantomData })
    }

    /// Ends the connection: everyone who waits is woken, what is on its way is still written.
    pub fn close(&self) {
        self.0.close();
    }

    /// Resolves when the connection has ended, with the reason.
    pub async fn wait_closed(&self) -> String {
        self.0.wait_closed().await
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Both sides may ask.
impl From<DapPeer> for DapClient {
    fn from(peer: DapPeer) -> DapClient {
        DapClient(peer)
    }
}

impl<R: DapRequest> SentRequest<R> {
    pub async fn response(self, deadline: Duration) -> Result<R::Response, DapError> {
        parse_response::<R>(self.ticket.response(deadline).await?)
    }
}

fn encode_arguments<R: DapRequest>(request: &R) -> Result<Option<RawJson>, DapError> {
    to_raw_json(request).map_err(|cause| DapError::Unsendable { command: R::COMMAND.to_owned(), cause })
}

fn parse_response<R: DapRequest>(body: Option<RawJson>) -> Result<R::Response, DapError> {
    parse_body(body.as_deref()).map_err(|cause| DapError::Unexpected { command: R::COMMAND.to_owned(), cause })
}

#[cfg(test)]
mod tests;
