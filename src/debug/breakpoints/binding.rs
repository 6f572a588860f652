//! How the targets of one session have bound the breakpoints.
//!
//! An adapter reports a binding in its response and in events, in any order: an event during a request may be read before
//! the response, and is the newer of the two.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::dap::types::DapBreakpoint;

/// How one target has bound one breakpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetBinding {
    /// The adapter's own id.
    pub id: Option<i64>,
    /// Whether the program stops there.
    pub verified: bool,
    /// The line to which the adapter has bound it.
    pub line: Option<u32>,
    /// Why it is not verified.
    pub message: Option<String>,
}

impl TargetBinding {
    fn from_response(reported: &DapBreakpoint) -> TargetBinding {
        TargetBinding {
            id: reported.id,
            verified: reported.verified,
            line: reported.line.and_then(|line| u32::try_from(line).ok()),
            message: reported.message.clone().filter(|message| !message.is_empty()),
        }
    }
}

/// How a breakpoint is bound in a session.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingStatus {
    /// The program stops there.
    Verified {
        /// The line to which it is bound, if the adapter reports it.
        line: Option<u32>,
    },
    /// It has not been sent to a target yet.
    Pending,
    /// No target stops there; why.
    Unbound(String),
}

/// All bindings of one session.
#[derive(Debug, Default)]
pub struct BindingTable {
    /// By target and breakpoint.
    bindings: HashMap<(usize, u32), TargetBinding>,
    /// The newest events, by target and the adapter's id.
    events: HashMap<(usize, i64), DapBreakpoint>,
    hits: HashMap<u32, u64>,
    /// All lines that were ever sent to a target, by file.
    lines: HashMap<(usize, PathBuf), HashSet<i64>>,
}

impl BindingTable {
    /// A request is about to be sent to a target: only events from here on are newer than its response.
    pub fn begin_request(&mut self, target: usize) {
        self.events.retain(|(of, _), _| *of != target);
    }

    /// These lines of a file are about to be sent.
    pub fn record_sent_lines(&mut self, target: usize, file: &Path, lines: &[i64]) {
        self.lines.entry((target, file.to_owned())).or_default().extend(lines);
    }

    /// Whether that line was ever sent.
    pub fn was_line_sent(&self, target: usize, file: &Path, line: i64) -> bool {
        self.lines.get(&(target, file.to_owned())).is_some_and(|lines| lines.contains(&line))
    }

    /// A response to the breakpoints `specs`, in the same order.
    pub fn record_response(&mut self, target: usize, specs: &[u32], response: &[DapBreakpoint]) {
        for (index, id) in specs.iter().enumerate() {
            let Some(response) = response.get(index) else { continue };
            let newer = response.id.and_then(|id| self.events.get(&(target, id)));
            let binding = TargetBinding::from_response(newer.unwrap_or(response));
            self.bindings.insert((target, *id), TargetBinding { id: response.id, ..binding });
        }
    }

    /// The target does not take these breakpoints, for that reason.
    pub fn record_refusal(&mut self, target: usize, specs: &[u32], reason: &str) {
        for id in specs {
            let binding = TargetBinding { message: Some(reason.to_owned()), ..TargetBinding::default() };
            self.bindings.insert((target, *id), binding);
        }
    }

    /// A `breakpoint` event.
    pub fn record_event(&mut self, target: usize, reported: DapBreakpoint) {
        let Some(id) = reported.id else { return };
        for ((of, _), binding) in &mut self.bindings {
            if *of == target && binding.id == Some(id) {
                let line = TargetBinding::from_response(&reported).line.or(binding.line);
                *binding = TargetBinding { line, ..TargetBinding::from_response(&reported) };
            }
        }
        self.events.insert((target, id), reported);
    }

    /// A breakpoint is no longer set.
    pub fn remove_breakpoint(&mut self, spec: u32) {
        self.bindings.retain(|(_, id), _| *id != spec);
        self.hits.remove(&spec);
    }

    /// A target has ended, and its bindings with it.
    pub fn remove_target(&mut self, target: usize) {
        self.bindings.retain(|(of, _), _| *of != target);
        self.lines.retain(|(of, _), _| *of != target);
        self.begin_request(target);
    }

    /// The breakpoint that an adapter's id stands for.
    pub fn spec_of_adapter_id(&self, target: usize, id: i64) -> Option<u32> {
        self.bindings.iter().find(|((of, _), binding)| *of == target && binding.id == Some(id)).map(|((_, id), _)| *id)
    }

    /// The line to which a target has bound a breakpoint.
    pub fn bound_line(&self, target: usize, spec: u32) -> Option<u32> {
        self.bindings.get(&(target, spec)).filter(|binding| binding.verified)?.line
    }

    /// Counts a hit; returns how many there were.
    pub fn count_hit(&mut self, spec: u32) -> u64 {
        let hits = self.hits.entry(spec).or_default();
        *hits += 1;
        *hits
    }

    /// How often it has been hit.
    pub fn hit_count(&self, spec: u32) -> u64 {
        self.hits.get(&spec).copied().unwrap_or_default()
    }

    /// Over all targets: verified in one target is verified.
    pub fn status(&self, spec: u32) -> BindingStatus {
        let mut all: Vec<(usize, &TargetBinding)> =
            self.bindings.iter().filter(|((_, id), _)| *id == spec).map(|((of, _), binding)| (*of, binding)).collect();
        all.sort_by_key(|(target, _)| *target);
        if let Some((_, binding)) = all.iter().find(|(_, binding)| binding.verified) {
            return BindingStatus::Verified { line: binding.line };
        }
        match all.last() {
            None => BindingStatus::Pending,
            Some((_, binding)) => BindingStatus::Unbound(
                binding.message.clone().unwrap_or_else(|| "the adapter reports no loaded code there".to_owned()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(id: i64, verified: bool, line: i64) -> DapBreakpoint {
        DapBreakpoint { id: Some(id), verified, line: Some(line), ..DapBreakpoint::default() }
    }

    #[test]
    fn the_newest_report_counts_and_one_verified_target_is_enough() {
        let mut bindings = BindingTable::default();
        assert_eq!(bindings.status(1), BindingStatus::Pending);
        bindings.begin_request(0);
        // js-debug's parent target takes every breakpoint and binds none.
        let message = Some("Unbound breakpoint".to_owned());
        bindings.record_response(0, &[1], &[DapBreakpoint { message, ..reported(7, false, 3) }]);
        assert_eq!(bindings.status(1), BindingStatus::Unbound("Unbound breakpoint".into()));
        // The event of a request that is under way overtakes its response.
        bindings.begin_request(1);
        bindings.record_event(1, reported(7, true, 4));
        bindings.record_response(1, &[1], &[reported(7, false, 3)]);
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(4) });
        assert_eq!((bindings.spec_of_adapter_id(1, 7), bindings.spec_of_adapter_id(1, 8)), (Some(1), None));
        bindings.record_event(1, DapBreakpoint { line: None, ..reported(7, true, 0) });
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(4) });
        // A later request's response is newer than the events before it.
        bindings.begin_request(1);
        bindings.record_response(1, &[1], &[reported(9, true, 5)]);
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(5) });
        bindings.remove_target(1);
        assert!(matches!(bindings.status(1), BindingStatus::Unbound(_)));
        bindings.record_refusal(0, &[1], "not supported");
        assert_eq!(bindings.status(1), BindingStatus::Unbound("not supported".into()));
        assert_eq!((bindings.count_hit(1), bindings.count_hit(1), bindings.hit_count(1)), (1, 2, 2));
        bindings.remove_breakpoint(1);
        assert_eq!((bindings.status(1), bindings.hit_count(1)), (BindingStatus::Pending, 0));
    }
}
