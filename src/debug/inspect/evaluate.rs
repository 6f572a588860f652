//! Evaluating expressions, and setting variables: by `setVariable` where the variable is found, else by `setExpression`.

use futures_util::future::join_all;
use tether_base::clipped_text::clip_chars;
use tether_base::error::{Error, ErrorKind, Result};
use tether_dap::types::{EvaluateArguments, EvaluateResponse, SetExpressionArguments, SetVariableArguments};

use super::scoped_id::ScopedId;
use super::source::frame_source;
use super::stack::{list_scopes, read_stack, resolve_frame};
use super::variables::read_variables;
use super::variables::{DapVariable, VariableParent};
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::disconnect::log_error;
use crate::vocabulary::RunState;

/// How much of an expression or a name an error shows, in characters.
const MAX_NAMED_CHARS: usize = 80;

/// Evaluates in a frame; without one in the top frame of the primary stop, or, while nothing is stopped, globally
/// where the adapter can.
pub async fn evaluate(
    session: &DebugSession,
    expression: &str,
    frame: Option<ScopedId>,
    context: &str,
) -> Result<(ScopedId, EvaluateResponse)> {
    let running = frame.is_none() && session.snapshot().run_state() != RunState::Stopped;
    let at = if running { newest_target(session)? } else { resolve_frame(session, frame).await? };
    let request = EvaluateArguments {
        expression: expression.to_owned(),
        frame_id: (!running).then_some(at.id),
        context: Some(context.to_owned()),
    };
    let generation = session.snapshot().generation;
    let answer = session.request(at.target, &request).await;
    session.shared.with_state(|state| state.stop_cache.clear_frames());
    let answer = answer.map_err(|cause| {
        session.request_error(&format!("evaluate `{}`", clip_chars(expression, MAX_NAMED_CHARS)), cause)
    })?;
    let value = at.with_id(answer.variables_reference);
    session.shared.with_state(|state| {
        state.stop_cache.insert_size(generation, value, answer.indexed_variables, answer.named_variables)
    });
    Ok((value, answer))
}

/// Evaluates in each connected target of a program, without a frame. An error is logged.
pub(in crate::debug) async fn evaluate_in_targets(session: &DebugSession, program: usize, expression: &str) {
    let request =
        EvaluateArguments { expression: expression.to_owned(), frame_id: None, context: Some("repl".to_owned()) };
    let snapshot = session.snapshot();
    let own = snapshot
        .targets
        .iter()
        .enumerate()
        .filter(|(id, target)| target.program == program && session.shared.client(*id).is_some());
    for answer in join_all(own.map(|(id, _)| session.request(id, &request))).await {
        log_error(answer);
    }
}

/// The newest connected target: the one that runs the user's code.
fn newest_target(session: &DebugSession) -> Result<ScopedId> {
    let last = (0..session.snapshot().targets.len()).rev().find(|id| session.shared.client(*id).is_some());
    last.map(|target| ScopedId { target, id: 0 }).ok_or_else(|| session.not_stopped_error())
}

/// Sets a variable of a frame's scopes, or of a structured value; returns the value that it has then.
pub async fn set_variable(
    session: &DebugSession,
    name: &str,
    value: &str,
    parent: &VariableParent,
) -> Result<(ScopedId, EvaluateResponse)> {
    let shown = clip_chars(name, MAX_NAMED_CHARS);
    let (at, is_reference) = find_variable(session, name, parent).await?;
    let before = if parent.reference.is_none() {
        read_set_value(session, name, at, is_reference).await.ok().flatten()
    } else {
        None
    };
    // An adapter may exit at a request that it does not support (rdbg).
    let able = session.shared.target(at.target).capabilities();
    let (name_sent, value_sent) = (name.to_owned(), value.to_owned());
    let answer = if is_reference {
        if session.shared.client(at.target).is_none() {
            let error = Error::new(ErrorKind::NotFound, format!("there is no value {}", at.to_external()));
            return Err(error.hint("`tether debug variables` lists the references of this stop"));
        }
        if !able.can("supportsSetVariable") {
            let error = Error::usage(format!("cannot set `{shown}`")).because("this adapter cannot set variables");
            return Err(error.hint(format!("`tether debug evaluate '{name} = {value}'` may do it")));
        }
        let (variables_reference, name, value) = (at.id, name_sent, value_sent);
        let set = SetVariableArguments { variables_reference, name, value };
        session.request(at.target, &set).await
    } else {
        if !able.can("supportsSetExpression") {
            let error = Error::new(ErrorKind::NotFound, format!("there is no variable `{shown}` in this frame"));
            return Err(error.hint("`tether debug variables` lists them"));
        }
        let (expression, value, frame_id) = (name_sent, value_sent, Some(at.id));
        session.request(at.target, &SetExpressionArguments { expression, value, frame_id }).await
    };
    session.shared.with_state(|state| state.stop_cache.clear_frames());
    let answer = answer.map_err(|cause| session.request_error(&format!("set `{shown}`"), cause))?;
    session.shared.forward_changed_variables(at.target, None);
    let Some(result) = answer.value else {
        // It was set, whether that can be read or not.
        let result = value.to_owned();
        let read = read_set_value(session, name, at, is_reference).await.ok().flatten();
        return Ok(read.unwrap_or_else(|| (at.with_id(0), EvaluateResponse { result, ..Default::default() })));
    };
    // Not by a list of variables, which some adapters keep until the next stop (js-debug, Delve).
    if let Some((_, before)) = before.filter(|(_, before)| before.result != result)
        && let Ok((_, now)) = evaluate(session, name, parent.frame, "watch").await
        && now.result == before.result
    {
        let [set, now] = [&result, &now.result].map(|value| clip_chars(value, MAX_NAMED_CHARS));
        let cause = format!("the adapter has answered `{set}`, and it is still `{now}`");
        return Err(Error::other(format!("cannot set `{shown}`")).because(cause));
    }
    let variables_reference = answer.variables_reference.unwrap_or_default();
    let value = EvaluateResponse { result, kind: answer.kind, variables_reference, ..EvaluateResponse::default() };
    Ok((at.with_id(variables_reference), value))
}

/// What is said of a variable of the top frame that was set, where the statement there may not read it: its line names it, and the
/// program may go on with the value that the statement before has assigned.
pub async fn unread_value_note(session: &DebugSession, name: &str, parent: &VariableParent) -> Option<String> {
    let top = read_stack(session, None, None, Some(1)).await.ok()?.frames.into_iter().next()?;
    let is_top = parent.reference.is_none() && parent.frame.is_none_or(|frame| frame == top.id);
    if !is_top || !session.shared.target(top.id.target).quirks().keeps_read_values {
        return None;
    }
    let source = frame_source(session, &top).await?;
    let line = source.text.lines().nth(usize::try_from(top.line).ok()?.checked_sub(1)?)?;
    let is_name_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let is_named = line.split(|c| !is_name_part(c)).any(|word| word == name);
    is_named.then(|| {
        format!(
            "if the statement before has assigned `{name}`, the one at line {} may go on with that value; later ones read the new one",
            top.line
        )
    })
}

/// The value of a variable that was set, and whose adapter has not returned it (lldb-dap 19). `None`: it is not listed.
async fn read_set_value(
    session: &DebugSession,
    name: &str,
    at: ScopedId,
    is_reference: bool,
) -> Result<Option<(ScopedId, EvaluateResponse)>> {
    if !is_reference {
        return evaluate(session, name, Some(at), "watch").await.map(Some);
    }
    let found = read_variables(session, at).await?.into_iter().find(|it| it.name == name);
    let Some(DapVariable { value: result, kind, variables_reference, .. }) = found else { return Ok(None) };
    let value = EvaluateResponse { result, kind, variables_reference, ..EvaluateResponse::default() };
    Ok(Some((at.with_id(variables_reference), value)))
}

/// The structured value or the scope that has a variable, and `true`; else the frame, and `false`.
async fn find_variable(session: &DebugSession, name: &str, parent: &VariableParent) -> Result<(ScopedId, bool)> {
    if let Some(reference) = parent.reference {
        return Ok((reference, true));
    }
    let frame = resolve_frame(session, parent.frame).await?;
    for scope in list_scopes(session, frame).await?.into_iter().filter(|scope| !scope.expensive) {
        let reference = frame.with_id(scope.variables_reference);
        if read_variables(session, reference).await?.iter().any(|variable| variable.name == name) {
            return Ok((reference, true));
        }
    }
    Ok((frame, false))
}
