//! A window with an extension under development: ready when the extension is loaded; its editors and its console.

use serde_json::{Value, json};

use super::find;
use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};
use crate::support::palette::{run_in_palette, until};
use crate::support::requirements::{has_code_server, has_program};

const EXTENSION: &str = r#"
const vscode = require("vscode");
exports.activate = async (context) => {
    await new Promise((done) => setTimeout(done, 300));
    const output = vscode.window.createOutputChannel("Probe");
    context.subscriptions.push(output, vscode.commands.registerCommand("probe.greet", async () => {
        console.log("command run in the extension host");
        output.show(true);
        await vscode.window.showTextDocument(vscode.Uri.joinPath(context.extensionUri, "shown.js"));
        vscode.window.showInformationMessage("Greetings, agent", "Accept", "Decline");
    }));
};"#;

fn manifest(changes: Value) -> String {
    let mut manifest = json!({
        "name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["onStartupFinished"],
        "contributes": {"commands": [{"command": "probe.greet", "title": "Probe: Greet"}]},
    });
    let changes = changes.as_object().unwrap().clone();
    manifest.as_object_mut().unwrap().extend(changes);
    manifest.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    manifest.to_string()
}

fn sandbox_of(manifest: &str, script: &str) -> Sandbox {
    let toml = "[window]\nkind = 'web-extension-host'\n";
    Sandbox::with(&[("package.json", manifest), ("extension.js", script), ("devtools.toml", toml)])
}

fn notes(reported: &Value) -> String {
    reported["notes"].to_string()
}

/// Opens the palette and runs a command as soon as it is typed, whatever the palette shows by then.
fn greet_at_once() -> Value {
    json!({"actions": [
        {"do": "press", "keys": "F1"}, {"do": "wait", "text": "Type the name of a command"},
        {"do": "type", "text": "Probe: Greet"}, {"do": "press", "keys": "Enter"},
        {"do": "wait", "text": "Greetings, agent", "timeoutMs": 30000},
    ]})
}

#[tokio::test]
async fn the_first_command_after_the_start_is_the_extensions_own() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let sandbox = sandbox_of(&manifest(json!({})), EXTENSION);
    sandbox.write("shown.js", "function first() {\n    return \"a\\\"b\";\n}\n");
    let agent = McpClient::start(&sandbox).await;
    let started = agent.call("window_start", json!({})).await;
    assert!(!notes(&started).contains("not loaded"), "{started:#}");
    let acted = agent.ask("window_input", greet_at_once()).await;
    assert_ne!(acted.is_error, Some(true), "{}", text(&acted));

    // What an editor and the output panel show is in the snapshot; so is the notification.
    for line in ["1 \"function first() {\"", r#"2 "    return \"a\\\"b\";""#, "alert \"Info: Greetings, agent\""] {
        until(&agent, "window_snapshot", json!({}), line).await;
    }
    // With the flag that such a window needs, VS Code shows no notification by itself.
    click_element(&agent, "button \"Notifications\"").await;
    for line in ["button \"Accept\"", "button \"Decline\""] {
        until(&agent, "window_snapshot", json!({}), line).await;
    }
    // What an extension writes goes through a native module that code-server brings as source only: another channel.
    click_element(&agent, "option \"Window\"").await;
    let shown = until(&agent, "window_snapshot", json!({}), "textbox \"Window - Output\"").await;
    let panel = shown.split("Window - Output\"").nth(1).unwrap_or_else(|| panic!("{shown}"));
    // The newest lines, without numbers.
    assert!(panel.lines().skip(1).take(4).any(|line| line.trim_start().starts_with('"')), "{shown}");
    // The console holds the extension's messages; VS Code's own are shown on request.
    let console = until(&agent, "window_console", json!({"limit": 200}), "command run in the extension host").await;
    for other in ["[AgentHost", "Creating a socket", "spdlog", "open-vsx"] {
        assert!(!console.contains(other), "{other} is in\n{console}");
    }
    until(&agent, "window_console", json!({"limit": 200, "filter": "workbench"}), "Creating a socket").await;
    agent.leave().await;
}

/// Clicks on the element of a line of the snapshot, again where it was drawn anew between the snapshot and the click.
async fn click_element(agent: &McpClient, words: &str) {
    for _ in 0..10 {
        let shown = text(&agent.ask("window_snapshot", json!({})).await);
        let click = json!({"actions": [{"do": "click", "ref": find(&shown, words)}]});
        if agent.ask("window_input", click).await.is_error != Some(true) {
            return;
        }
    }
    panic!("{words} cannot be clicked on");
}

#[tokio::test]
async fn the_answer_says_what_an_extension_that_is_not_loaded_waits_for() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let sandbox = sandbox_of(&manifest(json!({"engines": {"vscode": "^99.0.0"}})), EXTENSION);
    let agent = McpClient::start(&sandbox).await;
    let started = agent.call("window_start", json!({})).await;
    assert!(notes(&started).contains("extension not loaded yet: the extension host has not registered"), "{started:#}");
    let looked = agent.call("window_evaluate", json!({"expression": "1"})).await;
    assert!(notes(&looked).contains("extension not loaded yet"), "{looked:#}");

    sandbox.write("package.json", &manifest(json!({})));
    sandbox.write("extension.js", "exports.activate = () => new Promise(() => {});");
    let restarted = agent.call("window_restart", json!({})).await;
    assert!(
        restarted["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| { note == "extension not loaded yet: the activation of \"devtether.probe\" has not ended" }),
        "{restarted:#}"
    );

    std::fs::remove_file(sandbox.path("extension.js")).unwrap();
    let restarted = agent.call("window_restart", json!({})).await;
    assert!(notes(&restarted).contains("./extension.js\\\", does not exist"), "{restarted:#}");

    // An activation that has failed has ended.
    sandbox.write("extension.js", "exports.activate = () => { throw new Error('no such luck'); };");
    let restarted = agent.call("window_restart", json!({})).await;
    assert!(!notes(&restarted).contains("not loaded"), "{restarted:#}");
    until(&agent, "window_console", json!({"filter": "no such luck"}), "Activating extension").await;

    // In a profile that is kept there is none of ours, and nothing is waited for that is known not to come.
    sandbox.write("devtools.toml", "[window]\nkind = 'web-extension-host'\nprofile = '.devtools/profile'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    agent.call("window_restart", json!({})).await;
    let refused = text(&agent.ask("window_output", json!({})).await);
    assert!(refused.contains("tether's own extension (devtether.tether) is not in it"), "{refused}");
    assert!(refused.contains("`profile` in devtools.toml"), "{refused}");
    agent.leave().await;
}

/// VS Code looks for the files itself, which takes a while after the registration.
#[test]
fn an_extension_that_is_activated_by_a_file_of_the_workspace_is_loaded_when_it_is() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let script = |version: &str| {
        format!(
            "exports.activate = async () => {{
                await new Promise((done) => setTimeout(done, 500));
                require('vscode').window.setStatusBarMessage('VERSION {version}');
            }};"
        )
    };
    let shown = "document.querySelector('.statusbar').textContent.match(/VERSION (\\d)/)?.[1]";
    let found = manifest(json!({"activationEvents": ["workspaceContains:marker.*"]}));
    let sandbox = sandbox_of(&found, &script("1"));
    sandbox.write("marker.txt", "");
    let started = sandbox.json(&["start"]);
    assert!(!notes(&started).contains("not loaded"), "{started:#}");
    assert_eq!(sandbox.json(&["evaluate", shown])["value"], json!("1"));
    for version in ["2", "3", "4"] {
        sandbox.write("extension.js", &script(version));
        assert_eq!(sandbox.json(&["evaluate", shown])["value"], json!(version));
    }

    // No file of the workspace activates it: nothing is waited for.
    sandbox.write("package.json", &manifest(json!({"activationEvents": ["workspaceContains:missing.*"]})));
    let restarted = sandbox.json(&["restart"]);
    assert!(!notes(&restarted).contains("not loaded"), "{restarted:#}");
    assert_eq!(sandbox.json(&["evaluate", shown])["value"], Value::Null);
}

#[tokio::test]
async fn a_web_extension_runs_in_a_window() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let web = json!({"main": null, "browser": "./extension.js"});
    let script = r#"
        const vscode = require("vscode");
        exports.activate = (context) => context.subscriptions.push(vscode.commands.registerCommand("probe.greet",
            () => vscode.window.showInformationMessage(`Greetings from ${typeof process} in a worker`)));"#;
    let sandbox = sandbox_of(&manifest(web), script);
    let launch = json!({"configurations": [{
        "name": "Web", "type": "extensionHost", "debugWebWorkerHost": true, "request": "launch",
        "args": ["--extensionDevelopmentPath=${workspaceFolder}", "--extensionDevelopmentKind=web"],
    }]});
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    let agent = McpClient::start(&sandbox).await;
    let started = agent.call("window_start", json!({})).await;
    assert!(notes(&started).contains("`debugWebWorkerHost` is not honoured"), "{started:#}");
    assert!(notes(&started).contains("it runs in a web worker"), "{started:#}");
    run_in_palette(&agent, "Probe: Greet", "Greetings from undefined in a worker").await;
    agent.leave().await;
}
