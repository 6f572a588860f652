//! The debug type `tether` in VS Code's own debugger: it joins a session that an agent has stopped, sees the stop and the
//! locals, steps and disconnects; the agent sees the step, and the session goes on.

use std::time::Instant;

use serde_json::{Value, json};

use super::host_editor::HostEditor;
use crate::joined_editors::programs::{GO, JAVA, JAVASCRIPT, PYTHON};
use crate::support::mcp_client::McpClient;
use crate::support::scenario_sandbox::found;
use crate::support::{TEST_TIMEOUT, eventually};

struct Program {
    adapter: &'static str,
    file: &'static str,
    text: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program { adapter: "node", file: "app.js", text: JAVASCRIPT },
    Program { adapter: "debugpy", file: "app.py", text: PYTHON },
    Program { adapter: "dlv", file: "main.go", text: GO },
    Program { adapter: "java", file: "Loops.java", text: JAVA },
];

impl Program {
    /// The line that ends with the marker.
    fn line(&self, marker: &str) -> u64 {
        self.text.lines().position(|line| line.ends_with(marker)).unwrap() as u64 + 1
    }

    /// Asserts the reason and the line of a stop that the agent sees.
    fn check_stop(&self, seen: &Value, kind: &str, marker: &str) {
        let reason = &seen["stopReason"];
        let stop = (seen["state"].as_str(), reason["type"].as_str(), reason["location"]["lineNumber"].as_u64());
        assert_eq!(stop, (Some("STOPPED"), Some(kind), Some(self.line(marker))), "{}: {seen:#}", self.file);
    }
}

#[tokio::test]
async fn vs_code_joins_programs_that_an_agent_has_stopped() {
    let mut files = PROGRAMS.map(|it| (it.file, it.text)).to_vec();
    files.push(("go.mod", "module example.com/loops\n\ngo 1.19\n"));
    let Some(editor) = HostEditor::start(json!({"tether.connect": "always"}), &files).await else { return };
    editor.until_shown("tether: no window").await;
    let agent = McpClient::start_in(&editor.sandbox, &editor.folder).await;
    for program in PROGRAMS {
        if found(program.adapter).is_some() {
            share_a_program(&editor, &agent, &program).await;
        }
    }
    agent.leave().await;
    editor.close().await;
}

async fn share_a_program(editor: &HostEditor, agent: &McpClient, program: &Program) {
    let Program { adapter, file, .. } = program;
    let breakpoint = format!("{file}:{}", program.line("STOP"));
    let launch = json!({"program": file, "adapter": adapter, "breakpoints": [breakpoint], "wait": 90});
    let launched = agent.call("debug_launch", launch).await;
    program.check_stop(&launched, "BREAKPOINT_HIT", "STOP");
    let session = launched["sessionId"].as_str().unwrap();

    // VS Code joins, and shows the agent's stop and the locals.
    editor.run("Tether: Join Debug Session", "Join a debug session").await;
    editor.click(&format!("option \"{session} ")).await;
    check_shown_stop(editor, program, "breakpoint", "STOP").await;
    check_shown_local(editor).await;
    let name = joined_editors(editor, session).pop().expect("an editor has joined");
    editor.keep_screenshot(&format!("joined-{adapter}")).await;

    // VS Code steps; the agent sees that step, and whose it was.
    press(editor, "F10").await;
    check_shown_stop(editor, program, "step", "NEXT").await;
    let seen = agent.call("wait_for_stop", json!({"timeout": 60})).await;
    program.check_stop(&seen, "STEP_COMPLETE", "NEXT");
    assert_eq!(seen["notes"], json!([format!("resumed by {name} (step over)")]));

    // VS Code disconnects; the session goes on.
    press(editor, "Shift+F5").await;
    eventually("VS Code has left", || joined_editors(editor, session).is_empty().then_some(()));
    let hit = agent.call("debug_continue", json!({"wait": 60})).await;
    program.check_stop(&hit, "BREAKPOINT_HIT", "STOP");
    assert_eq!(hit["sessionId"], session);
    assert_eq!(agent.call("debug_stop", json!({})).await["state"], "TERMINATED");
}

/// The names of the editors that have joined the session.
fn joined_editors(editor: &HostEditor, session: &str) -> Vec<String> {
    let status = editor.json(&["debug", "status", session]);
    let names = status["editors"].as_array().cloned().unwrap_or_default();
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

async fn press(editor: &HostEditor, keys: &str) {
    editor.agent.ask("window_input", json!({"actions": [{"do": "press", "keys": keys}]})).await;
}

/// Waits until VS Code reports a stop on the line of the marker, and its call stack has a frame there.
async fn check_shown_stop(editor: &HostEditor, program: &Program, reason: &str, marker: &str) {
    let (file, line) = (program.file, program.line(marker));
    editor.until_shown(&format!("debugging paused , reason {reason}, {file}:{line}")).await;
    editor.until_shown(&format!("line {line}, {file}")).await;
}

/// Waits until the view of variables shows the local `word`. VS Code does not always expand the locals by itself: its
/// view may be rebuilt meanwhile.
async fn check_shown_local(editor: &HostEditor) {
    let since = Instant::now();
    loop {
        let shown = editor.until_shown("treeitem \"Scope Local").await;
        if let Some(line) = shown.lines().find(|line| line.contains("word, value")) {
            assert!(line.contains("hello"), "{line}");
            return;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "no local in {shown}");
        let scope = shown.lines().find(|line| line.contains("treeitem \"Scope Local")).unwrap();
        if scope.contains("collapsed") {
            editor.click("treeitem \"Scope Local").await;
        }
    }
}
