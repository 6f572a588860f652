//! The requests of DAP: what each does, and what is answered.

use std::path::Path;

use serde_json::{Value, json};

use super::breakpoint_table::{BreakpointPlace, FunctionName};
use super::breakpoints::{WantedStop, line_place};
use super::session::JavaSession;
use super::sources::package_of;
use super::stop_conditions::parse_conditions;
use crate::adapters::conversation::{exception_filter, read_request, to_body};
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{
    CaptureEventsArguments, ContinueArguments, ContinueResponse, DapCapabilities, DataBreakpointInfoArguments,
    EvaluateArguments, ExceptionInfoArguments, Fields, NextArguments, PauseArguments, ScopesArguments, ScopesResponse,
    SetBreakpointsArguments, SetBreakpointsResponse, SetDataBreakpointsArguments, SetExceptionBreakpointsArguments,
    SetExpressionArguments, SetFunctionBreakpointsArguments, SetVariableArguments, SourceArguments, SourceResponse,
    StackTraceArguments, StepInArguments, StepInTargetsArguments, StepOutArguments, ThreadsResponse,
    VariablesArguments, VariablesResponse,
};
use crate::dap::{ErrorResponse, IncomingRequest};
use crate::jdwp::values::ReferenceTypeId;
use crate::jdwp::{ClearEventRequest, EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};

/// Requests that may run code of the program, or a compiler: they run beside the others.
const EVALUATING: [&str; 4] = ["evaluate", "setVariable", "setExpression", "redefineClasses"];

/// Whether a request may take as long as code of the program, or a compiler, does.
pub fn is_evaluating(command: &str) -> bool {
    EVALUATING.contains(&command)
}

/// What this adapter can do.
pub fn capabilities() -> DapCapabilities {
    let able = [
        "supportsConfigurationDoneRequest",
        "supportsFunctionBreakpoints",
        // Not of the protocol: a function breakpoint may be `Class:line`, and may have a log message.
        "supportsClassLineBreakpoints",
        // Not of the protocol: the request `captureEvents` and the event `monitorEvent`.
        "supportsCaptureEvents",
        // Not of the protocol: the request `redefineClasses`, as other adapters for Java have it.
        "supportsRedefineClasses",
        "supportsConditionalBreakpoints",
        "supportsHitConditionalBreakpoints",
        "supportsLogPoints",
        "supportsEvaluateForHovers",
        "supportsSetVariable",
        "supportsSetExpression",
        "supportsExceptionInfoRequest",
        "supportsDataBreakpoints",
        "supportsRestartFrame",
        "supportTerminateDebuggee",
        "supportsStepInTargetsRequest",
        "supportsCompletionsRequest",
    ];
    let others: Fields = able.into_iter().map(|name| (name.to_owned(), Value::Bool(true))).collect();
    DapCapabilities {
        exception_breakpoint_filters: vec![
            exception_filter("caught", "Caught exceptions", false),
            exception_filter("uncaught", "Uncaught exceptions", true),
            exception_filter("vmDeath", "End of the virtual machine", false),
        ],
        others,
    }
}

impl JavaSession {
    /// Answers a request.
    pub async fn answer_request(&self, request: IncomingRequest) {
        match self.handle_request(&request).await {
            Ok(body) => request.respond(&body),
            Err(RequestFailure(text)) => request.respond_error(ErrorResponse::new(text)),
        }
    }

    async fn handle_request(&self, request: &IncomingRequest) -> Result<Value, RequestFailure> {
        match request.command.as_str() {
            "threads" => to_body(ThreadsResponse { threads: self.list_threads().await? }),
            "stackTrace" => to_body(self.stack_trace(read_request::<StackTraceArguments>(request)?).await?),
            "scopes" => {
                let ScopesArguments { frame_id } = read_request(request)?;
                to_body(ScopesResponse { scopes: self.scopes(frame_id).await? })
            }
            "variables" => {
                let arguments: VariablesArguments = read_request(request)?;
                to_body(VariablesResponse { variables: self.variables(arguments).await? })
            }
            "evaluate" => to_body(self.evaluate(read_request::<EvaluateArguments>(request)?).await?),
            "setVariable" => to_body(self.set_variable(read_request::<SetVariableArguments>(request)?).await?),
            "setExpression" => {
                let SetExpressionArguments { expression, value, frame_id } = read_request(request)?;
                to_body(self.set_expression(&expression, &value, frame_id).await?)
            }
            "stepInTargets" => {
                let StepInTargetsArguments { frame_id } = read_request(request)?;
                to_body(self.step_in_targets(frame_id).await?)
            }
            "source" => {
                let SourceArguments { source_reference, .. } = read_request(request)?;
                to_body(SourceResponse { content: self.source_text(source_reference)? })
            }
            "completions" => to_body(self.completions(read_request(request)?).await?),
            "redefineClasses" => to_body(self.redefine_classes().await?),
            "captureEvents" => {
                let CaptureEventsArguments { kinds } = read_request(request)?;
                to_body(self.capture_events(&kinds).await?)
            }
            "exceptionInfo" => {
                let ExceptionInfoArguments { thread_id } = read_request(request)?;
                to_body(self.exception_info(thread_id).await?)
            }
            "dataBreakpointInfo" => {
                to_body(self.data_info(read_request::<DataBreakpointInfoArguments>(request)?).await?)
            }
            _ => self.handle_control(request).await,
        }
    }

    /// Requests that resume or stop, or say where to stop.
    async fn handle_control(&self, request: &IncomingRequest) -> Result<Value, RequestFailure> {
        match request.command.as_str() {
            "continue" => {
                let ContinueArguments { thread_id } = read_request(request)?;
                let all = self.continue_thread(thread_id).await?;
                return to_body(ContinueResponse { all_threads_continued: Some(all) });
            }
            "next" => {
                let NextArguments { thread_id } = read_request(request)?;
                self.step_line(thread_id, StepDepth::Over).await?;
            }
            "stepIn" => {
                let StepInArguments { thread_id, target_id } = read_request(request)?;
                match target_id {
                    Some(target) => self.step_into_target(thread_id, target).await?,
                    None => self.step_line(thread_id, StepDepth::Into).await?,
                }
            }
            "stepOut" => {
                let StepOutArguments { thread_id } = read_request(request)?;
                self.step_line(thread_id, StepDepth::Out).await?;
            }
            "pause" => {
                let PauseArguments { thread_id } = read_request(request)?;
                self.pause(thread_id).await?;
            }
            "restartFrame" => {
                let ScopesArguments { frame_id } = read_request(request)?;
                self.restart_frame(frame_id).await?;
            }
            "setBreakpoints" => return self.set_line_breakpoints(read_request(request)?).await,
            "setFunctionBreakpoints" => return self.set_function_breakpoints(read_request(request)?).await,
            "setDataBreakpoints" => {
                let SetDataBreakpointsArguments { breakpoints } = read_request(request)?;
                let wanted = breakpoints.iter().map(|it| self.wanted_field(it)).collect();
                let is_data = |kind: &BreakpointPlace| matches!(kind, BreakpointPlace::Field { .. });
                let breakpoints = self.replace_breakpoints(|entry| is_data(&entry.kind), wanted).await?;
                return to_body(SetBreakpointsResponse { breakpoints });
            }
            "setExceptionBreakpoints" => self.set_exception_filters(read_request(request)?).await?,
            other => return Err(format!("{other} is not supported here").into()),
        }
        Ok(json!({}))
    }

    async fn set_line_breakpoints(&self, arguments: SetBreakpointsArguments) -> Result<Value, RequestFailure> {
        let path = arguments.source.path.ok_or("a source without a path has no breakpoints")?;
        let path = Path::new(&path);
        self.sources.add_named_file(path);
        let package = package_of(path).await;
        let wanted = arguments.breakpoints.iter().map(|it| WantedStop {
            kind: line_place(path, it.line, package.clone()),
            conditions: parse_conditions(
                it.condition.as_deref(),
                it.hit_condition.as_deref(),
                it.log_message.as_deref(),
            ),
        });
        let breakpoints = self.replace_breakpoints(|entry| entry.kind.is_in_file(path), wanted.collect()).await?;
        to_body(SetBreakpointsResponse { breakpoints })
    }

    async fn set_function_breakpoints(
        &self,
        arguments: SetFunctionBreakpointsArguments,
    ) -> Result<Value, RequestFailure> {
        let wanted = arguments.breakpoints.iter().map(|it| {
            let conditions =
                parse_conditions(it.condition.as_deref(), it.hit_condition.as_deref(), it.log_message.as_deref());
            match BreakpointPlace::parse_function(&it.name) {
                Ok(kind) => WantedStop { kind, conditions },
                Err(reason) => {
                    let function = FunctionName { class: None, method: String::new(), at_exit: false };
                    WantedStop { kind: BreakpointPlace::Function(function), conditions: Err(reason) }
                }
            }
        });
        let breakpoints = self.replace_breakpoints(|entry| entry.kind.is_function(), wanted.collect()).await?;
        to_body(SetBreakpointsResponse { breakpoints })
    }

    async fn set_exception_filters(&self, arguments: SetExceptionBreakpointsArguments) -> Result<(), RequestFailure> {
        let before = self.with_tables(|tables| std::mem::take(&mut tables.breakpoints.filter_requests));
        for (kind, request) in before {
            self.vm.request(&ClearEventRequest { kind, request }).await?;
        }
        let options = arguments.filter_options.into_iter().map(|option| option.filter_id);
        let filters: Vec<String> = arguments.filters.into_iter().chain(options).collect();
        let has = |name: &str| filters.iter().any(|filter| filter == name);
        let (caught, uncaught) = (has("caught"), has("uncaught"));
        let mut wanted = Vec::new();
        if caught || uncaught {
            let any = EventModifier::ExceptionOnly { class: ReferenceTypeId(0), caught, uncaught };
            wanted.push((EventKind::Exception, SuspendPolicy::EventThread, vec![any]));
        }
        if has("vmDeath") {
            wanted.push((EventKind::VmDeath, SuspendPolicy::All, Vec::new()));
        }
        for (kind, policy, modifiers) in wanted {
            let request = self.vm.request(&SetEventRequest { kind, policy, modifiers }).await?;
            self.with_tables(|tables| tables.breakpoints.filter_requests.push((kind, request)));
        }
        Ok(())
    }
}
