//! Debug windows that VS Code itself opens: a reload is not a close, a close stops the MCP server after the grace.

use std::time::{Duration, Instant};

use devtether::cdp::{CdpClient, discover_endpoint, list_targets, open_connection};
use serde_json::{Value, json};

use super::host_editor::HostEditor;
use crate::support::{TEST_TIMEOUT, eventually};

const MANIFEST: &str = r#"{
    "name": "hello", "publisher": "test", "version": "0.0.1", "engines": {"vscode": "^1.100.0"},
    "main": "./extension.js", "activationEvents": ["onStartupFinished"]
}"#;

const LAUNCH: &str = r#"{"version": "0.2.0", "configurations": [{
    "type": "extensionHost", "request": "launch", "name": "Run Extension",
    "args": ["--extensionDevelopmentPath=${workspaceFolder}"]
}]}"#;

const FILES: [(&str, &str); 3] =
    [("package.json", MANIFEST), ("extension.js", "exports.activate = () => {};\n"), (".vscode/launch.json", LAUNCH)];

/// A reload takes some seconds; a test that proves that nothing happens waits for as long.
const GRACE: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_reload_of_the_last_debug_window_keeps_the_mcp_server_and_a_close_stops_it() {
    let settings = json!({"tether.closeGraceMs": GRACE.as_millis() as u64, "tether.connect": "onDemand"});
    let Some(editor) = HostEditor::start_for_debug_windows(settings, &FILES).await else { return };
    let server = editor.start_mcp_server().await;
    let port = editor.browser_port();
    editor.agent.ask("window_input", json!({"actions": [{"do": "press", "keys": "F5"}]})).await;
    let window = debug_window(port).await;
    editor.keep_screenshot("debug-window").await;

    reload(port, &window).await;
    assert_eq!(debug_window(port).await, window);
    // Nothing tells that nothing happens: the grace of a close would have passed by then.
    let until = Instant::now() + GRACE + Duration::from_secs(3);
    eventually("the grace has passed", || {
        assert_eq!(editor.mcp_server(), Some(server), "a reload has stopped the MCP server");
        (Instant::now() > until).then_some(())
    });

    let closed = Instant::now();
    browser_call(port, "Target.closeTarget", json!({"targetId": window})).await;
    eventually("the MCP server is stopped", || editor.mcp_server().is_none().then_some(()));
    assert!(closed.elapsed() >= GRACE, "stopped after {:?}", closed.elapsed());
    editor.close().await;
}

/// The id of the page of the debug window, once its workbench is there.
async fn debug_window(port: u16) -> String {
    let since = Instant::now();
    loop {
        let targets = list_targets(port).await.unwrap();
        let is_debugged = |title: &str| title.starts_with("[Extension Development Host]");
        if let Some(found) = targets.into_iter().find(|it| it.kind == "page" && is_debugged(&it.title)) {
            return found.id;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "no debug window opens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn browser_call(port: u16, method: &str, params: Value) -> Value {
    let client = connect_to_browser(port).await;
    let result = client.call_raw(None, method, &params, CALL_TIMEOUT).await.unwrap();
    client.close();
    serde_json::from_str(result.get()).unwrap()
}

async fn connect_to_browser(port: u16) -> CdpClient {
    let endpoint = discover_endpoint(port).await.unwrap();
    let (client, connection) = open_connection(port, &endpoint.path, CALL_TIMEOUT).await.unwrap();
    // Ends with the client.
    tokio::spawn(connection);
    client
}

/// Reloads a page, and waits until its document is another.
async fn reload(port: u16, target: &str) {
    let client = connect_to_browser(port).await;
    let attach = json!({"targetId": target, "flatten": true});
    let attached = client.call_raw(None, "Target.attachToTarget", &attach, CALL_TIMEOUT).await.unwrap();
    let attached: Value = serde_json::from_str(attached.get()).unwrap();
    let session = attached["sessionId"].as_str().unwrap();
    let origin = async || {
        let params = json!({"expression": "performance.timeOrigin + ' ' + document.title"});
        let result = client.call_raw(Some(session), "Runtime.evaluate", &params, CALL_TIMEOUT).await.ok()?;
        let result: Value = serde_json::from_str(result.get()).unwrap();
        result["result"]["value"].as_str().map(|it| it.split_once(' ').unwrap_or((it, "")).0.to_owned())
    };
    let before = origin().await.expect("the page has an age");
    client.call_raw(Some(session), "Page.reload", &json!({}), CALL_TIMEOUT).await.unwrap();
    let since = Instant::now();
    while origin().await.is_none_or(|now| now == before) {
        assert!(since.elapsed() < TEST_TIMEOUT, "the window is never reloaded");
    }
    client.close();
}
