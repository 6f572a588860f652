//! The process of a launched program: started so that it connects to us, its output, its end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tether_backend::debuggee_process::{DebuggeeProcess, debuggee_environment};
use tether_backend::output_reader::OutputPiece;
use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_process::accept_own_user;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::blocking::run_blocking;
use super::compiled_source::{RunnableClass, join_paths, prepare_source};
use super::java_vm::VIRTUAL_THREADS;
use super::launch_arguments::{JavaLaunch, JavaProgramKind};
use super::project_modules::project_class_path;

/// How long a virtual machine may take to connect to us.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest file that says the version of a JDK, in bytes.
const MAX_RELEASE: u64 = 64 << 10;

/// A launched program.
pub(crate) struct JavaProgram {
    pub debuggee: DebuggeeProcess,
    /// The class with `main`; none: a jar says which.
    pub main_class: Option<String>,
    /// The folders of its classes; empty: its virtual machine says which.
    pub class_paths: Vec<PathBuf>,
    /// Packages that its project names and that are not on the class path.
    pub missing: Vec<String>,
    /// The folder that its classes were compiled into for this run.
    pub compiled_folder: Option<PathBuf>,
}

/// Starts a program, and waits until its virtual machine has connected to us. Errors: it cannot be compiled or started, or
/// has exited at once.
pub(crate) async fn launch_program(
    launch: &JavaLaunch,
    launch_id: &str,
) -> Result<(JavaProgram, mpsc::Receiver<OutputPiece>, TcpStream)> {
    let doing = || "cannot listen for the virtual machine on 127.0.0.1".to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.doing(doing)?;
    let address = listener.local_addr().doing(doing)?;
    let (command, runnable) = build_command(launch, &format!("tether-{launch_id}-")).await?;
    let version = java_version(&launch.java).unwrap_or(0);
    // Older agents refuse the option.
    let virtual_threads = if version >= VIRTUAL_THREADS { ",includevirtualthreads=y" } else { "" };
    let agent = format!("-agentlib:jdwp=transport=dt_socket,server=n,suspend=y,address={address}{virtual_threads}");
    let mut argv = vec![launch.java.clone().into_os_string(), agent.into()];
    argv.extend(command);
    let environment = debuggee_environment(&launch.env, launch_id);
    let (main_class, class_paths, missing, folder) =
        runnable.map_or_else(Default::default, |it| (Some(it.class), it.class_paths, it.missing, it.folder));
    let compiled_folder = folder.as_ref().map(|folder: &TempDir| folder.path().to_owned());
    let (debuggee, output) = DebuggeeProcess::spawn(&argv, &launch.cwd, &environment, launch_id, folder)?;
    let program = JavaProgram { debuggee, main_class, class_paths, missing, compiled_folder };
    let name = launch.java.display().to_string();
    tokio::select! {
        accepted = accept_own_user(&listener) => Ok((program, output, accepted.doing(doing)?)),
        error = program.debuggee.wait_for_early_exit(&name) => Err(error),
        () = tokio::time::sleep(CONNECT_TIMEOUT) => {
            let within = humantime::format_duration(CONNECT_TIMEOUT);
            Err(Error::new(ErrorKind::TimedOut, format!("{name} has not connected within {within}")))
        }
    }
}

/// The first number of the version of a `java`, by the file that every JDK has. `None`: it is not there.
fn java_version(java: &Path) -> Option<i32> {
    let home = java.canonicalize().ok()?.parent()?.parent()?.to_owned();
    let text = bounded_file::read_text(&home.join("release"), MAX_RELEASE, Links::Follow).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    version.trim_matches('"').split(['.', '-', '+']).next()?.parse().ok()
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
            let cwd = launch.cwd.clone();
            let project = run_blocking(move || project_class_path(&cwd)).await.unwrap_or_default();
            paths.extend(project.paths);
            if paths.is_empty() && !class.contains('/') {
                paths.push(launch.cwd.clone());
            }
            class_path(&mut argv, &paths);
            if class.contains('/') {
                argv.push("--module".into());
            }
            argv.push(class.into());
            let class = class.rsplit('/').next().unwrap_or(class).to_owned();
            runnable = Some(RunnableClass { class, class_paths: paths, missing: project.missing, folder: None });
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
