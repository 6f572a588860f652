//! Whole sessions against a virtual machine that counts suspensions, and may refuse, delay or withhold replies. The clock is
//! paused: it goes on when everything waits, so a sleep lets everything happen that can happen.

mod counting_vm;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tether_backend::{ServeContext, StartedBackend, serve_started};
use tether_base::sync::lock;
use tether_dap::types::{OutputEvent, StoppedEvent};
use tether_dap::{DapClient, DapConnection, DapIncoming, DapServer, RawJson};
use tether_jdwp::JdwpClient;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::counting_vm::{CountingVm, ReplyFault};
use crate::dap_requests::capabilities;
use crate::java_backend::connect_session;
use crate::sources::SourceFolders;

const THREADS: [u64; 3] = [11, 12, 13];
/// Methods of the machine.
const MAIN: u64 = 1;
const CALL: u64 = 2;
/// Longer than any limit of a session.
const LONG: Duration = Duration::from_secs(100);

/// What the client knows: which threads are stopped, and whether all are.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownStops {
    threads: BTreeSet<i64>,
    all: bool,
}

/// A client in a session with a counting machine.
struct ModelSession {
    client: DapClient,
    vm: CountingVm,
    known: Arc<std::sync::Mutex<KnownStops>>,
    printed: Arc<std::sync::Mutex<String>>,
    stops: Arc<std::sync::Mutex<Vec<StoppedEvent>>>,
    running: JoinHandle<()>,
}

fn raw(arguments: &Value) -> Option<RawJson> {
    Some(serde_json::value::to_raw_value(arguments).unwrap())
}

/// Lets everything happen that can happen within that time of the paused clock.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// Lets everything happen that can happen at once.
async fn settle() {
    pass(Duration::from_millis(1)).await;
}

impl ModelSession {
    /// A session with breakpoints at `App.main`, and at `call` if the method `flag` says so.
    async fn start() -> ModelSession {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let vm = CountingVm::start(theirs, &THREADS);
        let opened = JdwpClient::open(ours).await.unwrap();
        let (ours, theirs) = DapConnection::pair();
        let (client, mut events, client_driver) = DapClient::over(ours);
        let (dap, mut inbox, driver) = DapServer::over(theirs);
        tokio::spawn(client_driver);
        tokio::spawn(driver);
        let sources = SourceFolders::new(Vec::new(), Path::new("/"), &[]);
        let backend = connect_session(&dap, opened, sources, "test").await.unwrap();
        crate::frames::list_threads(&backend.session).await.unwrap();
        let running = tokio::spawn(async move {
            let context = ServeContext { launch_id: "test".to_owned(), exit: watch::Sender::new(None) };
            let started = StartedBackend { backend, program: None, unknown: Vec::new() };
            serve_started(started, Vec::new(), dap, &mut inbox, &context).await;
        });
        let (known, printed, stops) = <(Arc<std::sync::Mutex<KnownStops>>, Arc<_>, Arc<_>)>::default();
        let session = ModelSession { client, vm, known, printed, stops, running };
        let (known, printed, stops) =
            (Arc::clone(&session.known), Arc::clone(&session.printed), Arc::clone(&session.stops));
        tokio::spawn(async move {
            while let Some(incoming) = events.next().await {
                let DapIncoming::Event(event) = incoming else { continue };
                match event.name.as_str() {
                    "stopped" => {
                        let stopped: StoppedEvent = event.read_body().unwrap();
                        let mut known = lock(&known);
                        known.all |= stopped.all_threads_stopped;
                        known.threads.extend(stopped.thread_id.filter(|_| !stopped.all_threads_stopped));
                        lock(&stops).push(stopped);
                    }
                    "output" => lock(&printed).push_str(&event.read_body::<OutputEvent>().unwrap().output),
                    _ => {}
                }
            }
        });
        let breakpoints = json!({"breakpoints": [{"name": "App.main"}, {"name": "call", "condition": "flag()"}]});
        session.request("setFunctionBreakpoints", breakpoints).await.unwrap();
        session.request("configurationDone", json!({})).await.unwrap();
        session
    }

    async fn request(&self, command: &str, arguments: Value) -> Result<Value, String> {
        let body = self.client.request_raw(command, raw(&arguments), LONG).await.map_err(|error| error.to_string())?;
        Ok(body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap()))
    }

    /// Sends a request, and waits for nothing but that everything else has been done that can be done.
    async fn send(&self, command: &'static str, arguments: Value) -> JoinHandle<Result<(), String>> {
        let client = self.client.clone();
        let sent = tokio::spawn(async move {
            let sent = client.request_raw(command, raw(&arguments), LONG).await;
            sent.map(drop).map_err(|error| error.to_string())
        });
        settle().await;
        sent
    }

    /// The id of a thread of the machine.
    fn id(thread: u64) -> i64 {
        (thread - THREADS[0]) as i64 + 1
    }

    /// Sends a request that resumes. With its response, the client knows less threads to be stopped.
    async fn resume(&self, command: &'static str, thread: u64) {
        let (client, known, id) = (self.client.clone(), Arc::clone(&self.known), Self::id(thread));
        tokio::spawn(async move {
            let Ok(body) = client.request_raw(command, raw(&json!({"threadId": id})), LONG).await else { return };
            let mut known = lock(&known);
            known.all = false;
            match body.is_some_and(|body| body.get().contains("\"allThreadsContinued\":true")) {
                true => known.threads.clear(),
                false => drop(known.threads.remove(&id)),
            }
        });
        settle().await;
    }

    async fn evaluate(&self, thread: u64, expression: &'static str) {
        let Ok(stack) = self.request("stackTrace", json!({"threadId": Self::id(thread)})).await else { return };
        let frame = stack["stackFrames"][0]["id"].clone();
        self.send("evaluate", json!({"expression": expression, "frameId": frame})).await;
    }

    async fn act(&self, action: u8, thread: u64) {
        match action {
            0 | 1 => self.vm.reach_breakpoint(thread, MAIN),
            2 => self.vm.reach_breakpoint(thread, CALL),
            3 => self.vm.load_class(thread),
            4 => drop(self.request("pause", json!({"threadId": Self::id(thread)})).await),
            5 | 6 => self.evaluate(thread, "flag()").await,
            7 => self.evaluate(thread, "flag() && flag()").await,
            8 | 9 => self.resume("continue", thread).await,
            10 => self.resume("next", thread).await,
            11 => self.vm.hold_calls(true),
            12 => self.vm.hold_calls(false),
            13 => pass(Duration::from_secs(9)).await,
            _ => self.vm.send_unknown_event(thread),
        }
        settle().await;
    }

    /// When everything has ended that was begun: what is suspended is what the client knows; and once it has resumed that,
    /// everything runs.
    async fn check_at_rest(&self, what: &str) {
        self.vm.hold_calls(false);
        pass(LONG).await;
        let known = lock(&self.known).clone();
        for (thread, count) in self.vm.counts() {
            let is_known = known.all || known.threads.contains(&Self::id(thread));
            assert_eq!(count > 0, is_known, "{what}: thread {thread} is suspended {count} times, known: {known:?}");
        }
        for _ in 0..4 * THREADS.len() {
            let known = lock(&self.known).clone();
            let Some(thread) = known.threads.first().copied().or(known.all.then_some(1)) else { break };
            self.resume("continue", THREADS[0] + thread as u64 - 1).await;
            pass(LONG).await;
        }
        let counts = self.vm.counts();
        assert!(counts.values().all(|count| *count == 0), "{what}: {counts:?} after all was resumed");
    }
}

fn run_paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_is_done_nothing_stays_suspended_that_is_not_reported(
        actions in prop::collection::vec((0..15u8, 0..3usize), 1..30),
    ) {
        run_paused(async {
            let session = ModelSession::start().await;
            for (action, thread) in actions {
                session.act(action, THREADS[thread]).await;
            }
            session.check_at_rest("in the end").await;
        });
    }
}

/// Breakpoints with and without a condition, a loaded class, a pause, evaluations, steps, resumes during calls.
const SCENARIO: [(u8, usize); 22] = [
    (0, 0),
    (5, 0),
    (2, 1),
    (3, 2),
    (4, 0),
    (5, 0),
    (11, 0),
    (5, 1),
    (8, 1),
    (12, 0),
    (0, 0),
    (11, 0),
    (5, 0),
    (13, 0),
    (8, 0),
    (12, 0),
    (0, 0),
    (10, 0),
    (14, 1),
    (2, 2),
    (4, 2),
    (8, 2),
];

#[test]
fn whichever_reply_is_refused_or_late_nothing_stays_suspended_that_is_not_reported() {
    let run = |fault: Option<(usize, ReplyFault)>| {
        let mut replies = 0;
        run_paused(async {
            let session = ModelSession::start().await;
            if let Some((number, fault)) = fault {
                session.vm.fail_reply(number, fault);
            }
            let before = session.vm.replies();
            for (action, thread) in SCENARIO {
                session.act(action, THREADS[thread]).await;
            }
            replies = session.vm.replies() - before;
            session.check_at_rest(&format!("{fault:?}")).await;
        });
        replies
    };
    let replies = run(None);
    assert!(replies > 50, "{replies}");
    for number in 0..replies {
        run(Some((number, ReplyFault::Refused)));
        run(Some((number, ReplyFault::Late)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resume_during_a_call_is_done_when_the_call_has_ended_also_after_its_time_limit() {
    for waits in [Duration::ZERO, Duration::from_secs(9)] {
        let session = ModelSession::start().await;
        session.act(0, THREADS[0]).await;
        session.vm.hold_calls(true);
        session.evaluate(THREADS[0], "flag()").await;
        pass(waits).await;
        session.resume("continue", THREADS[0]).await;
        session.vm.hold_calls(false);
        settle().await;
        assert_eq!(session.vm.counts()[&THREADS[0]], 0);
        // It stops again, and evaluates.
        session.act(0, THREADS[0]).await;
        assert_eq!(lock(&session.stops).len(), 2);
        assert_eq!(session.request("evaluate", json!({"expression": "flag()"})).await.unwrap()["result"], "true");
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_is_called_in_a_stopped_thread_while_all_are_paused() {
    let session = ModelSession::start().await;
    session.act(0, THREADS[0]).await;
    session.act(4, THREADS[1]).await;
    assert_eq!(session.vm.counts()[&THREADS[0]], 2);
    assert_eq!(session.request("evaluate", json!({"expression": "flag()"})).await.unwrap()["result"], "true");
    assert_eq!(session.vm.counts()[&THREADS[0]], 2, "as before");
    let stack = session.request("stackTrace", json!({"threadId": 2})).await.unwrap();
    let frame = stack["stackFrames"][0]["id"].clone();
    let error = session.request("evaluate", json!({"expression": "flag()", "frameId": frame})).await.unwrap_err();
    assert!(error.contains("a method can be called only in a thread that has stopped at a breakpoint"), "{error}");
    session.check_at_rest("in the end").await;
}

#[tokio::test(start_paused = true)]
async fn evaluations_in_one_thread_run_one_after_the_other_and_breakpoints_inside_stop_nothing() {
    let session = ModelSession::start().await;
    session.act(0, THREADS[0]).await;
    session.vm.hold_calls(true);
    let evaluate = || session.send("evaluate", json!({"expression": "flag()"}));
    let (first, second, third) = (evaluate().await, evaluate().await, evaluate().await);
    session.vm.reach_breakpoint(THREADS[0], MAIN);
    settle().await;
    assert_eq!(lock(&session.stops).len(), 1, "the breakpoint inside the call stops nothing");
    let stack = session.send("stackTrace", json!({"threadId": 1})).await;
    session.vm.hold_calls(false);
    for request in [first, second, third, stack] {
        request.await.unwrap().unwrap();
    }
    // A call that does not return is named.
    session.vm.hold_calls(true);
    let (late, refused) = (evaluate().await, evaluate().await);
    assert!(late.await.unwrap().unwrap_err().contains("the call has not returned within 8s"));
    assert!(refused.await.unwrap().unwrap_err().contains("still runs the call of an earlier evaluation"));
    session.check_at_rest("in the end").await;
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_that_call_what_reports_an_event_first() {
    for command in ["evaluate", "completions", "setVariable", "setExpression", "dataBreakpointInfo"] {
        let session = ModelSession::start().await;
        session.act(0, THREADS[0]).await;
        session.vm.load_classes_in_calls();
        let began = Instant::now();
        // Its own answer may be an error.
        let _ = session.request(command, arguments_of(command)).await;
        assert!(began.elapsed() < Duration::from_secs(1), "{command}: {:?}", began.elapsed());
        session.check_at_rest(command).await;
    }
}

/// Arguments with which each request reaches the virtual machine, as far as it does so.
fn arguments_of(command: &str) -> Value {
    match command {
        "evaluate" => json!({"expression": "flag()"}),
        "setVariable" => json!({"variablesReference": 1, "name": "total", "value": "flag() ? 1 : 2"}),
        "setExpression" => json!({"expression": "total", "value": "flag() ? 1 : 2"}),
        "completions" => json!({"text": "Foo.", "column": 5}),
        "dataBreakpointInfo" => json!({"name": "Foo.bar"}),
        "setBreakpoints" => json!({"source": {"path": "/App.java"}, "breakpoints": [{"line": 10}]}),
        "setFunctionBreakpoints" => json!({"breakpoints": [{"name": "App.flag"}]}),
        "setDataBreakpoints" => json!({"breakpoints": [{"dataId": "App.total"}]}),
        "setExceptionBreakpoints" => json!({"filters": ["caught"]}),
        "captureEvents" => json!({"kinds": ["classPrepare"]}),
        "variables" => json!({"variablesReference": 1}),
        "threads" | "configurationDone" => json!({}),
        "scopes" | "stepInTargets" | "restartFrame" => json!({"frameId": 1}),
        _ => json!({"threadId": 1}),
    }
}

/// The requests that a capability announces.
fn requests_of(capability: &str) -> &'static [&'static str] {
    match capability {
        "supportsConfigurationDoneRequest" => &["configurationDone"],
        "supportsFunctionBreakpoints" | "supportsClassLineBreakpoints" => &["setFunctionBreakpoints"],
        "supportsCaptureEvents" => &["captureEvents"],
        "supportsRedefineClasses" => &["redefineClasses"],
        "supportsConditionalBreakpoints" | "supportsHitConditionalBreakpoints" | "supportsLogPoints" => {
            &["setBreakpoints"]
        }
        "supportsEvaluateForHovers" => &["evaluate"],
        "supportsSetVariable" => &["setVariable"],
        "supportsSetExpression" => &["setExpression"],
        "supportsExceptionInfoRequest" => &["exceptionInfo"],
        "supportsDataBreakpoints" => &["dataBreakpointInfo", "setDataBreakpoints"],
        "supportsRestartFrame" => &["restartFrame"],
        "supportTerminateDebuggee" => &[],
        "supportsStepInTargetsRequest" => &["stepInTargets", "stepIn"],
        "supportsCompletionsRequest" => &["completions"],
        other => panic!("which requests does {other} announce?"),
    }
}

#[tokio::test(start_paused = true)]
async fn threads_pause_and_disconnect_are_answered_in_a_second_whatever_waits_for_a_silent_virtual_machine() {
    let always = ["threads", "stackTrace", "scopes", "variables", "continue", "next", "stepOut", "pause"];
    let announced = capabilities();
    let announced = announced.others.keys().flat_map(|capability| requests_of(capability));
    let exceptions = ["setExceptionBreakpoints"];
    for command in always.iter().chain(&exceptions).chain(announced) {
        let session = ModelSession::start().await;
        session.act(0, THREADS[0]).await;
        let stack = session.request("stackTrace", json!({"threadId": 1})).await.unwrap();
        session.request("scopes", json!({"frameId": stack["stackFrames"][0]["id"]})).await.unwrap();
        session.vm.fall_silent();
        session.send(command, arguments_of(command)).await;
        let answers_in_time = async |asked: &'static str, arguments: Value| {
            let began = Instant::now();
            let answer = session.request(asked, arguments).await;
            assert!(began.elapsed() <= Duration::from_secs(1), "{asked} after {command}: {:?}", began.elapsed());
            answer
        };
        let listed = answers_in_time("threads", json!({})).await.unwrap();
        assert_eq!(listed["threads"].as_array().unwrap().len(), THREADS.len(), "those that are known");
        let _ = answers_in_time("pause", json!({"threadId": 1})).await;
        answers_in_time("disconnect", json!({})).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_answered_with_the_reason_when_only_the_connection_to_the_virtual_machine_has_ended() {
    let session = ModelSession::start().await;
    session.act(0, THREADS[0]).await;
    session.vm.hold_calls(true);
    let waiting = session.send("evaluate", json!({"expression": "flag()"})).await;
    session.vm.send_garbage();
    settle().await;
    assert!(waiting.is_finished() && waiting.await.unwrap().is_err());
    assert!(lock(&session.printed).contains("something that is not JDWP"), "{}", lock(&session.printed));
    for command in ["threads", "pause", "continue", "evaluate"] {
        let error = session.request(command, arguments_of(command)).await.unwrap_err();
        assert!(
            error.contains("the connection to the virtual machine has ended") && error.contains("not JDWP"),
            "{error}"
        );
    }
    session.request("disconnect", json!({})).await.unwrap();
    session.running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_lets_its_thread_go() {
    let session = ModelSession::start().await;
    session.vm.send_unknown_event(THREADS[1]);
    settle().await;
    assert_eq!(session.vm.counts()[&THREADS[1]], 0);
    assert!(lock(&session.printed).contains("an event was left out"), "{}", lock(&session.printed));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_refused_is_an_error_and_the_next_one_pauses() {
    let session = ModelSession::start().await;
    session.vm.fail_reply(0, ReplyFault::Refused);
    assert!(session.request("pause", json!({"threadId": 1})).await.is_err());
    session.request("pause", json!({"threadId": 1})).await.unwrap();
    settle().await;
    assert!(lock(&session.known).all && session.vm.counts().values().all(|count| *count == 1));
    session.check_at_rest("in the end").await;
}

#[tokio::test(start_paused = true)]
async fn the_response_to_a_step_comes_before_the_stop_at_its_end() {
    let session = ModelSession::start().await;
    session.act(0, THREADS[0]).await;
    let (client, stops) = (session.client.clone(), Arc::clone(&session.stops));
    let stepping = tokio::spawn(async move {
        client.request_raw("next", raw(&json!({"threadId": 1})), LONG).await.unwrap();
        lock(&stops).len()
    });
    assert_eq!(stepping.await.unwrap(), 1, "stops before the response");
    settle().await;
    assert_eq!(lock(&session.stops).len(), 2);
}
