//! The debugger of the wrapped server: the supervisor says how the server is started, attaches the server's session to each new one,
//! and says when it is stopped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};
use tether_wire::rpc::RpcIncoming;
use tokio::sync::{Mutex, mpsc};

use super::wrapped_server::{ServerEvent, ServerEvents};
use crate::api::OperationParams;
use crate::api::debug::DebugStatusParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus};
use crate::api::protocol::{
    ClientCapabilities, DEBUG_DID_CHANGE_STATE, InitializeParams, SERVER_ATTACH, SERVER_PLAN, ServerAttachParams,
    ServerAttached, ServerPlan, ServerPlanParams,
};
use crate::supervisor::connect::{IfNotRunning, SupervisorConnection, SupervisorPaths, connect};
use crate::vocabulary::RunState;

/// Of a server that has started: the session's events belong to no server.
const NO_GENERATION: u64 = 0;

/// Cheap to clone: the clones share the connection.
#[derive(Clone)]
pub(super) struct Debugger {
    /// Of the server.
    name: String,
    workspace: PathBuf,
    events: ServerEvents,
    connection: Arc<Mutex<Option<Arc<SupervisorConnection>>>>,
}

impl Debugger {
    pub fn new(name: Option<String>, command: &[OsString], workspace: &Path, events: &ServerEvents) -> Debugger {
        let name = name.unwrap_or_else(|| server_name(command));
        Debugger { name, workspace: workspace.to_owned(), events: events.clone(), connection: Arc::default() }
    }

    /// The command that waits for its debugger, and its language. Errors: such a program cannot be debugged like this.
    pub async fn plan(&self, command: &[OsString]) -> Result<(Vec<OsString>, String)> {
        let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let plan: ServerPlan = self.call(SERVER_PLAN, &ServerPlanParams { command }).await?;
        Ok((plan.argv.into_iter().map(OsString::from).collect(), plan.language))
    }

    /// Attaches the server's session to the process that listens on this port; the event [`ServerEvent::Attached`] tells the outcome.
    pub fn attach(&self, generation: u64, port: u16, language: String, why: String) {
        let debugger = self.clone();
        tokio::spawn(async move {
            let params = ServerAttachParams { name: debugger.name.clone(), port, language, why };
            let attached = debugger.call(SERVER_ATTACH, &params).await;
            let session = attached.map(|ServerAttached { session_id }| session_id);
            let _ = debugger.events.send((generation, ServerEvent::Attached(session))).await;
        });
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, params: &impl serde::Serialize) -> Result<T> {
        let params = serde_json::to_value(params).doing(|| format!("cannot serialize the parameters of {method}"))?;
        let answer = self.connect().await?.call(method, &params, mpsc::unbounded_channel().0).await?;
        T::deserialize(answer).doing(|| format!("cannot read the result of {method}"))
    }

    /// The connection to the supervisor; opens a new one when the last one has closed.
    /// Boxed: what it starts connects again.
    fn connect(&self) -> BoxFuture<'_, Result<Arc<SupervisorConnection>>> {
        async move {
            let mut slot = self.connection.lock().await;
            if let Some(connection) = slot.as_ref().filter(|connection| !connection.peer.is_closed()) {
                return Ok(Arc::clone(connection));
            }
            let paths = SupervisorPaths::of_workspace(&self.workspace)?;
            let client = InitializeParams {
                name: "tether wrap".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                capabilities: ClientCapabilities { did_change_state: true, ..ClientCapabilities::default() },
                environment: tether_process::caller_environment(),
                wraps: Some(self.name.clone()),
                ..InitializeParams::default()
            };
            let connection = connect(&paths, &client, IfNotRunning::Start).await?;
            let mut connection = connection.ok_or_else(|| Error::other("there is no supervisor"))?;
            let incoming = std::mem::replace(&mut connection.incoming, mpsc::channel(1).1);
            tokio::spawn(self.clone().follow_states(incoming));
            Ok(Arc::clone(slot.insert(Arc::new(connection))))
        }
        .boxed()
    }

    /// Reports each change of a session, over the next supervisor, too.
    async fn follow_states(self, mut incoming: mpsc::Receiver<RpcIncoming>) {
        while let Some(message) = incoming.recv().await {
            let RpcIncoming::Notification { method, params } = message else { continue };
            if method == DEBUG_DID_CHANGE_STATE
                && let Ok(status) = serde_json::from_value(params)
            {
                self.report_state(status).await;
            }
        }
        let known: DebugStatus = self.call(DebugStatusParams::METHOD, &json!({})).await.unwrap_or_default();
        for status in known.sessions.into_iter().flatten().chain(known.session) {
            self.report_state(status).await;
        }
    }

    async fn report_state(&self, status: DebugSessionStatus) {
        let stop = (status.state == RunState::Stopped).then(|| {
            let why = status.stop_reason.as_ref().and_then(|stop| serde_json::to_value(stop.kind).ok());
            let why = why.as_ref().and_then(Value::as_str).map(|why| format!(", {why}")).unwrap_or_default();
            format!(
                "the server is stopped in the debugger (session {}{why}): calls wait until it continues",
                status.session_id
            )
        });
        let state = ServerEvent::SessionState { session: status.session_id, stop };
        let _ = self.events.send((NO_GENERATION, state)).await;
    }
}

/// A name for a server, by its command: `node build/index.js` is `index`, `python -m weather.server` is `weather.server`.
fn server_name(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let is_interpreter = words.first().is_some_and(|program| {
        let name = Path::new(&**program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("node") || name.starts_with("python")
    });
    let module = words.iter().position(|word| word == "-m").and_then(|at| words.get(at + 1));
    let file = words.iter().skip(1).find(|word| !word.starts_with('-'));
    match (module, file) {
        (Some(module), _) if is_interpreter => module.to_string(),
        (None, Some(file)) if is_interpreter => stem(file),
        _ => words.first().map(|program| stem(program)).unwrap_or_default(),
    }
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_program() {
        let check = |command: &str, expect: &str| {
            let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(server_name(&command), expect, "{command:?}");
        };
        check("node --enable-source-maps build/index.js stdio", "index");
        check("python3 -B -m weather.server", "weather.server");
        check("/opt/venv/bin/python server.py", "server");
        check("target/debug/my-server --flag", "my-server");
        check("node", "node");
    }
}
