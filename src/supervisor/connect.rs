//! Finding the supervisor of a workspace, or starting it: what every front end goes through.
//!
//! ```text
//!  connect ──▶ socket answers? ──yes──▶ initialize ──▶ Connection
//!     ▲              │no                    └─ it is older: it drains itself ─┐
//!     │              ▼                                                        │
//!     └── it says where ◀── `tether supervise`, double-forked ◀───────────────┘
//! ```
//!
//! Readiness is told by the child through a pipe, never slept for. Must not know what is asked over a connection.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::claim;
pub use super::place::Place;
use super::place::refuse_foreign;
use crate::api::editor::{INITIALIZE, Initialize, Initialized};
use crate::error::{Context, Error, ErrorData, ErrorKind, Result};
use crate::process::Process;
use crate::wire::rpc::{CallError, RpcIncoming, RpcPeer, open_connection};

/// How long a supervisor may take from its exec to its first word, or from there to its version.
const READY: Duration = Duration::from_secs(10);

/// What a starting supervisor says on its stdout: one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FirstWord {
    /// It listens here.
    Ready(PathBuf),
    /// Another one is the supervisor, and listens here.
    Held(PathBuf),
    Failed(ErrorData),
}

/// Whether a missing supervisor is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Start,
    Leave,
}

/// A conversation with the supervisor. It ends when this is dropped.
pub struct Connection {
    pub peer: RpcPeer,
    /// Notifications; only an `editor` gets any.
    pub incoming: mpsc::Receiver<RpcIncoming>,
    pub supervisor: Initialized,
    driver: JoinHandle<String>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Asks one operation; the supervisor's error comes back as it was made there.
    pub async fn call(&self, method: &str, params: &Value, progress: mpsc::UnboundedSender<Value>) -> Result<Value> {
        self.peer.call_with_progress(method, params, progress).await.map_err(|error| told(method, error))
    }

    /// Waits until the supervisor's process has ended.
    pub async fn ended(mut self) {
        // Held before its connection ends: its PID cannot be another's yet.
        let process = Process::open(self.supervisor.pid);
        let _ = (&mut self.driver).await;
        if let Ok(process) = process {
            process.exited().await;
        }
    }
}

/// Turns what came back instead of an answer into the error that a user reads.
fn told(method: &str, error: CallError) -> Error {
    match error {
        CallError::Refused(refused) => {
            match refused.data.and_then(|data| serde_json::from_value::<ErrorData>(data).ok()) {
                Some(data) => data.into(),
                None => Error::other(format!("{method} failed")).because(refused.message),
            }
        }
        closed => Error::other(format!("{method} was cut off: the supervisor is gone"))
            .because(closed)
            .hint("ask again: a new supervisor starts and finds the window")
            .hint("`tether logs` shows the last words of the old one"),
    }
}

/// Connects to the workspace's supervisor; answers `None` only when it is missing and is to be left so.
pub async fn connect(place: &Place, client: &Initialize, missing: Missing) -> Result<Option<Connection>> {
    let mut socket = place.socket.clone();
    let mut drained = false;
    // Twice in vain at most: once for a stale socket, once for a supervisor that ends as we come.
    for _ in 0..4 {
        refuse_foreign(&socket)?;
        let stream = match UnixStream::connect(&socket).await {
            Ok(stream) => stream,
            Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(unreachable(place, &socket).because(cause));
            }
            Err(_) => match (missing, claim::holder(place)) {
                (_, Some(holder)) if holder.socket != socket => {
                    socket = holder.socket;
                    continue;
                }
                (Missing::Leave, _) => return Ok(None),
                (Missing::Start, _) => {
                    socket = start(place).await?;
                    continue;
                }
            },
        };
        match introduce(place, stream, client).await {
            Ok(connection) if connection.supervisor.draining && !drained => {
                drained = true;
                connection.ended().await;
            }
            Ok(connection) => return Ok(Some(connection)),
            // It ended between our connect and its answer.
            Err(error) if error.kind == ErrorKind::Cancelled => {}
            Err(error) => return Err(error),
        }
    }
    Err(unreachable(place, &socket).because("it ended each time that it was reached"))
}

async fn introduce(place: &Place, stream: UnixStream, client: &Initialize) -> Result<Connection> {
    check_owner(&stream, place)?;
    let (read, write) = stream.into_split();
    let (peer, incoming, driver) = open_connection(read, write);
    let driver = tokio::spawn(driver);
    let params = serde_json::to_value(client).doing(|| "cannot write the first message".into())?;
    let answer = match timeout(READY, peer.call(INITIALIZE, &params)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(CallError::Closed(reason))) => {
            return Err(Error::new(ErrorKind::Cancelled, "the supervisor ended").because(reason));
        }
        Ok(Err(refused)) => return Err(unreachable(place, &place.socket).because(refused)),
        Err(_) => return Err(silent(place)),
    };
    let supervisor =
        serde_json::from_value(answer).doing(|| "cannot understand the supervisor's first answer".into())?;
    Ok(Connection { peer, incoming, supervisor, driver })
}

/// A socket in a folder of ours is answered by a process of ours, or we say nothing to it.
fn check_owner(stream: &UnixStream, place: &Place) -> Result<()> {
    let peer = stream.peer_cred().doing(|| "cannot tell who answers the supervisor's socket".into())?;
    let us = rustix::process::getuid().as_raw();
    if peer.uid() == us {
        return Ok(());
    }
    Err(unreachable(place, &place.socket)
        .because(format!("user {} answers on its socket, and we are user {us}", peer.uid())))
}

fn unreachable(place: &Place, socket: &Path) -> Error {
    Error::other(format!("cannot reach the supervisor of {}", place.workspace.display()))
        .hint(format!("its socket is {}; `tether logs` shows its log", socket.display()))
}

fn silent(place: &Place) -> Error {
    let error =
        Error::new(ErrorKind::TimedOut, format!("the supervisor of {} does not answer", place.workspace.display()))
            .because(format!("no word within {} s", READY.as_secs()));
    match claim::holder(place) {
        Some(holder) => error
            .hint(format!("it is process {0}: `kill -CONT {0}` if it was stopped", holder.pid))
            .hint(format!("`kill -9 {}` ends it; the window stays and is found again", holder.pid)),
        None => error.hint("`tether logs` shows its log"),
    }
}

/// Starts the supervisor and answers where the one that won listens.
async fn start(place: &Place) -> Result<PathBuf> {
    let starting = || format!("cannot start the supervisor of {}", place.workspace.display());
    let program = std::env::current_exe().doing(starting)?;
    let mut child = detached(&program, place).spawn().doing(starting)?;
    let stdout = child.stdout.take().ok_or_else(|| Error::other(starting()).because("its stdout is not a pipe"))?;
    // The intermediate process of the double fork has ended already: this only reaps it.
    child.wait().await.doing(starting)?;
    let mut line = String::new();
    let said = timeout(READY, BufReader::new(stdout).read_line(&mut line)).await;
    let logs = |error: Error| error.hint("`tether logs` shows what it was doing");
    match said {
        Err(_) => Err(logs(Error::new(ErrorKind::TimedOut, starting()).because("it did not become ready in time"))),
        Ok(Err(cause)) => Err(logs(Error::other(starting()).because(cause))),
        Ok(Ok(_)) => match serde_json::from_str(&line) {
            Ok(FirstWord::Ready(socket) | FirstWord::Held(socket)) => Ok(socket),
            Ok(FirstWord::Failed(data)) => Err(data.into()),
            Err(_) => Err(logs(Error::other(starting()).because("it ended before it was ready"))),
        },
    }
}

/// `tether supervise`, in its own session and re-parented to init: no editor's tree kill reaches it.
fn detached(program: &Path, place: &Place) -> tokio::process::Command {
    use std::process::Stdio;
    let mut command = tokio::process::Command::new(program);
    command
        .arg("supervise")
        .arg("--workspace")
        .arg(&place.workspace)
        // A deleted workspace, or an unmounted disk, must not be held by us.
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
