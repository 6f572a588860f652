//! Breakpoints of an agent and of editors on one session: each has its own, everybody sees all, and those of an editor go with
//! it.

use serde_json::{Value, json};
use tether_dap::types::ContinueArguments;

use super::dap_editor::{DapEditor, EDITOR, wait_until_left};
use super::programs::looping_program;
use crate::support::scenario_sandbox::ScenarioSandbox;

fn listed(stage: &ScenarioSandbox) -> Vec<(u64, u64, Value)> {
    let list = stage.json(&["break", "list"]);
    let entry = |it: &Value| (it["breakpointId"].as_u64().unwrap(), it["line"].as_u64().unwrap(), it["owner"].clone());
    list["breakpoints"].as_array().unwrap().iter().map(entry).collect()
}

#[tokio::test]
async fn each_replaces_its_own_and_everybody_sees_all() {
    let Some(stage) = looping_program("debugpy") else { return };
    let file = stage.sandbox.path(stage.file);
    stage.breaks("STOP");
    stage.json(&["debug", "launch", stage.file, "--wait", "60"]);
    let mut editor = DapEditor::start(&stage.sandbox).await;
    editor.attach(None, &[(&file, &[stage.line("WORD")])]).await;
    let new = editor.event_where("breakpoint", |body| body["reason"] == "new").await["breakpoint"].clone();
    assert_eq!((&new["id"], &new["verified"], &new["line"]), (&json!(1), &json!(true), &json!(stage.line("STOP"))));
    assert_eq!(new["source"]["path"], json!(file));
    let owner = json!(format!("{EDITOR} (editor 1)"));
    let both = [(1, stage.line("STOP"), Value::Null), (2, stage.line("WORD"), owner)];
    assert_eq!(listed(&stage), both);

    let mut stop = editor.stopped().await;
    for (marker, id) in [("WORD", 2), ("STOP", 1)] {
        editor.request(&ContinueArguments { thread_id: stop.thread }).await;
        stop = editor.stopped().await;
        assert_eq!((stop.line, &stop.event["hitBreakpointIds"]), (stage.line(marker), &json!([id])));
    }
    // On the agent's line with the same conditions, the agent's counts; one that is nowhere is refused by itself.
    let set = editor.set_breakpoints(&file, &[stage.line("STOP"), 999]).await;
    assert_eq!((set[0].id, set[0].verified, set[1].verified), (Some(1), true, false));
    assert!(set[1].message.as_deref().unwrap().contains("it has 7 lines"), "{set:?}");
    assert_eq!(listed(&stage), both[..1]);
    // What an agent removes as a whole is not the editor's; by its id it is.
    editor.set_breakpoints(&file, &[stage.line("NEXT")]).await;
    stage.json(&["break", "remove", "--all"]);
    let removed = editor.event_where("breakpoint", |body| body["reason"] == "removed").await;
    assert_eq!(removed["breakpoint"]["id"], 1);
    let left = listed(&stage);
    assert_eq!((left.len(), left[0].1), (1, stage.line("NEXT")));
    stage.json(&["break", "remove", &left[0].0.to_string()]);
    let removed = editor.event_where("breakpoint", |body| body["reason"] == "removed").await;
    assert_eq!(removed["breakpoint"]["id"], left[0].0);

    // Those of an editor go with it, however it ends, and are never stored.
    editor.set_breakpoints(&file, &[stage.line("WORD")]).await;
    assert_eq!(listed(&stage).len(), 1);
    editor.kill().await;
    wait_until_left(&stage.sandbox);
    crate::support::eventually("its breakpoints are gone", || listed(&stage).is_empty().then_some(()));
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
