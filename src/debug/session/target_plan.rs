//! How the targets of a session are started.

use std::time::Duration;

use serde_json::Value;

use crate::adapters::Quirks;
use crate::dap::types::{InitializeArguments, StartRequest};

/// What every target of a session is started with.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// The first request.
    pub initialize: InitializeArguments,
    /// `launch` or `attach`.
    pub start: StartRequest,
    /// How the adapter deviates from the protocol.
    pub quirks: Quirks,
    /// Whether the first stop, at the program's entry, is reported.
    pub stop_on_entry: bool,
    /// For the response to `initialize`, before which an adapter may load much.
    pub initialize_deadline: Duration,
    /// For each single request.
    pub deadline: Duration,
    /// For the response to `launch` or `attach`, before which an adapter may compile.
    pub start_deadline: Duration,
    /// The launch id of the processes that are started for the session.
    pub launch_id: String,
}

impl TargetPlan {
    /// The name in the start request, for readers; empty if there is none.
    pub fn target_name(&self) -> String {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &self.start;
        fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}
