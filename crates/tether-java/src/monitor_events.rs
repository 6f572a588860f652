//! Events of the virtual machine that are recorded and stop nothing: threads, classes, contention for monitors.
//!
//! Which kinds are captured is the client's to switch; at first those of threads. Of one kind only so many a second are
//! reported, and the others counted: two threads can fight for a monitor a million times a second, and a program may start as
//! many threads as it can. The end of a thread is always requested: nothing is kept of a thread that has ended.

use std::time::Instant;

use tether_backend::Answer;
use tether_dap::types::{CaptureEventsResponse, MonitorEvent, ThreadEvent};
use tether_jdwp::commands::objects::TypeOfObject;
use tether_jdwp::commands::reference_types::Signature;
use tether_jdwp::commands::threads::ThreadName;
use tether_jdwp::values::{CodeLocation, ObjectId, TaggedObject};
use tether_jdwp::{ClearEventRequest, EventKind, EventModifier, JdwpEvent, SetEventRequest, SuspendPolicy};

use super::breakpoints::JDK_PATTERNS;
use super::session::JavaSession;
use super::signatures::{short_type_name, type_name};

/// The kinds that can be captured.
const KINDS: [(&str, EventKind); 8] = [
    (THREAD_STARTED, EventKind::ThreadStart),
    (THREAD_ENDED, EventKind::ThreadDeath),
    ("classPrepare", EventKind::ClassPrepare),
    ("classUnload", EventKind::ClassUnload),
    ("monitorContended", EventKind::MonitorContendedEnter),
    ("monitorAcquired", EventKind::MonitorContendedEntered),
    ("monitorWait", EventKind::MonitorWait),
    ("monitorWaited", EventKind::MonitorWaited),
];
/// What is captured at first.
const AT_FIRST: [&str; 2] = [THREAD_STARTED, THREAD_ENDED];
const THREAD_STARTED: &str = "threadStarted";
const THREAD_ENDED: &str = "threadEnded";

/// Captures what is captured at first.
pub(crate) async fn capture_first_events(session: &JavaSession) -> Answer<()> {
    let kinds: Vec<String> = AT_FIRST.iter().map(|kind| (*kind).to_owned()).collect();
    capture_events(session, &kinds).await.map(drop)
}

/// Captures these kinds from now on, and no others. Errors: there is no such kind, the virtual machine has none.
pub(crate) async fn capture_events(session: &JavaSession, kinds: &[String]) -> Answer<CaptureEventsResponse> {
    let names = KINDS.map(|(name, _)| name);
    if let Some(unknown) = kinds.iter().find(|kind| !names.contains(&kind.as_str())) {
        return Err(format!("there are no events of the kind `{unknown}`: {} can be captured", names.join(", ")).into());
    }
    let is_wanted = |name: &str| kinds.iter().any(|kind| kind == name);
    let is_requested = |name: &str| name == THREAD_ENDED || is_wanted(name);
    if !session.vm.capabilities.request_monitor_events && kinds.iter().any(|kind| kind.starts_with("monitor")) {
        return Err("this virtual machine reports nothing of monitors".into());
    }
    let unwanted: Vec<(i32, EventKind)> = session.with_tables(|tables| {
        let requests = &mut tables.captured.requests;
        requests.extract_if(|_, (name, _)| !is_requested(name)).map(|(request, (_, kind))| (request, kind)).collect()
    });
    for (request, kind) in unwanted {
        session.vm.request(&ClearEventRequest { kind, request }).await?;
    }
    let known: Vec<&str> =
        session.with_tables(|tables| tables.captured.requests.values().map(|(name, _)| *name).collect());
    for (name, kind) in KINDS.into_iter().filter(|(name, _)| is_requested(name) && !known.contains(name)) {
        let modifiers = match kind {
            EventKind::ClassPrepare | EventKind::ClassUnload => {
                JDK_PATTERNS.map(|it| EventModifier::ClassExclude(it.to_owned())).to_vec()
            }
            _ => Vec::new(),
        };
        let request = session.vm.request(&SetEventRequest { kind, policy: SuspendPolicy::None, modifiers }).await?;
        session.with_tables(|tables| tables.captured.requests.insert(request, (name, kind)));
    }
    let captured: Vec<&'static str> = names.into_iter().filter(|name| is_wanted(name)).collect();
    session.with_tables(|tables| tables.captured.wanted.clone_from(&captured));
    Ok(CaptureEventsResponse { kinds: captured.into_iter().map(str::to_owned).collect() })
}

/// A thread has started: the client learns of it, unless too many do.
pub(crate) async fn report_started(session: &JavaSession, thread: ObjectId) {
    let (thread_id, left_out) = session.with_tables(|tables| {
        let (is_reported, left_out) = tables.captured.count_event(THREAD_STARTED, Instant::now());
        (is_reported.then(|| tables.thread_id(thread)), left_out)
    });
    if left_out > 0 {
        send_monitor_event(session, THREAD_STARTED, left_out_text(left_out), None).await;
    }
    if let Some(thread_id) = thread_id {
        send_thread_event(session, "started", thread_id).await;
    }
}

/// A thread has ended: a client that may know it learns of it.
pub(crate) async fn report_ended(session: &JavaSession, thread: ObjectId) {
    let thread_id = session.with_tables(|tables| {
        let known = tables.forget_thread(thread);
        known.filter(|_| tables.captured.wanted.contains(&THREAD_ENDED))
    });
    if let Some(thread_id) = thread_id {
        send_thread_event(session, "exited", thread_id).await;
    }
}

async fn send_thread_event(session: &JavaSession, reason: &str, thread_id: i64) {
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&ThreadEvent { reason: reason.to_owned(), thread_id }).await;
}

/// Reports an event that is captured, unless there are too many of its kind.
pub(crate) async fn report_captured(session: &JavaSession, event: &JdwpEvent) {
    let (request, thread) = match event {
        JdwpEvent::ClassPrepare { request, thread, .. } | JdwpEvent::Monitor { request, thread, .. } => {
            (*request, Some(*thread))
        }
        JdwpEvent::ClassUnload { request, .. } => (*request, None),
        _ => return,
    };
    let counted = session.with_tables(|tables| {
        let (kind, _) = tables.captured.requests.get(&request).copied()?;
        Some((kind, tables.captured.count_event(kind, Instant::now())))
    });
    let Some((kind, (is_reported, left_out))) = counted else { return };
    if left_out > 0 {
        send_monitor_event(session, kind, left_out_text(left_out), None).await;
    }
    if is_reported {
        let text = describe_captured(session, event).await;
        send_monitor_event(session, kind, text, thread.filter(|thread| !thread.is_null())).await;
    }
}

async fn send_monitor_event(session: &JavaSession, kind: &str, text: String, thread: Option<ObjectId>) {
    let thread_id = thread.map(|thread| session.with_tables(|tables| tables.thread_id(thread)));
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&MonitorEvent { kind: kind.to_owned(), text, thread_id }).await;
}

/// What cannot be read any more, since nothing is suspended, is left out.
async fn describe_captured(session: &JavaSession, event: &JdwpEvent) -> String {
    match event {
        JdwpEvent::ClassPrepare { signature, .. } | JdwpEvent::ClassUnload { signature, .. } => type_name(signature),
        JdwpEvent::Monitor { monitor, location, thread, .. } => {
            let name_request = ThreadName { thread: *thread };
            let (name, monitor, place) = tokio::join!(
                session.vm.request(&name_request),
                describe_monitor(session, *monitor),
                describe_place(session, *location)
            );
            let name = name.map(|name| format!(" by {name}")).unwrap_or_default();
            format!("{monitor}{name}{}", place.map(|place| format!(" in {place}")).unwrap_or_default())
        }
        _ => String::new(),
    }
}

/// `Lock (id=12)`
pub(crate) async fn describe_monitor(session: &JavaSession, monitor: TaggedObject) -> String {
    let class = async {
        let (_, class) = session.vm.request(&TypeOfObject { object: monitor.id }).await.ok()?;
        session.vm.request(&Signature { class }).await.ok()
    };
    let class = class.await.map_or_else(|| "an object".to_owned(), |signature| short_type_name(&signature));
    format!("{class} (id={})", monitor.id.0)
}

async fn describe_place(session: &JavaSession, at: CodeLocation) -> Option<String> {
    let class = session.vm.class(at.class, at.type_tag).await.ok()?;
    let method = session.vm.method(&class, at.method).await.ok()??;
    let line = session.vm.line_at(&class, at.method, at.index).await.unwrap_or(0);
    let line = if line > 0 { format!(":{line}") } else { String::new() };
    Some(format!("{}.{}{line}", class.name(), method.name))
}

fn left_out_text(count: u32) -> String {
    format!("… {count} more were not recorded")
}
