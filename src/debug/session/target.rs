//! One connection to an adapter: its start in the order that suits them all, its events, its end.
//!
//! ```text
//! initialize ─▶ launch / attach ──────────────── its answer, when it likes ─▶ Started
//!                   └▶ initialized ─▶ breakpoints ─▶ configurationDone (once; breakpoints each time)
//! ```
//! Calls run beside the reading of events and die with the target. Must not know its siblings.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tracing::warn;

use super::debug_session::TargetGuard;
use super::output_flush::OutputFlush;
use super::run_in_terminal;
use super::stop::ThreadStop;
use super::stop_filter::{self, StopDecision};
use super::target_state::{TargetEffect, TargetInput};
use crate::adapters::Quirks;
use crate::dap::types::{
    AttachArguments, BreakpointEvent, CapabilitiesEvent, ContinueArguments, ContinuedEvent, DapCapabilities,
    DisconnectArguments, ExitedEvent, InitializeArguments, InitializedEvent, LaunchArguments, NextArguments,
    StartRequest, StepInArguments, StepOutArguments, StoppedEvent, TerminatedEvent,
};
use crate::dap::{DapClient, DapConnection, DapError, DapInbox, DapIncoming, RawEvent};
use crate::debug::breakpoints::sync::send_all_breakpoints;

/// How long an adapter may take to say goodbye; some never do.
pub(in crate::debug) const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why gdb says that the program has stopped when an evaluation has called a function of it: it is where it was.
const FUNCTION_CALL: &str = "function call";

/// How long the calls of a target may outlive its connection.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// What every target of a session is started with.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    pub initialize: InitializeArguments,
    pub start: StartRequest,
    pub quirks: Quirks,
    pub stop_on_entry: bool,
    /// For the answer of `initialize`, for which an adapter may load much first.
    pub initialize_deadline: Duration,
    /// For each single request.
    pub deadline: Duration,
    /// For the answer of `launch` or `attach`, which may compile first.
    pub start_deadline: Duration,
    /// Marks the processes that are started for the session.
    pub launch_id: String,
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    Continue,
    Over,
    Into,
    Out,
}

impl Resume {
    pub(in crate::debug) async fn send(
        self,
        client: &DapClient,
        thread_id: i64,
        deadline: Duration,
    ) -> Result<(), DapError> {
        match self {
            Resume::Continue => client
                .request(&ContinueArguments { thread_id, ..ContinueArguments::default() }, deadline)
                .await
                .map(drop),
            Resume::Over => {
                client.request(&NextArguments { thread_id, ..NextArguments::default() }, deadline).await.map(drop)
            }
            Resume::Into => {
                client.request(&StepInArguments { thread_id, ..StepInArguments::default() }, deadline).await.map(drop)
            }
            Resume::Out => {
                client.request(&StepOutArguments { thread_id, ..StepOutArguments::default() }, deadline).await.map(drop)
            }
        }
    }
}

/// What a call beside the events came to.
enum CallResult {
    Started(Result<(), DapError>),
    Judged(StopDecision),
    Other,
}

struct TargetTask {
    member: Arc<TargetGuard>,
    plan: TargetPlan,
    client: DapClient,
    calls: JoinSet<CallResult>,
    configured: bool,
    /// The first stop has come.
    opened: bool,
    drain: Arc<OutputFlush>,
    /// The stops that it was in when it went on unasked: to call a function of the program, perhaps.
    before_call: Vec<ThreadStop>,
}

/// Lives as long as the connection. Whatever happens, the target has ended when this is done.
pub(in crate::debug) async fn drive_target(member: TargetGuard, plan: TargetPlan, connection: DapConnection) {
    let (client, inbox, driver) = DapClient::over(connection);
    member.set_client(&client);
    let member = Arc::new(member);
    let calls = JoinSet::new();
    let drain = Arc::default();
    let before_call = Vec::new();
    let mut target = TargetTask { member, plan, client, calls, configured: false, opened: false, drain, before_call };
    target.calls.spawn(async move {
        driver.await;
        CallResult::Other
    });
    let (client, plan, member) = (target.client.clone(), target.plan.clone(), Arc::clone(&target.member));
    target.calls.spawn(async move { CallResult::Started(send_start(&member, &client, &plan).await) });
    target.run_event_loop(inbox).await;
    let reason = target.client.wait_closed().await;
    let end = if target.plan.quirks.close_means_terminated && target.configured {
        TargetInput::Terminated
    } else {
        TargetInput::Closed(reason)
    };
    target.member.step(end);
    // The rest of the conversation: what was on its way is written, what comes is read. What has no end of its own (a

    // program that we run for the adapter) is given up.
    let rest = async { while target.calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(CLOSE_GRACE, rest).await;
}

impl TargetTask {
    async fn run_event_loop(&mut self, mut inbox: DapInbox) {
        loop {
            tokio::select! {biased; // what the adapter has told comes before what its answers mean
             incoming = inbox.next() => match incoming {Some(DapIncoming::Event(event)) => self.handle_event(&event), Some(DapIncoming::Request(asked)) if asked.command == "startDebugging" => self.member.request_child(asked), Some(DapIncoming::Request(asked)) if asked.command == "runInTerminal" => {let (record, mark) = (self.member.event_log(), self.plan.launch_id.clone()); self.spawn_call(run_in_terminal::run_in_terminal(asked, record, mark));}
            // Refused by dropping it.
             Some(DapIncoming::Request(asked)) => warn!("refused to {}", asked.command), Some(DapIncoming::Lost(lost)) => self.member.event_log().record_loss(lost), None => return}, Some(done) = self.calls.join_next() => match done {Ok(CallResult::Started(Ok(()))) => drop(self.member.step(TargetInput::Started)), Ok(CallResult::Started(Err(error))) => {self.member.step(TargetInput::Closed(error.to_string())); self.disconnect();} Ok(CallResult::Judged(verdict)) => self.apply_decision(verdict), Ok(CallResult::Other) | Err(_) => {}}}
        }
    }

    fn handle_event(&mut self, event: &RawEvent) {
        if let Some(own) = self.drain.take_marker(event) {
            self.member.event_log().push_output("stdout", &own);
            return;
        }
        self.member.event_log().record_event(event);
        let input = if let Some(stopped) = event.read_body::<StoppedEvent>() {
            let before = std::mem::take(&mut self.before_call);
            if stopped.reason == FUNCTION_CALL && !(before.is_empty() && self.member.stops().is_empty()) {
                for stop in before {
                    self.member.step(TargetInput::Stopped(stop));
                }
                return;
            }
            return self.handle_stop(ThreadStop::from_event(stopped));
        } else if let Some(continued) = event.read_body::<ContinuedEvent>() {
            // gdb may say so twice.
            let left = self.member.stops();
            if !left.is_empty() {
                self.before_call = left;
            }
            let only = continued.all_threads_continued == Some(false);
            TargetInput::Continued(only.then_some(continued.thread_id))
        } else if let Some(exited) = event.read_body::<ExitedEvent>() {
            TargetInput::Exited(exited.exit_code)
        } else if event.read_body::<TerminatedEvent>().is_some() {
            TargetInput::Terminated
        } else {
            if event.read_body::<InitializedEvent>().is_some() {
                self.spawn_configuration();
            } else if let Some(changed) = event.read_body::<BreakpointEvent>() {
                self.member.update_binding(changed.breakpoint);
            } else if let Some(changed) = event.read_body::<CapabilitiesEvent>() {
                self.member.merge_capabilities(changed.capabilities);
            }
            return;
        };
        if self.member.step(input) == TargetEffect::Disconnect {
            self.disconnect();
        }
    }

    /// A stop is published at once, unless it must be looked into first.
    fn handle_stop(&mut self, stop: ThreadStop) {
        let first = !std::mem::replace(&mut self.opened, true);
        let opens = first && (self.plan.quirks.sends_initial_pause || self.plan.stop_on_entry);
        let open = opens.then_some(self.plan.stop_on_entry);
        match stop_filter::decide_without_requests(&self.member, stop, open) {
            Ok(verdict) => self.apply_decision(verdict),
            Err(doubt) => {
                let keeps = self.plan.quirks.breakpoints_accumulate;
                let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
                self.calls.spawn(async move {
                    CallResult::Judged(
                        stop_filter::decide_with_requests(&client, &member, doubt, keeps, deadline).await,
                    )
                });
            }
        }
    }

    fn apply_decision(&mut self, verdict: StopDecision) {
        match verdict {
            StopDecision::Stop(stop) => drop(self.member.step(TargetInput::Stopped(stop))),
            StopDecision::AutoContinue(stop) => {
                let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
                self.spawn_call(async move {
                    member.wait_until_configured().await;
                    log_error(Resume::Continue.send(&client, stop.thread_id.unwrap_or_default(), deadline).await);
                });
            }
        }
    }

    /// On each `initialized`: js-debug's children send it twice.
    fn spawn_configuration(&mut self) {
        let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
        let first = !std::mem::replace(&mut self.configured, true);
        self.spawn_call(async move { send_all_breakpoints(&client, &member, deadline, first).await });
    }

    fn disconnect(&mut self) {
        if !self.member.shared.claim_disconnect(self.member.id) {
            return;
        }
        let (client, drain, print) = (self.client.clone(), Arc::clone(&self.drain), self.plan.quirks.drain_command);
        self.spawn_call(async move {
            if let Some(command) = print {
                drain.flush(&client, command).await;
            }
            send_disconnect(&client, true).await;
            client.close();
        });
    }

    fn spawn_call(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        self.calls.spawn(async move {
            call.await;
            CallResult::Other
        });
    }
}

/// Says goodbye, and waits no longer than [`GOODBYE`] for the answer; whether there was one.
pub(in crate::debug) async fn send_disconnect(client: &DapClient, terminate: bool) -> bool {
    let disconnect = DisconnectArguments { terminate_debuggee: Some(terminate), ..DisconnectArguments::default() };
    match client.request(&disconnect, DISCONNECT_TIMEOUT).await {
        Ok(_) => true,
        Err(error) => {
            warn!("{error}");
            false
        }
    }
}

async fn send_start(member: &TargetGuard, client: &DapClient, plan: &TargetPlan) -> Result<(), DapError> {
    let capabilities: DapCapabilities = client.request(&plan.initialize, plan.initialize_deadline).await?;
    // On its way before anybody can configure: many refuse breakpoints before it.
    match &plan.start {
        StartRequest::Launch(fields) => {
            let launch = client.send_request(&LaunchArguments(fields.clone())).await?;
            member.set_capabilities(capabilities);
            launch.response(plan.start_deadline).await.map(drop)
        }
        StartRequest::Attach(fields) => {
            let attach = client.send_request(&AttachArguments(fields.clone())).await?;
            member.set_capabilities(capabilities);
            attach.response(plan.start_deadline).await.map(drop)
        }
    }
}

/// One refusal must not keep the rest from being done.
pub(in crate::debug) fn log_error<T>(outcome: Result<T, DapError>) -> Option<T> {
    outcome.inspect_err(|error| warn!("{error}")).ok()
}

/// The name that an adapter gives a target, for readers.
pub(in crate::debug) fn target_name(start: &StartRequest) -> String {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = start;
    fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
