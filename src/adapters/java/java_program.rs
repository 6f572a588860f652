//! The process of a launched program: started so that it connects to us, its output, its end.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tracing::warn;

use super::compiled_source::{RunnableClass, join_paths, output_folders, prepare_source};
use super::launch_arguments::{JavaLaunch, JavaProgramKind};
use crate::adapters::connect::accept_own_user;
use crate::adapters::output_reader::{OutputPiece, OutputReader, OutputStream};
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, OutputPipes, PipedProcess, Process, ProcessExit};

/// How long a virtual machine may take to connect to us.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the rest of the output is read after the exit.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// Between SIGTERM and SIGKILL.
const EXIT_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A launched program. It is killed when this is dropped, except after [`JavaProgram::detach`].
pub struct JavaProgram {
    pub process: Process,
    /// The class with `main`; none: a jar says which.
    pub main_class: Option<String>,
    /// The folders of its classes; empty: its virtual machine says which.
    pub class_paths: Vec<PathBuf>,
    launch_id: String,
    output_reader: OutputReader,
    pipes: Option<OutputPipes>,
    folder: Option<TempDir>,
    is_released: bool,
}

impl Drop for JavaProgram {
    fn drop(&mut self) {
        if !self.is_released {
            process::kill_launch(&self.launch_id);
            self.process.signal_group(Signal::KILL);
        }
    }
}

/// Starts a program, and waits until its virtual machine has connected to us. Errors: it cannot be compiled or started, or
/// has exited at once.
pub async fn launch_program(
    launch: &JavaLaunch,
    launch_id: &str,
) -> Result<(JavaProgram, mpsc::Receiver<OutputPiece>, TcpStream)> {
    let doing = || "cannot listen for the virtual machine on 127.0.0.1".to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.doing(doing)?;
    let address = listener.local_addr().doing(doing)?;
    let (command, runnable) = build_command(launch, &format!("tether-{launch_id}-")).await?;
    let agent = format!("-agentlib:jdwp=transport=dt_socket,server=n,suspend=y,address={address}");
    let mut argv = vec![launch.java.clone().into_os_string(), agent.into()];
    argv.extend(command);
    let PipedProcess { process, stdout, stderr, .. } =
        process::spawn_piped(&argv, &launch.cwd, &program_environment(launch, launch_id), false)?;
    let pipes = OutputPipes::duplicate(&stdout, &stderr).ok();
    let (output_reader, output) = OutputReader::new();
    output_reader.read_stream(OutputStream::Stdout, stdout, |_| {});
    output_reader.read_stream(OutputStream::Stderr, stderr, |_| {});
    let (class, class_paths, folder) =
        runnable.map_or_else(Default::default, |it| (Some(it.class), it.class_paths, it.folder));
    let launch_id = launch_id.to_owned();
    let program = JavaProgram {
        process,
        main_class: class,
        class_paths,
        launch_id,
        output_reader,
        pipes,
        folder,
        is_released: false,
    };
    let name = launch.java.display();
    tokio::select! {
        accepted = accept_own_user(&listener) => Ok((program, output, accepted.doing(doing)?)),
        exit = program.process.wait_for_exit() => {
            program.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
            let tail = program.output_reader.tail();
            let error = Error::other(format!("{name} exited before it could be debugged"));
            let tail = if tail.is_empty() { " and printed nothing".to_owned() } else { format!("; its output:\n{tail}") };
            Err(error.because(format!("it {exit}{tail}")))
        }
        () = tokio::time::sleep(CONNECT_TIMEOUT) => {
            let within = humantime::format_duration(CONNECT_TIMEOUT);
            Err(Error::new(ErrorKind::TimedOut, format!("{name} has not connected within {within}")))
        }
    }
}

/// The command line after `java` and its agent, and the class that runs.
async fn build_command(launch: &JavaLaunch, scratch: &str) -> Result<(Vec<OsString>, Option<RunnableClass>)> {
    let mut argv: Vec<OsString> = launch.vm_args.iter().map(OsString::from).collect();
    if !launch.module_paths.is_empty() {
        argv.extend(["--module-path".into(), join_paths(&launch.module_paths)]);
    }
    let mut runnable = None;
    let class_path = |argv: &mut Vec<OsString>, paths: &[PathBuf]| {
        if !paths.is_empty() {
            argv.extend(["-classpath".into(), join_paths(paths)]);
        }
    };
    match &launch.program {
        JavaProgramKind::Jar(jar) if !jar.is_file() => {
            let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", jar.display()));
            return Err(error.because("there is no such file"));
        }
        JavaProgramKind::Jar(jar) => argv.extend(["-jar".into(), jar.into()]),
        JavaProgramKind::Class(class) => {
            let mut paths = launch.class_paths.clone();
            paths.extend(output_folders(&launch.cwd));
            if paths.is_empty() && !class.contains('/') {
                paths.push(launch.cwd.clone());
            }
            class_path(&mut argv, &paths);
            if class.contains('/') {
                argv.push("--module".into());
            }
            argv.push(class.into());
            let class = class.rsplit('/').next().unwrap_or(class).to_owned();
            runnable = Some(RunnableClass { class, class_paths: paths, folder: None });
        }
        JavaProgramKind::Source(source) => {
            let found = prepare_source(source, &launch.java, &launch.class_paths, scratch).await?;
            class_path(&mut argv, &found.class_paths);
            argv.push(OsString::from(&found.class));
            runnable = Some(found);
        }
    }
    argv.extend(launch.args.iter().map(OsString::from));
    Ok((argv, runnable))
}

fn program_environment(launch: &JavaLaunch, launch_id: &str) -> BTreeMap<OsString, OsString> {
    let mut env = process::clean_environment::<&str, &str>([]);
    for (name, value) in &launch.env {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }
    env.insert(process::LAUNCH_ID.into(), launch_id.into());
    env
}

impl JavaProgram {
    /// How it has exited, once the rest of its output has been read.
    pub async fn wait_for_end(&self) -> ProcessExit {
        let exit = self.process.wait_for_exit().await;
        self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
        exit
    }

    /// Ends the program and everything that it has started. A stopped program is killed: it would run on to handle
    /// SIGTERM.
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

    /// The folder that its classes were compiled into for this run.
    pub fn compiled_folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().to_owned())
    }

    /// Lets the program run on; its output is still read.
    pub fn detach(mut self) {
        self.is_released = true;
        if let Some(Err(error)) = self.pipes.as_ref().map(OutputPipes::leave_readers) {
            warn!("{error}");
        }
        // It still loads its classes from there.
        self.folder.take().map(TempDir::keep);
    }
}
