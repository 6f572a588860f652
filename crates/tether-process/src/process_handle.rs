//! [`Process`]: one process held by its pidfd, so that a signal can never hit a reused PID.
//!
//! ```text
//!            spawn ──► running, ours ────exit────► zombie ──wait_for_exit()──► reaped, ProcessExit::Code / Signal
//! open (reconnect) ──► running, another's ──exit──────────wait_for_exit()────► ProcessExit::Unknown
//! ```
//! The kernel makes the pidfd readable when the process exits; nothing is polled. Does not depend on why a process
//! runs.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use tether_base::sync::lock;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

use super::exit_status::read_exit;
use super::platform;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited by itself, with this code.
    Code(i32),
    /// The signal of this number ended it.
    Signal(i32),
    /// It was not our child (reconnected after a restart), and this kernel tells only its parent.
    Unknown,
}

impl ProcessExit {
    /// Whether the code is known and 0.
    pub fn is_success(self) -> bool {
        self == ProcessExit::Code(0)
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessExit::Code(code) => write!(f, "exited with code {code}"),
            ProcessExit::Signal(signal) => write!(f, "was ended by signal {signal}"),
            ProcessExit::Unknown => write!(f, "has ended"),
        }
    }
}

impl From<ExitStatus> for ProcessExit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => ProcessExit::Code(code),
            (None, Some(signal)) => ProcessExit::Signal(signal),
            (None, None) => ProcessExit::Unknown,
        }
    }
}

/// A process, running or exited; clones refer to the same process. Dropping the last one does nothing to the process
/// (a child is reaped by the runtime later).
#[derive(Clone)]
pub struct Process(Arc<ProcessData>);

struct ProcessData {
    pid: u32,
    start_ticks: u64,
    pidfd: AsyncFd<OwnedFd>,
    /// Present when it is our child: who reaps it. Until then its PID, and its group's id, cannot be reused.
    child: Option<Mutex<Child>>,
    exit: OnceLock<ProcessExit>,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Process({} since tick {})", self.pid(), self.start_ticks())
    }
}

impl Process {
    /// Holds a running process that may not be our child. PID 0, 1 and our own are refused, zombies too.
    /// Must be called within a tokio runtime.
    pub fn open(pid: u32) -> io::Result<Process> {
        if pid <= 1 || pid == std::process::id() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("PID {pid} is never a window's")));
        }
        let process = Process::hold(pid, None)?;
        // The PID may have been reused between the two calls; it has not while the pidfd's process runs.
        if process.is_alive() { Ok(process) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Holds a child that has just been spawned; it may already have ended (its zombie keeps the PID ours).
    pub(super) fn from_child(child: Child) -> io::Result<Process> {
        Process::hold(child.id().ok_or(io::ErrorKind::NotFound)?, Some(Mutex::new(child)))
    }

    fn hold(pid: u32, child: Option<Mutex<Child>>) -> io::Result<Process> {
        let pidfd = open_pidfd(pid)?;
        // SAFETY: an OwnedFd is an open descriptor, always returns the same one, and closes it only when the AsyncFd
        // that owns it from here on is dropped.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
        let start_ticks = platform::read_facts(pid)?.start_ticks;
        Ok(Process(Arc::new(ProcessData { pid, start_ticks, pidfd, child, exit: OnceLock::new() })))
    }

    /// The PID, which is the process's own until it has been reaped.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Clock ticks between boot and the start of the process.
    pub fn start_ticks(&self) -> u64 {
        self.0.start_ticks
    }

    /// Whether it has not exited yet.
    pub fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(self.0.pidfd.get_ref(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.0.exit.get().is_none() && matches!(retry_on_intr(|| poll(&mut fds, Some(&now))), Ok(0))
    }

    /// Resolves when the process has ended, with how; reaps it when it is our child.
    /// Cancel-safe; any number of tasks may wait at once, and again afterwards.
    pub async fn wait_for_exit(&self) -> ProcessExit {
        self.wait_for_end().await;
        *self.0.exit.get_or_init(|| self.reap())
    }

    /// How it has ended. `None`: it runs.
    pub fn exit(&self) -> Option<ProcessExit> {
        (!self.is_alive()).then(|| *self.0.exit.get_or_init(|| self.reap()))
    }

    /// Resolves when the process has ended, and leaves a child unreaped so that its group's id stays ours.
    pub(super) async fn wait_for_end(&self) {
        if self.0.exit.get().is_none() {
            // An error means that the runtime is shutting down: no caller is left.
            let _ = self.0.pidfd.readable().await;
        }
    }

    /// Resolves when the process has ended and its parent has reaped it: its PID names nothing any more. The kernel reports no
    /// event for that.
    pub(super) async fn wait_until_reaped(&self) {
        const INTERVAL: Duration = Duration::from_millis(5);
        self.wait_for_exit().await;
        let is_there = || platform::read_facts(self.pid()).is_ok_and(|now| now.start_ticks == self.start_ticks());
        while is_there() {
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn reap(&self) -> ProcessExit {
        let Some(child) = &self.0.child else {
            return read_exit(self.0.pidfd.get_ref().as_fd(), self.pid(), self.start_ticks());
        };
        lock(child).try_wait().ok().flatten().map_or(ProcessExit::Unknown, ProcessExit::from)
    }

    /// Sends a signal to this very process; an exited one is not an error.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(self.0.pidfd.get_ref(), signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Signals the whole group of a child that `spawn_piped` made a group leader. Does nothing for another's
    /// process, nor once the child has been reaped: the group's id could be a stranger's by then.
    pub fn signal_group(&self, signal: Signal) {
        let (Some(child), Some(group)) = (&self.0.child, pid_of(self.0.pid)) else { return };
        let child = lock(child);
        if child.id().is_some() {
            // Fails only when the group is empty.
            let _ = kill_process_group(group, signal);
        }
    }
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = pid_of(pid).ok_or(io::ErrorKind::NotFound)?;
    pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|cause| match cause {
        // EINVAL: the PID of a thread.
        rustix::io::Errno::SRCH | rustix::io::Errno::INVAL => io::ErrorKind::NotFound.into(),
        cause => cause.into(),
    })
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        let child = tokio::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        Process::from_child(child).unwrap()
    }

    #[tokio::test]
    async fn the_exit_of_a_child_is_returned_to_every_waiter() {
        let check = async |script: &str, expect: ProcessExit| {
            let process = shell(script);
            let (first, second) = tokio::join!(process.wait_for_exit(), process.wait_for_exit());
            assert_eq!((first, second, process.wait_for_exit().await), (expect, expect, expect), "{script}");
            assert!(!process.is_alive());
            process.signal(Signal::KILL).unwrap();
        };
        check("exit 0", ProcessExit::Code(0)).await;
        check("exit 7", ProcessExit::Code(7)).await;
        check("kill -9 $$", ProcessExit::Signal(9)).await;
    }

    #[tokio::test]
    async fn the_exit_of_a_process_that_is_not_our_child_is_known_before_and_after_it_was_reaped() {
        let child = shell("exec sleep 60");
        let other = Process::open(child.pid()).unwrap();
        assert!(other.is_alive());
        assert_eq!(other.start_ticks(), child.start_ticks());
        other.signal(Signal::TERM).unwrap();
        let late = Process::open(child.pid());
        assert_eq!(other.wait_for_exit().await, ProcessExit::Signal(15));
        assert_eq!(child.wait_for_exit().await, ProcessExit::Signal(15));
        // Older kernels tell no one but its parent.
        if let (Ok(late), Some((6, 15..) | (7.., _))) = (late, kernel_version()) {
            assert_eq!(late.wait_for_exit().await, ProcessExit::Signal(15));
        }
    }

    #[tokio::test]
    async fn the_exit_code_of_another_process_is_known_once_it_was_reaped() {
        if !matches!(kernel_version(), Some((6, 15..) | (7.., _))) {
            return;
        }
        let mut command = tokio::process::Command::new("sh");
        let mut child = command.args(["-c", "read line; exit 7"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let child = Process::from_child(child).unwrap();
        let other = Process::open(child.pid()).unwrap();
        assert_eq!(other.exit(), None);
        drop(input);
        assert_eq!(child.wait_for_exit().await, ProcessExit::Code(7));
        assert_eq!(other.exit(), Some(ProcessExit::Code(7)));
    }

    fn kernel_version() -> Option<(u32, u32)> {
        let release = rustix::system::uname().release().to_str().ok()?.to_owned();
        let mut numbers = release.split(['.', '-']).map_while(|it| it.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }

    #[tokio::test]
    async fn a_signal_that_arrives_during_the_question_makes_no_process_appear_ended() {
        let _handler = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::user_defined2()).unwrap();
        let child = shell("exec sleep 60");
        // SAFETY: it has no preconditions.
        let this_thread = unsafe { libc::pthread_self() };
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                for _ in 0..20_000 {
                    // SAFETY: the scope joins this thread before the other one can end.
                    assert_eq!(unsafe { libc::pthread_kill(this_thread, libc::SIGUSR2) }, 0);
                }
            });
            while !sender.is_finished() {
                assert!(child.is_alive());
            }
        });
        child.signal(Signal::KILL).unwrap();
        child.wait_for_exit().await;
    }

    #[tokio::test]
    async fn an_ended_child_leaves_no_zombie() {
        let process = shell("exit 0");
        let pid = process.pid();
        process.wait_for_exit().await;
        assert_eq!(platform::read_facts(pid).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn pids_that_are_never_a_window_are_refused() {
        for pid in [0, 1, std::process::id(), u32::MAX] {
            assert!(Process::open(pid).is_err(), "{pid}");
        }
        let zombie = shell("exit 0");
        zombie.wait_for_end().await;
        assert!(Process::open(zombie.pid()).is_err());
        zombie.wait_for_exit().await;
    }
}
