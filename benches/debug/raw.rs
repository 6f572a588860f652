//! A raw harness on the direct route: it listens, debugpy connects, and only what must be said is said.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use devtether::adapters::{ADAPTERS, Search};
use devtether::dap::types::{
    ConfigurationDone, Evaluate, Fields, Initialize, Initialized, Launch, Next, Request, Scopes, SetBreakpoints,
    SetExceptionBreakpoints, Source, SourceBreakpoint, StackTrace, Stopped, Told, Variables,
};
use devtether::dap::{Client, Connection, Inbox, Incoming};
use tokio::net::TcpListener;

use crate::sides::{LINE, Sandbox};

const SECONDS: Duration = Duration::from_secs(30);

/// A program that is stopped at its breakpoint.
pub struct Raw {
    client: Client,
    inbox: Inbox,
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
        let (client, inbox, driver) = Client::over(Connection::tcp(listener.accept().await.unwrap().0).unwrap());
        tokio::spawn(driver);
        let mut raw = Raw { client, inbox, child, thread: 0 };
        raw.begin(&sandbox.workspace.join("app.py")).await;
        raw
    }

    async fn begin(&mut self, program: &std::path::Path) {
        let initialize = Initialize {
            adapter_id: "debugpy".to_owned(),
            lines_start_at1: true,
            columns_start_at1: true,
            path_format: Some("path".to_owned()),
            ..Initialize::default()
        };
        self.ask(&initialize).await;
        let launched = self.client.begin(&Launch(Fields::new())).await.unwrap();
        self.event::<Initialized>().await;
        let source = Source { path: Some(program.display().to_string()), ..Source::default() };
        let at = SourceBreakpoint { line: i64::from(LINE), ..SourceBreakpoint::default() };
        self.ask(&SetBreakpoints { source, breakpoints: vec![at], ..SetBreakpoints::default() }).await;
        self.ask(&SetExceptionBreakpoints::default()).await;
        self.ask(&ConfigurationDone {}).await;
        launched.answer(SECONDS).await.unwrap();
        self.thread = self.event::<Stopped>().await.thread_id.unwrap();
    }

    /// Evaluates, reads the locals, steps, and looks around then as an answer of ours does: how long each took. A step alone,
    /// and with the look.
    pub async fn calls(&mut self) -> ([Duration; 3], Duration) {
        let frame_id = self.frame().await;
        let begun = Instant::now();
        let evaluate = Evaluate {
            expression: "order + 1 - order".to_owned(),
            frame_id: Some(frame_id),
            context: Some("watch".to_owned()),
            ..Evaluate::default()
        };
        assert_eq!(self.ask(&evaluate).await.result, "1");
        let evaluated = begun.elapsed();
        let begun = Instant::now();
        self.read(frame_id).await;
        let read = begun.elapsed();
        let begun = Instant::now();
        self.ask(&Next { thread_id: self.thread, ..Next::default() }).await;
        self.event::<Stopped>().await;
        let stepped = begun.elapsed();
        self.locals().await;
        ([evaluated, read, stepped], begun.elapsed())
    }

    async fn locals(&self) {
        let frame_id = self.frame().await;
        self.read(frame_id).await;
    }

    async fn frame(&self) -> i64 {
        let stack = StackTrace { thread_id: self.thread, levels: Some(1), ..StackTrace::default() };
        self.ask(&stack).await.stack_frames[0].id
    }

    async fn read(&self, frame_id: i64) {
        let variables_reference = self.ask(&Scopes { frame_id }).await.scopes[0].variables_reference;
        let variables = self.ask(&Variables { variables_reference, ..Variables::default() }).await.variables;
        assert!(variables.iter().any(|variable| variable.name == "order"));
    }

    pub async fn end(mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        // Not yet reaped, so the group's id is still ours.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    async fn ask<R: Request>(&self, request: &R) -> R::Answer {
        self.client.request(request, SECONDS).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn event<T: Told>(&mut self) -> T {
        loop {
            match self.inbox.next().await {
                Some(Incoming::Event(event)) => {
                    if let Some(body) = event.read::<T>() {
                        return body;
                    }
                }
                Some(_) => {}
                None => panic!("{}", self.client.closed().await),
            }
        }
    }
}

fn start(sandbox: &Sandbox, address: &str) -> Child {
    Command::new(sandbox.python())
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
    (row.find)(&Search::of(&sandbox.workspace).unwrap()).unwrap().path
}
