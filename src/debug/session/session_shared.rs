//! What the targets and handles of a session share: the published snapshot, the state behind one lock, what joined editors get.
//!
//! The lock is never held over I/O, an await, or a notification whose receivers take it. Does not depend on how targets
//! are started and ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use tether_base::sync::lock;
use tether_dap::{DapClient, RawEvent};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout};

use super::event_log::EventLog;
use super::resume::{LastResume, Resume, ResumeClient};
use super::session_state::{SessionState, TargetChannel};
use super::snapshot::{SessionSnapshot, TargetSnapshot};
use super::source_memory::SourceMemory;
use super::target_handle::TargetHandle;
use super::target_state::{TargetEffect, TargetEnd, TargetInput, TargetPhase, TargetState, next_state};
use super::undebugged_processes::UndebuggedProcess;
use crate::debug::breakpoints::BreakpointStore;

/// A pause between two scripts is shorter: reading the source map of a large one takes 0.4 s.
const LOADING_PAUSE: Duration = Duration::from_secs(1);
/// How long a program's scripts may take to be read.
const MAX_LOADING: Duration = Duration::from_secs(10);

/// Events that a joined editor may be behind; the oldest beyond them are dropped for it.
const MAX_FORWARDED_EVENTS: usize = 1024;

/// An event for joined editors that changes nothing here.
#[derive(Clone, Debug)]
pub struct ForwardedEvent {
    /// The target whose ids it has.
    pub target: usize,
    /// As its adapter has sent it.
    pub event: RawEvent,
    /// The editor that has caused it, and knows of it.
    pub except: Option<u64>,
}

/// What all targets and handles of a session share.
pub struct SessionShared {
    state: Mutex<SessionState>,
    /// The published state of all targets.
    pub snapshot: watch::Sender<SessionSnapshot>,
    /// Rises whenever a binding may have changed.
    pub bindings_changed: watch::Sender<u64>,
    /// When an adapter has last reported that a program, or a script of it, is there.
    pub loading: watch::Sender<Instant>,
    /// The breakpoints that are sent to the targets.
    pub breakpoints: BreakpointStore,
    /// Output and events.
    pub event_log: Arc<EventLog>,
    /// The source files as they were when they were loaded.
    pub sources: SourceMemory,
    /// For each single request.
    pub request_timeout: Duration,
    /// Serialises stack requests; the second caller finds the cache filled.
    pub stack_requests: tokio::sync::Mutex<()>,
    /// For joined editors; the state of the targets, output and breakpoints are published elsewhere.
    pub forwarded: broadcast::Sender<ForwardedEvent>,
}

impl SessionShared {
    /// A session without targets.
    pub fn new(breakpoints: BreakpointStore, event_log: Arc<EventLog>, request_timeout: Duration) -> SessionShared {
        SessionShared {
            state: Mutex::default(),
            snapshot: watch::Sender::default(),
            bindings_changed: watch::Sender::default(),
            loading: watch::Sender::new(Instant::now()),
            breakpoints,
            event_log,
            sources: SourceMemory::begin(),
            request_timeout,
            stack_requests: tokio::sync::Mutex::default(),
            forwarded: broadcast::Sender::new(MAX_FORWARDED_EVENTS),
        }
    }

    /// Reads or changes the state under its lock. `access` must not block, and must not call this again.
    pub fn with_state<T>(&self, access: impl FnOnce(&mut SessionState) -> T) -> T {
        access(&mut lock(&self.state))
    }

    /// Applies an input to a target and publishes the result. Returns what the caller has to do.
    pub fn apply_input(&self, target: usize, input: TargetInput) -> TargetEffect {
        self.apply_and_publish(target, input, None)
    }

    /// Applies the resume of a target, if it is stopped, and publishes who does.
    pub fn resume_target(&self, target: usize, input: TargetInput, (by, how): (ResumeClient, Resume)) -> TargetEffect {
        self.apply_and_publish(target, input, Some((by, how)))
    }

    fn apply_and_publish(
        &self,
        target: usize,
        input: TargetInput,
        resumes: Option<(ResumeClient, Resume)>,
    ) -> TargetEffect {
        let cursor = self.event_log.output_cursor();
        match input {
            // Before it is published: who is woken by the stop reads the output since the one before.
            TargetInput::Stopped(_) => self.with_state(|state| state.record_stop_output(cursor)),
            // js-debug also reports that a program which runs has continued.
            TargetInput::Resume(_) | TargetInput::ResumeOne(_) | TargetInput::Continued(_)
                if self.is_stopped(target) =>
            {
                self.with_state(|state| state.resumed_output = cursor);
            }
            _ => {}
        }
        let mut effect = TargetEffect::Nothing;
        let is_stopping = self.with_state(|state| state.is_stopping());
        self.snapshot.send_if_modified(|snapshot| {
            let Some(current) = snapshot.targets.get(target) else { return false };
            let ended_stop =
                describe_ended_stop(&current.state, &current.label(target), &input).filter(|_| !is_stopping);
            let is_new = matches!(input, TargetInput::Stopped(_) | TargetInput::Resume(_) | TargetInput::ResumeOne(_));
            let next;
            (next, effect) = next_state(&current.state, input);
            let Some(next) = next else { return false };
            if ended_stop.is_some() || is_new {
                snapshot.ended_stop.clone_from(&ended_stop);
            }
            snapshot.generation = snapshot.generation.saturating_add(1);
            let (id, generation) = (target, snapshot.generation);
            let others = snapshot.targets.iter().enumerate().filter(|(other, _)| *other != id);
            let goes_on = !matches!(next.phase, TargetPhase::Ended(_))
                || others.map(|(_, other)| &other.state.phase).any(|phase| !matches!(phase, TargetPhase::Ended(_)));
            if let Some(ended) = ended_stop.filter(|_| goes_on) {
                self.event_log.push_notice("stopEnded", ended);
            }
            let Some(target) = snapshot.targets.get_mut(target) else { return false };
            if let Some((by, how)) = resumes {
                let (by, is_by_editor) = by.name();
                target.last_resume = Some(LastResume { by, is_by_editor, how, generation });
            }
            if let TargetPhase::Ended(end) = &next.phase {
                // Before it is published: who is woken by the end reads it.
                self.event_log.push_event("targetEnded", format!("{}: {}", target.label(id), describe_end(end)));
            }
            if !matches!(target.state.phase, TargetPhase::Stopped(_)) {
                target.stopped_in = generation;
            }
            target.state = next;
            true
        });
        effect
    }

    /// Records a process that is not debugged, once; with `is_news` the next result reports it.
    pub fn report_undebugged(&self, process: UndebuggedProcess, is_news: bool) {
        let text = process.describe(false);
        if self.with_state(|state| state.undebugged.add(process)) {
            match is_news {
                true => self.event_log.push_notice("processNotDebugged", text),
                false => self.event_log.push_event("processNotDebugged", text),
            }
        }
    }

    /// Adds why nothing stops in some code of a process that is debugged.
    pub fn report_unfollowed_code(&self, pid: u32, reason: String) {
        let text = format!("process {pid}: {reason}");
        if self.with_state(|state| state.undebugged.add_code(text.clone())) {
            self.event_log.push_notice("codeNotDebugged", text);
        }
    }

    /// Forwards an event to the joined editors, if there are any.
    pub fn forward_event(&self, target: usize, event: &RawEvent, except: Option<u64>) {
        if self.forwarded.receiver_count() > 0 {
            // Fails only when the last one has just left.
            let _ = self.forwarded.send(ForwardedEvent { target, event: event.clone(), except });
        }
    }

    /// Tells the joined editors that variables have changed while the program was stopped.
    pub fn forward_changed_variables(&self, target: usize, except: Option<u64>) {
        let body = serde_json::json!({"areas": ["variables"]}).to_string();
        let event = RawEvent { name: "invalidated".to_owned(), body: RawValue::from_string(body).ok() };
        self.forward_event(target, &event, except);
    }

    fn is_stopped(&self, target: usize) -> bool {
        self.snapshot.borrow().targets.get(target).is_some_and(|it| matches!(it.state.phase, TargetPhase::Stopped(_)))
    }

    /// Publishes the process of a target.
    pub fn set_target_pid(&self, target: usize, pid: Option<u32>) {
        self.change_target(target, |target| target.pid = pid);
    }

    /// Sets the virtual machine of a target.
    pub fn set_target_vm(&self, target: usize, name: String) {
        self.change_target(target, |target| target.vm_name = Some(name));
    }

    fn change_target(&self, target: usize, change: impl FnOnce(&mut TargetSnapshot)) {
        self.snapshot.send_if_modified(|snapshot| snapshot.targets.get_mut(target).map(change).is_some());
    }

    /// Resolves when no program or script has been reported for [`LOADING_PAUSE`], at the latest after [`MAX_LOADING`].
    pub async fn wait_until_loaded(&self) {
        let mut loading = self.loading.subscribe();
        let until_quiet = async {
            loop {
                let left = LOADING_PAUSE.saturating_sub(loading.borrow_and_update().elapsed());
                if timeout(left, loading.changed()).await.is_err() {
                    return;
                }
            }
        };
        let _ = timeout(MAX_LOADING, until_quiet).await;
    }

    /// The client of a connected target.
    pub fn client(&self, target: usize) -> Option<DapClient> {
        self.with_state(|state| state.channels.get(target)?.client.clone())
    }

    /// Handles to all targets, in the order of their start.
    pub fn targets(self: &Arc<SessionShared>) -> Vec<TargetHandle> {
        let count = self.snapshot.borrow().targets.len();
        (0..count).map(|id| self.target(id)).collect()
    }

    /// Handles to the targets that a program has so far.
    pub fn program_targets(self: &Arc<SessionShared>, program: usize) -> Vec<TargetHandle> {
        let snapshot = self.snapshot.borrow();
        let own = snapshot.targets.iter().enumerate().filter(|(_, target)| target.program == program);
        own.map(|(id, _)| self.target(id)).collect()
    }

    /// A handle to a target.
    pub fn target(self: &Arc<SessionShared>, id: usize) -> TargetHandle {
        TargetHandle { id, shared: Arc::clone(self) }
    }

    /// Adds a target of a program, which is not connected yet. Only the program's task adds targets.
    pub fn add_target(self: &Arc<SessionShared>, target: TargetSnapshot) -> TargetHandle {
        let mut id = 0;
        self.with_state(|state| state.channels.push(TargetChannel::default()));
        self.snapshot.send_modify(|snapshot| {
            id = snapshot.targets.len();
            snapshot.generation = snapshot.generation.saturating_add(1);
            let of = target.parent.map(|parent| format!(", of target {parent}")).unwrap_or_default();
            self.event_log.push_event("targetStarted", format!("{}{of}", target.label(id)));
            snapshot.targets.push(target);
        });
        self.target(id)
    }
}

/// What has ended with a stop that nobody has resumed.
fn describe_ended_stop(now: &TargetState, label: &str, input: &TargetInput) -> Option<String> {
    let stops = match (&now.phase, input) {
        // As if it had not been resumed.
        (TargetPhase::Running { left }, TargetInput::RefusedWithoutThread(_)) => left,
        _ => now.stops(),
    };
    let first = stops.first()?;
    match input {
        TargetInput::ThreadExited(thread) | TargetInput::RefusedWithoutThread(thread) => {
            let stop = stops.iter().find(|stop| stop.thread_id == Some(*thread))?;
            let name = stop.thread_name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            Some(format!("thread {thread}{name} of {label} has ended while it was stopped"))
        }
        TargetInput::Terminated | TargetInput::Closed(_) => {
            let thread = first.thread_id.map(|thread| format!(" in thread {thread}")).unwrap_or_default();
            Some(format!("{label} has ended while it was stopped{thread}"))
        }
        _ => None,
    }
}

fn describe_end(end: &TargetEnd) -> String {
    match end {
        TargetEnd::Terminated { exit: Some(exit) } => exit.to_string(),
        TargetEnd::Terminated { exit: None } => "ended".to_owned(),
        TargetEnd::Disconnected(reason) => format!("its connection ended: {reason}"),
    }
}
