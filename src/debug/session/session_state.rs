//! The state that the targets and handles of one session share, apart from the published snapshot.
//!
//! [`SessionShared`](super::session_shared::SessionShared) guards it with one lock. The methods are short, synchronous and
//! do no I/O. Does not depend on how targets are started and ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use tether_dap::DapClient;
use tether_dap::types::{DapCapabilities, DataBreakpoint};
use tokio::sync::watch;

use super::undebugged_processes::UndebuggedProcesses;
use crate::adapters::Quirks;
use crate::debug::breakpoints::{BindingTable, BreakpointSpec};
use crate::debug::inspect::stop_cache::StopCache;

/// The state of one session. Targets are indexed in the order of their start.
#[derive(Default)]
pub struct SessionState {
    pub channels: Vec<TargetChannel>,
    /// Set by the first stop: clients that connect later are closed at once.
    is_stopping: bool,
    /// It stops at exceptions that nothing catches, until the user chooses at which to stop.
    pub stops_at_uncaught: bool,
    /// How the targets have bound the breakpoints.
    pub bindings: BindingTable,
    /// Lines to run to: set until the next stop.
    pub temporary: Vec<BreakpointSpec>,
    /// By target and breakpoint; an adapter's data ids are valid for one target only.
    pub data: BTreeMap<(usize, u32), DataBreakpoint>,
    /// Targets that have been sent `pause` and have not stopped since.
    pub pausing: BTreeSet<usize>,
    /// By target: the call of a generated file that a step leaves, as the name of its function and its line.
    pub left_calls: BTreeMap<usize, (String, i64)>,
    /// The last values of watched data.
    pub watched: WatchedValues,
    /// Processes that are debugged, and are no target of their own.
    pub debugged: BTreeSet<u32>,
    /// The processes of the program that are not debugged.
    pub undebugged: UndebuggedProcesses,
    /// Responses that stay valid until the program runs.
    pub stop_cache: StopCache,
    /// The output cursor at the stop before the newest one.
    pub previous_stop_output: Option<u64>,
    /// The output cursor when a target was last resumed.
    pub resumed_output: u64,
    /// The output cursor at the newest stop.
    last_stop_output: Option<u64>,
}

/// The connection to one target, and what has been exchanged over it.
#[derive(Default)]
pub struct TargetChannel {
    /// None before it is connected and after its end.
    pub client: Option<DapClient>,
    /// Known once `launch` or `attach` has been sent.
    pub capabilities: watch::Sender<Option<DapCapabilities>>,
    /// Whether all breakpoints have been sent once.
    pub configured: watch::Sender<bool>,
    /// Whether the program goes on from its breakpoints once its debugger has left, where that takes a hook.
    pub is_detach_ready: watch::Sender<bool>,
    /// Serialises the requests for that hook.
    pub detach_hook_requests: Arc<tokio::sync::Mutex<()>>,
    /// A `disconnect` request is being sent, or has been.
    pub is_disconnecting: bool,
    /// All breakpoints are being sent, or have been: each later change must be sent too.
    pub are_breakpoints_sent: bool,
    /// Where its adapter differs from the protocol.
    pub quirks: Quirks,
    /// Serialises breakpoint requests.
    pub breakpoint_requests: Arc<tokio::sync::Mutex<()>>,
}

impl SessionState {
    /// Whether the session is being stopped.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Records a target's client. Returns whether the session is stopping, so that the caller must close it.
    pub fn set_client(&mut self, target: usize, client: &DapClient) -> bool {
        if let Some(channel) = self.channels.get_mut(target) {
            channel.client = Some(client.clone());
        }
        self.is_stopping
    }

    /// Removes a target's client, and what was valid for its connection only.
    pub fn clear_client(&mut self, target: usize) {
        if let Some(channel) = self.channels.get_mut(target) {
            channel.client = None;
        }
        self.bindings.remove_target(target);
        self.data.retain(|(of, _), _| *of != target);
    }

    /// Stops the session: returns all clients by target; no further one stays connected.
    pub fn begin_stop(&mut self) -> Vec<Option<DapClient>> {
        self.is_stopping = true;
        self.channels.iter().map(|channel| channel.client.clone()).collect()
    }

    /// The temporary breakpoints of a file.
    pub fn temporary_in(&self, file: &Path) -> Vec<BreakpointSpec> {
        self.temporary.iter().filter(|spec| spec.file() == Some(file)).cloned().collect()
    }

    /// The breakpoints on that line of a file in a target, the temporary ones first. `specs` are those of the store.
    pub fn breakpoints_at_line(&self, target: usize, specs: &[BreakpointSpec], path: &Path, line: i64) -> Vec<u32> {
        let is_there = |spec: &&BreakpointSpec| spec.is_on_line(self.bindings.bound_line(target, spec.id), path, line);
        self.temporary.iter().chain(specs).filter(is_there).map(|spec| spec.id).collect()
    }

    /// The data breakpoints for which a target has returned ids.
    pub fn data_of(&self, target: usize) -> Vec<(u32, DataBreakpoint)> {
        let of_target = self.data.iter().filter(|((of, _), _)| *of == target);
        of_target.map(|((_, id), data)| (*id, data.clone())).collect()
    }

    /// Records the output cursor at a stop.
    pub fn record_stop_output(&mut self, cursor: u64) {
        self.previous_stop_output = self.last_stop_output.replace(cursor);
    }

    /// Counts the hits of watchpoints, as [`BindingTable::count_hits`] does. An adapter may name none (lldb-dap 19): it is
    /// the only one then, or unknown.
    pub fn count_watchpoint_hits(&mut self, target: usize, adapter_ids: &[i64]) -> Vec<(u32, u64)> {
        match (adapter_ids, self.data_of(target).as_slice()) {
            ([], [(only, _)]) => vec![(*only, self.bindings.count_hit(*only))],
            _ => self.bindings.count_hits(target, adapter_ids),
        }
    }

    /// Removes a breakpoint that is no longer set.
    pub fn remove_breakpoint(&mut self, breakpoint: u32) {
        self.bindings.remove_breakpoint(breakpoint);
        self.data.retain(|(_, id), _| *id != breakpoint);
    }
}

/// The last two values of watched data, by breakpoint, and the hit at which they were read.
#[derive(Debug, Default)]
pub struct WatchedValues(HashMap<u32, WatchedValue>);

#[derive(Debug, Default)]
struct WatchedValue {
    hit: u64,
    before: Option<String>,
    now: Option<String>,
}

impl WatchedValues {
    /// Records the value at a hit (0: when it was set). Returns the value before and the value now; of several readings at
    /// one hit the first counts.
    pub fn record_value(&mut self, breakpoint: u32, hit: u64, now: Option<String>) -> (Option<String>, Option<String>) {
        let known = self.0.entry(breakpoint).or_default();
        if known.hit != hit || hit == 0 {
            *known = WatchedValue { hit, before: known.now.take(), now };
        }
        (known.before.clone(), known.now.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_from_the_stop_before_the_newest_one() {
        let mut state = SessionState::default();
        let mut cursor_after = |cursor| {
            state.record_stop_output(cursor);
            state.previous_stop_output
        };
        assert_eq!([cursor_after(3), cursor_after(5), cursor_after(5)], [None, Some(3), Some(5)]);
    }

    #[test]
    fn a_watched_value_changes_with_the_hit_only() {
        let mut watched = WatchedValues::default();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(watched.record_value(1, 0, text("1")), (None, text("1")));
        assert_eq!(watched.record_value(1, 1, text("2")), (text("1"), text("2")));
        assert_eq!(watched.record_value(1, 1, text("3")), (text("1"), text("2")));
    }
}
