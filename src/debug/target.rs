//! One connection to an adapter: its start in the order that suits them all, its events, its end.
//!
//! ```text
//! initialize ─▶ launch / attach ──────────────── its answer, when it likes ─▶ Started
//!                   └▶ initialized ─▶ breakpoints ─▶ configurationDone (once; breakpoints each time)
//! ```
//! Calls run beside the reading of events and die with the target. Must not know its siblings.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tracing::warn;

use super::session::Member;
use super::state::{Effect, Input};
use super::stop::Stop;
use crate::dap::types::{
    Attach, Capabilities, ConfigurationDone, Continue, Continued, Disconnect, Exited, Initialize, Initialized, Launch,
    Next, SetBreakpoints, SetExceptionBreakpoints, Start, StepIn, StepOut, Stopped, Terminated,
};
use crate::dap::{Client, Connection, Error, Event, Inbox, Incoming};

/// How long an adapter may take to say goodbye; some never do.
const GOODBYE: Duration = Duration::from_secs(2);

/// What every target of a session is started with.
#[derive(Clone, Debug)]
pub struct Plan {
    pub initialize: Initialize,
    pub start: Start,
    /// One for each file.
    pub breakpoints: Vec<SetBreakpoints>,
    pub exceptions: SetExceptionBreakpoints,
    /// For each single request.
    pub deadline: Duration,
    /// For the answer of `launch` or `attach`, which may compile first.
    pub start_deadline: Duration,
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
    pub(super) async fn send(self, client: &Client, thread_id: i64, deadline: Duration) -> Result<(), Error> {
        match self {
            Resume::Continue => {
                client.request(&Continue { thread_id, ..Continue::default() }, deadline).await.map(drop)
            }
            Resume::Over => client.request(&Next { thread_id, ..Next::default() }, deadline).await.map(drop),
            Resume::Into => client.request(&StepIn { thread_id, ..StepIn::default() }, deadline).await.map(drop),
            Resume::Out => client.request(&StepOut { thread_id, ..StepOut::default() }, deadline).await.map(drop),
        }
    }
}

/// What a call beside the events came to.
enum Done {
    Started(Result<(), Error>),
    Other,
}

struct Target {
    member: Member,
    plan: Plan,
    client: Client,
    calls: JoinSet<Done>,
    configured: bool,
}

/// Lives as long as the connection. Whatever happens, the target has ended when this is done.
pub(super) async fn drive(member: Member, plan: Plan, connection: Connection) {
    let (client, inbox, driver) = Client::over(connection);
    member.is_reached_by(&client);
    let mut target = Target { member, plan, client, calls: JoinSet::new(), configured: false };
    target.calls.spawn(async move {
        driver.await;
        Done::Other
    });
    let (client, plan) = (target.client.clone(), target.plan.clone());
    target.calls.spawn(async move { Done::Started(start(&client, &plan).await) });
    target.listen(inbox).await;
    let reason = target.client.closed().await;
    target.member.step(Input::Closed(reason));
    // The rest of the conversation: what was on its way is written, what comes is read, for a second at most.
    while target.calls.join_next().await.is_some() {}
}

impl Target {
    async fn listen(&mut self, mut inbox: Inbox) {
        loop {
            tokio::select! {
                biased; // what the adapter has told comes before what its answers mean
                incoming = inbox.next() => match incoming {
                    Some(Incoming::Event(event)) => self.told(&event),
                    Some(Incoming::Request(asked)) if asked.command == "startDebugging" => self.member.birth(asked),
                    // Refused by dropping it.
                    Some(Incoming::Request(asked)) => warn!("refused to {}", asked.command),
                    Some(Incoming::Lost(lost)) => warn!("{lost}"),
                    None => return,
                },
                Some(done) = self.calls.join_next() => match done {
                    Ok(Done::Started(Ok(()))) => drop(self.member.step(Input::Started)),
                    Ok(Done::Started(Err(error))) => {
                        self.member.step(Input::Closed(error.to_string()));
                        self.leave();
                    }
                    Ok(Done::Other) | Err(_) => {}
                },
            }
        }
    }

    fn told(&mut self, event: &Event) {
        let input = if let Some(stopped) = event.read::<Stopped>() {
            Input::Stopped(Stop::of(stopped))
        } else if let Some(continued) = event.read::<Continued>() {
            let only = continued.all_threads_continued == Some(false);
            Input::Continued(only.then_some(continued.thread_id))
        } else if let Some(exited) = event.read::<Exited>() {
            Input::Exited(exited.exit_code)
        } else if event.read::<Terminated>().is_some() {
            Input::Terminated
        } else {
            if event.read::<Initialized>().is_some() {
                self.configure();
            }
            return;
        };
        if self.member.step(input) == Effect::Leave {
            self.leave();
        }
    }

    /// On each `initialized`: js-debug's children send it twice.
    fn configure(&mut self) {
        let (client, plan) = (self.client.clone(), self.plan.clone());
        let first = !std::mem::replace(&mut self.configured, true);
        self.calls.spawn(async move {
            configure(&client, &plan, first).await;
            Done::Other
        });
    }

    fn leave(&mut self) {
        let client = self.client.clone();
        self.calls.spawn(async move {
            say_goodbye(&client, true).await;
            client.close();
            Done::Other
        });
    }
}

/// Says goodbye, and waits no longer than [`GOODBYE`] for the answer; whether there was one.
pub(super) async fn say_goodbye(client: &Client, terminate: bool) -> bool {
    let disconnect = Disconnect { terminate_debuggee: Some(terminate), ..Disconnect::default() };
    match client.request(&disconnect, GOODBYE).await {
        Ok(_) => true,
        Err(error) => {
            warn!("{error}");
            false
        }
    }
}

async fn start(client: &Client, plan: &Plan) -> Result<(), Error> {
    let _: Capabilities = client.request(&plan.initialize, plan.deadline).await?;
    match &plan.start {
        Start::Launch(fields) => {
            let launch = client.begin(&Launch(fields.clone())).await?;
            launch.answer(plan.start_deadline).await.map(drop)
        }
        Start::Attach(fields) => {
            let attach = client.begin(&Attach(fields.clone())).await?;
            attach.answer(plan.start_deadline).await.map(drop)
        }
    }
}

async fn configure(client: &Client, plan: &Plan, first: bool) {
    for file in &plan.breakpoints {
        heed(client.request(file, plan.deadline).await.map(drop));
    }
    heed(client.request(&plan.exceptions, plan.deadline).await.map(drop));
    if first {
        heed(client.request(&ConfigurationDone {}, plan.deadline).await.map(drop));
    }
}

/// One refusal must not keep the rest from being configured.
fn heed(outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        warn!("{error}");
    }
}

/// The name that an adapter gives a target, for readers.
pub(super) fn name_of(start: &Start) -> String {
    let (Start::Launch(fields) | Start::Attach(fields)) = start;
    fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
