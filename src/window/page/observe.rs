//! From the browser's events to what is known: targets, frames, dialogs, downloads, crashes, console, network.
//!
//! Runs inside the reader of the connection: quick, never waiting. What an event asks us to do is a [`Chore`] for others.

use tokio::sync::mpsc;

use super::Shared;
use super::console::Source;
use super::refs::lock;
use super::view::{Attached, Notice};
use crate::cdp::Event;
use crate::cdp::events::{
    AttachedToTarget, ContextDestroyed, Detached, DialogOpening, DownloadWillBegin, DragIntercepted, FrameNavigated,
    OfFrame, TargetChanged, TargetEnded,
};
use crate::cdp::types::TargetInfo;

/// What is to be done about an event.
#[derive(Debug)]
pub enum Chore {
    /// A dialog blocks the page.
    Answer { session: Option<String>, accept: bool },
    /// A page has been opened.
    Attach(TargetInfo),
    /// Something inside a page was attached to.
    Enable { session: String, source: Source },
    /// Node has run to its end, and stays only because we look at it.
    Leave,
}

/// Takes notice of one event.
pub fn observe(event: &Event, shared: &Shared, chores: &mpsc::UnboundedSender<Chore>) {
    let (domain, _) = event.method.split_once('.').unwrap_or_default();
    match domain {
        "Target" => target(event, shared, chores),
        "Page" => page(event, shared, chores),
        "Inspector" => inspector(event, shared),
        "Input" => {
            if let Some(drag) = event.read::<DragIntercepted>("Input.dragIntercepted") {
                lock(&shared.view).dragged = Some(drag.data);
                shared.stir();
            }
        }
        "Runtime" if event.method.starts_with("Runtime.executionContext") => contexts(event, shared),
        "Runtime" | "Log" | "Network" => record(event, shared),
        "NodeRuntime" if event.method == "NodeRuntime.waitingForDisconnect" => chore(chores, Chore::Leave),
        _ => {}
    }
}

fn chore(chores: &mpsc::UnboundedSender<Chore>, chore: Chore) {
    // Unbounded, as the browser is: no more of them than it has targets, and one dialog a page.
    // Fails when the connection is ending anyway.
    let _ = chores.send(chore);
}

fn record(event: &Event, shared: &Shared) {
    let source = match &event.session {
        None => Some(Source::Node),
        Some(session) => lock(&shared.view).attached(session).map(|attached| attached.source),
    };
    // A session that is not known yet is one whose attachment we have asked for: a page.
    shared.records.note(event, source.unwrap_or(Source::Page), shared.known);
}

fn target(event: &Event, shared: &Shared, chores: &mpsc::UnboundedSender<Chore>) {
    if let Some(changed) = event.read::<TargetChanged>("Target.targetCreated") {
        let mut view = lock(&shared.view);
        if view.set_page(changed.target_info.clone()) && view.listed {
            view.notice(Notice::Opened(changed.target_info.target_id.clone()));
            chore(chores, Chore::Attach(changed.target_info));
        }
    } else if let Some(changed) = event.read::<TargetChanged>("Target.targetInfoChanged") {
        lock(&shared.view).set_page(changed.target_info);
    } else if let Some(ended) = event.read::<TargetEnded>("Target.targetDestroyed") {
        lock(&shared.view).remove_page(&ended.target_id);
    } else if let Some(attached) = event.read::<AttachedToTarget>("Target.attachedToTarget") {
        self::attached(event.session.as_deref(), attached, shared, chores);
    } else if let Some(detached) = event.read::<Detached>("Target.detachedFromTarget") {
        lock(&shared.view).detach(&detached.session_id);
        lock(&shared.refs).forget(&detached.session_id, None);
        shared.records.end_requests(&detached.session_id, "its page or worker has ended");
        shared.stir();
    }
}

/// A page is attached to because we ask for it; what lies in it, because it appears.
fn attached(parent: Option<&str>, attached: AttachedToTarget, shared: &Shared, chores: &mpsc::UnboundedSender<Chore>) {
    let AttachedToTarget { session_id, target_info } = attached;
    let source = match (parent, target_info.kind.as_str()) {
        (None, "page") => Source::Page,
        (Some(_), "iframe" | "webview") => Source::Iframe,
        (Some(_), "worker" | "shared_worker" | "service_worker") => Source::Worker,
        _ => return,
    };
    lock(&shared.view).attach(
        session_id.clone(),
        Attached {
            target: target_info.target_id,
            source,
            parent: parent.map(str::to_owned),
            crashed: false,
            loading: false,
            visits: 0,
            url: target_info.url,
        },
    );
    shared.stir();
    if parent.is_some() {
        chore(chores, Chore::Enable { session: session_id, source });
    }
}

fn page(event: &Event, shared: &Shared, chores: &mpsc::UnboundedSender<Chore>) {
    if let Some(dialog) = event.read::<DialogOpening>("Page.javascriptDialogOpening") {
        // Who leaves a page has said what he wants.
        let accept = dialog.kind == "beforeunload";
        let word = if accept { "accepted" } else { "dismissed" };
        let message: String = dialog.message.chars().take(500).collect();
        shared.tell("dialog", format!("a dialog was {word}: {} {message:?}", dialog.kind));
        return chore(chores, Chore::Answer { session: event.session.clone(), accept });
    }
    if let Some(download) = event.read::<DownloadWillBegin>("Page.downloadWillBegin") {
        let url: String = download.url.chars().take(200).collect();
        return shared.tell("download", format!("a download began: {:?} from {url}", download.suggested_filename));
    }
    let Some(session) = event.session.as_deref() else { return };
    if let Some(navigated) = event.read::<FrameNavigated>("Page.frameNavigated") {
        let mut view = lock(&shared.view);
        view.changed(Some(session));
        if let Some(attached) = view.attached_mut(session).filter(|it| it.target == navigated.frame.id) {
            attached.visits += 1;
            attached.url = navigated.frame.url;
            attached.crashed = false;
        }
    } else if matches!(event.method.as_str(), "Page.frameAttached" | "Page.frameDetached") {
        lock(&shared.view).changed(Some(session));
    } else if let Some(of) = event.read::<OfFrame>("Page.frameStartedLoading") {
        loading(shared, session, &of.frame_id, true);
    } else if let Some(of) = event.read::<OfFrame>("Page.frameStoppedLoading") {
        loading(shared, session, &of.frame_id, false);
    } else {
        return;
    }
    shared.stir();
}

fn loading(shared: &Shared, session: &str, frame: &str, loading: bool) {
    let mut view = lock(&shared.view);
    if let Some(attached) = view.attached_mut(session).filter(|it| it.target == frame) {
        attached.loading = loading;
    }
}

fn inspector(event: &Event, shared: &Shared) {
    let (Some(session), crashed) = (event.session.as_deref(), event.method == "Inspector.targetCrashed") else {
        return;
    };
    if !crashed && event.method != "Inspector.targetReloadedAfterCrash" {
        return;
    }
    let mut view = lock(&shared.view);
    view.changed(Some(session));
    let Some(attached) = view.attached_mut(session) else { return };
    attached.crashed = crashed;
    let what = if attached.source == Source::Iframe { "an iframe" } else { "the page" };
    let url: String = attached.url.chars().take(150).collect();
    drop(view);
    if crashed {
        lock(&shared.refs).forget(session, None);
        shared.tell("error", format!("{what} crashed: {url}"));
    }
    shared.stir();
}

fn contexts(event: &Event, shared: &Shared) {
    let Some(session) = event.session.as_deref() else { return };
    let context = match event.method.as_str() {
        "Runtime.executionContextsCleared" => None,
        "Runtime.executionContextDestroyed" => {
            match event.read::<ContextDestroyed>("Runtime.executionContextDestroyed") {
                Some(destroyed) => Some(destroyed.execution_context_id),
                None => return,
            }
        }
        _ => return,
    };
    lock(&shared.refs).forget(session, context);
    lock(&shared.view).changed(Some(session));
}
