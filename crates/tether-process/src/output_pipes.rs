//! Gives the output of a program that outlives us readers of its own: a program whose pipe has no reader ends when it prints
//! (SIGPIPE), and one whose pipe is full waits.
//!
//! A reader is a `cat` into `/dev/null`, in its own session; it ends with the last copy of the program's end of the pipe.
//! The other end may be ours, or a debugger's: that of a terminal (LLDB), a pipe (gdb) or a socket pair (Node). It is copied
//! out of the debugger then, while that is still there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use procfs::process::{FDPermissions, FDTarget};
use rustix::fs::{FileType, OFlags, fcntl_setfl, fstat};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tether_base::error::{ErrorContext, Result};

use super::command_spawn::{build_command, spawn_process};
use super::environment::clean_environment;

/// The reading ends of the output of a program.
#[derive(Default)]
pub struct OutputPipes(Vec<OwnedFd>);

impl OutputPipes {
    /// Copies of our ends. Errors: out of descriptors.
    pub fn duplicate(stdout: &impl AsFd, stderr: &impl AsFd) -> io::Result<OutputPipes> {
        Ok(OutputPipes(vec![stdout.as_fd().try_clone_to_owned()?, stderr.as_fd().try_clone_to_owned()?]))
    }

    /// Copies of the ends that a debugger holds of the output of programs. They share its file descriptions, so readers are
    /// to be left only once it has exited. Errors: the debugger has no such end, or it cannot be copied.
    pub fn copy_from_debugger(debugger: u32, programs: &[u32]) -> io::Result<OutputPipes> {
        let is_output = |target: &FDTarget| match target {
            FDTarget::Path(path) => path.starts_with("/dev/pts"),
            FDTarget::Pipe(_) | FDTarget::Socket(_) => true,
            _ => false,
        };
        let outputs = programs.iter().flat_map(|pid| list_descriptors(*pid)).filter(|(fd, ..)| matches!(fd, 1 | 2));
        let is_pipe_reader = |(_, it, mode): &(RawFd, FDTarget, FDPermissions)| {
            matches!(it, FDTarget::Pipe(_)) && mode.contains(FDPermissions::READ)
        };
        // What we read ourselves is no debugger's.
        let ours: Vec<FDTarget> =
            list_descriptors(std::process::id()).filter(is_pipe_reader).map(|(_, target, _)| target).collect();
        let outputs = outputs.map(|(_, target, _)| target).filter(|it| is_output(it) && !ours.contains(it));
        let mut missing: Vec<FDTarget> = outputs.collect();
        let mut ends = Vec::new();
        for it in list_descriptors(debugger) {
            let (fd, target, _) = &it;
            let other_end = match target {
                FDTarget::Path(path) if path.ends_with("ptmx") => read_terminal(debugger, *fd),
                FDTarget::Pipe(_) => is_pipe_reader(&it).then(|| target.clone()),
                FDTarget::Socket(_) => Some(target.clone()),
                _ => None,
            };
            let Some(other_end) = other_end else { continue };
            let is_socket = |it: &FDTarget| matches!(it, FDTarget::Socket(_));
            let is_other_end = |it: &FDTarget| *it == other_end || (is_socket(it) && is_socket(&other_end));
            if !missing.iter().any(is_other_end) && !ends.iter().any(|(it, _)| is_other_end(it)) {
                continue;
            }
            let end = copy_descriptor(debugger, *fd)?;
            if !is_socket(&other_end) || is_socket_pair(&end) {
                missing.retain(|it| !is_other_end(it));
                ends.push((other_end, end));
            }
        }
        match missing.first() {
            Some(output) => Err(io::Error::other(format!("process {debugger} does not hold its {output:?}"))),
            None => Ok(OutputPipes(ends.into_iter().map(|(_, end)| end).collect())),
        }
    }

    /// Starts a reader for each pipe, which discards what it reads. Errors: it cannot be started.
    pub fn leave_readers(&self) -> Result<()> {
        self.0.iter().try_for_each(leave_reader)
    }
}

fn leave_reader(pipe: &OwnedFd) -> Result<()> {
    let pipe =
        copy_blocking(pipe).doing(|| "cannot keep reading the output of a program that is detached from".to_owned())?;
    let argv = ["cat".into()];
    let mut command = build_command(&argv, Path::new("/"), &clean_environment::<&str, &str>([]))?;
    command.stdin(pipe).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    spawn_process(command, &argv).map(drop)
}

/// The descriptors of a process; none of one that has exited.
fn list_descriptors(pid: u32) -> impl Iterator<Item = (RawFd, FDTarget, FDPermissions)> {
    let all = procfs::process::Process::new(pid as i32).and_then(|it| it.fd());
    all.into_iter().flatten().flatten().map(|it| (it.fd, it.target.clone(), it.mode()))
}

/// The terminal whose controlling end that descriptor of a process is.
fn read_terminal(pid: u32, fd: RawFd) -> Option<FDTarget> {
    let facts = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let number = facts.lines().find_map(|line| line.strip_prefix("tty-index:"))?.trim();
    Some(FDTarget::Path(format!("/dev/pts/{number}").into()))
}

fn copy_descriptor(pid: u32, fd: RawFd) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?)
}

/// Whether it is one end of a socket pair; of which, no socket says.
fn is_socket_pair(socket: &OwnedFd) -> bool {
    let Ok(socket) = socket.try_clone().map(UnixStream::from) else { return false };
    let is_unnamed = |address: io::Result<std::os::unix::net::SocketAddr>| address.is_ok_and(|it| it.is_unnamed());
    is_unnamed(socket.local_addr()) && is_unnamed(socket.peer_addr())
}

/// A copy of which reads block: ours is non-blocking, for the task that reads it, and a debugger's may be. A pipe is opened
/// again, without waiting for a writer, which may be gone. Others cannot be, and their debugger has exited.
fn copy_blocking(pipe: &OwnedFd) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(pipe)?.st_mode) != FileType::Fifo {
        let copy = pipe.try_clone()?;
        fcntl_setfl(&copy, OFlags::empty())?;
        return Ok(File::from(copy));
    }
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::{ProcessExit, spawn_piped};
    use super::*;

    #[tokio::test]
    async fn a_program_prints_on_when_its_first_reader_is_gone() {
        // More than a pipe holds, once the first line has been read.
        let script = "echo first; read word; head -c 300000 /dev/zero && echo more >&2 && exit 3";
        let argv = ["sh", "-c", script].map(OsString::from);
        let mut piped = spawn_piped(&argv, Path::new("/"), &clean_environment::<&str, &str>([]), true).unwrap();
        OutputPipes::duplicate(&piped.stdout, &piped.stderr).unwrap().leave_readers().unwrap();
        drop((piped.stdout, piped.stderr));
        // The end of its input is the start of its output.
        drop(piped.stdin.take());
        assert_eq!(piped.process.wait_for_exit().await, ProcessExit::Code(3));
    }
}
