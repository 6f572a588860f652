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

use super::begin::{Begin, Program, Reach, fill};
use super::dial::{Dial, at, once, ours, to_port, to_socket};
use super::last::{Explained, Unheard};
use super::said::{Ear, Said, Stream};
use crate::dap::Connection;
use crate::dap::types::Start;
use crate::error::{Context, Error, Kind, Result};
use crate::process::{self, Exit, Piped, Process};

/// How long the last words of a process that has ended may take to come out of its pipes.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long an adapter that was left may take to end by itself, and after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// The longest path that the kernel takes for a Unix socket, without the zero behind it.
const LONGEST_SOCKET: usize = 107;

/// What a [`Begin`] has become. Dropping it kills what was started, unless it was [`Running::let_go`].
pub struct Running {
    pub dial: Dial,
    /// What the process prints; it need not be read.
    pub output: mpsc::Receiver<Said>,
    /// The first request, ready to be sent.
    pub start: Start,
    started: Option<Started>,
    /// It ends by itself when its connection does.
    leaves: bool,
    is_program: bool,
    _scratch: Option<TempDir>,
}

/// The process, and what carries its mark. Killed when this is dropped.
struct Started {
    process: Process,
    mark: String,
    ear: Ear,
    command: String,
    /// Nothing is left to be killed, or nothing shall be.
    settled: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        // By group too: for a moment after its start a process does not show its environment yet.
        self.process.signal_group(Signal::KILL);
        process::kill_now(&self.mark);
    }
}

/// Begins; `name` is the adapter's, for errors, and `mark` what its processes are to be found by.
/// Errors: [`Kind::MissingTool`] when there is no such program, [`Kind::TimedOut`] after the deadline, and what the
/// process has said when it ended at once.
pub async fn run(name: &str, begin: Begin, mark: &str, deadline: Duration) -> Result<Running> {
    let until = Instant::now() + deadline;
    let scratch = begin.run.is_some().then(|| scratch(&begin.reach)).transpose()?;
    let folder = scratch.as_ref().map(TempDir::path).unwrap_or(Path::new(""));
    let start = fill(begin.start, "{scratch}", &folder.to_string_lossy());
    let (ear, output) = Ear::new();
    let leaves = matches!(begin.reach, Reach::Pipes | Reach::DialsUs) && !begin.is_program;
    let (dial, started) = match (begin.reach, begin.run) {
        (Reach::At(address), None) => (at(address), None),
        (_, None) => return Err(Error::other(format!("cannot begin with {name}")).because("it has no command to run")),
        (reach, Some(program)) => {
            let waiting = Waiting { name, until, deadline };
            let beginning = Beginning { waiting, program, mark, folder, ear };
            let (dial, started) = beginning.by(reach).await?;
            (dial, Some(started))
        }
    };
    Ok(Running { dial, output, start, started, leaves, is_program: begin.is_program, _scratch: scratch })
}

impl Running {
    /// The process that was started.
    pub fn pid(&self) -> Option<u32> {
        self.started.as_ref().map(|started| started.process.pid())
    }

    /// Resolves when the started process has ended, with how; never without one.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
        let process = self.started.as_ref().map(|started| started.process.clone());
        async move {
            match process {
                Some(process) => process.exited().await,
                None => std::future::pending().await,
            }
        }
    }

    /// How the started process has ended, and what it said last; `None` while it lives.
    pub async fn last_words(&self) -> Option<String> {
        let started = self.started.as_ref().filter(|started| !started.process.is_alive())?;
        Some(started.last_words().await)
    }

    /// Ends the process, all its children and whatever carries its mark, and waits until they are gone.
    pub async fn end(mut self) -> Result<()> {
        match self.started.take() {
            Some(started) => started.end(self.leaves).await,
            None => Ok(()),
        }
    }

    /// Lets the program live on, and ends only the adapter; for after a detaching disconnect.
    pub async fn let_go(mut self) {
        let Some(mut started) = self.started.take() else { return };
        started.settled = true;
        if self.is_program {
            return;
        }
        // Only the adapter itself: below it may be what is to live on.
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(GRACE, started.process.exited()).await.is_ok() {
                return;
            }
            let _ = started.process.signal(signal);
        }
        let _ = timeout(GRACE, started.process.exited()).await;
    }
}

impl Started {
    /// An adapter that was said goodbye to leaves by itself; TERM would cut off what it still tidies up.
    async fn end(mut self, leaves: bool) -> Result<()> {
        let doing = || format!("cannot end `{}`", self.command);
        process::stop(&self.process, async { leaves }, GRACE).await.doing(doing)?;
        process::sweep(&self.mark, Duration::ZERO).await.doing(doing)?;
        self.settled = true;
        Ok(())
    }

    async fn last_words(&self) -> String {
        let exit = self.process.exited().await;
        self.ear.ended(LAST_WORDS).await;
        format!("it {exit}{}", said(&self.ear))
    }
}

/// What it said last, as the end of a sentence.
fn said(ear: &Ear) -> String {
    match ear.tail() {
        tail if tail.is_empty() => ", and it said nothing".to_owned(),
        tail => format!("; its last words:\n{tail}"),
    }
}

/// A start under way.
struct Beginning<'a> {
    waiting: Waiting<'a>,
    program: Program,
    mark: &'a str,
    folder: &'a Path,
    ear: Ear,
}

impl Beginning<'_> {
    async fn by(self, reach: Reach) -> Result<(Dial, Started)> {
        match reach {
            Reach::Pipes => self.pipes(),
            Reach::DialsUs => self.dials_us().await,
            Reach::Socket { ready } => {
                let socket = self.folder.join("dap.sock");
                let names = [("{socket}", socket.as_os_str())];
                let (waiting, folder) = (self.waiting, self.folder);
                let (started, ()) = self.listens(&names, move |line| ready(line).then_some(())).await?;
                // The kernel tells when it is there.
                let there = process::until(folder, || Ok(socket.exists().then_some(())));
                let (started, there) = waiting.until(started, "made its socket", there).await?;
                there.doing(|| format!("cannot watch {}", folder.display()))?;
                Ok((to_socket(socket), started))
            }
            Reach::Port { said } => {
                let (started, address) = self.listens(&[], said).await?;
                Ok((to_port(address), started))
            }
            Reach::At(address) => Ok((at(address), self.start(&[], false)?.listening(|_| {}))),
        }
    }

    fn pipes(self) -> Result<(Dial, Started)> {
        let ear = self.ear.clone();
        let Pieces { started, stdin, stdout, stderr } = self.start(&[], true)?;
        ear.listen(Stream::Err, stderr, |_| {});
        let stdin = stdin.ok_or_else(|| Error::other("the adapter has no input"))?;
        let why = why_it_ended(started.process.clone(), ear);
        let connection = Connection::over(Explained::new(stdout, why), Unheard::new(stdin));
        Ok((once(connection, "its pipes"), started))
    }

    async fn dials_us(self) -> Result<(Dial, Started)> {
        let doing = || "cannot listen for the adapter on 127.0.0.1".to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?.to_string();
        let waiting = self.waiting;
        let started = self.start(&[("{address}", OsStr::new(&address))], false)?.listening(|_| {});
        let (started, dialled) = waiting.until(started, "connected to us", ours(&listener)).await?;
        let connection = Connection::tcp(dialled.doing(doing)?).doing(doing)?;
        Ok((once(connection, &address), started))
    }

    /// Waits until a line of its output says where it listens.
    async fn listens<T: Send + 'static>(
        self,
        names: &[(&str, &OsStr)],
        found: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
    ) -> Result<(Started, T)> {
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let waiting = self.waiting;
        let started = self.start(names, false)?.listening(move |line| {
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
        waiting.until(started, "said that it listens", announced).await
    }

    fn start(self, names: &[(&str, &OsStr)], input: bool) -> Result<Pieces> {
        let names = [names, &[("{scratch}", self.folder.as_os_str())]].concat();
        let argv: Vec<OsString> = self.program.argv.iter().map(|word| put(word, &names)).collect();
        let command = shown(&argv);
        let env = environment(&self.program, self.mark);
        let started = process::piped(&argv, &self.program.cwd, &env, input).map_err(|error| {
            Error::new(error.kind, format!("cannot start the debug adapter {}", self.waiting.name)).because(error)
        })?;
        let Piped { process, stdin, stdout, stderr } = started;
        let started = Started { process, mark: self.mark.to_owned(), ear: self.ear, command, settled: false };
        Ok(Pieces { started, stdin, stdout, stderr })
    }
}

/// A process that has just been started, and its streams.
struct Pieces {
    started: Started,
    stdin: Option<tokio::process::ChildStdin>,
    stdout: tokio::process::ChildStdout,
    stderr: tokio::process::ChildStderr,
}

impl Pieces {
    /// Both streams are output; `line` sees each line of them.
    fn listening(self, line: impl Fn(&str) + Send + Sync + 'static) -> Started {
        let line = Arc::new(line);
        let again = Arc::clone(&line);
        self.started.ear.listen(Stream::Out, self.stdout, move |text| line(text));
        self.started.ear.listen(Stream::Err, self.stderr, move |text| again(text));
        self.started
    }
}

/// For how long a process that has been started is waited for, and by which name it is told of.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    name: &'a str,
    until: Instant,
    deadline: Duration,
}

impl Waiting<'_> {
    /// Errors: it has ended, or the deadline has passed; then nothing of it is left.
    async fn until<T>(self, started: Started, what: &str, ready: impl Future<Output = T>) -> Result<(Started, T)> {
        let Waiting { name, until, deadline } = self;
        let failed = tokio::select! {
            biased; // one that is ready and ends is ready
            ready = ready => return Ok((started, ready)),
            _ = started.process.exited() => {
                let error = Error::other(format!("the debug adapter {name} ended before it had {what}"));
                error.because(started.last_words().await)
            }
            () = tokio::time::sleep_until(until) => {
                let within = humantime::format_duration(deadline);
                let error = Error::new(Kind::TimedOut, format!("the debug adapter {name} has not {what} within {within}"));
                error.because(format!("it runs on{}", said(&started.ear)))
            }
        };
        let by_hand = format!("run `{}` by hand to see more", started.command);
        // What cannot be ended is an error of its own, and not the one to be told here.
        let _ = started.end(false).await;
        Err(failed.hint(by_hand))
    }
}

/// Why a process has closed its pipes; `None` when that is as it should be.
async fn why_it_ended(process: Process, ear: Ear) -> Option<String> {
    match timeout(GRACE, process.exited()).await {
        Err(_) | Ok(Exit::Code(0)) => None,
        Ok(exit) => {
            ear.ended(LAST_WORDS).await;
            Some(format!("the adapter {exit}{}", said(&ear)))
        }
    }
}

/// A folder that only we can look into, with a path that is short enough for a socket.
fn scratch(reach: &Reach) -> Result<TempDir> {
    let make = |below: &Path| {
        let made = tempfile::Builder::new().prefix("tether-").tempdir_in(below);
        made.doing(|| format!("cannot make a folder in {}", below.display()))
    };
    let made = make(&std::env::temp_dir())?;
    let long = matches!(reach, Reach::Socket { .. }) && made.path().join("dap.sock").as_os_str().len() > LONGEST_SOCKET;
    if long { make(Path::new("/tmp")) } else { Ok(made) }
}

fn environment(program: &Program, mark: &str) -> std::collections::BTreeMap<OsString, OsString> {
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
fn put(word: &OsStr, names: &[(&str, &OsStr)]) -> OsString {
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
fn shown(argv: &[OsString]) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_./:=@,+".contains(c)) && !word.is_empty();
    let quote = |word: String| if plain(&word) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    argv.iter().map(|word| quote(word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}
