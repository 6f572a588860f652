//! One debug session in a host process.

use std::sync::Arc;

use serde_json::{Value, json};
use tether_base::error::{ErrorData, Result};
use tokio::sync::watch;

use super::host_link::HostLink;
use crate::api::OperationParams;
use crate::api::debug::results::{DebugSessionStatus, DebugStatus, SessionEndReport, StopLocation, StopReport};
use crate::api::debug::{DebugStatusParams, DebugStopParams};
use crate::debug::{CodeSwap, SessionRequest};
use crate::session_host::facts::SessionFacts;
use crate::session_host::loopback_listener::OpenedPort;
use crate::session_host::protocol::{
    DISCONNECT, FINISH_START, FactsReport, FurtherParams, JOIN, JoinParams, REATTACH, REPORT, REPORT_REATTACHED,
    ReattachParams, ReattachedParams, ReportParams, START_FURTHER, STOP_LOCATION, SWAP_CODE, StartResult,
};

/// A session in a host that this supervisor is connected to.
pub struct HostedSession {
    /// Unique in the workspace.
    pub id: String,
    /// What it was started with.
    pub request: Arc<SessionRequest>,
    /// What its caller should know of its start.
    pub note: Option<String>,
    /// The launch id of its processes.
    pub launch_id: String,
    /// The process of the host.
    pub host_pid: u32,
    pub(super) link: Arc<HostLink>,
}

impl HostedSession {
    /// Reads the facts as they were reported last.
    pub fn read_facts<T>(&self, read: impl FnOnce(&SessionFacts) -> T) -> T {
        self.link.read_facts(read)
    }

    /// Whether all its targets have ended.
    pub fn is_ended(&self) -> bool {
        self.read_facts(|facts| facts.is_ended)
    }

    /// Receives each change.
    pub fn watch_facts(&self) -> watch::Receiver<FactsReport> {
        self.link.watch_facts()
    }

    /// Carries out an operation in the host. Its parameters name the session.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value> {
        let mut params = params.clone();
        if let Some(fields) = params.as_object_mut() {
            fields.insert("sessionId".to_owned(), Value::String(self.id.clone()));
        } else if params.is_null() {
            params = json!({"sessionId": self.id});
        }
        self.link.call(method, &params).await
    }

    /// Its whole status.
    pub async fn read_status(&self) -> Result<DebugSessionStatus> {
        let params = DebugStatusParams { session_id: Some(self.id.clone()) };
        let status: DebugStatus = self.link.request(DebugStatusParams::METHOD, &params).await?;
        Ok(status.session.unwrap_or_default())
    }

    /// Waits for a stop after a start, if `wait` is given, and reports the state.
    pub async fn report(&self, params: &ReportParams) -> Result<StopReport> {
        self.link.request(REPORT, params).await
    }

    /// Ends the session, and waits until nothing of it is left.
    pub async fn stop(&self, detach: Option<bool>) -> Result<SessionEndReport> {
        let params = DebugStopParams { session_id: Some(self.id.clone()), detach };
        self.link.request(DebugStopParams::METHOD, &params).await
    }

    /// Swaps changed code into the program.
    pub async fn swap_code(&self) -> Result<CodeSwap> {
        self.link.request(SWAP_CODE, &Value::Null).await
    }

    /// Opens a port for an editor, at the host itself: the editor stays joined whatever becomes of this supervisor.
    pub async fn open_editor_port(&self) -> Result<OpenedPort> {
        self.link.request(JOIN, &JoinParams::default()).await
    }

    /// Starts a further program.
    pub async fn start_further(&self, request: SessionRequest) -> Result<StartResult> {
        let secrets = request.debug_target.secrets.clone();
        self.link.request(START_FURTHER, &FurtherParams { request, secrets }).await
    }

    /// All programs have been started.
    pub async fn finish_start(&self) -> Result<()> {
        // A host of an earlier version reads an object.
        self.link.request(FINISH_START, &json!({})).await
    }

    /// Attaches it to another program, or says why that cannot be. Returns whether it is attached.
    pub async fn reattach(&self, request: Result<SessionRequest>, why: &str) -> Result<bool> {
        let why = why.to_owned();
        let params = match request {
            Ok(request) => ReattachParams { request: Some(request), failure: None, why },
            Err(error) => ReattachParams { request: None, failure: Some(ErrorData::from(&error)), why },
        };
        self.link.request(REATTACH, &params).await
    }

    /// Waits until its breakpoints are bound, and has its next result say why it was attached again.
    pub async fn report_reattached(&self, why: &str, missed: Option<String>) -> Result<()> {
        self.link.request(REPORT_REATTACHED, &ReattachedParams { why: why.to_owned(), missed }).await
    }

    /// Ends the connection to a program that is gone; it still follows the window.
    pub async fn disconnect(&self) -> Result<()> {
        self.link.request(DISCONNECT, &Value::Null).await
    }

    /// Where its program has stopped.
    pub async fn stop_location(&self) -> Result<Option<StopLocation>> {
        self.link.request(STOP_LOCATION, &Value::Null).await
    }

    /// Resolves when it has ended, or its host has.
    pub async fn wait_until_ended(&self) {
        let mut facts = self.watch_facts();
        tokio::select! {
            _ = facts.wait_for(|report| report.facts.is_ended) => {}
            () = self.link.wait_closed() => {}
        }
    }

    /// Resolves when nothing of one of its programs is left, or its host has ended.
    pub async fn wait_until_program_ended(&self, program: usize) {
        let mut facts = self.watch_facts();
        tokio::select! {
            _ = facts.wait_for(|report| report.facts.ended_programs.get(program) == Some(&true)) => {}
            () = self.link.wait_closed() => {}
        }
    }
}
