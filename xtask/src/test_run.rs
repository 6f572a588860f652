//! A test run: its environment, and the check that no process of it is left.
//!
//! Every process of a run inherits an environment variable and a temporary folder. Chromium's children overwrite
//! their environment with their title, but have their profile, which is in that folder, on the command line: either
//! mark counts. Does not depend on what the processes are for.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

/// The variable that marks every process of a run.
const MARK: &str = "DEVTETHER_TEST_RUN";

/// How long processes that are ending may take.
const GRACE: Duration = Duration::from_secs(5);

/// One run: its mark, and the folder that holds its temporary, runtime and state folders.
pub struct TestRun {
    folder: TempDir,
    grace: Duration,
}

/// A process that outlived its run.
pub struct Leftover {
    pid: Pid,
    command: String,
    handle: OwnedFd,
}

impl TestRun {
    /// The path is kept short: a Unix socket's path ends at 104 bytes.
    pub fn start() -> Result<TestRun> {
        let folder = tempfile::Builder::new().prefix("xt-").rand_bytes(8).tempdir()?;
        open_to_pass(folder.path())?;
        Ok(TestRun { folder, grace: GRACE })
    }

    /// The run's folder, removed when the run is dropped.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A random name that no other run has.
    fn mark(&self) -> &str {
        self.folder().file_name().and_then(|name| name.to_str()).expect("an ASCII name was given")
    }

    /// The environment variables of every process of the run.
    pub fn variables(&self) -> Result<Vec<(&'static str, PathBuf)>> {
        let mut variables = vec![(MARK, PathBuf::from(self.mark()))];
        for (variable, name) in [("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state")] {
            variables.push((variable, private_folder(self.folder().join(name))?));
        }
        open_to_pass(&self.folder().join("tmp"))?;
        Ok(variables)
    }

    /// Errors: processes with the mark still run after the grace period, each with its command line. They are killed.
    pub fn assert_nothing_left(&self) -> Result<()> {
        let deadline = Instant::now() + self.grace;
        let mut left = self.list_leftovers();
        while !left.is_empty() && Instant::now() < deadline {
            await_any_exit(&left, deadline)?;
            left = self.list_leftovers();
        }
        let report: String = left.iter().map(|process| format!("\n  {process}")).collect();
        left.iter().for_each(Leftover::kill);
        ensure!(left.is_empty(), "{} processes were left behind, and have been killed:{report}", left.len());
        Ok(())
    }

    fn list_leftovers(&self) -> Vec<Leftover> {
        let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
        all.flatten().filter_map(|process| self.leftover_of(&process)).collect()
    }

    fn leftover_of(&self, process: &Process) -> Option<Leftover> {
        let pid = Pid::from_raw(process.pid())?;
        // The pidfd is opened first: the marks are then read from the process of the pidfd, or not at all, because
        // `process` holds its folder in /proc open and a reused PID has another one.
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
    fn kill(&self) {
        // Fails only when it has exited meanwhile.
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
    let remaining = remaining.try_into()?;
    retry_on_intr(|| poll(&mut handles, Some(&remaining)))?;
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

/// Lets other users pass through the folder without listing it: some tests run as another user.
fn open_to_pass(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711))?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A run with a short grace period.
    fn run_without_grace() -> TestRun {
        TestRun { grace: Duration::from_millis(50), ..TestRun::start().unwrap() }
    }

    /// Starts the command and waits until it is found: during its exec a process has no environment.
    fn started(run: &TestRun, command: &mut Command) -> Child {
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let since = Instant::now();
        while run.list_leftovers().is_empty() {
            assert!(since.elapsed() < Duration::from_secs(60), "{child:?} is never found");
        }
        child
    }

    fn report_leftover(run: &TestRun, command: &mut Command) -> String {
        let mut child = started(run, command);
        let report = run.assert_nothing_left().unwrap_err().to_string();
        assert!(!child.wait().unwrap().success(), "it was killed");
        report.replace(&child.id().to_string(), "PID")
    }

    #[test]
    fn a_process_with_the_mark_is_reported_and_killed() {
        let run = run_without_grace();
        let report = report_leftover(&run, Command::new("cat").env(MARK, run.mark()));
        assert!(report.starts_with("1 processes were left behind") && report.ends_with("PID  cat"), "{report}");
        run.assert_nothing_left().unwrap();
    }

    #[test]
    fn a_process_without_its_environment_is_found_by_the_folder_on_its_command_line() {
        let run = run_without_grace();
        let folder = run.folder().join("profile");
        let report = report_leftover(&run, Command::new("sh").env_clear().arg("-c").arg("read line").arg(folder));
        assert!(report.contains("read line"), "{report}");
    }

    #[test]
    fn processes_of_another_run_are_not_killed() {
        let (mine, other) = (TestRun::start().unwrap(), TestRun::start().unwrap());
        let mut child = started(&other, Command::new("cat").env(MARK, other.mark()));
        mine.assert_nothing_left().unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
