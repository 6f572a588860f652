//! The proxy: passes messages on, has the next server take over, and answers for one that has ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tokio::io::{AsyncWriteExt, Stdin, Stdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::messages::{self, Envelope, id_key};
use super::session_state::{LISTS, SessionState};
use super::source_watch::SourceWatch;
use super::wrapped_server::{ServerEvent, WrappedServer};

/// A longer message of a client is refused.
const MAX_LINE: usize = 64 << 20;
/// How many events of servers wait to be passed on.
const EVENTS: usize = 64;
/// How long a new server may take to answer `initialize`, and what it is told after it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server that is replaced may take to finish its calls.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How ids of our own begin.
const OWN_ID: &str = "tether-wrap-";

/// Serves MCP on stdin and stdout with this server, until the client closes stdin. Errors: the workspace cannot be watched, its
/// build is not trusted or fails, or the server cannot be started.
pub async fn serve_wrap(workspace: PathBuf, command: Vec<OsString>) -> Result<()> {
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let sources = SourceWatch::open(&workspace)?;
    let (events, received) = mpsc::channel(EVENTS);
    let mut proxy = Proxy {
        command,
        workspace,
        sources,
        events,
        received,
        client: tokio::io::stdout(),
        current: None,
        replaced: None,
        last_generation: 0,
        last_id: 0,
        state: SessionState::default(),
        calls: BTreeMap::new(),
        asked: BTreeMap::new(),
        note: None,
    };
    proxy.current = Some(proxy.start_next().await?);
    let outcome = proxy.serve().await;
    for server in proxy.current.take().into_iter().chain(proxy.replaced.take().map(|it| it.server)) {
        server.stop().await;
    }
    outcome
}

/// A call of the client that a server has not answered yet.
struct PendingCall {
    id: Value,
    method: String,
    generation: u64,
    /// One that lasts as long as the connection: the next server takes it over.
    lasting: Option<String>,
}

/// Listens to what changes until it is cancelled; there is no other answer.
const LASTING: &str = "subscriptions/listen";

/// A server that was replaced, and finishes its calls.
struct ReplacedServer {
    server: WrappedServer,
    until: Instant,
}

struct Proxy {
    command: Vec<OsString>,
    workspace: PathBuf,
    sources: SourceWatch,
    events: mpsc::Sender<(u64, ServerEvent)>,
    received: mpsc::Receiver<(u64, ServerEvent)>,
    client: Stdout,
    current: Option<WrappedServer>,
    replaced: Option<ReplacedServer>,
    last_generation: u64,
    last_id: u64,
    state: SessionState,
    /// By the id of the client.
    calls: BTreeMap<String, PendingCall>,
    /// The requests of servers that the client has not answered, by our id: which server, and its own id.
    asked: BTreeMap<String, (u64, Value)>,
    /// For the `_meta` of the next result.
    note: Option<String>,
}

/// The end of the time that a server has which was replaced.
async fn wait_until(end: Option<Instant>) {
    let never = std::future::pending::<()>();
    match end {
        Some(end) => timeout_at(end, never).await.unwrap_or_default(),
        None => never.await,
    }
}

type ClientLines = FramedRead<Stdin, LinesCodec>;

impl Proxy {
    /// Until the client closes its side. Errors: it cannot be written to.
    async fn serve(&mut self) -> Result<()> {
        let mut lines: ClientLines = FramedRead::new(tokio::io::stdin(), LinesCodec::new_with_max_length(MAX_LINE));
        loop {
            let until = self.replaced.as_ref().map(|it| it.until);
            let queue = self.current.as_ref().map(|server| server.lines.clone());
            let is_full = queue.as_ref().is_some_and(|queue| queue.capacity() == 0);
            tokio::select! {
                line = lines.next(), if !is_full => match line {
                    Some(Ok(line)) => self.handle_client(line).await?,
                    Some(Err(LinesCodecError::MaxLineLengthExceeded)) => self.send(&messages::parse_error()).await?,
                    Some(Err(_)) | None => return Ok(()),
                },
                // There is room for the next message.
                _ = async { queue.as_ref()?.reserve().await.ok().map(drop) }, if is_full => {}
                Some((generation, event)) = self.received.recv() => self.handle_event(generation, event).await?,
                () = wait_until(until), if until.is_some() => self.end_replaced().await?,
            }
        }
    }

    async fn send(&mut self, message: &str) -> Result<()> {
        let line = format!("{message}\n");
        let sent = async {
            self.client.write_all(line.as_bytes()).await?;
            self.client.flush().await
        };
        sent.await.map_err(|cause| Error::other("cannot write to the client").because(cause))
    }

    async fn handle_client(&mut self, line: String) -> Result<()> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Some(message) = Envelope::read(&line) else { return self.send(&messages::parse_error()).await };
        match (message.method.as_deref(), message.id.clone()) {
            (Some(method), Some(id)) => {
                let method = method.to_owned();
                self.state.record_envelope(&message);
                if let Err(error) = self.bring_up_to_date(&message).await {
                    let text = format!("`{method}` was not sent: {error}");
                    return self.send(&messages::error_response(&id, &text, "")).await;
                }
                self.state.record_request(&method, &message);
                let generation = self.current.as_ref().map_or(0, |server| server.generation);
                let lasting = (method == LASTING).then(|| line.clone());
                self.calls.insert(id_key(&id), PendingCall { id, method, generation, lasting });
                self.pass_on(generation, line).await;
            }
            (Some(method), None) => {
                self.state.is_initialized |= method == "notifications/initialized";
                // A call is cancelled where it runs.
                let cancelled = (method == "notifications/cancelled").then(|| message.param("requestId")).flatten();
                let call = cancelled.and_then(|id| self.calls.get(&id_key(&id)));
                let current = self.current.as_ref().map_or(0, |server| server.generation);
                let generation = call.map_or(current, |call| call.generation);
                self.pass_on(generation, line).await;
            }
            (None, Some(id)) => {
                if let Some((generation, own)) = id.as_str().and_then(|id| self.asked.remove(id)) {
                    self.pass_on(generation, messages::with_id(&line, own)).await;
                }
            }
            (None, None) => self.send(&messages::parse_error()).await?,
        }
        Ok(())
    }

    /// One that has ended reports that itself.
    async fn pass_on(&self, generation: u64, line: String) {
        let replaced = self.replaced.as_ref().map(|it| &it.server);
        let mut servers = self.current.iter().chain(replaced);
        if let Some(server) = servers.find(|server| server.generation == generation) {
            let _ = server.lines.send(line).await;
        }
    }

    async fn handle_event(&mut self, generation: u64, event: ServerEvent) -> Result<()> {
        match event {
            ServerEvent::Line(line) => self.handle_line(generation, line).await,
            ServerEvent::Ended => self.handle_end(generation).await,
        }
    }

    async fn handle_line(&mut self, generation: u64, line: String) -> Result<()> {
        let Some(message) = Envelope::read(&line) else {
            if !line.trim().is_empty() {
                let shown = tether_base::display_text::escape_line(&line);
                let _ = tokio::io::stderr()
                    .write_all(
                        format!("tether: the server has printed to stdout what is no message: {shown}\n").as_bytes(),
                    )
                    .await;
            }
            return Ok(());
        };
        match (message.method.is_some(), message.id.clone()) {
            (false, Some(id)) => {
                // Of a call that the next server has taken over.
                let key = id_key(&id);
                if self.calls.get(&key).is_none_or(|call| call.generation != generation) {
                    return Ok(());
                }
                let Some(call) = self.calls.remove(&key) else { return Ok(()) };
                let changed = self.read_answer(&call.method, &message, &line);
                self.send(changed.as_deref().unwrap_or(&line)).await?;
                self.end_idle_replaced().await;
                Ok(())
            }
            (true, Some(own)) => {
                let id = self.next_id();
                self.asked.insert(id.clone(), (generation, own));
                self.send(&messages::with_id(&line, id.into())).await
            }
            _ => self.send(&line).await,
        }
    }

    /// An answer as the client gets it; `None`: as it is.
    fn read_answer(&mut self, method: &str, message: &Envelope<'_>, line: &str) -> Option<String> {
        if ["initialize", "server/discover"].contains(&method) && message.result.is_some() {
            return Some(self.state.take_initialize_result(line));
        }
        if LISTS.iter().any(|(list, ..)| *list == method)
            && let Some(result) = message.result.and_then(|result| serde_json::from_str(result.get()).ok())
        {
            self.state.record_list(method, &result);
        }
        let note = self.note.take_if(|_| message.result.is_some())?;
        Some(messages::with_note(line, &note))
    }

    /// Answers the calls of a server that has ended.
    async fn handle_end(&mut self, generation: u64) -> Result<()> {
        let is_current = self.current.as_ref().is_some_and(|server| server.generation == generation);
        let is_replaced = self.replaced.as_ref().is_some_and(|it| it.server.generation == generation);
        let server = if is_current {
            self.current.take()
        } else if is_replaced {
            self.replaced.take().map(|it| it.server)
        } else {
            None
        };
        let Some(server) = server else { return Ok(()) };
        let (how, last) = (server.describe_end().await, server.last_lines());
        self.fail_calls(generation, &how, &last).await?;
        server.stop().await;
        Ok(())
    }

    async fn fail_calls(&mut self, generation: u64, how: &str, last: &str) -> Result<()> {
        self.asked.retain(|_, (of, _)| *of != generation);
        let (failed, left) =
            std::mem::take(&mut self.calls).into_iter().partition(|(_, it)| it.generation == generation);
        self.calls = left;
        let failed: BTreeMap<String, PendingCall> = failed;
        for PendingCall { id, method, .. } in failed.into_values() {
            let text = format!("{how} during `{method}`, which was not repeated; the next request starts it again");
            self.send(&messages::error_response(&id, &text, last)).await?;
        }
        Ok(())
    }

    /// Ends the server that was replaced, if it has no calls left.
    async fn end_idle_replaced(&mut self) {
        let calls = &self.calls;
        let is_idle = |it: &mut ReplacedServer| calls.values().all(|call| call.generation != it.server.generation);
        if let Some(ReplacedServer { server, .. }) = self.replaced.take_if(is_idle) {
            // Not waited for: nothing depends on it.
            tokio::spawn(server.stop());
        }
    }

    /// Ends the server that was replaced, whatever it does.
    async fn end_replaced(&mut self) -> Result<()> {
        let Some(ReplacedServer { server, .. }) = self.replaced.take() else { return Ok(()) };
        let how = format!("the old server was ended {} s after it was replaced", DRAIN_TIMEOUT.as_secs());
        self.fail_calls(server.generation, &how, "").await?;
        server.stop().await;
        Ok(())
    }

    fn next_id(&mut self) -> String {
        self.last_id += 1;
        format!("{OWN_ID}{}", self.last_id)
    }

    fn start_server(&mut self) -> Result<WrappedServer> {
        self.last_generation += 1;
        WrappedServer::start(self.last_generation, &self.command, &self.workspace, &self.events)
    }

    /// Has a server of the newest sources take over. One that does not come up leaves the old one. Errors: there is no server.
    async fn bring_up_to_date(&mut self, message: &Envelope<'_>) -> Result<()> {
        let change = self.sources.find_change().await;
        if self.current.is_some() && change.is_none() {
            return Ok(());
        }
        self.report_restart(message, change.as_deref()).await?;
        match self.start_next().await {
            Ok(server) => {
                self.take_over(server).await?;
                self.report_changed_lists().await
            }
            Err(error) if self.current.is_some() => {
                self.sources.mark_tried().await;
                self.report_failure(&error).await
            }
            Err(error) => Err(error),
        }
    }

    /// The next server, built and told what the client has told. Errors: it does not come up.
    async fn start_next(&mut self) -> Result<WrappedServer> {
        // What changes from here on is newer than it.
        let before = self.sources.take_current().await?;
        self.sources.build().await?;
        let server = self.start_server()?;
        let told = self.tell(&server).await;
        if let Err(cause) = told {
            let last = server.last_lines();
            server.stop().await;
            let error = Error::other("the new server does not come up").because(cause);
            return Err(if last.is_empty() { error } else { error.hint(format!("its last lines:\n{last}")) });
        }
        self.sources.set_current(before).await;
        Ok(server)
    }

    /// Tells a new server what the client has told the one before.
    async fn tell(&mut self, server: &WrappedServer) -> Result<()> {
        let until = Instant::now() + HANDSHAKE_TIMEOUT;
        let Some(params) = self.state.initialize.clone() else {
            // Without a handshake any answer says that it is there.
            if let Some(envelope) = &self.state.envelope {
                let params = json!({"_meta": envelope}).to_string();
                self.exchange(server, "server/discover", Some(&params), until).await?;
            }
            return Ok(());
        };
        self.ask(server, "initialize", Some(&params), until).await?;
        if self.state.is_initialized {
            let _ = server.lines.send(messages::notification("notifications/initialized", Value::Null)).await;
        }
        if let Some(level) = self.state.log_level.clone() {
            self.ask(server, "logging/setLevel", Some(&level), until).await?;
        }
        for uri in self.state.subscriptions.clone() {
            let params = json!({"uri": uri}).to_string();
            self.ask(server, "resources/subscribe", Some(&params), until).await?;
        }
        Ok(())
    }

    /// As [`Proxy::exchange`], for the result. Errors: also that it refuses.
    async fn ask(
        &mut self,
        server: &WrappedServer,
        method: &'static str,
        params: Option<&str>,
        until: Instant,
    ) -> Result<Value> {
        let mut answer = self.exchange(server, method, params, until).await?;
        match answer.get_mut("result").map(Value::take) {
            Some(result) => Ok(result),
            None => Err(Error::other(format!("it has refused `{method}`: {}", answer["error"]["message"]))),
        }
    }

    /// Asks a server on our own behalf, and passes everything else on meanwhile. Errors: it has ended, or does not answer.
    async fn exchange(
        &mut self,
        server: &WrappedServer,
        method: &'static str,
        params: Option<&str>,
        until: Instant,
    ) -> Result<Value> {
        let id = self.next_id();
        let _ = server.lines.send(messages::request(&id, method, params)).await;
        let late = || Error::other(format!("it has not answered `{method}` in time"));
        loop {
            let Some((generation, event)) = timeout_at(until, self.received.recv()).await.map_err(|_| late())? else {
                return Err(late());
            };
            if generation != server.generation {
                self.handle_event(generation, event).await?;
                continue;
            }
            let line = match event {
                ServerEvent::Ended => return Err(Error::other(server.describe_end().await)),
                ServerEvent::Line(line) => line,
            };
            let is_answer = Envelope::read(&line).is_some_and(|message| {
                message.method.is_none() && message.id.as_ref().and_then(Value::as_str) == Some(&id)
            });
            if !is_answer {
                self.handle_line(generation, line).await?;
                continue;
            }
            return Ok(serde_json::from_str(&line).unwrap_or_default());
        }
    }

    async fn take_over(&mut self, server: WrappedServer) -> Result<()> {
        // One that is still being replaced has had its time.
        self.end_replaced().await?;
        let until = Instant::now() + DRAIN_TIMEOUT;
        let next = server.generation;
        for call in self.calls.values_mut() {
            if let Some(line) = &call.lasting {
                call.generation = next;
                let _ = server.lines.send(line.clone()).await;
            }
        }
        self.replaced = self.current.replace(server).map(|server| ReplacedServer { server, until });
        self.end_idle_replaced().await;
        Ok(())
    }

    /// Tells the client of lists that it has read and that have changed.
    async fn report_changed_lists(&mut self) -> Result<()> {
        for (method, _, changed) in LISTS {
            let Some(params) = self.state.list_params(method) else { continue };
            let Some(server) = self.current.take() else { return Ok(()) };
            let asked = self.ask(&server, method, params.as_deref(), Instant::now() + HANDSHAKE_TIMEOUT).await;
            self.current = Some(server);
            if asked.is_ok_and(|list| self.state.record_list(method, &list)) {
                self.send(&messages::notification(changed, Value::Null)).await?;
            }
        }
        Ok(())
    }

    /// Says that a call waits for a restart, where its caller wants to know of its progress.
    async fn report_restart(&mut self, message: &Envelope<'_>, change: Option<&str>) -> Result<()> {
        let token = message.param("_meta").and_then(|mut meta| meta.get_mut("progressToken").map(Value::take));
        let Some(token) = token else { return Ok(()) };
        let why = change.unwrap_or("the server has ended");
        let params = json!({"progressToken": token, "progress": 0, "message": format!("restarting the server: {why}")});
        self.send(&messages::notification("notifications/progress", params)).await
    }

    /// Says why the old server goes on.
    async fn report_failure(&mut self, error: &Error) -> Result<()> {
        let note = format!("this is the server of before: {error}");
        if self.state.capabilities.get("logging").is_some() {
            let params = json!({"level": "error", "logger": "tether", "data": note});
            self.send(&messages::notification("notifications/message", params)).await?;
        }
        self.note = Some(note);
        Ok(())
    }
}
