//! Whole sessions of the adapters that run in this process: a scripted peer at one end, a scripted editor at the other.

use std::future::Future;
use std::time::Duration;

use serde_json::{Value, json};
use tether_backend::{ServeAdapter, ServeContext};
use tether_dap::DapConnection;
use tether_java::serve_java;
use tether_node::serve_node;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use super::choices::Choices;
use super::editor::{SessionOutcome, drive_editor};
use super::{inspector, java_vm};

/// Of virtual time, after the answer to `disconnect`.
const END_DEADLINE: Duration = Duration::from_secs(300);
/// There is no such folder: nothing of the machine is read.
const NO_FOLDER: &str = "/nonexistent-workspace";

/// A session of the adapter for Java.
pub async fn java_session(choices: Choices, limit: usize) -> SessionOutcome {
    let attach = |port: u16| json!({"hostName": "127.0.0.1", "port": port, "cwd": NO_FOLDER});
    run_adapter(serve_java, attach, java_vm::serve_vm, choices, limit).await
}

/// A session of the adapter for Node: with a program, or a page.
pub async fn node_session(choices: Choices, limit: usize) -> SessionOutcome {
    let attach = |port: u16| {
        json!({"address": "127.0.0.1", "port": port, "cwd": NO_FOLDER,
            "websocketAddress": format!("ws://127.0.0.1:{port}/scripted")})
    };
    run_adapter(serve_node, attach, inspector::serve_inspector, choices, limit).await
}

async fn run_adapter<P: Future<Output = ()> + Send + 'static>(
    serve: ServeAdapter,
    attach: impl FnOnce(u16) -> Value,
    peer: impl FnOnce(TcpListener, Choices) -> P,
    choices: Choices,
    limit: usize,
) -> SessionOutcome {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let attach = attach(listener.local_addr().unwrap().port());
    let peer = tokio::spawn(peer(listener, choices.clone()));
    let (ours, theirs) = DapConnection::pair();
    let exit = watch::channel(None).0;
    let serving = tokio::spawn(serve(theirs, ServeContext { launch_id: "scripted".to_owned(), exit }));
    let outcome = drive_editor(ours, &choices, &attach, limit).await;
    timeout(END_DEADLINE, serving).await.expect("the adapter does not end").unwrap();
    peer.abort();
    let _ = peer.await;
    outcome
}
