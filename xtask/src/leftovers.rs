//! What a run started and did not end: found, reported, ended.
//!
//! Everything that a run starts inherits an environment variable and a temporary folder of its own. Chromium's
//! children overwrite their environment with their title, but still name their profile, which lies in that
//! folder, on the command line: either mark counts. Must not know what the processes are for.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

/// The variable that marks every process of a run.
const MARK: &str = "DEVTETHER_TEST_RUN";

/// Processes that were told to end may need a moment; a process is only left over when it stays.
const GRACE: Duration = Duration::from_secs(5);

/// One run: its mark, and the folder that takes the place of the temporary, runtime and state folders.
pub struct Run {
    folder: TempDir,
    grace: Duration,
}

/// A process that outlived its run.
pub struct Leftover {
    pid: Pid,
    command: String,
    handle: OwnedFd,
}

impl Run {
    /// The path is kept short: a Unix socket's path ends at 104 bytes.
    pub fn begin() -> Result<Run> {
        let folder = tempfile::Builder::new().prefix("xt-").rand_bytes(8).tempdir()?;
        open_to_pass(folder.path())?;
        Ok(Run { folder, grace: GRACE })
    }

    /// Removed with the run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A random name that no other run has.
    fn mark(&self) -> &str {
        self.folder().file_name().and_then(|name| name.to_str()).expect("we chose an ASCII name")
    }

    /// What the environment of everything that belongs to the run must hold.
    pub fn variables(&self) -> Result<Vec<(&'static str, PathBuf)>> {
        let mut variables = vec![(MARK, PathBuf::from(self.mark()))];
        for (variable, name) in [("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state")] {
            variables.push((variable, private_folder(self.folder().join(name))?));
        }
        open_to_pass(&self.folder().join("tmp"))?;
        Ok(variables)
    }

    /// Fails, naming each, when anything that carries the mark is still alive; ends it.
    pub fn assert_nothing_left(&self) -> Result<()> {
        let deadline = Instant::now() + self.grace;
        let mut left = self.survivors();
        while !left.is_empty() && Instant::now() < deadline {
            await_any_exit(&left, deadline)?;
            left = self.survivors();
        }
        let report: String = left.iter().map(|process| format!("\n  {process}")).collect();
        left.iter().for_each(Leftover::end);
        ensure!(left.is_empty(), "{} processes were left behind, and have been ended:{report}", left.len());
        Ok(())
    }

    fn survivors(&self) -> Vec<Leftover> {
        let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
        all.flatten().filter_map(|process| self.survivor(&process)).collect()
    }

    fn survivor(&self, process: &Process) -> Option<Leftover> {
        let pid = Pid::from_raw(process.pid())?;
        // The handle first: the marks are then read from the process that the handle names, or not at all,
        // because `process` holds its folder in /proc open and a reused PID has another one.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let alive = process.stat().ok().filter(|stat| stat.state != 'Z')?;
        let marked =
            process.environ().is_ok_and(|all| all.get(OsStr::new(MARK)).is_some_and(|mark| mark == self.mark()));
        let arguments = process.cmdline().unwrap_or_default();
        let named = arguments.iter().any(|argument| argument.contains(self.mark()));
        let command = if arguments.is_empty() { alive.comm } else { arguments.join(" ") };
        (marked || named).then_some(Leftover { pid, command, handle })
    }
}

impl Leftover {
    fn end(&self) {
        // Gone in the meantime is as good.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.command.chars().take(200).collect();
        write!(f, "{:>8}  {shown}", self.pid)
    }
}

/// Returns when one of them has ended, or at the deadline.
fn await_any_exit(processes: &[Leftover], deadline: Instant) -> Result<()> {
    let mut handles: Vec<PollFd<'_>> =
        processes.iter().map(|process| PollFd::from_borrowed_fd(process.handle.as_fd(), PollFlags::IN)).collect();
    let remaining = deadline.saturating_duration_since(Instant::now());
    poll(&mut handles, Some(&remaining.try_into()?))?;
    Ok(())
}

/// Creates the folder for this user alone, as a runtime folder must be.
fn private_folder(path: PathBuf) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    if !path.is_dir() {
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    }
    Ok(path)
}

/// Lets other users pass through the folder, and list nothing: some tests are one of them.
fn open_to_pass(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711))?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A run in which a process that nobody has told to end is not waited for long.
    fn impatient() -> Run {
        Run { grace: Duration::from_millis(50), ..Run::begin().unwrap() }
    }

    /// Started, and seen: in the middle of its exec a process shows no environment.
    fn started(run: &Run, command: &mut Command) -> Child {
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        while run.survivors().is_empty() {
            assert!(since.elapsed() < Duration::from_secs(60), "{child:?} is never seen");
        }
        child
    }

    fn left_behind(run: &Run, command: &mut Command) -> String {
        let mut child = started(run, command);
        let told = run.assert_nothing_left().unwrap_err().to_string();
        assert!(!child.wait().unwrap().success(), "it was ended");
        told.replace(&child.id().to_string(), "PID")
    }

    #[test]
    fn a_process_that_carries_the_mark_is_named_and_ended() {
        let run = impatient();
        let told = left_behind(&run, Command::new("cat").env(MARK, run.mark()));
        assert!(told.starts_with("1 processes were left behind") && told.ends_with("PID  cat"), "{told}");
        run.assert_nothing_left().unwrap();
    }

    #[test]
    fn a_process_that_lost_its_environment_is_known_by_the_folder_on_its_command_line() {
        let run = impatient();
        let folder = run.folder().join("profile");
        let told = left_behind(&run, Command::new("sh").env_clear().arg("-c").arg("read line").arg(folder));
        assert!(told.contains("read line"), "{told}");
    }

    #[test]
    fn another_runs_processes_are_left_alone() {
        let (mine, other) = (Run::begin().unwrap(), Run::begin().unwrap());
        let mut child = started(&other, Command::new("cat").env(MARK, other.mark()));
        mine.assert_nothing_left().unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
