//! A request of the peer: a reverse request of an adapter (`runInTerminal`, `startDebugging`), or a request of an
//! editor. It gets exactly one response. Does not depend on how that is sent.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::message::{ErrorResponse, RawJson, ResponseResult, parse_body, to_raw_json};

type SendResponse = Box<dyn FnOnce(&str, ResponseResult) + Send + Sync>;

/// A request of the peer. It is always responded to: dropping it sends an error response.
pub struct IncomingRequest {
    /// As in the protocol: `runInTerminal`, …
    pub command: String,
    /// As the peer has sent them.
    pub arguments: Option<RawJson>,
    /// `None` once the response is sent.
    send_response: Option<SendResponse>,
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IncomingRequest({} {:?})", self.command, self.arguments)
    }
}

impl IncomingRequest {
    /// `send_response` is called once, with the command and the result.
    pub(super) fn new(
        command: String,
        arguments: Option<RawJson>,
        send_response: impl FnOnce(&str, ResponseResult) + Send + Sync + 'static,
    ) -> IncomingRequest {
        IncomingRequest { command, arguments, send_response: Some(Box::new(send_response)) }
    }

    /// The arguments as `T`; the error is the reason why not.
    pub fn read_arguments<T: DeserializeOwned>(&self) -> Result<T, String> {
        parse_body(self.arguments.as_deref())
    }

    /// Sends a success response; a `null` body is left out.
    pub fn respond(self, body: &impl Serialize) {
        let body =
            to_raw_json(body).map_err(|cause| ErrorResponse::new(format!("cannot encode the response: {cause}")));
        self.send(body);
    }

    /// Sends an error response.
    pub fn respond_error(self, error: ErrorResponse) {
        self.send(Err(error));
    }

    pub(super) fn argument_bytes(&self) -> usize {
        self.arguments.as_ref().map_or(0, |arguments| arguments.get().len())
    }

    fn send(mut self, result: ResponseResult) {
        if let Some(send_response) = self.send_response.take() {
            send_response(&self.command, result);
        }
    }
}

impl Drop for IncomingRequest {
    fn drop(&mut self) {
        if let Some(send_response) = self.send_response.take() {
            let error = ErrorResponse::new(format!("{} is not supported here", self.command));
            send_response(&self.command, Err(error));
        }
    }
}
