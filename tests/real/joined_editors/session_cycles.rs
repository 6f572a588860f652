//! Sessions that are started, joined by an editor, left and stopped, again and again: no process, descriptor, thread or task
//! is left of them, and the supervisor does not grow.
//!
//! `TETHER_SESSION_CYCLES=500` sets another number of cycles, for a longer run by hand.

use std::path::Path;

use devtether::debug::SessionRegistry;
use devtether::debug::breakpoints::BreakpointConditions;
use devtether::debug::join::{SessionChoice, serve_editor};
use devtether::debug::program::{DebugTarget, DebugTargetKind};
use devtether::debug::{ManagedSession, SessionRequest};
use serde_json::json;
use tether_dap::DapConnection;

use super::dap_editor::{DapEditor, connect_port};
use super::programs::looping_program;
use crate::support::rpc_client::RpcClient;
use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{TEST_TIMEOUT, eventually};

/// Before the counts are compared: what is allocated once is, and the list of ended sessions is full.
const WARM_UP: usize = 12;
/// Of the supervisor's resident memory, in bytes.
const GROWTH_LIMIT: u64 = 32 << 20;

fn cycles() -> usize {
    std::env::var("TETHER_SESSION_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(25)
}

/// What a process holds.
#[derive(Debug)]
struct Resources {
    descriptors: usize,
    threads: u64,
    resident: u64,
}

fn read_resources(pid: u32) -> Resources {
    let process = procfs::process::Process::new(pid as i32).unwrap();
    let resident = process.status().unwrap().vmrss.unwrap() * 1024;
    let threads = process.stat().unwrap().num_threads as u64;
    Resources { descriptors: process.fd_count().unwrap(), threads, resident }
}

/// One session in the supervisor, from its start to its stop.
async fn cycle_session(stage: &ScenarioSandbox, client: &mut RpcClient) {
    let mut call = |method: &str, params| {
        let id = client.send(method, params);
        let response = client.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    };
    let launched = call("debug/launch", json!({"program": stage.file, "adapter": "node", "wait": 60}));
    stage.check(&launched, "BREAKPOINT_HIT", "STOP");
    let port = call("debugger/join", json!({"sessionId": launched["sessionId"]}))["port"].as_u64().unwrap();
    let mut editor = DapEditor::over(connect_port(port).await, None).await;
    editor.attach(None, &[]).await;
    assert_eq!(editor.stopped().await.line, stage.line("STOP"));
    editor.leave_port().await;
    call("debug/stop", json!({"sessionId": launched["sessionId"]}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_leave_no_process_descriptor_or_thread_in_the_supervisor() {
    let Some(stage) = looping_program("node") else { return };
    stage.breaks("STOP");
    let mut client = RpcClient::connect(&stage.sandbox);
    for _ in 0..WARM_UP {
        cycle_session(&stage, &mut client).await;
    }
    stage.nothing_is_left();
    let supervisor = stage.sandbox.supervisor().unwrap();
    let before = read_resources(supervisor);
    let began = std::time::Instant::now();
    for _ in 0..cycles() {
        cycle_session(&stage, &mut client).await;
    }
    stage.nothing_is_left();
    let is_closed = || (read_resources(supervisor).descriptors <= before.descriptors).then_some(());
    eventually("no descriptor is left", is_closed);
    let after = read_resources(supervisor);
    println!("{} cycles in {:.1?}: {before:?} became {after:?}", cycles(), began.elapsed());
    // Blocking threads come and go with their work.
    assert!(after.threads <= before.threads + 8, "{before:?} became {after:?}");
    assert!(after.resident <= before.resident + GROWTH_LIMIT, "{before:?} became {after:?}");
}

/// One session of a registry in this process, from its start to its stop.
async fn cycle_in_registry(sessions: &SessionRegistry, workspace: &Path, file: &Path, line: u64) {
    let kind = DebugTargetKind::Program(file.to_owned());
    let debug_target = DebugTarget { kind, cwd: workspace.to_owned(), ..DebugTarget::default() };
    let request = SessionRequest { name: "app".to_owned(), debug_target, ..SessionRequest::default() };
    let managed = sessions.start_session(request).await.unwrap_or_else(|error| panic!("{error}"));
    let waited = managed.session.wait_for_stop(TEST_TIMEOUT).await;
    assert!(waited.stop.is_some(), "{waited:?}");
    join_and_leave(sessions, managed.clone(), line).await;
    sessions.stop_session(&managed, None).await.unwrap_or_else(|error| panic!("{error}"));
}

async fn join_and_leave(sessions: &SessionRegistry, managed: ManagedSession, line: u64) {
    let (ours, theirs) = DapConnection::pair();
    let serving = tokio::spawn(serve_editor(theirs, sessions.clone(), SessionChoice::Session(managed)));
    let mut editor = DapEditor::over(ours, None).await;
    editor.attach(None, &[]).await;
    assert_eq!(editor.stopped().await.line, line);
    editor.leave_port().await;
    let _ = tokio::time::timeout(TEST_TIMEOUT, serving).await.expect("it does not end");
}

#[tokio::test]
async fn sessions_leave_no_task() {
    let Some(stage) = looping_program("node") else { return };
    let workspace = stage.sandbox.workspace.clone();
    let opened = SessionRegistry::open(None, &workspace, "session-cycles".to_owned(), |_| Default::default());
    let (sessions, driver) = opened;
    let driver = tokio::spawn(driver);
    let (file, line) = (workspace.join(stage.file), stage.line("STOP"));
    sessions.set_line_breakpoint(&file, line as u32, BreakpointConditions::default()).await.unwrap();
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    for _ in 0..cycles() {
        cycle_in_registry(&sessions, &workspace, &file, line).await;
    }
    let until = tokio::time::Instant::now() + TEST_TIMEOUT;
    while metrics.num_alive_tasks() > before {
        assert!(tokio::time::Instant::now() < until, "{} tasks, {before} before", metrics.num_alive_tasks());
        tokio::task::yield_now().await;
    }
    sessions.end_all().await;
    drop(sessions);
    tokio::time::timeout(TEST_TIMEOUT, driver).await.unwrap().unwrap();
}
