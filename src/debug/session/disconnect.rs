//! Disconnecting from an adapter, and logging what it has refused.

use std::time::Duration;

use tether_dap::types::DisconnectArguments;
use tether_dap::{DapClient, DapError};
use tracing::warn;

/// How long an adapter may take to answer `disconnect`; some never do.
pub const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends `disconnect`, and waits at most [`DISCONNECT_TIMEOUT`] for the response.
pub async fn send_disconnect(client: &DapClient, terminate: bool) {
    let disconnect = DisconnectArguments { terminate_debuggee: Some(terminate) };
    log_error(client.request(&disconnect, DISCONNECT_TIMEOUT).await);
}

/// The response, or `None` after the error has been logged: one refused request does not end what it is part of.
pub fn log_error<T>(outcome: Result<T, DapError>) -> Option<T> {
    outcome.inspect_err(|error| warn!("{error}")).ok()
}
