//! One relay: waits for the editor, starts the adapter, copies bytes until either side ends, and leaves nothing behind.
//!
//! ```text
//!  listening ─┬─ nobody connects in time, or it is ended ─▶ closed: nothing was started
//!             └─ connected ─▶ tasks ─▶ adapter started ─▶ bytes both ways ─▶ either side ends ─▶ adapter stopped
//!                                         └─ it requests `startDebugging`: the port takes one more connection
//! ```
//! Does not depend on how a target was resolved.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tether_base::error::{Error, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::relay_streams::relay_streams;
use super::start_completion::StartCompletion;
use crate::config::BuildPlan;
use crate::debug::host::adapter_relay::{PreparedRelay, RelayedAdapter, start_failure_events};
use crate::session_host::loopback_listener::{LISTENER_LIFETIME, ListenerError, LoopbackListener};
use crate::supervisor::context::SupervisorContext;
use crate::tasks::background_tasks::BackgroundTask;
use crate::tasks::task_runner::BackgroundUser;

/// What an editor is to debug, resolved.
pub struct RelayTarget {
    pub prepared: PreparedRelay,
    /// Run before the adapter is started.
    pub before: Vec<BuildPlan>,
    /// Run after it was stopped.
    pub after: BuildPlan,
}

/// Serves one relay from its listener to its end.
pub async fn serve_relay(
    supervisor: Arc<SupervisorContext>,
    listener: LoopbackListener,
    target: RelayTarget,
    end: CancellationToken,
) {
    let (name, port) = (target.prepared.name.clone(), listener.port());
    let accepted = tokio::select! {
        accepted = listener.accept() => accepted,
        () = end.cancelled() => return,
    };
    let editor = match accepted {
        Ok(editor) => editor,
        Err(ListenerError::TimedOut) => {
            return info!("no editor has connected to port {port} for {name}: it is closed");
        }
        Err(error) => return warn!("port {port} for {name} is closed: {error}"),
    };
    let after = target.after.clone();
    match debug_target(&supervisor, editor, target, (port, &end)).await {
        Ok(()) => info!("the relay on port {port} for {name} has ended"),
        Err(error) => warn!("the relay on port {port} for {name} has ended: {error}"),
    }
    if !after.is_empty()
        && let Err(error) = supervisor.queue.run_plan(&after, None, &|_| {}).await
    {
        warn!("postDebugTask of {name}: {error}");
    }
}

async fn debug_target(
    supervisor: &SupervisorContext,
    mut editor: TcpStream,
    target: RelayTarget,
    (port, end): (u16, &CancellationToken),
) -> Result<()> {
    let starting = async {
        let tasks = run_tasks(supervisor, &target.before).await?;
        Ok::<_, Error>((target.prepared.start(&supervisor.sessions).await?, tasks))
    };
    let started = tokio::select! {
        started = starting => started,
        // An adapter that is starting is killed.
        () = end.cancelled() => return Ok(()),
    };
    let (adapter, tasks) = match started {
        Ok(started) => started,
        Err(error) => {
            for frame in start_failure_events(&error) {
                // An editor that has gone needs no reason.
                let _ = editor.write_all(&frame).await;
            }
            let _ = editor.shutdown().await;
            return Err(error);
        }
    };
    let relayed = tokio::select! {
        relayed = relay_adapter(&adapter, editor, port) => relayed,
        () = end.cancelled() => Ok(()),
    };
    // Its connections are closed: it lets go of what it has attached to, and exits by itself.
    let stopped = adapter.stop().await;
    drop(tasks);
    relayed.and(stopped)
}

/// Runs `preLaunchTask`. Background tasks run as long as the returned values exist.
async fn run_tasks(supervisor: &SupervisorContext, plans: &[BuildPlan]) -> Result<Vec<Arc<BackgroundTask>>> {
    let mut background = Vec::new();
    for plan in plans.iter().filter(|plan| !plan.is_empty()) {
        let user = BackgroundUser { name: "an editor's debug session", needs_new_cycle: false, keeps_watchers: true };
        let ran = supervisor.task_queue().await.run_plan(plan, Some(user), &|_| {}).await?;
        background.extend(ran.background);
    }
    Ok(background)
}

/// Relays the editor's connection, and those that the adapter requests it to open. Ends with the first.
async fn relay_adapter(adapter: &RelayedAdapter, editor: TcpStream, port: u16) -> Result<()> {
    let streams = adapter.connect().await?;
    let completion = StartCompletion::new(adapter.start.clone(), port);
    let requested = Semaphore::new(0);
    let children = Some(&requested).filter(|_| adapter.accepts_children);
    tokio::select! {
        biased; // the port is open before the editor learns that it is to connect
        never = serve_children(adapter, &requested, port) => match never {},
        () = relay_streams(editor, streams, Some(completion), children) => Ok(()),
    }
}

/// Relays one connection for each permit: the adapter has requested that many.
async fn serve_children(adapter: &RelayedAdapter, requested: &Semaphore, port: u16) -> Infallible {
    let (sender, mut accepted) = mpsc::unbounded_channel();
    let accepting = accept_children(requested, port, sender);
    tokio::pin!(accepting);
    let mut relays = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased; // as above
            never = &mut accepting => match never {},
            Some(editor) = accepted.recv() => relays.push(relay_child(adapter, editor, requested)),
            Some(()) = relays.next(), if !relays.is_empty() => {}
        }
    }
}

async fn accept_children(requested: &Semaphore, port: u16, accepted: mpsc::UnboundedSender<TcpStream>) -> Infallible {
    loop {
        match requested.acquire().await {
            Ok(permit) => permit.forget(),
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
        let listener = match LoopbackListener::open_on(port, LISTENER_LIFETIME) {
            Ok(listener) => listener,
            Err(error) => {
                warn!("port {port} cannot take another connection: {error}");
                continue;
            }
        };
        loop {
            match listener.accept_next().await {
                Ok(editor) => drop(accepted.send(editor)),
                Err(error) => {
                    info!("the editor has opened no further connection to port {port}: {error}");
                    break;
                }
            }
            // One that was requested meanwhile may be connecting to this listener already.
            match requested.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(_) => break,
            }
        }
    }
}

async fn relay_child(adapter: &RelayedAdapter, editor: TcpStream, requested: &Semaphore) {
    match adapter.connect().await {
        Ok(streams) => relay_streams(editor, streams, None, Some(requested)).await,
        Err(error) => warn!("{error}"),
    }
}
