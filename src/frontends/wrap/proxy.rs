//! The proxy: what comes from the client, where it goes, and the end. See `server_events` and `replacement` for the other side.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{OptionFuture, join_all};
use tether_base::error::{ErrorContext, Result};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::codec::FramedRead;

use super::calls::{CallProgress, Calls, PendingCall};
use super::debug_stops::DebugStops;
use super::debugger::Debugger;
use super::messages::{self, Envelope};
use super::replacement::{NextServer, ReplacedServer};
use super::session_state::SessionState;
use super::source_watch::SourceWatch;
use super::wrapped_server::{ServerEvent, WrappedServer};
use crate::frontends::stdio_lines::{InputLine, LineDecoder, MAX_LINE};

/// How many events of servers wait to be passed on.
const EVENTS: usize = 64;
/// With so much to write, in bytes, the client comes first.
const MAX_OUTPUT: usize = 256 << 10;
/// With so many requests, or bytes, waiting for the next server, nothing more is read of the client.
const MAX_WAITING: usize = 1000;
const MAX_WAITING_BYTES: usize = 4 << 20;
/// How long calls may still be answered once the client has closed stdin.
const LEAVE_GRACE: Duration = Duration::from_secs(2);
/// How often a caller that waits hears why.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Listens to what changes until it is cancelled; there is no other answer.
const LASTING: &str = "subscriptions/listen";

/// What is wrapped, and how.
#[derive(Debug, clap::Args)]
pub struct WrapArgs {
    /// How long a server may take to answer `initialize`
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = humantime::parse_duration)]
    start_timeout: Duration,
    /// Start the server under its debugger; it must be Node or Python
    #[arg(long)]
    debug: bool,
    /// Name of the server for `tether debug attach --server` [default: that of its program]
    #[arg(long, value_name = "NAME", requires = "debug")]
    name: Option<String>,
    /// The server and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Serves MCP on stdin and stdout with this server, until the client closes one of them. Errors: the workspace cannot be watched, its
/// build is not trusted or fails, or the server cannot be started.
pub async fn serve_wrap(workspace: PathBuf, args: WrapArgs) -> Result<()> {
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let sources = SourceWatch::open(&workspace)?;
    let mut ends = EndSignals::listen()?;
    let (events, received) = mpsc::channel(EVENTS);
    let (input, output) = rmcp::transport::stdio_pipes();
    let debugger = args.debug.then(|| Debugger::new(args.name, &args.command, &workspace, &events));
    let mut proxy = Proxy {
        command: args.command,
        debugger,
        stops: DebugStops::default(),
        workspace,
        start_timeout: args.start_timeout,
        sources,
        events,
        received,
        lines: FramedRead::new(Box::new(input), LineDecoder::new(MAX_LINE)),
        client: Box::new(output),
        output: BytesMut::new(),
        current: None,
        replaced: Vec::new(),
        next: None,
        waiting: VecDeque::new(),
        round: 0,
        last_generation: 0,
        lists_read_of: 0,
        state: SessionState::default(),
        calls: Calls::default(),
        note: None,
        is_checked: false,
        leaves_at: None,
        reports_at: None,
    };
    proxy.begin_replacement(None);
    let outcome = proxy.serve(&mut ends).await;
    let stopping = proxy.stop_servers();
    tokio::select! {
        () = stopping => {}
        // A second one: who sends it does not wait.
        () = ends.received() => {}
    }
    outcome
}

/// The signals that end the proxy: its servers have sessions of their own, which a terminal does not reach.
struct EndSignals([Signal; 3]);

impl EndSignals {
    fn listen() -> Result<EndSignals> {
        let listen = |kind| signal(kind).doing(|| "cannot listen for signals".to_owned());
        Ok(EndSignals([
            listen(SignalKind::terminate())?,
            listen(SignalKind::interrupt())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn received(&mut self) {
        let EndSignals([terminate, interrupt, hangup]) = self;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// A request that waits for the next server.
pub(super) struct WaitingCall {
    pub line: Bytes,
    /// Of its id.
    pub key: String,
    /// Which replacement has the files that it was sent after.
    pub round: u64,
    pub progress: Option<CallProgress>,
}

pub(super) struct Proxy {
    pub command: Vec<OsString>,
    pub debugger: Option<Debugger>,
    pub stops: DebugStops,
    pub workspace: PathBuf,
    pub start_timeout: Duration,
    pub sources: SourceWatch,
    pub events: mpsc::Sender<(u64, ServerEvent)>,
    received: mpsc::Receiver<(u64, ServerEvent)>,
    lines: FramedRead<Box<dyn AsyncRead + Send + Unpin>, LineDecoder>,
    client: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the client is still to get.
    output: BytesMut,
    pub current: Option<WrappedServer>,
    /// Servers that were replaced, and finish their calls; the oldest first.
    pub replaced: Vec<ReplacedServer>,
    pub next: Option<NextServer>,
    pub waiting: VecDeque<WaitingCall>,
    /// How many replacements have begun.
    pub round: u64,
    pub last_generation: u64,
    /// The server of which the lists were read last.
    pub lists_read_of: u64,
    pub state: SessionState,
    pub calls: Calls,
    /// For the `_meta` of the next result.
    pub note: Option<String>,
    /// The files were looked at after the next line of the client had been read.
    is_checked: bool,
    leaves_at: Option<Instant>,
    /// When callers that wait hear of it again.
    pub reports_at: Option<Instant>,
}

impl Proxy {
    /// Until the client closes its side. Errors: the first server does not come up.
    async fn serve(&mut self, ends: &mut EndSignals) -> Result<()> {
        loop {
            let deadline = self.next_deadline();
            let drained = self.current.as_ref().filter(|server| server.is_full()).map(WrappedServer::drained);
            let reads = drained.is_none() && self.leaves_at.is_none() && self.has_room();
            tokio::select! {
                line = self.lines.next(), if reads => match line {
                    Some(Ok(line)) => self.handle_client(line).await,
                    Some(Err(_)) | None => self.leaves_at = Some(Instant::now() + LEAVE_GRACE),
                },
                Some((generation, event)) = self.received.recv() => {
                    self.handle_event(generation, event).await?;
                    // Those that are there already are written at once.
                    while self.output.len() < MAX_OUTPUT && let Ok((generation, event)) = self.received.try_recv() {
                        self.handle_event(generation, event).await?;
                    }
                }
                built = NextServer::built(&mut self.next) => self.handle_built(built).await?,
                Some(()) = OptionFuture::from(deadline.map(sleep_until)) => self.handle_deadline().await?,
                Some(()) = OptionFuture::from(drained.as_ref().map(|drained| drained.notified())) => {}
                () = ends.received() => return Ok(()),
            }
            tokio::select! {
                written = write_output(&mut self.client, &mut self.output) => if written.is_err() { return Ok(()) },
                () = ends.received() => return Ok(()),
            }
            if self.has_left() {
                return Ok(());
            }
        }
    }

    fn has_room(&self) -> bool {
        let bytes: usize = self.waiting.iter().map(|call| call.line.len()).sum();
        self.waiting.len() < MAX_WAITING && bytes < MAX_WAITING_BYTES
    }

    /// Whether the client is gone, and nothing is left to answer.
    fn has_left(&self) -> bool {
        // That the first server cannot be started is said in any case.
        let is_up = || self.round > 1 || self.next.is_none();
        let is_done =
            || is_up() && self.waiting.is_empty() && self.calls.pending.values().all(|call| call.lasting.is_some());
        self.leaves_at.is_some_and(|at| is_done() || at <= Instant::now())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let of_client = self.leaves_at.into_iter().chain(self.reports_at);
        // What is stopped in the debugger has all the time.
        if self.stops.current().is_some() {
            return of_client.min();
        }
        let of_replaced = self.replaced.iter().map(|replaced| replaced.until);
        let of_calls = self.calls.pending.values().filter_map(|call| call.until);
        let of_next = self.next.iter().filter_map(NextServer::until);
        of_replaced.chain(of_calls).chain(of_next).chain(of_client).min()
    }

    async fn handle_deadline(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.stops.current().is_none() {
            self.end_late_servers(now).await?;
        }
        if self.reports_at.is_some_and(|at| at <= now) {
            self.report_waiting(now);
        }
        Ok(())
    }

    /// Has callers that wait hear why, as long as there are any.
    pub fn report_waiting(&mut self, now: Instant) {
        let why = self.next.as_ref().map_or("waiting for the server", NextServer::describe);
        let waiting = self.waiting.iter_mut().filter_map(|call| call.progress.as_mut());
        let mut reports: Vec<Bytes> = waiting.map(|progress| progress.report(why)).collect();
        if let Some(stop) = self.stops.current() {
            let stopped = self.calls.pending.values_mut().filter_map(|call| call.progress.as_mut());
            reports.extend(stopped.map(|progress| progress.report(stop)));
        }
        self.reports_at = (!reports.is_empty()).then_some(now + REPORT_INTERVAL);
        reports.iter().for_each(|report| self.send(report));
    }

    /// Writes a message to the client, with what else is to be written.
    pub fn send(&mut self, message: &Bytes) {
        self.output.extend_from_slice(message);
        self.output.extend_from_slice(b"\n");
    }

    async fn handle_client(&mut self, line: InputLine) {
        let was_checked = std::mem::take(&mut self.is_checked);
        let is_next_read = memchr::memchr(b'\n', self.lines.read_buffer()).is_some();
        let line = match line {
            InputLine::Whole(line) => without_frills(line),
            InputLine::TooLong => return self.send(&messages::too_long(MAX_LINE)),
        };
        if line.is_empty() {
            return;
        }
        let Some(message) = Envelope::read(&line) else { return self.send(&messages::refusal(&line)) };
        let mut is_checked = was_checked;
        match (&message.method, message.id) {
            (Some(_), Some(_)) => is_checked = self.handle_request(&line, &message, was_checked).await,
            (Some(method), None) => self.handle_notification(method, &line, &message),
            (None, _) => {
                if let Some((generation, response)) = self.calls.take_response(&line, &message) {
                    self.write_to(generation, response);
                }
            }
        }
        self.is_checked = is_checked && is_next_read;
    }

    /// `is_checked`: the files were looked at after it had been read. Returns whether that is so now.
    async fn handle_request(&mut self, line: &Bytes, message: &Envelope<'_>, is_checked: bool) -> bool {
        if message.method.as_deref() == Some("initialize") {
            self.state = SessionState::default();
        }
        self.state.record_envelope(message);
        if self.next.is_some() || !self.waiting.is_empty() {
            self.wait_for_next(line, message);
            return is_checked;
        }
        // A server that is stopped in its debugger is not replaced: somebody is looking at it.
        if self.current.is_some() && self.stops.current().is_some() {
            self.forward(line, message, CallProgress::of_request(message));
            self.reports_at = Some(Instant::now());
            return false;
        }
        let change = if is_checked && self.current.is_some() { None } else { self.sources.find_change().await };
        if self.current.is_some() && change.is_none() {
            self.forward(line, message, CallProgress::of_request(message));
            return true;
        }
        self.wait_for_next(line, message);
        self.begin_replacement(change);
        self.report_waiting(Instant::now());
        true
    }

    fn wait_for_next(&mut self, line: &Bytes, message: &Envelope<'_>) {
        let round = self.round + u64::from(self.next.is_some());
        let key = message.id_key().unwrap_or_default();
        let mut progress = CallProgress::of_request(message);
        if let (Some(progress), Some(next)) = (&mut progress, &self.next) {
            let report = progress.report(next.describe());
            self.send(&report);
            self.reports_at.get_or_insert(Instant::now() + REPORT_INTERVAL);
        }
        self.waiting.push_back(WaitingCall { line: line.clone(), key, round, progress });
    }

    /// Sends a request to the present server.
    pub fn forward(&mut self, line: &Bytes, message: &Envelope<'_>, progress: Option<CallProgress>) {
        let (Some(method), Some(id), Some(server)) = (&message.method, message.id, &self.current) else { return };
        self.state.record_request(method, message);
        let call = PendingCall {
            id: id.to_owned(),
            method: method.clone().into_owned(),
            generation: server.generation,
            lasting: (method == LASTING).then(|| line.clone()),
            progress,
            until: (method == "initialize").then(|| Instant::now() + self.start_timeout),
        };
        server.write(line.clone());
        self.calls.pending.insert(messages::id_key(id), call);
    }

    fn handle_notification(&mut self, method: &str, line: &Bytes, message: &Envelope<'_>) {
        self.state.is_initialized |= method == "notifications/initialized";
        let current = self.current.as_ref().map_or(0, |server| server.generation);
        match method {
            "notifications/cancelled" => {
                let Some(key) = message.params().request_id.map(messages::id_key) else { return };
                self.waiting.retain(|call| call.key != key);
                // It is not answered any more, whatever its server does.
                if let Some(call) = self.calls.pending.remove(&key) {
                    self.write_to(call.generation, line.clone());
                    self.end_idle_servers();
                }
            }
            "notifications/progress" => {
                if let Some((generation, line)) = self.calls.translate_progress(line, message) {
                    self.write_to(generation, line);
                }
            }
            _ => self.write_to(current, line.clone()),
        }
    }

    /// One that has ended reports that itself.
    fn write_to(&self, generation: u64, line: Bytes) {
        let replaced = self.replaced.iter().map(|it| &it.server);
        let next = self.next.iter().filter_map(NextServer::server);
        let mut servers = self.current.iter().chain(replaced).chain(next);
        if let Some(server) = servers.find(|server| server.generation == generation) {
            server.write(line);
        }
    }

    async fn stop_servers(&mut self) {
        let next = self.next.take().and_then(NextServer::into_server);
        let replaced = std::mem::take(&mut self.replaced).into_iter().map(|it| it.server);
        join_all(self.current.take().into_iter().chain(replaced).chain(next).map(WrappedServer::stop)).await;
    }
}

/// Without a byte order mark, and what is blank around it.
fn without_frills(line: Bytes) -> Bytes {
    let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line).trim_ascii();
    line.slice_ref(text)
}

async fn write_output(client: &mut (impl AsyncWrite + Unpin), output: &mut BytesMut) -> std::io::Result<()> {
    if output.is_empty() {
        return Ok(());
    }
    client.write_all_buf(output).await?;
    client.flush().await
}
