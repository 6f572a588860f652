//! Data breakpoints.

use tether_base::error::{Error, Result};

use super::{SessionOperation, convert};
use crate::api::debug::breakpoints::{BreakpointReport, WatchpointSetParams};
use crate::debug::{BreakpointStatus, SessionRegistry};
use crate::session_host::context::SessionContext;

impl SessionOperation for WatchpointSetParams {
    async fn run(self, context: &SessionContext) -> Result<BreakpointReport> {
        let sessions = &context.sessions;
        let expression = match (self.expression, self.class_name, self.field_name) {
            (Some(expression), None, None) => expression,
            (None, Some(class), Some(field)) => format!("{class}.{field}"),
            _ => {
                let error = Error::usage("nothing to watch was named");
                return Err(error.hint("name `expression`, or `className` and `fieldName`"));
            }
        };
        let reported = sessions.set_data_breakpoint(expression, self.access.unwrap_or_default()).await?;
        Ok(set_breakpoint_report(sessions, &reported).await)
    }
}

/// The result of an operation that sets a breakpoint.
pub async fn set_breakpoint_report(sessions: &SessionRegistry, reported: &BreakpointStatus) -> BreakpointReport {
    let notes = Vec::from_iter(sessions.breakpoint_store_problem().await);
    BreakpointReport { notes, ..convert::breakpoint_report(reported, sessions.file_names()) }
}
