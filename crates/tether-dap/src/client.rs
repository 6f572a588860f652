//! The client side of DAP: typed requests with deadlines, any number at once; events and reverse requests of the
//! adapter go to one consumer, in order.
//!
//! Does not depend on which requests are sent, or when.

use std::marker::PhantomData;
use std::time::Duration;

use super::dap_error::DapError;
use super::message::{RawJson, parse_body, to_raw_json};
use super::peer::{DapPeer, RequestTicket};
use super::types::DapRequest;

/// A handle to an adapter.
pub type DapClient = DapPeer;

/// A request that has been sent. Dropping it ignores the response.
pub struct SentRequest<R> {
    ticket: RequestTicket,
    kind: PhantomData<fn() -> R>,
}

impl DapPeer {
    /// Sends a request and waits for the response, all within `deadline`. Dropping the future ignores the response.
    pub async fn request<R: DapRequest>(&self, request: &R, deadline: Duration) -> Result<R::Response, DapError> {
        let body = self.request_raw(R::COMMAND, encode_arguments(request)?, deadline).await?;
        parse_response::<R>(body)
    }

    /// As [`DapClient::request`], for a request that is forwarded without being parsed.
    pub async fn request_raw(
        &self,
        command: &str,
        arguments: Option<RawJson>,
        deadline: Duration,
    ) -> Result<Option<RawJson>, DapError> {
        let exchange = async { self.send_raw_request(command, arguments).await?.response(deadline).await };
        let finished = tokio::time::timeout(deadline, exchange).await;
        finished.map_err(|_| DapError::TimedOut { command: command.to_owned(), after: deadline })?
    }

    /// Sends a request without waiting for the response: when this returns, it is queued before any later one.
    /// For `launch` and `attach`, to which many adapters respond only after `configurationDone`.
    pub async fn send_request<R: DapRequest>(&self, request: &R) -> Result<SentRequest<R>, DapError> {
        let ticket = self.send_raw_request(R::COMMAND, encode_arguments(request)?).await?;
        Ok(SentRequest { ticket, kind: PhantomData })
    }
}

impl<R: DapRequest> SentRequest<R> {
    /// Waits for the response. Errors: an error response, the deadline, the end of the connection.
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
