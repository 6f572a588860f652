//! The connection to one session host.
//!
//! Does not depend on what is requested.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_wire::rpc::{CallError, RpcError, RpcPeer, RpcRequest, open_connection, serve_requests};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::session_host::facts::SessionFacts;
use crate::session_host::protocol::{
    BREAKPOINTS_CHANGED, EditorStart, FACTS, FactsReport, HELLO, HelloParams, HelloResult, HostResult, OPEN_SESSION,
    PING, PROTOCOL,
};
use crate::vocabulary::RunState;

/// How long a host may take to answer the first request.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// A request may take as long as it likes, as long as its host answers another one in between, within this time.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two of these, for each request.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// A connection; dropping it closes it, and the host goes on.
pub struct HostLink {
    peer: RpcPeer,
    /// The process of the host, as it says; 0 before it has.
    pid: u32,
    facts: Arc<watch::Sender<FactsReport>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for HostLink {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Takes over facts, unless newer ones are known.
fn take_over(known: &watch::Sender<FactsReport>, report: FactsReport) {
    known.send_if_modified(|last| {
        let is_newer = report.revision > last.revision;
        if is_newer {
            *last = report;
        }
        is_newer
    });
}

impl HostLink {
    /// Connects to a host of our own user. `breakpoints_changed` is called when it has changed the stored breakpoints,
    /// `open_session` when its editor says what it debugs. Errors: nobody listens there, or somebody else does; it does not
    /// answer; this program does not understand its version.
    pub async fn connect(
        socket: &Path,
        breakpoints_changed: impl Fn() + Send + Sync + 'static,
        open_session: impl Fn(EditorStart) -> BoxFuture<'static, Result<Vec<String>>> + Send + Sync + 'static,
    ) -> Result<(HostLink, HelloResult)> {
        let doing = || format!("cannot reach the session host at {}", socket.display());
        let stream = UnixStream::connect(socket).await.doing(doing)?;
        let us = rustix::process::getuid().as_raw();
        let owner = stream.peer_cred().doing(doing)?.uid();
        if owner != us {
            return Err(Error::other(doing()).because(format!("it is served by user {owner}, not by user {us}")));
        }
        let (read, write) = stream.into_split();
        let (peer, mut incoming, driver) = open_connection(read, write);
        let driver = tokio::spawn(async move { drop(driver.await) });
        let facts = Arc::new(watch::Sender::new(FactsReport::default()));
        let known = Arc::clone(&facts);
        let answering = peer.clone();
        let receiver = tokio::spawn(async move {
            let handle = |request: RpcRequest| {
                let (peer, opened) = (answering.clone(), read_editor_start(&request).map(&open_session));
                async move {
                    let outcome = match opened {
                        Ok(opened) => opened.await,
                        Err(error) => Err(error),
                    };
                    let outcome = outcome.map(|notes| json!(notes)).map_err(|error| RpcError::from(&error));
                    let _ = peer.respond(&request.id, outcome).await;
                }
            };
            let notified = |method: String, params: Value| match method.as_str() {
                FACTS => {
                    if let Ok(report) = serde_json::from_value(params) {
                        take_over(&known, report);
                    }
                }
                BREAKPOINTS_CHANGED => breakpoints_changed(),
                _ => {}
            };
            serve_requests(&answering, &mut incoming, handle, notified).await;
        });
        let mut link = HostLink { peer, pid: 0, facts, tasks: [driver, receiver] };
        let hello = HelloParams { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: PROTOCOL };
        let hello: HelloResult = match timeout(HELLO_TIMEOUT, link.request(HELLO, &hello)).await {
            Ok(answered) => answered?,
            Err(_) => {
                let error = Error::new(ErrorKind::TimedOut, doing());
                return Err(error.because(format!("it did not answer within {HELLO_TIMEOUT:?}")));
            }
        };
        if hello.protocol != PROTOCOL {
            let (other, own) = (hello.protocol, PROTOCOL);
            let error = Error::other(doing()).because(format!("it speaks version {other}, and this program {own}"));
            return Err(error.hint(format!("`kill {}` ends it, and its program", hello.pid)));
        }
        link.pid = hello.pid;
        Ok((link, hello))
    }

    /// Reads the facts as they were reported last.
    pub fn read_facts<T>(&self, read: impl FnOnce(&SessionFacts) -> T) -> T {
        read(&self.facts.borrow().facts)
    }

    /// The facts as they were reported last.
    pub fn watch_facts(&self) -> watch::Receiver<FactsReport> {
        self.facts.subscribe()
    }

    /// Sends a request. Errors: those of the host; it has ended, or does not answer anything.
    pub async fn request<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R> {
        let params = serde_json::to_value(params).doing(|| format!("cannot send {method}"))?;
        let result = self.call(method, &params).await?;
        R::deserialize(result).doing(|| format!("cannot read the result of {method}"))
    }

    /// As [`HostLink::request`], with parameters and result as they are.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value> {
        let answer = tokio::select! {
            answer = self.peer.call(method, params) => answer,
            () = self.wait_silent() => return Err(silent_host(method, self.pid)),
        };
        match answer {
            Ok(result) => {
                let HostResult { changed, result } =
                    HostResult::take_apart(result).doing(|| format!("cannot read the result of {method}"))?;
                if let Some(report) = changed {
                    take_over(&self.facts, report);
                }
                Ok(result)
            }
            Err(CallError::Failed(failed)) => Err(failed.into_error(format!("{method} failed"))),
            Err(closed) => {
                let error = Error::other(format!("{method} was interrupted: the session's host has ended"));
                Err(error.because(closed).hint("`tether debug status` shows what has become of it"))
            }
        }
    }

    /// Resolves when the host answers nothing any more: it was stopped, or hangs.
    async fn wait_silent(&self) {
        let mut turns = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        loop {
            turns.tick().await;
            // A closed connection ends the request itself.
            if timeout(PING_TIMEOUT, self.peer.call(PING, &Value::Null)).await.is_err() {
                return;
            }
        }
    }

    /// The host has ended, and the session with it. Returns whether that had ended before.
    pub fn close_session(&self) -> bool {
        let mut was_ended = false;
        self.facts.send_modify(|report| {
            was_ended = std::mem::replace(&mut report.facts.is_ended, true);
            if !was_ended {
                report.revision = report.revision.saturating_add(1);
                report.facts.status.state = RunState::Disconnected;
                report.facts.status.connected = false;
                report.facts.status.message = Some("its session host has ended".to_owned());
            }
        });
        was_ended
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Resolves when the connection has ended.
    pub async fn wait_closed(&self) {
        self.peer.wait_closed().await;
    }
}

/// What a caller is told of a host that does not answer.
pub(super) fn silent_host(method: &str, pid: u32) -> Error {
    Error::new(ErrorKind::TimedOut, format!("{method} is not answered by the session's host"))
        .because(format!("process {pid} has answered nothing for {PING_TIMEOUT:?}"))
        .hint(format!("`kill -CONT {pid}` if it was stopped: the session goes on as it is"))
        .hint(format!("`kill -9 {pid}` ends it, and the session with it"))
}

fn read_editor_start(request: &RpcRequest) -> Result<EditorStart> {
    if request.method != OPEN_SESSION {
        return Err(Error::usage(format!("a supervisor has no method {:?} for session hosts", request.method)));
    }
    EditorStart::deserialize(&request.params).doing(|| format!("cannot read the parameters of {OPEN_SESSION}"))
}
