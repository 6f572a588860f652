//! The process of a wrapped server: its lines come as events, and its stderr is passed on, its last lines kept.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use tether_base::error::Result;
use tether_base::sync::lock;
use tether_process::{Process, spawn_piped, stop_tree};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, LinesCodec};

/// A longer line is none: a tool's result may have pictures.
const MAX_LINE: usize = 64 << 20;
/// How many lines of stderr are kept, and how much of each, in characters.
const KEPT_LINES: usize = 20;
const MAX_KEPT_CHARS: usize = 400;
/// How many messages wait for a server that does not read.
const QUEUE: usize = 64;
/// How long a server may take to end once its stdin is closed, and then after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// What comes from a server.
pub(super) enum ServerEvent {
    Line(String),
    /// Its stdout has ended: with the process, or before it.
    Ended,
}

/// The events of all servers, by their generation.
pub(super) type ServerEvents = mpsc::Sender<(u64, ServerEvent)>;

pub(super) struct WrappedServer {
    pub generation: u64,
    process: Process,
    /// Its stdin.
    pub lines: mpsc::Sender<String>,
    stderr: Arc<Mutex<VecDeque<String>>>,
}

impl WrappedServer {
    /// Errors: it cannot be started.
    pub fn start(generation: u64, argv: &[OsString], cwd: &Path, events: &ServerEvents) -> Result<WrappedServer> {
        let env = std::env::vars_os().collect();
        let started = spawn_piped(argv, cwd, &env, true)?;
        let (lines, queued) = mpsc::channel(QUEUE);
        let stderr = Arc::default();
        if let Some(stdin) = started.stdin {
            tokio::spawn(write_lines(stdin, queued));
        }
        tokio::spawn(read_lines(generation, started.stdout, events.clone()));
        tokio::spawn(keep_lines(started.stderr, Arc::clone(&stderr)));
        Ok(WrappedServer { generation, process: started.process, lines, stderr })
    }

    /// How it has ended, and what it has printed last.
    pub async fn describe_end(&self) -> String {
        match tokio::time::timeout(GRACE, self.process.wait_for_exit()).await {
            Ok(exit) => format!("the server {exit}"),
            Err(_) => "the server has closed its stdout".to_owned(),
        }
    }

    /// The last lines of its stderr.
    pub fn last_lines(&self) -> String {
        lock(&self.stderr).iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Closes its stdin, and ends it with all its processes.
    pub async fn stop(self) {
        let WrappedServer { process, lines, .. } = self;
        drop(lines);
        if tokio::time::timeout(GRACE, process.wait_for_exit()).await.is_err() {
            let _ = stop_tree(&process, async { false }, GRACE).await;
        } else {
            process.signal_group(rustix::process::Signal::KILL);
        }
    }
}

async fn write_lines(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        // A server that has ended is reported by its stdout.
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_lines(generation: u64, stdout: ChildStdout, events: ServerEvents) {
    let mut lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE));
    while let Some(line) = lines.next().await {
        let Ok(line) = line else { continue };
        if events.send((generation, ServerEvent::Line(line))).await.is_err() {
            return;
        }
    }
    let _ = events.send((generation, ServerEvent::Ended)).await;
}

/// Passes stderr on: clients show it.
async fn keep_lines(stderr: ChildStderr, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = FramedRead::new(stderr, LinesCodec::new_with_max_length(MAX_LINE));
    while let Some(line) = lines.next().await {
        let Ok(line) = line else { continue };
        let _ = tokio::io::stderr().write_all(format!("{line}\n").as_bytes()).await;
        let mut kept = lock(&kept);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line.chars().take(MAX_KEPT_CHARS).collect());
    }
}
