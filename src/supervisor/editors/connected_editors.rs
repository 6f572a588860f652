//! The editors, hosts and window bridges that are connected, from `initialize` to the end of their connection; requests to
//! them.
//!
//! A late response is ignored: the request was cancelled at its deadline. Does not depend on any method.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::lock;
use tether_process::LAUNCH_ID;
use tether_wire::rpc::{CallError, RpcPeer};
use tokio::sync::watch;
use tokio::time::timeout;

use super::bounded_answer::bound_answer;
use crate::api::protocol::{ClientRole, InitializeParams};

/// One connection whose other end answers requests.
pub struct ConnectedEditor {
    pub client: InitializeParams,
    /// Of a window bridge: the launch of the window that it is in, as it reports it, or by its environment.
    pub launch_id: Option<String>,
    peer: RpcPeer,
}

impl ConnectedEditor {
    /// Sends a request, and waits for the result, which is bounded, at most until the deadline; then the request is cancelled. Errors:
    /// [`ErrorKind::TimedOut`], the editor's own error, or the end of its connection.
    pub async fn send_request(&self, method: &str, params: &Value, deadline: Duration) -> Result<Value> {
        let name = &self.client.name;
        match timeout(deadline, self.peer.call(method, params)).await {
            Ok(Ok(result)) => Ok(bound_answer(result)),
            Ok(Err(CallError::Failed(error))) => {
                Err(Error::other(format!("{method} failed in {name}")).because(error.message))
            }
            Ok(Err(closed)) => Err(Error::other(format!("{method} was not answered by {name}")).because(closed)),
            Err(_) => {
                let within = humantime::format_duration(deadline);
                Err(Error::new(ErrorKind::TimedOut, format!("{method} was not answered by {name}"))
                    .because(format!("no response within {within}")))
            }
        }
    }

    /// Resolves when its connection has ended.
    pub async fn wait_closed(&self) {
        self.peer.wait_closed().await;
    }
}

#[derive(Default)]
struct EditorTable {
    last_id: u64,
    editors: BTreeMap<u64, Arc<ConnectedEditor>>,
}

/// All connections that answer requests. Later ones have higher ids.
#[derive(Default)]
pub struct ConnectedEditors {
    table: Arc<Mutex<EditorTable>>,
    /// Rises with each change.
    changed: watch::Sender<u64>,
}

/// Removes the entry of a connection when it is dropped.
pub struct EditorRegistration {
    table: Arc<Mutex<EditorTable>>,
    changed: watch::Sender<u64>,
    id: u64,
}

impl Drop for EditorRegistration {
    fn drop(&mut self) {
        lock(&self.table).editors.remove(&self.id);
        self.changed.send_modify(|count| *count += 1);
    }
}

impl ConnectedEditors {
    /// Adds a connection until the returned value is dropped. `None`: a front end that answers no requests.
    pub fn register(&self, client: &InitializeParams, peer: &RpcPeer, pid: Option<u32>) -> Option<EditorRegistration> {
        let answers = client.role != ClientRole::Client || client.is_host() || client.capabilities.start_debug_session;
        if !answers {
            return None;
        }
        let mut table = lock(&self.table);
        table.last_id += 1;
        let id = table.last_id;
        let launch_id = client.launch_id.clone().or_else(|| read_launch_id(client.role, pid?));
        let editor = ConnectedEditor { client: client.clone(), launch_id, peer: peer.clone() };
        table.editors.insert(id, Arc::new(editor));
        drop(table);
        self.changed.send_modify(|count| *count += 1);
        Some(EditorRegistration { table: Arc::clone(&self.table), changed: self.changed.clone(), id })
    }

    /// The newest connection of those for which `fits` is true.
    pub fn find_newest(&self, fits: impl Fn(&ConnectedEditor) -> bool) -> Option<Arc<ConnectedEditor>> {
        lock(&self.table).editors.values().rev().find(|editor| fits(editor)).cloned()
    }

    /// A count that rises when a connection is added or removed.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

fn read_launch_id(role: ClientRole, pid: u32) -> Option<String> {
    let value = (role == ClientRole::WindowBridge).then(|| tether_process::read_environment_value(pid, LAUNCH_ID));
    value?.ok()??.into_string().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{duplex, split};
    use tokio::sync::mpsc;

    use super::*;
    use tether_wire::rpc::{RpcError, RpcIncoming, open_connection};

    fn connect() -> (RpcPeer, RpcPeer, mpsc::Receiver<RpcIncoming>) {
        let (ours, theirs) = duplex(4096);
        let open = |stream| {
            let (read, write) = split(stream);
            let (peer, incoming, driver) = open_connection(read, write);
            tokio::spawn(driver);
            (peer, incoming)
        };
        let ((ours, _), (theirs, incoming)) = (open(ours), open(theirs));
        (ours, theirs, incoming)
    }

    fn editor(name: &str) -> InitializeParams {
        InitializeParams { name: name.to_owned(), role: ClientRole::Editor, ..InitializeParams::default() }
    }

    #[tokio::test]
    async fn an_editor_is_listed_until_its_connection_ends() {
        let editors = ConnectedEditors::default();
        let (peer, ..) = connect();
        assert!(editors.register(&InitializeParams::default(), &peer, None).is_none());
        let first = editors.register(&editor("first"), &peer, None).unwrap();
        let second = editors.register(&editor("second"), &peer, Some(1)).unwrap();
        let newest = || editors.find_newest(|_| true).map(|it| it.client.name.clone());
        assert_eq!(newest().as_deref(), Some("second"));
        drop(second);
        assert_eq!(newest().as_deref(), Some("first"));
        drop(first);
        assert_eq!(newest(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_a_deadline_and_a_late_response_is_ignored() {
        let editors = ConnectedEditors::default();
        let (peer, theirs, mut incoming) = connect();
        let _registration = editors.register(&editor("nvim"), &peer, None);
        let nvim = editors.find_newest(|_| true).unwrap();
        let params = json!({"port": 1});
        let asked = nvim.send_request("startDebugSession", &params, Duration::from_secs(5));
        let error = asked.await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TimedOut);
        assert!(error.to_string().contains("startDebugSession was not answered by nvim"), "{error}");
        let Some(RpcIncoming::Request { id, .. }) = incoming.recv().await else { panic!("no request") };
        assert!(matches!(incoming.recv().await, Some(RpcIncoming::Cancel { id: cancelled, .. }) if cancelled == id));
        theirs.respond(&id, Ok(json!(1))).await.unwrap();
        let next = tokio::spawn(async move { nvim.send_request("next", &json!({}), Duration::from_secs(5)).await });
        let Some(RpcIncoming::Request { id, .. }) = incoming.recv().await else { panic!("no request") };
        theirs.respond(&id, Err::<Value, _>(RpcError::plain(-32601, "what?"))).await.unwrap();
        let error = next.await.unwrap().unwrap_err().to_string();
        assert_eq!(error, "next failed in nvim\n  because: what?");
    }
}
