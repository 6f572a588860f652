//! The connection by which the supervisor knows that saves are to refresh the window, made again where the supervisor was replaced.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tether_wire::rpc::RpcIncoming;
use tokio::sync::mpsc;

use crate::api::protocol::{ClientCapabilities, InitializeParams};
use crate::api::{OperationEffect, OperationParams, find_operation};
use crate::frontends::cli::{connect_to_supervisor_as, initialize_params};
use crate::frontends::repeated_call;
use crate::supervisor::connect::{IfNotRunning, SupervisorConnection};

/// Shared by the calls that run at the same time.
pub struct WatchConnection {
    workspace: PathBuf,
    current: tokio::sync::Mutex<Option<Arc<SupervisorConnection>>>,
    /// Notifications of the newest connection, until somebody takes them.
    incoming: Mutex<Option<mpsc::Receiver<RpcIncoming>>>,
}

impl WatchConnection {
    pub fn of(workspace: &Path) -> Arc<WatchConnection> {
        let (current, incoming) = (tokio::sync::Mutex::default(), Mutex::default());
        Arc::new(WatchConnection { workspace: workspace.to_owned(), current, incoming })
    }

    async fn connect(&self) -> Result<Arc<SupervisorConnection>> {
        let mut current = self.current.lock().await;
        if let Some(known) = current.as_ref().filter(|known| !known.peer.is_closed()) {
            return Ok(Arc::clone(known));
        }
        let client = initialize_params(IfNotRunning::Start);
        let capabilities = ClientCapabilities { refresh_on_save: true, did_change_state: true, ..client.capabilities };
        let client = InitializeParams { capabilities, ..client };
        let mut connection = connect_to_supervisor_as(&self.workspace, &client).await?;
        *lock(&self.incoming) = Some(std::mem::replace(&mut connection.incoming, mpsc::channel(1).1));
        let connection = Arc::new(connection);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// What the supervisor notifies of from now on; ends with the connection. Errors: there is no supervisor.
    pub async fn notifications(&self) -> Result<mpsc::Receiver<RpcIncoming>> {
        loop {
            let connection = self.connect().await?;
            if let Some(incoming) = lock(&self.incoming).take() {
                return Ok(incoming);
            }
            // Somebody has them already, and they have ended: this connection ends, too.
            connection.peer.wait_closed().await;
        }
    }

    /// Calls an operation, over the next supervisor where this one has exited. Errors: those of the operation.
    pub async fn call<P: OperationParams>(&self, params: &P) -> Result<P::Result> {
        self.call_with_progress(params, mpsc::unbounded_channel().0).await
    }

    /// As `call`; its progress goes to `progress`.
    pub async fn call_with_progress<P: OperationParams>(
        &self,
        params: &P,
        progress: mpsc::UnboundedSender<Value>,
    ) -> Result<P::Result> {
        let unreadable = |cause: serde_json::Error| Error::other(format!("cannot read {}", P::METHOD)).because(cause);
        let operation =
            find_operation(P::METHOD).ok_or_else(|| Error::other(format!("there is no operation {}", P::METHOD)))?;
        let params = serde_json::to_value(params).map_err(unreadable)?;
        let is_repeated = |effect: OperationEffect| effect.is_repeatable();
        let answer =
            repeated_call::call_operation(operation, &params, &progress, is_repeated, || self.connect()).await?;
        serde_json::from_value(answer).map_err(unreadable)
    }

    /// Requests what is no operation.
    pub async fn request(&self, method: &str, params: &Value) -> Result<Value> {
        self.connect().await?.call(method, params, mpsc::unbounded_channel().0).await
    }
}
