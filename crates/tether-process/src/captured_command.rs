//! Runs a command to its end and keeps the last part of its output: builds.
//!
//! ```text
//!            ┌── leader exits ───────────► drain the pipe ≤ 250 ms ──► Finished
//! running ───┼── deadline / cancelled / a line ──► TERM group ─ grace ─ KILL group ─► drain ──► Finished
//!            └── future dropped ────────► KILL group
//! ```
//! The command ends with its *leader's* exit, not with the pipe: a build may leave a daemon that keeps the pipe open.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use tether_base::error::{ErrorContext, Result};
use tether_base::sync::run_blocking;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::process_handle::{Process, ProcessExit};
use super::tree_stop::stop_tree;
use super::{command_spawn, output_file, platform};

const TAIL_BYTES: usize = 64 * 1024;
const TAIL_LINES: usize = 200;
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// After the leader's exit, for reading what is in the pipe.
const DRAIN: Duration = Duration::from_millis(250);

/// A command to be run to its end.
#[derive(Clone, Debug)]
pub struct CapturedCommand {
    /// The program and its arguments; no shell reads them.
    pub argv: Vec<OsString>,
    /// The folder that it runs in; it must exist.
    pub cwd: PathBuf,
    /// The whole environment; see [`super::clean_environment`].
    pub env: BTreeMap<OsString, OsString>,
    /// Its process tree is stopped after this long.
    pub timeout: Duration,
}

/// Why a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Its leader ended by itself.
    Exited(ProcessExit),
    /// The deadline passed; its process tree was stopped.
    TimedOut,
    /// The caller's `cancel` resolved, or a line satisfied it; its process tree was stopped.
    Cancelled,
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct FinishedCommand {
    /// Whether it ended by itself or was stopped.
    pub outcome: RunOutcome,
    /// From its start until its output was read.
    pub duration: Duration,
    /// The last lines of both streams, interleaved, at most 200 of at most 64 KiB.
    pub tail: String,
    /// The size of the whole output.
    pub output_bytes: u64,
    /// Processes that the command has left and that still have its output open ("4711 (watchman)").
    pub held_by: Vec<String>,
}

impl FinishedCommand {
    /// Whether it exited with code 0 by itself.
    pub fn is_success(&self) -> bool {
        matches!(self.outcome, RunOutcome::Exited(exit) if exit.is_success())
    }
}

/// Runs the command in a group of its own until it exits, the deadline passes or `cancel` resolves.
/// Dropping the future kills the group. Errors: it cannot be started, as `spawn_piped`.
pub async fn run_command(what: &CapturedCommand, cancel: impl Future<Output = ()>) -> Result<FinishedCommand> {
    run_to_end(what, None, cancel, OutputTail::default()).await
}

/// As [`run_command`], and stops the command, with [`RunOutcome::Cancelled`], after a line for which `is_last` is true.
/// It is called for the lines after that one too. The command's stdin stays open and empty: watchers exit when it is
/// closed.
pub async fn run_until_line(
    what: &CapturedCommand,
    mut is_last: impl FnMut(&str) -> bool + Send,
) -> Result<FinishedCommand> {
    let doing = || format!("cannot start {}", command_spawn::display_command(&what.argv));
    let (stdin, _held_open) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).doing(doing)?;
    let stop = Notify::new();
    let mut on_line = |line: &str| {
        if is_last(line) {
            stop.notify_one();
        }
    };
    let kept = OutputTail { on_line: Some(&mut on_line), ..OutputTail::default() };
    run_to_end(what, Some(stdin), stop.notified(), kept).await
}

async fn run_to_end(
    what: &CapturedCommand,
    stdin: Option<OwnedFd>,
    cancel: impl Future<Output = ()>,
    mut kept: OutputTail<'_>,
) -> Result<FinishedCommand> {
    let started = Instant::now();
    let (reader, process) = start_command(what, stdin)?;
    let group = KillGroupOnDrop(&process);
    let mut pipe = Receiver::from_owned_fd(reader)
        .doing(|| format!("cannot read from {}", command_spawn::display_command(&what.argv)))?;
    let outcome = {
        let reading = kept.read_all(&mut pipe);
        let ending = wait_for_end(&process, what.timeout, cancel);
        tokio::pin!(reading, ending);
        tokio::select! {
            outcome = &mut ending => outcome,
            () = &mut reading => ending.await, // it has closed its output and still runs
        }
    };
    let drained = timeout(DRAIN, kept.read_all(&mut pipe)).await.is_ok();
    let held_by = if drained { Vec::new() } else { list_pipe_holders(&pipe).await };
    process.wait_for_exit().await;
    drop(group);
    let tail = kept.tail();
    Ok(FinishedCommand { outcome, duration: started.elapsed(), tail, output_bytes: kept.total, held_by })
}

fn start_command(what: &CapturedCommand, stdin: Option<OwnedFd>) -> Result<(OwnedFd, Process)> {
    let doing = || format!("cannot start {}", command_spawn::display_command(&what.argv));
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).doing(doing)?;
    let again = writer.try_clone().doing(doing)?;
    let mut command = command_spawn::build_command(&what.argv, &what.cwd, &what.env)?;
    command.stdout(writer).stderr(again);
    if let Some(stdin) = stdin {
        command.stdin(stdin);
    }
    // Spawning consumes the command, and with it our write ends: the pipe is closed with its last outside holder.
    Ok((reader, command_spawn::spawn_process(command, &what.argv)?))
}

async fn wait_for_end(process: &Process, deadline: Duration, cancel: impl Future<Output = ()>) -> RunOutcome {
    let outcome = tokio::select! {
        biased; // a command that has exited was not cancelled
        () = process.wait_for_end() => return RunOutcome::Exited(process.wait_for_exit().await),
        () = cancel => RunOutcome::Cancelled,
        () = tokio::time::sleep(deadline) => RunOutcome::TimedOut,
    };
    // An error means that a process hangs in the kernel: nothing more can be done.
    let _ = stop_tree(process, async { false }, GRACE).await;
    outcome
}

struct KillGroupOnDrop<'a>(&'a Process);

impl Drop for KillGroupOnDrop<'_> {
    fn drop(&mut self) {
        self.0.signal_group(Signal::KILL); // does nothing once the leader has been reaped
    }
}

async fn list_pipe_holders(pipe: &Receiver) -> Vec<String> {
    let Ok(stat) = rustix::fs::fstat(pipe) else { return Vec::new() };
    run_blocking(move || {
        let pids = platform::list_pipe_holders(stat.st_ino).unwrap_or_default();
        pids.into_iter().map(|pid| format!("{pid} ({})", platform::read_name(pid).unwrap_or_default())).collect()
    })
    .await
}

/// The last part of the output, of bounded size.
#[derive(Default)]
struct OutputTail<'a> {
    bytes: VecDeque<u8>,
    total: u64,
    on_line: Option<&'a mut (dyn FnMut(&str) + Send)>,
    /// The unfinished line.
    line: Vec<u8>,
}

impl OutputTail<'_> {
    /// Reads until the pipe ends. Cancel-safe: each read is kept before the next begins.
    async fn read_all(&mut self, pipe: &mut Receiver) {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.keep(&chunk[..count]);
        }
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        if let Some(on_line) = &mut self.on_line {
            let parts = chunk.split_inclusive(|byte| *byte == b'\n');
            parts.filter_map(|part| output_file::complete_line(&mut self.line, part)).for_each(|line| on_line(&line));
        }
        self.bytes.extend(&chunk[chunk.len().saturating_sub(TAIL_BYTES)..]);
        self.bytes.drain(..self.bytes.len().saturating_sub(TAIL_BYTES));
    }

    fn tail(&mut self) -> String {
        let cut = self.total > self.bytes.len() as u64;
        output_file::last_lines(&String::from_utf8_lossy(self.bytes.make_contiguous()), TAIL_LINES, cut)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clean_environment;
    use super::*;

    fn shell(script: &str, timeout: Duration) -> CapturedCommand {
        let argv = ["sh", "-c", script].map(Into::into).to_vec();
        CapturedCommand { argv, cwd: std::env::temp_dir(), env: clean_environment::<&str, &str>([]), timeout }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_command_that_exits_is_reported_with_its_code_and_output() {
        let check = async |script: &str, outcome: RunOutcome, tail: &str| {
            let finished = run_command(&shell(script, LONG), std::future::pending()).await.unwrap();
            assert_eq!((finished.outcome, finished.tail.as_str()), (outcome, tail), "{script}");
            assert!(finished.held_by.is_empty());
        };
        check("echo one; echo two >&2", RunOutcome::Exited(ProcessExit::Code(0)), "one\ntwo").await;
        check("echo wrong; exit 3", RunOutcome::Exited(ProcessExit::Code(3)), "wrong").await;
        check("kill -SEGV $$", RunOutcome::Exited(ProcessExit::Signal(11)), "").await;
        check("exec >&- 2>&-; exit 4", RunOutcome::Exited(ProcessExit::Code(4)), "").await;
        check("cat; echo no input", RunOutcome::Exited(ProcessExit::Code(0)), "no input").await;
    }

    #[tokio::test]
    async fn a_flood_of_output_stays_bounded() {
        let script = "head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo the end";
        let finished = run_command(&shell(script, LONG), std::future::pending()).await.unwrap();
        assert!(finished.is_success());
        assert_eq!(finished.output_bytes, (1 << 30) + 9);
        assert_eq!(finished.tail, "the end");
    }

    #[tokio::test]
    async fn a_daemon_that_keeps_the_output_open_does_not_delay_the_result() {
        // It is reported by its name, which it has after its exec.
        let script = "sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; echo $!";
        let finished = run_command(&shell(script, LONG), std::future::pending()).await.unwrap();
        assert!(finished.is_success());
        assert!(finished.duration < LONG, "{:?}", finished.duration);
        assert_eq!(finished.held_by, [format!("{} (sleep)", finished.tail)]);
        Process::open(finished.tail.parse().unwrap()).unwrap().signal(Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn a_hanging_command_is_stopped_with_all_its_children() {
        let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 60; done' & wait; wait";
        // Long enough for both shells to set their traps on a busy machine.
        let finished = run_command(&shell(script, Duration::from_secs(3)), std::future::pending()).await.unwrap();
        assert_eq!(finished.outcome, RunOutcome::TimedOut);
        assert!(finished.held_by.is_empty(), "{finished:?}");
        let child = platform::read_facts(finished.tail.parse().unwrap());
        assert!(child.as_ref().map_or(true, |child| child.zombie), "{child:?}");
    }

    #[tokio::test]
    async fn a_cancelled_command_is_stopped() {
        let finished = run_command(&shell("echo $$; sleep 600", LONG), std::future::ready(())).await.unwrap();
        assert_eq!(finished.outcome, RunOutcome::Cancelled);
        assert!(finished.duration < LONG, "{:?}", finished.duration);
    }

    #[tokio::test]
    async fn a_watcher_is_stopped_after_the_line_and_its_stdin_stays_open() {
        // `read` returns at the end of stdin.
        let script =
            "trap 'echo last; exit 0' TERM; exec 3<&0; (read x <&3; echo eof) & printf 'rea'; printf 'dy\\r\\n'; wait";
        let mut lines = Vec::new();
        let seen = |line: &str| {
            lines.push(line.to_owned());
            line == "ready"
        };
        let finished = run_until_line(&shell(script, LONG), seen).await.unwrap();
        assert_eq!(finished.outcome, RunOutcome::Cancelled);
        assert_eq!(lines, ["ready", "last"]);
        let ended = run_until_line(&shell("echo one; exit 3", LONG), |_| false).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Exited(ProcessExit::Code(3)));
    }

    #[tokio::test]
    async fn a_dropped_command_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut what = shell("echo $$ > pid.new; mv pid.new pid; exec sleep 60", LONG);
        what.cwd = folder.path().into();
        let running = tokio::spawn(async move { run_command(&what, std::future::pending()).await });
        let path = folder.path().join("pid");
        let pid = output_file::watch_until(folder.path(), || Ok(std::fs::read_to_string(&path).ok())).await.unwrap();
        let process = Process::open(pid.trim().parse().unwrap()).unwrap();
        running.abort();
        process.wait_for_exit().await;
    }
}
