//! Carries a [`Begin`] out: starts the process, makes the connections, keeps what it prints, ends all of it.
//!
//! ```text
//! Pipes    start ───────────────────────────────▶ its stdin and stdout are the one connection
//! DialsUs  listen ─▶ start ─▶ it dials ─────────▶ that is the one connection
//! Socket   start ─▶ it says that it listens ────▶ each dial is another connection
//! Port     start ─▶ it says on which port ──────▶ 〃
//! At       ─────────────────────────────────────▶ 〃
//! ```
//! Whatever goes wrong on the way, nothing of it is left running. Must not know any adapter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::connect::{Connector, accept_own_user, connect_to, connect_to_port, connect_to_socket, single_connection};
use super::exit_reason::{BrokenPipeWriter, ExitReasonReader};
use super::launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan, fill_start_request};
use super::output_reader::{OutputPiece, OutputReader, OutputStream};
use crate::dap::DapConnection;
use crate::dap::types::StartRequest;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, PipedProcess, Process, ProcessExit};

/// How long the last words of a process that has ended may take to come out of its pipes.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long an adapter that was left may take to end by itself, and after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// The longest path that the kernel takes for a Unix socket, without the zero behind it.
const LONGEST_SOCKET: usize = 107;

/// What a [`Begin`] has become. Dropping it kills what was started, unless it was [`Running::let_go`].
pub struct AdapterHost {
    pub connect: Connector,
    /// What the process prints; it need not be read.
    pub output: mpsc::Receiver<OutputPiece>,
    /// The first request, ready to be sent.
    pub start: StartRequest,
    started: Option<HostedProcess>,
    /// It ends by itself when its connection does.
    leaves: bool,
    is_program: bool,
    _scratch: Option<TempDir>,
}

/// The process, and what carries its mark. Killed when this is dropped.
struct HostedProcess {
    process: Process,
    mark: String,
    ear: OutputReader,
    command: String,
    /// Nothing is left to be killed, or nothing shall be.
    settled: bool,
}

impl Drop for HostedProcess {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        // By group too: for a moment after its start a process does not show its environment yet.
        self.process.signal_group(Signal::KILL);
        process::kill_launch(&self.mark);
    }
}

/// Begins; `name` is the adapter's, for errors, and `mark` what its processes are to be found by.
/// Errors: [`ErrorKind::MissingTool`] when there is no such program, [`ErrorKind::TimedOut`] after the deadline, and what the
/// process has said when it ended at once.
pub async fn start_adapter(name: &str, begin: LaunchPlan, mark: &str, deadline: Duration) -> Result<AdapterHost> {
    let until = Instant::now() + deadline;
    let scratch = begin.process.is_some().then(|| create_scratch_folder(&begin.connect)).transpose()?;
    let folder = scratch.as_ref().map(TempDir::path).unwrap_or(Path::new(""));
    let start = fill_start_request(begin.start, "{scratch}", &folder.to_string_lossy());
    let (ear, output) = OutputReader::new();
    let leaves = matches!(begin.connect, ConnectMethod::Pipes | ConnectMethod::ConnectBack) && !begin.is_program;
    let (dial, started) = match (begin.connect, begin.process) {
        (ConnectMethod::Existing(address), None) => (connect_to(address), None),
        (_, None) => return Err(Error::other(format!("cannot begin with {name}")).because("it has no command to run")),
        (reach, Some(program)) => {
            let waiting = ReadyDeadline { name, until, deadline };
            let beginning = AdapterStart { waiting, program, mark, folder, ear };
            let (dial, started) = beginning.connect_by(reach).await?;
            (dial, Some(started))
        }
    };
    Ok(AdapterHost { connect: dial, output, start, started, leaves, is_program: begin.is_program, _scratch: scratch })
}

impl AdapterHost {
    /// The process that was started.
    pub fn pid(&self) -> Option<u32> {
        self.started.as_ref().map(|started| started.process.pid())
    }

    /// Resolves when the started process has ended, with how; never without one.
    pub fn exited(&self) -> impl Future<Output = ProcessExit> + Send + 'static {
        let process = self.started.as_ref().map(|started| started.process.clone());
        async move {
            match process {
                Some(process) => process.wait_for_exit().await,
                None => std::future::pending().await,
            }
        }
    }

    /// How the started process has ended, and what it said last; `None` while it lives.
    pub async fn exit_summary(&self) -> Option<String> {
        let started = self.started.as_ref().filter(|started| !started.process.is_alive())?;
        Some(started.exit_summary().await)
    }

    /// Ends the process, all its children and whatever carries its mark, and waits until they are gone.
    pub async fn stop(mut self) -> Result<()> {
        match self.started.take() {
            Some(started) => started.stop(self.leaves).await,
            None => Ok(()),
        }
    }

    /// Lets the program live on, and ends only the adapter; for after a detaching disconnect.
    pub async fn detach(mut self) {
        let Some(mut started) = self.started.take() else { return };
        started.settled = true;
        if self.is_program {
            return;
        }
        // Only the adapter itself: below it may be what is to live on.
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(GRACE, started.process.wait_for_exit()).await.is_ok() {
                return;
            }
            let _ = started.process.signal(signal);
        }
        let _ = timeout(GRACE, started.process.wait_for_exit()).await;
    }
}

impl HostedProcess {
    /// An adapter that was said goodbye to leaves by itself; TERM would cut off what it still tidies up.
    async fn stop(mut self, leaves: bool) -> Result<()> {
        let doing = || format!("cannot end `{}`", self.command);
        process::stop_tree(&self.process, async { leaves }, GRACE).await.doing(doing)?;
        process::sweep_launch(&self.mark, Duration::ZERO).await.doing(doing)?;
        self.settled = true;
        Ok(())
    }

    async fn exit_summary(&self) -> String {
        let exit = self.process.wait_for_exit().await;
        self.ear.wait_for_end(LAST_WORDS).await;
        format!("it {exit}{}", last_output(&self.ear))
    }
}

/// What it said last, as the end of a sentence.
fn last_output(ear: &OutputReader) -> String {
    match ear.tail() {
        tail if tail.is_empty() => ", and it said nothing".to_owned(),
        tail => format!("; its last words:\n{tail}"),
    }
}

/// A start under way.
struct AdapterStart<'a> {
    waiting: ReadyDeadline<'a>,
    program: ProcessPlan,
    mark: &'a str,
    folder: &'a Path,
    ear: OutputReader,
}

impl AdapterStart<'_> {
    async fn connect_by(self, reach: ConnectMethod) -> Result<(Connector, HostedProcess)> {
        match reach {
            ConnectMethod::Pipes => self.connect_pipes(),
            ConnectMethod::ConnectBack => self.accept_connection().await,
            ConnectMethod::UnixSocket { is_ready: ready } => {
                let socket = self.folder.join("dap.sock");
                let names = [("{socket}", socket.as_os_str())];
                let (waiting, folder) = (self.waiting, self.folder);
                let (started, ()) = self.wait_for_line(&names, move |line| ready(line).then_some(())).await?;
                // The kernel tells when it is there.
                let there = process::watch_until(folder, || Ok(socket.exists().then_some(())));
                let (started, there) = waiting.wait_until(started, "made its socket", there).await?;
                there.doing(|| format!("cannot watch {}", folder.display()))?;
                Ok((connect_to_socket(socket), started))
            }
            ConnectMethod::TcpPort { parse_address: said } => {
                let (started, address) = self.wait_for_line(&[], said).await?;
                Ok((connect_to_port(address), started))
            }
            ConnectMethod::Existing(address) => {
                Ok((connect_to(address), self.spawn_process(&[], false)?.read_output(|_| {})))
            }
        }
    }

    fn connect_pipes(self) -> Result<(Connector, HostedProcess)> {
        let ear = self.ear.clone();
        let SpawnedProcess { started, stdin, stdout, stderr } = self.spawn_process(&[], true)?;
        ear.read_stream(OutputStream::Stderr, stderr, |_| {});
        let stdin = stdin.ok_or_else(|| Error::other("the adapter has no input"))?;
        let why = exit_reason(started.process.clone(), ear);
        let connection = DapConnection::over(ExitReasonReader::new(stdout, why), BrokenPipeWriter::new(stdin));
        Ok((single_connection(connection, "its pipes"), started))
    }

    async fn accept_connection(self) -> Result<(Connector, HostedProcess)> {
        let doing = || "cannot listen for the adapter on 127.0.0.1".to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?.to_string();
        let waiting = self.waiting;
        let started = self.spawn_process(&[("{address}", OsStr::new(&address))], false)?.read_output(|_| {});
        let (started, dialled) = waiting.wait_until(started, "connected to us", accept_own_user(&listener)).await?;
        let connection = DapConnection::tcp(dialled.doing(doing)?).doing(doing)?;
        Ok((single_connection(connection, &address), started))
    }

    /// Waits until a line of its output says where it listens.
    async fn wait_for_line<T: Send + 'static>(
        self,
        names: &[(&str, &OsStr)],
        found: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Result<(HostedProcess, T)> {
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let waiting = self.waiting;
        let started = self.spawn_process(names, false)?.read_output(move |line| {
            if let Some(found) = found(line)
                && let Some(tell) = tell.lock().unwrap_or_else(PoisonError::into_inner).take()
            {
                let _ = tell.send(found); // nobody waits any more: it comes too late
            }
        });
        let announced = async {
            match told.await {
                Ok(found) => found,
                // It has closed both its streams: only its end, or the deadline, is left to wait for.
                Err(_) => std::future::pending().await,
            }
        };
        waiting.wait_until(started, "said that it listens", announced).await
    }

    fn spawn_process(self, names: &[(&str, &OsStr)], input: bool) -> Result<SpawnedProcess> {
        let names = [names, &[("{scratch}", self.folder.as_os_str())]].concat();
        let argv: Vec<OsString> = self.program.argv.iter().map(|word| fill_placeholders(word, &names)).collect();
        let command = shell_command(&argv);
        let env = process_environment(&self.program, self.mark);
        let started = process::spawn_piped(&argv, &self.program.cwd, &env, input).map_err(|error| {
            Error::new(error.kind, format!("cannot start the debug adapter {}", self.waiting.name)).because(error)
        })?;
        let PipedProcess { process, stdin, stdout, stderr } = started;
        let started = HostedProcess { process, mark: self.mark.to_owned(), ear: self.ear, command, settled: false };
        Ok(SpawnedProcess { started, stdin, stdout, stderr })
    }
}

/// A process that has just been started, and its streams.
struct SpawnedProcess {
    started: HostedProcess,
    stdin: Option<tokio::process::ChildStdin>,
    stdout: tokio::process::ChildStdout,
    stderr: tokio::process::ChildStderr,
}

impl SpawnedProcess {
    /// Both streams are output; `line` sees each line of them.
    fn read_output(self, line: impl Fn(&str) + Send + Sync + 'static) -> HostedProcess {
        let line = Arc::new(line);
        let again = Arc::clone(&line);
        self.started.ear.read_stream(OutputStream::Stdout, self.stdout, move |text| line(text));
        self.started.ear.read_stream(OutputStream::Stderr, self.stderr, move |text| again(text));
        self.started
    }
}

/// For how long a process that has been started is waited for, and by which name it is told of.
#[derive(Clone, Copy)]
struct ReadyDeadline<'a> {
    name: &'a str,
    until: Instant,
    deadline: Duration,
}

impl ReadyDeadline<'_> {
    /// Errors: it has ended, or the deadline has passed; then nothing of it is left.
    async fn wait_until<T>(
        self,
        started: HostedProcess,
        what: &str,
        ready: impl Future<Output = T>,
    ) -> Result<(HostedProcess, T)> {
        let ReadyDeadline { name, until, deadline } = self;
        let failed = tokio::select! {
            biased; // one that is ready and ends is ready
            ready = ready => return Ok((started, ready)),
            _ = started.process.wait_for_exit() => {
                let error = Error::other(format!("the debug adapter {name} ended before it had {what}"));
                error.because(started.exit_summary().await)
            }
            () = tokio::time::sleep_until(until) => {
                let within = humantime::format_duration(deadline);
                let error = Error::new(ErrorKind::TimedOut, format!("the debug adapter {name} has not {what} within {within}"));
                error.because(format!("it runs on{}", last_output(&started.ear)))
            }
        };
        let by_hand = format!("run `{}` by hand to see more", started.command);
        // What cannot be ended is an error of its own, and not the one to be told here.
        let _ = started.stop(false).await;
        Err(failed.hint(by_hand))
    }
}

/// Why a process has closed its pipes; `None` when that is as it should be.
async fn exit_reason(process: Process, ear: OutputReader) -> Option<String> {
    match timeout(GRACE, process.wait_for_exit()).await {
        Err(_) | Ok(ProcessExit::Code(0)) => None,
        Ok(exit) => {
            ear.wait_for_end(LAST_WORDS).await;
            Some(format!("the adapter {exit}{}", last_output(&ear)))
        }
    }
}

/// A folder that only we can look into, with a path that is short enough for a socket.
fn create_scratch_folder(reach: &ConnectMethod) -> Result<TempDir> {
    let make = |below: &Path| {
        let made = tempfile::Builder::new().prefix("tether-").tempdir_in(below);
        made.doing(|| format!("cannot make a folder in {}", below.display()))
    };
    let made = make(&std::env::temp_dir())?;
    let long = matches!(reach, ConnectMethod::UnixSocket { .. })
        && made.path().join("dap.sock").as_os_str().len() > LONGEST_SOCKET;
    if long { make(Path::new("/tmp")) } else { Ok(made) }
}

fn process_environment(program: &ProcessPlan, mark: &str) -> std::collections::BTreeMap<OsString, OsString> {
    let mut env = process::clean_environment::<&str, &str>([]);
    for (name, value) in &program.env {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }
    env.insert(process::LAUNCH_ID.into(), mark.into());
    env
}

/// The word with what the names in it stand for.
fn fill_placeholders(word: &OsStr, names: &[(&str, &OsStr)]) -> OsString {
    let mut bytes = word.as_bytes().to_vec();
    for (name, value) in names {
        let at = bytes.windows(name.len()).position(|part| part == name.as_bytes());
        if let Some(at) = at {
            bytes.splice(at..at + name.len(), value.as_bytes().iter().copied());
        }
    }
    OsString::from_vec(bytes)
}

/// A command as a shell would take it.
fn shell_command(argv: &[OsString]) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_./:=@,+".contains(c)) && !word.is_empty();
    let quote = |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    argv.iter().map(|word| quote(word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}
