//! Starting a program whose streams are ours: own session and group, its output in pipes.
//!
//! Who reads the pipes must read on: a program whose pipe is full waits, and one whose pipe is closed ends (SIGPIPE).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::command_spawn;
use super::process_handle::Process;
use crate::error::{Error, Result};

/// A started program and our ends of its streams.
pub struct PipedProcess {
    pub process: Process,
    pub stdin: Option<ChildStdin>,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// Starts the program as the leader of its own session; `env` is its whole environment. Without `input` its stdin is
/// empty. Errors: as [`super::spawn`].
pub fn spawn_piped(
    argv: &[OsString],
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
    input: bool,
) -> Result<PipedProcess> {
    let mut command = command_spawn::build_command(argv, cwd, env)?;
    if input {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| command_spawn::start_error(argv, cause))?;
    let stdin = child.stdin.take();
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(
            Error::other(format!("cannot start {}", command_spawn::display_command(argv))).because("it has no output")
        );
    };
    let process = Process::from_child(child).map_err(|cause| command_spawn::start_error(argv, cause))?;
    Ok(PipedProcess { process, stdin, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::{ProcessExit, clean_environment, read_facts};
    use super::*;

    fn start(script: &str, input: bool) -> PipedProcess {
        let argv = ["sh", "-c", script].map(OsString::from);
        spawn_piped(&argv, &std::env::temp_dir(), &clean_environment::<&str, &str>([]), input).unwrap()
    }

    #[tokio::test]
    async fn a_program_leads_its_own_session_and_its_streams_are_ours() {
        let mut it = start("read word; echo out $word; echo err >&2; exit 3", true);
        assert_eq!(read_facts(it.process.pid()).unwrap().session, it.process.pid());
        it.stdin.take().unwrap().write_all(b"in\n").await.unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        it.stdout.read_to_string(&mut out).await.unwrap();
        it.stderr.read_to_string(&mut err).await.unwrap();
        assert_eq!((out.as_str(), err.as_str()), ("out in\n", "err\n"));
        assert_eq!(it.process.wait_for_exit().await, ProcessExit::Code(3));
    }

    #[tokio::test]
    async fn without_input_there_is_nothing_to_wait_for() {
        assert_eq!(start("read word || exit 4", false).process.wait_for_exit().await, ProcessExit::Code(4));
    }
}
