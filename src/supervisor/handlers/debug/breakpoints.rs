//! Breakpoints, watchpoints and exception breakpoints.

use std::path::{Path, PathBuf};

use crate::api::debug::breakpoints::{
    BreakpointExceptionsParams, BreakpointListParams, BreakpointListReport, BreakpointRemoveParams, BreakpointReport,
    BreakpointSetParams, ExceptionBreakpointsReport, WatchpointAccess, WatchpointSetParams,
};
use crate::api::debug::values::FileLine;
use crate::debug::breakpoints as book;
use crate::debug::{ExceptionSupport, SessionRegistry};
use crate::error::{Error, ErrorKind, Result};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::debug as convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

impl OperationHandler for BreakpointSetParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointReport> {
        let sessions = &context.sessions;
        let conditions = book::BreakpointConditions {
            condition: self.condition,
            hit_condition: self.hit_condition,
            log_message: self.log_message,
        };
        let reported = match (self.function, self.file) {
            (Some(name), None) => sessions.set_function_breakpoint(name, conditions).await?,
            (None, Some(file)) => {
                let spot = FileLine::parse(&file, self.line)?;
                sessions.set_line_breakpoint(Path::new(&spot.file), spot.line, conditions).await?
            }
            _ => {
                let error = Error::usage("no place for the breakpoint was named");
                return Err(error.hint("name `file` (\"app.py:22\"), or `function`"));
            }
        };
        Ok(convert::breakpoint_report(&reported, sessions.workspace()))
    }
}

impl OperationHandler for BreakpointListParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        let sessions = &context.sessions;
        Ok(list_breakpoints(sessions).await)
    }
}

async fn list_breakpoints(sessions: &SessionRegistry) -> BreakpointListReport {
    let reported = sessions.list_breakpoints().await;
    BreakpointListReport {
        breakpoints: reported.iter().map(|it| convert::breakpoint_report(it, sessions.workspace())).collect(),
        exceptions: exceptions_report(sessions),
    }
}

impl OperationHandler for BreakpointRemoveParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        let sessions = &context.sessions;
        let removed = match (self.breakpoint_id, &self.file, self.all.unwrap_or_default()) {
            (Some(id), None, false) => sessions.remove_breakpoints(move |wanted| wanted.id == id).await?,
            (None, None, true) => sessions.remove_breakpoints(|_| true).await?,
            (None, Some(file), false) => {
                let (file, line) = FileLine::parse_file_or_line(file, None)?;
                let path = sessions.workspace().join(file);
                let path: PathBuf = path.canonicalize().unwrap_or(path);
                sessions.remove_breakpoints(move |wanted| is_at(wanted, &path, line)).await?
            }
            _ => {
                let error = Error::usage("no breakpoints to remove were named");
                return Err(error.hint("name one of: `breakpointId`, `file`, `all`"));
            }
        };
        if removed.is_empty() && self.all != Some(true) {
            return Err(
                Error::new(ErrorKind::NotFound, "there is no such breakpoint").hint("`tether break list` lists them")
            );
        }
        Ok(list_breakpoints(sessions).await)
    }
}

fn is_at(wanted: &book::BreakpointSpec, path: &Path, at: Option<u32>) -> bool {
    match &wanted.kind {
        book::BreakpointKind::Line { file, line, .. } => file == path && at.is_none_or(|at| at == *line),
        _ => false,
    }
}

impl OperationHandler for BreakpointExceptionsParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ExceptionBreakpointsReport> {
        let sessions = &context.sessions;
        let asks = self.caught.is_some() || self.uncaught.is_some() || self.class.is_some() || self.filters.is_some();
        if asks {
            let wanted = book::ExceptionSpec {
                caught: self.caught.unwrap_or_default(),
                uncaught: self.uncaught.unwrap_or_default(),
                class: self.class.filter(|class| !class.is_empty()),
                filters: self.filters.unwrap_or_default(),
            };
            sessions.set_exception_spec(wanted).await?;
        }
        Ok(exceptions_report(sessions))
    }
}

fn exceptions_report(sessions: &SessionRegistry) -> ExceptionBreakpointsReport {
    let ExceptionSupport { spec: wanted, known_filters: known, unsupported: mut unable } = sessions.exception_support();
    let book::ExceptionSpec { caught, uncaught, class, filters } = wanted;
    let unknown = filters.iter().find(|filter| !known.is_empty() && !known.contains(filter));
    unable.extend(unknown.map(|filter| format!("no adapter of an active session supports the filter {filter:?}")));
    let message = (!unable.is_empty()).then(|| unable.join("; "));
    ExceptionBreakpointsReport { caught, uncaught, class, filters, known, message }
}

impl OperationHandler for WatchpointSetParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointReport> {
        let sessions = &context.sessions;
        let expression = match (self.expression, self.class_name, self.field_name) {
            (Some(expression), None, None) => expression,
            (None, Some(class), Some(field)) => format!("{class}.{field}"),
            _ => {
                let error = Error::usage("nothing to watch was named");
                return Err(error.hint("name `expression`, or `className` and `fieldName`"));
            }
        };
        let access = match self.access.unwrap_or_default() {
            WatchpointAccess::Read => book::DataAccess::Read,
            WatchpointAccess::Write => book::DataAccess::Write,
            WatchpointAccess::ReadWrite => book::DataAccess::ReadWrite,
        };
        Ok(convert::breakpoint_report(&sessions.set_data_breakpoint(expression, access).await?, sessions.workspace()))
    }
}
