//! The requests of DAP, and what they are answered with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::breakpoint_code::engine_condition;
use super::breakpoint_table::{NodeBreakpointPlace, WantedBreakpoint};
use super::isolate::StepKind;
use super::lane::wait_for_all;
use super::session::NodeSession;
use crate::adapters::conversation::{exception_filter, read_request, to_body};
use crate::adapters::hit_condition::HitCondition;
use crate::adapters::request_failure::RequestFailure;
use crate::cdp::CdpError;
use crate::cdp::debugger::SetPauseOnExceptions;
use crate::dap::types::{
    ContinueArguments, ContinueResponse, DapCapabilities, EvaluateArguments, ExceptionInfoArguments, Fields,
    NextArguments, PauseArguments, ScopesArguments, ScopesResponse, SetBreakpointsArguments, SetBreakpointsResponse,
    SetDataBreakpointsArguments, SetExceptionBreakpointsArguments, SetExpressionArguments,
    SetFunctionBreakpointsArguments, SetVariableArguments, SourceArguments, SourceResponse, StackTraceArguments,
    StepInArguments, StepOutArguments, VariablesArguments, VariablesResponse,
};
use crate::dap::{ErrorResponse, IncomingRequest};

/// Requests that may take as long as code of the program does, and whose order does not matter: they delay no others.
const CONCURRENT: [&str; 7] =
    ["evaluate", "variables", "setVariable", "setExpression", "completions", "dataBreakpointInfo", "source"];

/// The thread, or the frame, that a request is about.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestPlace {
    thread_id: Option<i64>,
    frame_id: Option<i64>,
}

/// Whether a request is answered at once, whatever the ones before it wait for.
pub fn is_concurrent(command: &str) -> bool {
    CONCURRENT.contains(&command)
}

/// What this adapter can do.
pub fn capabilities() -> DapCapabilities {
    let able = [
        "supportsConfigurationDoneRequest",
        "supportsFunctionBreakpoints",
        "supportsConditionalBreakpoints",
        "supportsHitConditionalBreakpoints",
        "supportsLogPoints",
        "supportsEvaluateForHovers",
        "supportsClipboardContext",
        "supportsSetVariable",
        "supportsSetExpression",
        "supportsExceptionInfoRequest",
        "supportsCompletionsRequest",
        "supportsDataBreakpoints",
        "supportsRestartFrame",
        "supportsTerminateRequest",
        "supportsDelayedStackTraceLoading",
        "supportTerminateDebuggee",
    ];
    let mut others: Fields = able.into_iter().map(|name| (name.to_owned(), Value::Bool(true))).collect();
    others.insert("completionTriggerCharacters".to_owned(), json!(["."]));
    DapCapabilities {
        exception_breakpoint_filters: vec![
            exception_filter("caught", "Caught exceptions", false),
            exception_filter("uncaught", "Uncaught exceptions", true),
        ],
        others,
    }
}

impl NodeSession {
    /// Answers a request: one about a thread, or a frame, in the lane of its isolate, which is not waited for.
    pub async fn answer_in_lane(self: &Arc<NodeSession>, request: IncomingRequest) {
        let RequestPlace { thread_id, frame_id } = request.read_arguments().unwrap_or_default();
        let of_frame = || frame_id.and_then(|frame| self.isolate_of_frame(frame));
        let isolate = thread_id.or_else(of_frame).and_then(|id| self.isolate(id).ok());
        let Some(isolate) = isolate else { return self.answer_request(request).await };
        let session = Arc::clone(self);
        // Without room it is dropped, which refuses it.
        let _ = isolate.lane.add(async move { session.answer_request(request).await });
    }

    /// Answers a request.
    pub async fn answer_request(self: &Arc<NodeSession>, request: IncomingRequest) {
        match self.handle_request(&request).await {
            Ok(body) => request.respond(&body),
            Err(RequestFailure(text)) => request.respond_error(ErrorResponse::new(text)),
        }
    }

    async fn handle_request(self: &Arc<NodeSession>, request: &IncomingRequest) -> Result<Value, RequestFailure> {
        match request.command.as_str() {
            "stackTrace" => to_body(self.stack_trace(read_request::<StackTraceArguments>(request)?).await?),
            "scopes" => {
                let ScopesArguments { frame_id } = read_request(request)?;
                to_body(ScopesResponse { scopes: self.list_scopes(frame_id)? })
            }
            "variables" => {
                let arguments: VariablesArguments = read_request(request)?;
                to_body(VariablesResponse { variables: self.list_variables(arguments).await? })
            }
            "evaluate" => to_body(self.evaluate(read_request::<EvaluateArguments>(request)?).await?),
            "setVariable" => to_body(self.set_variable(read_request::<SetVariableArguments>(request)?).await?),
            "setExpression" => {
                let SetExpressionArguments { expression, value, frame_id } = read_request(request)?;
                to_body(self.set_expression(&expression, &value, frame_id).await?)
            }
            "dataBreakpointInfo" => to_body(self.data_info(read_request(request)?).await),
            "completions" => to_body(self.completions(read_request(request)?).await?),
            "exceptionInfo" => {
                let ExceptionInfoArguments { thread_id } = read_request(request)?;
                to_body(self.exception_info(thread_id)?)
            }
            "source" => {
                let SourceArguments { source_reference, .. } = read_request(request)?;
                to_body(SourceResponse { content: self.source_text(source_reference).await? })
            }
            _ => self.handle_control(request).await,
        }
    }

    /// Requests that resume or stop, or say where to stop.
    async fn handle_control(self: &Arc<NodeSession>, request: &IncomingRequest) -> Result<Value, RequestFailure> {
        match request.command.as_str() {
            "continue" => {
                let ContinueArguments { thread_id } = read_request(request)?;
                let all = self.continue_thread(thread_id).await?;
                return to_body(ContinueResponse { all_threads_continued: Some(all) });
            }
            "next" => {
                let NextArguments { thread_id } = read_request(request)?;
                self.step_thread(thread_id, StepKind::Over).await?;
            }
            "stepIn" => {
                let StepInArguments { thread_id, .. } = read_request(request)?;
                self.step_thread(thread_id, StepKind::Into).await?;
            }
            "stepOut" => {
                let StepOutArguments { thread_id } = read_request(request)?;
                self.step_thread(thread_id, StepKind::Out).await?;
            }
            "pause" => {
                let PauseArguments { thread_id } = read_request(request)?;
                self.pause_thread(thread_id).await?;
            }
            "restartFrame" => {
                let ScopesArguments { frame_id } = read_request(request)?;
                self.restart_frame(frame_id).await?;
            }
            "configurationDone" => self.start_isolates().await?,
            "setBreakpoints" => return self.set_line_breakpoints(read_request(request)?).await,
            "setFunctionBreakpoints" => return self.set_function_breakpoints(read_request(request)?).await,
            "setDataBreakpoints" => {
                let SetDataBreakpointsArguments { breakpoints } = read_request(request)?;
                let breakpoints = self.set_data_breakpoints(breakpoints).await;
                return to_body(SetBreakpointsResponse { breakpoints });
            }
            "setExceptionBreakpoints" => self.set_exception_filters(&read_request(request)?).await?,
            other => return Err(format!("{other} is not supported here").into()),
        }
        Ok(json!({}))
    }

    /// The client has sent its breakpoints: what waits for that runs.
    async fn start_isolates(self: &Arc<NodeSession>) -> Result<(), RequestFailure> {
        self.with_settings(|settings| settings.is_configured = true);
        let starting = self.isolates();
        wait_for_all(starting.iter().map(|isolate| self.request_start(isolate)))
            .await
            .unwrap_or_default()
            .into_iter()
            .collect()
    }

    async fn set_line_breakpoints(
        self: &Arc<NodeSession>,
        arguments: SetBreakpointsArguments,
    ) -> Result<Value, RequestFailure> {
        let path = PathBuf::from(arguments.source.path.ok_or("a source without a path has no breakpoints")?);
        // Scripts are named without links.
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        let wanted = arguments.breakpoints.iter().map(|it| {
            let (line, column) = (it.line.saturating_sub(1), it.column.map(|column| column.saturating_sub(1)));
            let place = NodeBreakpointPlace::Line { path: path.clone(), file: file.clone(), line, column };
            self.wanted_breakpoint(place, &it.condition, &it.hit_condition, &it.log_message)
        });
        let is_in_file =
            |place: &NodeBreakpointPlace| matches!(place, NodeBreakpointPlace::Line { path: of, .. } if *of == path);
        let breakpoints = self.replace_breakpoints(is_in_file, wanted.collect()).await?;
        to_body(SetBreakpointsResponse { breakpoints })
    }

    async fn set_function_breakpoints(
        self: &Arc<NodeSession>,
        arguments: SetFunctionBreakpointsArguments,
    ) -> Result<Value, RequestFailure> {
        let wanted = arguments.breakpoints.iter().map(|it| {
            let place = NodeBreakpointPlace::Function(it.name.trim().to_owned());
            self.wanted_breakpoint(place, &it.condition, &it.hit_condition, &None)
        });
        let is_function = |place: &NodeBreakpointPlace| matches!(place, NodeBreakpointPlace::Function(_));
        let breakpoints = self.replace_breakpoints(is_function, wanted.collect()).await?;
        to_body(SetBreakpointsResponse { breakpoints })
    }

    fn wanted_breakpoint(
        &self,
        place: NodeBreakpointPlace,
        condition: &Option<String>,
        hit_condition: &Option<String>,
        log_message: &Option<String>,
    ) -> Result<WantedBreakpoint, String> {
        let given =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        let (condition, log_message) = (given(condition), log_message.clone().filter(|text| !text.is_empty()));
        let hits = given(hit_condition).map(|text| HitCondition::parse(&text)).transpose()?;
        engine_condition(condition.as_deref(), log_message.as_deref(), &self.binding)?;
        Ok(WantedBreakpoint { place, condition, hits, log_message })
    }

    async fn set_exception_filters(
        self: &Arc<NodeSession>,
        arguments: &SetExceptionBreakpointsArguments,
    ) -> Result<(), RequestFailure> {
        let options = arguments.filter_options.iter().map(|option| &option.filter_id);
        let filters: Vec<&String> = arguments.filters.iter().chain(options).collect();
        let has = |name: &str| filters.iter().any(|filter| *filter == name);
        // `all` is what js-debug calls caught ones.
        let (caught, uncaught) = (has("caught") || has("all"), has("uncaught"));
        self.with_settings(|settings| (settings.stops_at_caught, settings.stops_at_uncaught) = (caught, uncaught));
        let state = self.exception_state();
        let setting = self.isolates().into_iter().filter(|isolate| !isolate.is_unprepared()).map(|isolate| {
            let (own, state) = (Arc::clone(&isolate), state.clone());
            isolate.lane.request(async move {
                match own.call(&state).await {
                    // It has ended.
                    Err(CdpError::Closed(_)) => Ok(()),
                    answered => answered.map(drop),
                }
            })
        });
        let set: Result<(), CdpError> = wait_for_all(setting).await.unwrap_or_default().into_iter().collect();
        Ok(set?)
    }

    /// At which exceptions the engine pauses.
    pub fn exception_state(&self) -> SetPauseOnExceptions {
        let settings = self.with_settings(|settings| *settings);
        let state = match (settings.stops_at_caught, settings.stops_at_uncaught) {
            (false, false) => "none",
            (false, true) => "uncaught",
            (true, _) => "all",
        };
        SetPauseOnExceptions { state }
    }

    /// Stops at the first line of the program.
    pub async fn stop_at_entry(self: &Arc<NodeSession>, program: &Path) -> Result<(), RequestFailure> {
        let file = program.canonicalize().unwrap_or_else(|_| program.to_owned());
        let place = NodeBreakpointPlace::Entry(file);
        let wanted = WantedBreakpoint { place, condition: None, hits: None, log_message: None };
        self.replace_breakpoints(|_| false, vec![Ok(wanted)]).await.map(drop)
    }
}
