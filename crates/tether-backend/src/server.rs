//! The DAP server of a backend: one conversation, from `initialize` to the end of its connection.
//!
//! ```text
//! initialize ─▶ launch / attach ─▶ the program is connected ─▶ `initialized` ─▶ breakpoints ─▶ configurationDone ─▶ it runs
//!   ─▶ events of the backend, requests, output ─▶ its end ─▶ `exited`, `terminated` ─▶ disconnect
//! ```
//! The loop waits for nothing but messages, so the client can pause, list threads and leave at any time, also while a program
//! starts.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tether_base::error::Result;
use tether_dap::types::{
    AttachArguments, DapCapabilities, InitializedEvent, LaunchArguments, OutputEvent, ProcessEvent,
};
use tether_dap::{DapConnection, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ServeContext;
use crate::backend::{DapBackend, LaunchedProgram, StartedBackend};
use crate::running_session::RunningSession;

/// How many requests may wait for the start of the program.
const MAX_WAITING: usize = 1000;
/// How long a program that is attached to may take to be connected, when the client has left meanwhile.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves DAP on a connection until it ends.
pub fn serve_backend<B: DapBackend + 'static>(
    connection: DapConnection,
    context: ServeContext,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (dap, inbox, driver) = DapServer::over(connection);
        // The connection ends when the conversation has dropped its handle, and what was queued is written.
        tokio::join!(converse::<B>(dap, inbox, context), driver);
    })
}

async fn converse<B: DapBackend>(dap: DapServer, mut inbox: DapInbox, context: ServeContext) {
    let Some((started, waiting)) = start_backend::<B>(&dap, &mut inbox, &context.launch_id).await else { return };
    // A client that leaves at once has left.
    if dap.send_event(&InitializedEvent {}).await.is_ok() {
        serve_started(started, waiting, dap, &mut inbox, &context).await;
    }
}

/// Serves a backend that debugs its program. `waiting`: the requests that came while it started.
pub async fn serve_started<B: DapBackend>(
    started: StartedBackend<B>,
    waiting: Vec<IncomingRequest>,
    dap: DapServer,
    inbox: &mut DapInbox,
    context: &ServeContext,
) {
    let StartedBackend { backend, program, .. } = started;
    let (program, output) = match program {
        Some(LaunchedProgram { debuggee, output, .. }) => (Some(debuggee), output),
        None => (None, mpsc::channel(1).1),
    };
    RunningSession { backend, program, output, has_exited: false, dap, inbox, context }.run(waiting).await;
}

/// Handles requests until a program is launched or attached to. `None`: the client has left.
async fn start_backend<B: DapBackend>(
    dap: &DapServer,
    inbox: &mut DapInbox,
    launch_id: &str,
) -> Option<(StartedBackend<B>, Vec<IncomingRequest>)> {
    loop {
        let request = next_start(inbox, B::capabilities).await?;
        let mut starting = Box::pin(start_by::<B>(dap, &request, launch_id));
        let (started, waiting) = match listen_during_start(dap, inbox, &mut starting).await {
            StartOutcome::Decided(started, waiting) => {
                drop(starting);
                (started, waiting)
            }
            StartOutcome::Left(leaving) => {
                leave_start(starting, request.command == "attach").await;
                leaving.into_iter().for_each(|request| request.respond(&json!({})));
                return None;
            }
        };
        match started {
            Ok(started) => {
                let process = started.program.as_ref().map(|LaunchedProgram { name, debuggee, .. }| ProcessEvent {
                    name: name.clone(),
                    system_process_id: Some(i64::from(debuggee.process.pid())),
                    is_child: None,
                });
                announce_start(dap, &started.unknown, process).await;
                request.respond(&json!({}));
                return Some((started, waiting));
            }
            Err(error) => request.respond_error(ErrorResponse::new(error.to_string())),
        }
        for request in waiting {
            request.respond_error(ErrorResponse::new("the program has not started"));
        }
    }
}

/// Answers requests until one launches a program or attaches to it, and returns that. `None`: the client has left.
async fn next_start(inbox: &mut DapInbox, capabilities: fn() -> DapCapabilities) -> Option<IncomingRequest> {
    loop {
        let DapIncoming::Request(request) = inbox.next().await? else { continue };
        match request.command.as_str() {
            "initialize" => request.respond(&capabilities()),
            "launch" | "attach" => return Some(request),
            "disconnect" | "terminate" => {
                request.respond(&json!({}));
                return None;
            }
            // Dropping it refuses it.
            _ => {}
        }
    }
}

async fn start_by<B: DapBackend>(
    dap: &DapServer,
    request: &IncomingRequest,
    launch_id: &str,
) -> Result<StartedBackend<B>> {
    let usage = |cause: String| B::usage_error(&request.command, cause);
    if request.command == "launch" {
        let LaunchArguments(fields) = request.read_arguments().map_err(usage)?;
        B::launch(dap, &fields, launch_id).await
    } else {
        let AttachArguments(fields) = request.read_arguments().map_err(usage)?;
        B::attach(dap, &fields, launch_id).await
    }
}

/// Tells the client which arguments are not known, and which process was launched. Fails when the client has gone, which ends
/// the session.
async fn announce_start(dap: &DapServer, unknown: &[String], process: Option<ProcessEvent>) {
    for name in unknown {
        let output = format!("the argument `{name}` is not known to this adapter\n");
        let _ = dap.send_event(&OutputEvent::new("important", output)).await;
    }
    if let Some(process) = process {
        let _ = dap.send_event(&process).await;
    }
}

/// The client has left while a program started. Dropping the start ends what was launched; a program that is attached to is let
/// go as it was found, if that is possible in time.
async fn leave_start<B: DapBackend>(
    starting: impl Future<Output = Result<StartedBackend<B>>> + Unpin,
    is_attach: bool,
) {
    if is_attach && let Ok(Ok(mut started)) = timeout(LEAVE_TIMEOUT, starting).await {
        started.backend.release(false).await;
    }
}

/// What became of a start.
enum StartOutcome<B> {
    /// It has succeeded or failed; with the requests that have come meanwhile.
    Decided(Result<StartedBackend<B>>, Vec<IncomingRequest>),
    /// The client leaves, by that request, or without one.
    Left(Option<IncomingRequest>),
}

/// Reads the client while a program starts.
async fn listen_during_start<B>(
    dap: &DapServer,
    inbox: &mut DapInbox,
    mut starting: impl Future<Output = Result<StartedBackend<B>>> + Unpin + Send,
) -> StartOutcome<B> {
    let mut waiting = Vec::new();
    loop {
        let incoming = tokio::select! {
            started = &mut starting => return StartOutcome::Decided(started, waiting),
            _ = dap.wait_closed() => return StartOutcome::Left(None),
            incoming = inbox.next() => incoming,
        };
        match incoming {
            None => return StartOutcome::Left(None),
            Some(DapIncoming::Request(request)) => match request.command.as_str() {
                "disconnect" | "terminate" => return StartOutcome::Left(Some(request)),
                "threads" | "pause" => request.respond_error(ErrorResponse::new("the program has not started yet")),
                _ if waiting.len() < MAX_WAITING => waiting.push(request),
                _ => request.respond_error(ErrorResponse::new("too many requests before the program has started")),
            },
            Some(_) => {}
        }
    }
}
