//! The page tools beside chrome-devtools-mcp and beside raw CDP calls: the same Chromium, the same moments.
//!
//! `cargo bench --bench page [-- RUNS]`. A plain harness, not criterion: each sample of ours is followed by one of theirs,
//! and what counts is the ratio of the medians. Both servers are asked over MCP on stdio; the raw CDP client keeps one
//! WebSocket open, as ours does. Needs what `cargo xtask tools` installs.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use devtether::window::page::{PageConnection, evaluate_on_page};
use serde_json::{Value, json};
use tether_cdp::CdpClient as Cdp;
use tether_cdp::types::{AttachToTarget, CaptureScreenshot, Evaluate, GetTargets};

use client::{Client, median};

mod client;

const SECONDS: Duration = Duration::from_secs(30);

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let tools = tether_base::xdg::data_dir().unwrap().join("tools");
    let peer = tools.join("chrome-devtools-mcp/node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js");
    assert!(peer.is_file(), "{} is missing: run `cargo xtask tools`", peer.display());

    let workbench = Sandbox::workbench();
    let window = workbench.start();
    let mut us = Client::start(&mut workbench.command(&["mcp"]));
    let mut them = Client::start(&mut peer_on(&peer, window));
    them.ask("tools/call", json!({"name": "list_pages", "arguments": {}}));
    wait_for_text(&mut us, "tree \"Files Explorer\"");
    snapshots(&mut us, &mut them, runs);
    raw(&mut us, window, runs);
    first_calls(&workbench, &peer, window, runs.min(7));
    drop((us, them));

    let form = Sandbox::form();
    let window = form.start();
    let mut us = Client::start(&mut form.command(&["mcp"]));
    let mut them = Client::start(&mut peer_on(&peer, window));
    inputs(&mut us, &mut them, runs.min(7));
}

fn peer_on(peer: &PathBuf, port: u16) -> Command {
    let mut command = Command::new("node");
    command.arg(peer).args(["--browserUrl", &format!("http://127.0.0.1:{port}"), "--no-usage-statistics"]);
    command
}

/// A VS Code workbench as text.
fn snapshots(us: &mut Client, them: &mut Client, runs: usize) {
    let (mut ours, mut theirs, mut bytes) = (vec![], vec![], (0, 0));
    for _ in 0..runs {
        let (took, reported) = us.call("window_snapshot", json!({}));
        ours.push(took);
        bytes.0 = text_of(&reported).len();
        let (took, reported) = them.call("take_snapshot", json!({"pageId": 1}));
        theirs.push(took);
        bytes.1 = text_of(&reported).len();
    }
    tell("snapshot of a workbench", median(ours), "take_snapshot", median(theirs), 0.5);
    println!("  bytes: {} to {}, ratio {:.2} (goal ≤ 0.5)", bytes.0, bytes.1, bytes.0 as f64 / bytes.1 as f64);
}

/// What the way through front end and supervisor adds to a call of CDP.
fn raw(us: &mut Client, port: u16, runs: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (client, session) = runtime.block_on(attach(port));
    let evaluate = Evaluate { expression: "document.title".into(), return_by_value: true, ..Evaluate::default() };
    let shot = CaptureScreenshot { format: "png", optimize_for_speed: true, ..CaptureScreenshot::default() };
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..runs * 10 {
        ours.push(us.call("window_evaluate", json!({"expression": "document.title"})).0);
        let begun = Instant::now();
        runtime.block_on(client.call(Some(&session), &evaluate, SECONDS)).unwrap();
        theirs.push(begun.elapsed());
    }
    tell("evaluate over MCP", median(ours), "raw CDP", median(theirs), 1.2);
    let (mut ours, mut theirs) = (vec![], vec![]);
    let page = runtime.block_on(PageConnection::open(port)).unwrap();
    for _ in 0..runs * 10 {
        let begun = Instant::now();
        runtime.block_on(evaluate_on_page(&page, "document.title", SECONDS, None)).unwrap();
        ours.push(begun.elapsed());
        let begun = Instant::now();
        runtime.block_on(client.call(Some(&session), &evaluate, SECONDS)).unwrap();
        theirs.push(begun.elapsed());
    }
    tell("evaluate in the supervisor", median(ours), "raw CDP", median(theirs), 1.2);
    drop(page);
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..runs {
        ours.push(us.call("window_screenshot", json!({})).0);
        let begun = Instant::now();
        runtime.block_on(client.call(Some(&session), &shot, SECONDS)).unwrap();
        theirs.push(begun.elapsed());
    }
    tell("screenshot", median(ours), "raw CDP", median(theirs), 1.2);
    client.close();
}

async fn attach(port: u16) -> (Cdp, String) {
    let endpoint = tether_cdp::discover_endpoint(port).await.unwrap();
    let (client, connection) = tether_cdp::open_connection(port, &endpoint.path, SECONDS).await.unwrap();
    tokio::spawn(connection);
    let targets = client.call(None, &GetTargets {}, SECONDS).await.unwrap().target_infos;
    let target_id = targets.into_iter().find(|it| it.kind == "page").unwrap().target_id;
    let attached = client.call(None, &AttachToTarget { target_id, flatten: true }, SECONDS).await.unwrap();
    (client, attached.session_id)
}

/// exec → initialize → the first value of an expression.
fn first_calls(sandbox: &Sandbox, peer: &PathBuf, port: u16, runs: usize) {
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..runs {
        let begun = Instant::now();
        Client::start(&mut sandbox.command(&["mcp"])).call("window_evaluate", json!({"expression": "1 + 1"}));
        ours.push(begun.elapsed());
        let begun = Instant::now();
        let mut them = Client::start(&mut peer_on(peer, port));
        them.call("evaluate_script", json!({"pageId": 1, "function": "() => 1 + 1"}));
        theirs.push(begun.elapsed());
    }
    tell("first evaluate from exec", median(ours), "the peer's", median(theirs), 0.1);
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..runs {
        let begun = Instant::now();
        Client::start(&mut sandbox.command(&["mcp"])).call("window_screenshot", json!({}));
        ours.push(begun.elapsed());
        let begun = Instant::now();
        Client::start(&mut peer_on(peer, port)).call("take_screenshot", json!({"pageId": 1}));
        theirs.push(begun.elapsed());
    }
    tell("first screenshot from exec", median(ours), "the peer's", median(theirs), 0.1);
}

/// Ten actions: five clicks, five keys.
fn inputs(us: &mut Client, them: &mut Client, runs: usize) {
    let tree = text(us, "window_snapshot", json!({}));
    let button = tree
        .lines()
        .find(|line| line.contains("button \"Count\""))
        .unwrap()
        .trim()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    let tree = text(them, "take_snapshot", json!({"pageId": 1}));
    let line = tree.lines().find(|line| line.contains("button \"Count\"")).unwrap();
    let uid = line.trim().split(' ').next().unwrap().trim_start_matches("uid=").to_owned();
    let click = json!({"do": "click", "ref": button});
    let key = json!({"do": "press", "keys": "a"});
    let actions: Vec<&Value> = [&click, &key].into_iter().cycle().take(10).collect();
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..runs {
        ours.push(us.call("window_input", json!({"actions": actions})).0);
        let begun = Instant::now();
        for _ in 0..5 {
            them.call("click", json!({"pageId": 1, "uid": uid}));
            them.call("press_key", json!({"pageId": 1, "key": "a"}));
        }
        theirs.push(begun.elapsed());
    }
    tell("ten inputs in one call", median(ours), "ten calls of the peer", median(theirs), 0.4);
    let counted = text(us, "window_evaluate", json!({"expression": "[clicks, keys]"}));
    let each = 5 * runs * 2;
    assert_eq!(counted, format!("[{each},{each}]"), "both have really clicked and typed");
}

/// What an agent reads.
fn text_of(result: &Value) -> String {
    result["content"].as_array().unwrap().iter().filter_map(|it| it["text"].as_str()).collect()
}

fn tell(what: &str, ours: Duration, other: &str, theirs: Duration, goal: f64) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what}: {ours:.2?}, {other} {theirs:.2?}, ratio {ratio:.2} (goal ≤ {goal})");
}

fn text(server: &mut Client, tool: &str, arguments: Value) -> String {
    text_of(&server.call(tool, arguments).1)
}

fn wait_for_text(server: &mut Client, words: &str) {
    let since = Instant::now();
    while !text(server, "window_snapshot", json!({})).contains(words) {
        assert!(since.elapsed() < SECONDS * 2, "{words:?} never shows");
    }
}

/// A workspace with a window; stopped at the end.
struct Sandbox {
    home: tempfile::TempDir,
    workspace: PathBuf,
}

impl Sandbox {
    fn with(files: &[(&str, &str)]) -> Sandbox {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        for (name, text) in files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        let sandbox = Sandbox { home, workspace };
        sandbox.tether(&["trust", "--yes"]);
        sandbox
    }

    /// A real VS Code with a few files.
    fn workbench() -> Sandbox {
        let manifest = json!({
            "name": "bench", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
            "main": "./extension.js", "activationEvents": ["onStartupFinished"],
        });
        Sandbox::with(&[
            ("package.json", &manifest.to_string()),
            ("extension.js", "exports.activate = () => {};"),
            ("README.md", "# Bench\n"),
            ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
        ])
    }

    /// A button that counts.
    fn form() -> Sandbox {
        let page = "data:text/html,<title>form</title><button onclick='clicks++'>Count</button><script>clicks = 0; keys = 0; onkeydown = () => keys++</script>";
        Sandbox::with(&[("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = \"{page}\"\n"))])
    }

    /// Its CDP port.
    fn start(&self) -> u16 {
        self.tether(&["start", "--json"])["cdpPort"].as_u64().unwrap() as u16
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        command.args(arguments).current_dir(&self.workspace);
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "")] {
            command.env(name, self.home.path().join(folder));
        }
        command
    }

    fn tether(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.tether(&["stop"]);
        self.tether(&["shutdown"]);
    }
}
