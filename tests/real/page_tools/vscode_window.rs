//! A real Extension Development Host, driven by MCP alone: palette, notification, webview, log.

use serde_json::json;

use super::find;
use crate::support::requirements::{has_code_server, has_program};

use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};
use crate::support::palette::{choose_in_palette, run_in_palette, until};

const EXTENSION: &str = r#"
const vscode = require("vscode");
exports.activate = (context) => {
    context.subscriptions.push(vscode.commands.registerCommand("probe.greet", () => {
        console.log("command run in the extension host");
        vscode.window.showInformationMessage("Greetings, agent");
        const panel = vscode.window.createWebviewPanel("probe", "Probe", vscode.ViewColumn.One, { enableScripts: true });
        panel.webview.html = `<body><h1>Inside</h1><button>Press me</button><script>
            const button = document.querySelector("button");
            button.onclick = () => { console.log("pressed in the webview"); button.textContent = "Pressed"; };
        </script></body>`;
    }));
};"#;

#[tokio::test]
async fn an_agent_runs_a_command_and_reads_notification_webview_and_log() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let manifest = json!({
        "name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["onStartupFinished"],
        "contributes": {"commands": [{"command": "probe.greet", "title": "Probe: Greet"}]},
    });
    let toml = "[window]\nkind = 'web-extension-host'\n";
    let sandbox =
        Sandbox::with(&[("package.json", &manifest.to_string()), ("extension.js", EXTENSION), ("devtools.toml", toml)]);
    let agent = McpClient::start(&sandbox).await;
    agent.call("window_start", json!({})).await;
    until(&agent, "window_snapshot", json!({}), "tree \"Files Explorer\"").await;

    run_in_palette(&agent, "Probe: Greet", "Greetings, agent").await;
    // VS Code hides the notification after some seconds, which the webview may take to load.
    let shown = agent.ask("window_snapshot", json!({})).await;
    assert!(text(&shown).contains("Greetings, agent"), "{shown:?}");
    assert!(shown.structured_content.as_ref().unwrap().to_string().contains("Greetings, agent"), "{shown:?}");
    let run = json!({"actions": [{"do": "wait", "text": "Press me", "timeoutMs": 60000}], "snapshot": true});
    let acted = agent.ask("window_input", run).await;
    let reported = text(&acted);
    assert_ne!(acted.is_error, Some(true), "{reported}");
    let structured = acted.structured_content.as_ref().unwrap();
    for snapshot in [&reported, structured["snapshot"].as_str().unwrap()] {
        assert!(snapshot.contains("heading \"Inside\""), "{snapshot}");
    }

    // The webview is a frame within a frame of another origin.
    let button = find(&reported[reported.find("page \"").unwrap()..], "Press me");
    let pressed =
        json!({"actions": [{"do": "click", "ref": button}, {"do": "wait", "text": "Pressed"}], "snapshot": true});
    let reported = text(&agent.ask("window_input", pressed).await);
    assert!(reported.contains(&format!("{button} button \"Pressed\"")), "{reported}");
    until(&agent, "window_console", json!({"filter": "pressed in the webview"}), "[log] pressed").await;
    let log = until(&agent, "window_console", json!({"filter": "extensionHost"}), "command run in").await;
    assert!(log.contains("[extensionHost log] command run in the extension host"), "{log}");
    let network = text(&agent.ask("window_network", json!({"filter": "failed"})).await);
    assert!(network.contains("cursor "), "{network}");

    // A reload starts another extension host, whose console is read too.
    let reload = choose_in_palette(&agent, "Developer: Reload Window").await;
    agent.ask("window_input", json!({"actions": [{"do": "click", "ref": reload}]})).await;
    let cursor = agent.call("window_console", json!({"limit": 1})).await["cursor"].clone();
    until(&agent, "window_snapshot", json!({}), "tree \"Files Explorer\"").await;
    run_in_palette(&agent, "Probe: Greet", "Greetings, agent").await;
    until(
        &agent,
        "window_console",
        json!({"since": cursor, "filter": "command run in", "limit": 1000}),
        "extensionHost log",
    )
    .await;
    agent.leave().await;
}
