//! The requests of DAP, and what they are answered with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tether_backend::hit_condition::HitCondition;
use tether_backend::requests::exception_filter;
use tether_backend::{Answer, DapRequests, DapStep};
use tether_cdp::CdpError;
use tether_cdp::debugger::SetPauseOnExceptions;
use tether_dap::types::{
    CompletionsArguments, CompletionsResponse, DapBreakpoint, DapCapabilities, DapScope, DapVariable, DataBreakpoint,
    DataBreakpointInfoArguments, DataBreakpointInfoResponse, EvaluateArguments, EvaluateResponse,
    ExceptionInfoResponse, Fields, SetBreakpointsArguments, SetExceptionBreakpointsArguments, SetExpressionArguments,
    SetFunctionBreakpointsArguments, SetVariableArguments, SetVariableResponse, StackTraceArguments,
    StackTraceResponse, ThreadsResponse, VariablesArguments,
};

use super::breakpoint_code::engine_condition;
use super::breakpoint_table::{NodeBreakpointPlace, WantedBreakpoint};
use super::isolate::StepKind;
use super::lane::wait_for_all;
use super::session::NodeSession;
use super::{breakpoint_changes, completions, connection, data_breakpoints, evaluation, frames, resume, variables};

/// Requests that may take as long as code of the program does, and whose order does not matter: they delay no others.
const CONCURRENT: [&str; 7] =
    ["evaluate", "variables", "setVariable", "setExpression", "completions", "dataBreakpointInfo", "source"];

/// Whether a request is answered at once, whatever the ones before it wait for.
pub(crate) fn is_concurrent(command: &str) -> bool {
    CONCURRENT.contains(&command)
}

/// What this adapter can do.
pub(crate) fn capabilities() -> DapCapabilities {
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
            exception_filter("assertions", "Failed assertions, also caught ones", false),
        ],
        others,
    }
}

impl DapRequests for NodeSession {
    async fn threads(self: &Arc<Self>) -> Answer<ThreadsResponse> {
        Ok(ThreadsResponse { threads: frames::list_threads(self), unlisted: None })
    }

    async fn stack_trace(self: &Arc<Self>, arguments: StackTraceArguments) -> Answer<StackTraceResponse> {
        frames::stack_trace(self, arguments).await
    }

    async fn scopes(self: &Arc<Self>, frame_id: i64) -> Answer<Vec<DapScope>> {
        frames::scopes(self, frame_id)
    }

    async fn variables(self: &Arc<Self>, arguments: VariablesArguments) -> Answer<Vec<DapVariable>> {
        variables::variables(self, arguments).await
    }

    async fn evaluate(self: &Arc<Self>, arguments: EvaluateArguments) -> Answer<EvaluateResponse> {
        evaluation::evaluate(self, arguments).await
    }

    async fn start_program(self: &Arc<Self>) -> Answer<()> {
        self.with_settings(|settings| settings.is_configured = true);
        let starting = self.isolates();
        wait_for_all(starting.iter().map(|isolate| connection::request_start(self, isolate)))
            .await
            .unwrap_or_default()
            .into_iter()
            .collect()
    }

    async fn continue_thread(self: &Arc<Self>, thread_id: i64) -> Answer<bool> {
        resume::continue_thread(self, thread_id).await
    }

    async fn step(self: &Arc<Self>, thread_id: i64, step: DapStep) -> Answer<()> {
        let kind = match step {
            DapStep::Over => StepKind::Over,
            DapStep::Into(_) => StepKind::Into,
            DapStep::Out => StepKind::Out,
        };
        resume::step(self, thread_id, kind).await
    }

    async fn pause(self: &Arc<Self>, thread_id: i64) -> Answer<()> {
        resume::pause(self, thread_id).await
    }

    async fn set_breakpoints(self: &Arc<Self>, arguments: SetBreakpointsArguments) -> Answer<Vec<DapBreakpoint>> {
        let path = PathBuf::from(arguments.source.path.ok_or("a source without a path has no breakpoints")?);
        // Scripts are named without links.
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        let wanted = arguments.breakpoints.iter().map(|it| {
            let (line, column) = (it.line.saturating_sub(1), it.column.map(|column| column.saturating_sub(1)));
            let (path, file, anchor) = (path.clone(), file.clone(), it.line_anchor.clone());
            let place = NodeBreakpointPlace::Line { path, file, line, column, anchor };
            self.wanted_breakpoint(place, &it.condition, &it.hit_condition, &it.log_message)
        });
        let is_in_file =
            |place: &NodeBreakpointPlace| matches!(place, NodeBreakpointPlace::Line { path: of, .. } if *of == path);
        breakpoint_changes::replace_breakpoints(self, is_in_file, wanted.collect()).await
    }

    async fn set_exception_breakpoints(self: &Arc<Self>, arguments: SetExceptionBreakpointsArguments) -> Answer<()> {
        let options = arguments.filter_options.iter().map(|option| &option.filter_id);
        let filters: Vec<&String> = arguments.filters.iter().chain(options).collect();
        let has = |name: &str| filters.iter().any(|filter| *filter == name);
        // `all` is what js-debug calls caught ones.
        self.with_settings(|settings| {
            settings.stops_at_caught = has("caught") || has("all");
            settings.stops_at_uncaught = has("uncaught");
            settings.stops_at_assertions = has("assertions");
        });
        let (state, skipped) = (self.exception_state(), connection::skipped_internals(self));
        let setting = self.isolates().into_iter().filter(|isolate| !isolate.is_unprepared()).map(|isolate| {
            let (own, state, skipped) = (Arc::clone(&isolate), state.clone(), skipped.clone());
            isolate.lane.request(async move {
                if let Some(skipped) = skipped {
                    // Fails when it has ended, as the next does.
                    drop(own.call(&skipped).await);
                }
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

    async fn set_function_breakpoints(
        self: &Arc<Self>,
        arguments: SetFunctionBreakpointsArguments,
    ) -> Answer<Vec<DapBreakpoint>> {
        let wanted = arguments.breakpoints.iter().map(|it| {
            let place = NodeBreakpointPlace::Function(it.name.trim().to_owned());
            self.wanted_breakpoint(place, &it.condition, &it.hit_condition, &None)
        });
        let is_function = |place: &NodeBreakpointPlace| matches!(place, NodeBreakpointPlace::Function(_));
        breakpoint_changes::replace_breakpoints(self, is_function, wanted.collect()).await
    }

    async fn set_data_breakpoints(self: &Arc<Self>, wanted: Vec<DataBreakpoint>) -> Answer<Vec<DapBreakpoint>> {
        Ok(data_breakpoints::set_data_breakpoints(self, wanted).await)
    }

    async fn data_breakpoint_info(
        self: &Arc<Self>,
        arguments: DataBreakpointInfoArguments,
    ) -> Answer<DataBreakpointInfoResponse> {
        Ok(data_breakpoints::data_breakpoint_info(self, arguments).await)
    }

    async fn set_variable(self: &Arc<Self>, arguments: SetVariableArguments) -> Answer<SetVariableResponse> {
        variables::set_variable(self, arguments).await
    }

    async fn set_expression(self: &Arc<Self>, arguments: SetExpressionArguments) -> Answer<SetVariableResponse> {
        let SetExpressionArguments { expression, value, frame_id } = arguments;
        evaluation::set_expression(self, &expression, &value, frame_id).await
    }

    async fn completions(self: &Arc<Self>, arguments: CompletionsArguments) -> Answer<CompletionsResponse> {
        completions::completions(self, arguments).await
    }

    async fn exception_info(self: &Arc<Self>, thread_id: i64) -> Answer<ExceptionInfoResponse> {
        evaluation::exception_info(self, thread_id)
    }

    async fn source_text(self: &Arc<Self>, reference: i64) -> Answer<String> {
        frames::source_text(self, reference).await
    }

    async fn restart_frame(self: &Arc<Self>, frame_id: i64) -> Answer<()> {
        resume::restart_frame(self, frame_id).await
    }
}

impl NodeSession {
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
        engine_condition(condition.as_deref(), log_message.as_deref(), (&self.binding, 0))?;
        Ok(WantedBreakpoint { place, condition, hits, log_message })
    }

    /// At which exceptions the engine pauses.
    pub(crate) fn exception_state(&self) -> SetPauseOnExceptions {
        let settings = self.with_settings(|settings| *settings);
        let caught = settings.stops_at_caught || settings.stops_at_assertions || settings.stops_at_failures;
        let state = match (caught, settings.stops_at_uncaught) {
            (false, false) => "none",
            (false, true) => "uncaught",
            (true, _) => "all",
        };
        SetPauseOnExceptions { state }
    }

    /// Stops at the first line of the program.
    pub(crate) async fn stop_at_entry(self: &Arc<NodeSession>, program: &Path) -> Answer<()> {
        let file = program.canonicalize().unwrap_or_else(|_| program.to_owned());
        let place = NodeBreakpointPlace::Entry(file);
        let wanted = WantedBreakpoint { place, condition: None, hits: None, log_message: None };
        breakpoint_changes::replace_breakpoints(self, |_| false, vec![Ok(wanted)]).await.map(drop)
    }
}
