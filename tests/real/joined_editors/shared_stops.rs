//! D4: an agent has stopped a program; an editor joins, sees the stop, steps; the agent sees that step; the editor leaves, and
//! the session goes on.

use std::collections::BTreeSet;

use serde_json::json;
use tether_dap::types::{ContinueArguments, NextArguments, PauseArguments};

use super::dap_editor::{DapEditor, EDITOR, joined_names};
use super::programs::looping_program;
use crate::debug_scenarios::targets::FAMILY;
use crate::support::mcp_client::{self, McpClient};
use crate::support::scenario_sandbox::ScenarioSandbox;

async fn share_a_program(adapter: &str) {
    let Some(stage) = looping_program(adapter) else { return };
    let agent = McpClient::start(&stage.sandbox).await;
    let launch = json!({"program": stage.file, "adapter": adapter, "breakpoints": [stage.at("STOP")], "wait": 90});
    let launched = agent.call("debug_launch", launch).await;
    stage.check(&launched, "BREAKPOINT_HIT", "STOP");
    let session = launched["sessionId"].as_str().unwrap();

    // The editor sees the agent's stop and its variables.
    let mut editor = DapEditor::start(&stage.sandbox).await;
    editor.attach(Some(session), &[]).await;
    let stop = editor.stopped().await;
    assert_eq!((stop.line, &stop.event["reason"]), (stage.line("STOP"), &json!("breakpoint")));
    assert_eq!(editor.variable(stop.frame, "total").await, "1");
    let name = format!("{EDITOR} (editor 1)");
    assert_eq!(joined_names(&stage.sandbox), json!([name]));

    // The agent sees the editor's step, and whose it was.
    editor.request(&NextArguments { thread_id: stop.thread }).await;
    let stepped = editor.stopped().await;
    assert_eq!((&stepped.event["reason"], stepped.line), (&json!("step"), stage.line("NEXT")), "{stepped:?}");
    let seen = agent.call("wait_for_stop", json!({"timeout": 60})).await;
    stage.check(&seen, "STEP_COMPLETE", "NEXT");
    assert_eq!(seen["notes"], json!([format!("resumed by {name} (step over)")]));
    let stale = editor.refused(&tether_dap::types::ScopesArguments { frame_id: stop.frame }).await;
    assert!(stale.contains("is not valid"), "{stale}");

    // The editor sees the agent's step, and that it was not its own.
    agent.call("debug_continue", json!({"wait": 60})).await;
    editor.output("resumed by an agent or a command (continue)").await;
    let stop = editor.stopped().await;
    assert_eq!((stop.line, &stop.event["hitBreakpointIds"]), (stage.line("STOP"), &json!([1])));

    // While one has resumed the program, the other cannot step.
    agent.call("breakpoint_remove", json!({"all": true})).await;
    editor.event_where("breakpoint", |body| body["reason"] == "removed").await;
    editor.request(&ContinueArguments { thread_id: stop.thread }).await;
    let refused = mcp_client::text(&agent.ask("debug_step", json!({"kind": "over"})).await);
    assert!(refused.contains(&format!("RUNNING, resumed by {name} (continue)")), "{refused}");
    let refused = editor.refused(&NextArguments { thread_id: stop.thread }).await;
    assert!(refused.contains("the program is not stopped"), "{refused}");

    // The agent waits for what the editor does.
    let pause = PauseArguments { thread_id: stop.thread };
    let pause = editor.client.request(&pause, crate::support::TEST_TIMEOUT);
    let (paused, waited) = tokio::join!(pause, agent.call("wait_for_stop", json!({"timeout": 60})));
    paused.unwrap();
    assert_eq!(
        (&waited["stopped"], &waited["stopReason"]["type"]),
        (&json!(true), &json!("USER_SUSPEND")),
        "{waited:#}"
    );
    assert_eq!(editor.stopped().await.event["reason"], "pause");

    // The editor leaves, and the session goes on.
    assert!(editor.leave().await.success());
    assert_eq!(joined_names(&stage.sandbox), json!([]));
    stage.breaks("STOP");
    let hit = agent.call("debug_continue", json!({"wait": 60})).await;
    stage.check(&hit, "BREAKPOINT_HIT", "STOP");
    assert_eq!(agent.call("debug_stop", json!({})).await["state"], "TERMINATED");
    agent.leave().await;
    stage.nothing_is_left();
}

#[tokio::test]
async fn a_python_program_is_shared() {
    share_a_program("debugpy").await;
}

#[tokio::test]
async fn a_node_program_is_shared() {
    share_a_program("node").await;
}

#[tokio::test]
async fn a_node_program_that_js_debug_debugs_is_shared() {
    share_a_program("js-debug").await;
}

#[tokio::test]
async fn a_go_program_is_shared() {
    share_a_program("dlv").await;
}

#[tokio::test]
async fn a_java_program_is_shared() {
    share_a_program("java").await;
}

#[tokio::test]
async fn all_targets_of_a_session_are_one_conversation() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "family.js", FAMILY) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "family.js", "--adapter", "js-debug", "--wait", "60"]);
    let mut editor = DapEditor::start(&stage.sandbox).await;
    editor.attach(None, &[]).await;
    let (mut who, mut threads) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..3 {
        let stop = editor.stopped().await;
        assert_eq!((stop.line, stop.function.contains("work")), (stage.line("STOP"), true), "{stop:?}");
        who.insert(editor.variable(stop.frame, "who").await);
        threads.insert(stop.thread);
        editor.request(&ContinueArguments { thread_id: stop.thread }).await;
    }
    assert_eq!((who.len(), threads.len()), (3, 3), "{who:?}");
    editor.event("terminated").await;
    assert!(editor.leave().await.success());
    stage.nothing_is_left();
}
