//! The requests of DAP: what each does, and what is answered.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tether_backend::requests::{exception_filter, handle_request, read_request, send_answer, to_body};
use tether_backend::{Answer, DapRequests, DapStep};
use tether_dap::IncomingRequest;
use tether_dap::types::{
    CaptureEventsArguments, CompletionsArguments, CompletionsResponse, DapBreakpoint, DapCapabilities, DapScope,
    DapVariable, DataBreakpoint, DataBreakpointInfoArguments, DataBreakpointInfoResponse, EvaluateArguments,
    EvaluateResponse, ExceptionInfoResponse, Fields, SetBreakpointsArguments, SetExceptionBreakpointsArguments,
    SetExpressionArguments, SetFunctionBreakpointsArguments, SetVariableArguments, SetVariableResponse,
    StackTraceArguments, StackTraceResponse, StepInTargetsResponse, ThreadsResponse, VariablesArguments,
};
use tether_jdwp::values::{ObjectId, ReferenceTypeId};
use tether_jdwp::{ClearEventRequest, EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::breakpoint_table::{BreakpointPlace, FunctionName};
use super::breakpoints::{self, WantedBreakpoint, line_place};
use super::session::{JavaSession, ValueContainer};
use super::sources::package_of;
use super::stop_conditions::parse_conditions;
use super::{
    completions, evaluation, frames, hot_swap, monitor_events, resume, step_targets, stops, thread_control, variables,
};

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
pub(crate) fn capabilities() -> DapCapabilities {
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
            exception_filter("assertions", "Failed assertions, also caught ones", false),
            exception_filter("vmDeath", "End of the virtual machine", false),
        ],
        others,
    }
}

impl DapRequests for JavaSession {
    async fn threads(self: &Arc<Self>) -> Answer<ThreadsResponse> {
        if let Ok(listed) = timeout(THREADS_TIMEOUT, frames::list_threads(self)).await {
            return listed;
        }
        let known = self.with_tables(|tables| {
            let mut known = tables.listed_threads.clone();
            known.threads.retain(|thread| tables.threads.find(thread.id).is_some());
            known
        });
        match known.threads.is_empty() {
            true => Err("the virtual machine does not answer".into()),
            false => Ok(known),
        }
    }

    async fn stack_trace(self: &Arc<Self>, arguments: StackTraceArguments) -> Answer<StackTraceResponse> {
        frames::stack_trace(self, arguments).await
    }

    async fn scopes(self: &Arc<Self>, frame_id: i64) -> Answer<Vec<DapScope>> {
        frames::scopes(self, frame_id).await
    }

    async fn variables(self: &Arc<Self>, arguments: VariablesArguments) -> Answer<Vec<DapVariable>> {
        variables::variables(self, arguments).await
    }

    async fn evaluate(self: &Arc<Self>, arguments: EvaluateArguments) -> Answer<EvaluateResponse> {
        evaluation::evaluate(self, arguments).await
    }

    async fn start_program(self: &Arc<Self>) -> Answer<()> {
        let reports_vm_start = self.with_tables(|tables| {
            tables.is_configured = true;
            tables.reports_vm_start
        });
        if reports_vm_start {
            stops::report_vm_start(self).await
        } else {
            resume::resume_start(self).await
        }
        Ok(())
    }

    async fn continue_thread(self: &Arc<Self>, thread_id: i64) -> Answer<bool> {
        resume::continue_thread(self, thread_id).await
    }

    async fn step(self: &Arc<Self>, thread_id: i64, step: DapStep) -> Answer<()> {
        match step {
            DapStep::Over => resume::step_line(self, thread_id, StepDepth::Over).await,
            DapStep::Into(Some(target)) => step_targets::step_into_target(self, thread_id, target).await,
            DapStep::Into(None) => resume::step_line(self, thread_id, StepDepth::Into).await,
            DapStep::Out => resume::step_line(self, thread_id, StepDepth::Out).await,
        }
    }

    async fn pause(self: &Arc<Self>, thread_id: i64) -> Answer<()> {
        resume::pause(self, thread_id).await
    }

    async fn set_breakpoints(self: &Arc<Self>, arguments: SetBreakpointsArguments) -> Answer<Vec<DapBreakpoint>> {
        let path = arguments.source.path.ok_or("a source without a path has no breakpoints")?;
        let path = Path::new(&path);
        self.sources.add_named_file(path);
        let package = package_of(path).await;
        let wanted = arguments.breakpoints.iter().map(|it| WantedBreakpoint {
            place: line_place(path, it, package.clone()),
            conditions: parse_conditions(
                it.condition.as_deref(),
                it.hit_condition.as_deref(),
                it.log_message.as_deref(),
            ),
        });
        breakpoints::replace_breakpoints(self, |entry| entry.place.is_in_file(path), wanted.collect()).await
    }

    async fn set_exception_breakpoints(self: &Arc<Self>, arguments: SetExceptionBreakpointsArguments) -> Answer<()> {
        let before = self.with_tables(|tables| std::mem::take(&mut tables.breakpoints.filter_requests));
        for (kind, request) in before {
            self.vm.request(&ClearEventRequest { kind, request }).await?;
        }
        let options = arguments.filter_options.into_iter().map(|option| option.filter_id);
        let filters: Vec<String> = arguments.filters.into_iter().chain(options).collect();
        let has = |name: &str| filters.iter().any(|filter| filter == name);
        let (caught, uncaught, assertions) = (has("caught"), has("uncaught"), has("assertions"));
        self.with_tables(|tables| tables.breakpoints.only_assertions = assertions && !caught);
        let mut wanted = Vec::new();
        if caught || uncaught || assertions {
            // The class of assertions may not be loaded yet.
            let caught = caught || assertions;
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

    async fn set_function_breakpoints(
        self: &Arc<Self>,
        arguments: SetFunctionBreakpointsArguments,
    ) -> Answer<Vec<DapBreakpoint>> {
        let wanted = arguments.breakpoints.iter().map(|it| {
            let conditions =
                parse_conditions(it.condition.as_deref(), it.hit_condition.as_deref(), it.log_message.as_deref());
            match BreakpointPlace::parse_function(&it.name) {
                Ok(place) => WantedBreakpoint { place, conditions },
                Err(reason) => {
                    let function = FunctionName { class: None, method: String::new(), at_exit: false };
                    WantedBreakpoint { place: BreakpointPlace::Function(function), conditions: Err(reason) }
                }
            }
        });
        breakpoints::replace_breakpoints(self, |entry| entry.place.is_function(), wanted.collect()).await
    }

    async fn set_data_breakpoints(self: &Arc<Self>, wanted: Vec<DataBreakpoint>) -> Answer<Vec<DapBreakpoint>> {
        let wanted = wanted.iter().map(evaluation::wanted_field).collect();
        let is_data = |place: &BreakpointPlace| matches!(place, BreakpointPlace::Field { .. });
        breakpoints::replace_breakpoints(self, |entry| is_data(&entry.place), wanted).await
    }

    async fn data_breakpoint_info(
        self: &Arc<Self>,
        arguments: DataBreakpointInfoArguments,
    ) -> Answer<DataBreakpointInfoResponse> {
        evaluation::data_breakpoint_info(self, arguments).await
    }

    async fn set_variable(self: &Arc<Self>, arguments: SetVariableArguments) -> Answer<SetVariableResponse> {
        evaluation::set_variable(self, arguments).await
    }

    async fn set_expression(self: &Arc<Self>, arguments: SetExpressionArguments) -> Answer<SetVariableResponse> {
        let SetExpressionArguments { expression, value, frame_id } = arguments;
        evaluation::set_expression(self, &expression, &value, frame_id).await
    }

    async fn completions(self: &Arc<Self>, arguments: CompletionsArguments) -> Answer<CompletionsResponse> {
        completions::completions(self, arguments).await
    }

    async fn exception_info(self: &Arc<Self>, thread_id: i64) -> Answer<ExceptionInfoResponse> {
        evaluation::exception_info(self, thread_id).await
    }

    async fn source_text(self: &Arc<Self>, reference: i64) -> Answer<String> {
        frames::source_text(self, reference)
    }

    async fn step_in_targets(self: &Arc<Self>, frame_id: i64) -> Answer<StepInTargetsResponse> {
        step_targets::step_in_targets(self, frame_id).await
    }

    async fn restart_frame(self: &Arc<Self>, frame_id: i64) -> Answer<()> {
        resume::restart_frame(self, frame_id).await
    }

    async fn other_request(self: &Arc<Self>, request: &IncomingRequest) -> Answer<Value> {
        match request.command.as_str() {
            "redefineClasses" => to_body(hot_swap::redefine_classes(self).await?),
            "captureEvents" => {
                let CaptureEventsArguments { kinds } = read_request(request)?;
                to_body(monitor_events::capture_events(self, &kinds).await?)
            }
            other => Err(format!("{other} is not supported here").into()),
        }
    }
}

impl JavaSession {
    /// Answers a request. Several run at a time: each waits for its turn in its thread, and those that change what runs for
    /// those before it. Their places are taken in the order in which these futures are polled first.
    pub(crate) async fn answer_in_turn(self: &Arc<Self>, request: IncomingRequest) {
        // Held until the response is queued: it comes before the stops that follow from it.
        let mut order = None;
        let answer = self.handle_in_turn(&request, &mut order).await;
        send_answer(request, answer);
    }

    async fn handle_in_turn<'a>(
        self: &'a Arc<Self>,
        request: &IncomingRequest,
        order: &mut Option<MutexGuard<'a, ()>>,
    ) -> Answer<Value> {
        let command = request.command.as_str();
        let thread = self.thread_of(request);
        let halts = || self.with_tables(|tables| thread.map(|thread| tables.suspends.halts(thread)));
        let halts_before = halts();
        let _turn = match thread {
            Some(thread) => Some(thread_control::take_turn(self, thread, EVALUATING.contains(&command)).await?),
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
        handle_request(self, request).await
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
        thread.or_else(|| evaluation::any_spot(self).ok().filter(|_| is_evaluation).map(|spot| spot.thread))
    }
}
