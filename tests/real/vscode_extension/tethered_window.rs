//! A window of the supervisor, started from VS Code: an Extension Development Host with the same extension as its bridge.

use std::fs;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use super::host_editor::HostEditor;
use crate::support::{eventually, kill};

const MANIFEST: &str = r#"{
    "name": "hello", "publisher": "test", "version": "0.0.1", "engines": {"vscode": "^1.100.0"},
    "main": "./extension.js", "activationEvents": ["onStartupFinished"],
    "contributes": {"commands": [{"command": "hello.answer", "title": "Hello: Answer"}]}
}"#;

const SOURCE: &str = r#"
const vscode = require("vscode");
exports.activate = (context) => {
    context.subscriptions.push(vscode.commands.registerCommand("hello.answer", (...given) => ({ given, answer: 42 })));
};
"#;

/// Builds, and loads the packaged extension beside the one under development.
const DEVTOOLS: &str = r#"
[window]
kind = "web-extension-host"
args = ["--extensionDevelopmentPath=.", "--extensionDevelopmentPath=EXTENSION"]
[build]
command = ["node", "--check", "extension.js"]
"#;

const PROGRAM: &str = "const total = [1, 2, 3].reduce((a, b) => a + b);\nconsole.log(total); // STOP\n";

const FILES: [(&str, &str); 4] =
    [("package.json", MANIFEST), ("extension.js", SOURCE), ("devtools.toml", DEVTOOLS), ("total.js", PROGRAM)];

#[tokio::test]
async fn a_tethered_window_is_shown_commanded_and_its_close_stops_the_mcp_server() {
    let settings = json!({"tether.closeGraceMs": 3000});
    let Some(editor) = HostEditor::start(settings, &FILES).await else { return };
    editor.until_shown("tether: no window").await;
    // Nothing of the folder runs before its commands are trusted.
    editor.run("Tether: Start Window", "Review Commands").await;
    editor.tether(&["trust", "--yes"]).ok();

    editor.run("Tether: Start Window", "tether: ready").await;
    assert_eq!(editor.json(&["status"])["state"], "ready");
    editor.run("Tether: Focus on Overview View", "Launch 1").await;
    editor.run("Tether: Show Timeline", "1 launch").await;
    command_the_window(&editor);

    fs::write(editor.folder.join("extension.js"), SOURCE.replace("42", "43")).unwrap();
    editor.until_shown("tether: stale").await;
    editor.run("Tether: Build and Restart Window", "Relaunched because extension.js was modified").await;

    editor.json(&["break", "set", "total.js:2"]);
    editor.json(&["debug", "launch", "total.js", "--wait", "60"]);
    for words in ["breakpoint hit at total.js:2", "total.js:2 verified", "d1 total.js", "2 launches", "extension.js"] {
        editor.until_shown(words).await;
    }
    editor.keep_screenshot("tethered-window").await;

    let server = editor.start_mcp_server().await;
    let window = editor.json(&["status"])["pid"].as_u64().unwrap() as u32;
    let closed = Instant::now();
    kill(window, Signal::TERM);
    editor.until_shown("tether: window closed").await;
    eventually("the MCP server is stopped", || editor.mcp_server().is_none().then_some(()));
    assert!(closed.elapsed().as_millis() >= 3000, "process {server} was stopped within the grace");
    editor.keep_screenshot("closed-window").await;
    editor.close().await;
}

/// The extension inside the window runs a command for the supervisor, and lists what is open.
fn command_the_window(editor: &HostEditor) {
    eventually("the bridge is connected", || (editor.tether(&["output"]).code == 0).then_some(()));
    let answer = editor.json(&["command", "hello.answer", "7", "{\"$uri\": \"file:///a\"}"]);
    assert_eq!(answer["value"]["answer"], 42, "{answer}");
    assert_eq!((&answer["value"]["given"][0], &answer["value"]["given"][1]["path"]), (&json!(7), &json!("/a")));
    editor.tether(&["command", "hello.anser"]).fails(1, &["no command hello.anser in the window"]);
    let opened = editor.folder.join("total.js").display().to_string().replace(' ', "%20");
    editor.json(&["command", "vscode.open", &json!({"$uri": format!("file://{opened}")}).to_string()]);
    let output = editor.json(&["output"]);
    assert!(output["editors"].to_string().contains("total.js"), "{output}");
}
