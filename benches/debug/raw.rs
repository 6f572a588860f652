//! A raw harness, which says only what must be said to an adapter: debugpy connects to it directly, our own adapters run alone and
//! listen.

#![allow(dead_code)] // each bench uses a part

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use devtether::adapters::{ADAPTERS, AdapterSearch};
use devtether::workspace::workspace_programs::ProgramConsent;
use serde_json::json;
use tether_dap::types::{
    ConfigurationDoneArguments, DapEvent, DapRequest, DapSource, DisconnectArguments, EvaluateArguments, Fields,
    InitializeArguments, InitializedEvent, LaunchArguments, NextArguments, ScopesArguments, SetBreakpointsArguments,
    SetExceptionBreakpointsArguments, SourceBreakpoint, StackTraceArguments, StoppedEvent, VariablesArguments,
};
use tether_dap::{DapClient, DapConnection, DapInbox, DapIncoming};
use tokio::net::TcpListener;

use crate::client::sandbox::Sandbox;
use crate::sides::{LINE, python};

const SECONDS: Duration = Duration::from_secs(30);

/// A program that is stopped at its breakpoint.
pub struct Raw {
    client: DapClient,
    inbox: DapInbox,
    child: Child,
    thread: i64,
}

impl Raw {
    /// Launch → breakpoint → locals → gone.
    pub async fn session(sandbox: &Sandbox) -> Duration {
        let begun = Instant::now();
        let raw = Raw::stopped(sandbox).await;
        raw.locals().await;
        raw.end().await;
        begun.elapsed()
    }

    pub async fn stopped(sandbox: &Sandbox) -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let child = start(sandbox, &listener.local_addr().unwrap().to_string());
        let connection = DapConnection::tcp(listener.accept().await.unwrap().0).unwrap();
        Raw::begun(connection, child, &sandbox.workspace.join("app.py"), Fields::new()).await
    }

    /// The same with one of our own adapters, which runs alone.
    pub async fn stopped_in(sandbox: &Sandbox, program: &str) -> Raw {
        let (path, folder) = (sandbox.workspace.join(program), sandbox.workspace.display().to_string());
        let (adapter, fields) = match program.ends_with(".java") {
            true => ("java", json!({"mainClass": "App", "classPaths": [folder], "cwd": folder})),
            false => ("node", json!({"program": path, "cwd": folder})),
        };
        let mut command = sandbox.command(&["dap", adapter, "--listen", "0"]);
        let mut child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let connection = DapConnection::connect_tcp(address, SECONDS).await.unwrap();
        Raw::begun(connection, child, &path, fields.as_object().unwrap().clone()).await
    }

    async fn begun(connection: DapConnection, child: Child, program: &Path, launch: Fields) -> Raw {
        let (client, inbox, driver) = DapClient::over(connection);
        tokio::spawn(driver);
        let mut raw = Raw { client, inbox, child, thread: 0 };
        raw.begin(program, launch).await;
        raw
    }

    async fn begin(&mut self, program: &Path, launch: Fields) {
        let initialize = InitializeArguments {
            adapter_id: "debugpy".to_owned(),
            lines_start_at1: true,
            columns_start_at1: true,
            path_format: Some("path".to_owned()),
            ..InitializeArguments::default()
        };
        self.ask(&initialize).await;
        let launched = self.client.send_request(&LaunchArguments(launch)).await.unwrap();
        self.event::<InitializedEvent>().await;
        let source = DapSource { path: Some(program.display().to_string()), ..DapSource::default() };
        let at = SourceBreakpoint { line: i64::from(LINE), ..SourceBreakpoint::default() };
        self.ask(&SetBreakpointsArguments { source, breakpoints: vec![at] }).await;
        self.ask(&SetExceptionBreakpointsArguments::default()).await;
        self.ask(&ConfigurationDoneArguments {}).await;
        launched.response(SECONDS).await.unwrap();
        self.thread = self.event::<StoppedEvent>().await.thread_id.unwrap();
    }

    /// Evaluates, reads the locals, steps, and looks around then as an answer of ours does: how long each took. A step alone,
    /// and with the look.
    pub async fn calls(&mut self) -> ([Duration; 3], Duration) {
        let frame_id = self.frame().await;
        let begun = Instant::now();
        let evaluate = EvaluateArguments {
            expression: "order + 1 - order".to_owned(),
            frame_id: Some(frame_id),
            context: Some("watch".to_owned()),
        };
        assert_eq!(self.ask(&evaluate).await.result, "1");
        let evaluated = begun.elapsed();
        let begun = Instant::now();
        self.read(frame_id).await;
        let read = begun.elapsed();
        let begun = Instant::now();
        self.ask(&NextArguments { thread_id: self.thread }).await;
        self.event::<StoppedEvent>().await;
        let stepped = begun.elapsed();
        self.locals().await;
        ([evaluated, read, stepped], begun.elapsed())
    }

    async fn locals(&self) {
        let frame_id = self.frame().await;
        self.read(frame_id).await;
    }

    async fn frame(&self) -> i64 {
        let stack = StackTraceArguments { thread_id: self.thread, levels: Some(1), ..StackTraceArguments::default() };
        self.ask(&stack).await.stack_frames[0].id
    }

    async fn read(&self, frame_id: i64) {
        let variables_reference = self.ask(&ScopesArguments { frame_id }).await.scopes[0].variables_reference;
        let variables =
            self.ask(&VariablesArguments { variables_reference, ..VariablesArguments::default() }).await.variables;
        assert!(variables.iter().any(|variable| variable.name == "order"));
    }

    /// Ends the program by request, and its adapter.
    pub async fn disconnect(self) {
        let disconnect = DisconnectArguments { terminate_debuggee: Some(true) };
        self.ask(&disconnect).await;
        self.end().await;
    }

    pub async fn end(mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        // Not yet reaped, so the group's id is still ours.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    async fn ask<R: DapRequest>(&self, request: &R) -> R::Response {
        self.client.request(request, SECONDS).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn event<T: DapEvent>(&mut self) -> T {
        loop {
            match self.inbox.next().await {
                Some(DapIncoming::Event(event)) => {
                    if let Some(body) = event.read_body::<T>() {
                        return body;
                    }
                }
                Some(_) => {}
                None => panic!("{}", self.client.wait_closed().await),
            }
        }
    }
}

fn start(sandbox: &Sandbox, address: &str) -> Child {
    Command::new(python(sandbox))
        .arg(debugpy(sandbox))
        .args(["--connect", address, "--wait-for-client", "--configure-subProcess", "false"])
        .arg(sandbox.workspace.join("app.py"))
        .env("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The one that ours finds, too.
fn debugpy(sandbox: &Sandbox) -> PathBuf {
    let row = ADAPTERS.iter().find(|row| row.name == "debugpy").unwrap();
    let consent = ProgramConsent { consented: [python(sandbox)].into(), ..ProgramConsent::default() };
    (row.find)(&AdapterSearch::for_workspace(&sandbox.workspace, consent).unwrap()).unwrap().path
}
