//! The requests of DAP: what each does, and what is answered.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::breakpoint_table::{BreakpointPlace, FunctionName};
use super::breakpoints::{WantedStop, line_place};
use super::session::{JavaSession, ValueContainer};
use super::sources::package_of;
use super::stop_conditions::parse_conditions;
use crate::adapters::conversation::{exception_filter, read_request, to_body};
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{
    CaptureEventsArguments, ContinueArguments, ContinueResponse, DapCapabilities, DapThread,
    DataBreakpointInfoArguments, EvaluateArguments, ExceptionInfoArguments, Fields, NextArguments, PauseArguments,
    ScopesArguments, ScopesResponse, SetBreakpointsArguments, SetBreakpointsResponse, SetDataBreakpointsArguments,
    SetExceptionBreakpointsArguments, SetExpressionArguments, SetFunctionBreakpointsArguments, SetVariableArguments,
    SourceArguments, SourceResponse, StackTraceArguments, StepInArguments, StepInTargetsArguments, StepOutArguments,
    ThreadsResponse, VariablesArguments, VariablesResponse,
};
use crate::dap::{ErrorResponse, IncomingRequest};
use crate::jdwp::values::{ObjectId, ReferenceTypeId};
use crate::jdwp::{ClearEventRequest, EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};

/// Requests that may run code of the program: one at a time in a thread.
const EVALUATING: [&str; 5] = ["evaluate", "setVariable", "setExpression", "completions", "dataBreakpointInfo"];
/// Requests that read the frames of a thread: not while an evaluation runs in it.
const READING_FRAMES: [&str; 9] = [
    "stackTrace",
    "scopes",
    "variables",
    "exceptionInfo",
    "stepInTargets",
    "next",
    "stepIn",
    "stepOut",
    "restartFrame",
];
/// Requests that step: where the thread was when they came, or not at all.
const STEPPING: [&str; 4] = ["next", "stepIn", "stepOut", "restartFrame"];
/// Requests that change what runs or where it stops: in the order in which they came.
const ORDERED: [&str; 11] = [
    "configurationDone",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "restartFrame",
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "captureEvents",
];
/// How long a pause waits for the requests before it: a virtual machine may never answer them.
const ORDER_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the virtual machine may take to list the threads; then they are listed as they were the last time.
const THREADS_TIMEOUT: Duration = Duration::from_millis(700);

/// Which thread a request is about.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ThreadOfRequest {
    thread_id: Option<i64>,
    frame_id: Option<i64>,
    variables_reference: Option<i64>,
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
    /// Answers a request. Several run at a time: each waits for its turn in its thread, and those that change what runs for
    /// those before it. Their places are taken in the order in which these futures are polled first.
    pub async fn answer_request(&self, request: IncomingRequest) {
        // Held until the response is queued: it comes before the stops that follow from it.
        let mut order = None;
        match self.handle_in_turn(&request, &mut order).await {
            Ok(body) => request.respond(&body),
            Err(RequestFailure(text)) => request.respond_error(ErrorResponse::new(text)),
        }
    }

    async fn handle_in_turn<'a>(
        &'a self,
        request: &IncomingRequest,
        order: &mut Option<MutexGuard<'a, ()>>,
    ) -> Result<Value, RequestFailure> {
        let command = request.command.as_str();
        let thread = self.thread_of(request);
        let halts = || self.with_tables(|tables| thread.map(|thread| tables.suspends.halts(thread)));
        let halts_before = halts();
        let _turn = match thread {
            Some(thread) => Some(self.take_turn(thread, EVALUATING.contains(&command)).await?),
            None => None,
        };
        *order = match command {
            "pause" => timeout(ORDER_TIMEOUT, self.order.lock()).await.ok(),
            _ if ORDERED.contains(&command) => Some(self.order.lock().await),
            _ => None,
        };
        if STEPPING.contains(&command) && halts() != halts_before {
            return Err("the program was paused or resumed before the step could begin".into());
        }
        self.handle_request(request).await
    }

    /// The thread in which a request has to wait for its turn.
    fn thread_of(&self, request: &IncomingRequest) -> Option<ObjectId> {
        let is_evaluation = EVALUATING.contains(&request.command.as_str());
        if !is_evaluation && !READING_FRAMES.contains(&request.command.as_str()) {
            return None;
        }
        // The request itself fails by its arguments.
        let given: ThreadOfRequest = request.read_arguments().unwrap_or_default();
        let of_frame = |id| self.frame_spot(id).ok();
        let of_container = |reference| match self.container(reference) {
            Ok(ValueContainer::Locals(spot)) => Some(spot),
            _ => None,
        };
        let spot = given.frame_id.and_then(of_frame).or_else(|| given.variables_reference.and_then(of_container));
        let thread = given.thread_id.and_then(|id| self.thread(id).ok()).or(spot.map(|spot| spot.thread));
        thread.or_else(|| self.any_spot().ok().filter(|_| is_evaluation).map(|spot| spot.thread))
    }

    async fn threads_in_time(&self) -> Result<Vec<DapThread>, RequestFailure> {
        if let Ok(listed) = timeout(THREADS_TIMEOUT, self.list_threads()).await {
            return listed;
        }
        let known = self.with_tables(|tables| {
            let mut known = tables.listed_threads.clone();
            known.retain(|thread| tables.threads.find(thread.id).is_some());
            known
        });
        match known.is_empty() {
            true => Err("the virtual machine does not answer".into()),
            false => Ok(known),
        }
    }

    async fn handle_request(&self, request: &IncomingRequest) -> Result<Value, RequestFailure> {
        match request.command.as_str() {
            "threads" => to_body(ThreadsResponse { threads: self.threads_in_time().await? }),
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
            "configurationDone" => {
                let reports_vm_start = self.with_tables(|tables| {
                    tables.is_configured = true;
                    tables.reports_vm_start
                });
                match reports_vm_start {
                    true => self.report_vm_start().await,
                    false => self.start_program().await,
                }
            }
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
