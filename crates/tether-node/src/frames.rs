//! Threads, frames and scopes.

use std::sync::Arc;

use tether_backend::Answer;
use tether_cdp::debugger::{GetScriptSource, PausedScope};
use tether_cdp::types::StackTrace;
use tether_dap::types::{DapScope, DapSource, DapStackFrame, DapThread, StackTraceArguments, StackTraceResponse};

use super::isolate::{Isolate, IsolatePause};
use super::map_loading;
use super::return_places::shown_place;
use super::scripts::LoadedScript;
use super::session::{ContainerKind, NodeContainer, NodeFrame, NodeSession, SourceOrigin};
use super::source_maps::OriginalPlace;

/// How many frames of asynchronous callers are shown.
const MAX_ASYNC_FRAMES: usize = 200;

/// A frame before it has an id.
struct FrameText {
    name: String,
    script: String,
    line: i64,
    column: i64,
    depth: Option<usize>,
}

/// The isolates, as threads.
pub(crate) fn list_threads(session: &NodeSession) -> Vec<DapThread> {
    session
        .isolates()
        .iter()
        .map(|isolate| DapThread { id: isolate.id, name: isolate.name.clone(), ..DapThread::default() })
        .collect()
}

/// The frames of a thread that has stopped, and those that wait for it. Errors: it has not stopped.
pub(crate) async fn stack_trace(session: &NodeSession, arguments: StackTraceArguments) -> Answer<StackTraceResponse> {
    let isolate = session.isolate(arguments.thread_id)?;
    let pause = isolate.pause().ok_or("notStopped")?;
    let is_ours =
        |frame: &FrameText| session.script(isolate.id, &frame.script).is_some_and(|script| session.is_hook(&script));
    let mut frames = all_frames(&pause);
    frames.retain(|frame| !frame.as_ref().is_ok_and(is_ours));
    let total = frames.len();
    let start = usize::try_from(arguments.start_frame.unwrap_or(0)).unwrap_or(0);
    let levels = arguments.levels.and_then(|levels| usize::try_from(levels).ok()).filter(|levels| *levels > 0);
    let mut stack_frames = Vec::new();
    for frame in frames.into_iter().skip(start).take(levels.unwrap_or(usize::MAX)) {
        stack_frames.push(match frame {
            Ok(frame) => describe_frame(session, &isolate, &pause, frame).await,
            Err(label) => describe_label(session, &isolate, &pause, label),
        });
    }
    Ok(StackTraceResponse { stack_frames, total_frames: Some(total as i64) })
}

fn describe_label(session: &NodeSession, isolate: &Isolate, pause: &IsolatePause, label: String) -> DapStackFrame {
    let id = session.frame_id(NodeFrame { isolate: isolate.id, pause: pause.number, depth: None });
    let presentation_hint = Some("label".to_owned());
    DapStackFrame { id, name: label, presentation_hint, ..DapStackFrame::default() }
}

async fn describe_frame(
    session: &NodeSession,
    isolate: &Isolate,
    pause: &IsolatePause,
    frame: FrameText,
) -> DapStackFrame {
    let id = session.frame_id(NodeFrame { isolate: isolate.id, pause: pause.number, depth: frame.depth });
    let name = if frame.name.is_empty() { "<anonymous>".to_owned() } else { frame.name };
    let script = session.script(isolate.id, &frame.script);
    if let Some(script) = &script {
        map_loading::load_map(session, isolate, script).await;
    }
    let returned = if frame.depth == Some(0) { pause.event.call_frames.first() } else { None };
    let returned = returned.and_then(|top| top.return_value.as_ref());
    let original = match &script {
        Some(script) => shown_place(isolate, script, (frame.line, frame.column), returned).await,
        None => None,
    };
    let (line, column) = original.as_ref().map_or((frame.line, frame.column), |it| (it.line, it.column));
    let source = match (&script, original) {
        (Some(script), Some(original)) => Some(mapped_source(session, isolate.id, script, &original)),
        (Some(script), None) => Some(script_source(session, isolate.id, script)),
        // A script without a name: its text is all that there is.
        (None, _) => Some(unnamed_source(session, isolate.id, &frame.script)),
    };
    let is_skipped = script.as_ref().is_some_and(|script| script.is_skipped);
    let presentation_hint = is_skipped.then(|| "subtle".to_owned());
    DapStackFrame {
        id,
        name,
        line: line.saturating_add(1),
        column: column.saturating_add(1),
        source,
        presentation_hint,
    }
}

fn mapped_source(session: &NodeSession, isolate: i64, script: &LoadedScript, original: &OriginalPlace) -> DapSource {
    let name = original.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let path = Some(original.path.to_string_lossy().into_owned());
    let has_text = script.map().is_some_and(|map| map.source_text(original.source).is_some());
    let origin = SourceOrigin::Map { isolate, script: script.id.clone(), source: original.source };
    let is_missing = has_text && !original.path.is_file();
    let source_reference = is_missing.then(|| session.source_reference(origin));
    DapSource { name, path, source_reference, ..DapSource::default() }
}

/// The source that a script is for the client: its file, or its text.
pub(crate) fn script_source(session: &NodeSession, isolate: i64, script: &LoadedScript) -> DapSource {
    if let Some(path) = script.path.as_ref().filter(|path| path.is_file()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        return DapSource { name, path: Some(path.to_string_lossy().into_owned()), ..DapSource::default() };
    }
    let name = script.path.as_ref().map_or_else(|| script.display_name(), |path| path.display().to_string());
    let origin = SourceOrigin::Script { isolate, script: script.id.clone() };
    let source_reference = Some(session.source_reference(origin));
    let presentation_hint = script.is_skipped.then(|| "deemphasize".to_owned());
    DapSource {
        name: Some(name.clone()),
        path: Some(name),
        source_reference,
        presentation_hint,
        ..DapSource::default()
    }
}

fn unnamed_source(session: &NodeSession, isolate: i64, script: &str) -> DapSource {
    let name = format!("<eval>/VM{script}");
    let origin = SourceOrigin::Script { isolate, script: script.to_owned() };
    let source_reference = Some(session.source_reference(origin));
    DapSource { name: Some(name.clone()), path: Some(name), source_reference, ..DapSource::default() }
}

/// The text of a source without a file.
pub(crate) async fn source_text(session: &NodeSession, reference: i64) -> Answer<String> {
    match session.source_origin(reference)? {
        SourceOrigin::Script { isolate, script } => {
            let isolate = session.isolate(isolate)?;
            Ok(isolate.call(&GetScriptSource { script_id: script }).await?.script_source)
        }
        SourceOrigin::Map { isolate, script, source } => {
            let script = session.script(isolate, &script);
            let text = script.and_then(|script| script.map()?.source_text(source).map(str::to_owned));
            text.ok_or_else(|| "its source map is gone".into())
        }
    }
}

/// The scopes of a frame, the innermost first.
pub(crate) fn scopes(session: &NodeSession, frame_id: i64) -> Answer<Vec<DapScope>> {
    let (isolate, pause, frame) = session.find_frame(frame_id)?;
    let Some(at) = frame.depth.and_then(|depth| pause.event.call_frames.get(depth)) else { return Ok(Vec::new()) };
    let scopes = at.scope_chain.iter().enumerate().filter_map(|(place, scope)| {
        let object_id = scope.object.object_id.clone()?;
        let kind = ContainerKind::Scope { frame, scope: place };
        let variables_reference = session.add_container(NodeContainer { isolate: isolate.id, object_id, kind });
        let presentation_hint = matches!(scope.kind.as_str(), "local" | "block" | "catch").then(|| "locals".to_owned());
        Some(DapScope {
            name: scope_name(scope),
            variables_reference,
            expensive: matches!(scope.kind.as_str(), "global" | "script"),
            presentation_hint,
        })
    });
    Ok(scopes.collect())
}

fn scope_name(scope: &PausedScope) -> String {
    let kind = match scope.kind.as_str() {
        "local" => "Local",
        "block" => "Block",
        "closure" => "Closure",
        "catch" => "Catch Block",
        "module" => "Module",
        "script" => "Script",
        "global" => "Global",
        "with" => "With Block",
        "eval" => "Eval",
        other => other,
    };
    match scope.name.as_deref().filter(|name| !name.is_empty() && scope.kind == "closure") {
        Some(name) => format!("{kind} ({name})"),
        None => kind.to_owned(),
    }
}

/// The frames of a pause, then those of its asynchronous callers, each group behind its label.
fn all_frames(pause: &IsolatePause) -> Vec<Result<FrameText, String>> {
    let live = pause.event.call_frames.iter().enumerate().map(|(depth, frame)| {
        Ok(FrameText {
            name: frame.function_name.clone(),
            script: frame.location.script_id.clone(),
            line: frame.location.line_number,
            column: frame.location.column_number,
            depth: Some(depth),
        })
    });
    let mut frames: Vec<_> = live.collect();
    let most = frames.len().saturating_add(MAX_ASYNC_FRAMES);
    let mut caller: Option<&StackTrace> = pause.event.async_stack_trace.as_ref();
    while let Some(trace) = caller.filter(|_| frames.len() < most) {
        if !trace.call_frames.is_empty() {
            frames.push(Err(trace.description.clone().unwrap_or_else(|| "async".to_owned())));
        }
        frames.extend(trace.call_frames.iter().take(MAX_ASYNC_FRAMES).map(|frame| {
            Ok(FrameText {
                name: frame.function_name.clone(),
                script: frame.script_id.clone(),
                line: frame.line_number,
                column: frame.column_number,
                depth: None,
            })
        }));
        caller = trace.parent.as_deref();
    }
    frames
}

/// The thread of an isolate that another may be named for: the first that has stopped.
pub(crate) fn first_paused(isolates: &[Arc<Isolate>]) -> Option<Arc<Isolate>> {
    isolates.iter().find(|isolate| isolate.pause().is_some()).or(isolates.first()).cloned()
}
