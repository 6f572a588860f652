//! `tether dap` as the debug adapter of any editor: a session that it launches outlives the editor, and the next one joins it.

use serde_json::{Value, json};
use tether_dap::types::{
    ContinueArguments, DapSource, Fields, LaunchArguments, NextArguments, SetBreakpointsArguments, SourceBreakpoint,
    TerminateArguments, ThreadsArguments,
};

use super::dap_editor::{DapEditor, wait_until_left};
use super::programs::looping_program;
use crate::support::TEST_TIMEOUT;

fn fields(value: Value) -> Fields {
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn a_launched_session_outlives_its_editor_and_the_next_one_joins_it() {
    let Some(stage) = looping_program("debugpy") else { return };
    let file = stage.sandbox.path(stage.file);
    let mut editor = DapEditor::start(&stage.sandbox).await;
    // As VS Code and nvim-dap send it, with fields of their own.
    let arguments =
        json!({"type": "tether", "request": "launch", "name": "Run", "program": stage.file, "__sessionId": "1"});
    let launch = editor.client.send_request(&LaunchArguments(fields(arguments))).await.unwrap();
    editor.event("initialized").await;
    editor.configure(&[(&file, &[stage.line("STOP")])]).await;
    launch.response(TEST_TIMEOUT).await.unwrap();
    let capabilities = editor.event("capabilities").await["capabilities"].clone();
    assert_eq!(
        (&capabilities["supportsSetVariable"], &capabilities["supportsDataBreakpoints"]),
        (&json!(true), &Value::Null)
    );
    let stop = editor.stopped().await;
    assert_eq!((stop.line, editor.variable(stop.frame, "total").await.as_str()), (stage.line("STOP"), "1"));
    assert_eq!(editor.event("process").await["startMethod"], "launch");

    editor.kill().await;
    wait_until_left(&stage.sandbox);
    stage.check(&stage.json(&["debug", "status"]), "BREAKPOINT_HIT", "STOP");

    let mut next = DapEditor::start(&stage.sandbox).await;
    next.attach(None, &[]).await;
    let stop = next.stopped().await;
    next.request(&NextArguments { thread_id: stop.thread }).await;
    assert_eq!(next.stopped().await.line, stage.line("NEXT"));
    next.request(&TerminateArguments {}).await;
    next.event("terminated").await;
    assert!(next.leave().await.success());
    assert_eq!(stage.json(&["debug", "status"])["sessions"][0]["state"], "TERMINATED");
    stage.nothing_is_left();
}

/// How often the supervisor is killed, for a longer run by hand.
fn kills() -> usize {
    std::env::var("DEVTETHER_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(2)
}

/// An editor steps on while the supervisor is killed; its breakpoints stay, also for the next supervisor.
async fn steps_over_kills(adapter: &str, joins: bool) {
    let Some(stage) = looping_program(adapter) else { return };
    let file = stage.sandbox.path(stage.file);
    let mut editor = DapEditor::start(&stage.sandbox).await;
    if joins {
        stage.json(&["debug", "launch", stage.file, "--adapter", adapter]);
        editor.attach(None, &[(&file, &[stage.line("STOP")])]).await;
    } else {
        let arguments = json!({"type": "tether", "program": stage.file, "adapter": adapter});
        let launch = editor.client.send_request(&LaunchArguments(fields(arguments))).await.unwrap();
        editor.event("initialized").await;
        editor.configure(&[(&file, &[stage.line("STOP")])]).await;
        launch.response(TEST_TIMEOUT).await.unwrap();
    }
    assert_eq!(editor.stopped().await.line, stage.line("STOP"));
    for _ in 0..kills() {
        stage.sandbox.kill_supervisor();
        let thread_id = editor.request(&ThreadsArguments {}).await.threads[0].id;
        editor.request(&NextArguments { thread_id }).await;
        assert_eq!(editor.stopped().await.line, stage.line("NEXT"));
        // The next supervisor knows the session, and whose breakpoint it is.
        stage.check(&stage.json(&["debug", "status"]), "STEP_COMPLETE", "NEXT");
        let listed = stage.json(&["break", "list"]);
        assert!(listed["breakpoints"][0].to_string().contains("test editor"), "{listed:#}");
        editor.request(&ContinueArguments { thread_id }).await;
        assert_eq!(editor.stopped().await.line, stage.line("STOP"), "its breakpoint is still set");
    }
    assert!(editor.leave().await.success());
    assert_eq!(stage.json(&["break", "list"])["breakpoints"], json!([]));
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[tokio::test]
async fn an_editor_that_has_launched_steps_on_while_the_supervisor_is_killed() {
    steps_over_kills("debugpy", false).await;
}

#[tokio::test]
async fn an_editor_that_has_joined_steps_on_while_the_supervisor_is_killed() {
    steps_over_kills("node", true).await;
}

#[tokio::test]
async fn a_launch_or_an_attach_that_cannot_be_says_why() {
    let Some(stage) = looping_program("debugpy") else { return };
    for (arguments, words) in [
        (json!({"program": "none.py"}), "none.py"),
        (json!({"program": stage.file, "stopAtEntry": true}), "stopAtEntry"),
    ] {
        let mut editor = DapEditor::start(&stage.sandbox).await;
        let launch = editor.client.send_request(&LaunchArguments(fields(arguments))).await.unwrap();
        editor.event("initialized").await;
        editor.configure(&[]).await;
        let error = launch.response(TEST_TIMEOUT).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(editor.leave().await.success());
    }
    let editor = DapEditor::start(&stage.sandbox).await;
    let attach = tether_dap::types::AttachArguments(fields(json!({"sessionId": "d9"})));
    let error = editor.refused(&attach).await;
    assert!(error.contains("there is no debug session \"d9\""), "{error}");
    // Before a session there is nothing to step, and a breakpoint in a file that is not there is refused by itself.
    let error = editor.refused(&NextArguments { thread_id: 1 }).await;
    assert!(error.contains("`launch` or `attach` comes first"), "{error}");
    let source = DapSource { path: Some("/none/at all.py".to_owned()), ..DapSource::default() };
    let breakpoints = vec![SourceBreakpoint { line: 1, ..SourceBreakpoint::default() }];
    let set = editor.request(&SetBreakpointsArguments { source, breakpoints }).await.breakpoints;
    assert!(!set[0].verified && set[0].message.as_deref().unwrap().contains("at all.py"), "{set:?}");
    assert!(editor.leave().await.success());
}
