//! The process that hosts one debug session: its socket, its connections, and when it exits.
//!
//! It exits a while after its session has ended, when no supervisor is connected; when a supervisor says so; when its workspace is
//! deleted. On SIGTERM it ends the session first. Does not depend on what is requested of it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, ErrorData, Result};
use tether_base::sync::{lock, open_task_set};
use tether_wire::rpc::{
    RpcError, RpcIncoming, RpcPeer, RpcRequest, open_connection, read_single_params, serve_requests,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::log_file;
use super::protocol::{BREAKPOINTS_CHANGED, FACTS, HELLO, HelloParams, HelloResult, HostResult, HostStartup, PROTOCOL};
use super::requests::HostState;
use crate::config::trust::consented_programs;
use crate::debug::{RemoteSessions, SessionBindings, SessionRegistry};
use crate::vocabulary::DataAccess;

/// How long a host without a session, and without a connection, waits for one.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an ended session stays readable for the next supervisor.
const ENDED_TIMEOUT: Duration = Duration::from_secs(600);
/// How often a host without a supervisor looks whether its workspace is still there.
const WORKSPACE_LOOKS: Duration = Duration::from_secs(60);

/// Where a session host lives.
struct HostPlace<'a> {
    /// The workspace of its supervisor, canonical.
    workspace: &'a Path,
    /// The supervisor's state folder.
    state: &'a Path,
    /// Where it is to listen.
    socket: &'a Path,
    /// The launch id of its session.
    launch_id: &'a str,
}

/// Hosts the session with this launch id, for the supervisor with this state folder, until it is no longer needed. Prints a line
/// once it listens.
pub fn host_session(workspace: &Path, state: &Path, socket: &Path, launch_id: &str) -> Result<()> {
    let place = &HostPlace { workspace, state, socket, launch_id };
    let log = place.state.join(log_file::NAME);
    log_file::start_logging(&log);
    log_file::exit_on_panic(log, Some(panic_note(socket)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing(|| "cannot start the async runtime".into())?;
    let outcome = runtime.block_on(serve_until_end(place));
    // Does not wait for a read on a blocking thread.
    runtime.shutdown_background();
    outcome
}

/// Where a host that listens there writes why it has panicked.
pub fn panic_note(socket: &Path) -> PathBuf {
    let mut note = socket.as_os_str().to_owned();
    note.push(".panic");
    note.into()
}

/// Printed for the supervisor that started this process, which may have exited.
fn print_startup(startup: &HostStartup) {
    let mut stdout = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut stdout, startup).map(|()| stdout.write_all(b"\n"));
    let _ = stdout.flush();
}

async fn serve_until_end(place: &HostPlace<'_>) -> Result<()> {
    let failed = |error: &Error| print_startup(&HostStartup::Failed(ErrorData::from(error)));
    let listener = bind_socket(place.socket).inspect_err(failed)?;
    print_startup(&HostStartup::Ready);
    info!(launch = place.launch_id, pid = std::process::id(), "session host {} listens", env!("CARGO_PKG_VERSION"));
    // Aborted when this function returns.
    let mut drivers = JoinSet::new();
    let (sessions, driver) =
        SessionRegistry::open_in_host(place.state, place.workspace, place.launch_id, consented_programs);
    drivers.spawn(driver);
    let (tasks, driver) = open_task_set();
    drivers.spawn(driver);
    let state = Arc::new(HostState::new(sessions.clone(), tasks));
    sessions.reach_other_processes(Arc::new(OtherProcesses(Arc::downgrade(&state))));
    drivers.spawn(sessions.clone().follow_edited_files());
    let following = Arc::clone(&state);
    drivers.spawn(async move { following.follow_session().await });
    let reason = accept_until_end(&state, &listener, place.workspace).await?;
    info!(launch = place.launch_id, "ending: {reason}");
    drop(listener);
    let _ = std::fs::remove_file(place.socket);
    sessions.end_all().await;
    Ok(())
}

fn bind_socket(socket: &Path) -> Result<UnixListener> {
    let doing = || format!("cannot listen on {}", socket.display());
    let listener = UnixListener::bind(socket).doing(doing)?;
    std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600)).doing(doing)?;
    Ok(listener)
}

/// Accepts connections until there is a reason to exit, which it returns.
async fn accept_until_end(state: &Arc<HostState>, listener: &UnixListener, workspace: &Path) -> Result<&'static str> {
    let listen_to = |kind| signal(kind).doing(|| "cannot install signal handlers".into());
    let mut term = listen_to(SignalKind::terminate())?;
    // Caught, so that a closed terminal does not end the process.
    let (_int, _hangup) = (listen_to(SignalKind::interrupt())?, listen_to(SignalKind::hangup())?);
    // Owned here: all connections end with this function.
    let mut connections = JoinSet::new();
    let unneeded = wait_until_unneeded(state, workspace);
    tokio::pin!(unneeded);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(serve_connection(Arc::clone(state), stream)); }
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    // Most likely out of file descriptors, and there is no event for free ones.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = term.recv() => return Ok("SIGTERM"),
            () = state.exit.notified() => return Ok("its supervisor has ended it"),
            reason = &mut unneeded => return Ok(reason),
        }
    }
}

/// Resolves when nobody needs this process any more, with the reason.
async fn wait_until_unneeded(state: &HostState, workspace: &Path) -> &'static str {
    let mut was_connected = false;
    let (mut connections, mut sessions) = (state.connections.subscribe(), state.context.sessions.watch());
    let mut conversations = state.conversations.subscribe();
    loop {
        sessions.borrow_and_update();
        let is_connected = *connections.borrow_and_update() > 0 || *conversations.borrow_and_update() > 0;
        was_connected |= is_connected;
        let (wait, reason) = match state.context.sessions.list_sessions().first() {
            None if was_connected => (Duration::ZERO, "it has no session"),
            None => (EMPTY_TIMEOUT, "it has no session"),
            Some(managed) if managed.is_ended() && !managed.is_reconnecting() => {
                (ENDED_TIMEOUT, "its session has ended")
            }
            Some(_) => (WORKSPACE_LOOKS, "its workspace was deleted"),
        };
        tokio::select! {
            () = tokio::time::sleep(wait), if !is_connected => {
                if wait != WORKSPACE_LOOKS || !workspace.exists() {
                    return reason;
                }
            }
            _ = connections.changed() => {}
            // Without effect as long as somebody is connected.
            _ = sessions.changed(), if !is_connected => {}
            _ = conversations.changed() => {}
        }
    }
}

/// Counts a connection until it is dropped.
struct ConnectionCount(Arc<HostState>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.connections.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Serves one connection until it closes; its requests are cancelled then.
async fn serve_connection(state: Arc<HostState>, stream: UnixStream) {
    let us = rustix::process::getuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == us) {
        return warn!("refused a connection of another user");
    }
    state.connections.send_modify(|count| *count = count.saturating_add(1));
    let _count = ConnectionCount(Arc::clone(&state));
    let (read, write) = stream.into_split();
    let (peer, mut incoming, driver) = open_connection(read, write);
    // Ends with the connection, and that with this function.
    let mut tasks = JoinSet::new();
    tasks.spawn(driver.map(drop));
    let Some(RpcIncoming::Request { id, method, params }) = incoming.recv().await else { return };
    let client: HelloParams = match serde_json::from_value(params) {
        Ok(client) if method == HELLO => client,
        _ => return warn!("refused a connection that has not begun with `{HELLO}`"),
    };
    info!("supervisor {} connected", client.version);
    state.set_supervisor(peer.clone());
    let hello = HelloResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        pid: std::process::id(),
        session: state.hosted(),
        has_editor: *state.conversations.borrow() > 0,
    };
    let connection = Arc::new(HostConnection { state: Arc::clone(&state), peer: peer.clone(), told: Mutex::default() });
    connection.respond(&id, serde_json::to_value(hello).doing(|| "cannot answer".to_owned())).await;
    tasks.spawn(Arc::clone(&connection).report_changes());
    let handle = |request: RpcRequest| {
        let connection = Arc::clone(&connection);
        async move {
            let outcome = connection.state.handle(&request.method, read_single_params(request.params)).await;
            connection.respond(&request.id, outcome).await;
        }
    };
    serve_requests(&peer, &mut incoming, handle, |_, _| ()).await;
}

/// One connection, and what was sent over it.
struct HostConnection {
    state: Arc<HostState>,
    peer: RpcPeer,
    /// The revision of the facts that were sent last.
    told: Mutex<u64>,
}

impl HostConnection {
    /// Responds, with the facts where they have changed: who reads the result knows what has become of the session.
    async fn respond(&self, id: &tether_wire::rpc::RpcId, outcome: Result<Value>) {
        let changed = {
            let mut told = lock(&self.told);
            self.state.facts_since(*told).inspect(|report| *told = report.revision)
        };
        let outcome = match outcome {
            Ok(result) => Ok(HostResult { changed, result }),
            Err(error) => {
                // An error has no place for them.
                if let Some(report) = changed {
                    let _ = self.peer.notify(FACTS, &report).await;
                }
                Err(RpcError::from(&error))
            }
        };
        let _ = self.peer.respond(id, outcome).await;
    }

    /// Sends each change, until the connection ends.
    async fn report_changes(self: Arc<HostConnection>) {
        let (mut facts, mut breakpoints) = (self.state.watch_facts(), self.state.breakpoint_changes.subscribe());
        loop {
            let sent = tokio::select! {
                Ok(()) = facts.changed() => {
                    let report = {
                        let (mut told, report) = (lock(&self.told), facts.borrow_and_update());
                        let report = report.as_ref().filter(|report| report.revision > *told).cloned();
                        report.inspect(|report| *told = report.revision)
                    };
                    match report {
                        Some(report) => self.peer.notify(FACTS, &report).await,
                        None => Ok(()),
                    }
                }
                Ok(()) = breakpoints.changed() => self.peer.notify(BREAKPOINTS_CHANGED, &json!({})).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// The sessions in other processes, which the supervisor reaches: it is told that the stored breakpoints have changed.
struct OtherProcesses(std::sync::Weak<HostState>);

impl RemoteSessions for OtherProcesses {
    fn send_breakpoints(&self, _: Option<u32>) -> BoxFuture<'_, ()> {
        if let Some(state) = self.0.upgrade() {
            state.breakpoint_changes.send_modify(|count| *count = count.wrapping_add(1));
        }
        std::future::ready(()).boxed()
    }

    fn bindings(&self) -> Vec<SessionBindings> {
        Vec::new()
    }

    fn watch_data<'a>(&'a self, _: &'a str, _: DataAccess) -> BoxFuture<'a, Option<Result<u32>>> {
        std::future::ready(None).boxed()
    }
}
