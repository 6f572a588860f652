//! One connection of a front end: handshake, concurrent requests, close.
//!
//! Does not depend on what an operation does: that is `dispatch`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use serde_json::Value;
use tether_base::error::{Error, Result};
use tether_wire::frames::ContentLength;
use tether_wire::rpc::{
    RpcError, RpcId, RpcIncoming, RpcPeer, RpcRequest, open_connection, read_single_params, serve_requests,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::codec::Encoder;
use tracing::{info, warn};

use super::context::SupervisorContext;
use super::dispatch::dispatch;
use super::editors::methods::{call_editor_method, is_editor_method};
use super::notifications::{notify_console, notify_sessions, notify_timeline, notify_window};
use super::operation_call::OperationCall;
use super::wrapped_servers::{call_server_method, is_server_method, release_server};
use crate::api::protocol::{ClientRole, INITIALIZE, InitializeParams, InitializeResult, SHUTDOWN};

/// How long a front end may take to send `initialize`: it keeps the supervisor running until then.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a front end may take to read that the supervisor exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long another user's client may take to read why it is rejected.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of its input is discarded meanwhile.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;

/// Serves one connection until it closes; its requests are cancelled then.
pub(super) async fn serve_connection(supervisor: Arc<SupervisorContext>, stream: UnixStream) {
    let us = rustix::process::getuid().as_raw();
    let pid = match stream.peer_cred() {
        Ok(peer) if peer.uid() == us => peer.pid().map(i32::cast_unsigned),
        other => {
            warn!("refused a connection of another user: {other:?}");
            return reject_connection(stream, us).await;
        }
    };
    let (read, write) = stream.into_split();
    let (peer, mut incoming, driver) = open_connection(read, write);
    let driver = tokio::spawn(driver);
    let _count = CountGuard::new(&supervisor.connections);
    let Some(mut client) = handshake(&supervisor, (&peer, pid), &mut incoming).await else {
        drop(peer);
        return driver.abort();
    };
    let (name, server) = (client.name.clone(), client.wraps.take());
    let environment = tether_process::differing_variables(std::mem::take(&mut client.environment));
    let _refreshes = client.capabilities.refresh_on_save.then(|| CountGuard::new(&supervisor.save_refreshers));
    let _registered = supervisor.editors.connected.register(&client, &peer, pid);
    {
        // Aborted when this function returns.
        let mut notifiers = JoinSet::new();
        notifiers.spawn(notify_console(supervisor.window.clone(), peer.clone(), client.clone()));
        notifiers.spawn(notify_timeline(supervisor.timeline().clone(), peer.clone(), client.clone()));
        notifiers.spawn(notify_sessions(Arc::clone(&supervisor), peer.clone(), client.clone()));
        notifiers.spawn(notify_window(Arc::clone(&supervisor), peer.clone(), client));
        let client = Arc::new(CallingClient { name: name.clone(), environment });
        let handle = |request| handle_request(Arc::clone(&supervisor), peer.clone(), Arc::clone(&client), request);
        serve_requests(&peer, &mut incoming, handle, |method, _| info!("ignored notification {method}")).await;
    }
    drop(peer);
    if let Some(server) = server {
        release_server(&supervisor, &server).await;
    }
    // Its requests have ended because it has.
    let reason = driver.await.unwrap_or_else(|error| error.to_string());
    info!(name, "front end disconnected: {reason}");
}

/// Sends the reason before closing, and discards the input. (A socket that is closed with unread input resets the
/// connection, and the client would see a broken pipe instead of the reason.)
async fn reject_connection(mut stream: UnixStream, us: u32) {
    let error = Error::other("this supervisor rejects other users")
        .because(format!("it belongs to user {us}"))
        .hint("work in a workspace of your own, or as that user");
    let message = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": RpcError::from(&error) });
    let mut frame = BytesMut::new();
    if ContentLength::default().encode(Bytes::from(message.to_string()), &mut frame).is_err() {
        return;
    }
    let (mut read, mut write) = stream.split();
    let part = async {
        write.write_all(&frame).await?;
        write.shutdown().await?;
        tokio::io::copy(&mut (&mut read).take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await
    };
    // A client that does not read it in time gets no reason.
    let _ = timeout(REJECTION_TIMEOUT, part).await;
}

/// Counts a connection or a request until it is dropped.
struct CountGuard<'a>(&'a watch::Sender<usize>);

impl CountGuard<'_> {
    fn new(count: &watch::Sender<usize>) -> CountGuard<'_> {
        count.send_modify(|n| *n += 1);
        CountGuard(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

/// Handles the first message, which must be `initialize`. `None`: the connection is to be closed.
async fn handshake(
    supervisor: &SupervisorContext,
    (peer, pid): (&RpcPeer, Option<u32>),
    incoming: &mut mpsc::Receiver<RpcIncoming>,
) -> Option<InitializeParams> {
    let (id, method, params) = receive_first_request(incoming).await?;
    let params = Some(read_single_params(params)).filter(|_| method == INITIALIZE);
    let client: Option<InitializeParams> = params.and_then(|params| serde_json::from_value(params).ok());
    let Some(client) = client else {
        let error = Error::usage(format!("the first message must be `{INITIALIZE}` with name and version"))
            .because(format!("it was `{method}`"));
        let _ = peer.respond(&id, Err::<Value, _>(RpcError::from(&error))).await;
        return None;
    };
    let replaces = || pid.is_some_and(|pid| supervisor.exits_for_replacement(pid));
    let is_newer = is_newer(&client.version, env!("CARGO_PKG_VERSION"));
    // A window bridge starts no supervisor, and has a version of its own.
    let starts_one = client.role != ClientRole::WindowBridge;
    let draining = starts_one && (is_newer || (!client.capabilities.keeps_supervisor && replaces()));
    let result = InitializeResult {
        name: "devtether".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        workspace: supervisor.paths.workspace.to_string_lossy().into_owned(),
        draining,
    };
    peer.respond(&id, Ok(result)).await.ok()?;
    info!(name = client.name, version = client.version, "front end connected");
    if draining {
        exit_for_newer_front_end(supervisor, &client).await;
    }
    Some(client)
}

/// The first message, where it is a request and comes in time.
async fn receive_first_request(incoming: &mut mpsc::Receiver<RpcIncoming>) -> Option<(RpcId, String, Value)> {
    match timeout(HANDSHAKE_TIMEOUT, incoming.recv()).await {
        Ok(Some(RpcIncoming::Request { id, method, params })) => Some((id, method, params)),
        Ok(_) => None,
        Err(_) => {
            info!("closed a connection that has not sent `{INITIALIZE}` within {HANDSHAKE_TIMEOUT:?}");
            None
        }
    }
}

/// Asks the supervisor to exit. Does not return: the connection stays open until the process exits, since the front end
/// waits for that.
async fn exit_for_newer_front_end(supervisor: &SupervisorContext, client: &InitializeParams) {
    info!("front end {} is a newer program, version {}: draining", client.name, client.version);
    supervisor.shutdown.notify_one();
    std::future::pending::<()>().await;
}

/// Whether version `a` is newer than `b`, by their numbers.
fn is_newer(a: &str, b: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).take(3).collect()
    };
    numbers(a) > numbers(b)
}

/// The front end of a connection.
struct CallingClient {
    name: String,
    /// Where its environment differs from ours.
    environment: BTreeMap<String, String>,
}

async fn handle_request(
    supervisor: Arc<SupervisorContext>,
    peer: RpcPeer,
    client: Arc<CallingClient>,
    RpcRequest { id, method, params, interrupted }: RpcRequest,
) {
    let started = Instant::now();
    let _count = CountGuard::new(&supervisor.requests);
    let outcome = match method.as_str() {
        SHUTDOWN => match prepare_shutdown(&supervisor, &read_single_params(params)).await {
            Ok(()) => {
                // Also when the front end does not wait for the response.
                let _exits = NotifyOnDrop(&supervisor.shutdown);
                // Written before the exit, which drops what is still to be sent.
                let _ = timeout(FLUSH_TIMEOUT, peer.respond_and_flush(&id, Ok(Value::Null))).await;
                return;
            }
            Err(error) => Err(error),
        },
        method => {
            let params = read_single_params(params);
            if is_server_method(method) {
                call_server_method(&supervisor, method, params).await
            } else if is_editor_method(method) {
                call_editor_method(&supervisor, method, params).await
            } else {
                let CallingClient { name: client, environment } = &*client;
                let (peer, id, interrupted) = (&peer, &id, &interrupted);
                let call = OperationCall { method, client, environment, params, peer, id, started, interrupted };
                dispatch(&supervisor, &call).await
            }
        }
    };
    if let Err(error) = &outcome {
        info!("{method} failed: {error}");
    }
    let _ = peer.respond(&id, outcome.map_err(|error| RpcError::from(&error))).await;
}

/// Notifies when it is dropped.
struct NotifyOnDrop<'a>(&'a Notify);

impl Drop for NotifyOnDrop<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Ends what is to be ended before the supervisor exits. Errors: it is not to exit now.
async fn prepare_shutdown(supervisor: &SupervisorContext, params: &Value) -> Result<()> {
    let is_set = |name: &str| params.get(name) == Some(&Value::Bool(true));
    if is_set("all") || is_set("unlessBusy") {
        supervisor.wait_until_settled(None).await;
    }
    if is_set("all") {
        supervisor.hosted.end_all().await;
    }
    match supervisor.interrupted_by_exit().filter(|_| is_set("unlessBusy")) {
        Some(why) => {
            let error = Error::other("cannot end the supervisor now").because(why);
            Err(error.hint("`tether upgrade --now` does it nevertheless"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_nothing_is_given_up() {
        let (sender, mut incoming) = mpsc::channel(1);
        assert!(receive_first_request(&mut incoming).await.is_none());
        let (id, method) = (RpcId::Number(1), INITIALIZE.to_owned());
        sender
            .send(RpcIncoming::Request { id: id.clone(), method: method.clone(), params: Value::Null })
            .await
            .unwrap();
        assert_eq!(receive_first_request(&mut incoming).await, Some((id, method, Value::Null)));
        drop(sender);
        assert!(receive_first_request(&mut incoming).await.is_none());
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let check = |a, b, expect| assert_eq!(is_newer(a, b), expect, "{a} over {b}");
        check("0.1.0", "0.1.0", false);
        check("0.1.1", "0.1.0", true);
        check("0.10.0", "0.9.9", true);
        check("0.1.0-rc.1", "0.1.0", false);
        check("1", "0.9.9", true);
        check("nonsense", "0.1.0", false);
    }
}
