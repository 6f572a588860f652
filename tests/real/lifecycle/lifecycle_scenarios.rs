//! Scenarios L1 and L2 on Chromium, Node and an Extension Development Host.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::VERSION;
use crate::support::mcp_client::McpClient;
use crate::support::requirements::has_code_server;
use crate::support::{NODE_SERVICE, Sandbox, is_alive};

/// A kind of window that shows its build: `probe` evaluates to the first line of `version.txt`.
struct Kind {
    sandbox: Sandbox,
    probe: &'static str,
    /// The source file that is edited.
    source: &'static str,
    /// Whether it may be `ready` before its page is loaded.
    is_browser: bool,
    /// The way in which an edit of the source is taken up.
    refreshed_by: &'static str,
}

fn chromium() -> Kind {
    let sandbox = Sandbox::new();
    sandbox.write("page.html", "<title>old</title>");
    let toml = format!(
        "[window]\nkind = 'browser'\nurl = 'file://{}/out/page.html'\n[build]\ncommand = ['sh', '-c', 'mkdir -p out && cp page.html out/']\n",
        sandbox.workspace.display().to_string().replace(' ', "%20")
    );
    sandbox.write("devtools.toml", &toml);
    sandbox.write(".devtoolsignore", "out/\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    Kind { sandbox, probe: "document.title", source: "page.html", is_browser: true, refreshed_by: "reload" }
}

fn node() -> Kind {
    let service =
        format!("{NODE_SERVICE}\nglobalThis.version = require('fs').readFileSync('out/version.txt', 'utf8');");
    let toml = "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['sh', '-c', 'mkdir -p out && cp version.txt out/']\n";
    let files =
        [("server.js", &*service), ("version.txt", "old"), ("devtools.toml", toml), (".devtoolsignore", "out/\n")];
    Kind {
        sandbox: Sandbox::with(&files),
        probe: "version",
        source: "version.txt",
        is_browser: false,
        refreshed_by: "relaunch",
    }
}

/// The extension under development shows its version in the status bar, where the page can be evaluated.
fn extension_development_host() -> Option<Kind> {
    if !has_code_server() {
        return None;
    }
    let manifest = json!({
        "name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./out/extension.js", "activationEvents": ["onStartupFinished"],
    });
    let source = r#"
const vscode = require("vscode");
exports.activate = () => {
    const item = vscode.window.createStatusBarItem();
    item.text = "version:" + require("fs").readFileSync(__dirname + "/version.txt", "utf8");
    item.show();
};"#;
    let toml = "[window]\nkind = 'web-extension-host'\n[build]\ncommand = ['sh', '-c', 'mkdir -p out && cp extension.js version.txt out/']\n";
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest.to_string()),
        ("extension.js", source),
        ("version.txt", "old"),
        ("devtools.toml", toml),
        (".devtoolsignore", "out/\n"),
    ]);
    Some(Kind {
        sandbox,
        probe: VERSION,
        source: "version.txt",
        is_browser: false,
        refreshed_by: "restartExtensionHost",
    })
}

impl Kind {
    /// The status of the window once it is started and shows the expected version.
    async fn started(&self, agent: &McpClient) -> Value {
        let started = agent.call("window_start", json!({})).await;
        if self.is_browser { self.sandbox.arrived() } else { started }
    }

    async fn version(&self, agent: &McpClient) -> Value {
        agent.call("window_evaluate", json!({"expression": self.probe, "timeoutMs": 60_000})).await
    }
}

/// L1: an editor closes the front end's stdin → it exits soon → the window stays → the next front end's first operation
/// on the page goes to the same window.
async fn front_end_restarts(kind: Kind) {
    let agent = McpClient::start(&kind.sandbox).await;
    let started = kind.started(&agent).await;
    assert_eq!(kind.version(&agent).await["value"], "old");
    let left = Instant::now();
    assert!(agent.leave().await.success());
    assert!(left.elapsed() < Duration::from_secs(10), "it took {:?} to end", left.elapsed());
    assert!(is_alive(started["pid"].as_u64().unwrap() as u32));

    let agent = McpClient::start(&kind.sandbox).await;
    let evaluated = kind.version(&agent).await;
    assert_eq!((&evaluated["value"], evaluated.get("refreshed")), (&json!("old"), None));
    let status = agent.call("window_status", json!({})).await;
    for fact in ["pid", "launchId", "startedAt", "generation"] {
        assert_eq!(status[fact], started[fact], "{fact}");
    }
    agent.leave().await;
}

/// L2: a tracked file is saved → the next operation on the page builds, refreshes the window, and runs in it; its result
/// names the file; session.json describes the window of now.
async fn source_changes(kind: Kind) {
    let agent = McpClient::start(&kind.sandbox).await;
    let started = kind.started(&agent).await;
    assert_eq!(kind.version(&agent).await["value"], "old");
    kind.sandbox
        .write(kind.source, &std::fs::read_to_string(kind.sandbox.path(kind.source)).unwrap().replace("old", "new"));
    let changes = agent.call("window_changes", json!({})).await;
    assert_eq!((&changes["stale"], &changes["newest"]["path"]), (&json!(true), &json!(kind.source)));
    assert_eq!(agent.call("window_status", json!({})).await["pid"], started["pid"], "looking relaunches nothing");

    let evaluated = kind.version(&agent).await;
    assert_eq!(evaluated["value"], "new");
    assert_eq!(evaluated["refreshed"]["because"], format!("{} was modified", kind.source));
    assert!(evaluated["refreshed"]["launchMs"].as_u64().unwrap() > 0);
    let status = kind.sandbox.once_it_answers(agent.call("window_status", json!({})).await);
    let session = kind.sandbox.session().unwrap();
    assert_eq!((&status["state"], &status["stale"]), (&json!("ready"), &json!(false)));
    assert_eq!((&session["electronPid"], &session["cdpPort"]), (&status["pid"], &status["cdpPort"]));
    assert_eq!(session["debugWindowStartedAt"], status["startedAt"]);
    assert!(status["startedAt"].as_u64() > started["startedAt"].as_u64());
    assert_eq!(evaluated["refreshed"]["by"], kind.refreshed_by, "{evaluated:#} {status:#}");
    let is_old_alive = is_alive(started["pid"].as_u64().unwrap() as u32);
    assert_eq!(is_old_alive, kind.refreshed_by != "relaunch", "the old window is gone where it was relaunched");
    agent.leave().await;
}

#[tokio::test]
async fn front_end_restarts_chromium() {
    front_end_restarts(chromium()).await;
}

#[tokio::test]
async fn front_end_restarts_node() {
    front_end_restarts(node()).await;
}

#[tokio::test]
async fn front_end_restarts_extension_development_host() {
    if let Some(kind) = extension_development_host() {
        front_end_restarts(kind).await;
    }
}

#[tokio::test]
async fn source_changes_chromium() {
    source_changes(chromium()).await;
}

#[tokio::test]
async fn source_changes_node() {
    source_changes(node()).await;
}

#[tokio::test]
async fn source_changes_extension_development_host() {
    if let Some(kind) = extension_development_host() {
        source_changes(kind).await;
    }
}
