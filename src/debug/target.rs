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

use super::configure::configure;
use super::drain::Drain;
use super::judge::{self, Verdict};
use super::session::Member;
use super::state::{Effect, Input};
use super::stop::Stop;
use super::terminal;
use crate::adapters::Quirks;
use crate::dap::types::{
    AttachArguments, BreakpointEvent, CapabilitiesEvent, ContinueArguments, ContinuedEvent, DapCapabilities,
    DisconnectArguments, ExitedEvent, InitializeArguments, InitializedEvent, LaunchArguments, NextArguments,
    StartRequest, StepInArguments, StepOutArguments, StoppedEvent, TerminatedEvent,
};
use crate::dap::{DapClient, DapConnection, DapError, DapInbox, DapIncoming, RawEvent};

/// How long an adapter may take to say goodbye; some never do.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// Why gdb says that the program has stopped when an evaluation has called a function of it: it is where it was.
const CALLED: &str = "function call";

/// How long the calls of a target may outlive its connection.
const REST: Duration = Duration::from_secs(2);

/// What every target of a session is started with.
#[derive(Clone, Debug)]
pub struct Plan {
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
    pub mark: String,
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
    pub(super) async fn send(self, client: &DapClient, thread_id: i64, deadline: Duration) -> Result<(), DapError> {
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
enum Done {
    Started(Result<(), DapError>),
    Judged(Verdict),
    Other,
}

struct Target {
    member: Arc<Member>,
    plan: Plan,
    client: DapClient,
    calls: JoinSet<Done>,
    configured: bool,
    /// The first stop has come.
    opened: bool,
    drain: Arc<Drain>,
    /// The stops that it was in when it went on unasked: to call a function of the program, perhaps.
    before_call: Vec<Stop>,
}

/// Lives as long as the connection. Whatever happens, the target has ended when this is done.
pub(super) async fn drive(member: Member, plan: Plan, connection: DapConnection) {
    let (client, inbox, driver) = DapClient::over(connection);
    member.is_reached_by(&client);
    let member = Arc::new(member);
    let calls = JoinSet::new();
    let drain = Arc::default();
    let before_call = Vec::new();
    let mut target = Target { member, plan, client, calls, configured: false, opened: false, drain, before_call };
    target.calls.spawn(async move {
        driver.await;
        Done::Other
    });
    let (client, plan, member) = (target.client.clone(), target.plan.clone(), Arc::clone(&target.member));
    target.calls.spawn(async move { Done::Started(start(&member, &client, &plan).await) });
    target.listen(inbox).await;
    let reason = target.client.wait_closed().await;
    let end = if target.plan.quirks.close_means_terminated && target.configured {
        Input::Terminated
    } else {
        Input::Closed(reason)
    };
    target.member.step(end);
    // The rest of the conversation: what was on its way is written, what comes is read. What has no end of its own (a
    // program that we run for the adapter) is given up.
    let rest = async { while target.calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(REST, rest).await;
}

impl Target {
    async fn listen(&mut self, mut inbox: DapInbox) {
        loop {
            tokio::select! {
                biased; // what the adapter has told comes before what its answers mean
                incoming = inbox.next() => match incoming {
                    Some(DapIncoming::Event(event)) => self.told(&event),
                    Some(DapIncoming::Request(asked)) if asked.command == "startDebugging" => self.member.birth(asked),
                    Some(DapIncoming::Request(asked)) if asked.command == "runInTerminal" => {
                        let (record, mark) = (self.member.record(), self.plan.mark.clone());
                        self.beside(terminal::run(asked, record, mark));
                    }
                    // Refused by dropping it.
                    Some(DapIncoming::Request(asked)) => warn!("refused to {}", asked.command),
                    Some(DapIncoming::Lost(lost)) => self.member.record().lost(lost),
                    None => return,
                },
                Some(done) = self.calls.join_next() => match done {
                    Ok(Done::Started(Ok(()))) => drop(self.member.step(Input::Started)),
                    Ok(Done::Started(Err(error))) => {
                        self.member.step(Input::Closed(error.to_string()));
                        self.leave();
                    }
                    Ok(Done::Judged(verdict)) => self.judged(verdict),
                    Ok(Done::Other) | Err(_) => {}
                },
            }
        }
    }

    fn told(&mut self, event: &RawEvent) {
        if let Some(own) = self.drain.takes(event) {
            self.member.record().say("stdout", &own);
            return;
        }
        self.member.record().note(event);
        let input = if let Some(stopped) = event.read_body::<StoppedEvent>() {
            let before = std::mem::take(&mut self.before_call);
            if stopped.reason == CALLED && !(before.is_empty() && self.member.stops().is_empty()) {
                for stop in before {
                    self.member.step(Input::Stopped(stop));
                }
                return;
            }
            return self.stopped(Stop::of(stopped));
        } else if let Some(continued) = event.read_body::<ContinuedEvent>() {
            // gdb may say so twice.
            let left = self.member.stops();
            if !left.is_empty() {
                self.before_call = left;
            }
            let only = continued.all_threads_continued == Some(false);
            Input::Continued(only.then_some(continued.thread_id))
        } else if let Some(exited) = event.read_body::<ExitedEvent>() {
            Input::Exited(exited.exit_code)
        } else if event.read_body::<TerminatedEvent>().is_some() {
            Input::Terminated
        } else {
            if event.read_body::<InitializedEvent>().is_some() {
                self.configure();
            } else if let Some(changed) = event.read_body::<BreakpointEvent>() {
                self.member.breakpoint_changed(changed.breakpoint);
            } else if let Some(changed) = event.read_body::<CapabilitiesEvent>() {
                self.member.capabilities_changed(changed.capabilities);
            }
            return;
        };
        if self.member.step(input) == Effect::Leave {
            self.leave();
        }
    }

    /// A stop is published at once, unless it must be looked into first.
    fn stopped(&mut self, stop: Stop) {
        let first = !std::mem::replace(&mut self.opened, true);
        let opens = first && (self.plan.quirks.sends_initial_pause || self.plan.stop_on_entry);
        let open = opens.then_some(self.plan.stop_on_entry);
        match judge::at_once(&self.member, stop, open) {
            Ok(verdict) => self.judged(verdict),
            Err(doubt) => {
                let keeps = self.plan.quirks.breakpoints_accumulate;
                let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
                self.calls.spawn(async move {
                    Done::Judged(judge::look_into(&client, &member, doubt, keeps, deadline).await)
                });
            }
        }
    }

    fn judged(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Stop(stop) => drop(self.member.step(Input::Stopped(stop))),
            Verdict::GoOn(stop) => {
                let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
                self.beside(async move {
                    member.is_configured().await;
                    heed(Resume::Continue.send(&client, stop.thread_id.unwrap_or_default(), deadline).await);
                });
            }
        }
    }

    /// On each `initialized`: js-debug's children send it twice.
    fn configure(&mut self) {
        let (client, member, deadline) = (self.client.clone(), Arc::clone(&self.member), self.plan.deadline);
        let first = !std::mem::replace(&mut self.configured, true);
        self.beside(async move { configure(&client, &member, deadline, first).await });
    }

    fn leave(&mut self) {
        if !self.member.shared.leaves_first(self.member.id) {
            return;
        }
        let (client, drain, print) = (self.client.clone(), Arc::clone(&self.drain), self.plan.quirks.drain_command);
        self.beside(async move {
            if let Some(command) = print {
                drain.wait(&client, command).await;
            }
            say_goodbye(&client, true).await;
            client.close();
        });
    }

    fn beside(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        self.calls.spawn(async move {
            call.await;
            Done::Other
        });
    }
}

/// Says goodbye, and waits no longer than [`GOODBYE`] for the answer; whether there was one.
pub(super) async fn say_goodbye(client: &DapClient, terminate: bool) -> bool {
    let disconnect = DisconnectArguments { terminate_debuggee: Some(terminate), ..DisconnectArguments::default() };
    match client.request(&disconnect, GOODBYE).await {
        Ok(_) => true,
        Err(error) => {
            warn!("{error}");
            false
        }
    }
}

async fn start(member: &Member, client: &DapClient, plan: &Plan) -> Result<(), DapError> {
    let capabilities: DapCapabilities = client.request(&plan.initialize, plan.initialize_deadline).await?;
    // On its way before anybody can configure: many refuse breakpoints before it.
    match &plan.start {
        StartRequest::Launch(fields) => {
            let launch = client.send_request(&LaunchArguments(fields.clone())).await?;
            member.is_greeted(capabilities);
            launch.response(plan.start_deadline).await.map(drop)
        }
        StartRequest::Attach(fields) => {
            let attach = client.send_request(&AttachArguments(fields.clone())).await?;
            member.is_greeted(capabilities);
            attach.response(plan.start_deadline).await.map(drop)
        }
    }
}

/// One refusal must not keep the rest from being done.
pub(super) fn heed<T>(outcome: Result<T, DapError>) -> Option<T> {
    outcome.inspect_err(|error| warn!("{error}")).ok()
}

/// The name that an adapter gives a target, for readers.
pub(super) fn name_of(start: &StartRequest) -> String {
    let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = start;
    fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
