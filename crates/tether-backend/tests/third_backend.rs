//! A third backend, beside those for Node and Java, written without touching the server: a program is a list of lines, each of
//! which is printed. It shows all that a backend has to have.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tether_backend::request_failure::RequestFailure;
use tether_backend::requests::answer_request;
use tether_backend::{
    Answer, BackendEnd, DapBackend, DapRequests, DapStep, ServeContext, StartedBackend, serve_backend,
};
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tether_dap::types::{
    DapBreakpoint, DapCapabilities, DapScope, DapSource, DapStackFrame, DapThread, DapVariable, EvaluateArguments,
    EvaluateResponse, Fields, OutputEvent, SetBreakpointsArguments, SetExceptionBreakpointsArguments,
    StackTraceArguments, StackTraceResponse, StoppedEvent, ThreadsResponse, VariablesArguments,
};
use tether_dap::{DapClient, DapConnection, DapInbox, DapIncoming, DapServer, IncomingRequest};
use tokio::sync::{mpsc, watch};

const THREAD: i64 = 1;
const LONG: Duration = Duration::from_secs(30);

/// The program: where it is, and where it stops.
struct LineProgram {
    dap: DapServer,
    lines: Vec<String>,
    breakpoints: Mutex<BTreeSet<i64>>,
    /// The line that runs next, from 1.
    line: Mutex<i64>,
    /// Each says how far to run.
    moves: mpsc::UnboundedSender<LineMove>,
}

#[derive(Clone, Copy, PartialEq)]
enum LineMove {
    Run,
    OneLine,
}

impl LineProgram {
    async fn run(self: Arc<Self>, mut moves: mpsc::UnboundedReceiver<LineMove>) {
        while let Some(to) = moves.recv().await {
            let reason = loop {
                let line = *lock(&self.line);
                let Some(text) = usize::try_from(line - 1).ok().and_then(|at| self.lines.get(at)) else { return };
                let output = OutputEvent::new("stdout", format!("{text}\n"));
                let _ = self.dap.send_event(&output).await;
                *lock(&self.line) = line + 1;
                if to == LineMove::OneLine {
                    break "step";
                }
                if lock(&self.breakpoints).contains(&(line + 1)) {
                    break "breakpoint";
                }
            };
            let thread_id = Some(THREAD);
            let stopped = StoppedEvent { reason: reason.to_owned(), thread_id, ..StoppedEvent::default() };
            let _ = self.dap.send_event(&stopped).await;
        }
    }

    fn go(&self, to: LineMove) -> Answer<()> {
        self.moves.send(to).map_err(|_| RequestFailure("the program has ended".to_owned()))
    }
}

impl DapRequests for LineProgram {
    async fn threads(self: &Arc<Self>) -> Answer<ThreadsResponse> {
        Ok(ThreadsResponse {
            threads: vec![DapThread { id: THREAD, name: "lines".to_owned(), ..DapThread::default() }],
            unlisted: None,
        })
    }

    async fn stack_trace(self: &Arc<Self>, _: StackTraceArguments) -> Answer<StackTraceResponse> {
        let frame =
            DapStackFrame { id: 1, name: "main".to_owned(), line: *lock(&self.line), ..DapStackFrame::default() };
        Ok(StackTraceResponse { stack_frames: vec![frame], ..StackTraceResponse::default() })
    }

    async fn scopes(self: &Arc<Self>, _: i64) -> Answer<Vec<DapScope>> {
        Ok(Vec::new())
    }

    async fn variables(self: &Arc<Self>, _: VariablesArguments) -> Answer<Vec<DapVariable>> {
        Ok(Vec::new())
    }

    async fn evaluate(self: &Arc<Self>, arguments: EvaluateArguments) -> Answer<EvaluateResponse> {
        match arguments.expression.as_str() {
            "line" => Ok(EvaluateResponse { result: lock(&self.line).to_string(), ..EvaluateResponse::default() }),
            other => Err(format!("`{other}` has no value").into()),
        }
    }

    async fn start_program(self: &Arc<Self>) -> Answer<()> {
        self.go(LineMove::Run)
    }

    async fn continue_thread(self: &Arc<Self>, _: i64) -> Answer<bool> {
        self.go(LineMove::Run).map(|()| true)
    }

    async fn step(self: &Arc<Self>, _: i64, _: DapStep) -> Answer<()> {
        self.go(LineMove::OneLine)
    }

    async fn pause(self: &Arc<Self>, _: i64) -> Answer<()> {
        Err("it runs too fast to be paused".into())
    }

    async fn set_breakpoints(self: &Arc<Self>, arguments: SetBreakpointsArguments) -> Answer<Vec<DapBreakpoint>> {
        let lines: Vec<i64> = arguments.breakpoints.iter().map(|it| it.line).collect();
        *lock(&self.breakpoints) = lines.iter().copied().collect();
        let count = self.lines.len() as i64;
        let bound = |line: i64| DapBreakpoint { verified: line <= count, line: Some(line), ..DapBreakpoint::default() };
        Ok(lines.into_iter().map(bound).collect())
    }

    async fn set_exception_breakpoints(self: &Arc<Self>, _: SetExceptionBreakpointsArguments) -> Answer<()> {
        Ok(())
    }
}

struct LineBackend {
    program: Arc<LineProgram>,
    running: Option<tokio::task::JoinHandle<()>>,
}

impl DapBackend for LineBackend {
    const PROGRAM: &'static str = "a list of lines";

    fn capabilities() -> DapCapabilities {
        let others = [("supportsConfigurationDoneRequest".to_owned(), Value::Bool(true))].into_iter().collect();
        DapCapabilities { others, ..DapCapabilities::default() }
    }

    async fn launch(dap: &DapServer, fields: &Fields, _: &str) -> Result<StartedBackend<LineBackend>> {
        let lines = fields.get("lines").cloned().unwrap_or_default();
        let lines = serde_json::from_value(lines)
            .map_err(|cause| Error::usage("cannot launch a list of lines").because(cause.to_string()))?;
        let (moves, waiting) = mpsc::unbounded_channel();
        let (line, breakpoints) = (Mutex::new(1), Mutex::default());
        let program = Arc::new(LineProgram { dap: dap.clone(), lines, breakpoints, line, moves });
        let running = Some(tokio::spawn(Arc::clone(&program).run(waiting)));
        let unknown = fields.keys().filter(|name| *name != "lines").cloned().collect();
        Ok(StartedBackend { backend: LineBackend { program, running }, program: None, unknown })
    }

    async fn attach(_: &DapServer, _: &Fields, _: &str) -> Result<StartedBackend<LineBackend>> {
        Err(Error::other("cannot attach to a list of lines"))
    }

    async fn advance(&mut self) {
        match &mut self.running {
            Some(running) => drop(running.await),
            None => std::future::pending().await,
        }
        self.running = None;
    }

    async fn begin_request(&mut self, request: IncomingRequest) {
        answer_request(&self.program, request).await;
    }

    fn has_ended(&self, _: bool) -> bool {
        self.running.is_none()
    }

    async fn close(&mut self) -> BackendEnd {
        BackendEnd { reason: "all lines are printed".to_owned(), is_by_program: true }
    }

    fn is_stopped(&self) -> bool {
        false
    }

    async fn release(&mut self, _: bool) {}

    async fn terminate(&mut self) {
        self.running.iter().for_each(|running| running.abort());
    }
}

struct LineClient {
    client: DapClient,
    events: DapInbox,
}

impl LineClient {
    fn connect() -> LineClient {
        let (ours, theirs) = DapConnection::pair();
        let context = ServeContext { launch_id: "test".to_owned(), exit: watch::Sender::new(None) };
        tokio::spawn(serve_backend::<LineBackend>(theirs, context));
        let (client, events, driver) = DapClient::over(ours);
        tokio::spawn(driver);
        LineClient { client, events }
    }

    async fn request(&self, command: &str, arguments: Value) -> std::result::Result<Value, String> {
        let arguments = serde_json::value::to_raw_value(&arguments).unwrap();
        let body = self.client.request_raw(command, Some(arguments), LONG).await.map_err(|error| error.to_string())?;
        Ok(body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap()))
    }

    /// The names of events up to one of this name, and what was printed.
    async fn await_event(&mut self, name: &str) -> (Vec<String>, String) {
        let (mut names, mut printed) = (Vec::new(), String::new());
        loop {
            let incoming = tokio::time::timeout(LONG, self.events.next()).await.unwrap().unwrap();
            let DapIncoming::Event(event) = incoming else { continue };
            if event.name == "output" {
                printed.push_str(&event.read_body::<OutputEvent>().unwrap().output);
                continue;
            }
            names.push(event.name.clone());
            if event.name == name {
                return (names, printed);
            }
        }
    }
}

#[tokio::test]
async fn a_third_backend_needs_nothing_but_its_traits() {
    let mut client = LineClient::connect();
    let capabilities = client.request("initialize", json!({"adapterID": "lines"})).await.unwrap();
    assert_eq!(capabilities["supportsConfigurationDoneRequest"], true);

    // A start that fails is followed by one that does not.
    let refused = client.request("launch", json!({"lines": 3})).await.unwrap_err();
    assert!(refused.contains("cannot launch a list of lines"), "{refused}");
    let refused = client.request("attach", json!({})).await.unwrap_err();
    assert!(refused.contains("cannot attach"), "{refused}");
    client.request("launch", json!({"lines": ["a", "b", "c", "d"], "colour": "red"})).await.unwrap();
    let (_, printed) = client.await_event("initialized").await;
    assert_eq!(printed, "the argument `colour` is not known to this adapter\n");

    let source = DapSource { path: Some("/lines".to_owned()), ..DapSource::default() };
    let wanted = json!({"source": source, "breakpoints": [{"line": 3}, {"line": 9}]});
    let bound = client.request("setBreakpoints", wanted).await.unwrap();
    assert_eq!(
        (&bound["breakpoints"][0]["verified"], &bound["breakpoints"][1]["verified"]),
        (&json!(true), &json!(false))
    );
    client.request("configurationDone", json!({})).await.unwrap();
    assert_eq!(client.await_event("stopped").await.1, "a\nb\n");
    let evaluated = client.request("evaluate", json!({"expression": "line"})).await.unwrap();
    assert_eq!(evaluated["result"], "3");

    // What a backend does not have is refused with its name.
    let refused = client.request("setVariable", json!({"variablesReference": 1, "name": "a", "value": "1"})).await;
    assert!(refused.unwrap_err().contains("setVariable is not supported here"));
    let refused = client.request("goto", json!({"threadId": THREAD, "targetId": 1})).await.unwrap_err();
    assert!(refused.contains("goto is not supported here"), "{refused}");

    client.request("next", json!({"threadId": THREAD})).await.unwrap();
    assert_eq!(client.await_event("stopped").await.1, "c\n");
    client.request("continue", json!({"threadId": THREAD})).await.unwrap();
    assert_eq!(client.await_event("terminated").await, (vec!["terminated".to_owned()], "d\n".to_owned()));
    let ended = client.request("threads", json!({})).await.unwrap_err();
    assert!(ended.contains("the program has ended"), "{ended}");
    client.request("disconnect", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_ends_the_conversation() {
    let mut client = LineClient::connect();
    client.request("initialize", json!({"adapterID": "lines"})).await.unwrap();
    client.request("launch", json!({"lines": ["a", "b"]})).await.unwrap();
    client.await_event("initialized").await;
    client.request("disconnect", json!({"terminateDebuggee": true})).await.unwrap();
    assert!(tokio::time::timeout(LONG, client.events.next()).await.unwrap().is_none());
}
