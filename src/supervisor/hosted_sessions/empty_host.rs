//! A host without a session yet: for one that is about to start, or for the editor that is about to say which.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tether_base::error::{ErrorContext, ErrorKind, Result};
use tether_base::sync::lock;
use tether_process::Process;
use tokio::process::Child;
use tokio::time::timeout;
use tracing::warn;

use super::HostedSessions;
use super::host_link::HostLink;
use crate::debug::{HostRecord, HostedEntry};
use crate::session_host::protocol::EXIT;

/// How long a host that has closed its connection may take to exit.
pub(super) const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A host process, connected, until a session has started in it. Dropping this ends it.
pub struct EmptyHost {
    hosts: HostedSessions,
    /// The connection to it.
    pub(super) link: Arc<HostLink>,
    parts: Mutex<Option<HostParts>>,
}

/// What else a host consists of.
pub(super) struct HostParts {
    /// Stored before the process was started.
    pub entry: HostedEntry,
    pub child: Child,
    pub pid: u32,
}

impl EmptyHost {
    pub(super) fn new(hosts: HostedSessions, link: HostLink, parts: HostParts) -> EmptyHost {
        EmptyHost { hosts, link: Arc::new(link), parts: Mutex::new(Some(parts)) }
    }

    /// What a session that starts takes over. `None`: one has done so, or the host was ended.
    pub(super) fn take_parts(&self) -> Option<HostParts> {
        lock(&self.parts).take()
    }

    /// A session could not be started: the next one may.
    pub(super) fn put_back(&self, parts: HostParts) {
        *lock(&self.parts) = Some(parts);
    }

    /// Ends it, unless a session has started in it, and waits for that.
    pub(super) async fn end(&self) {
        if let Some(parts) = self.take_parts() {
            parts.end(&self.link).await;
        }
    }
}

impl Drop for EmptyHost {
    fn drop(&mut self) {
        if let Some(parts) = self.take_parts() {
            let link = Arc::clone(&self.link);
            self.hosts.run_task(async move { parts.end(&link).await });
        }
    }
}

impl HostParts {
    async fn end(mut self, link: &HostLink) {
        end_host(link).await;
        let _ = timeout(EXIT_TIMEOUT, self.child.wait()).await;
    }
}

/// Has a host end its session and exit, and waits until it has closed the connection, unless it does not answer.
pub(super) async fn end_host(link: &HostLink) {
    match link.call(EXIT, &Value::Null).await {
        Err(error) if error.kind == ErrorKind::TimedOut => warn!("{error}"),
        _ => link.wait_closed().await,
    }
}

/// What is stored of a host that has just been started.
pub(super) fn host_record(child: &Child, socket: &Path) -> Result<HostRecord> {
    let doing = || "cannot identify the process of the debug session".to_owned();
    let pid = child.id().unwrap_or_default();
    let start_ticks = Process::open(pid).doing(doing)?.start_ticks();
    Ok(HostRecord { pid, start_ticks, socket: socket.to_owned() })
}
