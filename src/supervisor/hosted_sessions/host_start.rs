//! Starts the process of a session host: in a session of its own, so that nothing takes it along.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::session_host::protocol::HostStartup;
use crate::supervisor::paths::SupervisorPaths;

/// How long a host may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a host for the session with this launch id. Errors: it does not listen in time, or cannot.
pub async fn start_host(program: &Path, paths: &SupervisorPaths, launch_id: &str, socket: &Path) -> Result<Child> {
    let doing = || "cannot start the process for the debug session".to_owned();
    let mut child = host_command(program, paths, launch_id, socket).spawn().doing(doing)?;
    let stdout = child.stdout.take().ok_or_else(|| Error::other(doing()).because("its stdout is not a pipe"))?;
    let startup = match timeout(START_TIMEOUT, read_startup(stdout)).await {
        Ok(startup) => startup,
        Err(_) => {
            let _ = child.start_kill();
            let error = Error::new(ErrorKind::TimedOut, doing());
            let error = error.because(format!("it did not listen within {START_TIMEOUT:?}"));
            return Err(error.hint("`tether logs` shows what it was doing"));
        }
    };
    match startup {
        Some(HostStartup::Ready) => Ok(child),
        Some(HostStartup::Failed(data)) => Err(data.into()),
        None => {
            let error = Error::other(doing()).because("it exited before it listened");
            Err(error.hint("`tether logs` shows what it was doing"))
        }
    }
}

/// The first line of its output that says how it has started. `None`: it ends before.
async fn read_startup(stdout: impl AsyncRead + Unpin) -> Option<HostStartup> {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(startup) = serde_json::from_str(&line) {
            return Some(startup);
        }
    }
    None
}

fn host_command(program: &Path, paths: &SupervisorPaths, launch_id: &str, socket: &Path) -> Command {
    let mut command = std::process::Command::new(program);
    // As it is listed: not by the link through which it may be found.
    if let Ok(own) = tether_process::find_own_program() {
        command.arg0(own);
    }
    command.arg("session-host").arg("--workspace").arg(&paths.workspace);
    command.arg("--state").arg(&paths.state).arg("--socket").arg(socket).arg("--launch-id").arg(launch_id);
    // Does not keep a deleted workspace or an unmounted disk in use.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // SAFETY: between fork and exec only `setsid` is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
    Command::from(command)
}
