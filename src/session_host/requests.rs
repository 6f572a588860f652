//! What a supervisor requests of a session host, and the state that the requests share.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tether_base::error::{Error, ErrorContext, Result};
use tether_base::sync::{TaskSender, lock};
use tether_wire::rpc::{CallError, RpcPeer};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::context::SessionContext;
use super::editor_join::serve_joined_editor;
use super::facts::SessionFacts;
use super::loopback_listener::{LoopbackListener, OpenedPort};
use super::operations::reattached::report_reattached;
use super::operations::run_operation;
use super::operations::stop_report::{report_start, stop_location};
use super::protocol::{
    BreakpointsParams, DISCONNECT, EXIT, EditorStart, FINISH_START, FactsReport, FurtherParams, HostedRequest, JOIN,
    JoinParams, OPEN_SESSION, PING, REATTACH, REPORT, REPORT_REATTACHED, ReattachParams, ReattachedParams,
    SEND_BREAKPOINTS, START, START_FURTHER, STOP_LOCATION, SWAP_CODE, StartParams, StartResult,
};
use crate::debug::join::{SessionChoice, SessionStart};
use crate::debug::{self, ManagedSession, SessionBindings, SessionRegistry};

/// One per host process.
pub(super) struct HostState {
    pub context: SessionContext,
    /// What the session was started with, once it was.
    hosted: Mutex<Option<HostedRequest>>,
    /// None before the session has started.
    facts: watch::Sender<Option<FactsReport>>,
    /// The number of open connections.
    pub connections: watch::Sender<usize>,
    /// Rises when this process has changed the stored breakpoints.
    pub breakpoint_changes: watch::Sender<u64>,
    /// Runs the conversations with editors.
    tasks: TaskSender,
    /// How many conversations there are.
    pub conversations: watch::Sender<usize>,
    /// The supervisor that has connected last.
    supervisor: Mutex<Option<RpcPeer>>,
    /// Notified when the process is to exit.
    pub exit: Notify,
}

impl HostState {
    pub(super) fn new(sessions: SessionRegistry, tasks: TaskSender) -> HostState {
        HostState {
            context: SessionContext::new(sessions),
            hosted: Mutex::default(),
            facts: watch::Sender::default(),
            connections: watch::Sender::default(),
            breakpoint_changes: watch::Sender::default(),
            tasks,
            conversations: watch::Sender::default(),
            supervisor: Mutex::default(),
            exit: Notify::new(),
        }
    }

    /// A supervisor has connected.
    pub(super) fn set_supervisor(&self, peer: RpcPeer) {
        *lock(&self.supervisor) = Some(peer);
    }

    /// What the session was started with.
    pub(super) fn hosted(&self) -> Option<HostedRequest> {
        lock(&self.hosted).clone()
    }

    /// Receives the facts after each change.
    pub(super) fn watch_facts(&self) -> watch::Receiver<Option<FactsReport>> {
        self.facts.subscribe()
    }

    /// The facts as they are now, if they are newer than this revision.
    pub(super) fn facts_since(&self, revision: u64) -> Option<FactsReport> {
        self.refresh_facts();
        self.facts.borrow().as_ref().filter(|report| report.revision > revision).cloned()
    }

    /// Publishes the facts, if they have changed.
    fn refresh_facts(&self) {
        let sessions = self.context.sessions.list_sessions();
        let Some(facts) = sessions.first().map(SessionFacts::of) else { return };
        let recorded = self.context.sessions.timeline().last_recorded();
        self.facts.send_if_modified(|report| {
            let last = report.as_ref().map_or(0, |last| last.revision);
            let is_changed = report.as_ref().is_none_or(|last| last.facts != facts || last.recorded != recorded);
            if is_changed {
                *report = Some(FactsReport { revision: last.saturating_add(1), facts, recorded });
            }
            is_changed
        });
    }

    /// Reports each change of the session to the connections. Never returns.
    pub(super) async fn follow_session(&self) {
        let mut changed = self.context.sessions.watch();
        // Its sender is a field of the registry.
        while changed.changed().await.is_ok() {
            // After the requests that have waited for the change: the result of one tells the facts, too.
            tokio::task::yield_now().await;
            changed.borrow_and_update();
            self.refresh_facts();
        }
    }

    /// Carries out one request.
    pub(super) async fn handle(self: &Arc<HostState>, method: &str, params: Value) -> Result<Value> {
        match method {
            PING => Ok(Value::Null),
            START => to_value(method, &self.start(read(method, params)?).await?),
            START_FURTHER => to_value(method, &self.start_further(read(method, params)?).await?),
            FINISH_START => to_value(method, &self.finish_start()?),
            REPORT => {
                let managed = self.find_session()?;
                to_value(method, &report_start(&self.context, &managed, &read(method, params)?).await?)
            }
            SEND_BREAKPOINTS => to_value(method, &self.send_breakpoints(read(method, params)?).await),
            SWAP_CODE => {
                let managed = self.find_session()?;
                to_value(method, &debug::swap_code(&self.context.sessions, &managed).await?)
            }
            REATTACH => to_value(method, &self.reattach(read(method, params)?).await?),
            REPORT_REATTACHED => to_value(method, &self.report_reattached(read(method, params)?).await?),
            DISCONNECT => {
                self.find_session()?.disconnect().await;
                Ok(Value::Null)
            }
            STOP_LOCATION => to_value(method, &stop_location(&self.context.sessions, &self.find_session()?).await),
            JOIN => to_value(method, &self.join_editor(&read(method, params)?)?),
            EXIT => {
                // Before the connection ends, so that the end is reported.
                self.context.sessions.end_all().await;
                self.exit.notify_one();
                Ok(Value::Null)
            }
            method => run_operation(&self.context, method, &params).await,
        }
    }

    fn find_session(&self) -> Result<ManagedSession> {
        self.context.sessions.find_session(None)
    }

    async fn start(&self, params: StartParams) -> Result<StartResult> {
        let StartParams { session_id, launch_id, request: mut hosted, secrets, test_runner, awaits_programs } = params;
        if self.hosted().is_some() {
            return Err(Error::usage("cannot start another session in this host"));
        }
        hosted.debug_target.secrets = secrets.clone();
        if let Some(runner) = test_runner {
            self.context.remember_test_runner(&session_id, runner);
        }
        let request = hosted.clone();
        let ids = (session_id.clone(), launch_id);
        let managed = self.context.sessions.start_hosted(ids, hosted, awaits_programs).await?;
        let note = managed.note.clone();
        *lock(&self.hosted) = Some(HostedRequest { session_id, request, secrets, note: note.clone() });
        Ok(StartResult { note })
    }

    async fn start_further(&self, FurtherParams { mut request, secrets }: FurtherParams) -> Result<StartResult> {
        request.debug_target.secrets = secrets;
        let first = self.find_session()?;
        let program = self.context.sessions.start_further_program(&first, request).await?;
        Ok(StartResult { note: program.note })
    }

    fn finish_start(&self) -> Result<()> {
        self.find_session()?.session.set_awaits_programs(false);
        Ok(())
    }

    async fn send_breakpoints(&self, params: BreakpointsParams) -> SessionBindings {
        let sessions = &self.context.sessions;
        sessions.take_over_breakpoints().await;
        if let Some(id) = params.bound {
            sessions.wait_for_own_binding(id).await;
        }
        sessions.own_bindings()
    }

    async fn reattach(&self, ReattachParams { request, failure, why }: ReattachParams) -> Result<bool> {
        let old = self.find_session()?;
        let none = || Error::other("there is nothing to attach to");
        let request = request.ok_or_else(|| failure.map_or_else(none, Error::from));
        if let Ok(request) = &request
            && let Some(hosted) = lock(&self.hosted).as_mut()
        {
            hosted.request = request.clone();
        }
        Ok(self.context.sessions.reattach(&old, request, &why).await.is_some())
    }

    async fn report_reattached(&self, ReattachedParams { why, missed }: ReattachedParams) -> Result<()> {
        let managed = self.find_session()?;
        report_reattached(&managed, &why, missed.as_deref()).await;
        Ok(())
    }

    fn join_editor(self: &Arc<HostState>, params: &JoinParams) -> Result<OpenedPort> {
        let choice = match params.chooses_session {
            true => self.choose_by_editor(),
            false => SessionChoice::Session(self.find_session()?),
        };
        let Some(listener) = LoopbackListener::open_for_editor() else { return Ok(OpenedPort::default()) };
        let port = Some(listener.port());
        let serving = serve_joined_editor(self.context.sessions.clone(), listener, choice, CancellationToken::new());
        let state = Arc::clone(self);
        state.conversations.send_modify(|count| *count = count.saturating_add(1));
        let conversation = async move {
            serving.await;
            state.conversations.send_modify(|count| *count = count.saturating_sub(1));
            if state.context.sessions.list_sessions().is_empty() {
                // The editor has left before it has started anything.
                state.exit.notify_one();
            }
        };
        // The receiver exists as long as the process.
        let _ = self.tasks.send(conversation.boxed());
        Ok(OpenedPort { success: true, port })
    }

    /// The session that an editor starts here: the supervisor plans it.
    fn choose_by_editor(self: &Arc<HostState>) -> SessionChoice {
        let state = Arc::clone(self);
        SessionChoice::ByEditor(Box::new(move |start| {
            let state = Arc::clone(&state);
            async move { state.open_for_editor(start).await }.boxed()
        }))
    }

    async fn open_for_editor(&self, start: SessionStart) -> Result<ManagedSession> {
        let start = match start {
            SessionStart::Launch(fields) => EditorStart::Launch(fields),
            SessionStart::Attach(fields) => EditorStart::Attach(fields),
            SessionStart::Join(_) => {
                let error = Error::usage("cannot join a debug session over this connection");
                return Err(error.hint("name it in `debugger/join`, whose port is its own; `tether dap` does that"));
            }
        };
        let gone = || {
            Error::other("cannot start a debug session")
                .because("the supervisor has exited")
                .hint("start it again: a new supervisor is started")
        };
        let supervisor = lock(&self.supervisor).clone().ok_or_else(gone)?;
        let start = to_value(OPEN_SESSION, &start)?;
        let opened = supervisor.call(OPEN_SESSION, &start).await.map_err(|error| match error {
            CallError::Failed(failed) => failed.into_error("cannot start a debug session"),
            CallError::Closed(_) => gone(),
        })?;
        let notes: Vec<String> = read(OPEN_SESSION, opened)?;
        let managed = self.find_session()?;
        for note in notes {
            managed.session.event_log().push_output("console", &format!("tether: {note}\n"));
        }
        Ok(managed)
    }
}

fn read<P: DeserializeOwned>(method: &str, params: Value) -> Result<P> {
    P::deserialize(params).doing(|| format!("cannot read the parameters of {method}"))
}

fn to_value(method: &str, result: &impl Serialize) -> Result<Value> {
    serde_json::to_value(result).doing(|| format!("cannot serialize the result of {method}"))
}
