//! How the targets of one session have bound the breakpoints.
//!
//! An adapter reports a binding in its response and in events, in any order: an event during a request may be read before
//! the response, and is the newer of the two.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tether_dap::types::DapBreakpoint;

/// How a breakpoint is bound in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingStatus {
    /// The program stops there.
    Verified {
        /// The line to which it is bound, if the adapter reports it.
        line: Option<u32>,
        /// The column, if the adapter reports it.
        column: Option<u32>,
        /// What of the request it does not do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// It has not been sent to a target yet; or a target may stop there later, for that reason.
    Pending(Option<String>),
    /// No target stops there; why.
    Unbound(String),
}

/// Of a breakpoint of which an adapter says nothing.
pub const NOT_REPORTED: &str = "the adapter reports no loaded code there";
/// Of a breakpoint with a column.
const IGNORED_COLUMN: &str = "this adapter ignores columns: it stops at the line's first code";
/// How many events are kept for responses that are still to come: an adapter may report any ids.
const MAX_EVENTS: usize = 10_000;

/// All bindings of one session.
#[derive(Debug, Default)]
pub struct BindingTable {
    /// By target and breakpoint.
    bindings: BTreeMap<(usize, u32), DapBreakpoint>,
    /// The newest events, by target and the adapter's id.
    events: HashMap<(usize, i64), DapBreakpoint>,
    hits: HashMap<u32, u64>,
    /// What ended targets have last said of a breakpoint, the best of it.
    past: HashMap<u32, BindingStatus>,
    /// The file of the code that a breakpoint is bound in, where that is older than its source.
    older_code: HashMap<u32, String>,
    /// All lines that were ever sent to a target, by file.
    lines: HashMap<(usize, PathBuf), HashSet<i64>>,
    /// The user's names by which breakpoints of a file were sent, too.
    names: HashMap<(usize, PathBuf), Vec<PathBuf>>,
    /// The breakpoints that were sent without their column, by target.
    without_column: HashSet<(usize, u32)>,
    /// The adapter's ids in responses in no order, by target.
    known_ids: HashSet<(usize, i64)>,
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

    /// By which names breakpoints of a file are sent to a target, besides its canonical path.
    pub fn record_sent_names(&mut self, target: usize, file: &Path, names: Vec<PathBuf>) {
        self.names.insert((target, file.to_owned()), names);
    }

    /// The names that were recorded last; they are no longer.
    pub fn take_sent_names(&mut self, target: usize, file: &Path) -> Vec<PathBuf> {
        self.names.remove(&(target, file.to_owned())).unwrap_or_default()
    }

    /// These breakpoints of a target are sent without their column, which its adapter ignores.
    pub fn record_ignored_columns(&mut self, target: usize, specs: &[u32]) {
        self.without_column.extend(specs.iter().map(|id| (target, *id)));
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
            let newest = newer.unwrap_or(response).clone();
            self.older_code.extend(newest.older_code.clone().map(|code| (*id, code)));
            self.bindings.insert((target, *id), DapBreakpoint { id: response.id, ..newest });
        }
    }

    /// The adapter's id of a breakpoint that stands for these.
    pub fn adapter_id(&self, target: usize, specs: &[u32]) -> Option<i64> {
        specs.iter().find_map(|id| self.bindings.get(&(target, *id))?.id)
    }

    /// A response in any order to breakpoints that stand for these; at most one of them is new to the adapter.
    pub fn record_unordered_response(&mut self, target: usize, sent: &[Vec<u32>], response: &[DapBreakpoint]) {
        for specs in sent {
            let known = self.adapter_id(target, specs);
            let is_meant = |id: i64| known.map_or(!self.known_ids.contains(&(target, id)), |known| known == id);
            match response.iter().find(|it| it.id.is_some_and(is_meant)) {
                Some(found) => self.record_response(target, specs, &vec![found.clone(); specs.len()]),
                None => self.record_refusal(target, specs, "the adapter does not report it"),
            }
        }
        self.known_ids.extend(response.iter().filter_map(|it| Some((target, it.id?))));
    }

    /// The target does not take these breakpoints, for that reason.
    pub fn record_refusal(&mut self, target: usize, specs: &[u32], reason: &str) {
        for id in specs {
            let binding = DapBreakpoint { message: Some(reason.to_owned()), ..DapBreakpoint::default() };
            self.bindings.insert((target, *id), binding);
        }
    }

    /// Adds the limit of the hardware to what a debugger says of watchpoints that it could not set: LLDB has one text for
    /// "no more" and for "none at all".
    pub fn explain_refused_watchpoints(&mut self, target: usize, specs: &[u32]) {
        let refused =
            self.bindings.iter_mut().filter(|((of, id), it)| *of == target && specs.contains(id) && !it.verified);
        let reasons = refused.filter_map(|(_, binding)| binding.message.as_mut());
        for reason in reasons.filter(|reason| reason.to_lowercase().contains("watchpoint")) {
            reason.push_str(": a processor has about four hardware watchpoints, a virtual machine may have none");
        }
    }

    /// A `breakpoint` event.
    pub fn record_event(&mut self, target: usize, reported: DapBreakpoint) {
        let Some(id) = reported.id else { return };
        for ((of, spec), binding) in &mut self.bindings {
            if *of == target && binding.id == Some(id) {
                self.older_code.extend(reported.older_code.clone().map(|code| (*spec, code)));
                let line = reported.line.filter(|line| *line >= 0).or(binding.line);
                let column = reported.column.or(binding.column);
                *binding = DapBreakpoint { line, column, ..reported.clone() };
            }
        }
        if self.events.len() < MAX_EVENTS || self.events.contains_key(&(target, id)) {
            self.events.insert((target, id), reported);
        }
    }

    /// A breakpoint is no longer set.
    pub fn remove_breakpoint(&mut self, spec: u32) {
        self.past.remove(&spec);
        self.older_code.remove(&spec);
        self.bindings.retain(|(_, id), _| *id != spec);
        self.without_column.retain(|(_, id)| *id != spec);
        self.hits.remove(&spec);
    }

    /// A target has ended, and its bindings with it.
    pub fn remove_target(&mut self, target: usize) {
        let specs: Vec<u32> = self.bindings.keys().filter(|(of, _)| *of == target).map(|(_, spec)| *spec).collect();
        for spec in specs {
            let outcome = self.outcome(spec);
            self.past.insert(spec, outcome);
        }
        self.bindings.retain(|(of, _), _| *of != target);
        self.lines.retain(|(of, _), _| *of != target);
        self.names.retain(|(of, _), _| *of != target);
        self.without_column.retain(|(of, _)| *of != target);
        self.known_ids.retain(|(of, _)| *of != target);
        self.begin_request(target);
    }

    /// Counts a hit of each breakpoint that one of the adapter's ids stands for; returns them, and how many there were.
    pub fn count_hits(&mut self, target: usize, adapter_ids: &[i64]) -> Vec<(u32, u64)> {
        let mut known: Vec<u32> = adapter_ids.iter().flat_map(|id| self.specs_of_adapter_id(target, *id)).collect();
        known.dedup();
        for id in &known {
            // Where the program has stopped, it is bound, whatever was reported.
            if let Some(binding) = self.bindings.get_mut(&(target, *id)) {
                (binding.verified, binding.message) = (true, None);
            }
        }
        known.into_iter().map(|id| (id, self.count_hit(id))).collect()
    }

    /// Breakpoints of several owners on one line are one for the adapter.
    fn specs_of_adapter_id(&self, target: usize, id: i64) -> Vec<u32> {
        let bound = self.bindings.iter().filter(|((of, _), binding)| *of == target && binding.id == Some(id));
        bound.map(|((_, spec), _)| *spec).collect()
    }

    /// Whether a target has bound a breakpoint.
    pub fn is_verified(&self, target: usize, spec: u32) -> bool {
        self.bindings.get(&(target, spec)).is_some_and(|binding| binding.verified)
    }

    /// The line to which a target has bound a breakpoint.
    pub fn bound_line(&self, target: usize, spec: u32) -> Option<u32> {
        self.bindings.get(&(target, spec)).filter(|binding| binding.verified).and_then(line_of)
    }

    /// Counts a hit; returns how many there were.
    pub fn count_hit(&mut self, spec: u32) -> u64 {
        let hits = self.hits.entry(spec).or_default();
        *hits = hits.saturating_add(1);
        *hits
    }

    /// The file of the code that it is bound in, where that is older than its source, as far as the adapter says so.
    pub fn older_code(&self, spec: u32) -> Option<&str> {
        self.older_code.get(&spec).map(String::as_str)
    }

    /// How often it has been hit.
    pub fn hit_count(&self, spec: u32) -> u64 {
        self.hits.get(&spec).copied().unwrap_or_default()
    }

    /// Whether an adapter has answered for it, also one whose target has ended.
    pub fn was_answered(&self, spec: u32) -> bool {
        self.past.contains_key(&spec) || self.bindings.keys().any(|(_, id)| *id == spec)
    }

    /// As [`BindingTable::status`], with what targets have said that have ended.
    pub fn outcome(&self, spec: u32) -> BindingStatus {
        match (self.status(spec), self.past.get(&spec)) {
            (_, Some(past @ BindingStatus::Verified { .. })) => past.clone(),
            (BindingStatus::Pending(None), Some(past)) => past.clone(),
            (now, _) => now,
        }
    }

    /// Over all targets: verified in one target is verified.
    pub fn status(&self, spec: u32) -> BindingStatus {
        let of_spec = self.bindings.iter().filter(|((_, id), _)| *id == spec);
        let all: Vec<(usize, &DapBreakpoint)> = of_spec.map(|((target, _), binding)| (*target, binding)).collect();
        match all.iter().find(|(_, binding)| binding.verified).or(all.last()) {
            None => BindingStatus::Pending(None),
            Some((target, binding)) if binding.verified => {
                let ignores_column =
                    self.without_column.contains(&(*target, spec)) || binding.ignores_column == Some(true);
                let note = ignores_column.then(|| IGNORED_COLUMN.to_owned());
                BindingStatus::Verified { line: line_of(binding), column: column_of(binding), note }
            }
            Some((_, binding)) => {
                let message = binding.message.as_deref().filter(|message| !is_message_key(message));
                if binding.reason.as_deref() == Some("pending") {
                    return BindingStatus::Pending(message.map(str::to_owned));
                }
                BindingStatus::Unbound(message.unwrap_or(NOT_REPORTED).to_owned())
            }
        }
    }
}

/// Whether an adapter has sent no text, or the key of one that it has not translated: `breakpoint.provisionalBreakpoint`.
fn is_message_key(message: &str) -> bool {
    let message = message.trim();
    message.is_empty() || (message.contains('.') && !message.contains(char::is_whitespace))
}

fn line_of(binding: &DapBreakpoint) -> Option<u32> {
    u32::try_from(binding.line?).ok()
}

fn column_of(binding: &DapBreakpoint) -> Option<u32> {
    u32::try_from(binding.column?).ok().filter(|column| *column > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(id: i64, verified: bool, line: i64) -> DapBreakpoint {
        DapBreakpoint { id: Some(id), verified, line: Some(line), ..DapBreakpoint::default() }
    }

    #[test]
    fn events_about_breakpoints_that_nobody_knows_are_bounded() {
        let mut bindings = BindingTable::default();
        for id in 0..2 * MAX_EVENTS as i64 {
            bindings.record_event(0, reported(id, true, 1));
        }
        bindings.record_event(0, reported(0, true, 2));
        assert_eq!(bindings.events.len(), MAX_EVENTS);
        assert_eq!(bindings.events.get(&(0, 0)).and_then(|it| it.line), Some(2), "one that is kept is renewed");
    }

    #[test]
    fn the_newest_report_counts_and_one_verified_target_is_enough() {
        let mut bindings = BindingTable::default();
        assert_eq!(bindings.status(1), BindingStatus::Pending(None));
        bindings.begin_request(0);
        // js-debug's parent target takes every breakpoint and binds none.
        let message = Some("Unbound breakpoint".to_owned());
        bindings.record_response(0, &[1], &[DapBreakpoint { message, ..reported(7, false, 3) }]);
        assert_eq!(bindings.status(1), BindingStatus::Unbound("Unbound breakpoint".into()));
        // The event of a request that is under way overtakes its response.
        bindings.begin_request(1);
        bindings.record_event(1, reported(7, true, 4));
        bindings.record_response(1, &[1], &[reported(7, false, 3)]);
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(4), column: None, note: None });
        assert_eq!((bindings.specs_of_adapter_id(1, 7), bindings.specs_of_adapter_id(1, 8)), (vec![1], vec![]));
        bindings.record_event(1, DapBreakpoint { line: None, ..reported(7, true, 0) });
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(4), column: None, note: None });
        // A later request's response is newer than the events before it.
        bindings.begin_request(1);
        bindings.record_response(1, &[1], &[reported(9, true, 5)]);
        assert_eq!(bindings.status(1), BindingStatus::Verified { line: Some(5), column: None, note: None });
        let key = Some("breakpoint.provisionalBreakpoint".to_owned());
        bindings.record_response(1, &[1], &[DapBreakpoint { message: key, ..reported(9, false, 5) }]);
        let unbound = BindingStatus::Unbound("the adapter reports no loaded code there".into());
        assert_eq!(bindings.status(1), unbound, "an untranslated key is not a text");
        assert_eq!(bindings.count_hits(1, &[9]), [(1, 1)]);
        assert_eq!(
            bindings.status(1),
            BindingStatus::Verified { line: Some(5), column: None, note: None },
            "it was hit"
        );
        bindings.remove_target(1);
        assert!(matches!(bindings.status(1), BindingStatus::Unbound(_)));
        assert_eq!(
            bindings.outcome(1),
            BindingStatus::Verified { line: Some(5), column: None, note: None },
            "of what has ended"
        );
        bindings.record_refusal(0, &[1], "not supported");
        assert_eq!(bindings.status(1), BindingStatus::Unbound("not supported".into()));
        assert_eq!((bindings.count_hit(1), bindings.hit_count(1)), (2, 2));
        let later = DapBreakpoint {
            message: Some("no class yet".into()),
            reason: Some("pending".into()),
            ..reported(9, false, 5)
        };
        bindings.record_response(0, &[1], &[later]);
        assert_eq!(bindings.status(1), BindingStatus::Pending(Some("no class yet".into())));
        bindings.remove_breakpoint(1);
        assert_eq!((bindings.status(1), bindings.hit_count(1)), (BindingStatus::Pending(None), 0));
    }

    #[test]
    fn a_verified_breakpoint_says_that_its_column_is_ignored() {
        let mut bindings = BindingTable::default();
        bindings.record_ignored_columns(0, &[1]);
        assert_eq!(bindings.status(1), BindingStatus::Pending(None));
        bindings.record_response(0, &[1, 2], &[reported(7, true, 3), reported(8, true, 4)]);
        let noted = |line, note: Option<&str>| {
            let note = note.map(str::to_owned);
            BindingStatus::Verified { line: Some(line), column: None, note }
        };
        assert_eq!(bindings.status(1), noted(3, Some(IGNORED_COLUMN)));
        assert_eq!(bindings.status(2), noted(4, None));
        // Another target, whose adapter obeys columns.
        bindings.remove_target(0);
        assert_eq!(bindings.outcome(1), noted(3, Some(IGNORED_COLUMN)), "of what has ended");
        bindings.record_response(1, &[1], &[reported(7, true, 3)]);
        assert_eq!(bindings.status(1), noted(3, None));
    }

    #[test]
    fn responses_in_no_order_are_told_apart_by_what_the_adapter_had_before() {
        let mut bindings = BindingTable::default();
        let unset = |id: i64| DapBreakpoint { id: Some(id), ..DapBreakpoint::default() };
        let verified = BindingStatus::Verified { line: Some(3), column: None, note: None };
        // Three on panics, which no spec stands for.
        bindings.record_unordered_response(0, &[], &[unset(4), unset(5), unset(6)]);
        bindings.record_unordered_response(0, &[vec![1, 2]], &[unset(4), unset(5), unset(6), reported(8, true, 3)]);
        assert_eq!((bindings.status(1), bindings.status(2)), (verified.clone(), verified.clone()));
        let one_more = [unset(9), unset(4), reported(8, true, 3), unset(6), unset(5)];
        bindings.record_unordered_response(0, &[vec![3], vec![1, 2]], &one_more);
        assert_eq!((bindings.adapter_id(0, &[3]), bindings.adapter_id(0, &[2, 1])), (Some(9), Some(8)));
        assert_eq!(bindings.status(1), verified);
        assert!(matches!(bindings.status(3), BindingStatus::Unbound(_)));
        bindings.record_unordered_response(0, &[vec![3]], &[unset(4)]);
        assert_eq!(bindings.status(3), BindingStatus::Unbound("the adapter does not report it".into()));
        // Ids of an ended target are of another adapter's process.
        bindings.remove_target(0);
        bindings.record_unordered_response(0, &[vec![1]], &[reported(4, true, 3)]);
        assert_eq!(bindings.status(1), verified);
    }
}
