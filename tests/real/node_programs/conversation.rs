//! A DAP conversation with our own adapter for Node in this process, and programs that it attaches to.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tether_backend::ServeContext;
use tether_dap::types::*;
use tether_dap::{DapClient, DapConnection, DapInbox, DapIncoming};
use tether_node::serve_node;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Guards against a hang.
pub const LONG: Duration = Duration::from_secs(30);

/// One conversation; the adapter ends with it.
pub struct NodeConversation {
    pub client: DapClient,
    inbox: DapInbox,
    adapter: JoinHandle<()>,
    /// What the program has printed.
    pub output: String,
    pub exit_code: Option<i64>,
}

impl NodeConversation {
    /// Launches or attaches; the program runs once [`NodeConversation::configure`] was called.
    pub async fn begin(command: &str, arguments: Value) -> NodeConversation {
        let (ours, theirs) = DapConnection::pair();
        static LAST: AtomicU32 = AtomicU32::new(0);
        let launch_id = format!("node-programs-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let adapter = tokio::spawn(serve_node(theirs, ServeContext { launch_id, exit: watch::Sender::new(None) }));
        let (client, inbox, driver) = DapClient::over(ours);
        tokio::spawn(driver);
        let mut conversation = NodeConversation { client, inbox, adapter, output: String::new(), exit_code: None };
        conversation.request("initialize", json!({"adapterID": "node"})).await;
        let started = conversation.client.request_raw(command, raw(&arguments), LONG).await;
        started.unwrap_or_else(|error| panic!("{arguments}: {error}"));
        conversation.event("initialized").await;
        conversation
    }

    /// A request that must succeed; its body.
    pub async fn request(&self, command: &str, arguments: Value) -> Value {
        let answered = self.client.request_raw(command, raw(&arguments), LONG).await;
        let body = answered.unwrap_or_else(|error| panic!("{command} {arguments}: {error}"));
        body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap())
    }

    /// Sets breakpoints on the lines of a file that end with a marker; returns what is said of them.
    pub async fn set_breakpoints(&self, file: &Path, marker: &str) -> Value {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().enumerate().filter(|(_, line)| line.ends_with(marker)).map(|(at, _)| at + 1);
        let breakpoints: Vec<Value> = lines.map(|line| json!({"line": line})).collect();
        let set = json!({"source": {"path": file}, "breakpoints": breakpoints});
        self.request("setBreakpoints", set).await["breakpoints"].take()
    }

    pub async fn configure(&self) {
        self.request("configurationDone", json!({})).await;
    }

    /// The next event of that name, within [`LONG`]; what is printed meanwhile is kept.
    pub async fn event(&mut self, name: &str) -> Value {
        let next = timeout(LONG, self.next_event(name)).await;
        next.unwrap_or_else(|_| panic!("no event `{name}`; the output: {}", self.output))
    }

    async fn next_event(&mut self, name: &str) -> Value {
        loop {
            let incoming = self.inbox.next().await;
            let Some(DapIncoming::Event(event)) = incoming else { panic!("no event `{name}`: {}", self.output) };
            if let Some(output) = event.read_body::<OutputEvent>() {
                self.output.push_str(&output.output);
            }
            if let Some(exited) = event.read_body::<ExitedEvent>() {
                self.exit_code = Some(exited.exit_code);
            }
            if event.name == name {
                let body = event.body.as_ref().map(|body| serde_json::from_str(body.get()).unwrap());
                return body.unwrap_or(Value::Null);
            }
        }
    }

    /// Waits until the program has ended, and leaves it.
    pub async fn ends(mut self) -> (Option<i64>, String) {
        self.event("terminated").await;
        self.request("disconnect", json!({})).await;
        (self.exit_code, std::mem::take(&mut self.output))
    }

    /// Disconnects, and lets the program run on.
    pub async fn detach(self) {
        self.request("disconnect", json!({"terminateDebuggee": false})).await;
    }
}

impl Drop for NodeConversation {
    fn drop(&mut self) {
        self.client.close();
        self.adapter.abort();
    }
}

fn raw(arguments: &Value) -> Option<Box<RawValue>> {
    Some(serde_json::value::to_raw_value(arguments).unwrap())
}

/// A program with an inspector, started without the adapter.
pub struct ListeningProgram {
    child: Child,
    errors: tokio::io::Lines<BufReader<tokio::process::ChildStderr>>,
    port: u16,
}

impl ListeningProgram {
    /// `words`: the options of Node, the program and its arguments.
    pub async fn start(node: &Path, words: &[String], folder: &Path) -> ListeningProgram {
        let mut command = Command::new(node);
        command.arg("--inspect=127.0.0.1:0").args(words).current_dir(folder).env_remove("NODE_OPTIONS");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let listens = async {
            loop {
                let line = errors.next_line().await.unwrap().expect("it listens");
                let port = line.split("ws://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
                if let Some(port) = port {
                    return port;
                }
            }
        };
        let port = timeout(LONG, listens).await.unwrap();
        ListeningProgram { child, errors, port }
    }

    /// The arguments that attach to it.
    pub fn arguments(&self, folder: &Path) -> Value {
        json!({"port": self.port, "cwd": folder})
    }

    /// Reads what it prints until it has printed `text`.
    pub async fn prints(&mut self, text: &str) {
        let mut read = Vec::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        let printed = async {
            while !String::from_utf8_lossy(&read).contains(text) {
                let byte = stdout.read_u8().await.unwrap_or_else(|cause| panic!("{cause}: {read:?}"));
                read.push(byte);
            }
        };
        timeout(LONG, printed).await.unwrap_or_else(|_| panic!("it does not print {text:?}"));
    }

    /// Lets it end, and waits until it has; its exit code and the rest of its output.
    pub async fn end(mut self) -> (Option<i32>, String) {
        self.write("go\n").await;
        let mut output = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        let ended = async {
            let errors = async { while let Ok(Some(_)) = self.errors.next_line().await {} };
            let (read, ()) = tokio::join!(stdout.read_to_string(&mut output), errors);
            read.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(LONG, ended).await.expect("it ends as it would have without us");
        (status.code(), output)
    }

    pub async fn write(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        stdin.flush().await.unwrap();
    }
}
