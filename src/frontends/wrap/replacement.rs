//! The next server: built, started, told what the client has told; it takes over, or the one before stays.
//!
//! ```text
//!  Building ──built──▶ Starting ──answers `initialize`──▶ current; the one before finishes its calls
//!     └─ fails ──────────┴─ fails, ends, is late ──▶ the one before stays; what waits goes to it
//! ```

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_changes::FileSnapshot;
use tokio::time::Instant;

use super::calls::OwnRequest;
use super::messages::{self, Envelope};
use super::proxy::{Proxy, WaitingCall};
use super::session_state::LISTS;
use super::source_watch::SourceChange;
use super::wrapped_server::WrappedServer;

/// How long a server that is replaced may take to finish its calls.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How many servers finish their calls at the same time.
const MAX_REPLACED: usize = 4;

/// A server that was replaced, and finishes its calls.
pub(super) struct ReplacedServer {
    pub server: WrappedServer,
    pub until: Instant,
}

/// A server that is to take over.
pub(super) enum NextServer {
    Building { change: Option<SourceChange>, build: BoxFuture<'static, Result<BuiltServer>>, why: String },
    Starting(StartingServer),
}

/// What can be started.
pub(super) struct BuiltServer {
    files: Arc<FileSnapshot>,
    argv: Vec<OsString>,
    /// By which its debugger is found; `None`: it has none.
    language: Option<String>,
}

/// How far the debugger of a server is.
enum DebuggerState {
    NotNeeded,
    /// It is attached once the server listens.
    Awaited {
        language: String,
    },
    Attaching,
}

/// It was started, and asked for a sign of life.
pub(super) struct StartingServer {
    server: WrappedServer,
    change: Option<SourceChange>,
    files: Arc<FileSnapshot>,
    why: String,
    /// The key of the id, and the method, of the request that it answers first; `None`: it has, or gets it from the client.
    awaited: Option<(String, &'static str)>,
    debugger: DebuggerState,
    until: Instant,
}

impl NextServer {
    /// Resolves when the build has ended; never without one.
    pub async fn built(next: &mut Option<NextServer>) -> Result<BuiltServer> {
        match next {
            Some(NextServer::Building { build, .. }) => build.await,
            _ => std::future::pending().await,
        }
    }

    /// Why its callers wait.
    pub fn describe(&self) -> &str {
        match self {
            NextServer::Building { why, .. } | NextServer::Starting(StartingServer { why, .. }) => why,
        }
    }

    pub fn until(&self) -> Option<Instant> {
        match self {
            NextServer::Building { .. } => None,
            NextServer::Starting(starting) => Some(starting.until),
        }
    }

    pub fn server(&self) -> Option<&WrappedServer> {
        match self {
            NextServer::Building { .. } => None,
            NextServer::Starting(starting) => Some(&starting.server),
        }
    }

    pub fn into_server(self) -> Option<WrappedServer> {
        match self {
            NextServer::Building { .. } => None,
            NextServer::Starting(starting) => Some(starting.server),
        }
    }

    /// Whether a response is its sign of life.
    pub fn awaits(&self, generation: u64, key: &str) -> bool {
        let NextServer::Starting(starting) = self else { return false };
        starting.server.generation == generation && starting.awaited.as_ref().is_some_and(|(awaited, _)| awaited == key)
    }
}

impl Proxy {
    /// Begins to build the next server; `change`: why.
    pub fn begin_replacement(&mut self, change: Option<SourceChange>) {
        self.round += 1;
        let why = match &change {
            Some(change) => format!("restarting the server: {}", change.newest),
            None if self.round == 1 => "starting the server".to_owned(),
            None => "starting the server again, which has ended".to_owned(),
        };
        let (build, debugger, command) = (self.sources.build(), self.debugger.clone(), self.command.clone());
        let build = Box::pin(async move {
            let files = build.await?;
            let (argv, language) = match debugger {
                Some(debugger) => debugger.plan(&command).await.map(|(argv, language)| (argv, Some(language)))?,
                None => (command, None),
            };
            Ok(BuiltServer { files, argv, language })
        });
        self.next = Some(NextServer::Building { change, build, why });
    }

    /// Starts the next server. Errors: it is the first, and cannot be started.
    pub async fn handle_built(&mut self, built: Result<BuiltServer>) -> Result<()> {
        let Some(NextServer::Building { change, why, .. }) = self.next.take() else { return Ok(()) };
        self.last_generation += 1;
        let started = built.and_then(|BuiltServer { files, argv, language }| {
            let command = (&argv[..], language.is_some());
            let server = WrappedServer::start(self.last_generation, command, &self.workspace, &self.events)?;
            Ok((files, language, server))
        });
        let (files, language, server) = match started {
            Ok(started) => started,
            Err(error) => return self.keep_server(change, error).await,
        };
        let greeting = match (&self.state.initialize, &self.state.envelope) {
            (Some(params), _) => Some(("initialize", params.clone())),
            // Without a handshake any answer says that it is there.
            (None, Some(envelope)) => Some(("server/discover", json!({"_meta": envelope}).to_string())),
            (None, None) => None,
        };
        let awaited = greeting.map(|(method, params)| {
            let id = self.calls.next_id();
            server.write(messages::request(&id, method, Some(&params)));
            (json!(id).to_string(), method)
        });
        let debugger = language.map_or(DebuggerState::NotNeeded, |language| DebuggerState::Awaited { language });
        let until = Instant::now() + self.start_timeout;
        let starting = StartingServer { server, change, files, why, awaited, debugger, until };
        self.finish_start(starting).await
    }

    /// Has a server take over that is there, and whose debugger is.
    async fn finish_start(&mut self, starting: StartingServer) -> Result<()> {
        if starting.awaited.is_some() || !matches!(starting.debugger, DebuggerState::NotNeeded) {
            self.next = Some(NextServer::Starting(starting));
            return Ok(());
        }
        self.take_over(starting.server, starting.files).await;
        self.release_waiting().await
    }

    /// Attaches the debugger to a server that waits for it.
    pub fn attach_debugger(&mut self, generation: u64, port: u16) {
        let (Some(NextServer::Starting(starting)), Some(debugger)) = (&mut self.next, &self.debugger) else { return };
        if starting.server.generation == generation
            && let DebuggerState::Awaited { language } =
                std::mem::replace(&mut starting.debugger, DebuggerState::Attaching)
        {
            debugger.attach(generation, port, language, starting.why.clone());
        }
    }

    /// The debugger is attached. Errors: it is not, and the server is the first.
    pub async fn handle_attached(&mut self, generation: u64, session: Result<String>) -> Result<()> {
        if !self.is_next(generation) {
            return Ok(());
        }
        match session {
            Ok(session) => self.handle_stop(|stops| stops.set_session(session)),
            Err(error) => return self.fail_next(format!("its debugger is not attached: {error}")).await,
        }
        let Some(NextServer::Starting(starting)) = self.next.take() else { return Ok(()) };
        self.finish_start(StartingServer { debugger: DebuggerState::NotNeeded, ..starting }).await
    }

    /// Begins the deadlines anew, once the server continues.
    pub fn extend_deadlines(&mut self, now: Instant) {
        let of_calls = self.calls.pending.values_mut().filter_map(|call| call.until.as_mut());
        of_calls.for_each(|until| *until = now + self.start_timeout);
        if let Some(NextServer::Starting(starting)) = &mut self.next {
            starting.until = now + self.start_timeout;
        }
        self.replaced.iter_mut().for_each(|replaced| replaced.until = now + DRAIN_TIMEOUT);
    }

    /// The sign of life of the next server.
    pub async fn handle_handshake(&mut self, message: &Envelope<'_>) -> Result<()> {
        let Some(NextServer::Starting(starting)) = self.next.take() else { return Ok(()) };
        let is_handshake = starting.awaited.as_ref().is_some_and(|(_, method)| *method == "initialize");
        if is_handshake && message.result.is_none() {
            self.next = Some(NextServer::Starting(starting));
            return self.fail_next(format!("it has refused `initialize`: {}", message.error_message())).await;
        }
        self.finish_start(StartingServer { awaited: None, ..starting }).await
    }

    /// The next server does not come up. Errors: it is the first.
    pub async fn fail_next(&mut self, how: String) -> Result<()> {
        let Some(NextServer::Starting(starting)) = self.next.take() else { return Ok(()) };
        let last = starting.server.last_lines();
        tokio::spawn(starting.server.stop());
        let because = if last.is_empty() { how } else { format!("{how}; its last lines:\n{last}") };
        let error = Error::other("the new server does not come up").because(because);
        let error = error.hint("start the server by hand to see more");
        self.keep_server(starting.change, error).await
    }

    /// Lets the server of before go on, or says that there is none. Errors: there was none before.
    async fn keep_server(&mut self, change: Option<SourceChange>, error: Error) -> Result<()> {
        if self.round == 1 {
            return Err(error);
        }
        self.sources.mark_tried(change).await;
        if self.current.is_some() {
            self.report_note("error", format!("this is the server of before: {error}"));
            return self.release_waiting().await;
        }
        let round = self.round;
        for call in self.take_waiting(round) {
            let Some(message) = Envelope::read(&call.line) else { continue };
            let (Some(id), Some(method)) = (message.id, &message.method) else { continue };
            let text = format!("`{method}` was not sent: {error}");
            self.send(&messages::error_response(id, &text, ""));
        }
        if !self.waiting.is_empty() {
            let change = self.sources.find_change().await;
            self.begin_next_round(change);
        }
        Ok(())
    }

    /// Has a server that is there answer from now on. The one before finishes its calls.
    async fn take_over(&mut self, server: WrappedServer, files: Arc<FileSnapshot>) {
        self.sources.set_current(files).await;
        let next = server.generation;
        if self.state.initialize.is_some() {
            self.replay_state(&server);
        }
        for call in self.calls.pending.values_mut() {
            if let Some(line) = &call.lasting {
                call.generation = next;
                server.write(line.clone());
            }
        }
        let until = Instant::now() + DRAIN_TIMEOUT;
        if let Some(server) = self.current.replace(server) {
            self.replaced.push(ReplacedServer { server, until });
        }
        self.end_idle_servers();
        if self.replaced.len() > MAX_REPLACED {
            let oldest = self.replaced.remove(0);
            self.end_replaced(oldest, "it was replaced too often since");
        }
    }

    /// Tells a new server what the client has told the one before. Its answers are not waited for: what is sent next comes after.
    fn replay_state(&mut self, server: &WrappedServer) {
        if self.state.is_initialized {
            server.write(messages::notification("notifications/initialized", Value::Null));
        }
        let level = self.state.log_level.iter().map(|params| ("logging/setLevel", params.clone()));
        let uris = self.state.subscriptions.iter();
        let uris = uris.map(|uri| ("resources/subscribe", json!({ "uri": uri }).to_string()));
        for (method, params) in level.chain(uris) {
            let id = self.calls.next_id();
            server.write(messages::request(&id, method, Some(&params)));
            self.calls.own.insert(json!(id).to_string(), OwnRequest { generation: server.generation, list: None });
        }
    }

    /// Sends what waits to the present server: what was sent before its files were read at once, the rest once there is nothing newer.
    async fn release_waiting(&mut self) -> Result<()> {
        let round = self.round;
        let mut change = None;
        if self.waiting.iter().any(|call| call.round > round) {
            change = self.sources.find_change().await;
        }
        let released = match change {
            None => std::mem::take(&mut self.waiting),
            Some(_) => self.take_waiting(round),
        };
        for call in released {
            if let Some(message) = Envelope::read(&call.line) {
                self.forward(&call.line, &message, call.progress);
            }
        }
        self.read_lists();
        if change.is_some() {
            self.begin_next_round(change);
        }
        Ok(())
    }

    /// Takes the requests that this replacement is new enough for.
    fn take_waiting(&mut self, round: u64) -> VecDeque<WaitingCall> {
        let (taken, left) = std::mem::take(&mut self.waiting).into_iter().partition(|call| call.round <= round);
        self.waiting = left;
        taken
    }

    fn begin_next_round(&mut self, change: Option<SourceChange>) {
        self.begin_replacement(change);
        let round = self.round;
        self.waiting.iter_mut().for_each(|call| call.round = round);
        self.report_waiting(Instant::now());
    }

    /// Reads the lists that the client has read, to tell it of those that have changed.
    fn read_lists(&mut self) {
        let Some(server) = &self.current else { return };
        if std::mem::replace(&mut self.lists_read_of, server.generation) == server.generation {
            return;
        }
        for (list, ..) in LISTS {
            let Some(params) = self.state.list_params(list) else { continue };
            let id = self.calls.next_id();
            server.write(messages::request(&id, list, params.as_deref()));
            let own = OwnRequest { generation: server.generation, list: Some(list) };
            self.calls.own.insert(json!(id).to_string(), own);
        }
    }

    /// Ends the replaced servers that have no calls left.
    pub fn end_idle_servers(&mut self) {
        let (calls, replaced) = (&self.calls, &mut self.replaced);
        for idle in replaced.extract_if(.., |it| !calls.has_pending(it.server.generation)) {
            // Not waited for: nothing depends on it.
            tokio::spawn(idle.server.stop());
        }
    }

    fn end_replaced(&mut self, replaced: ReplacedServer, why: &str) {
        let how = format!("the old server was ended ({why})");
        self.fail_calls(replaced.server.generation, &how, "");
        tokio::spawn(replaced.server.stop());
    }

    /// Ends the servers that have had their time. Errors: the first server is late.
    pub async fn end_late_servers(&mut self, now: Instant) -> Result<()> {
        while let Some(at) = self.replaced.iter().position(|it| it.until <= now) {
            let late = self.replaced.remove(at);
            self.end_replaced(late, &format!("it was replaced {} s ago", DRAIN_TIMEOUT.as_secs()));
        }
        let limit = humantime::format_duration(self.start_timeout);
        if self.next.as_ref().and_then(NextServer::until).is_some_and(|until| until <= now) {
            self.fail_next(format!("it has not answered `initialize` within {limit}")).await?;
        }
        if self.calls.pending.values().any(|call| call.until.is_some_and(|until| until <= now))
            && let Some(server) = self.current.take()
        {
            let how = format!("the server has not answered within {limit}, and was ended,");
            self.fail_calls(server.generation, &how, &server.last_lines());
            tokio::spawn(server.stop());
        }
        Ok(())
    }
}
