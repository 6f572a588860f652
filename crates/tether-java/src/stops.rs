//! From the events of the virtual machine to the stops of DAP.
//!
//! An event suspends its own thread only; other threads run on. A written field is reported when the write is done, one
//! instruction later, so that its new value can be read.

use std::time::Duration;

use tether_backend::Answer;
use tether_dap::types::{DataChange, StoppedEvent};
use tether_jdwp::commands::objects::FieldValues;
use tether_jdwp::commands::reference_types::StaticFieldValues;
use tether_jdwp::commands::threads::ThreadName;
use tether_jdwp::values::{CodeLocation, JdwpValue, ObjectId, TYPE_CLASS, TaggedObject};
use tether_jdwp::{
    ClearEventRequest, CompositeEvent, EventKind, EventModifier, ExceptionEvent, FieldEvent, JdwpEvent, JdwpEvent as E,
    SetEventRequest, StepDepth, SuspendPolicy,
};
use tokio::time::timeout;

use super::breakpoint_table::{BreakpointPlace, FunctionName};
use super::session::{JavaSession, PendingWrite};
use super::signatures::is_jdk_class;
use super::thread_control::{self, ORDER_TIMEOUT};
use super::thread_suspends::ThreadHalt;
use super::{breakpoints, frames, monitor_events, resume, step_targets, stop_conditions};

/// What a failed assertion throws, or a subclass of it (`org.opentest4j.AssertionFailedError`).
const ASSERTION: &str = "Ljava/lang/AssertionError;";

/// What a thread has reached at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReachedEvents {
    breakpoints: Vec<i64>,
    is_step: bool,
    exception: Option<ExceptionEvent>,
    exits: Vec<ReachedExit>,
    /// Each with its breakpoint.
    fields: Vec<(i64, FieldEvent)>,
}

/// A method returns, in whose class a breakpoint waits for that.
#[derive(Clone, Debug)]
struct ReachedExit {
    breakpoint: i64,
    location: CodeLocation,
    value: Option<JdwpValue>,
}

/// The reason of the stop at the end of a step.
const STEP: &str = "step";
/// How long a stop waits for the name of its thread.
const NAME_TIMEOUT: Duration = Duration::from_secs(1);

/// What the events of one moment have suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventSuspension {
    Nothing,
    Thread(ObjectId),
    /// A thread inside the call of an evaluation.
    InCall(ObjectId),
    All,
    /// A thread that the events do not name.
    Unknown,
}

/// A stop as it is reported.
#[derive(Debug, Default)]
struct ThreadStopReport {
    reason: &'static str,
    description: Option<String>,
    text: Option<String>,
    breakpoints: Vec<i64>,
    exception: Option<(TaggedObject, bool)>,
    data_change: Option<DataChange>,
}

/// Handles what stops nothing, or is not for a thread. Returns what a thread has reached, which may have to be
/// evaluated. What the events have suspended is reported or resumed, or returned.
pub(crate) async fn handle_events(
    session: &JavaSession,
    composite: CompositeEvent,
) -> Option<(ObjectId, ReachedEvents)> {
    let CompositeEvent { suspend_policy, events, unreadable } = composite;
    let unread_thread = unreadable.as_ref().and_then(|it| it.thread);
    let thread = events.iter().find_map(thread_of).or(unread_thread);
    let suspended = record_suspension(session, suspend_policy, thread);
    if let Some(unreadable) = unreadable {
        stop_conditions::print(session, "important", &format!("an event was left out: {}\n", unreadable.reason)).await;
    }
    let (mut reached, mut is_stop, mut is_reported) = (ReachedEvents::default(), false, false);
    for event in &events {
        is_stop |= sort_event(session, event, &mut reached);
        is_reported |= handle_event(session, event, suspended).await;
    }
    let ((), sent) = match suspended {
        EventSuspension::Nothing => return None,
        EventSuspension::Thread(thread) if is_stop => return Some((thread, reached)),
        EventSuspension::All if is_reported => return None,
        EventSuspension::Thread(thread) => {
            thread_control::change_suspends(session, |tables| ((), tables.suspends.resume(thread)))
        }
        EventSuspension::InCall(thread) => {
            thread_control::change_suspends(session, |tables| ((), tables.suspends.resume_in_call(thread)))
        }
        EventSuspension::All => {
            thread_control::change_suspends(session, |tables| ((), tables.suspends.resume_all_once()))
        }
        EventSuspension::Unknown => {
            // With the connection, the virtual machine lets all threads go.
            let text = "the virtual machine has suspended a thread and does not say which: the connection is closed\n";
            stop_conditions::print(session, "important", text).await;
            session.vm.client.close();
            return None;
        }
    };
    thread_control::watch_commands(session, sent);
    None
}

/// What an event has suspended: recorded before anything else is done.
fn record_suspension(session: &JavaSession, policy: u8, thread: Option<ObjectId>) -> EventSuspension {
    let (all, none) = (SuspendPolicy::All as u8, SuspendPolicy::None as u8);
    session.with_tables(|tables| match thread {
        _ if policy == none => EventSuspension::Nothing,
        _ if policy == all => {
            tables.suspends.suspend_all_by_event();
            EventSuspension::All
        }
        None => EventSuspension::Unknown,
        Some(thread) if tables.suspends.suspend_by_event(thread) => EventSuspension::Thread(thread),
        Some(thread) => EventSuspension::InCall(thread),
    })
}

/// Handles what an event means besides a stop of its thread. Returns whether it is reported as a stop of all threads.
async fn handle_event(session: &JavaSession, event: &JdwpEvent, suspended: EventSuspension) -> bool {
    monitor_events::report_captured(session, event).await;
    match event {
        E::ClassPrepare { type_tag, class, signature, .. } => {
            let class = session.vm.known_class(*class, *type_tag, signature.clone());
            // A request that sets breakpoints would bind the same ones at the same time.
            let _order = session.order.lock().await;
            if let Err(failure) = breakpoints::bind_to_prepared(session, &class).await {
                let text = format!("no breakpoints could be set in {}: {failure}\n", class.name());
                stop_conditions::print(session, "important", &text).await;
            }
        }
        E::ClassUnload { signature, .. } => session.vm.forget_unloaded(signature),
        E::ThreadStart { thread, .. } => monitor_events::report_started(session, *thread).await,
        E::ThreadDeath { thread, .. } => monitor_events::report_ended(session, *thread).await,
        E::VmStart { thread, .. } if suspended == EventSuspension::All => {
            let is_waited_for = session.with_tables(|tables| {
                tables.vm_start = Some(*thread);
                tables.reports_vm_start || !tables.is_configured
            });
            report_vm_start(session).await;
            return is_waited_for;
        }
        E::VmDeath { request } if *request != 0 && suspended == EventSuspension::All => {
            session.with_tables(|tables| tables.has_vm_ended = true);
            report_all_stopped(session, frames::main_thread(session).await.ok(), "vm death").await;
            return true;
        }
        E::VmDeath { .. } => session.with_tables(|tables| tables.has_vm_ended = true),
        _ => {}
    }
    false
}

/// Whether the event may stop its thread.
fn sort_event(session: &JavaSession, event: &JdwpEvent, reached: &mut ReachedEvents) -> bool {
    let breakpoint = |request: &i32| session.with_tables(|tables| tables.breakpoints.requests.get(request).copied());
    match event {
        E::Breakpoint { request, .. } => reached.breakpoints.extend(breakpoint(request)),
        E::SingleStep { .. } => reached.is_step = true,
        E::Exception(exception) => reached.exception = Some(exception.clone()),
        E::MethodExit { request, location, value, .. } => {
            let exit = |breakpoint| ReachedExit { breakpoint, location: *location, value: *value };
            reached.exits.extend(breakpoint(request).map(exit));
        }
        E::Field(field) => reached.fields.extend(breakpoint(&field.request).map(|id| (id, field.clone()))),
        _ => return false,
    }
    true
}

/// Decides whether a thread stops, and reports that; else it is resumed. What cannot be decided is reported.
pub(crate) async fn settle_thread(session: &JavaSession, thread: ObjectId, reached: ReachedEvents) {
    if let Err(failure) = decide_thread(session, thread, reached).await {
        report_unresumed(session, thread, &format!("the debugger failed at an event: {failure}")).await;
    }
}

async fn decide_thread(session: &JavaSession, thread: ObjectId, reached: ReachedEvents) -> Answer<()> {
    let step = session.with_tables(|tables| tables.steps.get(&thread).copied());
    let is_step = reached.is_step && step.is_some();
    let report = find_report(session, thread, reached, is_step).await?;
    if report.as_ref().is_some_and(|report| report.reason == STEP)
        && let Some(depth) = step_targets::next_smart_step(session, thread).await?
    {
        return resume::continue_step(session, thread, depth).await;
    }
    match report {
        Some(report) => report_stop(session, thread, report).await,
        None => resume::resume_decided(session, thread).await,
    }
    Ok(())
}

/// Ends the step of a thread, if it steps.
pub(crate) async fn clear_step(session: &JavaSession, thread: ObjectId) {
    if let Some(request) = session.with_tables(|tables| tables.steps.remove(&thread)) {
        // A step that has ended is gone already.
        let _ = session.vm.request(&ClearEventRequest { kind: EventKind::SingleStep, request }).await;
    }
}

/// The report of everything that has been reached: the first of these says why.
async fn find_report(
    session: &JavaSession,
    thread: ObjectId,
    reached: ReachedEvents,
    is_step: bool,
) -> Answer<Option<ThreadStopReport>> {
    let mut reports = Vec::new();
    if let Some(write) = session.with_tables(|tables| tables.writes.remove(&thread)) {
        let kind = EventKind::SingleStep;
        // A step that has ended is gone already.
        let _ = session.vm.request(&ClearEventRequest { kind, request: write.request }).await;
        reports.push(write_report(write));
    }
    let (fields, write) = field_report(session, thread, &reached.fields).await?;
    reports.extend(fields);
    reports.extend(exception_report(session, &reached).await?);
    reports.extend(breakpoint_report(session, thread, &reached.breakpoints).await?);
    for exit in reached.exits {
        reports.extend(exit_report(session, thread, exit).await?);
    }
    if let Some(write) = write {
        // Reported when the write is done.
        let reached_before = reports.into_iter().flat_map(|report| report.breakpoints).collect();
        complete_write(session, thread, write, reached_before).await?;
        return Ok(None);
    }
    let first = reports.into_iter().reduce(ThreadStopReport::and);
    Ok(first.or_else(|| is_step.then(|| ThreadStopReport { reason: STEP, ..ThreadStopReport::default() })))
}

async fn breakpoint_report(
    session: &JavaSession,
    thread: ObjectId,
    reached: &[i64],
) -> Answer<Option<ThreadStopReport>> {
    let breakpoints = stop_conditions::filter_reached(session, thread, reached).await;
    let Some(first) = breakpoints.first() else { return Ok(None) };
    let kind = session.with_tables(|tables| tables.breakpoints.entries.get(first).map(|it| it.place.clone()));
    let reason = match kind {
        Some(BreakpointPlace::Entry { .. }) => {
            breakpoints::remove_breakpoint(session, *first).await?;
            return Ok(Some(ThreadStopReport { reason: "entry", ..ThreadStopReport::default() }));
        }
        Some(BreakpointPlace::Function(_)) => "method entry",
        _ => "breakpoint",
    };
    Ok(Some(ThreadStopReport { reason, breakpoints, ..ThreadStopReport::default() }))
}

/// An exception, unless the JDK throws and catches it itself.
async fn exception_report(session: &JavaSession, reached: &ReachedEvents) -> Answer<Option<ThreadStopReport>> {
    let Some(event) = &reached.exception else { return Ok(None) };
    let thrown_in = session.vm.class(event.location.class, event.location.type_tag).await?;
    if let Some(caught) = event.catch_location {
        let caught_in = session.vm.class(caught.class, caught.type_tag).await?;
        if is_jdk_class(&thrown_in.signature) && is_jdk_class(&caught_in.signature) {
            return Ok(None);
        }
    }
    let class = session.vm.class_of(event.exception.id).await?;
    if event.catch_location.is_some() && session.with_tables(|tables| tables.breakpoints.only_assertions) {
        let is_assertion = session.vm.superclasses(&class).await?.iter().any(|it| it.signature == ASSERTION);
        let id = event.exception.id;
        let is_known = |last: &mut Option<ObjectId>| last.replace(id) == Some(id);
        if !is_assertion || session.with_tables(|tables| is_known(&mut tables.breakpoints.last_assertion)) {
            return Ok(None);
        }
    }
    let class = class.name();
    let message = session.vm.exception_message(event.exception.id).await?;
    let text = message.map_or(class.clone(), |message| format!("{class}: {message}"));
    let is_caught = event.catch_location.is_some();
    Ok(Some(ThreadStopReport {
        reason: "exception",
        description: Some(if is_caught { "Caught exception" } else { "Uncaught exception" }.to_owned()),
        text: Some(text),
        exception: Some((event.exception, is_caught)),
        ..ThreadStopReport::default()
    }))
}

async fn exit_report(session: &JavaSession, thread: ObjectId, exit: ReachedExit) -> Answer<Option<ThreadStopReport>> {
    let ReachedExit { breakpoint, location, value } = exit;
    let class = session.vm.class(location.class, location.type_tag).await?;
    let Some(method) = session.vm.method(&class, location.method).await? else { return Ok(None) };
    let function = session.with_tables(|tables| tables.breakpoints.entries.get(&breakpoint).map(|it| it.place.clone()));
    let Some(BreakpointPlace::Function(function @ FunctionName { .. })) = function else { return Ok(None) };
    if !function.is_method(&method.name, &class.name()) {
        return Ok(None);
    }
    let breakpoints = stop_conditions::filter_reached(session, thread, &[breakpoint]).await;
    if breakpoints.is_empty() {
        return Ok(None);
    }
    let text = match value {
        Some(JdwpValue::Void) | None => format!("{} returns", method.name),
        Some(value) => {
            let returned = super::signatures::method_types(&method.signature).1;
            let shown = session.vm.show_value(value, returned).await?;
            format!("{} returns {}", method.name, shown.text)
        }
    };
    Ok(Some(ThreadStopReport { reason: "method exit", text: Some(text), breakpoints, ..ThreadStopReport::default() }))
}

/// The report of a field that is read, or the write that has to be completed before it is reported.
async fn field_report(
    session: &JavaSession,
    thread: ObjectId,
    reached: &[(i64, FieldEvent)],
) -> Answer<(Option<ThreadStopReport>, Option<PendingWrite>)> {
    let Some((_, event)) = reached.first() else { return Ok((None, None)) };
    let ids: Vec<i64> = reached.iter().map(|(id, _)| *id).collect();
    let breakpoints = stop_conditions::filter_reached(session, thread, &ids).await;
    if breakpoints.is_empty() {
        return Ok((None, None));
    }
    let class = session.vm.class(event.class, TYPE_CLASS).await?;
    let fields = session.vm.fields(&class).await?;
    let field = fields.iter().find(|it| it.id == event.field).ok_or("there is no such field")?;
    let value = match event.object.id.is_null() {
        true => session.vm.request(&StaticFieldValues { class: event.class, fields: vec![event.field] }).await?,
        false => session.vm.request(&FieldValues { object: event.object.id, fields: vec![event.field] }).await?,
    };
    let value = value.first().copied().unwrap_or(JdwpValue::Void);
    let old_value = session.vm.show_value(value, &field.signature).await?.text;
    let name = field.name.clone();
    let Some(new_value) = event.new_value else {
        let description = Some(format!("{name} is read"));
        let (old_value, new_value) = (Some(old_value.clone()), Some(old_value));
        let data_change = Some(DataChange { name, old_value, new_value });
        let reason = "data breakpoint";
        let rest = ThreadStopReport::default();
        return Ok((Some(ThreadStopReport { reason, description, breakpoints, data_change, ..rest }), None));
    };
    let new_value = session.vm.show_value(new_value, &field.signature).await?.text;
    Ok((None, Some(PendingWrite { request: 0, field: name, old_value, new_value, breakpoints })))
}

/// The thread goes on by one instruction, which writes a field. `reached_before`: what else it has reached there.
async fn complete_write(
    session: &JavaSession,
    thread: ObjectId,
    mut write: PendingWrite,
    reached_before: Vec<i64>,
) -> Answer<()> {
    let step = EventModifier::Step { thread, by_lines: false, depth: StepDepth::Into };
    let (kind, policy) = (EventKind::SingleStep, SuspendPolicy::EventThread);
    let modifiers = vec![step, EventModifier::Count(1)];
    // A thread has one step request.
    clear_step(session, thread).await;
    write.request = session.vm.request(&SetEventRequest { kind, policy, modifiers }).await?;
    write.breakpoints.extend(reached_before);
    session.with_tables(|tables| tables.writes.insert(thread, write));
    Ok(())
}

/// A thread is suspended that was to run on: the client learns of it.
pub(crate) async fn report_unresumed(session: &JavaSession, thread: ObjectId, text: &str) {
    if session.vm.client.is_closed() {
        return;
    }
    stop_conditions::print(session, "important", &format!("{text}\n")).await;
    let report = ThreadStopReport { reason: "pause", text: Some(text.to_owned()), ..ThreadStopReport::default() };
    report_stop(session, thread, report).await;
}

async fn report_stop(session: &JavaSession, thread: ObjectId, report: ThreadStopReport) {
    let ThreadStopReport { reason, description, text, breakpoints, exception, data_change } = report;
    let (thread_id, halt) = session.with_tables(|tables| {
        tables.smart_steps.remove(&thread);
        let is_held = tables.suspends.report(thread, ThreadHalt { exception });
        (is_held.then(|| tables.thread_id(thread)), tables.suspends.halt_number(thread))
    });
    let report = async {
        let name = session.vm.client.request_within(&ThreadName { thread }, NAME_TIMEOUT).await;
        // The response to what has led here comes first.
        let _order = timeout(ORDER_TIMEOUT, session.order.lock()).await;
        // It may have been resumed with others meanwhile.
        if session.with_tables(|tables| tables.suspends.halt_number(thread)) != halt {
            return;
        }
        let stopped = StoppedEvent {
            reason: reason.to_owned(),
            description,
            thread_id,
            text,
            all_threads_stopped: false,
            hit_breakpoint_ids: breakpoints,
            data_change,
            thread_name: match name.ok() {
                Some(name) if name.is_empty() => Some(frames::unnamed_thread(session, thread).await),
                name => name,
            },
        };
        // Fails when the client has gone, which ends the session.
        let _ = session.dap.send_event(&stopped).await;
    };
    match thread_id {
        // Requests reach the virtual machine in order: a step that follows the report finds the old one ended.
        Some(_) => drop(tokio::join!(biased; clear_step(session, thread), report)),
        // It has ended.
        None => clear_step(session, thread).await,
    }
}

/// Reports that all threads are stopped, on one of them; else on the first that is known.
pub(crate) async fn report_all_stopped(session: &JavaSession, thread: Option<ObjectId>, reason: &str) {
    let thread_id = session.with_tables(|tables| match thread {
        Some(thread) => Some(tables.thread_id(thread)),
        None => tables.threads.all().first().copied(),
    });
    let stopped =
        StoppedEvent { reason: reason.to_owned(), thread_id, all_threads_stopped: true, ..StoppedEvent::default() };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&stopped).await;
}

/// A virtual machine that was suspended when it was attached to: a stop, once the client has sent its breakpoints.
pub(crate) async fn report_vm_start(session: &JavaSession) {
    let thread = session.with_tables(|tables| match tables.is_configured && tables.reports_vm_start {
        true => tables.vm_start.take(),
        false => None,
    });
    if let Some(thread) = thread {
        report_all_stopped(session, Some(thread), "vm start").await;
    }
}

impl ThreadStopReport {
    /// One report of both: the reason of the first, the breakpoints of both.
    fn and(mut self, other: ThreadStopReport) -> ThreadStopReport {
        self.breakpoints.extend(other.breakpoints);
        self.description = self.description.or(other.description);
        self.text = self.text.or(other.text);
        self.exception = self.exception.or(other.exception);
        self.data_change = self.data_change.or(other.data_change);
        self
    }
}

fn write_report(write: PendingWrite) -> ThreadStopReport {
    let PendingWrite { field, old_value, new_value, breakpoints, .. } = write;
    ThreadStopReport {
        reason: "data breakpoint",
        description: Some(format!("{field} was written: {old_value} → {new_value}")),
        breakpoints,
        data_change: Some(DataChange { name: field, old_value: Some(old_value), new_value: Some(new_value) }),
        ..ThreadStopReport::default()
    }
}

fn thread_of(event: &JdwpEvent) -> Option<ObjectId> {
    let thread = match event {
        E::VmStart { thread, .. }
        | E::SingleStep { thread, .. }
        | E::Breakpoint { thread, .. }
        | E::MethodEntry { thread, .. }
        | E::MethodExit { thread, .. }
        | E::Monitor { thread, .. }
        | E::ThreadStart { thread, .. }
        | E::ThreadDeath { thread, .. }
        | E::ClassPrepare { thread, .. } => *thread,
        E::Exception(event) => event.thread,
        E::Field(event) => event.thread,
        E::VmDeath { .. } | E::ClassUnload { .. } => return None,
    };
    Some(thread).filter(|thread| !thread.is_null())
}
