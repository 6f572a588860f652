//! Handles CDP events: updates targets, frames and refs; records console and network; queues follow-up commands.
//!
//! Runs in the reader of the connection, so it never blocks. What needs a command to the browser is queued as a
//! [`FollowUp`].

use tether_base::clipped_text::first_chars;
use tether_base::clock::monotonic_ms;
use tether_cdp::CdpEvent;
use tether_cdp::events::{
    AttachedToTarget, DetachedFromTarget, DownloadWillBegin, DragIntercepted, ExecutionContextCreated,
    ExecutionContextDestroyed, FrameEvent, FrameNavigated, JavascriptDialogOpening, NavigatedWithinDocument,
    TargetDestroyed, TargetInfoChanged,
};
use tether_cdp::network::{RequestPaused, WebSocketFrameEvent};
use tether_cdp::page_control::FileChooserOpened;
use tether_cdp::profiling::{HeapSnapshotChunk, TracingComplete};

use super::console::ConsoleSource;
use super::page_state::{FollowUp, PageState};
use super::profile::MAX_HEAP;
use super::server_updates::ServerUpdate;
use super::targets::{AttachedTarget, DialogAnswer, PageNotice};

/// Handles one event.
pub fn handle_event(event: &CdpEvent, state: &PageState) {
    let (domain, _) = event.method.split_once('.').unwrap_or_default();
    match domain {
        "Target" => handle_target_event(event, state),
        "Page" => handle_page_event(event, state),
        "Inspector" => handle_inspector_event(event, state),
        "Input" => {
            if let Some(drag) = event.parse_as::<DragIntercepted>("Input.dragIntercepted") {
                state.targets().intercepted_drag = Some(drag.data);
                state.notify_changed();
            }
        }
        "Runtime" if event.method.starts_with("Runtime.executionContext") => handle_context_event(event, state),
        "Network" => {
            if let Some(wanted) = state.history.record_network(event) {
                state.queue_follow_up(FollowUp::TakeBody(wanted));
            }
            handle_frame_received(event, state);
        }
        "Fetch" => {
            if let (Some(paused), Some(session)) =
                (event.parse_as::<RequestPaused>("Fetch.requestPaused"), event.session.clone())
            {
                state.queue_follow_up(FollowUp::AnswerRequest { session, paused: Box::new(paused) });
            }
        }
        "Runtime" | "Log" => record_event(event, state),
        "Tracing" => {
            if let Some(complete) = event.parse_as::<TracingComplete>("Tracing.tracingComplete") {
                state.targets().finished_trace = complete.stream;
                state.notify_changed();
            }
        }
        "HeapProfiler" => {
            if let Some(part) = event.parse_as::<HeapSnapshotChunk>("HeapProfiler.addHeapSnapshotChunk")
                && let Some((session, parts)) = &mut state.targets().heap_parts
                && event.session.as_ref() == Some(session)
                // One that is too large is told by its length.
                && parts.len() <= MAX_HEAP
            {
                parts.push_str(&part.chunk);
            }
        }
        "NodeRuntime" if event.method == "NodeRuntime.waitingForDisconnect" => {
            state.queue_follow_up(FollowUp::Disconnect);
        }
        _ => {}
    }
}

fn record_event(event: &CdpEvent, state: &PageState) {
    let source = match &event.session {
        None => Some(ConsoleSource::Node),
        Some(session) => state.targets().sessions.get(session).map(|target| target.source),
    };
    // An unknown session is that of a page whose attachment is not yet reported.
    state.history.record_event(event, source.unwrap_or(ConsoleSource::Page), state.cutoffs);
}

fn handle_frame_received(event: &CdpEvent, state: &PageState) {
    if let Some(received) = event.parse_as::<WebSocketFrameEvent>("Network.webSocketFrameReceived") {
        if state.targets().server_updates.record_frame(monotonic_ms(), &received.response.payload_data) {
            state.history.forget_failed_script();
        }
        state.notify_changed();
    }
}

fn handle_target_event(event: &CdpEvent, state: &PageState) {
    if let Some(created) = event.parse_as::<TargetInfoChanged>("Target.targetCreated") {
        let mut targets = state.targets();
        if targets.set_page(created.target_info.clone()) && targets.is_listed {
            targets.add_notice(PageNotice::PageOpened(created.target_info.target_id.clone()));
            state.queue_follow_up(FollowUp::AttachPage(created.target_info));
        }
        drop(targets);
        state.notify_changed();
    } else if let Some(changed) = event.parse_as::<TargetInfoChanged>("Target.targetInfoChanged") {
        state.targets().set_page(changed.target_info);
    } else if let Some(destroyed) = event.parse_as::<TargetDestroyed>("Target.targetDestroyed") {
        state.targets().remove_page(&destroyed.target_id);
        state.notify_changed();
    } else if let Some(attached) = event.parse_as::<AttachedToTarget>("Target.attachedToTarget") {
        handle_attached(event.session.as_deref(), attached, state);
    } else if let Some(detached) = event.parse_as::<DetachedFromTarget>("Target.detachedFromTarget") {
        state.targets().remove_session(&detached.session_id);
        state.remove_documents(&detached.session_id, None);
        state.history.end_requests(&detached.session_id, "its page or worker has ended");
        state.notify_changed();
    }
}

/// Pages are attached on request; their frames and workers automatically, with the page's session as `parent`.
fn handle_attached(parent: Option<&str>, attached: AttachedToTarget, state: &PageState) {
    let AttachedToTarget { session_id, target_info } = attached;
    let source = match (parent, target_info.kind.as_str()) {
        (None, "page") => ConsoleSource::Page,
        (Some(_), "iframe" | "webview") => ConsoleSource::Iframe,
        (Some(_), "worker" | "shared_worker" | "service_worker") => ConsoleSource::Worker,
        _ => return,
    };
    let target = AttachedTarget {
        target: target_info.target_id,
        source,
        parent: parent.map(str::to_owned),
        crashed: false,
        loading: false,
        navigations: 0,
        told_navigations: None,
        inner_navigations: 0,
        url: target_info.url,
    };
    state.targets().add_session(session_id.clone(), target);
    state.notify_changed();
    if parent.is_some() {
        state.queue_follow_up(FollowUp::EnableSession { session: session_id, source });
    }
}

fn handle_page_event(event: &CdpEvent, state: &PageState) {
    if let Some(dialog) = event.parse_as::<JavascriptDialogOpening>("Page.javascriptDialogOpening") {
        answer_dialog(event.session.clone(), dialog, state);
    } else if let Some(opened) = event.parse_as::<FileChooserOpened>("Page.fileChooserOpened") {
        state.targets().file_chooser = event.session.clone().zip(opened.backend_node_id);
        state.notify_changed();
    } else if let Some(download) = event.parse_as::<DownloadWillBegin>("Page.downloadWillBegin") {
        let url = first_chars(&download.url, 200);
        state.report_page_event("download", format!("a download began: {:?} from {url}", download.suggested_filename));
    } else if let Some(session) = event.session.as_deref() {
        handle_frame_event(event, session, state);
    }
}

fn answer_dialog(session: Option<String>, dialog: JavascriptDialogOpening, state: &PageState) {
    // `beforeunload` appears because the page is being left on request.
    let is_leaving = dialog.kind == "beforeunload";
    let armed = if is_leaving { None } else { state.targets().dialog_answers.pop_front() };
    let answer = armed.unwrap_or(DialogAnswer { accept: is_leaving, text: None });
    let outcome = if answer.accept { "accepted" } else { "dismissed" };
    let message = first_chars(&dialog.message, 500);
    let text = answer.text.as_deref().map(|text| format!(" with {:?}", first_chars(text, 100))).unwrap_or_default();
    state.report_page_event("dialog", format!("a dialog was {outcome}{text}: {} {message:?}", dialog.kind));
    let text = answer.text.or(dialog.default_prompt).filter(|_| answer.accept);
    state.queue_follow_up(FollowUp::AnswerDialog { session, accept: answer.accept, text });
}

fn handle_frame_event(event: &CdpEvent, session: &str, state: &PageState) {
    if let Some(navigated) = event.parse_as::<FrameNavigated>("Page.frameNavigated") {
        let mut targets = state.targets();
        targets.invalidate_frames(Some(session));
        if let Some(target) = targets.sessions.get_mut(session).filter(|it| it.target == navigated.frame.id) {
            target.navigations += 1;
            target.url = navigated.frame.url;
            target.crashed = false;
            targets.server_updates.record(monotonic_ms(), ServerUpdate::Loaded);
            state.history.forget_failed_script();
        }
    } else if let Some(inner) = event.parse_as::<NavigatedWithinDocument>("Page.navigatedWithinDocument") {
        let mut targets = state.targets();
        if let Some(target) = targets.sessions.get_mut(session).filter(|it| it.target == inner.frame_id) {
            target.inner_navigations += 1;
            target.url = inner.url;
        }
    } else if matches!(event.method.as_str(), "Page.frameAttached" | "Page.frameDetached") {
        state.targets().invalidate_frames(Some(session));
    } else if let Some(started) = event.parse_as::<FrameEvent>("Page.frameStartedLoading") {
        set_loading(state, session, &started.frame_id, true);
    } else if let Some(stopped) = event.parse_as::<FrameEvent>("Page.frameStoppedLoading") {
        set_loading(state, session, &stopped.frame_id, false);
    } else {
        return;
    }
    state.notify_changed();
}

/// Only the main frame counts; its id is that of the target.
fn set_loading(state: &PageState, session: &str, frame: &str, loading: bool) {
    if let Some(target) = state.targets().sessions.get_mut(session).filter(|it| it.target == frame) {
        target.loading = loading;
    }
}

fn handle_inspector_event(event: &CdpEvent, state: &PageState) {
    let crashed = match event.method.as_str() {
        "Inspector.targetCrashed" => true,
        "Inspector.targetReloadedAfterCrash" => false,
        _ => return,
    };
    let Some(session) = event.session.as_deref() else { return };
    let mut targets = state.targets();
    targets.invalidate_frames(Some(session));
    let Some(target) = targets.sessions.get_mut(session) else { return };
    target.crashed = crashed;
    let what = if target.source == ConsoleSource::Iframe { "an iframe" } else { "the page" };
    let url = first_chars(&target.url, 150).to_owned();
    drop(targets);
    if crashed {
        state.remove_documents(session, None);
        state.report_page_event("error", format!("{what} crashed: {url}"));
    }
    state.notify_changed();
}

fn handle_context_event(event: &CdpEvent, state: &PageState) {
    let Some(session) = event.session.as_deref() else { return };
    if let Some(created) = event.parse_as::<ExecutionContextCreated>("Runtime.executionContextCreated") {
        let data = &created.context.aux_data;
        if let (true, Some(frame)) = (data["isDefault"] == true, data["frameId"].as_str()) {
            let key = (session.to_owned(), frame.to_owned());
            state.targets().main_contexts.insert(key, created.context.id);
        }
        return;
    }
    let destroyed = event.parse_as::<ExecutionContextDestroyed>("Runtime.executionContextDestroyed");
    let context = match (event.method.as_str(), destroyed) {
        ("Runtime.executionContextsCleared", _) => None,
        (_, Some(destroyed)) => Some(destroyed.execution_context_id),
        _ => return,
    };
    state.remove_documents(session, context);
    let mut targets = state.targets();
    targets.main_contexts.retain(|(of, _), known| of != session || context.is_some_and(|it| it != *known));
    targets.invalidate_frames(Some(session));
}
