//! From the browser's events to what is known: targets, frames, dialogs, downloads, crashes, console, network.
//!
//! Runs inside the reader of the connection: quick, never waiting. What an event asks us to do is a [`Chore`] for others.

use tokio::sync::mpsc;

use super::PageState;
use super::console::ConsoleSource;
use super::element_refs::lock_unpoisoned;
use super::targets::{AttachedTarget, PageNotice};
use crate::cdp::CdpEvent;
use crate::cdp::events::{
    AttachedToTarget, DetachedFromTarget, DownloadWillBegin, DragIntercepted, ExecutionContextDestroyed, FrameEvent,
    FrameNavigated, JavascriptDialogOpening, TargetDestroyed, TargetInfoChanged,
};
use crate::cdp::types::TargetInfo;

/// What is to be done about an event.
#[derive(Debug)]
pub enum FollowUp {
    /// A dialog blocks the page.
    AnswerDialog { session: Option<String>, accept: bool },
    /// A page has been opened.
    AttachPage(TargetInfo),
    /// Something inside a page was attached to.
    EnableSession { session: String, source: ConsoleSource },
    /// Node has run to its end, and stays only because we look at it.
    Disconnect,
}

/// Takes notice of one event.
pub fn handle_event(event: &CdpEvent, shared: &PageState, chores: &mpsc::UnboundedSender<FollowUp>) {
    let (domain, _) = event.method.split_once('.').unwrap_or_default();
    match domain {
        "Target" => handle_target_event(event, shared, chores),
        "Page" => handle_page_event(event, shared, chores),
        "Inspector" => handle_inspector_event(event, shared),
        "Input" => {
            if let Some(drag) = event.parse_as::<DragIntercepted>("Input.dragIntercepted") {
                lock_unpoisoned(&shared.targets).intercepted_drag = Some(drag.data);
                shared.notify_changed();
            }
        }
        "Runtime" if event.method.starts_with("Runtime.executionContext") => handle_context_event(event, shared),
        "Runtime" | "Log" | "Network" => record_event(event, shared),
        "NodeRuntime" if event.method == "NodeRuntime.waitingForDisconnect" => {
            queue_follow_up(chores, FollowUp::Disconnect)
        }
        _ => {}
    }
}

fn queue_follow_up(chores: &mpsc::UnboundedSender<FollowUp>, chore: FollowUp) {
    // Unbounded, as the browser is: no more of them than it has targets, and one dialog a page.
    // Fails when the connection is ending anyway.
    let _ = chores.send(chore);
}

fn record_event(event: &CdpEvent, shared: &PageState) {
    let source = match &event.session {
        None => Some(ConsoleSource::Node),
        Some(session) => lock_unpoisoned(&shared.targets).attached(session).map(|attached| attached.source),
    };
    // A session that is not known yet is one whose attachment we have asked for: a page.
    shared.records.record_event(event, source.unwrap_or(ConsoleSource::Page), shared.replayed_until);
}

fn handle_target_event(event: &CdpEvent, shared: &PageState, chores: &mpsc::UnboundedSender<FollowUp>) {
    if let Some(changed) = event.parse_as::<TargetInfoChanged>("Target.targetCreated") {
        let mut view = lock_unpoisoned(&shared.targets);
        if view.set_page(changed.target_info.clone()) && view.listed {
            view.add_notice(PageNotice::PageOpened(changed.target_info.target_id.clone()));
            queue_follow_up(chores, FollowUp::AttachPage(changed.target_info));
        }
    } else if let Some(changed) = event.parse_as::<TargetInfoChanged>("Target.targetInfoChanged") {
        lock_unpoisoned(&shared.targets).set_page(changed.target_info);
    } else if let Some(ended) = event.parse_as::<TargetDestroyed>("Target.targetDestroyed") {
        lock_unpoisoned(&shared.targets).remove_page(&ended.target_id);
    } else if let Some(attached) = event.parse_as::<AttachedToTarget>("Target.attachedToTarget") {
        self::handle_attached(event.session.as_deref(), attached, shared, chores);
    } else if let Some(detached) = event.parse_as::<DetachedFromTarget>("Target.detachedFromTarget") {
        lock_unpoisoned(&shared.targets).remove_session(&detached.session_id);
        lock_unpoisoned(&shared.refs).remove_document(&detached.session_id, None);
        shared.records.end_requests(&detached.session_id, "its page or worker has ended");
        shared.notify_changed();
    }
}

/// A page is attached to because we ask for it; what lies in it, because it appears.
fn handle_attached(
    parent: Option<&str>,
    attached: AttachedToTarget,
    shared: &PageState,
    chores: &mpsc::UnboundedSender<FollowUp>,
) {
    let AttachedToTarget { session_id, target_info } = attached;
    let source = match (parent, target_info.kind.as_str()) {
        (None, "page") => ConsoleSource::Page,
        (Some(_), "iframe" | "webview") => ConsoleSource::Iframe,
        (Some(_), "worker" | "shared_worker" | "service_worker") => ConsoleSource::Worker,
        _ => return,
    };
    lock_unpoisoned(&shared.targets).add_session(
        session_id.clone(),
        AttachedTarget {
            target: target_info.target_id,
            source,
            parent: parent.map(str::to_owned),
            crashed: false,
            loading: false,
            visits: 0,
            url: target_info.url,
        },
    );
    shared.notify_changed();
    if parent.is_some() {
        queue_follow_up(chores, FollowUp::EnableSession { session: session_id, source });
    }
}

fn handle_page_event(event: &CdpEvent, shared: &PageState, chores: &mpsc::UnboundedSender<FollowUp>) {
    if let Some(dialog) = event.parse_as::<JavascriptDialogOpening>("Page.javascriptDialogOpening") {
        // Who leaves a page has said what he wants.
        let accept = dialog.kind == "beforeunload";
        let word = if accept { "accepted" } else { "dismissed" };
        let message: String = dialog.message.chars().take(500).collect();
        shared.add_notice("dialog", format!("a dialog was {word}: {} {message:?}", dialog.kind));
        return queue_follow_up(chores, FollowUp::AnswerDialog { session: event.session.clone(), accept });
    }
    if let Some(download) = event.parse_as::<DownloadWillBegin>("Page.downloadWillBegin") {
        let url: String = download.url.chars().take(200).collect();
        return shared
            .add_notice("download", format!("a download began: {:?} from {url}", download.suggested_filename));
    }
    let Some(session) = event.session.as_deref() else { return };
    if let Some(navigated) = event.parse_as::<FrameNavigated>("Page.frameNavigated") {
        let mut view = lock_unpoisoned(&shared.targets);
        view.invalidate_frames(Some(session));
        if let Some(attached) = view.session_mut(session).filter(|it| it.target == navigated.frame.id) {
            attached.visits += 1;
            attached.url = navigated.frame.url;
            attached.crashed = false;
        }
    } else if matches!(event.method.as_str(), "Page.frameAttached" | "Page.frameDetached") {
        lock_unpoisoned(&shared.targets).invalidate_frames(Some(session));
    } else if let Some(of) = event.parse_as::<FrameEvent>("Page.frameStartedLoading") {
        set_loading(shared, session, &of.frame_id, true);
    } else if let Some(of) = event.parse_as::<FrameEvent>("Page.frameStoppedLoading") {
        set_loading(shared, session, &of.frame_id, false);
    } else {
        return;
    }
    shared.notify_changed();
}

fn set_loading(shared: &PageState, session: &str, frame: &str, loading: bool) {
    let mut view = lock_unpoisoned(&shared.targets);
    if let Some(attached) = view.session_mut(session).filter(|it| it.target == frame) {
        attached.loading = loading;
    }
}

fn handle_inspector_event(event: &CdpEvent, shared: &PageState) {
    let (Some(session), crashed) = (event.session.as_deref(), event.method == "Inspector.targetCrashed") else {
        return;
    };
    if !crashed && event.method != "Inspector.targetReloadedAfterCrash" {
        return;
    }
    let mut view = lock_unpoisoned(&shared.targets);
    view.invalidate_frames(Some(session));
    let Some(attached) = view.session_mut(session) else { return };
    attached.crashed = crashed;
    let what = if attached.source == ConsoleSource::Iframe { "an iframe" } else { "the page" };
    let url: String = attached.url.chars().take(150).collect();
    drop(view);
    if crashed {
        lock_unpoisoned(&shared.refs).remove_document(session, None);
        shared.add_notice("error", format!("{what} crashed: {url}"));
    }
    shared.notify_changed();
}

fn handle_context_event(event: &CdpEvent, shared: &PageState) {
    let Some(session) = event.session.as_deref() else { return };
    let context = match event.method.as_str() {
        "Runtime.executionContextsCleared" => None,
        "Runtime.executionContextDestroyed" => {
            match event.parse_as::<ExecutionContextDestroyed>("Runtime.executionContextDestroyed") {
                Some(destroyed) => Some(destroyed.execution_context_id),
                None => return,
            }
        }
        _ => return,
    };
    lock_unpoisoned(&shared.refs).remove_document(session, context);
    lock_unpoisoned(&shared.targets).invalidate_frames(Some(session));
}
