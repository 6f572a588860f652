//! One call of an operation, and the trait of what handles it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::Value;
use tether_base::clipped_text::first_chars;
use tether_base::error::Result;
use tether_wire::rpc::{RpcId, RpcPeer};

use super::context::SupervisorContext;
use crate::api::OperationParams;
use crate::api::protocol::ProgressParams;
use crate::window::Caller;

/// One request, and where its progress is sent.
pub(super) struct OperationCall<'a> {
    pub method: &'a str,
    /// The name of the front end.
    pub client: &'a str,
    /// Where the environment of the front end differs from ours.
    pub environment: &'a BTreeMap<String, String>,
    pub params: Value,
    pub peer: &'a RpcPeer,
    pub id: &'a RpcId,
    pub started: Instant,
    /// Set when the user has interrupted the request.
    pub interrupted: &'a AtomicBool,
}

impl OperationCall<'_> {
    /// Method and parameters in one line, for the report of a window that exits during the call.
    pub fn summary(&self) -> String {
        const MAX_PARAMS_CHARS: usize = 120;
        let mut line = self.method.to_owned();
        if self.params.as_object().is_some_and(|params| !params.is_empty()) {
            line.push(' ');
            line.push_str(first_chars(&self.params.to_string(), MAX_PARAMS_CHARS));
        }
        line
    }
}

impl Caller for OperationCall<'_> {
    fn report_progress(&self, message: &str) {
        let elapsed_ms = self.started.elapsed().as_millis() as u64;
        if let Ok(value) = serde_json::to_value(ProgressParams { message: message.to_owned(), elapsed_ms }) {
            self.peer.send_progress(self.id, &value);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }
}

/// Carries out an operation. Each row of the operation table must have one: `dispatch` does not compile otherwise.
pub(super) trait OperationHandler: OperationParams {
    /// Carries out the operation with these parameters.
    fn handle(
        self,
        context: &SupervisorContext,
        call: &OperationCall<'_>,
    ) -> impl Future<Output = Result<Self::Result>> + Send;
}
