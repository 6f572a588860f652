//! An adapter that an editor talks to itself: it is started, connected to and stopped here, and nothing of its messages is read.
//!
//! ```text
//! PreparedRelay::new (checks everything, starts nothing) ─▶ start ─▶ connect, once or more ─▶ stop
//! ```
//! It is stored like a session that is not listed: the next supervisor ends what is left of it. Does not depend on how the
//! editor is connected.

use serde_json::{Map, Value, json};
use tether_base::clock::now_ms;
use tether_base::display_text::break_links;
use tether_base::error::{Error, Result};
use tether_dap::types::StartRequest;
use tokio::io::{AsyncRead, AsyncWrite};

use super::managed_session::CONNECT_TIMEOUT;
use super::registry::SessionRegistry;
use super::session_request::{SessionRequest, locate_adapter};
use super::start::random_suffix;
use super::store::{StoredSession, StoredSessionGuard};
use crate::adapters::{self, AdapterHost, ConnectMethod, LaunchPlan};

/// The two sides of a connection to an adapter.
pub type AdapterStreams = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// An adapter that can be started for an editor. Nothing of it runs yet.
pub struct PreparedRelay {
    /// What is debugged, for readers.
    pub name: String,
    /// The name of the adapter.
    pub adapter: &'static str,
    request: SessionRequest,
    plan: LaunchPlan,
}

/// The first request that starts the debugging of a target, as DAP has it.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterStart {
    /// `launch` or `attach`.
    pub command: &'static str,
    /// The arguments of the request.
    pub arguments: Map<String, Value>,
}

/// A started adapter. Dropping it kills the adapter and what it has started.
pub struct RelayedAdapter {
    /// What debugs the target that was resolved.
    pub start: AdapterStart,
    /// Whether the adapter accepts further connections, for the targets that it requests to be debugged.
    pub accepts_children: bool,
    name: &'static str,
    host: AdapterHost,
    _stored: StoredSessionGuard,
}

impl PreparedRelay {
    /// Finds out how the adapter of a request is started for an editor. Errors: no adapter debugs this, it is not installed,
    /// or its program is missing.
    pub fn new(sessions: &SessionRegistry, mut request: SessionRequest) -> Result<PreparedRelay> {
        let (row, found) = locate_adapter(&request, sessions.adapter_search()?)?;
        if let Some(field) = row.quirks.beside_program_field {
            request.debug_target.fields.insert(field.to_owned(), true.into());
        }
        let plan = row.plan_start(&found, &request.debug_target)?;
        Ok(PreparedRelay { name: request.name.clone(), adapter: row.name, request, plan })
    }

    /// Starts the adapter, and waits until it can be connected to. Errors: with its last output.
    pub async fn start(self, sessions: &SessionRegistry) -> Result<RelayedAdapter> {
        let PreparedRelay { adapter, request, plan, .. } = self;
        let id = format!("relay-{:08x}", random_suffix());
        let launch_id = format!("{}-{id}", sessions.0.launch_id_prefix);
        adapters::verify_target_listener(&request.debug_target).await?;
        let entry = StoredSession {
            id,
            adapter: adapter.to_owned(),
            request: request.without_environment(),
            launch_id: launch_id.clone(),
            started_at: now_ms(),
            listed: false,
            loss: String::new(),
            ended: false,
            host: None,
        };
        // Stored before its first process runs: the next supervisor knows everything that is started.
        let stored = sessions.0.store.add_session(entry).await;
        let accepts_children = !matches!(plan.connect, ConnectMethod::Pipes | ConnectMethod::ConnectBack);
        let host = adapters::start_adapter(adapter, plan, &launch_id, CONNECT_TIMEOUT).await?;
        let (command, arguments) = match host.start.clone() {
            StartRequest::Launch(arguments) => ("launch", arguments),
            StartRequest::Attach(arguments) => ("attach", arguments),
        };
        let start = AdapterStart { command, arguments };
        Ok(RelayedAdapter { start, accepts_children, name: adapter, host, _stored: stored })
    }
}

impl RelayedAdapter {
    /// Opens a connection to it. Errors: it accepts no further one.
    pub async fn connect(&self) -> Result<AdapterStreams> {
        let connected = (self.host.connect)().await;
        let connection =
            connected.map_err(|cause| Error::other(format!("cannot connect to {}", self.name)).because(cause))?;
        Ok(connection.into_streams())
    }

    /// Stops the adapter and everything that it has started, and waits until they have exited. One that has seen the end of
    /// its connection exits by itself first.
    pub async fn stop(self) -> Result<()> {
        self.host.stop().await
    }
}

/// The events that show an editor why its adapter cannot be started: the text, and the end.
pub fn start_failure_events(error: &Error) -> Vec<Vec<u8>> {
    // An editor shows what is important as a notification.
    let output = json!({"category": "important", "output": break_links(&format!("{error}\n"))});
    let events = [(1, "output", output), (2, "terminated", json!({}))];
    let frame = |(seq, event, body): (u32, &str, Value)| {
        let message = json!({"seq": seq, "type": "event", "event": event, "body": body}).to_string();
        format!("Content-Length: {}\r\n\r\n{message}", message.len()).into_bytes()
    };
    events.into_iter().map(frame).collect()
}
