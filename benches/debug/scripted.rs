//! What our own part costs: sessions with an adapter that answers at once. It listens here, and a real supervisor, asked
//! over its own socket, attaches to it.

#![allow(dead_code)] // each bench uses a part

use std::sync::Arc;
use std::time::{Duration, Instant};

use devtether::api::OperationParams;
use devtether::api::debug::control::{DebugContinueParams, DebugStepParams};
use devtether::api::debug::inspect::DebugEvaluateParams;
use devtether::api::debug::{DebugAttachParams, DebugStatusParams, DebugStopParams, WaitForStopParams};
use serde_json::{Value, json};
use tether_dap::types::{EmptyResponse, InitializedEvent, StoppedEvent};
use tether_dap::{DapConnection, DapInbox, DapIncoming, DapServer, IncomingRequest};
use tether_wire::rpc::{self, RpcPeer};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::median;
use crate::client::sandbox::Sandbox;

pub const MANY: usize = 200;
pub const TIMES: usize = 500;
/// What [`Door::call`] does.
pub const CALLS: [&str; 3] = ["evaluate", "step", "status"];

/// Adapters that answer at once, for whoever connects.
pub struct Adapters {
    port: u16,
    /// What each connection's program says.
    programs: mpsc::UnboundedReceiver<Arc<DapServer>>,
    serving: JoinHandle<()>,
}

impl Adapters {
    pub async fn start() -> Adapters {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, programs) = mpsc::unbounded_channel();
        let serving = tokio::spawn(async move {
            loop {
                let connection = DapConnection::tcp(listener.accept().await.unwrap().0).unwrap();
                let (server, inbox, driver) = DapServer::over(connection);
                let server = Arc::new(server);
                tell.send(Arc::clone(&server)).unwrap();
                tokio::spawn(driver);
                tokio::spawn(serve(server, inbox));
            }
        });
        Adapters { port, programs, serving }
    }

    /// A session that is stopped, as sessions mostly are, and its program.
    pub async fn stopped(&mut self, door: &Door) -> (String, Arc<DapServer>) {
        let session = door.attach(self.port).await;
        let program = self.programs.recv().await.unwrap();
        program.send_event(&stop()).await.unwrap();
        door.ask::<WaitForStopParams>(json!({"sessionId": session, "timeout": 30, "budget": 0})).await;
        (session, program)
    }
}

impl Drop for Adapters {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub async fn measure(sandbox: &Sandbox) {
    let mut adapters = Adapters::start().await;
    let door = Door::open(sandbox).await;
    let (first, program) = adapters.stopped(&door).await;
    for (budget, what) in [(0, "its reason"), (1500, "its reason and snapshot")] {
        let mut took = Vec::new();
        for _ in 0..TIMES {
            took.push(door.answer(&first, &program, budget).await);
        }
        println!("event readable → wait_for_stop answered with {what}: p50 {:.0?} (goal ≤ 250 µs)", median(took));
    }

    let (alone, before) = (door.costs(&first).await, door.memory());
    let mut others = Vec::new();
    for _ in 1..MANY {
        others.push(adapters.stopped(&door).await.0);
    }
    let (after, among) = (door.memory(), door.costs(&first).await);
    let each = (after - before) / (MANY - 1) as u64;
    println!("{MANY} sessions under one supervisor: {} KiB each in it (goal ≤ 64)", each / 1024);
    for ((name, alone), among) in CALLS.into_iter().zip(alone).zip(among) {
        let ratio = among.as_secs_f64() / alone.as_secs_f64();
        println!("  {name} alone {alone:.2?}, beside the others {among:.2?}, ratio {ratio:.2} (goal ≤ 1.3)");
    }
    for session in others.iter().chain([&first]) {
        door.end(session).await;
    }
}

fn stop() -> StoppedEvent {
    StoppedEvent { reason: "step".to_owned(), thread_id: Some(1), all_threads_stopped: true, ..StoppedEvent::default() }
}

/// An adapter that does whatever it is asked for, at once.
async fn serve(server: Arc<DapServer>, mut inbox: DapInbox) {
    let mut attach: Option<IncomingRequest> = None;
    while let Some(incoming) = inbox.next().await {
        let DapIncoming::Request(requested) = incoming else { continue };
        match requested.command.clone().as_str() {
            "attach" => {
                attach = Some(requested);
                server.send_event(&InitializedEvent {}).await.unwrap();
            }
            "configurationDone" => {
                requested.respond(&EmptyResponse {});
                attach.take().unwrap().respond(&EmptyResponse {});
            }
            "next" => {
                requested.respond(&EmptyResponse {});
                server.send_event(&stop()).await.unwrap();
            }
            command => requested.respond(&scripted(command)),
        }
    }
}

fn scripted(command: &str) -> Value {
    match command {
        "initialize" => json!({"supportsConfigurationDoneRequest": true}),
        "setBreakpoints" | "setExceptionBreakpoints" => json!({"breakpoints": []}),
        "threads" => json!({"threads": [{"id": 1, "name": "main"}]}),
        "stackTrace" => json!({"stackFrames": [{"id": 1, "name": "f", "line": 3, "column": 1}], "totalFrames": 1}),
        "scopes" => json!({"scopes": [{"name": "Locals", "variablesReference": 1, "expensive": false}]}),
        "variables" => json!({"variables": [{"name": "x", "value": "1", "variablesReference": 0}]}),
        "evaluate" => json!({"result": "1", "variablesReference": 0}),
        _ => json!({}),
    }
}

/// The supervisor's own socket.
pub struct Door {
    peer: RpcPeer,
    supervisor: u32,
}

impl Door {
    /// To a supervisor, which runs.
    pub async fn open(sandbox: &Sandbox) -> Door {
        let only = |folder: &str| {
            let folder = sandbox.home().join(folder);
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).next().unwrap()
        };
        let (read, write) = UnixStream::connect(only("run/devtether")).await.unwrap().into_split();
        let (peer, _incoming, driver) = rpc::open_connection(read, write);
        tokio::spawn(driver);
        peer.call("initialize", &json!({"name": "bench", "version": "0.0.1"})).await.unwrap();
        let lock = std::fs::read(only("state/devtether").join("supervisor.lock")).unwrap();
        let holder: Value = serde_json::from_slice(&lock).unwrap();
        Door { peer, supervisor: holder["pid"].as_u64().unwrap() as u32 }
    }

    pub async fn ask<P: OperationParams>(&self, params: Value) -> Value {
        self.peer.call(P::METHOD, &params).await.unwrap_or_else(|error| panic!("{}: {error}", P::METHOD))
    }

    async fn attach(&self, port: u16) -> String {
        let reported = self.ask::<DebugAttachParams>(json!({"port": port, "adapter": "debugpy"})).await;
        reported["sessionId"].as_str().unwrap().to_owned()
    }

    pub async fn end(&self, session: &str) {
        self.ask::<DebugStopParams>(json!({"sessionId": session, "detach": true})).await;
    }

    /// What an evaluation, a step and a status take.
    pub async fn call(&self, session: &str) -> [Duration; 3] {
        let begun = Instant::now();
        self.ask::<DebugEvaluateParams>(json!({"sessionId": session, "expression": "x"})).await;
        let evaluated = begun.elapsed();
        let begun = Instant::now();
        let reported = self.ask::<DebugStepParams>(json!({"sessionId": session, "kind": "over"})).await;
        let stepped = begun.elapsed();
        assert_eq!(reported["stopped"], true);
        let begun = Instant::now();
        self.ask::<DebugStatusParams>(json!({"sessionId": session})).await;
        [evaluated, stepped, begun.elapsed()]
    }

    /// The medians of that.
    pub async fn costs(&self, session: &str) -> [Duration; 3] {
        let mut took = [vec![], vec![], vec![]];
        for _ in 0..TIMES {
            let call = self.call(session).await;
            took.iter_mut().zip(call).for_each(|(took, call)| took.push(call));
        }
        took.map(median)
    }

    /// From just before the event's bytes are written to the answer of who waits for it, in another process.
    pub async fn answer(&self, session: &str, program: &DapServer, budget: u32) -> Duration {
        self.ask::<DebugContinueParams>(json!({"sessionId": session, "budget": 0})).await;
        let wait = json!({"sessionId": session, "timeout": 30, "budget": budget});
        let waiting = self.peer.call(<WaitForStopParams as OperationParams>::METHOD, &wait);
        let raised = async {
            // Answered when the wait, which was asked for before, is under way.
            self.ask::<DebugStatusParams>(json!({"sessionId": session})).await;
            let begun = Instant::now();
            program.send_event(&stop()).await.unwrap();
            begun
        };
        let (answer, begun) = tokio::join!(async { (waiting.await.unwrap(), Instant::now()) }, raised);
        let (answer, ended) = answer;
        assert_eq!(answer["stopped"], true, "{answer}");
        ended - begun
    }

    /// What the supervisor holds for itself, in bytes.
    pub fn memory(&self) -> u64 {
        let all = procfs::process::Process::new(self.supervisor as i32).unwrap().smaps_rollup().unwrap();
        let mine = all.memory_map_rollup.0.first().unwrap().extension.map.clone();
        mine["Private_Dirty"] + mine["Private_Clean"]
    }
}
