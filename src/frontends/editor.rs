//! JSON-RPC on stdio, for editors: forwards messages between stdin and stdout and the supervisor's socket.
//!
//! ```text
//!  stdin ──frames──▶ initialize ──▶ requests, noted ──▶ supervisor
//!  stdout ◀──────── responses, struck off; notifications; requests to the editor ◀──┘
//! ```
//! It ends with stdin (requests in flight get a moment), and with the supervisor: what the editor was told is of no use to
//! the next one, so the editor starts this front end again. Does not depend on any method but `initialize`.

mod initialize;
mod stdio_frames;
#[cfg(test)]
mod typescript_types;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use tether_base::error::{Error, Result};
use tether_wire::frames::{ContentLength, FrameError};
use tether_wire::rpc::RpcError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, FramedWrite};

use self::stdio_frames::{EditorInput, EditorOutput, report_broken_input, send_error};
use crate::supervisor::connect::{SupervisorStream, exit_error};

/// How long requests in flight may still be answered once stdin is closed.
const CLOSE_GRACE_PERIOD: Duration = Duration::from_millis(700);
/// Messages of the editor that are read ahead while the supervisor starts.
const MAX_READ_AHEAD: usize = 64;

/// Serves JSON-RPC on stdin and stdout until the editor closes one of them, or the supervisor exits.
pub async fn serve_editor(workspace: PathBuf) -> Result<()> {
    forward_messages(workspace, tokio::io::stdin(), tokio::io::stdout()).await
}

async fn forward_messages(
    workspace: PathBuf,
    stdin: impl AsyncRead + Unpin + Send + 'static,
    stdout: impl AsyncWrite + Unpin,
) -> Result<()> {
    let (mut input, closed) = spawn_reader(stdin);
    let mut output = FramedWrite::new(stdout, ContentLength::default());
    let conversation = async {
        match initialize::initialize_editor(&workspace, &mut input, &mut output).await? {
            Some(supervisor) => forward_until_end(supervisor, &mut input, &mut output).await,
            None => Ok(()),
        }
    };
    tokio::select! {
        outcome = conversation => outcome,
        () = wait_after_close(closed) => Ok(()),
    }
}

/// Reads frames ahead, so that the end of stdin is noticed whatever is waited for. The second part becomes `true` then.
fn spawn_reader(stdin: impl AsyncRead + Unpin + Send + 'static) -> (EditorInput, watch::Receiver<bool>) {
    let (frames, input) = mpsc::channel(MAX_READ_AHEAD);
    let (close, closed) = watch::channel(false);
    tokio::spawn(async move {
        let mut read = FramedRead::new(stdin, ContentLength::default());
        while let Some(frame) = read.next().await {
            let is_last = frame.is_err();
            if frames.send(frame).await.is_err() || is_last {
                break;
            }
        }
        close.send_replace(true);
    });
    (input, closed)
}

async fn wait_after_close(mut closed: watch::Receiver<bool>) {
    let _ = closed.wait_for(|closed| *closed).await;
    let _ = timeout(CLOSE_GRACE_PERIOD, std::future::pending::<()>()).await;
}

/// What is read of a message that is forwarded.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<Value>,
    method: Option<String>,
}

/// The ids of the editor's requests that have no response yet, as JSON.
type PendingIds = watch::Sender<BTreeSet<String>>;

/// Why forwarding has ended.
enum ForwardEnd {
    InputClosed,
    InputBroken(FrameError),
    OutputClosed,
    SupervisorExited(String),
}

async fn forward_until_end(
    supervisor: SupervisorStream,
    input: &mut EditorInput,
    output: &mut EditorOutput<impl AsyncWrite + Unpin>,
) -> Result<()> {
    let (read, write) = supervisor.into_split();
    let mut from_supervisor = FramedRead::new(read, ContentLength::default());
    let mut to_supervisor = FramedWrite::new(write, ContentLength::default());
    let pending = PendingIds::new(BTreeSet::new());
    let end = tokio::select! {
        end = forward_requests(input, &mut to_supervisor, &pending) => end,
        end = forward_responses(&mut from_supervisor, output, &pending) => end,
    };
    match end {
        ForwardEnd::InputClosed | ForwardEnd::OutputClosed => Ok(()),
        ForwardEnd::InputBroken(cause) => Err(report_broken_input(output, cause).await),
        ForwardEnd::SupervisorExited(cause) => {
            let error = RpcError::from(&exit_error("the request", cause.clone()));
            let ids: Vec<Value> = pending.borrow().iter().filter_map(|id| serde_json::from_str(id).ok()).collect();
            for id in &ids {
                let _ = send_error(output, id, &error).await;
            }
            let error = Error::other("the supervisor has exited").because(cause);
            Err(error.hint("start `tether rpc` again: a new supervisor starts and reconnects to the window"))
        }
    }
}

/// Forwards the editor's messages; after the last one, waits until each request is answered.
async fn forward_requests(
    input: &mut EditorInput,
    to_supervisor: &mut FramedWrite<impl AsyncWrite + Unpin, ContentLength>,
    pending: &PendingIds,
) -> ForwardEnd {
    let mut broken = None;
    while let Some(frame) = input.recv().await {
        let body = match frame {
            Ok(body) => body,
            Err(cause) => {
                broken = Some(cause);
                break;
            }
        };
        // What is malformed is forwarded too: the supervisor responds to it.
        if let Ok(MessageHead { id: Some(id), method: Some(_) }) = serde_json::from_slice(&body) {
            pending.send_modify(|ids| ids.extend([id.to_string()]));
        }
        if let Err(cause) = to_supervisor.send(body).await {
            return ForwardEnd::SupervisorExited(cause.to_string());
        }
    }
    let mut watched = pending.subscribe();
    let _ = timeout(CLOSE_GRACE_PERIOD, watched.wait_for(BTreeSet::is_empty)).await;
    broken.map_or(ForwardEnd::InputClosed, ForwardEnd::InputBroken)
}

/// Forwards the supervisor's messages.
async fn forward_responses(
    from_supervisor: &mut FramedRead<impl AsyncRead + Unpin, ContentLength>,
    output: &mut EditorOutput<impl AsyncWrite + Unpin>,
    pending: &PendingIds,
) -> ForwardEnd {
    while let Some(frame) = from_supervisor.next().await {
        let body = match frame {
            Ok(body) => body,
            Err(cause) => return ForwardEnd::SupervisorExited(cause.to_string()),
        };
        let answered = match serde_json::from_slice(&body) {
            Ok(MessageHead { id: Some(id), method: None }) => Some(id.to_string()),
            _ => None,
        };
        if output.send(body).await.is_err() {
            return ForwardEnd::OutputClosed;
        }
        // Once it is written: the wait for the last response ends the process.
        if let Some(id) = answered {
            pending.send_if_modified(|ids| ids.remove(&id));
        }
    }
    ForwardEnd::SupervisorExited("it closed the connection".to_owned())
}
