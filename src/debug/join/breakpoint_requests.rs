//! The breakpoint requests of a joined editor: each replaces what is the editor's own.
//!
//! The change is made before the next request is read, so that a launch finds it; sending it to the sessions, and the
//! response, come beside other requests.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tether_dap::types::{
    ExceptionFilterOptions, FunctionBreakpoint, SetBreakpointsArguments, SetExceptionBreakpointsArguments,
    SetFunctionBreakpointsArguments, SourceBreakpoint,
};
use tether_dap::{ErrorResponse, IncomingRequest};
use tokio::time::timeout;

use super::breakpoint_view::ToldBreakpoint;
use super::editor_context::EditorContext;
use crate::debug::breakpoints::{
    BindingStatus, BreakpointConditions, BreakpointSpec, EditorLine, LinePosition, ReplacedLines,
};
use crate::debug::host::managed_session::ManagedSession;

/// How long the binding of breakpoints delays the response; what is bound later is told by events.
const BINDING_TIMEOUT: Duration = Duration::from_millis(500);

/// `setBreakpoints`: makes the change; the returned future sends it, and responds.
pub async fn replace_lines(
    context: EditorContext,
    managed: Option<ManagedSession>,
    request: IncomingRequest,
) -> impl Future<Output = ()> + Send + 'static {
    let replaced = match request.read_arguments::<SetBreakpointsArguments>() {
        Ok(arguments) => replace_file_lines(&context, arguments).await,
        Err(cause) => Err(format!("setBreakpoints: {cause}")),
    };
    async move {
        let replaced = match replaced {
            Ok(replaced) => replaced,
            Err(text) => return request.respond_error(ErrorResponse::new(text)),
        };
        context.sessions.send_editor_lines(&replaced.file).await;
        respond_bindings(&context, managed, request, replaced.specs).await;
    }
}

async fn replace_file_lines(
    context: &EditorContext,
    arguments: SetBreakpointsArguments,
) -> Result<ReplacedLines, String> {
    let count = arguments.breakpoints.len();
    let refuse_each = |text: String| {
        let specs = (0..count).map(|_| Err(Error::other(text.clone()))).collect();
        ReplacedLines { file: Default::default(), specs, removed: Vec::new() }
    };
    let Some(path) = arguments.source.path else {
        return Ok(refuse_each("breakpoints are set in files: this source has none".to_owned()));
    };
    let lines: Option<Vec<EditorLine>> = arguments.breakpoints.into_iter().map(editor_line).collect();
    let Some(lines) = lines else { return Err(format!("setBreakpoints: {path} has no such lines")) };
    match context.sessions.replace_editor_lines(&context.owner, Path::new(&path), lines).await {
        Ok(replaced) => {
            lock(&context.view).forget(&replaced.removed);
            lock(&context.paths).record(&replaced.file, Path::new(&path));
            Ok(replaced)
        }
        Err(error) => Ok(refuse_each(error.to_string())),
    }
}

fn editor_line(it: SourceBreakpoint) -> Option<EditorLine> {
    let line = u32::try_from(it.line).ok()?;
    let column = it.column.and_then(|column| u32::try_from(column).ok()).filter(|column| *column > 0);
    let SourceBreakpoint { condition, hit_condition, log_message, .. } = it;
    let conditions = set_conditions(condition, hit_condition, log_message);
    Some(EditorLine { at: LinePosition { line, column }, conditions })
}

/// Some editors send empty texts where nothing is set.
fn set_conditions(
    condition: Option<String>,
    hit_condition: Option<String>,
    log_message: Option<String>,
) -> BreakpointConditions {
    let set = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (condition, hit_condition, log_message) = (set(condition), set(hit_condition), set(log_message));
    BreakpointConditions { condition, hit_condition, log_message }
}

/// `setFunctionBreakpoints`, as [`replace_lines`].
pub async fn replace_functions(
    context: EditorContext,
    managed: Option<ManagedSession>,
    request: IncomingRequest,
) -> impl Future<Output = ()> + Send + 'static {
    let replaced = match request.read_arguments::<SetFunctionBreakpointsArguments>() {
        Ok(arguments) => {
            let function =
                |it: FunctionBreakpoint| (it.name, set_conditions(it.condition, it.hit_condition, it.log_message));
            let functions = arguments.breakpoints.into_iter().map(function).collect();
            let replaced = context.sessions.replace_editor_functions(&context.owner, functions).await;
            replaced.map_err(|error| error.to_string())
        }
        Err(cause) => Err(format!("setFunctionBreakpoints: {cause}")),
    };
    if let Ok((_, removed)) = &replaced {
        lock(&context.view).forget(removed);
    }
    async move {
        match replaced {
            Ok((specs, _)) => {
                context.sessions.send_editor_functions().await;
                respond_bindings(&context, managed, request, specs).await;
            }
            Err(text) => request.respond_error(ErrorResponse::new(text)),
        }
    }
}

/// `setExceptionBreakpoints`.
pub async fn replace_exceptions(context: EditorContext, request: IncomingRequest) {
    let replaced = match request.read_arguments::<SetExceptionBreakpointsArguments>() {
        Ok(arguments) => {
            let option = |filter_id: String| ExceptionFilterOptions { filter_id, condition: None };
            let filters = arguments.filters.into_iter().map(option).chain(arguments.filter_options).collect();
            let replaced = context.sessions.replace_editor_exceptions(&context.owner, filters).await;
            replaced.map_err(|error| error.to_string())
        }
        Err(cause) => Err(format!("setExceptionBreakpoints: {cause}")),
    };
    match replaced {
        Ok(()) => request.respond(&json!({})),
        Err(text) => request.respond_error(ErrorResponse::new(text)),
    }
}

/// Waits a short time until the breakpoints are bound in the editor's session, and responds with how they are.
async fn respond_bindings(
    context: &EditorContext,
    managed: Option<ManagedSession>,
    request: IncomingRequest,
    specs: Vec<Result<BreakpointSpec>>,
) {
    if let Some(managed) = &managed {
        let set = specs.iter().filter_map(|spec| spec.as_ref().ok());
        let bound = join_all(set.map(|spec| managed.session.wait_for_binding(spec.id)));
        let _ = timeout(BINDING_TIMEOUT, bound).await;
    }
    let status =
        |id| managed.as_ref().map_or(BindingStatus::Pending(None), |managed| managed.session.binding_status(id));
    // Responded with the view locked: no event about a breakpoint overtakes the response that makes it known.
    let mut view = lock(&context.view);
    let report = |spec: Result<BreakpointSpec>| match spec {
        Ok(spec) => {
            let file = lock(&context.paths).of_breakpoint(&spec, context.sessions.file_names());
            let told = ToldBreakpoint::of_spec(&spec, status(spec.id), file);
            let mut reported = told.to_json(spec.id);
            view.record(spec.id, told);
            // The editor's own path may lead to the file over a link.
            reported.as_object_mut().map(|fields| fields.remove("source"));
            reported
        }
        Err(error) => json!({"verified": false, "message": error.to_string()}),
    };
    let reported: Vec<Value> = specs.into_iter().map(report).collect();
    request.respond(&json!({"breakpoints": reported}));
}
