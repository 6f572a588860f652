//! Debug windows that VS Code itself opens: a close stops the MCP server after the grace, if no other window was opened.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tether_cdp::{CdpClient, discover_endpoint, open_connection};

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

/// VS Code takes some seconds to start a session; a test that proves that nothing happens waits for as long.
const GRACE: Duration = Duration::from_secs(15);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether the workbench has a debug session, from its view of call stacks and its debug toolbar.
const SESSION_STATE: &str = "(() => {
    const calls = document.querySelector('.debug-call-stack')?.innerText ?? '';
    if (calls.includes('Running')) return 'running';
    const toolbar = document.querySelector('.debug-toolbar');
    return calls.trim() || toolbar?.getBoundingClientRect().width > 0 ? 'starting or ending' : 'none';
})()";

/// VS Code in a browser ends the session of a window that is reloaded, or attaches it again, as it comes: what happens after a
/// reload is up to it. So the window is closed, and replaced by the user.
#[tokio::test]
async fn a_debug_window_that_is_replaced_keeps_the_mcp_server_and_a_close_stops_it() {
    let settings = json!({
        "tether.closeGraceMs": GRACE.as_millis() as u64,
        "tether.connect": "onDemand",
        "debug.openDebug": "openOnSessionStart",
    });
    let Some(editor) = HostEditor::start_for_debug_windows(settings, &FILES).await else { return };
    let server = editor.start_mcp_server().await;
    let port = editor.browser_port();
    let workbench = Workbench::attach(port).await;

    let window = start_debugging(&workbench, port).await;
    editor.keep_screenshot("debug-window").await;
    close_debug_window(&workbench, &window).await;
    let closed = Instant::now();
    let window = start_debugging(&workbench, port).await;
    // Nothing tells that nothing happens: the grace of the close would have passed by then.
    while closed.elapsed() < GRACE + Duration::from_secs(3) {
        assert_eq!(editor.mcp_server(), Some(server), "the MCP server was stopped though the window was replaced");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let closed = Instant::now();
    close_debug_window(&workbench, &window).await;
    eventually("the MCP server is stopped", || editor.mcp_server().is_none().then_some(()));
    assert!(closed.elapsed() >= GRACE, "stopped after {:?}", closed.elapsed());
    editor.close().await;
}

/// Starts the debug window, and waits until its session runs; the id of its page.
async fn start_debugging(workbench: &Workbench, port: u16) -> String {
    workbench.press_f5().await;
    let window = listed_page(port, |page| page.title.starts_with("[Extension Development Host]")).await.id;
    workbench.wait_until_session("running").await;
    window
}

/// Closes a debug window, and waits until VS Code has ended its session.
async fn close_debug_window(workbench: &Workbench, window: &str) {
    workbench.client.call_raw(None, "Target.closeTarget", &json!({"targetId": window}), CALL_TIMEOUT).await.unwrap();
    workbench.wait_until_session("none").await;
}

/// The page of the editor.
struct Workbench {
    client: CdpClient,
    session: String,
}

impl Workbench {
    /// The only page of the browser.
    async fn attach(port: u16) -> Workbench {
        let page = listed_page(port, |_| true).await;
        let endpoint = discover_endpoint(port).await.unwrap();
        let (client, connection) = open_connection(port, &endpoint.path, CALL_TIMEOUT).await.unwrap();
        // Ends with the client.
        tokio::spawn(connection);
        let attach = json!({"targetId": page.id, "flatten": true});
        let attached = client.call_raw(None, "Target.attachToTarget", &attach, CALL_TIMEOUT).await.unwrap();
        let attached: Value = serde_json::from_str(attached.get()).unwrap();
        Workbench { client, session: attached["sessionId"].as_str().unwrap().to_owned() }
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let result = self.client.call_raw(Some(&self.session), method, &params, CALL_TIMEOUT).await.unwrap();
        serde_json::from_str(result.get()).unwrap()
    }

    async fn press_f5(&self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let key = json!({"type": kind, "key": "F5", "code": "F5", "windowsVirtualKeyCode": 116});
            self.call("Input.dispatchKeyEvent", key).await;
        }
    }

    /// Waits for this state of its debug session.
    async fn wait_until_session(&self, state: &str) {
        let since = Instant::now();
        loop {
            let shown = self.call("Runtime.evaluate", json!({"expression": SESSION_STATE})).await;
            if shown["result"]["value"] == state {
                return;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "the debug session is never {state}: {shown}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
