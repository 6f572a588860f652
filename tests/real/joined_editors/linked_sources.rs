//! An editor that names a file over a link gets that path back, and is told of a column that its adapter ignores.

use std::os::unix::fs::symlink;

use serde_json::json;
use tether_dap::types::{DapSource, SetBreakpointsArguments, SourceBreakpoint, StackTraceArguments};

use super::dap_editor::DapEditor;
use super::programs::looping_program;

#[tokio::test]
async fn an_editor_gets_the_paths_and_the_notes_of_its_breakpoints() {
    let Some(stage) = looping_program("debugpy") else { return };
    let (file, elsewhere) = (stage.sandbox.path(stage.file), tempfile::tempdir().unwrap());
    let editors = elsewhere.path().canonicalize().unwrap().join("opened");
    symlink(file.parent().unwrap(), &editors).unwrap();
    let opened = editors.join(stage.file);
    stage.breaks("STOP");
    stage.json(&["debug", "launch", stage.file, "--wait", "60"]);
    let mut editor = DapEditor::start(&stage.sandbox).await;
    editor.attach(None, &[(&opened, &[stage.line("WORD")])]).await;
    let new = editor.event_where("breakpoint", |body| body["reason"] == "new").await["breakpoint"].clone();
    assert_eq!(new["source"]["path"], json!(opened), "the agent's breakpoint in the same file");
    let stop = editor.stopped().await;
    let stack = StackTraceArguments { thread_id: stop.thread, ..StackTraceArguments::default() };
    let frames = editor.request(&stack).await.stack_frames;
    let path = frames[0].source.as_ref().and_then(|source| source.path.as_deref());
    assert_eq!(path, opened.to_str(), "{frames:?}");
    // The others have their own name for it.
    assert_eq!(stage.json(&["debug", "stack"])["frames"][0]["file"], stage.file);

    let source = DapSource { path: opened.to_str().map(str::to_owned), ..DapSource::default() };
    let at = SourceBreakpoint { line: stage.line("NEXT") as i64, column: Some(5), ..SourceBreakpoint::default() };
    let set = editor.request(&SetBreakpointsArguments { source, breakpoints: vec![at] }).await.breakpoints;
    let note = "this adapter ignores columns: it stops at the line's first code";
    assert_eq!((set[0].verified, set[0].message.as_deref()), (true, Some(note)), "{set:?}");
    editor.kill().await;
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
