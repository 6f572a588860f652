//! One debugged target of a connection: the connection's own, a frame or worker of a page, or a worker of Node, whose
//! messages are wrapped in those of its parent.
//!
//! Does not depend on particular commands.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tether_wire::pending::PendingRequests;
use tokio::sync::watch;

use super::cdp_error::CdpError;
use super::client::{CdpClient, CdpCommandResult, CdpEvent, encode_command, parse_message, response_error};
use super::debugger::SendMessageToWorker;
use super::types::CdpCommand;

/// Where the commands for a target are sent; clones share it.
#[derive(Clone)]
pub enum CdpSession {
    /// The connection's own target.
    Own(CdpClient),
    /// A frame or worker of a page, by its flat session.
    Flat(Arc<FlatSession>),
    /// A worker of a Node process, which relays its messages.
    Worker(Arc<WorkerSession>),
}

/// A frame or worker of a page.
pub struct FlatSession {
    client: CdpClient,
    id: String,
    /// Why it has ended.
    closed: watch::Sender<Option<String>>,
}

/// A worker of a Node process.
pub struct WorkerSession {
    parent: CdpClient,
    id: String,
    pending: Arc<PendingRequests<CdpCommandResult>>,
}

impl CdpSession {
    /// Sends a command and waits for its result, within `deadline`.
    pub async fn call<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<C::Response, CdpError> {
        match self {
            CdpSession::Own(client) => client.call(None, command, deadline).await,
            CdpSession::Flat(flat) => flat.call(command, deadline).await,
            CdpSession::Worker(worker) => worker.call(command, deadline).await,
        }
    }

    /// Sends a command and waits, within `deadline`, until the target is certain to take it up before the connection's end: a
    /// worker of Node, once its parent has passed it on; any other, once it has answered.
    pub async fn deliver<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<(), CdpError> {
        match self {
            CdpSession::Worker(worker) => worker.deliver(command, deadline).await,
            other => other.call(command, deadline).await.map(drop),
        }
    }

    /// Sends a command without waiting for its response, in order with all others.
    pub async fn send<C: CdpCommand>(&self, command: &C) -> Result<(), CdpError> {
        match self {
            CdpSession::Own(client) => client.send(None, command).await,
            CdpSession::Flat(flat) => flat.client.send(Some(&flat.id), command).await,
            CdpSession::Worker(worker) => worker.send(command).await,
        }
    }

    /// The target has ended: so do the commands that wait. Those of the connection's own end with it.
    pub fn close(&self, reason: &str) {
        match self {
            CdpSession::Own(_) => {}
            CdpSession::Flat(flat) => drop(flat.closed.send_replace(Some(reason.to_owned()))),
            CdpSession::Worker(worker) => worker.pending.close(reason),
        }
    }
}

impl FlatSession {
    /// A target by the session id of its `attachedToTarget`.
    pub fn new(client: CdpClient, id: String) -> Arc<FlatSession> {
        Arc::new(FlatSession { client, id, closed: watch::Sender::new(None) })
    }

    async fn call<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<C::Response, CdpError> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            called = self.client.call(Some(&self.id), command, deadline) => called,
            // The sender lives as long as this.
            reason = closed.wait_for(Option::is_some) => {
                let reason = reason.ok().and_then(|reason| reason.clone());
                Err(CdpError::Closed(reason.unwrap_or_default()))
            }
        }
    }
}

impl WorkerSession {
    /// A worker by the session id of its `attachedToWorker`.
    pub fn new(parent: CdpClient, id: String) -> Arc<WorkerSession> {
        Arc::new(WorkerSession { parent, id, pending: Arc::default() })
    }

    /// The id of the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Delivers a response to its caller; returns an event.
    pub fn dispatch(&self, message: &str) -> Option<CdpEvent> {
        let message = parse_message(message)?;
        match message.id {
            Some(id) => {
                // A late response finds no request.
                self.pending.complete(id, message.into_result());
                None
            }
            None => message.into_event(),
        }
    }

    async fn deliver<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<(), CdpError> {
        self.parent.call(None, &self.wrap_command(command)?, deadline).await.map(drop)
    }

    async fn send<C: CdpCommand>(&self, command: &C) -> Result<(), CdpError> {
        self.parent.send(None, &self.wrap_command(command)?).await
    }

    /// As [`CdpClient::send_nowait`].
    pub fn send_nowait<C: CdpCommand>(&self, command: &C) {
        if let Ok(send) = self.wrap_command(command) {
            self.parent.send_nowait(None, &send);
        }
    }

    fn wrap_command<C: CdpCommand>(&self, command: &C) -> Result<SendMessageToWorker, CdpError> {
        let id = self.pending.assign_id(|id| id)?;
        let message = encode_command(id, None, C::METHOD, command)?;
        Ok(SendMessageToWorker { message, session_id: self.id.clone() })
    }

    async fn call<C: CdpCommand>(&self, command: &C, deadline: Duration) -> Result<C::Response, CdpError> {
        let called = tokio::time::timeout(deadline, self.send_and_wait(command)).await;
        let raw = called.map_err(|_| CdpError::TimedOut { what: C::METHOD.to_owned(), after: deadline })??;
        serde_json::from_str(raw.get())
            .map_err(|cause| CdpError::Unexpected { what: C::METHOD.to_owned(), cause: cause.to_string() })
    }

    async fn send_and_wait<C: CdpCommand>(&self, command: &C) -> Result<Box<RawValue>, CdpError> {
        let (mut request, ()) = self.pending.register((), |_| ())?;
        let message = encode_command(request.id(), None, C::METHOD, command)?;
        let send = SendMessageToWorker { message, session_id: self.id.clone() };
        self.parent.send(None, &send).await?;
        tokio::select! {
            response = request.response() => response?.map_err(|error| response_error(C::METHOD, error)),
            reason = self.parent.wait_closed() => Err(CdpError::Closed(reason)),
        }
    }
}
