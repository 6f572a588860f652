//! The next server: built, started, told what the client has told; it takes over, or the one before stays.
//!
//! ```text
//!  Building ──built──▶ Starting ──answers `initialize`──▶ current; the one before finishes its calls
//!     └─ fails ──────────┴─ fails, ends, is late ──▶ the one before stays; what waits goes to it
//! ```

use std::collections::VecDeque;
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
    Building { change: Option<SourceChange>, build: BoxFuture<'static, Result<Arc<FileSnapshot>>>, why: String },
    Starting(StartingServer),
}

/// It was started, and asked for a sign of life.
pub(super) struct StartingServer {
    server: WrappedServer,
    change: Option<SourceChange>,
    files: Arc<FileSnapshot>,
    why: String,
    /// The key of the id, and the method, of the request that it answers first.
    awaited: (String, &'static str),
    until: Instant,
}

impl NextServer {
    /// Resolves when the build has ended; never without one.
    pub async fn built(next: &mut Option<NextServer>) -> Result<Arc<FileSnapshot>> {
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
        matches!(self, NextServer::Starting(it) if it.server.generation == generation && it.awaited.0 == key)
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
        self.next = Some(NextServer::Building { change, build: Box::pin(self.sources.build()), why });
    }

    /// Starts the next server. Errors: it is the first, and cannot be started.
    pub async fn handle_built(&mut self, built: Result<Arc<FileSnapshot>>) -> Result<()> {
        let Some(NextServer::Building { change, why, .. }) = self.next.take() else { return Ok(()) };
        self.last_generation += 1;
        let started = built.and_then(|files| {
            let server = WrappedServer::start(self.last_generation, &self.command, &self.workspace, &self.events)?;
            Ok((files, server))
        });
        let (files, server) = match started {
            Ok(started) => started,
            Err(error) => return self.keep_server(change, error).await,
        };
        let (method, params) = match (&self.state.initialize, &self.state.envelope) {
            (Some(params), _) => ("initialize", params.clone()),
            // Without a handshake any answer says that it is there.
            (None, Some(envelope)) => ("server/discover", json!({"_meta": envelope}).to_string()),
            (None, None) => {
                self.take_over(server, files).await;
                return self.release_waiting().await;
            }
        };
        let id = self.calls.next_id();
        server.write(messages::request(&id, method, Some(&params)));
        let awaited = (json!(id).to_string(), method);
        let until = Instant::now() + self.start_timeout;
        self.next = Some(NextServer::Starting(StartingServer { server, change, files, why, awaited, until }));
        Ok(())
    }

    /// The sign of life of the next server.
    pub async fn handle_handshake(&mut self, message: &Envelope<'_>) -> Result<()> {
        let Some(NextServer::Starting(starting)) = self.next.take() else { return Ok(()) };
        if starting.awaited.1 == "initialize" && message.result.is_none() {
            self.next = Some(NextServer::Starting(starting));
            return self.fail_next(format!("it has refused `initialize`: {}", message.error_message())).await;
        }
        self.take_over(starting.server, starting.files).await;
        self.release_waiting().await
    }

    /// The next server does not come up. Errors: it is the first.
    pub async fn fail_next(&mut self, how: String) -> Result<()> {
        let Some(NextServer::Starting(starting)) = self.next.take() else { return Ok(()) };
        let last = starting.server.last_lines();
        tokio::spawn(starting.server.stop());
        let error = Error::other("the new server does not come up").because(how);
        let error = if last.is_empty() { error } else { error.hint(format!("its last lines:\n{last}")) };
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
