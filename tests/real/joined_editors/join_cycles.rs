//! 500 editors join and leave: no process, descriptor, thread or task is left of them.

use std::path::PathBuf;

use devtether::debug::breakpoints::BreakpointConditions;
use devtether::debug::join::{SessionChoice, serve_editor};
use devtether::debug::program::{DebugTarget, DebugTargetKind};
use devtether::debug::{SessionRegistry, SessionRequest};
use serde_json::json;
use tether_dap::DapConnection;
use tether_process::LAUNCH_ID;

use super::dap_editor::{DapEditor, connect_port, wait_until_left};
use super::programs::looping_program;
use crate::support::rpc_client::RpcClient;
use crate::support::{TEST_TIMEOUT, carrying_prefix, eventually};

const CYCLES: usize = 500;

/// The open descriptors and the threads of a process.
fn open_resources(pid: u32) -> (usize, u64) {
    let process = procfs::process::Process::new(pid as i32).unwrap();
    (process.fd_count().unwrap(), process.stat().unwrap().num_threads as u64)
}

// An editor that is dropped closes its connection while the test waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_them_is_left_in_the_supervisor() {
    let Some(stage) = looping_program("debugpy") else { return };
    let file: PathBuf = stage.sandbox.path(stage.file);
    stage.breaks("STOP");
    let launched = stage.json(&["debug", "launch", stage.file, "--wait", "60"]);
    let mut client = RpcClient::connect(&stage.sandbox);
    let supervisor = stage.sandbox.supervisor().unwrap();
    let mut before = None;
    for number in 0..CYCLES + 10 {
        let id = client.send("debugger/join", json!({"sessionId": launched["sessionId"]}));
        let port = client.response(id)["result"]["port"].as_u64().unwrap();
        // Some never connect, some close without a word.
        let mut editor = DapEditor::over(connect_port(port).await, None).await;
        editor.attach(None, &[(&file, &[stage.line("WORD")])]).await;
        assert_eq!(editor.stopped().await.line, stage.line("STOP"));
        match number % 3 {
            0 => drop(editor),
            _ => editor.leave_port().await,
        }
        if number == 9 {
            // What is allocated once is.
            wait_until_left(&stage.sandbox);
            before = Some((open_resources(supervisor), stage.others()));
        }
    }
    wait_until_left(&stage.sandbox);
    let ((descriptors, threads), processes) = before.unwrap();
    eventually("no descriptor is left", || (open_resources(supervisor).0 <= descriptors).then_some(()));
    // Blocking threads come and go with their work.
    assert!(open_resources(supervisor).1 <= threads + 8, "{:?}", open_resources(supervisor));
    assert_eq!(stage.others(), processes);
    assert_eq!(stage.json(&["break", "list"])["breakpoints"].as_array().unwrap().len(), 1);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[tokio::test]
async fn no_task_of_them_is_left() {
    let Some(stage) = looping_program("debugpy") else { return };
    let workspace = stage.sandbox.workspace.clone();
    // The programs run under this process, not under the sandbox's supervisor: they are known by their launch ids.
    let launch_id = format!("join-cycles-{}", std::process::id());
    let programs = || carrying_prefix(LAUNCH_ID, &launch_id);
    let (sessions, driver) = SessionRegistry::open(None, &workspace, launch_id.clone(), |_| Default::default());
    let driver = tokio::spawn(driver);
    let file = workspace.join(stage.file);
    let line = stage.line("STOP") as u32;
    sessions.set_line_breakpoint(&file, line, BreakpointConditions::default()).await.unwrap();
    let kind = DebugTargetKind::Program(file.clone());
    let debug_target = DebugTarget { kind, cwd: workspace.clone(), ..DebugTarget::default() };
    let request = SessionRequest { name: "app".to_owned(), debug_target, ..SessionRequest::default() };
    let managed = sessions.start_session(request).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(managed.session.wait_for_stop(TEST_TIMEOUT).await.stop.is_some());
    assert!(!programs().is_empty(), "no process has the launch id");
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    for number in 0..CYCLES {
        let (ours, theirs) = DapConnection::pair();
        let serving = tokio::spawn(serve_editor(theirs, sessions.clone(), SessionChoice::Session(managed.clone())));
        let mut editor = DapEditor::over(ours, None).await;
        editor.attach(None, &[(&file, &[stage.line("WORD")])]).await;
        assert_eq!(editor.stopped().await.line, stage.line("STOP"));
        match number % 4 {
            0 => drop(editor),
            // Its conversation is cut off.
            1 => serving.abort(),
            _ => editor.leave_port().await,
        }
        let _ = tokio::time::timeout(TEST_TIMEOUT, serving).await.expect("it does not end");
    }
    let until = tokio::time::Instant::now() + TEST_TIMEOUT;
    while metrics.num_alive_tasks() > before || !managed.session.snapshot().editors.is_empty() {
        assert!(tokio::time::Instant::now() < until, "{} tasks, {before} before", metrics.num_alive_tasks());
        tokio::task::yield_now().await;
    }
    assert_eq!(sessions.current_breakpoints().breakpoints.len(), 1);
    sessions.end_all().await;
    drop((managed, sessions));
    tokio::time::timeout(TEST_TIMEOUT, driver).await.unwrap().unwrap();
    eventually("no program is left", || programs().is_empty().then_some(()));
}
