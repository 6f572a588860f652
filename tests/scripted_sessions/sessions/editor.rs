//! A scripted editor: attaches, sends random requests, some of them without waiting, and disconnects.
//!
//! Every request must be answered, and so must the `disconnect`. Does not depend on the adapter.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tether_dap::{DapClient, DapConnection, DapError, DapInbox, DapIncoming};
use tokio::time::Instant;

use super::choices::Choices;
use super::dap_requests::{KnownIds, plan_request};

/// Of virtual time: many requests may wait for one another, each for the deadlines of some requests to a silent peer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3 * 3600);
/// Of virtual time.
const DISCONNECT_DEADLINE: Duration = Duration::from_secs(300);
/// Of virtual time.
const STOP_PAUSE: Duration = Duration::from_secs(5);
/// What is sent without waiting.
const MAX_PENDING: usize = 24;

/// What a session has come to.
#[derive(Debug, Default)]
pub struct SessionOutcome {
    pub requests: usize,
    pub succeeded: usize,
    pub stops: usize,
    /// What was sent of each command.
    pub commands: BTreeMap<String, CommandOutcome>,
}

/// What one command has come to.
#[derive(Clone, Copy, Default)]
pub struct CommandOutcome {
    pub requests: usize,
    pub succeeded: usize,
    /// In virtual time.
    pub slowest: Duration,
}

impl fmt::Debug for CommandOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, at most {:?}", self.succeeded, self.requests, self.slowest)
    }
}

impl SessionOutcome {
    pub fn add(&mut self, other: SessionOutcome) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.stops += other.stops;
        for (command, outcome) in other.commands {
            let own = self.commands.entry(command).or_default();
            own.requests += outcome.requests;
            own.succeeded += outcome.succeeded;
            own.slowest = own.slowest.max(outcome.slowest);
        }
    }

    /// Adds one answer.
    pub fn record(&mut self, command: &str, took: Duration, succeeded: bool) {
        self.requests += 1;
        self.succeeded += usize::from(succeeded);
        let own = self.commands.entry(command.to_owned()).or_default();
        own.requests += 1;
        own.succeeded += usize::from(succeeded);
        own.slowest = own.slowest.max(took);
    }

    fn add_answer(&mut self, answer: Answer) {
        self.record(answer.command, answer.took, answer.succeeded);
    }
}

struct Editor {
    client: DapClient,
    known: Arc<Mutex<KnownIds>>,
}

/// One answer.
struct Answer {
    command: &'static str,
    took: Duration,
    succeeded: bool,
}

/// Sends requests until the input ends, or so many were sent. `attach` has the arguments of that request.
///
/// Panics: a request is not answered.
pub async fn drive_editor(
    connection: DapConnection,
    choices: &Choices,
    attach: &Value,
    limit: usize,
) -> SessionOutcome {
    let (client, inbox, driver) = DapClient::over(connection);
    let driver = tokio::spawn(driver);
    let (known, stops) = (Arc::<Mutex<KnownIds>>::default(), Arc::<Mutex<usize>>::default());
    let reading = tokio::spawn(read_events(inbox, Arc::clone(&known), Arc::clone(&stops)));
    let editor = Arc::new(Editor { client, known });
    let mut outcome = SessionOutcome::default();
    for (command, arguments) in start_requests(choices, attach) {
        outcome.add_answer(editor.request(command, Some(arguments)).await);
    }
    let mut pending = FuturesUnordered::new();
    let mut sent = 0;
    while sent < limit && !choices.is_at_end() {
        if !editor.known.lock().unwrap().is_stopped && choices.is_one_in(2) {
            // The program may stop meanwhile.
            tokio::time::sleep(STOP_PAUSE).await;
        }
        let planned = plan_request(choices, &editor.known.lock().unwrap());
        // A task of its own: its answer comes at that moment, whatever this one waits for.
        let editor = Arc::clone(&editor);
        pending.push(tokio::spawn(async move { editor.request(planned.command, planned.arguments).await }));
        sent += 1;
        let left = match choices.below(8) {
            0..=3 => 0,
            4 => pending.len().saturating_sub(1),
            5 => {
                // The answers come meanwhile.
                let pause = Duration::from_millis(choices.pick(&[1, 100, 3_000, 12_000]));
                let _ = tokio::time::timeout(pause, async {
                    while let Some(answer) = pending.next().await {
                        outcome.add_answer(answer.unwrap());
                    }
                })
                .await;
                MAX_PENDING
            }
            _ => MAX_PENDING,
        };
        while pending.len() > left {
            outcome.add_answer(pending.next().await.unwrap().unwrap());
        }
    }
    if choices.is_one_in(2) {
        while let Some(answer) = pending.next().await {
            outcome.add_answer(answer.unwrap());
        }
    }
    let leave = json!({"terminateDebuggee": choices.is_one_in(2)});
    let left = tokio::time::timeout(DISCONNECT_DEADLINE, editor.request("disconnect", Some(leave))).await;
    outcome.add_answer(left.expect("`disconnect` is not answered"));
    // Those that the session has ended before they were answered.
    while let Some(answer) = pending.next().await {
        outcome.add_answer(answer.unwrap());
    }
    drop(pending);
    drop(editor);
    let _ = driver.await.unwrap();
    reading.await.unwrap();
    outcome.stops = *stops.lock().unwrap();
    outcome
}

fn start_requests(choices: &Choices, attach: &Value) -> Vec<(&'static str, Value)> {
    let mut requests = vec![("initialize", json!({"adapterID": "scripted"})), ("attach", attach.clone())];
    if !choices.is_one_in(8) {
        let lines = json!([{"line": 3}, {"line": 7, "condition": "value > 1"}]);
        requests.push(("setBreakpoints", json!({"source": {"path": "/app/Main.java"}, "breakpoints": lines})));
        requests.push(("setExceptionBreakpoints", json!({"filters": ["uncaught"]})));
        requests.push(("configurationDone", json!({})));
    }
    requests
}

impl Editor {
    /// An error response, and the end of the connection, are answers.
    async fn request(&self, command: &'static str, arguments: Option<Value>) -> Answer {
        let raw = arguments.as_ref().map(|it| serde_json::value::to_raw_value(it).unwrap());
        let began = Instant::now();
        let answered = self.client.request_raw(command, raw, ANSWER_DEADLINE).await;
        let succeeded = match answered {
            Ok(body) => {
                let body = body.and_then(|body| serde_json::from_str(body.get()).ok()).unwrap_or(Value::Null);
                self.known.lock().unwrap().learn(command, &body);
                true
            }
            Err(DapError::TimedOut { .. }) => panic!("not answered: {command} {arguments:?}"),
            Err(_) => false,
        };
        Answer { command, took: began.elapsed(), succeeded }
    }
}

async fn read_events(mut inbox: DapInbox, known: Arc<Mutex<KnownIds>>, stops: Arc<Mutex<usize>>) {
    while let Some(incoming) = inbox.next().await {
        // A request of the adapter is refused by being dropped.
        let DapIncoming::Event(event) = incoming else { continue };
        *stops.lock().unwrap() += usize::from(event.name == "stopped");
        let body = event.body.and_then(|body| serde_json::from_str(body.get()).ok()).unwrap_or(Value::Null);
        known.lock().unwrap().learn(&event.name, &body);
    }
}
