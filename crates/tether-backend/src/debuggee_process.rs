//! The process of a program that an adapter in this process has launched: its environment, its output, its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tether_base::error::{Error, Result};
use tether_process::{OutputPipes, PipedProcess, Process, ProcessExit};
use tokio::sync::mpsc;
use tracing::warn;

use super::output_reader::{OutputPiece, OutputReader, OutputStream};

/// How long the rest of the output is read after the exit.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// Between SIGTERM and SIGKILL.
const EXIT_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A launched program. It is killed when this is dropped, except after [`DebuggeeProcess::detach`].
pub struct DebuggeeProcess {
    /// The process itself.
    pub process: Process,
    launch_id: String,
    output_reader: OutputReader,
    pipes: Option<OutputPipes>,
    /// Files of ours that the program uses.
    folder: Option<TempDir>,
    is_released: bool,
}

impl Drop for DebuggeeProcess {
    fn drop(&mut self) {
        if !self.is_released {
            tether_process::kill_launch(&self.launch_id);
            self.process.signal_group(Signal::KILL);
        }
    }
}

/// Our environment with the variables of a configuration (`None` removes one), and the launch id.
pub fn debuggee_environment(
    variables: &BTreeMap<String, Option<String>>,
    launch_id: &str,
) -> BTreeMap<OsString, OsString> {
    let mut env = tether_process::clean_environment::<&str, &str>([]);
    for (name, value) in variables {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }
    env.insert(tether_process::LAUNCH_ID.into(), launch_id.into());
    env
}

impl DebuggeeProcess {
    /// Starts a program with an environment of [`debuggee_environment`]. The folder, which it uses, is removed after its end.
    /// Errors: it cannot be started.
    pub fn spawn(
        argv: &[OsString],
        cwd: &Path,
        environment: &BTreeMap<OsString, OsString>,
        launch_id: &str,
        folder: Option<TempDir>,
    ) -> Result<(DebuggeeProcess, mpsc::Receiver<OutputPiece>)> {
        let PipedProcess { process, stdout, stderr, .. } = tether_process::spawn_piped(argv, cwd, environment, false)?;
        let pipes = OutputPipes::duplicate(&stdout, &stderr).ok();
        let (output_reader, output) = OutputReader::new();
        output_reader.read_stream(OutputStream::Stdout, stdout, |_| {});
        output_reader.read_stream(OutputStream::Stderr, stderr, |_| {});
        let launch_id = launch_id.to_owned();
        Ok((DebuggeeProcess { process, launch_id, output_reader, pipes, folder, is_released: false }, output))
    }

    /// Waits until it exits before it can be debugged; the error has its last output.
    pub async fn wait_for_early_exit(&self, name: &str) -> Error {
        let exit = self.wait_for_end().await;
        let tail = self.output_reader.tail();
        let tail = if tail.is_empty() { " and printed nothing".to_owned() } else { format!("; its output:\n{tail}") };
        Error::other(format!("{name} exited before it could be debugged")).because(format!("it {exit}{tail}"))
    }

    /// How it has exited, once the rest of its output has been read.
    pub async fn wait_for_end(&self) -> ProcessExit {
        let exit = self.process.wait_for_exit().await;
        self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
        exit
    }

    /// Waits until the streams of its output have ended; a moment at most, since a child of the program may keep them open.
    pub async fn wait_for_last_output(&self) {
        self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
    }

    /// Ends the program and everything that it has started. A stopped program is killed: it cannot handle SIGTERM, or would
    /// run on for that.
    pub async fn stop(mut self, is_stopped: bool) {
        if is_stopped {
            self.process.signal_group(Signal::KILL);
        }
        let stopped = tether_process::stop_tree(&self.process, async { false }, EXIT_GRACE_PERIOD).await;
        let swept = tether_process::sweep_launch(&self.launch_id, None, Duration::ZERO).await;
        for error in [stopped.err().map(|it| it.to_string()), swept.err().map(|it| it.to_string())].iter().flatten() {
            warn!("cannot stop the program: {error}");
        }
        self.is_released = true;
    }

    /// Lets the program run on; its output is still read.
    pub fn detach(mut self) {
        self.is_released = true;
        // It, and what it starts, still use what is in it.
        self.folder.take().map(TempDir::keep);
        if let Some(Err(error)) = self.pipes.as_ref().map(OutputPipes::leave_readers) {
            warn!("{error}");
        }
    }
}
