//! The conversation with one joined editor.
//!
//! ```text
//!  join:    initialize ─▶ attach ─▶ initialized ─▶ breakpoints ─▶ configurationDone ─▶ stops, output, …  ─▶ disconnect
//!  launch:  initialize ─▶ launch ─▶ initialized ─▶ breakpoints ─▶ configurationDone ─▶ session starts ─▶ response to launch
//! ```
//! Requests that wait for an adapter run beside the reading of others, but the program is resumed only with the breakpoints
//! that were sent before. While the editor's own resume is not answered, changes
//! of the state wait: an editor that is told of the next stop before the response to its step shows a running program.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tether_base::error::Result;
use tether_dap::types::{
    CapabilitiesEvent, DapCapabilities, DisconnectArguments, EmptyResponse, Fields, InitializedEvent,
};
use tether_dap::{DapConnection, DapError, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use tokio::net::TcpStream;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::breakpoint_requests::{replace_exceptions, replace_functions, replace_lines};
use super::capabilities::{expected_capabilities, joined_capabilities};
use super::editor_context::EditorContext;
use super::membership::EditorMembership;
use super::session_feed::{FeedChange, SessionFeed};
use super::session_requests::{FORWARDED_REQUESTS, forward_request, pause_thread, respond_threads, resume_thread};
use crate::debug::host::managed_session::ManagedSession;
use crate::debug::host::registry::SessionRegistry;
use crate::debug::session::resume::Resume;
use crate::debug::session::snapshot::SessionSnapshot;

/// Requests that wait for an adapter at one time; past that, no further one is read.
const MAX_CALLS: usize = 64;
/// How long a session that starts may take until its adapter's capabilities are known.
const CAPABILITIES_TIMEOUT: Duration = Duration::from_secs(10);
/// What an `attach` to something else than a session names.
const ATTACH_TARGETS: [&str; 5] = ["port", "pid", "url", "window", "config"];

/// What an editor requests with `launch` or `attach`; the fields are those of its request.
pub enum SessionStart {
    /// A new session with a program that is launched.
    Launch(Fields),
    /// A new session with a program that runs.
    Attach(Fields),
    /// A session that there is.
    Join(Fields),
}

/// Starts or finds the session that an editor means: `choose_session` of the supervisor's handlers makes it.
pub type OpenSession = Box<dyn Fn(SessionStart) -> BoxFuture<'static, Result<ManagedSession>> + Send + Sync>;

/// Which session an editor joins.
pub enum SessionChoice {
    /// This one, whatever the editor's `attach` says.
    Session(ManagedSession),
    /// The one that its `launch` starts, or its `attach` names.
    ByEditor(OpenSession),
}

/// As [`serve_editor`], over a TCP connection. Errors: its socket options cannot be set.
pub async fn serve_tcp_editor(stream: TcpStream, sessions: SessionRegistry, choice: SessionChoice) -> io::Result<()> {
    serve_editor(DapConnection::tcp(stream)?, sessions, choice).await;
    Ok(())
}

/// Serves one editor until it disconnects or closes the connection. The session goes on.
pub async fn serve_editor(connection: DapConnection, sessions: SessionRegistry, choice: SessionChoice) {
    let (server, inbox, driver) = DapServer::over(connection);
    let membership = EditorMembership::new(sessions.clone());
    let owner = membership.owner.clone();
    let context = EditorContext { sessions, owner, ids: Arc::default(), view: Arc::default(), paths: Arc::default() };
    let mut conversation = EditorConversation {
        server: server.clone(),
        choice,
        context,
        membership: Some(membership),
        progress: Progress::default(),
        joined: None,
        starting: None,
        calls: JoinSet::new(),
        breakpoint_calls: Vec::new(),
        resuming: 0,
        accepts_invalidated: false,
    };
    let conversing = async {
        if let Err(error) = conversation.run(inbox).await {
            debug!("{}: {error}", conversation.context.owner.name);
        }
        // Ends what it has under way; a session whose start is not complete is undone.
        conversation.calls.shutdown().await;
        drop(conversation.starting.take());
        if let Some(membership) = conversation.membership.take() {
            membership.leave().await;
        }
        server.close();
    };
    tokio::join!(conversing, driver);
}

/// The session that an editor has joined, and what it has been told of it.
pub(super) struct JoinedSession {
    pub managed: ManagedSession,
    pub feed: SessionFeed,
    pub told: SessionSnapshot,
    /// None before the first output is sent.
    pub output_cursor: Option<u64>,
}

/// How far the conversation has come.
#[derive(Default)]
struct Progress {
    is_initialized: bool,
    /// `initialized` has been sent.
    accepts_breakpoints: bool,
    is_configured: bool,
}

pub(super) struct EditorConversation {
    pub(super) server: DapServer,
    choice: SessionChoice,
    pub(super) context: EditorContext,
    /// None once the editor has left.
    membership: Option<EditorMembership>,
    progress: Progress,
    pub(super) joined: Option<JoinedSession>,
    /// A `launch` that waits for the editor's breakpoints.
    starting: Option<(IncomingRequest, SessionStart)>,
    calls: JoinSet<CallOutcome>,
    /// Requests that change breakpoints; each token is cancelled when its request is answered.
    breakpoint_calls: Vec<CancellationToken>,
    /// Resumes of this editor that are not answered.
    resuming: usize,
    /// Whether the editor understands `invalidated` events.
    pub(super) accepts_invalidated: bool,
}

/// What follows from a request that has run beside the others.
pub(super) enum CallOutcome {
    Answered,
    Resumed,
    Opened(IncomingRequest, Box<Result<ManagedSession>>),
}

/// What wakes the conversation.
enum ConversationEvent {
    Incoming(Option<DapIncoming>),
    Called(Result<CallOutcome, JoinError>),
    Changed(FeedChange),
}

impl EditorConversation {
    /// Runs until the editor disconnects or its connection ends. Errors: nothing can be sent any more.
    async fn run(&mut self, mut inbox: DapInbox) -> Result<(), DapError> {
        loop {
            let (may_read, reports) = (self.calls.len() < MAX_CALLS, self.progress.is_configured);
            let (joined, holds_state) = (self.joined.as_mut().filter(|_| reports), self.resuming > 0);
            let event = tokio::select! {
                incoming = inbox.next(), if may_read => ConversationEvent::Incoming(incoming),
                Some(outcome) = self.calls.join_next() => ConversationEvent::Called(outcome),
                change = next_change(joined, holds_state) => ConversationEvent::Changed(change),
            };
            match event {
                ConversationEvent::Incoming(None) => return Ok(()),
                ConversationEvent::Incoming(Some(DapIncoming::Request(request))) if request.command == "disconnect" => {
                    self.disconnect(request).await;
                    return Ok(());
                }
                ConversationEvent::Incoming(Some(DapIncoming::Request(request))) => {
                    self.handle_request(request).await?
                }
                // Editors send no events.
                ConversationEvent::Incoming(Some(_)) => {}
                ConversationEvent::Called(Ok(CallOutcome::Resumed)) => {
                    self.resuming = self.resuming.saturating_sub(1);
                }
                ConversationEvent::Called(Ok(CallOutcome::Opened(request, outcome))) => {
                    self.finish_start(request, *outcome).await?;
                }
                ConversationEvent::Called(_) => {}
                ConversationEvent::Changed(change) => self.report_change(change).await?,
            }
        }
    }

    async fn handle_request(&mut self, request: IncomingRequest) -> Result<(), DapError> {
        match request.command.as_str() {
            "initialize" => self.initialize(request).await,
            _ if !self.progress.is_initialized => {
                request.respond_error(ErrorResponse::new("the first request must be `initialize`"));
            }
            "launch" | "attach" => self.start(request).await?,
            "setBreakpoints" => {
                let (context, managed) = (self.context.clone(), self.managed());
                let call = replace_lines(context, managed, request).await;
                self.spawn_breakpoint_call(call);
            }
            "setFunctionBreakpoints" => {
                let (context, managed) = (self.context.clone(), self.managed());
                let call = replace_functions(context, managed, request).await;
                self.spawn_breakpoint_call(call);
            }
            "setExceptionBreakpoints" => {
                let context = self.context.clone();
                self.spawn_breakpoint_call(replace_exceptions(context, request));
            }
            "configurationDone" => self.finish_configuration(request).await?,
            _ => self.handle_session_request(request),
        }
        Ok(())
    }

    /// Requests that need a session.
    fn handle_session_request(&mut self, request: IncomingRequest) {
        let Some(managed) = self.managed() else {
            return request
                .respond_error(ErrorResponse::new("there is no session yet: `launch` or `attach` comes first"));
        };
        let context = self.context.clone();
        let command = request.command.clone();
        let how = match command.as_str() {
            "continue" => Resume::Continue,
            "next" => Resume::Over,
            "stepIn" => Resume::Into,
            "stepOut" => Resume::Out,
            "pause" => return self.spawn(pause_thread(context, managed, request)),
            "threads" => return self.spawn(respond_threads(context, managed, request)),
            "terminate" => return self.spawn(end_session(context, managed, request)),
            command if FORWARDED_REQUESTS.contains(&command) => {
                return self.spawn(forward_request(context, managed, request));
            }
            // Dropping a request refuses it.
            _ => return debug!("refused to {command}"),
        };
        self.resuming = self.resuming.saturating_add(1);
        let earlier = self.breakpoint_calls.clone();
        self.calls.spawn(async move {
            for call in &earlier {
                call.cancelled().await;
            }
            resume_thread(context, managed, request, how).await;
            CallOutcome::Resumed
        });
    }

    async fn initialize(&mut self, request: IncomingRequest) {
        let arguments: Fields = request.read_arguments().unwrap_or_default();
        let is_refused = |name: &str| arguments.get(name) == Some(&Value::Bool(false));
        let wants_uris = arguments.get("pathFormat").and_then(Value::as_str).is_some_and(|format| format != "path");
        if is_refused("linesStartAt1") || is_refused("columnsStartAt1") || wants_uris {
            let refusal = "lines and columns start at 1 here, and files are named by their paths";
            return request.respond_error(ErrorResponse::new(refusal));
        }
        let name = ["clientName", "clientID"].iter().find_map(|name| arguments.get(*name)?.as_str());
        if let Some((name, membership)) = name.zip(self.membership.as_mut()).filter(|_| !self.progress.is_initialized) {
            membership.set_name(name);
            self.context.owner = membership.owner.clone();
        }
        self.accepts_invalidated = arguments.get("supportsInvalidatedEvent") == Some(&Value::Bool(true));
        self.progress.is_initialized = true;
        match &self.choice {
            SessionChoice::Session(managed) => request.respond(&read_capabilities(managed).await),
            SessionChoice::ByEditor(_) => request.respond(&expected_capabilities()),
        }
    }

    /// `launch` or `attach`. A session that is there already is joined at once; another one starts when the editor has sent
    /// its breakpoints.
    async fn start(&mut self, request: IncomingRequest) -> Result<(), DapError> {
        if self.joined.is_some() || self.starting.is_some() {
            request.respond_error(ErrorResponse::new("this connection has its session already"));
            return Ok(());
        }
        let fields: Fields = match request.read_arguments() {
            Ok(fields) => fields,
            Err(cause) => {
                let text = format!("{}: {cause}", request.command);
                request.respond_error(ErrorResponse::new(text));
                return Ok(());
            }
        };
        let start = match request.command.as_str() {
            "launch" => SessionStart::Launch(fields),
            _ if ATTACH_TARGETS.iter().any(|name| fields.contains_key(*name)) => SessionStart::Attach(fields),
            _ => SessionStart::Join(fields),
        };
        match &self.choice {
            SessionChoice::Session(managed) => {
                let managed = managed.clone();
                self.finish_start(request, Ok(managed)).await
            }
            SessionChoice::ByEditor(open) if matches!(start, SessionStart::Join(_)) => {
                let opened = open(start);
                self.calls.spawn(async move { CallOutcome::Opened(request, Box::new(opened.await)) });
                Ok(())
            }
            SessionChoice::ByEditor(_) => {
                self.starting = Some((request, start));
                self.accept_breakpoints().await
            }
        }
    }

    /// The session of a `launch` or `attach` is there, or cannot be.
    async fn finish_start(
        &mut self,
        request: IncomingRequest,
        outcome: Result<ManagedSession>,
    ) -> Result<(), DapError> {
        let managed = match outcome {
            Ok(managed) => managed,
            Err(error) => {
                request.respond_error(ErrorResponse::new(error.to_string()));
                return Ok(());
            }
        };
        if let Some(membership) = &mut self.membership {
            membership.join(&managed);
        }
        let feed = SessionFeed::open(&managed.session, &self.context.sessions.0.breakpoints);
        let told = SessionSnapshot::default();
        self.joined = Some(JoinedSession { managed: managed.clone(), feed, told, output_cursor: None });
        request.respond(&EmptyResponse {});
        if matches!(self.choice, SessionChoice::ByEditor(_)) {
            let capabilities = read_capabilities(&managed).await;
            self.server.send_event(&CapabilitiesEvent { capabilities }).await?;
        }
        self.accept_breakpoints().await?;
        if self.progress.is_configured { self.report_joined_session().await } else { Ok(()) }
    }

    async fn accept_breakpoints(&mut self) -> Result<(), DapError> {
        if std::mem::replace(&mut self.progress.accepts_breakpoints, true) {
            return Ok(());
        }
        self.server.send_event(&InitializedEvent {}).await
    }

    async fn finish_configuration(&mut self, request: IncomingRequest) -> Result<(), DapError> {
        request.respond(&EmptyResponse {});
        if std::mem::replace(&mut self.progress.is_configured, true) {
            return Ok(());
        }
        if let Some((request, start)) = self.starting.take()
            && let SessionChoice::ByEditor(open) = &self.choice
        {
            let opened = open(start);
            self.calls.spawn(async move { CallOutcome::Opened(request, Box::new(opened.await)) });
        }
        if self.joined.is_some() { self.report_joined_session().await } else { Ok(()) }
    }

    /// Leaves the session; it ends only where the editor says so.
    async fn disconnect(&mut self, request: IncomingRequest) {
        let arguments: DisconnectArguments = request.read_arguments().unwrap_or_default();
        if let Some(managed) = self.managed().filter(|_| arguments.terminate_debuggee == Some(true))
            && let Err(error) = self.context.sessions.stop_session(&managed, Some(false)).await
        {
            debug!("{error}");
        }
        if let Some(membership) = self.membership.take() {
            membership.leave().await;
        }
        request.respond(&EmptyResponse {});
    }

    fn managed(&self) -> Option<ManagedSession> {
        self.joined.as_ref().map(|joined| joined.managed.clone())
    }

    fn spawn_breakpoint_call(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        let answered = CancellationToken::new();
        self.breakpoint_calls.retain(|call| !call.is_cancelled());
        self.breakpoint_calls.push(answered.clone());
        let guard = answered.drop_guard();
        self.spawn(async move {
            call.await;
            drop(guard);
        });
    }

    fn spawn(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        self.calls.spawn(async move {
            call.await;
            CallOutcome::Answered
        });
    }
}

/// The next change of a joined session; without one there is none.
async fn next_change(joined: Option<&mut JoinedSession>, holds_state: bool) -> FeedChange {
    match joined {
        Some(joined) => joined.feed.next(holds_state).await,
        None => std::future::pending().await,
    }
}

/// What an editor may request of a session; waits until its adapter has said what it supports.
async fn read_capabilities(managed: &ManagedSession) -> DapCapabilities {
    let first = managed.session.shared.target(0);
    let _ = timeout(CAPABILITIES_TIMEOUT, first.wait_for_capabilities()).await;
    joined_capabilities(&first.capabilities())
}

/// `terminate`: ends the session, or detaches from a program that was attached to.
async fn end_session(context: EditorContext, managed: ManagedSession, request: IncomingRequest) {
    match context.sessions.stop_session(&managed, None).await {
        Ok(_) => request.respond(&EmptyResponse {}),
        Err(error) => request.respond_error(ErrorResponse::new(error.to_string())),
    }
}
