//! Carries a [`LaunchPlan`] out: starts the process, waits until it can be connected to, reads its output, and stops
//! it.
//!
//! ```text
//! Pipes        start ────────────────────────────────────▶ its stdin and stdout are the only connection
//! ConnectBack  listen ─▶ start ─▶ it connects ───────────▶ that is the only connection
//! UnixSocket   start ─▶ it prints that it is ready ──────▶ each connect opens another connection
//! TcpPort      start ─▶ it prints its address ───────────▶ 〃
//! Existing     ──────────────────────────────────────────▶ 〃
//! InProcess    serve one end of a pair in a task ────────▶ the other end is the only connection
//! ```
//! On every error the started processes are killed. Does not depend on any adapter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tether_backend::output_reader::{OutputPiece, OutputReader, OutputStream};
use tether_base::clock::deadline_after;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::lock;
use tether_dap::DapConnection;
use tether_dap::types::StartRequest;
use tether_process::{OutputPipes, PipedProcess, Process, ProcessExit, accept_own_user};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::child_listener::ChildListener;
use super::connect::{Connector, connect_to, connect_to_port, connect_to_socket, single_connection};
use super::exit_reason::{BrokenPipeWriter, read_with_exit_reason};
use super::exit_report::read_reported_exit;
use super::launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan, fill_start_request, remove_launch_variables};
use super::process_reports::ProcessReports;
use super::scratch_folder::create_scratch_folder;
use super::serve_task::ServeTask;

/// How long the pipes of a process that has exited are read for its last output.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(250);
/// How long an adapter may take to exit by itself after its disconnect, and again after SIGTERM.
const EXIT_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A started adapter. Dropping it kills the started processes, except after [`AdapterHost::detach`].
pub struct AdapterHost {
    /// Opens a connection to the adapter.
    pub connect: Connector,
    /// What the process prints; it need not be read.
    pub output: mpsc::Receiver<OutputPiece>,
    /// The first request, its placeholders filled in.
    pub start: StartRequest,
    /// Accepts the connections of the program's children, where they are debugged.
    pub children: Option<ChildListener>,
    /// Receives what the processes of the program report of what is not debugged.
    pub process_reports: Option<ProcessReports>,
    started: Option<AdapterProgram>,
    /// Serves an adapter that runs in this process.
    served: Option<ServeTask>,
    /// The process exits by itself when its connection is closed.
    exits_on_close: bool,
    is_program: bool,
    /// The adapter writes into the private folder how the program exits.
    reports_exit: bool,
    scratch: Option<TempDir>,
}

/// The started process, and all processes with its launch id. They are killed when this is dropped.
struct AdapterProgram {
    process: Process,
    launch_id: String,
    output_reader: OutputReader,
    /// Shared with the program, unless the adapter's messages are in them.
    output_pipes: Option<OutputPipes>,
    command: String,
    /// They were stopped, or are to continue: nothing is killed on drop.
    released: bool,
}

impl Drop for AdapterProgram {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        // First, while its children are still its own.
        tether_process::kill_launch(&self.launch_id);
        // By process group too: right after the start, the environment of a process cannot be read yet.
        self.process.signal_group(Signal::KILL);
    }
}

/// Starts an adapter and waits until it can be connected to. `name` is the adapter's, for errors; `launch_id` is put
/// into the environment of the process, so that its descendants can be found. Errors: [`ErrorKind::MissingTool`] when
/// there is no such program, [`ErrorKind::TimedOut`] after the deadline, and the last output of a process that has
/// exited.
pub async fn start_adapter(name: &str, plan: LaunchPlan, launch_id: &str, deadline: Duration) -> Result<AdapterHost> {
    let until = deadline_after(deadline);
    let scratch = plan.process.is_some().then(|| create_scratch_folder(launch_id, &plan.connect)).transpose()?;
    let folder = scratch.as_ref().map(TempDir::path).unwrap_or(Path::new(""));
    let mut start = fill_start_request(plan.start, "{scratch}", &folder.to_string_lossy());
    remove_launch_variables(&mut start);
    let (output_reader, output) = OutputReader::new();
    let exits_on_close = matches!(plan.connect, ConnectMethod::Pipes | ConnectMethod::ConnectBack) && !plan.is_program;
    if let Some((reporter, scratch)) = plan.exit_reporter.zip(scratch.as_ref()) {
        reporter.install(scratch.path())?;
    }
    let process_reports = plan
        .process_reporter
        .zip(scratch.as_ref())
        .map(|(reporter, scratch)| reporter.install(scratch.path()))
        .transpose()?;
    let mut served = None;
    let (connect, started, listener) = match (plan.connect, plan.process) {
        (ConnectMethod::Existing(address), None) => (connect_to(address, plan.allows_foreign_listener), None, None),
        (ConnectMethod::InProcess { serve }, None) => {
            let (ours, theirs) = DapConnection::pair();
            served = Some(ServeTask::spawn(serve, theirs, launch_id.to_owned()));
            (single_connection(ours, "a connection in this process"), None, None)
        }
        (_, None) => return Err(Error::other(format!("cannot start {name}")).because("it has no command to run")),
        (method, Some(program)) => {
            let ready_deadline = ReadyDeadline { name, until, deadline, exit_hints: plan.exit_hints };
            let adapter_start = AdapterStart { ready_deadline, program, launch_id, folder, output_reader };
            let AdapterConnection { connect, started, listener } = adapter_start.connect_by(method).await?;
            (connect, Some(started), listener)
        }
    };
    let children = listener.zip(plan.children).map(|(listener, plan)| ChildListener::new(listener, plan));
    let (is_program, reports_exit) = (plan.is_program, plan.exit_reporter.is_some());
    Ok(AdapterHost {
        connect,
        output,
        start,
        children,
        process_reports,
        started,
        served,
        exits_on_close,
        is_program,
        reports_exit,
        scratch,
    })
}

/// A started process, and how it is connected to.
struct AdapterConnection {
    connect: Connector,
    started: AdapterProgram,
    /// To which it has connected.
    listener: Option<TcpListener>,
}

impl AdapterConnection {
    fn new(connect: Connector, started: AdapterProgram) -> AdapterConnection {
        AdapterConnection { connect, started, listener: None }
    }
}

impl AdapterHost {
    /// The id of the started process; `None` when nothing was started.
    pub fn pid(&self) -> Option<u32> {
        self.started.as_ref().map(|started| started.process.pid())
    }

    /// Resolves when the started process has exited; never when nothing was started.
    pub fn exited(&self) -> impl Future<Output = ProcessExit> + Send + 'static {
        let process = self.started.as_ref().map(|started| started.process.clone());
        async move {
            match process {
                Some(process) => process.wait_for_exit().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether how the program exits can be known here: it was started here, or its adapter reports that.
    pub fn can_know_exit(&self) -> bool {
        self.is_program || self.reports_exit || self.launches_in_process()
    }

    /// How the program exits, where that can be known, and it exits within the limit.
    pub async fn program_exit(&self, limit: Duration) -> Option<ProcessExit> {
        match &self.scratch {
            Some(scratch) if self.reports_exit => read_reported_exit(scratch.path(), limit).await,
            _ if self.is_program => timeout(limit, self.exited()).await.ok(),
            _ => match self.served.as_ref().filter(|_| self.launches_in_process()) {
                Some(served) => served.program_exit(limit).await,
                None => None,
            },
        }
    }

    fn launches_in_process(&self) -> bool {
        self.served.is_some() && matches!(self.start, StartRequest::Launch(_))
    }

    /// How the started process has exited, with its last output; `None` while it is running.
    pub async fn exit_summary(&self) -> Option<String> {
        let started = self.started.as_ref().filter(|started| !started.process.is_alive())?;
        Some(started.exit_summary().await)
    }

    /// Stops the process, its children and every process with its launch id, and waits until they have exited.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(served) = self.served.take() {
            served.wait_for_end().await;
        }
        let Some(started) = self.started.take() else { return Ok(()) };
        started.stop(self.exits_on_close).await
    }

    /// Stops only the adapter and leaves the debuggee running: for use after a detaching `disconnect`.
    pub async fn detach(mut self) {
        if let Some(served) = self.served.take() {
            served.wait_for_end().await;
        }
        let Some(mut started) = self.started.take() else { return };
        started.released = true;
        // The program keeps printing after this process has exited.
        if let Some(Err(error)) = started.output_pipes.as_ref().map(OutputPipes::leave_readers) {
            warn!("{error}");
        }
        if self.is_program {
            return;
        }
        if timeout(EXIT_GRACE_PERIOD, started.process.wait_for_exit()).await.is_err() {
            // Only the adapter itself: its descendants may be the program that keeps running.
            tether_process::stop_process(&started.process, EXIT_GRACE_PERIOD).await;
        }
    }
}

impl AdapterProgram {
    /// An adapter that has received `disconnect` exits by itself; SIGTERM would interrupt its cleanup.
    async fn stop(mut self, exits_on_close: bool) -> Result<()> {
        let doing = || format!("cannot stop `{}`", self.command);
        tether_process::stop_tree(&self.process, async { exits_on_close }, EXIT_GRACE_PERIOD).await.doing(doing)?;
        tether_process::sweep_launch(&self.launch_id, None, Duration::ZERO).await.doing(doing)?;
        self.released = true;
        Ok(())
    }

    async fn exit_summary(&self) -> String {
        let exit = self.process.wait_for_exit().await;
        self.output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
        format!("it {exit}{}", last_output(&self.output_reader))
    }
}

/// The end of a sentence about a process without output.
pub const PRINTED_NOTHING: &str = " and printed nothing";

/// The last output, as the end of a sentence about the process.
fn last_output(output_reader: &OutputReader) -> String {
    match output_reader.tail() {
        tail if tail.is_empty() => PRINTED_NOTHING.to_owned(),
        tail => format!("; its last output:\n{tail}"),
    }
}

/// A plan with a process, as it is carried out.
struct AdapterStart<'a> {
    ready_deadline: ReadyDeadline<'a>,
    program: ProcessPlan,
    launch_id: &'a str,
    folder: &'a Path,
    output_reader: OutputReader,
}

impl AdapterStart<'_> {
    async fn connect_by(self, method: ConnectMethod) -> Result<AdapterConnection> {
        match method {
            ConnectMethod::Pipes => self.connect_pipes(),
            ConnectMethod::ConnectBack => self.accept_connection().await,
            ConnectMethod::UnixSocket { is_ready } => {
                let socket = self.folder.join("dap.sock");
                let placeholders = [("{socket}", socket.as_os_str())];
                let (ready_deadline, folder) = (self.ready_deadline, self.folder);
                let (started, ()) = self.wait_for_line(&placeholders, move |line| is_ready(line).then_some(())).await?;
                // Waits for the kernel's notification that the file exists.
                let socket_exists = tether_process::watch_until(folder, || Ok(socket.exists().then_some(())));
                let (started, socket_exists) =
                    ready_deadline.wait_until(started, "created its socket", socket_exists).await?;
                socket_exists.doing(|| format!("cannot watch {}", folder.display()))?;
                Ok(AdapterConnection::new(connect_to_socket(socket), started))
            }
            ConnectMethod::TcpPort { parse_address } => {
                let (started, address) = self.wait_for_line(&[], parse_address).await?;
                Ok(AdapterConnection::new(connect_to_port(address), started))
            }
            ConnectMethod::Existing(address) => {
                Ok(AdapterConnection::new(connect_to(address, false), self.spawn_and_read(&[], |_| {})?))
            }
            ConnectMethod::InProcess { .. } => Err(Error::other("an adapter in this process starts none beside it")),
        }
    }

    fn connect_pipes(self) -> Result<AdapterConnection> {
        let output_reader = self.output_reader.clone();
        let (started, piped) = self.spawn_process(&[], true)?;
        output_reader.read_stream(OutputStream::Stderr, piped.stderr, |_| {});
        let stdin = piped.stdin.ok_or_else(|| Error::other("the adapter has no input"))?;
        let reason = exit_reason(started.process.clone(), output_reader);
        let connection = DapConnection::over(read_with_exit_reason(piped.stdout, reason), BrokenPipeWriter::new(stdin));
        Ok(AdapterConnection::new(single_connection(connection, "its pipes"), started))
    }

    async fn accept_connection(self) -> Result<AdapterConnection> {
        let doing = || "cannot listen for the adapter on 127.0.0.1".to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?.to_string();
        let ready_deadline = self.ready_deadline;
        let started = self.spawn_and_read(&[("{address}", OsStr::new(&address))], |_| {})?;
        let (started, accepted) = ready_deadline.wait_until(started, "connected", accept_own_user(&listener)).await?;
        let connection = DapConnection::tcp(accepted.doing(doing)?).doing(doing)?;
        let connect = single_connection(connection, &address);
        Ok(AdapterConnection { connect, started, listener: Some(listener) })
    }

    /// Waits for the line of its output for which `parse` returns a value: it listens then.
    async fn wait_for_line<T: Send + 'static>(
        self,
        placeholders: &[(&str, &OsStr)],
        parse: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Result<(AdapterProgram, T)> {
        let (sender, parsed) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let ready_deadline = self.ready_deadline;
        let started = self.spawn_and_read(placeholders, move |line| {
            if let Some(value) = parse(line)
                && let Some(sender) = lock(&sender).take()
            {
                let _ = sender.send(value); // fails after the deadline
            }
        })?;
        let line_parsed = async {
            match parsed.await {
                Ok(value) => value,
                // Both output streams are closed: wait for its exit, or the deadline.
                Err(_) => std::future::pending().await,
            }
        };
        ready_deadline.wait_until(started, "reported that it listens", line_parsed).await
    }

    /// Starts the process, and reads both of its streams as output; `line` is called with each line.
    fn spawn_and_read(
        self,
        placeholders: &[(&str, &OsStr)],
        line: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<AdapterProgram> {
        let (started, piped) = self.spawn_process(placeholders, false)?;
        let line = Arc::new(line);
        let stderr_line = Arc::clone(&line);
        started.output_reader.read_stream(OutputStream::Stdout, piped.stdout, move |text| line(text));
        started.output_reader.read_stream(OutputStream::Stderr, piped.stderr, move |text| stderr_line(text));
        Ok(started)
    }

    /// Starts the process, whose streams are not read yet.
    fn spawn_process(self, placeholders: &[(&str, &OsStr)], input: bool) -> Result<(AdapterProgram, PipedProcess)> {
        let placeholders = [placeholders, &[("{scratch}", self.folder.as_os_str())]].concat();
        let argv: Vec<OsString> = self.program.argv.iter().map(|word| fill_placeholders(word, &placeholders)).collect();
        let command = shell_command(&argv);
        let env = process_environment(&self.program, &placeholders, self.launch_id);
        let piped = tether_process::spawn_piped(&argv, &self.program.cwd, &env, input).map_err(|error| {
            Error::new(error.kind, format!("cannot start the debug adapter {}", self.ready_deadline.name))
                .because(error)
        })?;
        let output_pipes = OutputPipes::duplicate(&piped.stdout, &piped.stderr).ok().filter(|_| !input);
        let started = AdapterProgram {
            process: piped.process.clone(),
            launch_id: self.launch_id.to_owned(),
            output_reader: self.output_reader,
            output_pipes,
            command,
            released: false,
        };
        Ok((started, piped))
    }
}

/// How long a started process is waited for, and the adapter's name for errors.
#[derive(Clone, Copy)]
struct ReadyDeadline<'a> {
    name: &'a str,
    until: Instant,
    deadline: Duration,
    /// See [`LaunchPlan::exit_hints`].
    exit_hints: &'static [(&'static str, &'static str)],
}

impl ReadyDeadline<'_> {
    /// Waits until `ready` resolves. Errors: the process has exited, or the deadline has passed; then it is stopped.
    async fn wait_until<T>(
        self,
        started: AdapterProgram,
        what: &str,
        ready: impl Future<Output = T>,
    ) -> Result<(AdapterProgram, T)> {
        let ReadyDeadline { name, until, deadline, exit_hints } = self;
        let mut hint = format!("run `{}` by hand to see its output", started.command);
        let failed = tokio::select! {
            biased; // a process that was ready and has exited was ready
            ready = ready => return Ok((started, ready)),
            _ = started.process.wait_for_exit() => {
                let error = Error::other(format!("the debug adapter {name} exited before it had {what}"));
                let summary = started.exit_summary().await;
                if let Some((_, known)) = exit_hints.iter().find(|(words, _)| summary.contains(words)) {
                    hint = (*known).to_owned();
                }
                error.because(summary)
            }
            () = tokio::time::sleep_until(until) => {
                let within = humantime::format_duration(deadline);
                let failure = format!("the debug adapter {name} has not {what} within {within}");
                let error = Error::new(ErrorKind::TimedOut, failure);
                error.because(format!("it is still running{}", last_output(&started.output_reader)))
            }
        };
        // A failed stop would hide the error that matters.
        let _ = started.stop(false).await;
        Err(failed.hint(hint))
    }
}

/// Why a process has closed its pipes; `None` for a normal exit, or a process that is still running.
async fn exit_reason(process: Process, output_reader: OutputReader) -> Option<String> {
    match timeout(EXIT_GRACE_PERIOD, process.wait_for_exit()).await {
        Err(_) | Ok(ProcessExit::Code(0)) => None,
        Ok(exit) => {
            output_reader.wait_for_end(LAST_OUTPUT_TIMEOUT).await;
            Some(format!("the adapter {exit}{}", last_output(&output_reader)))
        }
    }
}

fn process_environment(
    program: &ProcessPlan,
    placeholders: &[(&str, &OsStr)],
    launch_id: &str,
) -> std::collections::BTreeMap<OsString, OsString> {
    let mut env = tether_process::clean_environment::<&str, &str>([]);
    for (name, value) in &program.env {
        match value {
            Some(value) => env.insert(name.into(), fill_variable(value, placeholders)),
            None => env.remove(OsStr::new(name)),
        };
    }
    env.insert(tether_process::LAUNCH_ID.into(), launch_id.into());
    env
}

/// The value of a variable, whose placeholder may stand at its start, as a whole value or before a `/`: braces in a user's value
/// stay.
fn fill_variable(value: &str, placeholders: &[(&str, &OsStr)]) -> OsString {
    let filled = placeholders.iter().find_map(|(name, text)| {
        let rest = value.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some([*text, OsStr::new(rest)].into_iter().collect())
    });
    filled.unwrap_or_else(|| value.into())
}

/// The argument with its placeholders (`{socket}`, …) replaced.
fn fill_placeholders(word: &OsStr, placeholders: &[(&str, &OsStr)]) -> OsString {
    let mut bytes = word.as_bytes().to_vec();
    for (name, value) in placeholders {
        let at = bytes.windows(name.len()).position(|part| part == name.as_bytes());
        if let Some(at) = at {
            bytes.splice(at..at.saturating_add(name.len()), value.as_bytes().iter().copied());
        }
    }
    OsString::from_vec(bytes)
}

/// The command line, quoted for a shell.
fn shell_command(argv: &[OsString]) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_./:=@,+".contains(c)) && !word.is_empty();
    let quote = |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    argv.iter().map(|word| quote(word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}
