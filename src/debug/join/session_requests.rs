//! The requests of a joined editor about the program: threads, resume, pause, and those that are forwarded to the adapter of
//! their target with its ids, and otherwise unchanged.

use serde_json::{Value, json};
use tether_base::error::Result;
use tether_base::sync::lock;
use tether_dap::types::{Fields, PauseArguments};
use tether_dap::{ErrorResponse, IncomingRequest, RawJson};

use super::editor_context::EditorContext;
use super::editor_ids::IdKind;
use super::id_rewrite::{rewrite_for_adapter, rewrite_for_editor};
use crate::debug::host::managed_session::ManagedSession;
use crate::debug::inspect;
use crate::debug::inspect::ScopedId;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::resume::{Resume, ResumeClient};
use crate::timeline::event_now;
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// What is forwarded; everything else is answered here, or refused.
pub const FORWARDED_REQUESTS: [&str; 9] = [
    "stackTrace",
    "scopes",
    "variables",
    "evaluate",
    "setVariable",
    "setExpression",
    "source",
    "completions",
    "exceptionInfo",
];
/// Of these, the ones that change variables.
const CHANGING_REQUESTS: [&str; 2] = ["setVariable", "setExpression"];
/// Of these, the ones about a thread that has stopped.
const STOPPED_REQUESTS: [&str; 2] = ["stackTrace", "exceptionInfo"];

/// Of these, the ones whose responses name source files.
const SOURCE_REQUESTS: [&str; 2] = ["stackTrace", "scopes"];

/// Sends a request to the adapter of its target, and its response to the editor.
pub async fn forward_request(context: EditorContext, managed: ManagedSession, request: IncomingRequest) {
    match request_adapter(&context, &managed.session, &request).await {
        Ok(body) => request.respond(&body),
        Err(text) => request.respond_error(ErrorResponse::new(text)),
    }
}

async fn request_adapter(
    context: &EditorContext,
    session: &DebugSession,
    request: &IncomingRequest,
) -> Result<Option<Value>, String> {
    let command = request.command.as_str();
    let mut arguments = Value::Object(request.read_arguments::<Fields>()?);
    let target = rewrite_for_adapter(&mut arguments, &lock(&context.ids))?;
    let thread = arguments.get("threadId").and_then(Value::as_i64);
    if let (Some(target), Some(thread)) = (target, thread.filter(|_| STOPPED_REQUESTS.contains(&command))) {
        session.resolve_thread(Some((target, thread))).map_err(|error| error.to_string())?;
    }
    let target = target.or_else(|| default_target(session)).ok_or("the session has ended")?;
    let client = session.shared.client(target).ok_or("the target of this request has ended")?;
    let raw = serde_json::value::to_raw_value(&arguments).map_err(|cause| cause.to_string())?;
    let response = client.request_raw(command, Some(raw), session.shared.request_timeout).await;
    let is_evaluation = command == "evaluate";
    if is_evaluation || CHANGING_REQUESTS.contains(&command) {
        // The program may have run, and its variables may have changed.
        session.shared.with_state(|state| state.stop_cache.clear_frames());
        let context_name = arguments.get("context").and_then(Value::as_str);
        if !is_evaluation || context_name == Some("repl") {
            record_call(context, session, command, &arguments);
            session.shared.forward_changed_variables(target, Some(context.owner.editor));
        }
    }
    let body: Option<RawJson> = response.map_err(|error| error.to_string())?;
    let Some(body) = body else { return Ok(None) };
    let mut body: Value = serde_json::from_str(body.get()).map_err(|cause| cause.to_string())?;
    rewrite_for_editor(&mut body, target, &mut lock(&context.ids));
    if SOURCE_REQUESTS.contains(&command) {
        let names = context.sessions.file_names();
        names.prepare().await;
        lock(&context.paths).rename_sources(&mut body, names);
    }
    Ok(Some(body))
}

/// Records what an editor has its user evaluate or set, in the timeline.
fn record_call(context: &EditorContext, session: &DebugSession, command: &str, arguments: &Value) {
    let subject = ["expression", "name"].iter().find_map(|field| arguments.get(*field)?.as_str());
    let event = event_now(TimelineKind::Called, format!("{command} {}", subject.unwrap_or_default()));
    let editors = session.snapshot().editors;
    let by = editors.iter().find(|editor| editor.id == context.owner.editor).map(|editor| editor.name.to_string());
    context.sessions.timeline().record(TimelineEvent { by, ..event });
}

/// The target of a request that names none: that of the primary stop, or the newest, which runs the user's code.
fn default_target(session: &DebugSession) -> Option<usize> {
    let snapshot = session.snapshot();
    let stopped = snapshot.stops().first().map(|(target, _)| *target);
    let newest = || (0..snapshot.targets.len()).rev().find(|target| session.shared.client(*target).is_some());
    stopped.or_else(newest)
}

/// `threads`: those of all targets; where there are several, each with the name of its own.
pub async fn respond_threads(context: EditorContext, managed: ManagedSession, request: IncomingRequest) {
    let threads = inspect::list_threads(&managed.session).await;
    let snapshot = managed.session.snapshot();
    let first = threads.first().map(|thread| thread.id.target);
    let has_several = threads.iter().any(|thread| Some(thread.id.target) != first);
    let mut ids = lock(&context.ids);
    let list: Vec<Value> = threads
        .iter()
        .map(|thread| {
            let own = if thread.name.is_empty() { format!("thread {}", thread.id.id) } else { thread.name.clone() };
            let target = snapshot.targets.get(thread.id.target).map(|it| it.name.as_str()).unwrap_or_default();
            let name = if has_several && !target.is_empty() { format!("{target}: {own}") } else { own };
            json!({"id": ids.give(IdKind::Thread, thread.id), "name": name})
        })
        .collect();
    request.respond(&json!({"threads": list}));
}

/// The thread of a request, by the adapter's id.
fn find_thread(context: &EditorContext, request: &IncomingRequest) -> Result<ScopedId, String> {
    let PauseArguments { thread_id } = request.read_arguments()?;
    lock(&context.ids).find(IdKind::Thread, thread_id).ok_or_else(|| format!("there is no thread {thread_id}"))
}

/// `continue`, `next`, `stepIn`, `stepOut`: accepted if the thread is stopped, and nobody has resumed it meanwhile.
pub async fn resume_thread(context: EditorContext, managed: ManagedSession, request: IncomingRequest, how: Resume) {
    let thread = match find_thread(&context, &request) {
        Ok(thread) => thread,
        Err(text) => return request.respond_error(ErrorResponse::new(text)),
    };
    let client = ResumeClient::Editor(context.owner.name.clone());
    let resumed = managed.session.resume_by(client, how, Some((thread.target, thread.id))).await;
    match resumed {
        Ok(()) if how == Resume::Continue => {
            let all = lock(&context.ids).has_only_threads_of(thread.target);
            request.respond(&json!({"allThreadsContinued": all}));
        }
        Ok(()) => request.respond(&json!({})),
        Err(error) => request.respond_error(ErrorResponse::new(error.to_string())),
    }
}

/// `pause`. The stop is told by an event.
pub async fn pause_thread(context: EditorContext, managed: ManagedSession, request: IncomingRequest) {
    let thread = find_thread(&context, &request);
    let paused = match thread {
        Ok(thread) => inspect::pause_thread(&managed.session, Some(thread)).await.map_err(|error| error.to_string()),
        Err(text) => Err(text),
    };
    match paused {
        Ok(()) => request.respond(&json!({})),
        Err(text) => request.respond_error(ErrorResponse::new(text)),
    }
}
