//! The process of a wrapped server: its lines come as events, and its stderr is passed on, its last lines kept.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tether_base::display_text::escape_line;
use tether_base::error::Result;
use tether_base::sync::lock;
use tether_process::{Process, spawn_piped, stop_tree};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::codec::FramedRead;

use crate::frontends::stdio_lines::{InputLine, LineDecoder};

/// A longer line is none: a tool's result may have pictures.
pub(super) const MAX_LINE: usize = 64 << 20;
/// How many lines of stderr are kept, and how much of each, in characters.
const KEPT_LINES: usize = 20;
const MAX_KEPT_CHARS: usize = 400;
/// A longer line of stderr is dropped.
const MAX_STDERR_LINE: usize = 1 << 20;
/// With more than this waiting, in bytes, nothing more is read of the client.
const MAX_QUEUED: usize = 1 << 20;
/// How many lines are written at once.
const MAX_BATCH: usize = 256;
/// How long a server may take to end once its stdin is closed, and then after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long the end of its stderr is waited for once it has ended: a process of its own may hold it.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// What comes from a server.
pub(super) enum ServerEvent {
    Line(Bytes),
    /// Its stdout has ended, with the process or before it: how.
    Ended(String),
    /// It waits for its debugger on this port.
    DebuggerPort(u16),
    /// The debug session that it is attached to.
    Attached(Result<String>),
    /// The state of a debug session has changed; where its program is stopped, what is to be said of that.
    SessionState {
        session: String,
        stop: Option<String>,
    },
}

/// The events of all servers, by their generation.
pub(super) type ServerEvents = mpsc::Sender<(u64, ServerEvent)>;

/// The lines that wait for a server's stdin. There is no bound: who answers a server must not wait for it. See [`Self::is_full`].
#[derive(Clone)]
struct InputQueue {
    lines: mpsc::UnboundedSender<Bytes>,
    bytes: Arc<AtomicUsize>,
    drained: Arc<Notify>,
}

pub(super) struct WrappedServer {
    pub generation: u64,
    process: Process,
    input: InputQueue,
    stderr: Arc<Mutex<VecDeque<String>>>,
}

impl WrappedServer {
    /// `waits`: it prints to stderr on which port it waits for its debugger. Errors: it cannot be started.
    pub fn start(
        generation: u64,
        (argv, waits): (&[OsString], bool),
        cwd: &Path,
        events: &ServerEvents,
    ) -> Result<WrappedServer> {
        let env = std::env::vars_os().collect();
        let started = spawn_piped(argv, cwd, &env, true)?;
        let (lines, queued) = mpsc::unbounded_channel();
        let input = InputQueue { lines, bytes: Arc::default(), drained: Arc::default() };
        let stderr = Arc::default();
        if let Some(stdin) = started.stdin {
            tokio::spawn(write_lines(stdin, queued, Arc::clone(&input.bytes), Arc::clone(&input.drained)));
        }
        let keeping =
            tokio::spawn(keep_lines(started.stderr, Arc::clone(&stderr), waits.then(|| (generation, events.clone()))));
        let process = started.process.clone();
        tokio::spawn(read_lines(generation, started.stdout, events.clone(), process, keeping));
        Ok(WrappedServer { generation, process: started.process, input, stderr })
    }

    /// Queues a line for its stdin. One that has ended reports that itself.
    pub fn write(&self, line: Bytes) {
        self.input.bytes.fetch_add(line.len() + 1, Ordering::Relaxed);
        let _ = self.input.lines.send(line);
    }

    /// Whether so much waits for it that no more should come.
    pub fn is_full(&self) -> bool {
        self.input.bytes.load(Ordering::Relaxed) > MAX_QUEUED
    }

    /// Notified when it has read something.
    pub fn drained(&self) -> Arc<Notify> {
        Arc::clone(&self.input.drained)
    }

    /// The last lines of its stderr.
    pub fn last_lines(&self) -> String {
        lock(&self.stderr).iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Closes its stdin, and ends it with all its processes.
    pub async fn stop(self) {
        let WrappedServer { process, input, .. } = self;
        let close = async move {
            drop(input);
            true
        };
        let _ = stop_tree(&process, close, GRACE).await;
    }
}

async fn write_lines(
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<Bytes>,
    queued: Arc<AtomicUsize>,
    drained: Arc<Notify>,
) {
    let (mut batch, mut text) = (Vec::new(), Vec::new());
    while lines.recv_many(&mut batch, MAX_BATCH).await > 0 {
        for line in batch.drain(..) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
        // A server that has ended is reported by its stdout.
        let is_open = stdin.write_all(&text).await.is_ok();
        queued.fetch_sub(text.len(), Ordering::Relaxed);
        text.clear();
        text.shrink_to(MAX_QUEUED);
        drained.notify_one();
        if !is_open {
            // What comes is dropped: it holds nobody up.
            queued.store(0, Ordering::Relaxed);
            return;
        }
    }
}

async fn read_lines(
    generation: u64,
    stdout: ChildStdout,
    events: ServerEvents,
    process: Process,
    keeping: JoinHandle<()>,
) {
    let mut lines = FramedRead::new(stdout, LineDecoder::new(MAX_LINE));
    while let Some(Ok(line)) = lines.next().await {
        let InputLine::Whole(line) = line else { continue };
        if events.send((generation, ServerEvent::Line(line))).await.is_err() {
            return;
        }
    }
    let how = match timeout(GRACE, process.wait_for_exit()).await {
        Ok(exit) => format!("the server {exit}"),
        Err(_) => "the server has closed its stdout".to_owned(),
    };
    // Its last lines say why.
    let _ = timeout(STDERR_GRACE, keeping).await;
    let _ = events.send((generation, ServerEvent::Ended(how))).await;
}

/// Passes stderr on: clients show it. `waiting`: whose debugger's port is in it.
async fn keep_lines(stderr: ChildStderr, kept: Arc<Mutex<VecDeque<String>>>, mut waiting: Option<(u64, ServerEvents)>) {
    let mut lines = FramedRead::new(stderr, LineDecoder::new(MAX_STDERR_LINE));
    while let Some(Ok(line)) = lines.next().await {
        let InputLine::Whole(line) = line else { continue };
        if waiting.is_some()
            && let Some(port) = debugger_port(&line)
            && let Some((generation, events)) = waiting.take()
        {
            let _ = events.send((generation, ServerEvent::DebuggerPort(port))).await;
        }
        let _ = tokio::io::stderr().write_all(&[&line[..], b"\n"].concat()).await;
        let mut kept = lock(&kept);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        let shown: String = String::from_utf8_lossy(&line).chars().take(MAX_KEPT_CHARS).collect();
        kept.push_back(escape_line(&shown));
    }
}

/// `Debugger listening on ws://127.0.0.1:40123/…` (Node), `Debugger listening on port 40123`
fn debugger_port(line: &[u8]) -> Option<u16> {
    let place = std::str::from_utf8(line).ok()?.trim().strip_prefix("Debugger listening on ")?;
    match place.strip_prefix("port ") {
        Some(port) => port.parse().ok(),
        None => place.strip_prefix("ws://")?.split('/').next()?.rsplit_once(':')?.1.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_debugger_is_read() {
        let check = |line: &str, expect| assert_eq!(debugger_port(line.as_bytes()), expect, "{line}");
        check("Debugger listening on ws://127.0.0.1:40123/0f2c-11", Some(40123));
        check("Debugger listening on ws://[::1]:9229/0f", Some(9229));
        check("Debugger listening on port 5678", Some(5678));
        check("Debugger listening on port 99999", None);
        check("Server listening on ws://127.0.0.1:1/", None);
    }
}
