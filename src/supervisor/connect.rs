//! Finds the supervisor of a workspace, or starts it, and connects to it. Used by every front end.
//!
//! ```text
//!  connect ──▶ socket accepts? ──yes──▶ initialize ──▶ SupervisorConnection
//!     ▲              │no                    └─ it is older: it exits ─────────┐
//!     │              ▼                                                        │
//!     └── its socket ◀── `tether supervise`, double-forked ◀──────────────────┘
//! ```
//!
//! The child reports its readiness through a pipe; nothing sleeps. Does not depend on what is sent over a connection.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, ErrorData, ErrorKind, Result};
use tether_process::Process;
use tether_wire::frames::{ContentLength, FrameError};
use tether_wire::rpc::{CallError, RpcError, RpcIncoming, RpcPeer, open_connection};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::codec::Framed;

use super::lock;
pub use super::paths::SupervisorPaths;
use super::paths::check_socket_owner;
use crate::api::find_operation;
use crate::api::protocol::{INITIALIZE, InitializeParams, InitializeResult};

/// How long a supervisor may take to start, and then to respond to `initialize`.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// What a starting supervisor prints on stdout: one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StartupMessage {
    /// It listens here.
    Ready(PathBuf),
    /// Another one is the supervisor, and listens here.
    Held(PathBuf),
    Failed(ErrorData),
}

/// Whether to start a supervisor when none runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfNotRunning {
    Start,
    Skip,
}

/// An initialized connection to the supervisor as a stream of frames, closed on drop.
pub struct SupervisorStream {
    pub supervisor: InitializeResult,
    stream: UnixStream,
    /// What was read past the response to `initialize`.
    buffered: BytesMut,
}

impl SupervisorStream {
    /// Its two sides.
    pub fn into_split(self) -> (impl AsyncRead + Send + Unpin + 'static, OwnedWriteHalf) {
        let (read, write) = self.stream.into_split();
        (io::Cursor::new(self.buffered.freeze()).chain(read), write)
    }

    /// Opens a JSON-RPC connection over it.
    fn open_connection(self) -> SupervisorConnection {
        let supervisor = self.supervisor.clone();
        let (read, write) = self.into_split();
        let (peer, incoming, driver) = open_connection(read, write);
        SupervisorConnection { peer, incoming, supervisor, driver: tokio::spawn(driver) }
    }
}

/// A connection to the supervisor, closed on drop.
pub struct SupervisorConnection {
    pub peer: RpcPeer,
    /// Notifications, by the role and the capabilities of the front end.
    pub incoming: mpsc::Receiver<RpcIncoming>,
    pub supervisor: InitializeResult,
    driver: JoinHandle<String>,
}

impl Drop for SupervisorConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl SupervisorConnection {
    /// Calls one operation; an error of the supervisor is returned as it was made there.
    pub async fn call(&self, method: &str, params: &Value, progress: mpsc::UnboundedSender<Value>) -> Result<Value> {
        self.peer.call_with_progress(method, params, Some(progress)).await.map_err(|error| call_error(method, error))
    }

    /// Waits until the supervisor's process has exited.
    pub async fn wait_for_exit(mut self) {
        // Opened before the connection ends, while the PID is certainly not reused.
        let process = Process::open(self.supervisor.pid);
        let _ = (&mut self.driver).await;
        if let Ok(process) = process {
            process.wait_for_exit().await;
        }
    }
}

/// The error of a call that the supervisor's exit has interrupted.
pub fn exit_error(method: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let error = Error::other(format!("{method} was interrupted: the supervisor has exited")).because(cause);
    let is_repeatable = find_operation(method).is_none_or(|operation| operation.effect.is_repeatable());
    let error = if is_repeatable {
        error.hint("run it again: a new supervisor starts, and reconnects to the window and the debug sessions")
    } else {
        error.hint(
            "it was not repeated, since it may have had its effect: `tether debug status` and `tether status` show it",
        )
    };
    error.hint("`tether logs` shows the log of the old one")
}

/// Converts a failed call into the user-facing error.
fn call_error(method: &str, error: CallError) -> Error {
    match error {
        CallError::Failed(refused) => refused.into_error(format!("{method} failed")),
        closed => exit_error(method, closed),
    }
}

/// Connects to the workspace's supervisor. `None`: none runs, and none was to be started.
pub async fn connect(
    paths: &SupervisorPaths,
    client: &InitializeParams,
    missing: IfNotRunning,
) -> Result<Option<SupervisorConnection>> {
    Ok(connect_stream(paths, client, missing).await?.map(SupervisorStream::open_connection))
}

/// As [`connect`], for a front end that forwards messages as they are.
pub async fn connect_stream(
    paths: &SupervisorPaths,
    client: &InitializeParams,
    missing: IfNotRunning,
) -> Result<Option<SupervisorStream>> {
    let mut socket = paths.socket.clone();
    let mut drained = false;
    // At most two attempts fail: one at a stale socket, one at a supervisor that exits meanwhile.
    for _ in 0..4 {
        check_socket_owner(&socket)?;
        let stream = match UnixStream::connect(&socket).await {
            Ok(stream) => stream,
            // It exited before it accepted the connection.
            Err(cause) if cause.kind() == io::ErrorKind::ConnectionReset => continue,
            Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(unreachable_error(paths, &socket).because(cause));
            }
            Err(_) => match (missing, lock::find_listening_holder(paths)) {
                (_, Some(holder)) if holder.socket != socket => {
                    socket = holder.socket;
                    continue;
                }
                (IfNotRunning::Skip, _) => return Ok(None),
                (IfNotRunning::Start, _) => {
                    socket = start_supervisor(paths).await?;
                    continue;
                }
            },
        };
        match initialize_stream(paths, stream, client).await {
            Ok(opened) if opened.supervisor.draining && !drained => {
                drained = true;
                opened.open_connection().wait_for_exit().await;
            }
            Ok(opened) => return Ok(Some(opened)),
            // It exited between connect and its response.
            Err(error) if error.kind == ErrorKind::Cancelled => {}
            Err(error) => return Err(error),
        }
    }
    Err(unreachable_error(paths, &socket).because("it exited at each attempt"))
}

/// The response to `initialize`.
#[derive(Deserialize)]
struct InitializeResponse {
    result: Option<InitializeResult>,
    error: Option<RpcError>,
}

async fn initialize_stream(
    paths: &SupervisorPaths,
    stream: UnixStream,
    client: &InitializeParams,
) -> Result<SupervisorStream> {
    check_peer_user(&stream, paths)?;
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": INITIALIZE, "params": client});
    let mut frames = Framed::new(stream, ContentLength::default());
    // The response is the first message of a supervisor.
    let exchange = async {
        frames.send(Bytes::from(request.to_string())).await?;
        frames.next().await.unwrap_or(Err(FrameError::HalfFrame))
    };
    let answer = match timeout(STARTUP_TIMEOUT, exchange).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(cause)) => return Err(Error::new(ErrorKind::Cancelled, "the supervisor exited").because(cause)),
        Err(_) => return Err(unresponsive_error(paths)),
    };
    let answer: InitializeResponse =
        serde_json::from_slice(&answer).doing(|| "cannot read the supervisor's response to initialize".into())?;
    let parts = frames.into_parts();
    match answer {
        InitializeResponse { result: Some(supervisor), .. } => {
            Ok(SupervisorStream { stream: parts.io, buffered: parts.read_buf, supervisor })
        }
        InitializeResponse { error, .. } => {
            let cause = error.map_or_else(|| "its response has no result".to_owned(), |error| error.message);
            Err(unreachable_error(paths, &paths.socket).because(cause))
        }
    }
}

/// Nothing is sent to a socket whose server runs as another user.
fn check_peer_user(stream: &UnixStream, paths: &SupervisorPaths) -> Result<()> {
    let peer = stream.peer_cred().doing(|| "cannot find out which user serves the supervisor's socket".into())?;
    let us = rustix::process::getuid().as_raw();
    if peer.uid() == us {
        return Ok(());
    }
    Err(unreachable_error(paths, &paths.socket)
        .because(format!("its socket is served by user {}, not by user {us}", peer.uid())))
}

fn unreachable_error(paths: &SupervisorPaths, socket: &Path) -> Error {
    Error::other(format!("cannot reach the supervisor of {}", paths.workspace.display()))
        .hint(format!("its socket is {}; `tether logs` shows its log", socket.display()))
}

fn unresponsive_error(paths: &SupervisorPaths) -> Error {
    let error =
        Error::new(ErrorKind::TimedOut, format!("the supervisor of {} does not respond", paths.workspace.display()))
            .because(format!("no response within {} s", STARTUP_TIMEOUT.as_secs()));
    match lock::find_listening_holder(paths) {
        Some(holder) => error.hint(format!("it is process {0}: `kill -CONT {0}` if it was stopped", holder.pid)).hint(
            format!("`kill -9 {}` ends it; the window stays, and the next supervisor reconnects to it", holder.pid),
        ),
        None => error.hint("`tether logs` shows its log"),
    }
}

/// Starts a supervisor; returns the socket of the one that holds the lock, which may be another.
async fn start_supervisor(paths: &SupervisorPaths) -> Result<PathBuf> {
    let starting = || format!("cannot start the supervisor of {}", paths.workspace.display());
    let program = tether_process::find_own_program().doing(starting)?;
    let mut child = daemon_command(&program, paths).spawn().doing(starting)?;
    let stdout = child.stdout.take().ok_or_else(|| Error::other(starting()).because("its stdout is not a pipe"))?;
    // Reaps the intermediate process of the double fork, which exits at once.
    child.wait().await.doing(starting)?;
    let mut line = String::new();
    let read = timeout(STARTUP_TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
    let logs = |error: Error| error.hint("`tether logs` shows what it was doing");
    match read {
        Err(_) => Err(logs(Error::new(ErrorKind::TimedOut, starting()).because("it did not become ready in time"))),
        Ok(Err(cause)) => Err(logs(Error::other(starting()).because(cause))),
        Ok(Ok(_)) => match serde_json::from_str(&line) {
            Ok(StartupMessage::Ready(socket) | StartupMessage::Held(socket)) => Ok(socket),
            Ok(StartupMessage::Failed(data)) => Err(data.into()),
            Err(_) => Err(logs(Error::other(starting()).because("it exited before it was ready"))),
        },
    }
}

/// `tether supervise`, in its own session and re-parented to init: no editor's tree kill reaches it.
fn daemon_command(program: &Path, paths: &SupervisorPaths) -> tokio::process::Command {
    use std::process::Stdio;
    let mut command = tokio::process::Command::new(program);
    command
        .arg("supervise")
        .arg("--workspace")
        .arg(&paths.workspace)
        // It outlives the window or the debuggee from which it may be started, and is no part of it.
        .env_remove(tether_process::LAUNCH_ID)
        .env_remove(tether_process::LAUNCH_SESSION)
        // Does not keep a deleted workspace or an unmounted disk in use.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec, in a process with one thread, only `setsid`, `fork` and `_exit` are called, which
    // are async-signal-safe; nothing is allocated and no lock is taken. The parent goes on with the first child, which
    // ends here; the second child, whose parent is then init, executes the program.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => Ok(()),
                _ => libc::_exit(0),
            }
        });
    }
    command
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_supervisor_that_exits_before_it_accepts_the_connection_is_one_that_does_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let paths = SupervisorPaths {
            workspace: path("workspace"),
            socket: path("socket"),
            lock: path("lock"),
            workspace_lock: path("workspace.lock"),
            starting_lock: path("starting.lock"),
            state: path("state"),
        };
        let listener = UnixListener::bind(&paths.socket).unwrap();
        let client = InitializeParams::default();
        // The connection is queued when the listener is closed.
        let connecting = connect_stream(&paths, &client, IfNotRunning::Skip);
        let (connected, ()) = tokio::join!(biased; connecting, async { drop(listener) });
        assert!(connected.unwrap_or_else(|error| panic!("{error}")).is_none());
    }
}
