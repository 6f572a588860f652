//! Requests that evaluate: expressions, assignments, what can be watched, what was thrown.

use std::sync::Arc;

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_dap::types::{
    DapExceptionDetails, DapVariable, DataBreakpoint, DataBreakpointInfoArguments, DataBreakpointInfoResponse,
    EvaluateArguments, EvaluateResponse, ExceptionInfoResponse, SetVariableArguments, SetVariableResponse,
    StackTraceArguments,
};
use tether_jdwp::commands::threads::ForceEarlyReturn;
use tether_jdwp::values::{JdwpValue, TYPE_CLASS};

use super::breakpoint_table::BreakpointPlace;
use super::breakpoints::WantedBreakpoint;
use super::expression::Operand;
use super::expression::evaluator::Evaluator;
use super::expression::parser::parse_expression;
use super::expression::scope::VariablePlace;
use super::expression::syntax::JavaExpression;
use super::frames::{self, FrameCode};
use super::java_vm::{JavaClass, STATIC};
use super::session::{FrameSpot, JavaSession, ValueContainer};
use super::stop_conditions::parse_conditions;
use super::value_text::quote_text;
use super::variables;
use crate::expression::operations;

/// The longest text that an evaluation shows, in characters.
const MAX_TEXT: usize = 100_000;
/// How many frames the stack of an exception has.
const MAX_STACK: i64 = 50;

/// The value of an expression in a frame; without one, in the innermost frame of a stopped thread.
pub(crate) async fn evaluate(session: &JavaSession, arguments: EvaluateArguments) -> Answer<EvaluateResponse> {
    let spot = match arguments.frame_id {
        Some(id) => session.frame_spot(id)?,
        None => any_spot(session)?,
    };
    if let Some(returned) = returned_expression(&arguments) {
        return force_return(session, spot, returned).await;
    }
    let expression = parse_expression(&arguments.expression)?;
    // Whoever points at a name has not asked for anything to run.
    let operand = match arguments.context.as_deref() {
        Some("hover") => operations::look_in(session, spot, &expression).await?,
        _ => operations::evaluate_in(session, spot, &expression).await?,
    };
    let shown = show_operand(session, &operand).await?;
    Ok(EvaluateResponse {
        result: shown.value,
        variables_reference: shown.variables_reference,
        kind: shown.kind,
        named_variables: None,
        indexed_variables: shown.indexed_variables,
    })
}

/// Makes the innermost method of a thread return a value at once, when the thread goes on.
async fn force_return(session: &JavaSession, spot: FrameSpot, expression: &str) -> Answer<EvaluateResponse> {
    if !session.vm.capabilities.force_early_return {
        return Err("this virtual machine cannot return early".into());
    }
    if spot.depth != 0 {
        return Err("only the innermost frame of a thread can return early".into());
    }
    let frame = frames::read_frame(session, spot).await?;
    if matches!(frame.code, FrameCode::Old(None)) {
        return Err("what this old code returns is not known".into());
    }
    let (_, returned) = super::signatures::method_types(&frame.method.signature);
    let name = format!("{}.{}", frame.class.short_name(), frame.method.name);
    let (value, text) = match (returned, expression) {
        ("V", "") => (JdwpValue::Void, format!("{name} returns when its thread continues")),
        ("V", _) => return Err(format!("{name} returns nothing: write `return`").into()),
        (_, "") => return Err(format!("{name} returns a value: write `return` and the value").into()),
        (signature, expression) => {
            let value = operations::convert_in(session, spot, &parse_expression(expression)?, signature).await?;
            let shown = session.vm.show_value(value, signature).await?.text;
            (value, format!("{name} returns {shown} when its thread continues"))
        }
    };
    session.vm.request(&ForceEarlyReturn { thread: spot.thread, value }).await?;
    Ok(EvaluateResponse { result: text, ..EvaluateResponse::default() })
}

/// The innermost frame of a stopped thread. Errors: none is stopped.
pub(crate) fn any_spot(session: &JavaSession) -> Answer<FrameSpot> {
    let thread = session.with_tables(|tables| tables.suspends.stopped().min());
    let thread =
        thread.ok_or("an expression needs a thread that has stopped at a breakpoint, a step or an exception")?;
    Ok(FrameSpot { thread, depth: 0 })
}

async fn show_operand(session: &JavaSession, operand: &Operand) -> Answer<DapVariable> {
    match operand {
        Operand::Text(text) => Ok(DapVariable {
            value: quote_text(text, MAX_TEXT),
            kind: Some("java.lang.String".to_owned()),
            ..DapVariable::default()
        }),
        Operand::Value { value: JdwpValue::Object(object), .. } if object.tag == b's' && !object.id.is_null() => {
            let request = tether_jdwp::commands::objects::StringValue { string: object.id };
            let text = session.vm.request(&request).await?;
            Box::pin(show_operand(session, &Operand::Text(text))).await
        }
        Operand::Value { value, declared } => {
            variables::show_variable(session, "", *value, declared.as_deref().unwrap_or("Ljava/lang/Object;")).await
        }
    }
}

/// Assigns to a variable of a scope or of a value.
pub(crate) async fn set_variable(
    session: &JavaSession,
    arguments: SetVariableArguments,
) -> Answer<SetVariableResponse> {
    let SetVariableArguments { variables_reference, name, value } = arguments;
    let container = session.container(variables_reference)?;
    let spot = match container {
        ValueContainer::Locals(spot) => spot,
        _ => any_spot(session)?,
    };
    let place = place_in(session, &container, spot, &name).await?;
    let operand = operations::assign_in(session, spot, place, &parse_expression(&value)?).await?;
    set_response(session, &operand).await
}

/// Assigns to an expression.
pub(crate) async fn set_expression(
    session: &JavaSession,
    expression: &str,
    value: &str,
    frame: Option<i64>,
) -> Answer<SetVariableResponse> {
    let spot = frame.map_or_else(|| any_spot(session), |id| session.frame_spot(id))?;
    let place = Evaluator::new(session, spot).find_place(&parse_expression(expression)?).await?;
    let operand = operations::assign_in(session, spot, place, &parse_expression(value)?).await?;
    set_response(session, &operand).await
}

async fn set_response(session: &JavaSession, operand: &Operand) -> Answer<SetVariableResponse> {
    let shown = show_operand(session, operand).await?;
    Ok(SetVariableResponse {
        value: Some(shown.value),
        kind: shown.kind,
        variables_reference: Some(shown.variables_reference),
    })
}

/// What the variable of that name in a container is.
async fn place_in(
    session: &JavaSession,
    container: &ValueContainer,
    spot: FrameSpot,
    name: &str,
) -> Answer<VariablePlace> {
    let missing = || RequestFailure(format!("there is no variable {name} here"));
    match container {
        ValueContainer::Locals(_) if name == "this" => Err("`this` cannot be assigned".into()),
        ValueContainer::Locals(_) => {
            let found = Evaluator::new(session, spot).find_variable(name).await?;
            found.ok_or_else(missing)
        }
        ValueContainer::Statics(class) => {
            let class = session.vm.class(*class, TYPE_CLASS).await?;
            let found = session.vm.find_field(&class, name).await?;
            found.map(VariablePlace::Static).ok_or_else(missing)
        }
        ValueContainer::Fields(object) => {
            let class = session.vm.class_of(object.id).await?;
            let found = session.vm.find_field(&class, name).await?;
            let found = found.filter(|found| found.field.modifiers & STATIC == 0);
            found.map(|found| VariablePlace::Instance { object: object.id, found }).ok_or_else(missing)
        }
        ValueContainer::Elements { array, length } => {
            let index: usize = name.trim_matches(['[', ']']).parse().map_err(|_| missing())?;
            let class = session.vm.class_of(*array).await?;
            let element = class.signature.strip_prefix('[').ok_or_else(missing)?.to_owned();
            let index = Some(index).filter(|index| index < length).and_then(|index| i32::try_from(index).ok());
            Ok(VariablePlace::Element { array: *array, index: index.ok_or_else(missing)?, element })
        }
        ValueContainer::Contents(_) | ValueContainer::Entry(_) => {
            Err("what a collection holds is changed by its own methods: evaluate `list.set(0, value)`".into())
        }
    }
}

/// Whether a field can be watched, and the id that it is watched by: `com.example.Counter.value`.
pub(crate) async fn data_breakpoint_info(
    session: &JavaSession,
    arguments: DataBreakpointInfoArguments,
) -> Answer<DataBreakpointInfoResponse> {
    match watchable_field(session, &arguments).await {
        Ok((class, field)) => {
            let access_types = ["read", "write", "readWrite"].map(str::to_owned).to_vec();
            let data_id = format!("{class}.{field}");
            let (data_id, description) = (Some(data_id.clone()), data_id);
            Ok(DataBreakpointInfoResponse { data_id, description, access_types, can_persist: true })
        }
        Err(failure) => Ok(DataBreakpointInfoResponse { description: failure.0, ..Default::default() }),
    }
}

async fn watchable_field(session: &JavaSession, arguments: &DataBreakpointInfoArguments) -> Answer<(String, String)> {
    if !session.vm.capabilities.watch_field_access || !session.vm.capabilities.watch_field_modification {
        return Err("this virtual machine cannot watch fields".into());
    }
    let name = arguments.name.as_str();
    let spot = match arguments.frame_id {
        Some(id) => session.frame_spot(id),
        None => any_spot(session),
    };
    let place = match (arguments.variables_reference.filter(|it| *it > 0), spot) {
        (Some(reference), spot) => {
            let spot = spot.unwrap_or(FrameSpot { thread: tether_jdwp::values::ObjectId(0), depth: 0 });
            place_in(session, &session.container(reference)?, spot, name).await?
        }
        (None, Ok(spot)) => match place_of_expression(session, spot, name).await {
            Ok(place) => place,
            // A class that is not loaded is watched when it is.
            Err(failure) => return class_and_field(name).filter(|it| is_class_name(&it.0)).ok_or(failure),
        },
        (None, Err(failure)) => return class_and_field(name).ok_or(failure),
    };
    match place {
        VariablePlace::Static(found) | VariablePlace::Instance { found, .. } => {
            Ok((found.class.name(), found.field.name))
        }
        _ => Err(format!("{name} is not a field: a virtual machine watches only fields").into()),
    }
}

/// A field by an expression, without running code of the program; `Counter.value` names one that is not static, too.
async fn place_of_expression(session: &JavaSession, spot: FrameSpot, name: &str) -> Answer<VariablePlace> {
    let expression = parse_expression(name)?;
    let mut evaluator = Evaluator::new(session, spot).without_code();
    let failure = match evaluator.find_place(&expression).await {
        Ok(place) => return Ok(place),
        Err(failure) => failure,
    };
    if let (JavaExpression::Member(..), Some((class, field))) = (&expression, class_and_field(name))
        && let Some(class) = evaluator.find_class(&class).await?
        && let Some(found) = session.vm.find_field(&class, &field).await?
    {
        return Ok(VariablePlace::Static(found));
    }
    Err(failure)
}

/// The watchpoint with that id.
pub(crate) fn wanted_field(it: &DataBreakpoint) -> WantedBreakpoint {
    let access = it.access_type.as_deref().unwrap_or("write");
    let (class, field) = class_and_field(&it.data_id).unwrap_or_default();
    let (reads, writes) = (access != "write", access != "read");
    let place = BreakpointPlace::Field { class, field, reads, writes };
    WantedBreakpoint { place, conditions: parse_conditions(it.condition.as_deref(), it.hit_condition.as_deref(), None) }
}

/// What a thread has thrown.
pub(crate) async fn exception_info(session: &JavaSession, thread_id: i64) -> Answer<ExceptionInfoResponse> {
    let thread = session.thread(thread_id)?;
    let halt = session.with_tables(|tables| tables.suspends.halt(thread));
    let thrown = halt.and_then(|halt| halt.exception);
    let (exception, is_caught) = thrown.ok_or("the thread has not stopped at an exception")?;
    let class: Arc<JavaClass> = session.vm.class_of(exception.id).await?;
    let message = session.vm.exception_message(exception.id).await?;
    let stack = StackTraceArguments { thread_id, levels: Some(MAX_STACK), ..StackTraceArguments::default() };
    let description = message.as_ref().map_or(class.name(), |message| format!("{}: {message}", class.name()));
    let mut lines = vec![description.clone()];
    for frame in frames::stack_trace(session, stack).await?.stack_frames {
        let file = frame.source.and_then(|source| source.name).unwrap_or_else(|| "Native Method".to_owned());
        let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
        lines.push(format!("\tat {}({file}{line})", frame.name));
    }
    Ok(ExceptionInfoResponse {
        exception_id: class.name(),
        break_mode: if is_caught { "always" } else { "unhandled" }.to_owned(),
        description: Some(description),
        details: Some(DapExceptionDetails {
            message: Some(message.unwrap_or_default()),
            type_name: Some(class.name()),
            full_type_name: Some(class.name()),
            stack_trace: Some(lines.join("\n")),
        }),
    })
}

/// `com.example.Counter.value` → `com.example.Counter`, `value`
fn class_and_field(name: &str) -> Option<(String, String)> {
    let (class, field) = name.trim().rsplit_once('.')?;
    (!class.is_empty() && !field.is_empty()).then(|| (class.to_owned(), field.to_owned()))
}

/// Whether a name looks like that of a class: its last part begins with a capital.
fn is_class_name(name: &str) -> bool {
    name.rsplit(['.', '$']).next().is_some_and(|last| last.starts_with(char::is_uppercase))
}

/// What `return …` in a console is to return; `None`: it is an expression.
fn returned_expression(arguments: &EvaluateArguments) -> Option<&str> {
    let is_console = arguments.context.as_deref().is_none_or(|context| context == "repl");
    let text = arguments.expression.trim().trim_end_matches(';').trim_end();
    let rest = text.strip_prefix("return").filter(|_| is_console)?;
    let is_word = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
    is_word.then(|| rest.trim())
}
