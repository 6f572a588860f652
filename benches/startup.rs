//! What a front end and a supervisor cost: time from exec, time from a kill, memory; each beside a peer, interleaved.
//!
//! `cargo bench --bench startup [-- RUNS]`. A plain harness, not criterion: what counts are whole processes, and ratios
//! between two that meet the same moments of the machine. The bare rmcp server is this very program, called again.
//! Set `PEER_MCP` to the command line of another stdio MCP server (chrome-devtools-mcp, say) to measure its list, too.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::{Client, bare, median};

mod client;

fn main() {
    if bare::is_called() {
        return bare::serve();
    }
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100);
    let sandbox = Sandbox::new();
    sandbox.tether(&["trust", "--yes"]);
    let started = sandbox.tether(&["start", "--json"]);
    println!("window: {}", started["state"]);
    from_exec(&sandbox, runs);
    from_kill(&sandbox, runs.min(40));
    memory(&sandbox);
    size();
}

/// exec → initialize → tools/list → window_status of a living window.
fn from_exec(sandbox: &Sandbox, runs: usize) {
    let ours = || sandbox.command(&["mcp"]);
    let (mut us, mut them) = (vec![], vec![]);
    for _ in 0..runs {
        us.push(bare::time_to_status(ours()));
        them.push(bare::time_to_status(bare::command()));
    }
    let (us, them) = (median(us), median(them));
    println!("exec → status: tether mcp {us:.2?}, bare rmcp {them:.2?}, ratio {:.2} (goal ≤ 2.0)", ratio(us, them));
    let Ok(peer) = std::env::var("PEER_MCP") else { return };
    let words: Vec<_> = peer.split_whitespace().map(str::to_owned).collect();
    let listed = |mut command: Command| {
        let begun = Instant::now();
        Client::start(&mut command).ask("tools/list", json!({}));
        begun.elapsed()
    };
    let peers: Vec<_> = (0..5)
        .map(|_| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            listed(command)
        })
        .collect();
    let peer = median(peers);
    println!("exec → list of the peer {peer:.2?}: ours is 1/{:.0} of it (goal ≤ 1/20)", ratio(peer, us));
}

/// The supervisor is killed with -9 → a front end that lives on asks for a value → the answer, through a new supervisor.
fn from_kill(sandbox: &Sandbox, runs: usize) {
    let mut samples = vec![];
    let mut client = Client::start(&mut sandbox.command(&["mcp"]));
    let evaluate = json!({"name": "window_evaluate", "arguments": {"expression": "1 + 1"}});
    for _ in 0..runs {
        client.ask("tools/call", evaluate.clone());
        let supervisor = sandbox.supervisor();
        let begun = Instant::now();
        rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
        // A call that was under way when it died is refused; a later one is answered.
        while client.ask("tools/call", evaluate.clone())["isError"] == true {}
        samples.push(begun.elapsed());
    }
    println!("kill -9 of the supervisor → first evaluate answered: {:.2?} (goal ≤ 60 ms)", median(samples));
    let port = sandbox.tether(&["status", "--json"])["cdpPort"].as_u64().unwrap() as u16;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut ours, mut raw) = (vec![], vec![]);
    for _ in 0..runs {
        ours.push(runtime.block_on(reconnect(port)));
        raw.push(runtime.block_on(raw_cdp(port)));
    }
    let (ours, raw) = (median(ours), median(raw));
    println!("of which reconnect {ours:.2?}; a raw CDP client {raw:.2?}; ratio {:.2} (goal ≤ 1.5)", ratio(ours, raw));
}

/// As a supervisor does it: `/json/version`, attach, first evaluate.
async fn reconnect(port: u16) -> Duration {
    let begun = Instant::now();
    let page = devtether::window::page::PageConnection::open(port).await.unwrap();
    devtether::window::page::evaluate_on_page(&page, "1 + 1", Duration::from_secs(5), None).await.unwrap();
    begun.elapsed()
}

/// The least that a CDP client can do: the same requests, one after the other, on a WebSocket.
async fn raw_cdp(port: u16) -> Duration {
    use futures_util::{SinkExt, StreamExt};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_tungstenite::tungstenite::Message;
    let begun = Instant::now();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(b"GET /json/version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // Chromium keeps the connection open: read up to the end of the object.
    let mut piece = [0; 4096];
    while !answer.ends_with("}\n") && !answer.ends_with('}') {
        let n = stream.read(&mut piece).await.unwrap();
        answer.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    let url = answer.split('"').find(|word| word.starts_with("ws://")).unwrap();
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let mut id = 0;
    let mut ask = async |method: &str, params: Value, session: Option<&str>| {
        id += 1;
        let mut request = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        socket.send(Message::text(request.to_string())).await.unwrap();
        loop {
            let message: Value =
                serde_json::from_str(socket.next().await.unwrap().unwrap().to_text().unwrap()).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    };
    let targets = ask("Target.getTargets", json!({}), None).await;
    let page = targets["targetInfos"].as_array().unwrap().iter().find(|it| it["type"] == "page").unwrap();
    let attached = ask("Target.attachToTarget", json!({"targetId": page["targetId"], "flatten": true}), None).await;
    let session = attached["sessionId"].as_str().unwrap().to_owned();
    ask("Runtime.evaluate", json!({"expression": "1 + 1", "returnByValue": true}), Some(&session)).await;
    begun.elapsed()
}

fn memory(sandbox: &Sandbox) {
    let mut client = Client::start(&mut sandbox.command(&["mcp"]));
    client.ask("tools/call", json!({"name": "window_status", "arguments": {}}));
    let front_end = pss(client.child.id() as i32);
    let supervisor = pss(sandbox.supervisor().as_raw_pid());
    println!("memory (PSS): front end {front_end:.1} MiB (goal ≤ 6), supervisor {supervisor:.1} MiB (goal ≤ 10)");
}

fn pss(pid: i32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn size() {
    let bytes = std::fs::metadata(env!("CARGO_BIN_EXE_tether")).unwrap().len();
    println!("binary: {:.1} MB (goal ≤ 10)", bytes as f64 / 1e6);
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// A workspace with a Chromium window; stopped at the end.
struct Sandbox {
    home: tempfile::TempDir,
    workspace: PathBuf,
}

impl Sandbox {
    fn new() -> Sandbox {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("devtools.toml"), "[window]\nkind = 'browser'\nurl = 'data:text/html,hi'\n")
            .unwrap();
        Sandbox { home, workspace }
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

    fn supervisor(&self) -> rustix::process::Pid {
        let state = std::fs::read_dir(self.home.path().join("state/devtether")).unwrap().next().unwrap().unwrap();
        let lock = std::fs::read(state.path().join("supervisor.lock")).unwrap();
        let holder: Value = serde_json::from_slice(&lock).unwrap();
        rustix::process::Pid::from_raw(holder["pid"].as_i64().unwrap() as i32).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.tether(&["stop"]);
        self.tether(&["shutdown"]);
    }
}
