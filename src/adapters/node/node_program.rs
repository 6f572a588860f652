//! The process of a launched program: started so that each of its Node processes opens its inspector and says where; its
//! output, its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines, Take};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tracing::warn;

use super::launch_arguments::NodeLaunch;
use crate::adapters::output_reader::{OutputPiece, OutputReader, OutputStream};
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, OutputPipes, PipedProcess, Process, ProcessExit};

/// How long a program may take until its first Node process has opened its inspector.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the rest of the output is read after the exit.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// Between SIGTERM and SIGKILL.
const EXIT_GRACE_PERIOD: Duration = Duration::from_millis(500);
/// How much all announcements of a session may have, in bytes.
const MAX_ANNOUNCEMENTS: u64 = 64 << 20;
/// The variable with the path of the pipe on which processes say where their inspector is.
const ANNOUNCEMENTS: &str = "DEVTETHER_INSPECTORS";
/// The variable with the name of the function by which scripts are announced.
const REPORT: &str = "DEVTETHER_INSPECT_REPORT";
/// What each process loads first.
const CHILD_INSPECTOR: &str = include_str!("child_inspector.cjs");

/// A launched program. It is killed when this is dropped, except after [`NodeProgram::detach`].
pub struct NodeProgram {
    pub process: Process,
    launch_id: String,
    output_reader: OutputReader,
    pipes: Option<OutputPipes>,
    /// The script that each process loads first, without links.
    pub script: PathBuf,
    /// Has the pipe and the script.
    _folder: TempDir,
    is_released: bool,
}

/// The processes of a program, as they open their inspectors.
pub struct OpenedInspectors(Lines<BufReader<Take<pipe::Receiver>>>);

/// A process that has opened its inspector.
#[derive(Debug, Deserialize)]
pub struct OpenedInspector {
    pub pid: u32,
    /// `ws://127.0.0.1:PORT/ID`
    pub url: String,
    /// The path of its script.
    pub program: String,
}

impl Drop for NodeProgram {
    fn drop(&mut self) {
        if !self.is_released {
            process::kill_launch(&self.launch_id);
            self.process.signal_group(Signal::KILL);
        }
    }
}

/// A program that was started.
pub struct LaunchedProgram {
    pub program: NodeProgram,
    pub output: mpsc::Receiver<OutputPiece>,
    pub first: OpenedInspector,
    /// Its other processes.
    pub inspectors: OpenedInspectors,
}

/// Starts a program, whose scripts are announced by a function of that name, and waits until its first process has opened its inspector. Errors: it cannot be started, has exited
/// before, or is no Node program.
pub async fn launch_program(launch: &NodeLaunch, launch_id: &str, binding: &str) -> Result<LaunchedProgram> {
    let name = launch.program.as_deref().unwrap_or(&launch.runtime).display();
    let doing = || format!("cannot debug {name}");
    if let Some(missing) = launch.program.as_ref().filter(|program| !program.exists()) {
        let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", missing.display()));
        return Err(error.because("there is no such file"));
    }
    let folder = tempfile::Builder::new().prefix(&format!("tether-{launch_id}-")).tempdir().doing(doing)?;
    let (pipe, script) = (folder.path().join("inspectors"), folder.path().join("child_inspector.cjs"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(std::io::Error::from).doing(doing)?;
    std::fs::write(&script, CHILD_INSPECTOR).doing(doing)?;
    // Open for writing, too: it does not end between two processes.
    let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).doing(doing)?;
    let mut inspectors = OpenedInspectors(BufReader::new(receiver.take(MAX_ANNOUNCEMENTS)).lines());
    let argv = [launch.runtime.clone().into_os_string()].into_iter();
    let argv = argv.chain(launch.runtime_args.iter().map(OsString::from));
    let argv = argv.chain(launch.program.iter().map(|program| program.clone().into_os_string()));
    let argv: Vec<OsString> = argv.chain(launch.args.iter().map(OsString::from)).collect();
    let script = script.canonicalize().doing(doing)?;
    let environment = program_environment(
        launch,
        launch_id,
        &[(ANNOUNCEMENTS, pipe.as_os_str()), (REPORT, binding.as_ref())],
        &script,
    );
    let PipedProcess { process, stdout, stderr, .. } = process::spawn_piped(&argv, &launch.cwd, &environment, false)?;
    let pipes = OutputPipes::duplicate(&stdout, &stderr).ok();
    let (output_reader, output) = OutputReader::new();
    output_reader.read_stream(OutputStream::Stdout, stdout, |_| {});
    output_reader.read_stream(OutputStream::Stderr, stderr, |_| {});
    let launch_id = launch_id.to_owned();
    let program = NodeProgram { process, script, launch_id, output_reader, pipes, _folder: folder, is_released: false };
    let first = program.wait_for_first(&mut inspectors, &name.to_string()).await?;
    Ok(LaunchedProgram { program, output, first, inspectors })
}

/// With `NODE_OPTIONS` that load our script first. Its own text of the inspectors' addresses is not printed.
fn program_environment(
    launch: &NodeLaunch,
    launch_id: &str,
    ours: &[(&str, &OsStr)],
    script: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut env = process::clean_environment::<&str, &str>([]);
    for (name, value) in &launch.env {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }
    let mut options = OsString::from("--inspect-publish-uid=http --require \"");
    options.push(script);
    options.push("\"");
    if let Some(own) = env.get(OsStr::new("NODE_OPTIONS")) {
        options.push(" ");
        options.push(own);
    }
    env.insert("NODE_OPTIONS".into(), options);
    env.extend(ours.iter().map(|(name, value)| (name.into(), value.into())));
    if !launch.debugs_children {
        env.insert("DEVTETHER_INSPECT_CHILDREN".into(), "0".into());
    }
    env.insert(process::LAUNCH_ID.into(), launch_id.into());
    env
}

impl OpenedInspectors {
    /// The next process that has opened its inspector. Cancel-safe. `None`: no more can be told.
    pub async fn next(&mut self) -> Option<OpenedInspector> {
        loop {
            let line = self.0.next_line().await.ok().flatten()?;
            // Any process of the program may write there.
            match serde_json::from_str(&line) {
                Ok(opened) => return Some(opened),
                Err(cause) => warn!("a process has sent no address of an inspector: {cause}"),
            }
        }
    }
}

impl NodeProgram {
    async fn wait_for_first(&self, inspectors: &mut OpenedInspectors, name: &str) -> Result<OpenedInspector> {
        tokio::select! {
            // The pipe ends only with us.
            Some(first) = inspectors.next() => Ok(first),
            exit = self.process.wait_for_exit() => {
                self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
                let tail = self.output_reader.tail();
                let error = Error::other(format!("{name} exited before it could be debugged"));
                let tail = if tail.is_empty() { " and printed nothing".to_owned() } else { format!("; its output:\n{tail}") };
                Err(error.because(format!("it {exit}{tail}")))
            }
            () = tokio::time::sleep(START_TIMEOUT) => {
                let within = humantime::format_duration(START_TIMEOUT);
                Err(Error::new(ErrorKind::TimedOut, format!("{name} has not opened an inspector within {within}"))
                    .because("no Node process has started in it"))
            }
        }
    }

    /// How it has exited, once the rest of its output has been read.
    pub async fn wait_for_end(&self) -> ProcessExit {
        let exit = self.process.wait_for_exit().await;
        self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
        exit
    }

    /// Ends the program and everything that it has started. A stopped program is killed: it cannot handle SIGTERM.
    pub async fn stop(mut self, is_stopped: bool) {
        if is_stopped {
            self.process.signal_group(Signal::KILL);
        }
        let stopped = process::stop_tree(&self.process, async { false }, EXIT_GRACE_PERIOD).await;
        let swept = process::sweep_launch(&self.launch_id, None, Duration::ZERO).await;
        for error in [stopped.err().map(|it| it.to_string()), swept.err().map(|it| it.to_string())].iter().flatten() {
            warn!("cannot stop the program: {error}");
        }
        self.is_released = true;
    }

    /// Lets the program run on; its output is still read.
    pub fn detach(mut self) {
        self.is_released = true;
        if let Some(Err(error)) = self.pipes.as_ref().map(OutputPipes::leave_readers) {
            warn!("{error}");
        }
    }
}
