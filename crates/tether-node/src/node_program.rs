//! The process of a launched program: started so that each of its Node processes opens its inspector and says where; its
//! output, its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tether_backend::debuggee_process::{DebuggeeProcess, debuggee_environment};
use tether_backend::output_reader::OutputPiece;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines, Take};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tracing::warn;

use super::launch_arguments::NodeLaunch;
use super::opened_inspector::OpenedInspector;
use super::port_watch::watch_port;
use super::process_inspector::find_port_holder;

/// How long a program may take until its first Node process has opened its inspector.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How much all announcements of a session may have, in bytes.
const MAX_ANNOUNCEMENTS: u64 = 64 << 20;
/// The variable with the path of the pipe on which processes say where their inspector is.
const ANNOUNCEMENTS: &str = "DEVTETHER_INSPECTORS";
/// The variable with the name of the function by which scripts are announced.
const REPORT: &str = "DEVTETHER_INSPECT_REPORT";
/// What each process loads first.
const CHILD_INSPECTOR: &str = concat!(
    include_str!("child_inspector.cjs"),
    include_str!("announce_maps.cjs"),
    include_str!("announce_worker_ends.cjs")
);

/// A launched program.
pub(crate) struct LaunchedNode {
    pub debuggee: DebuggeeProcess,
    /// The script that each process loads first, without links.
    pub script: PathBuf,
    pub output: mpsc::Receiver<OutputPiece>,
    pub first: OpenedInspector,
    /// Its other processes.
    pub inspectors: OpenedInspectors,
}

/// The processes of a program, as they open their inspectors.
pub(crate) struct OpenedInspectors {
    announced: Lines<BufReader<Take<pipe::Receiver>>>,
    /// The one that a process opens by itself at a port that is known.
    at_port: Option<mpsc::Receiver<OpenedInspector>>,
}

/// Starts a program, whose scripts are announced by a function of that name, and waits until its first process has opened its
/// inspector. Errors: it cannot be started, has exited before, or is not a Node program.
pub(crate) async fn launch_program(launch: &NodeLaunch, launch_id: &str, binding: &str) -> Result<LaunchedNode> {
    let name = launch.program.as_deref().unwrap_or(&launch.runtime).display();
    let doing = || format!("cannot debug {name}");
    if let Some(missing) = launch.program.as_ref().filter(|program| !program.exists()) {
        let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", missing.display()));
        return Err(error.because("there is no such file"));
    }
    if let Some((port, holder)) = launch.own_port.and_then(|port| Some((port, find_port_holder(port)?))) {
        let cause = format!("its inspector is to be at port {port}, where {holder} listens");
        return Err(Error::other(doing()).because(cause));
    }
    let folder = tempfile::Builder::new().prefix(&format!("tether-{launch_id}-")).tempdir().doing(doing)?;
    let (pipe, script) = (folder.path().join("inspectors"), folder.path().join("child_inspector.cjs"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(std::io::Error::from).doing(doing)?;
    std::fs::write(&script, CHILD_INSPECTOR).doing(doing)?;
    // Open for writing, too: it does not end between two processes.
    let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).doing(doing)?;
    let announced = BufReader::new(receiver.take(MAX_ANNOUNCEMENTS)).lines();
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
    // Its processes find the pipe and the script there.
    let (debuggee, output) = DebuggeeProcess::spawn(&argv, &launch.cwd, &environment, launch_id, Some(folder))?;
    let mut inspectors = OpenedInspectors { announced, at_port: launch.own_port.map(watch_port) };
    let first = wait_for_first(&debuggee, &mut inspectors, launch, &name.to_string()).await?;
    Ok(LaunchedNode { debuggee, script, output, first, inspectors })
}

/// With `NODE_OPTIONS` that load our script first. Its own text of the inspectors' addresses is not printed.
fn program_environment(
    launch: &NodeLaunch,
    launch_id: &str,
    ours: &[(&str, &OsStr)],
    script: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut env = debuggee_environment(&launch.env, launch_id);
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
    env
}

impl OpenedInspectors {
    /// The next process that has opened its inspector. Cancel-safe. `None`: no more can be told.
    pub(crate) async fn next(&mut self) -> Option<OpenedInspector> {
        loop {
            let line = tokio::select! {
                line = self.announced.next_line() => line.ok().flatten()?,
                Some(opened) = next_at_port(&mut self.at_port) => return Some(opened),
            };
            // Any process of the program may write there.
            match serde_json::from_str(&line) {
                Ok(opened) => return Some(opened),
                Err(cause) => warn!("a process has sent no address of an inspector: {cause}"),
            }
        }
    }
}

async fn next_at_port(at_port: &mut Option<mpsc::Receiver<OpenedInspector>>) -> Option<OpenedInspector> {
    at_port.as_mut()?.recv().await
}

async fn wait_for_first(
    debuggee: &DebuggeeProcess,
    inspectors: &mut OpenedInspectors,
    launch: &NodeLaunch,
    name: &str,
) -> Result<OpenedInspector> {
    tokio::select! {
        // The pipe ends only with us.
        Some(first) = inspectors.next() => Ok(first),
        error = debuggee.wait_for_early_exit(name) => Err(error),
        () = tokio::time::sleep(START_TIMEOUT) => {
            let within = humantime::format_duration(START_TIMEOUT);
            let error = Error::new(ErrorKind::TimedOut, format!("{name} has not opened an inspector within {within}"));
            let hint = "`runtimeExecutable` must start Node, and leave it its `NODE_OPTIONS`; the program's other arguments go into `args`";
            Err(match launch.own_port {
                Some(port) => error.because(format!("no Node process has started in it, and nothing listens at port {port}")),
                None => error.because("no Node process has started in it"),
            }.hint(hint))
        }
    }
}
