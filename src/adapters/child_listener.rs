//! Accepts the connections of a program's own children: each connects to the address to which the program has connected,
//! and waits there for its first request.
//!
//! Does not depend on what becomes of them.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use futures_util::future::BoxFuture;
use tether_dap::types::StartRequest;
use tether_dap::{DapClient, DapConnection, DapError, DapInbox, Driver};
use tether_process::accept_own_user;
use tokio::net::TcpListener;

/// How the children of a program are debugged.
#[derive(Clone, Debug)]
pub struct ChildPlan {
    /// The first request to each of them.
    pub start: StartRequest,
    /// Requests over a new connection which process it is.
    pub identify: fn(DapClient) -> BoxFuture<'static, Result<ChildIdentity, DapError>>,
    /// Whether a process that runs this executable may be a child that connects.
    pub may_connect: fn(&Path) -> bool,
}

/// Which process has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildIdentity {
    /// Its process id.
    pub pid: u32,
    /// The process that has started it, where that is known.
    pub parent_pid: Option<u32>,
}

/// A child that has connected and is identified. It waits for its first request.
pub struct OpenedChild {
    /// Which process it is.
    pub identity: ChildIdentity,
    /// Sends requests to it.
    pub client: DapClient,
    /// Receives its events.
    pub inbox: DapInbox,
    /// Drives the connection.
    pub driver: Driver,
}

/// Listens for the children of one program. Dropping it refuses further ones.
pub struct ChildListener {
    listener: TcpListener,
    /// How each child is debugged.
    pub plan: ChildPlan,
}

impl ChildListener {
    /// Goes on with the listener to which the program has connected.
    pub(super) fn new(listener: TcpListener, plan: ChildPlan) -> ChildListener {
        ChildListener { listener, plan }
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Resolves with the next connection of a process of our user. Cancel-safe. Errors: most likely there is no descriptor for
    /// it, and it still waits.
    pub async fn accept(&self) -> io::Result<DapConnection> {
        DapConnection::tcp(accept_own_user(&self.listener).await?)
    }

    /// Finds out which process has connected. Errors: it has closed the connection, or does not respond in time.
    pub fn identify(
        &self,
        connection: DapConnection,
    ) -> impl Future<Output = Result<OpenedChild, DapError>> + Send + 'static {
        let identify = self.plan.identify;
        async move {
            let (client, inbox, mut driver) = DapClient::over(connection);
            let identity = tokio::select! {
                identity = identify(client.clone()) => identity?,
                reason = &mut driver => return Err(DapError::Closed(reason)),
            };
            Ok(OpenedChild { identity, client, inbox, driver })
        }
    }
}
