//! Requests that evaluate: they may run code of the program, and are ended when they take too long.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_cdp::CdpError;
use tether_cdp::debugger::{EvaluateInGlobalScope, EvaluateOnCallFrame, PausedFrame};
use tether_cdp::types::{EvaluateResult, RemoteObject};
use tether_dap::types::{
    DapExceptionDetails, EvaluateArguments, EvaluateResponse, ExceptionInfoResponse, SetVariableResponse,
};

use super::frames::first_paused;
use super::isolate::Isolate;
use super::session::NodeSession;
use super::value_text::{type_name, value_text};
use super::variables::{self, STOP_OBJECTS};

/// After this, the engine terminates an evaluation: before clients have given it up.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(8);
/// How long its result is waited for.
const RESULT_TIMEOUT: Duration = Duration::from_secs(9);

/// Evaluates in a frame; without one, in the global scope of the first thread that has stopped.
pub(crate) async fn evaluate(session: &NodeSession, arguments: EvaluateArguments) -> Answer<EvaluateResponse> {
    let (isolate, frame) = find_place(session, arguments.frame_id)?;
    let side_effects =
        if arguments.context.as_deref() == Some("hover") { SideEffects::Throw } else { SideEffects::Allow };
    let result = run_expression(session, &isolate, frame.as_ref(), &arguments.expression, side_effects).await?;
    let is_whole = arguments.context.as_deref() == Some("clipboard");
    let (variables_reference, indexed_variables) = variables::open_value(session, isolate.id, &result);
    let text = match result.value.as_ref().and_then(|value| value.as_str()) {
        Some(text) if is_whole => text.to_owned(),
        _ => value_text(&result),
    };
    let (kind, named_variables) = (Some(type_name(&result)), indexed_variables.map(|_| 1));
    Ok(EvaluateResponse { result: text, variables_reference, kind, named_variables, indexed_variables })
}

/// Gives what an expression names the value of another one.
pub(crate) async fn set_expression(
    session: &NodeSession,
    expression: &str,
    value: &str,
    frame_id: Option<i64>,
) -> Answer<SetVariableResponse> {
    let (isolate, frame) = find_place(session, frame_id)?;
    let assignment = format!("{expression} = (\n{value}\n)");
    let set = run_expression(session, &isolate, frame.as_ref(), &assignment, SideEffects::Allow).await?;
    Ok(variables::set_response(session, isolate.id, &set))
}

/// The isolate and the frame that a request names; without a frame, the first isolate that has stopped. Errors: the frame
/// is gone, or waits for an asynchronous call.
pub(crate) fn find_place(session: &NodeSession, frame_id: Option<i64>) -> Answer<(Arc<Isolate>, Option<PausedFrame>)> {
    match frame_id {
        Some(id) => {
            let (isolate, pause, frame) = session.find_frame(id)?;
            let at = frame.depth.and_then(|depth| pause.event.call_frames.get(depth).cloned());
            let at = at.ok_or("nothing can be evaluated in a frame that waits for an asynchronous call")?;
            Ok((isolate, Some(at)))
        }
        None => Ok((first_paused(&session.isolates()).ok_or("the program has ended")?, None)),
    }
}

/// Whether an expression may change the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SideEffects {
    Allow,
    /// The engine ends the evaluation with an error before it changes something.
    Throw,
}

/// The value of an expression. Errors: it throws, or would have a side effect that is not allowed.
pub(crate) async fn run_expression(
    session: &NodeSession,
    isolate: &Isolate,
    frame: Option<&PausedFrame>,
    expression: &str,
    side_effects: SideEffects,
) -> Answer<RemoteObject> {
    let throw_on_side_effect = side_effects == SideEffects::Throw;
    let object_group = STOP_OBJECTS.to_owned();
    // `{a: 1}` is meant as an object.
    let text = expression.trim();
    let expression = if text.starts_with('{') && text.ends_with('}') { format!("({text})") } else { text.to_owned() };
    let timeout = u64::try_from(EVALUATION_TIMEOUT.as_millis()).ok();
    let called = match frame {
        Some(frame) => {
            let call_frame_id = frame.call_frame_id.clone();
            let evaluate =
                EvaluateOnCallFrame { call_frame_id, expression, object_group, throw_on_side_effect, timeout };
            isolate.call_within(&evaluate, RESULT_TIMEOUT).await
        }
        None => {
            // A promise is not settled before the isolate runs, and the result of `replMode` is one.
            let is_running = isolate.pause().is_none();
            let (repl_mode, await_promise, include_command_line_api) = (is_running, is_running, true);
            let evaluate = EvaluateInGlobalScope {
                expression,
                object_group,
                throw_on_side_effect,
                timeout,
                repl_mode,
                await_promise,
                include_command_line_api,
                disable_breaks: false,
            };
            isolate.call_within(&evaluate, RESULT_TIMEOUT).await
        }
    };
    let mut result = read_result(called)?;
    variables::add_previews(session, isolate.id, vec![&mut result]).await;
    Ok(result)
}

/// The value of an expression in the global scope. Waits for no promise: a thread that has not run yet settles none.
pub(crate) async fn find_global(isolate: &Isolate, expression: &str) -> Answer<RemoteObject> {
    let evaluate = EvaluateInGlobalScope {
        expression: expression.to_owned(),
        object_group: STOP_OBJECTS.to_owned(),
        timeout: u64::try_from(EVALUATION_TIMEOUT.as_millis()).ok(),
        ..EvaluateInGlobalScope::default()
    };
    read_result(isolate.call_within(&evaluate, RESULT_TIMEOUT).await)
}

/// What a thread has stopped at. Errors: it has not stopped at an exception.
pub(crate) fn exception_info(session: &NodeSession, thread_id: i64) -> Answer<ExceptionInfoResponse> {
    let pause = session.isolate(thread_id)?.pause().filter(|pause| pause.is_exception());
    let pause = pause.ok_or("the thread has not stopped at an exception")?;
    let data = pause.event.data.clone().unwrap_or_default();
    let is_uncaught = data.get("uncaught").and_then(Value::as_bool).unwrap_or(false);
    let thrown: RemoteObject = serde_json::from_value(data).map_err(|cause| RequestFailure(cause.to_string()))?;
    let description = thrown.description.clone().unwrap_or_else(|| value_text(&thrown));
    let first = description.lines().next().unwrap_or_default();
    let class = thrown.class_name.clone().unwrap_or_else(|| thrown.kind.clone());
    let is_error = thrown.subtype.as_deref() == Some("error");
    let message = first.split_once(": ").filter(|_| is_error).map_or(first, |(_, message)| message).to_owned();
    let details = DapExceptionDetails {
        message: Some(message.clone()),
        type_name: Some(class.clone()),
        full_type_name: Some(class.clone()),
        stack_trace: Some(description.clone()).filter(|_| is_error),
    };
    Ok(ExceptionInfoResponse {
        exception_id: class,
        break_mode: if is_uncaught { "unhandled" } else { "always" }.to_owned(),
        description: Some(message),
        details: Some(details),
    })
}

fn read_result(called: Result<EvaluateResult, CdpError>) -> Answer<RemoteObject> {
    let too_long = || {
        let within = humantime::format_duration(EVALUATION_TIMEOUT);
        RequestFailure(format!("it has not ended within {within}, and was terminated"))
    };
    let result = match called {
        Ok(result) => result,
        Err(CdpError::ErrorResponse { message, .. }) if message == "Execution was terminated" => return Err(too_long()),
        // A promise that is not settled.
        Err(CdpError::TimedOut { after, .. }) => {
            return Err(format!("it has no result within {}", humantime::format_duration(after)).into());
        }
        Err(error) => return Err(error.into()),
    };
    match result.exception_details {
        Some(details) => Err(details.text().lines().next().unwrap_or_default().into()),
        None => Ok(result.result),
    }
}
