//! An editor that speaks DAP over `tether dap`, or over a port of `debugger/join`.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tether_dap::types::*;
use tether_dap::{DapClient, DapConnection, DapInbox, DapIncoming, DapRequest};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{Sandbox, TEST_TIMEOUT};

/// How the editor introduces itself; its name in the session is this and its number.
pub const EDITOR: &str = "test editor";

pub struct DapEditor {
    pub client: DapClient,
    inbox: DapInbox,
    /// Events that were read while another one was waited for.
    kept: Vec<(String, Value)>,
    /// The process of `tether dap`; none for an editor on a port.
    child: Option<Child>,
}

/// Where a program has stopped, as an editor sees it.
#[derive(Debug)]
pub struct SeenStop {
    pub event: Value,
    pub thread: i64,
    pub frame: i64,
    pub function: String,
    pub line: u64,
}

impl DapEditor {
    /// Starts `tether dap` in the sandbox, and initializes.
    pub async fn start(sandbox: &Sandbox) -> DapEditor {
        let mut command = Command::from(sandbox.command(["dap"]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let connection = DapConnection::over(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        DapEditor::over(connection, Some(child)).await
    }

    pub async fn over(connection: DapConnection, child: Option<Child>) -> DapEditor {
        let (client, inbox, driver) = DapClient::over(connection);
        tokio::spawn(driver);
        let editor = DapEditor { client, inbox, kept: Vec::new(), child };
        let initialize = InitializeArguments {
            adapter_id: "tether".to_owned(),
            client_name: Some(EDITOR.to_owned()),
            lines_start_at1: true,
            columns_start_at1: true,
            ..InitializeArguments::default()
        };
        assert!(editor.request(&initialize).await.can("supportsConfigurationDoneRequest"));
        editor
    }

    pub async fn request<R: DapRequest>(&self, request: &R) -> R::Response {
        let sent = self.client.request(request, TEST_TIMEOUT).await;
        sent.unwrap_or_else(|error| panic!("{}: {error}", R::COMMAND))
    }

    /// Sends a request that must be refused; returns why it is.
    pub async fn refused<R: DapRequest>(&self, request: &R) -> String {
        match self.client.request(request, TEST_TIMEOUT).await {
            Ok(_) => panic!("{} was accepted", R::COMMAND),
            Err(error) => error.to_string(),
        }
    }

    /// The next event of that name for which `is_meant` holds; others are kept.
    pub async fn event_where(&mut self, name: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.kept.iter().position(|(of, body)| of == name && is_meant(body)) {
            return self.kept.remove(index).1;
        }
        loop {
            let next = timeout(TEST_TIMEOUT, self.inbox.next()).await;
            let next = next.unwrap_or_else(|_| panic!("no {name} event; {:?}", self.kept));
            let Some(DapIncoming::Event(event)) = next else {
                panic!("no {name} event, but {next:?}; {:?}", self.kept)
            };
            let body: Value = event.body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap());
            if event.name == name && is_meant(&body) {
                return body;
            }
            self.kept.push((event.name, body));
        }
    }

    pub async fn event(&mut self, name: &str) -> Value {
        self.event_where(name, |_| true).await
    }

    /// Waits for a line of output with these words.
    pub async fn output(&mut self, words: &str) {
        self.event_where("output", |body| body["output"].as_str().unwrap().contains(words)).await;
    }

    /// Joins a session, with the editor's own breakpoints.
    pub async fn attach(&mut self, session: Option<&str>, breakpoints: &[(&Path, &[u64])]) {
        let fields = session.map(|id| ("sessionId".to_owned(), id.into())).into_iter().collect();
        let attach = self.client.send_request(&AttachArguments(fields)).await.unwrap();
        self.event("initialized").await;
        self.configure(breakpoints).await;
        attach.response(TEST_TIMEOUT).await.unwrap_or_else(|error| panic!("{error}"));
    }

    pub async fn configure(&mut self, breakpoints: &[(&Path, &[u64])]) {
        for (file, lines) in breakpoints {
            self.set_breakpoints(file, lines).await;
        }
        self.request(&SetExceptionBreakpointsArguments::default()).await;
        self.request(&ConfigurationDoneArguments {}).await;
    }

    /// Replaces this editor's breakpoints in a file.
    pub async fn set_breakpoints(&self, file: &Path, lines: &[u64]) -> Vec<DapBreakpoint> {
        let source = DapSource { path: Some(file.to_string_lossy().into_owned()), ..DapSource::default() };
        let line = |line: &u64| SourceBreakpoint { line: *line as i64, ..SourceBreakpoint::default() };
        let request = SetBreakpointsArguments { source, breakpoints: lines.iter().map(line).collect() };
        self.request(&request).await.breakpoints
    }

    /// The next stop, with its top frame.
    pub async fn stopped(&mut self) -> SeenStop {
        let event = self.event("stopped").await;
        let thread = event["threadId"].as_i64().unwrap_or_else(|| panic!("{event}"));
        let threads = self.request(&ThreadsArguments {}).await.threads;
        assert!(threads.iter().any(|it| it.id == thread), "{event} is of none of {threads:?}");
        let stack = StackTraceArguments { thread_id: thread, levels: Some(5), ..StackTraceArguments::default() };
        let top = self.request(&stack).await.stack_frames.remove(0);
        SeenStop { event, thread, frame: top.id, function: top.name, line: top.line as u64 }
    }

    /// The value of a variable of a frame's scopes.
    pub async fn variable(&self, frame_id: i64, name: &str) -> String {
        let mut seen = Vec::new();
        for scope in self.request(&ScopesArguments { frame_id }).await.scopes {
            let variables_reference = scope.variables_reference;
            let request = VariablesArguments { variables_reference, ..VariablesArguments::default() };
            for variable in self.request(&request).await.variables {
                if variable.name == name {
                    return variable.value;
                }
                seen.push(variable.name);
            }
        }
        panic!("no {name} in {seen:?}")
    }

    /// Leaves the session, and returns how `tether dap` has exited.
    pub async fn leave(mut self) -> ExitStatus {
        self.request(&DisconnectArguments::default()).await;
        let child = self.child.as_mut().expect("a process");
        timeout(TEST_TIMEOUT, child.wait()).await.expect("it does not exit").unwrap()
    }

    /// Leaves the session on a port.
    pub async fn leave_port(self) {
        self.request(&DisconnectArguments::default()).await;
        self.client.close();
        timeout(TEST_TIMEOUT, self.client.wait_closed()).await.expect("it does not close");
    }

    /// Kills `tether dap`, as the end of an editor may.
    pub async fn kill(mut self) {
        self.child.as_mut().expect("a process").kill().await.unwrap();
    }
}

/// The names of the editors that have joined the only session.
pub fn joined_names(sandbox: &Sandbox) -> Value {
    sandbox.json(&["debug", "status"]).get("editors").cloned().unwrap_or(json!([]))
}

/// Waits until no editor is joined: a closed connection is noticed by the supervisor, not by the one who closes it.
pub fn wait_until_left(sandbox: &Sandbox) {
    let left = || (joined_names(sandbox) == json!([])).then_some(());
    crate::support::eventually("all editors have left", left);
}

/// A port of `debugger/join`, connected.
pub async fn connect_port(port: u64) -> DapConnection {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).unwrap()));
    DapConnection::connect_tcp(address, Duration::from_secs(30)).await.unwrap()
}
