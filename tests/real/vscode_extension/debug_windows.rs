//! Debug windows that VS Code itself opens: a reload is not a close, a close stops the MCP server after the grace.

use std::time::{Duration, Instant};

use devtether::cdp::{CdpClient, discover_endpoint, list_targets, open_connection};
use devtether::clock::now_ms;
use serde_json::{Value, json};

use super::host_editor::HostEditor;
use crate::listed_page::listed_page;
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
/// How late the editor's debug toolbar may be hidden after the end of a session.
const TOOLBAR_DELAY: Duration = Duration::from_secs(1);

/// Records in the editor's page when its debug toolbar is hidden after it was shown, in milliseconds since 1970.
const RECORD_TOOLBAR: &str = "globalThis.toolbarHiddenAt = 0;
    let wasShown = false;
    setInterval(() => {
        const isShown = document.querySelector('.debug-toolbar')?.getBoundingClientRect().width > 0;
        if (wasShown && !isShown) globalThis.toolbarHiddenAt ||= Date.now();
        wasShown ||= isShown;
    }, 20);";

#[tokio::test]
async fn a_reload_of_the_last_debug_window_keeps_the_mcp_server_and_a_close_stops_it() {
    let settings = json!({"tether.closeGraceMs": GRACE.as_millis() as u64, "tether.connect": "onDemand"});
    let Some(editor) = HostEditor::start_for_debug_windows(settings, &FILES).await else { return };
    let server = editor.start_mcp_server().await;
    let port = editor.browser_port();
    editor.agent.ask("window_input", json!({"actions": [{"do": "press", "keys": "F5"}]})).await;
    let window = debug_window(port).await;
    editor.keep_screenshot("debug-window").await;

    let page = Page::attach(port, &other_page(port, &window).await).await;
    page.evaluate(RECORD_TOOLBAR).await.unwrap();
    // On a busy machine, VS Code itself may end the session of a window that is reloaded: the grace begins then.
    let ended_at = async || page.evaluate("toolbarHiddenAt").await?.as_u64().filter(|at| *at > 0);
    reload(port, &window).await;
    assert_eq!(debug_window(port).await, window);
    // Nothing tells that nothing happens: the grace of a close would have passed by then.
    let until = Instant::now() + GRACE + Duration::from_secs(3);
    while Instant::now() < until && ended_at().await.is_none() {
        assert_eq!(editor.mcp_server(), Some(server), "a reload has stopped the MCP server");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let closed = now_ms();
    browser_call(port, "Target.closeTarget", json!({"targetId": window})).await;
    eventually("the MCP server is stopped", || editor.mcp_server().is_none().then_some(()));
    let elapsed = Duration::from_millis(now_ms() - ended_at().await.unwrap_or(closed).min(closed));
    assert!(elapsed + TOOLBAR_DELAY >= GRACE, "stopped after {elapsed:?}");
    editor.close().await;
}

/// The id of the page of the debug window, once its workbench is there.
async fn debug_window(port: u16) -> String {
    listed_page(port, |page| page.title.starts_with("[Extension Development Host]")).await.id
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

/// The id of the page that is not this one.
async fn other_page(port: u16, target: &str) -> String {
    let targets = list_targets(port).await.unwrap();
    targets.into_iter().find(|it| it.kind == "page" && it.id != target).expect("the editor has a page").id
}

/// A session in a page.
struct Page {
    client: CdpClient,
    session: String,
}

impl Page {
    async fn attach(port: u16, target: &str) -> Page {
        let client = connect_to_browser(port).await;
        let attach = json!({"targetId": target, "flatten": true});
        let attached = client.call_raw(None, "Target.attachToTarget", &attach, CALL_TIMEOUT).await.unwrap();
        let attached: Value = serde_json::from_str(attached.get()).unwrap();
        Page { client, session: attached["sessionId"].as_str().unwrap().to_owned() }
    }

    async fn call(&self, method: &str, params: Value) -> Option<Value> {
        let result = self.client.call_raw(Some(&self.session), method, &params, CALL_TIMEOUT).await.ok()?;
        Some(serde_json::from_str(result.get()).unwrap())
    }

    /// The value of an expression; `None` while the page has none.
    async fn evaluate(&self, expression: &str) -> Option<Value> {
        let mut result = self.call("Runtime.evaluate", json!({"expression": expression})).await?;
        Some(result["result"]["value"].take())
    }
}

/// Reloads a page, and waits until its document is another.
async fn reload(port: u16, target: &str) {
    let page = Page::attach(port, target).await;
    let origin = async || page.evaluate("performance.timeOrigin").await.filter(|it| !it.is_null());
    let before = origin().await.expect("the page has an age");
    page.call("Page.reload", json!({})).await.unwrap();
    let since = Instant::now();
    while origin().await.is_none_or(|now| now == before) {
        assert!(since.elapsed() < TEST_TIMEOUT, "the window is never reloaded");
    }
    page.client.close();
}
