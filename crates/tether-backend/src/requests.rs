//! The requests of a running session, read from DAP, and their answers.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tether_dap::types::{
    CompletionsArguments, CompletionsResponse, ContinueArguments, ContinueResponse, DapBreakpoint, DapScope,
    DapVariable, DataBreakpoint, DataBreakpointInfoArguments, DataBreakpointInfoResponse, EvaluateArguments,
    EvaluateResponse, ExceptionBreakpointsFilter, ExceptionInfoArguments, ExceptionInfoResponse, NextArguments,
    PauseArguments, ScopesArguments, ScopesResponse, SetBreakpointsArguments, SetBreakpointsResponse,
    SetDataBreakpointsArguments, SetExceptionBreakpointsArguments, SetExpressionArguments,
    SetFunctionBreakpointsArguments, SetVariableArguments, SetVariableResponse, SourceArguments, SourceResponse,
    StackTraceArguments, StackTraceResponse, StepInArguments, StepInTargetsArguments, StepInTargetsResponse,
    StepOutArguments, ThreadsResponse, VariablesArguments, VariablesResponse,
};
use tether_dap::{ErrorResponse, IncomingRequest};

use crate::request_failure::RequestFailure;

/// What a request is answered, or why it fails.
pub type Answer<T> = Result<T, RequestFailure>;

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DapStep {
    /// To the next line, over calls.
    Over,
    /// Into a call: the one with that id of `stepInTargets`, or the first.
    Into(Option<i64>),
    /// Out of the function.
    Out,
}

/// The requests of a session. Those with a body here are optional: without one of its own, a backend refuses them, and must
/// not announce them in its capabilities.
pub trait DapRequests: Send + Sync + 'static {
    /// `threads`
    fn threads(self: &Arc<Self>) -> impl Future<Output = Answer<ThreadsResponse>> + Send;

    /// `stackTrace`
    fn stack_trace(
        self: &Arc<Self>,
        arguments: StackTraceArguments,
    ) -> impl Future<Output = Answer<StackTraceResponse>> + Send;

    /// `scopes` of a frame
    fn scopes(self: &Arc<Self>, frame_id: i64) -> impl Future<Output = Answer<Vec<DapScope>>> + Send;

    /// `variables`
    fn variables(
        self: &Arc<Self>,
        arguments: VariablesArguments,
    ) -> impl Future<Output = Answer<Vec<DapVariable>>> + Send;

    /// `evaluate`
    fn evaluate(
        self: &Arc<Self>,
        arguments: EvaluateArguments,
    ) -> impl Future<Output = Answer<EvaluateResponse>> + Send;

    /// `configurationDone`: the client has sent its breakpoints, the program may run.
    fn start_program(self: &Arc<Self>) -> impl Future<Output = Answer<()>> + Send;

    /// `continue`; returns whether all threads run on.
    fn continue_thread(self: &Arc<Self>, thread_id: i64) -> impl Future<Output = Answer<bool>> + Send;

    /// `next`, `stepIn`, `stepOut`
    fn step(self: &Arc<Self>, thread_id: i64, step: DapStep) -> impl Future<Output = Answer<()>> + Send;

    /// `pause`
    fn pause(self: &Arc<Self>, thread_id: i64) -> impl Future<Output = Answer<()>> + Send;

    /// `setBreakpoints`: those of a file, instead of the ones before.
    fn set_breakpoints(
        self: &Arc<Self>,
        arguments: SetBreakpointsArguments,
    ) -> impl Future<Output = Answer<Vec<DapBreakpoint>>> + Send;

    /// `setExceptionBreakpoints`
    fn set_exception_breakpoints(
        self: &Arc<Self>,
        arguments: SetExceptionBreakpointsArguments,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// `setFunctionBreakpoints`
    fn set_function_breakpoints(
        self: &Arc<Self>,
        _: SetFunctionBreakpointsArguments,
    ) -> impl Future<Output = Answer<Vec<DapBreakpoint>>> + Send {
        async { Err(not_supported("setFunctionBreakpoints")) }
    }

    /// `setDataBreakpoints`
    fn set_data_breakpoints(
        self: &Arc<Self>,
        _: Vec<DataBreakpoint>,
    ) -> impl Future<Output = Answer<Vec<DapBreakpoint>>> + Send {
        async { Err(not_supported("setDataBreakpoints")) }
    }

    /// `dataBreakpointInfo`
    fn data_breakpoint_info(
        self: &Arc<Self>,
        _: DataBreakpointInfoArguments,
    ) -> impl Future<Output = Answer<DataBreakpointInfoResponse>> + Send {
        async { Err(not_supported("dataBreakpointInfo")) }
    }

    /// `setVariable`
    fn set_variable(
        self: &Arc<Self>,
        _: SetVariableArguments,
    ) -> impl Future<Output = Answer<SetVariableResponse>> + Send {
        async { Err(not_supported("setVariable")) }
    }

    /// `setExpression`
    fn set_expression(
        self: &Arc<Self>,
        _: SetExpressionArguments,
    ) -> impl Future<Output = Answer<SetVariableResponse>> + Send {
        async { Err(not_supported("setExpression")) }
    }

    /// `completions`
    fn completions(
        self: &Arc<Self>,
        _: CompletionsArguments,
    ) -> impl Future<Output = Answer<CompletionsResponse>> + Send {
        async { Err(not_supported("completions")) }
    }

    /// `exceptionInfo` of a thread
    fn exception_info(self: &Arc<Self>, _: i64) -> impl Future<Output = Answer<ExceptionInfoResponse>> + Send {
        async { Err(not_supported("exceptionInfo")) }
    }

    /// `source`: the text of a source reference
    fn source_text(self: &Arc<Self>, _: i64) -> impl Future<Output = Answer<String>> + Send {
        async { Err(not_supported("source")) }
    }

    /// `stepInTargets` of a frame
    fn step_in_targets(self: &Arc<Self>, _: i64) -> impl Future<Output = Answer<StepInTargetsResponse>> + Send {
        async { Err(not_supported("stepInTargets")) }
    }

    /// `restartFrame`
    fn restart_frame(self: &Arc<Self>, _: i64) -> impl Future<Output = Answer<()>> + Send {
        async { Err(not_supported("restartFrame")) }
    }

    /// A request that is not of the protocol.
    fn other_request(self: &Arc<Self>, request: &IncomingRequest) -> impl Future<Output = Answer<Value>> + Send {
        let refused = not_supported(&request.command);
        async { Err(refused) }
    }
}

/// Answers a request.
pub async fn answer_request<R: DapRequests>(session: &Arc<R>, request: IncomingRequest) {
    let answer = handle_request(session, &request).await;
    send_answer(request, answer);
}

/// Sends the answer to a request.
pub fn send_answer(request: IncomingRequest, answer: Answer<Value>) {
    match answer {
        Ok(body) => request.respond(&body),
        Err(RequestFailure(text)) => request.respond_error(ErrorResponse::new(text)),
    }
}

/// Carries a request out; returns the body of its response. Errors: its arguments are wrong, or it fails.
pub async fn handle_request<R: DapRequests>(session: &Arc<R>, request: &IncomingRequest) -> Answer<Value> {
    match request.command.as_str() {
        "threads" => to_body(session.threads().await?),
        "stackTrace" => to_body(session.stack_trace(read_request::<StackTraceArguments>(request)?).await?),
        "scopes" => {
            let ScopesArguments { frame_id } = read_request(request)?;
            to_body(ScopesResponse { scopes: session.scopes(frame_id).await? })
        }
        "variables" => {
            let arguments: VariablesArguments = read_request(request)?;
            to_body(VariablesResponse { variables: session.variables(arguments).await? })
        }
        "evaluate" => to_body(session.evaluate(read_request::<EvaluateArguments>(request)?).await?),
        "setVariable" => to_body(session.set_variable(read_request::<SetVariableArguments>(request)?).await?),
        "setExpression" => to_body(session.set_expression(read_request::<SetExpressionArguments>(request)?).await?),
        "completions" => to_body(session.completions(read_request(request)?).await?),
        "exceptionInfo" => {
            let ExceptionInfoArguments { thread_id } = read_request(request)?;
            to_body(session.exception_info(thread_id).await?)
        }
        "source" => {
            let SourceArguments { source_reference, .. } = read_request(request)?;
            to_body(SourceResponse { content: session.source_text(source_reference).await? })
        }
        "stepInTargets" => {
            let StepInTargetsArguments { frame_id } = read_request(request)?;
            to_body(session.step_in_targets(frame_id).await?)
        }
        "dataBreakpointInfo" => {
            to_body(session.data_breakpoint_info(read_request::<DataBreakpointInfoArguments>(request)?).await?)
        }
        _ => handle_control(session, request).await,
    }
}

/// Requests that resume or stop, or say where to stop.
async fn handle_control<R: DapRequests>(session: &Arc<R>, request: &IncomingRequest) -> Answer<Value> {
    match request.command.as_str() {
        "configurationDone" => session.start_program().await?,
        "continue" => {
            let ContinueArguments { thread_id } = read_request(request)?;
            let all = session.continue_thread(thread_id).await?;
            return to_body(ContinueResponse { all_threads_continued: Some(all) });
        }
        "next" => {
            let NextArguments { thread_id } = read_request(request)?;
            session.step(thread_id, DapStep::Over).await?;
        }
        "stepIn" => {
            let StepInArguments { thread_id, target_id } = read_request(request)?;
            session.step(thread_id, DapStep::Into(target_id)).await?;
        }
        "stepOut" => {
            let StepOutArguments { thread_id } = read_request(request)?;
            session.step(thread_id, DapStep::Out).await?;
        }
        "pause" => {
            let PauseArguments { thread_id } = read_request(request)?;
            session.pause(thread_id).await?;
        }
        "restartFrame" => {
            let ScopesArguments { frame_id } = read_request(request)?;
            session.restart_frame(frame_id).await?;
        }
        "setBreakpoints" => return to_breakpoints(session.set_breakpoints(read_request(request)?).await?),
        "setFunctionBreakpoints" => {
            return to_breakpoints(session.set_function_breakpoints(read_request(request)?).await?);
        }
        "setDataBreakpoints" => {
            let SetDataBreakpointsArguments { breakpoints } = read_request(request)?;
            return to_breakpoints(session.set_data_breakpoints(breakpoints).await?);
        }
        "setExceptionBreakpoints" => session.set_exception_breakpoints(read_request(request)?).await?,
        _ => return session.other_request(request).await,
    }
    Ok(json!({}))
}

fn not_supported(command: &str) -> RequestFailure {
    RequestFailure(format!("{command} is not supported here"))
}

fn to_breakpoints(breakpoints: Vec<DapBreakpoint>) -> Answer<Value> {
    to_body(SetBreakpointsResponse { breakpoints })
}

/// The arguments of a request. Errors: they have another form.
pub fn read_request<T: DeserializeOwned>(request: &IncomingRequest) -> Answer<T> {
    let command = &request.command;
    request.read_arguments().map_err(|cause| RequestFailure(format!("{command} has bad arguments: {cause}")))
}

/// The body of a response.
pub fn to_body(body: impl Serialize) -> Answer<Value> {
    serde_json::to_value(body).map_err(|cause| RequestFailure(cause.to_string()))
}

/// A filter of exceptions, as capabilities list it.
pub fn exception_filter(filter: &str, label: &str, default: bool) -> ExceptionBreakpointsFilter {
    ExceptionBreakpointsFilter { filter: filter.to_owned(), label: label.to_owned(), default }
}
