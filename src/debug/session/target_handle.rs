//! What the targets of a session share, and a handle to one target in it.
//!
//! One lock guards the [`SessionState`]; it is never held over I/O, an await, or a notification whose receivers take it.
//! Does not depend on how targets are started and ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, watch};

use super::event_log::EventLog;
use super::session_state::{SessionState, TargetChannel};
use super::snapshot::{SessionSnapshot, TargetSnapshot};
use super::stop::ThreadStop;
use super::target_state::{TargetEffect, TargetInput, TargetPhase, step_target};
use crate::dap::DapClient;
use crate::dap::types::{DapBreakpoint, DapCapabilities, DataBreakpoint};
use crate::debug::breakpoints::{
    BreakpointKind, BreakpointSpec, BreakpointStore, DataAccess, ExceptionSpec, StoredBreakpoints,
};
use crate::sync::lock;

/// What all targets and handles of a session share.
pub struct SessionShared {
    state: Mutex<SessionState>,
    /// The published state of all targets.
    pub snapshot: watch::Sender<SessionSnapshot>,
    /// Rises whenever a binding may have changed.
    pub bindings_changed: watch::Sender<u64>,
    /// The breakpoints that are sent to the targets.
    pub breakpoints: BreakpointStore,
    /// Output and events.
    pub event_log: Arc<EventLog>,
    /// For each single request.
    pub request_timeout: Duration,
    /// Serialises stack requests; the second caller finds the cache filled.
    pub stack_requests: tokio::sync::Mutex<()>,
}

impl SessionShared {
    /// A session without targets.
    pub fn new(breakpoints: BreakpointStore, event_log: Arc<EventLog>, request_timeout: Duration) -> SessionShared {
        SessionShared {
            state: Mutex::default(),
            snapshot: watch::Sender::default(),
            bindings_changed: watch::Sender::default(),
            breakpoints,
            event_log,
            request_timeout,
            stack_requests: tokio::sync::Mutex::default(),
        }
    }

    /// Reads or changes the state under its lock. `access` must not block, and must not call this again.
    pub fn with_state<T>(&self, access: impl FnOnce(&mut SessionState) -> T) -> T {
        access(&mut lock(&self.state))
    }

    /// Applies an input to a target and publishes the result. Returns what the caller has to do.
    pub fn step_target(&self, target: usize, input: TargetInput) -> TargetEffect {
        if matches!(input, TargetInput::Stopped(_)) {
            // Before it is published: who is woken by the stop reads the output since the one before.
            let cursor = self.event_log.output_cursor();
            self.with_state(|state| state.record_stop_output(cursor));
        }
        let mut effect = TargetEffect::Nothing;
        self.snapshot.send_if_modified(|snapshot| {
            let (next, wanted) = step_target(&snapshot.targets[target].state, input);
            effect = wanted;
            let Some(next) = next else { return false };
            snapshot.generation += 1;
            let target = &mut snapshot.targets[target];
            if !matches!(target.state.phase, TargetPhase::Stopped(_)) {
                target.stopped_in = snapshot.generation;
            }
            target.state = next;
            true
        });
        effect
    }

    /// The client of a connected target.
    pub fn client(&self, target: usize) -> Option<DapClient> {
        self.with_state(|state| state.client(target))
    }

    /// Handles to all targets, in the order of their start.
    pub fn targets(self: &Arc<SessionShared>) -> Vec<TargetHandle> {
        let count = self.snapshot.borrow().targets.len();
        (0..count).map(|id| self.target(id)).collect()
    }

    /// A handle to a target.
    pub fn target(self: &Arc<SessionShared>, id: usize) -> TargetHandle {
        TargetHandle { id, shared: Arc::clone(self) }
    }

    /// Adds a target, which is not connected yet. Only the session's task adds targets.
    pub fn add_target(self: &Arc<SessionShared>, parent: Option<usize>, name: String) -> TargetHandle {
        let mut id = 0;
        self.with_state(SessionState::add_channel);
        self.snapshot.send_modify(|snapshot| {
            id = snapshot.targets.len();
            snapshot.generation += 1;
            snapshot.targets.push(TargetSnapshot { name, parent, ..TargetSnapshot::default() });
        });
        self.target(id)
    }
}

/// A handle to one target of a session.
#[derive(Clone)]
pub struct TargetHandle {
    /// The target's index.
    pub id: usize,
    /// The session's shared part.
    pub shared: Arc<SessionShared>,
}

impl TargetHandle {
    /// Applies an input to the target; see [`SessionShared::step_target`].
    pub fn step(&self, input: TargetInput) -> TargetEffect {
        self.shared.step_target(self.id, input)
    }

    /// The stops that the target is in; the first is primary.
    pub fn stops(&self) -> Vec<ThreadStop> {
        self.shared.snapshot.borrow().targets[self.id].state.stops().to_vec()
    }

    /// The session's output and events.
    pub fn event_log(&self) -> Arc<EventLog> {
        Arc::clone(&self.shared.event_log)
    }

    /// Records the client of the connection; it is closed at once if the session is stopping.
    pub fn set_client(&self, client: &DapClient) {
        if self.shared.with_state(|state| state.set_client(self.id, client)) {
            client.close();
        }
    }

    /// Removes the client, and what was valid for its connection only.
    pub fn clear_client(&self) {
        self.shared.with_state(|state| state.clear_client(self.id));
        self.notify_bindings_changed();
    }

    /// The client while the target is connected.
    pub fn client(&self) -> Option<DapClient> {
        self.shared.client(self.id)
    }

    /// Whether the caller is the first to disconnect the target, and so the one to send `disconnect`.
    pub fn claim_disconnect(&self) -> bool {
        self.shared.with_state(|state| state.claim_disconnect(self.id))
    }

    /// Reads or changes the channel. A handle may carry an index that was never given: then there is none.
    fn with_channel<T>(&self, access: impl FnOnce(&mut TargetChannel) -> T) -> Option<T> {
        self.shared.with_state(|state| state.channel(self.id).map(access))
    }

    /// Records the adapter's capabilities, once `launch` or `attach` has been sent.
    pub fn set_capabilities(&self, capabilities: DapCapabilities) {
        self.with_channel(|channel| channel.capabilities.send_replace(Some(capabilities)));
    }

    /// The adapter's capabilities, as soon as they are known.
    pub async fn wait_for_capabilities(&self) -> DapCapabilities {
        let Some(mut known) = self.with_channel(|channel| channel.capabilities.subscribe()) else {
            return DapCapabilities::default();
        };
        let known = known.wait_for(Option::is_some).await;
        known.ok().and_then(|capabilities| capabilities.clone()).unwrap_or_default()
    }

    /// The adapter's capabilities, as far as they are known.
    pub fn capabilities(&self) -> DapCapabilities {
        self.with_channel(|channel| channel.capabilities.borrow().clone()).flatten().unwrap_or_default()
    }

    /// Adds what a `capabilities` event has changed.
    pub fn merge_capabilities(&self, changed: DapCapabilities) {
        self.with_channel(|channel| {
            channel.capabilities.send_modify(|capabilities| capabilities.get_or_insert_default().change(changed));
        });
    }

    /// Records that all breakpoints have been sent once.
    pub fn mark_configured(&self) {
        self.with_channel(|channel| channel.configured.send_replace(true));
    }

    /// Waits until all breakpoints have been sent once.
    pub async fn wait_until_configured(&self) {
        if let Some(mut configured) = self.with_channel(|channel| channel.configured.subscribe()) {
            let _ = configured.wait_for(|configured| *configured).await;
        }
    }

    /// Records that all breakpoints are being sent: each later change must be sent too, in its own turn.
    pub fn mark_breakpoints_sent(&self) {
        self.with_channel(|channel| channel.are_breakpoints_sent = true);
    }

    /// Whether a changed breakpoint must be sent to the target.
    pub fn are_breakpoints_sent(&self) -> bool {
        self.with_channel(|channel| channel.are_breakpoints_sent).unwrap_or_default()
    }

    /// Serialises breakpoint requests to the target: held while one is sent and answered.
    pub async fn lock_breakpoint_requests(&self) -> OwnedMutexGuard<()> {
        let turn = self.with_channel(|channel| Arc::clone(&channel.breakpoint_requests)).unwrap_or_default();
        turn.lock_owned().await
    }
}

/// The breakpoints that the target is to be sent.
impl TargetHandle {
    fn stored(&self) -> Arc<StoredBreakpoints> {
        self.shared.breakpoints.current()
    }

    /// The files with breakpoints.
    pub fn breakpoint_files(&self) -> BTreeSet<PathBuf> {
        let mut files = self.stored().files();
        files.extend(self.shared.with_state(|state| state.temporary_files()));
        files
    }

    /// The line breakpoints of a file.
    pub fn line_breakpoints(&self, file: &Path) -> Vec<BreakpointSpec> {
        self.stored().in_file(file).cloned().collect()
    }

    /// The lines of a file to which the session runs.
    pub fn temporary_breakpoints(&self, file: &Path) -> Vec<BreakpointSpec> {
        self.shared.with_state(|state| state.temporary_in(file))
    }

    /// All function breakpoints.
    pub fn function_breakpoints(&self) -> Vec<BreakpointSpec> {
        let is_function = |spec: &&BreakpointSpec| matches!(spec.kind, BreakpointKind::Function { .. });
        self.stored().all().iter().filter(is_function).cloned().collect()
    }

    /// On which exceptions to stop.
    pub fn exception_spec(&self) -> ExceptionSpec {
        self.stored().exceptions().clone()
    }

    /// The only exception class to stop at, if one is set.
    pub fn exception_class(&self) -> Option<String> {
        self.stored().exceptions().class.clone()
    }

    /// Whether a data breakpoint is set for reads only.
    pub fn is_read_watchpoint(&self, id: u32) -> bool {
        let reads = |spec: &BreakpointSpec| matches!(spec.kind, BreakpointKind::Data { access: DataAccess::Read, .. });
        self.stored().get(id).is_some_and(reads)
    }

    /// The data breakpoints for which the target has returned no data id.
    pub fn unresolved_data_breakpoints(&self) -> Vec<u32> {
        let resolved: Vec<u32> = self.data_breakpoints().into_iter().map(|(id, _)| id).collect();
        let is_unresolved =
            |spec: &&BreakpointSpec| matches!(spec.kind, BreakpointKind::Data { .. }) && !resolved.contains(&spec.id);
        self.stored().all().iter().filter(is_unresolved).map(|spec| spec.id).collect()
    }

    /// The data breakpoints for which the target has returned data ids.
    pub fn data_breakpoints(&self) -> Vec<(u32, DataBreakpoint)> {
        self.shared.with_state(|state| state.data_of(self.id))
    }
}

/// How the target has bound them.
impl TargetHandle {
    /// After the state's lock: receivers read the state while they hold the channel's lock.
    fn notify_bindings_changed(&self) {
        self.shared.bindings_changed.send_modify(|count| *count += 1);
    }

    /// Records that a breakpoint request is about to be sent.
    pub fn begin_breakpoint_request(&self) {
        self.shared.with_state(|state| state.bindings.begin_request(self.id));
    }

    /// Records the response to the breakpoints `specs`, in the same order.
    pub fn record_bindings(&self, specs: &[u32], response: &[DapBreakpoint]) {
        self.shared.with_state(|state| state.bindings.record_response(self.id, specs, response));
        self.notify_bindings_changed();
    }

    /// Records why the target does not take breakpoints.
    pub fn record_refusal(&self, specs: &[u32], reason: &str) {
        self.shared.with_state(|state| state.bindings.record_refusal(self.id, specs, reason));
        self.notify_bindings_changed();
    }

    /// Records a `breakpoint` event.
    pub fn update_binding(&self, changed: DapBreakpoint) {
        self.shared.with_state(|state| state.bindings.record_event(self.id, changed));
        self.notify_bindings_changed();
    }

    /// Whether the target has been sent `pause`; its next stop is the result, so that the request is removed.
    pub fn take_pause_request(&self) -> bool {
        self.shared.with_state(|state| state.take_pause_request(self.id))
    }

    /// Counts a hit of a breakpoint; returns how many there were.
    pub fn count_hit(&self, spec: u32) -> u64 {
        self.shared.with_state(|state| state.bindings.count_hit(spec))
    }

    /// The breakpoint that an adapter's id stands for.
    pub fn spec_of_adapter_id(&self, id: i64) -> Option<u32> {
        self.shared.with_state(|state| state.bindings.spec_of_adapter_id(self.id, id))
    }

    /// Records the lines of a file that are about to be sent.
    pub fn record_sent_lines(&self, file: &Path, lines: &[i64]) {
        self.shared.with_state(|state| state.bindings.record_sent_lines(self.id, file, lines));
    }

    /// Whether a line was ever sent.
    pub fn was_line_sent(&self, file: &Path, line: i64) -> bool {
        self.shared.with_state(|state| state.bindings.was_line_sent(self.id, file, line))
    }

    /// The breakpoint on that line of a file, a temporary one first.
    pub fn breakpoint_at_line(&self, path: &Path, line: i64) -> Option<u32> {
        let stored = self.stored();
        self.shared.with_state(|state| state.breakpoint_at_line(self.id, stored.all(), path, line))
    }
}
