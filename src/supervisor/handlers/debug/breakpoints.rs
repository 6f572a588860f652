//! Breakpoints, watchpoints and exception breakpoints.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

use crate::api::debug::breakpoints::{
    BreakpointExceptionsParams, BreakpointExportParams, BreakpointImportParams, BreakpointListParams,
    BreakpointListReport, BreakpointRemoveParams, BreakpointReport, BreakpointSetParams, BreakpointState,
    ExceptionBreakpointsReport,
};
use crate::api::debug::values::FileLine;
use crate::config;
use crate::debug::breakpoints;
use crate::debug::breakpoints::{RequestedBreakpoint, RequestedLine, RequestedPlace};
use crate::debug::source_file::load_source;
use crate::debug::{ExceptionSupport, SessionEntry, SessionRegistry};
use crate::session_host::operations::convert;
use crate::session_host::operations::watchpoint::set_breakpoint_report;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

impl OperationHandler for BreakpointSetParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointReport> {
        let sessions = &context.sessions;
        let reported = sessions.set_breakpoint(request_breakpoint(&self)?).await?;
        Ok(set_breakpoint_report(sessions, &reported).await)
    }
}

/// The breakpoint that is asked for. Errors: not one place is named.
pub(super) fn request_breakpoint(it: &BreakpointSetParams) -> Result<RequestedBreakpoint> {
    let conditions = breakpoints::BreakpointConditions {
        condition: it.condition.clone(),
        hit_condition: it.hit_condition.clone(),
        log_message: it.log_message.clone(),
    };
    let place = match (&it.function, &it.file, &it.class_name, &it.text) {
        (Some(name), None, None, None) => {
            RequestedPlace::Named(breakpoints::BreakpointKind::Function { name: name.clone() })
        }
        (None, None, Some(class), None) => {
            let FileLine { file: class_name, line, .. } = FileLine::parse(class, it.line)?;
            RequestedPlace::Named(breakpoints::BreakpointKind::ClassLine { class_name, line })
        }
        (None, Some(file), None, text) => {
            let (file, line, column) = match (text, FileLine::parse(file, it.line)) {
                (_, Ok(spot)) => (spot.file, Some(spot.line), spot.column),
                (Some(_), Err(_)) if it.line.is_none() => (file.clone(), None, None),
                (_, Err(error)) => return Err(error),
            };
            let (file, column, text) = (file.into(), it.column.or(column), text.clone());
            RequestedPlace::Line(RequestedLine { file, line, column, text })
        }
        (_, None, _, Some(_)) => {
            return Err(Error::usage("`text` is the text of a line of a file").hint("name the `file`"));
        }
        _ => {
            let error = Error::usage("not one place for the breakpoint was named");
            return Err(error.hint("name one of: `file` (\"app.py:22\"), `className` and `line`, `function`"));
        }
    };
    Ok(RequestedBreakpoint { place, conditions })
}

impl OperationHandler for BreakpointListParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        Ok(list_breakpoints(context).await)
    }
}

async fn list_breakpoints(context: &SupervisorContext) -> BreakpointListReport {
    let sessions = &context.sessions;
    let reported = sessions.list_breakpoints().await;
    let mut breakpoints: Vec<BreakpointReport> =
        reported.iter().map(|it| convert::breakpoint_report(it, sessions.file_names())).collect();
    let ended: Vec<_> = context.list_sessions().iter().filter(|it| it.is_ended()).map(|it| it.known_status()).collect();
    for report in breakpoints.iter_mut().filter(|it| it.message.is_none() && it.state == BreakpointState::Pending) {
        // The last session that could have stopped there.
        let last = ended.iter().rev().find_map(|status| {
            let unreached = status.not_reached.iter().find(|it| it.breakpoint_id == report.breakpoint_id)?;
            Some(format!("in {}, which has ended, {}", status.session_id, unreached.reason))
        });
        report.message = last;
    }
    BreakpointListReport {
        breakpoints,
        exceptions: exceptions_report(sessions),
        notes: Vec::from_iter(sessions.breakpoint_store_problem().await),
    }
}

impl OperationHandler for BreakpointRemoveParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        let sessions = &context.sessions;
        let removed = match (self.breakpoint_id, &self.file, self.all.unwrap_or_default()) {
            (Some(id), None, false) => sessions.remove_breakpoints(move |spec| spec.id == id).await?,
            // Those of a joined editor are the editor's to remove, or removed by their id.
            (None, None, true) => sessions.remove_breakpoints(|spec| spec.owner.is_none()).await?,
            (None, Some(file), false) => {
                let (file, line) = FileLine::parse_file_or_line(file, None)?;
                let path = sessions.workspace().join(file);
                let path: PathBuf = path.canonicalize().unwrap_or(path);
                sessions.remove_breakpoints(move |spec| is_at(spec, &path, line)).await?
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
        Ok(list_breakpoints(context).await)
    }
}

impl OperationHandler for BreakpointExportParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        let sessions = &context.sessions;
        let file = sessions.workspace().join(&self.file);
        let doing = || format!("cannot export the breakpoints to {}", file.display());
        match load_source(&file).await {
            Ok(text) if breakpoints::StoredBreakpoints::parse(text.as_bytes()).is_ok() => {}
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            _ => {
                let error = Error::usage(doing()).because("it exists, and is not an export of breakpoints");
                return Err(error.hint("name a new file, or remove that one yourself"));
            }
        }
        let text = sessions.export_breakpoints().await?;
        let written = file.clone();
        let written = tokio::task::spawn_blocking(move || config::replace_file(&written, &text)).await;
        written.doing(doing)?.doing(doing)?;
        Ok(list_breakpoints(context).await)
    }
}

impl OperationHandler for BreakpointImportParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<BreakpointListReport> {
        let sessions = &context.sessions;
        let file = sessions.workspace().join(&self.file);
        let failed = |cause: String| {
            let error = Error::usage(format!("cannot import breakpoints from {}", file.display())).because(cause);
            error.hint("name a file that `tether break export` has written")
        };
        let text = load_source(&file).await.map_err(|cause| failed(cause.to_string()))?;
        let imported = sessions.import_breakpoints(text.as_bytes()).await;
        imported.map_err(|error| failed(error.to_string()))?;
        Ok(list_breakpoints(context).await)
    }
}

fn is_at(spec: &breakpoints::BreakpointSpec, path: &Path, at: Option<u32>) -> bool {
    match &spec.kind {
        breakpoints::BreakpointKind::Line { file, line, .. } => {
            spec.owner.is_none() && file == path && at.is_none_or(|at| at == *line)
        }
        _ => false,
    }
}

impl OperationHandler for BreakpointExceptionsParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ExceptionBreakpointsReport> {
        let sessions = &context.sessions;
        if self.caught.is_some() || self.uncaught.is_some() || self.class.is_some() || self.filters.is_some() {
            let spec = breakpoints::ExceptionSpec {
                caught: self.caught.unwrap_or_default(),
                uncaught: self.uncaught.unwrap_or_default(),
                class: self.class.filter(|class| !class.is_empty()),
                filters: self.filters.unwrap_or_default(),
            };
            sessions.set_exception_spec(spec).await?;
        }
        Ok(exceptions_report(sessions))
    }
}

fn exceptions_report(sessions: &SessionRegistry) -> ExceptionBreakpointsReport {
    let ExceptionSupport { spec, known_filters: known, mut unsupported } = sessions.exception_support();
    let breakpoints::ExceptionSpec { caught, uncaught, class, filters } = spec;
    let unknown = filters.iter().find(|filter| !known.is_empty() && !known.contains(filter));
    unsupported.extend(unknown.map(|filter| format!("no adapter of an active session supports the filter {filter:?}")));
    let message = (!unsupported.is_empty()).then(|| unsupported.join("; "));
    ExceptionBreakpointsReport { caught, uncaught, class, filters, known, message }
}
