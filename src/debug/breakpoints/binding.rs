//! What the targets of one session made of the wanted breakpoints.
//!
//! An adapter's word on a breakpoint comes as an answer and as events, in any order: the event of a request that is under
//! way may be read before its answer, and is the newer one of the two.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::dap::types::DapBreakpoint;

/// What one target made of one wanted breakpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetBinding {
    /// The adapter's own number.
    pub id: Option<i64>,
    pub verified: bool,
    /// Where it really is.
    pub line: Option<u32>,
    pub message: Option<String>,
}

impl TargetBinding {
    fn from_response(told: &DapBreakpoint) -> TargetBinding {
        TargetBinding {
            id: told.id,
            verified: told.verified,
            line: told.line.and_then(|line| u32::try_from(line).ok()),
            message: told.message.clone().filter(|message| !message.is_empty()),
        }
    }
}

/// Where a wanted breakpoint stands in a session.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingStatus {
    Verified {
        /// Where it really is, if that was said.
        line: Option<u32>,
    },
    /// No target has been asked yet.
    Pending,
    Unbound(String),
}

/// All of one session.
#[derive(Debug, Default)]
pub struct BindingTable {
    /// By target and wanted breakpoint.
    applied: HashMap<(usize, u32), TargetBinding>,
    /// What events have said of an adapter's own numbers, by target.
    told: HashMap<(usize, i64), DapBreakpoint>,
    hits: HashMap<u32, u64>,
    /// The lines that a target was ever told of, by file.
    lines: HashMap<(usize, PathBuf), HashSet<i64>>,
}

impl BindingTable {
    /// A request is about to be sent to a target: only what events say from here on is newer than its answer.
    pub fn begin_request(&mut self, target: usize) {
        self.told.retain(|(of, _), _| *of != target);
    }

    /// It is told of these lines of a file.
    pub fn record_sent_lines(&mut self, target: usize, file: &Path, lines: impl IntoIterator<Item = i64>) {
        self.lines.entry((target, file.to_owned())).or_default().extend(lines);
    }

    /// Whether it was ever told of that line.
    pub fn was_line_sent(&self, target: usize, file: &Path, line: i64) -> bool {
        self.lines.get(&(target, file.to_owned())).is_some_and(|lines| lines.contains(&line))
    }

    /// Its answer, in the order of what was wanted.
    pub fn record_response(&mut self, target: usize, wanted: &[u32], answer: &[DapBreakpoint]) {
        for (index, id) in wanted.iter().enumerate() {
            let Some(answer) = answer.get(index) else { continue };
            let newer = answer.id.and_then(|id| self.told.get(&(target, id)));
            let applied = TargetBinding::from_response(newer.unwrap_or(answer));
            self.applied.insert((target, *id), TargetBinding { id: answer.id, ..applied });
        }
    }

    /// The target does not take them, because of that.
    pub fn record_refusal(&mut self, target: usize, wanted: &[u32], reason: &str) {
        for id in wanted {
            let applied = TargetBinding { message: Some(reason.to_owned()), ..TargetBinding::default() };
            self.applied.insert((target, *id), applied);
        }
    }

    /// An event has said something new.
    pub fn record_event(&mut self, target: usize, told: DapBreakpoint) {
        let Some(id) = told.id else { return };
        for ((of, _), applied) in &mut self.applied {
            if *of == target && applied.id == Some(id) {
                let line = TargetBinding::from_response(&told).line.or(applied.line);
                *applied = TargetBinding { line, ..TargetBinding::from_response(&told) };
            }
        }
        self.told.insert((target, id), told);
    }

    pub fn remove_breakpoint(&mut self, wanted: u32) {
        self.applied.retain(|(_, id), _| *id != wanted);
        self.hits.remove(&wanted);
    }

    /// A target has ended: what it made of them is no longer true.
    pub fn remove_target(&mut self, target: usize) {
        self.applied.retain(|(of, _), _| *of != target);
        self.lines.retain(|(of, _), _| *of != target);
        self.begin_request(target);
    }

    /// Which wanted breakpoint an adapter's number stands for.
    pub fn spec_of_adapter_id(&self, target: usize, id: i64) -> Option<u32> {
        self.applied.iter().find(|((of, _), applied)| *of == target && applied.id == Some(id)).map(|((_, id), _)| *id)
    }

    /// Whether it is on that line of its file in a target, by the adapter's own word.
    pub fn bound_line(&self, target: usize, wanted: u32) -> Option<u32> {
        self.applied.get(&(target, wanted)).filter(|applied| applied.verified)?.line
    }

    /// Counts a hit; answers how many there were.
    pub fn count_hit(&mut self, wanted: u32) -> u64 {
        let hits = self.hits.entry(wanted).or_default();
        *hits += 1;
        *hits
    }

    pub fn hit_count(&self, wanted: u32) -> u64 {
        self.hits.get(&wanted).copied().unwrap_or_default()
    }

    /// Over all targets: verified in one is verified.
    pub fn status(&self, wanted: u32) -> BindingStatus {
        let mut all: Vec<(usize, &TargetBinding)> =
            self.applied.iter().filter(|((_, id), _)| *id == wanted).map(|((of, _), applied)| (*of, applied)).collect();
        all.sort_by_key(|(target, _)| *target);
        if let Some((_, applied)) = all.iter().find(|(_, applied)| applied.verified) {
            return BindingStatus::Verified { line: applied.line };
        }
        match all.last() {
            None => BindingStatus::Pending,
            Some((_, applied)) => BindingStatus::Unbound(
                applied.message.clone().unwrap_or_else(|| "no code is loaded there, the adapter says".to_owned()),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: i64, verified: bool, line: i64) -> DapBreakpoint {
        DapBreakpoint { id: Some(id), verified, line: Some(line), ..DapBreakpoint::default() }
    }

    #[test]
    fn the_newest_word_counts_and_one_target_is_enough() {
        let mut standings = BindingTable::default();
        assert_eq!(standings.status(1), BindingStatus::Pending);
        standings.begin_request(0);
        // js-debug's parent takes everything and binds nothing.
        let message = Some("Unbound breakpoint".to_owned());
        standings.record_response(0, &[1], &[DapBreakpoint { message, ..told(7, false, 3) }]);
        assert_eq!(standings.status(1), BindingStatus::Unbound("Unbound breakpoint".into()));
        // The event of a request that is under way overtakes its answer.
        standings.begin_request(1);
        standings.record_event(1, told(7, true, 4));
        standings.record_response(1, &[1], &[told(7, false, 3)]);
        assert_eq!(standings.status(1), BindingStatus::Verified { line: Some(4) });
        assert_eq!((standings.spec_of_adapter_id(1, 7), standings.spec_of_adapter_id(1, 8)), (Some(1), None));
        standings.record_event(1, DapBreakpoint { line: None, ..told(7, true, 0) });
        assert_eq!(standings.status(1), BindingStatus::Verified { line: Some(4) });
        // A later request's answer is newer than the events before it.
        standings.begin_request(1);
        standings.record_response(1, &[1], &[told(9, true, 5)]);
        assert_eq!(standings.status(1), BindingStatus::Verified { line: Some(5) });
        standings.remove_target(1);
        assert!(matches!(standings.status(1), BindingStatus::Unbound(_)));
        standings.record_refusal(0, &[1], "not supported");
        assert_eq!(standings.status(1), BindingStatus::Unbound("not supported".into()));
        assert_eq!((standings.count_hit(1), standings.count_hit(1), standings.hit_count(1)), (1, 2, 2));
        standings.remove_breakpoint(1);
        assert_eq!((standings.status(1), standings.hit_count(1)), (BindingStatus::Pending, 0));
    }
}
