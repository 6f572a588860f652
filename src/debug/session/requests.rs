//! DAP requests that several tasks of a session send: resume and disconnect.

use std::time::Duration;

use tether_dap::types::{ContinueArguments, DisconnectArguments, NextArguments, StepInArguments, StepOutArguments};
use tether_dap::{DapClient, DapError};
use tracing::warn;

/// How long an adapter may take to answer `disconnect`; some never do.
pub const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How a stopped thread is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the next breakpoint.
    Continue,
    /// One line of the same function.
    Over,
    /// Into the next call.
    Into,
    /// Until the function returns.
    Out,
}

impl Resume {
    /// For readers.
    pub fn name(self) -> &'static str {
        match self {
            Resume::Continue => "continue",
            Resume::Over => "step over",
            Resume::Into => "step into",
            Resume::Out => "step out",
        }
    }

    /// Sends the request for a thread, and waits for the response.
    pub async fn send(self, client: &DapClient, thread_id: i64, limit: Duration) -> Result<(), DapError> {
        match self {
            Resume::Continue => client.request(&ContinueArguments { thread_id }, limit).await.map(drop),
            Resume::Over => client.request(&NextArguments { thread_id }, limit).await.map(drop),
            Resume::Into => client.request(&StepInArguments { thread_id, target_id: None }, limit).await.map(drop),
            Resume::Out => client.request(&StepOutArguments { thread_id }, limit).await.map(drop),
        }
    }
}

/// Sends `disconnect`, and waits at most [`DISCONNECT_TIMEOUT`] for the response.
pub async fn send_disconnect(client: &DapClient, terminate: bool) {
    let disconnect = DisconnectArguments { terminate_debuggee: Some(terminate) };
    log_error(client.request(&disconnect, DISCONNECT_TIMEOUT).await);
}

/// The response, or `None` after the error has been logged: one refused request does not end what it is part of.
pub fn log_error<T>(outcome: Result<T, DapError>) -> Option<T> {
    outcome.inspect_err(|error| warn!("{error}")).ok()
}
