//! From the events of the virtual machine to the stops of DAP.
//!
//! An event suspends its own thread only; other threads run on. A written field is reported when the write is done, one
//! instruction later, so that its new value can be read.

use super::breakpoint_table::{BreakpointPlace, FunctionName};
use super::session::{JavaSession, PendingWrite, ThreadHalt};
use super::signatures::is_jdk_class;
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{DataChange, StoppedEvent, ThreadEvent};
use crate::jdwp::commands::objects::FieldValues;
use crate::jdwp::commands::reference_types::StaticFieldValues;
use crate::jdwp::commands::threads::{ResumeThread, ThreadName};
use crate::jdwp::commands::virtual_machine::ResumeAll;
use crate::jdwp::values::{CodeLocation, JdwpValue, ObjectId, TYPE_CLASS, TaggedObject};
use crate::jdwp::{
    ClearEventRequest, CompositeEvent, EventKind, EventModifier, ExceptionEvent, FieldEvent, JdwpEvent, JdwpEvent as E,
    SetEventRequest, StepDepth, SuspendPolicy,
};

/// What a thread has reached at one moment.
#[derive(Clone, Debug, Default)]
pub struct ReachedEvents {
    breakpoints: Vec<i64>,
    is_step: bool,
    exception: Option<ExceptionEvent>,
    /// The breakpoint, the place and the returned value of a method that returns.
    exit: Option<(i64, CodeLocation, Option<JdwpValue>)>,
    field: Option<(Option<i64>, FieldEvent)>,
}

/// The reason of the stop at the end of a step.
const STEP: &str = "step";

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

impl JavaSession {
    /// Handles what stops nothing, or is not for a thread. Returns what a thread has reached, which may have to be
    /// evaluated.
    pub async fn handle_events(
        &self,
        composite: CompositeEvent,
    ) -> Result<Option<(ObjectId, ReachedEvents)>, RequestFailure> {
        let (mut reached, mut thread) = (ReachedEvents::default(), None);
        let mut is_stop = false;
        for event in &composite.events {
            thread = thread.or(thread_of(event));
            is_stop |= self.sort_event(event, &mut reached);
            self.report_captured(event).await;
            match event {
                E::ClassPrepare { type_tag, class, signature, .. } => {
                    let class = self.vm.known_class(*class, *type_tag, signature.clone());
                    self.bind_to_prepared(&class).await?;
                }
                E::ClassUnload { signature, .. } => self.vm.forget_unloaded(signature),
                E::ThreadStart { thread, .. } => self.report_thread("started", *thread).await,
                E::ThreadDeath { thread, .. } => self.report_thread("exited", *thread).await,
                E::VmStart { thread, .. } if composite.suspend_policy == SuspendPolicy::All as u8 => {
                    self.with_tables(|tables| (tables.is_vm_suspended, tables.vm_start) = (true, Some(*thread)));
                    self.report_vm_start().await?;
                    return Ok(None);
                }
                E::VmDeath { request } if *request != 0 && composite.suspend_policy == SuspendPolicy::All as u8 => {
                    self.report_vm_death().await?;
                    return Ok(None);
                }
                _ => {}
            }
        }
        let Some(thread) = thread.filter(|_| composite.suspend_policy != 0) else { return Ok(None) };
        let is_invoking = self.with_tables(|tables| tables.invoking.contains(&thread));
        if is_stop && !is_invoking && composite.suspend_policy == SuspendPolicy::EventThread as u8 {
            return Ok(Some((thread, reached)));
        }
        match composite.suspend_policy {
            1 => self.vm.request(&ResumeThread { thread }).await?,
            _ => self.vm.request(&ResumeAll {}).await?,
        }
        Ok(None)
    }

    /// Whether the event may stop its thread.
    fn sort_event(&self, event: &JdwpEvent, reached: &mut ReachedEvents) -> bool {
        let breakpoint = |request: &i32| self.with_tables(|tables| tables.breakpoints.requests.get(request).copied());
        match event {
            E::Breakpoint { request, .. } => reached.breakpoints.extend(breakpoint(request)),
            E::SingleStep { .. } => reached.is_step = true,
            E::Exception(exception) => reached.exception = Some(exception.clone()),
            E::MethodExit { request, location, value, .. } => {
                reached.exit = breakpoint(request).map(|id| (id, *location, *value));
            }
            E::Field(field) => reached.field = Some((breakpoint(&field.request), field.clone())),
            _ => return false,
        }
        true
    }

    /// Decides whether a thread stops, and reports that; else it is resumed.
    pub async fn settle_thread(&self, thread: ObjectId, reached: ReachedEvents) -> Result<(), RequestFailure> {
        let step = self.with_tables(|tables| tables.steps.get(&thread).copied());
        let is_step = reached.is_step && step.is_some();
        let report = self.find_report(thread, reached, is_step).await?;
        if report.as_ref().is_some_and(|report| report.reason == STEP)
            && let Some(depth) = self.next_smart_step(thread).await?
        {
            return self.continue_step(thread, depth).await;
        }
        match report {
            Some(report) => {
                // Requests reach the virtual machine in order: a step that follows the report finds the old one ended.
                let ((), reported) = tokio::join!(biased; self.clear_step(thread), self.report_stop(thread, report));
                reported
            }
            None => Ok(self.vm.request(&ResumeThread { thread }).await?),
        }
    }

    /// Ends the step of a thread, if it steps.
    pub async fn clear_step(&self, thread: ObjectId) {
        if let Some(request) = self.with_tables(|tables| tables.steps.remove(&thread)) {
            // A step that has ended is gone already.
            let _ = self.vm.request(&ClearEventRequest { kind: EventKind::SingleStep, request }).await;
        }
    }

    async fn find_report(
        &self,
        thread: ObjectId,
        reached: ReachedEvents,
        is_step: bool,
    ) -> Result<Option<ThreadStopReport>, RequestFailure> {
        if let Some(write) = self.with_tables(|tables| tables.writes.remove(&thread)) {
            let kind = EventKind::SingleStep;
            // A step that has ended is gone already.
            let _ = self.vm.request(&ClearEventRequest { kind, request: write.request }).await;
            return Ok(Some(write_report(write)));
        }
        if let Some((id, field)) = &reached.field {
            return self.field_report(thread, *id, field).await;
        }
        if let Some(report) = self.exception_report(&reached).await? {
            return Ok(Some(report));
        }
        let breakpoints = self.filter_reached(thread, &reached.breakpoints).await;
        if let Some(first) = breakpoints.first() {
            let kind = self.with_tables(|tables| tables.breakpoints.entries.get(first).map(|it| it.kind.clone()));
            let reason = match kind {
                Some(BreakpointPlace::Entry { .. }) => {
                    self.remove_breakpoint(*first).await?;
                    return Ok(Some(ThreadStopReport { reason: "entry", ..ThreadStopReport::default() }));
                }
                Some(BreakpointPlace::Function(_)) => "method entry",
                _ => "breakpoint",
            };
            return Ok(Some(ThreadStopReport { reason, breakpoints, ..ThreadStopReport::default() }));
        }
        if let Some((id, location, value)) = reached.exit
            && let Some(report) = self.exit_report(thread, id, location, value).await?
        {
            return Ok(Some(report));
        }
        Ok(is_step.then(|| ThreadStopReport { reason: STEP, ..ThreadStopReport::default() }))
    }

    /// An exception, unless the JDK throws and catches it itself.
    async fn exception_report(&self, reached: &ReachedEvents) -> Result<Option<ThreadStopReport>, RequestFailure> {
        let Some(event) = &reached.exception else { return Ok(None) };
        let thrown_in = self.vm.class(event.location.class, event.location.type_tag).await?;
        if let Some(caught) = event.catch_location {
            let caught_in = self.vm.class(caught.class, caught.type_tag).await?;
            if is_jdk_class(&thrown_in.signature) && is_jdk_class(&caught_in.signature) {
                return Ok(None);
            }
        }
        let class = self.vm.class_of(event.exception.id).await?.name();
        let message = self.vm.exception_message(event.exception.id).await?;
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

    async fn exit_report(
        &self,
        thread: ObjectId,
        id: i64,
        location: CodeLocation,
        value: Option<JdwpValue>,
    ) -> Result<Option<ThreadStopReport>, RequestFailure> {
        let class = self.vm.class(location.class, location.type_tag).await?;
        let Some(method) = self.vm.method(&class, location.method).await? else { return Ok(None) };
        let function = self.with_tables(|tables| tables.breakpoints.entries.get(&id).map(|it| it.kind.clone()));
        let Some(BreakpointPlace::Function(function @ FunctionName { .. })) = function else { return Ok(None) };
        if !function.is_method(&method.name, &class.name()) {
            return Ok(None);
        }
        let breakpoints = self.filter_reached(thread, &[id]).await;
        if breakpoints.is_empty() {
            return Ok(None);
        }
        let text = match value {
            Some(JdwpValue::Void) | None => format!("{} returns", method.name),
            Some(value) => {
                let returned = super::signatures::method_types(&method.signature).1;
                let shown = self.vm.show_value(value, returned).await?;
                format!("{} returns {}", method.name, shown.text)
            }
        };
        Ok(Some(ThreadStopReport {
            reason: "method exit",
            text: Some(text),
            breakpoints,
            ..ThreadStopReport::default()
        }))
    }

    /// `None`: the thread goes on; after a write that stops it, by one instruction.
    async fn field_report(
        &self,
        thread: ObjectId,
        id: Option<i64>,
        event: &FieldEvent,
    ) -> Result<Option<ThreadStopReport>, RequestFailure> {
        let breakpoints = match id {
            Some(id) => self.filter_reached(thread, &[id]).await,
            None => Vec::new(),
        };
        if breakpoints.is_empty() {
            return Ok(None);
        }
        let class = self.vm.class(event.class, TYPE_CLASS).await?;
        let fields = self.vm.fields(&class).await?;
        let field = fields.iter().find(|it| it.id == event.field).ok_or("there is no such field")?;
        let value = match event.object.id.is_null() {
            true => self.vm.request(&StaticFieldValues { class: event.class, fields: vec![event.field] }).await?,
            false => self.vm.request(&FieldValues { object: event.object.id, fields: vec![event.field] }).await?,
        };
        let value = value.first().copied().unwrap_or(JdwpValue::Void);
        let old_value = self.vm.show_value(value, &field.signature).await?.text;
        let name = field.name.clone();
        let Some(new_value) = event.new_value else {
            let description = Some(format!("{name} is read"));
            let (old_value, new_value) = (Some(old_value.clone()), Some(old_value));
            let data_change = Some(DataChange { name, old_value, new_value });
            let reason = "data breakpoint";
            let rest = ThreadStopReport::default();
            return Ok(Some(ThreadStopReport { reason, description, breakpoints, data_change, ..rest }));
        };
        let new_value = self.vm.show_value(new_value, &field.signature).await?.text;
        let step = EventModifier::Step { thread, by_lines: false, depth: StepDepth::Into };
        let (kind, policy) = (EventKind::SingleStep, SuspendPolicy::EventThread);
        let modifiers = vec![step, EventModifier::Count(1)];
        // A thread has one step request.
        self.clear_step(thread).await;
        let request = self.vm.request(&SetEventRequest { kind, policy, modifiers }).await?;
        let write = PendingWrite { request, field: name, old_value, new_value, breakpoints };
        self.with_tables(|tables| tables.writes.insert(thread, write));
        Ok(None)
    }

    async fn report_stop(&self, thread: ObjectId, report: ThreadStopReport) -> Result<(), RequestFailure> {
        let ThreadStopReport { reason, description, text, breakpoints, exception, data_change } = report;
        let thread_id = self.with_tables(|tables| {
            tables.stopped.insert(thread, ThreadHalt { exception });
            tables.smart_steps.remove(&thread);
            tables.thread_id(thread)
        });
        let stopped = StoppedEvent {
            reason: reason.to_owned(),
            description,
            thread_id: Some(thread_id),
            text,
            all_threads_stopped: false,
            hit_breakpoint_ids: breakpoints,
            data_change,
            // Fails when the virtual machine has ended, which ends the session.
            thread_name: self.vm.request(&ThreadName { thread }).await.ok(),
        };
        // Fails when the client has gone, which ends the session.
        let _ = self.dap.send_event(&stopped).await;
        Ok(())
    }

    /// Reports that all threads are stopped, on one of them.
    pub async fn report_all_stopped(&self, thread: ObjectId, reason: &str) {
        let thread_id = self.with_tables(|tables| tables.thread_id(thread));
        let (thread_id, all_threads_stopped) = (Some(thread_id), true);
        let stopped =
            StoppedEvent { reason: reason.to_owned(), thread_id, all_threads_stopped, ..StoppedEvent::default() };
        // Fails when the client has gone, which ends the session.
        let _ = self.dap.send_event(&stopped).await;
    }

    /// A virtual machine that was suspended when it was attached to: a stop, once the client has sent its breakpoints.
    pub async fn report_vm_start(&self) -> Result<(), RequestFailure> {
        let thread = self.with_tables(|tables| match tables.is_configured && tables.reports_vm_start {
            true => tables.vm_start.take(),
            false => None,
        });
        if let Some(thread) = thread {
            self.report_all_stopped(thread, "vm start").await;
        }
        Ok(())
    }

    async fn report_vm_death(&self) -> Result<(), RequestFailure> {
        self.with_tables(|tables| tables.is_vm_suspended = true);
        let thread = self.main_thread().await?;
        self.report_all_stopped(thread, "vm death").await;
        Ok(())
    }

    async fn report_thread(&self, reason: &str, thread: ObjectId) {
        let thread_id = self.with_tables(|tables| tables.thread_id(thread));
        // Fails when the client has gone, which ends the session.
        let _ = self.dap.send_event(&ThreadEvent { reason: reason.to_owned(), thread_id }).await;
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
