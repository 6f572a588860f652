//! Which breakpoints have not stopped a session, and why: what an adapter has said of each, and what has become of its conditions.
//!
//! Says nothing of what the program itself has done: that a line was not reached is all that is known.

use std::path::Path;

use crate::adapters::{ADAPTERS, Adapter};
use crate::debug::breakpoints::hit_count::counted_here;
use crate::debug::breakpoints::{BindingStatus, BreakpointKind, BreakpointSpec, NOT_REPORTED};
use crate::debug::host::managed_session::ManagedSession;

/// The kind of the event that a process of the program runs without a debugger.
const NOT_DEBUGGED: &str = "processNotDebugged";
/// How many of these processes are named.
const MAX_PROCESSES: usize = 3;

/// A breakpoint that has not stopped the session.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreachedBreakpoint {
    pub spec_id: u32,
    /// Where it is set.
    pub kind: BreakpointKind,
    /// In one sentence.
    pub reason: String,
}

/// The breakpoints of the workspace that could have stopped the session, and have not.
pub fn unreached_breakpoints(managed: &ManagedSession) -> Vec<UnreachedBreakpoint> {
    let session = &managed.session;
    let stored = session.shared.breakpoints.current();
    let adapters: Vec<&Adapter> = managed.programs().iter().map(|program| program.adapter).collect();
    let is_meant =
        |spec: &&BreakpointSpec| spec.owner.is_none() && spec.file().is_none_or(|file| may_be_of(&adapters, file));
    let others = undebugged_processes(managed);
    let unreached = stored.breakpoints.iter().filter(is_meant).filter_map(|spec| {
        let hits = session.hit_count(spec.id);
        if hits > 0 {
            let reason = unmet_hits(&adapters, spec, hits)?;
            return Some(UnreachedBreakpoint { spec_id: spec.id, kind: spec.kind.clone(), reason });
        }
        let condition = spec.conditions.condition.as_deref();
        let failure = condition.and_then(|condition| session.event_log().condition_failure(condition, 0, false));
        let unnamed = condition.and_then(|_| session.event_log().unnamed_condition_failure(0));
        let (outcome, was_answered) =
            session.shared.with_state(|state| (state.bindings.outcome(spec.id), state.bindings.was_answered(spec.id)));
        let is_bound = matches!(outcome, BindingStatus::Verified { .. });
        if is_bound && !tells_each_pass(spec) {
            return None;
        }
        let mut reason = match &outcome {
            BindingStatus::Pending(None) if was_answered => describe_pending(managed.is_ended()).to_owned(),
            outcome => describe_outcome(spec, outcome, failure.as_deref(), managed.is_ended()),
        };
        if let Some(unnamed) = unnamed.filter(|_| is_bound && failure.is_none()) {
            reason.push_str(&format!("; a condition, which the adapter does not name, cannot be evaluated: {unnamed}"));
        }
        if !is_bound {
            reason.push_str(&others);
        }
        Some(UnreachedBreakpoint { spec_id: spec.id, kind: spec.kind.clone(), reason })
    });
    unreached.collect()
}

/// What is said of a breakpoint that was passed so often, where its hits are counted here, and none of them was asked for.
fn unmet_hits(adapters: &[&Adapter], spec: &BreakpointSpec, hits: u64) -> Option<String> {
    let counted = adapters.iter().find_map(|row| counted_here(spec, row.quirks.hit_counting))?;
    let condition = spec.conditions.hit_condition.as_deref().filter(|_| !counted.was_met(hits))?;
    let times = if hits == 1 { "once".to_owned() } else { format!("{hits} times") };
    Some(format!("it was passed {times}, and it stops at `{condition}`"))
}

/// Whether it is known of a breakpoint that is bound that nothing has passed it: a log point does not stop, and not every adapter
/// says by which function or data a program has stopped.
fn tells_each_pass(spec: &BreakpointSpec) -> bool {
    let has_line = matches!(spec.kind, BreakpointKind::Line { .. } | BreakpointKind::ClassLine { .. });
    has_line && spec.conditions.log_message.is_none()
}

/// Whether a file is of a language of these adapters, or of none that is known.
fn may_be_of(adapters: &[&Adapter], file: &Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
    let has = |row: &&Adapter| row.extensions.contains(&extension.as_str());
    adapters.iter().any(has) || !ADAPTERS.iter().any(|row| has(&row))
}

/// The adapter has taken it, and has not found its code.
fn describe_pending(is_ended: bool) -> &'static str {
    if is_ended {
        "it was not bound: nothing that the program loaded has code there"
    } else {
        "it was not bound: nothing that the program has loaded has code there yet"
    }
}

fn describe_outcome(spec: &BreakpointSpec, outcome: &BindingStatus, failure: Option<&str>, is_ended: bool) -> String {
    let yet = if is_ended { "" } else { " yet" };
    match outcome {
        BindingStatus::Verified { .. } if failure.is_some() => {
            format!("its condition cannot be evaluated, and counts as false: {}", failure.unwrap_or_default())
        }
        BindingStatus::Verified { line, .. } => {
            let asked = match spec.kind {
                BreakpointKind::Line { line, .. } => Some(line),
                _ => None,
            };
            let moved = line.filter(|line| asked.is_some_and(|asked| asked != *line));
            let moved = moved.map(|line| format!("it was moved to line {line}; ")).unwrap_or_default();
            let conditions = [&spec.conditions.condition, &spec.conditions.hit_condition];
            let conditions: Vec<String> = conditions.into_iter().flatten().map(|it| format!("`{it}`")).collect();
            let unless = match conditions.is_empty() {
                true => String::new(),
                false => format!(", or not while {} held", conditions.join(" and ")),
            };
            format!("{moved}it was bound, and the line was not reached{yet}{unless}")
        }
        // js-debug reports late, and no more once its program has ended.
        BindingStatus::Unbound(reason) if is_ended && reason == NOT_REPORTED => {
            "the adapter had not reported it as bound".to_owned()
        }
        BindingStatus::Unbound(reason) | BindingStatus::Pending(Some(reason)) => {
            // Nothing can be loaded any more.
            let reason = if is_ended {
                reason.trim_end_matches(" yet").replace(" is loaded", " was loaded")
            } else {
                reason.clone()
            };
            format!("it was not bound: {reason}")
        }
        BindingStatus::Pending(None) if is_ended => "it was not bound: the program has ended before".to_owned(),
        BindingStatus::Pending(None) => "it has not been sent to the program yet".to_owned(),
    }
}

/// "; process 7 was not debugged: node x.js", or nothing.
fn undebugged_processes(managed: &ManagedSession) -> String {
    let query = tether_base::ring::RingQuery { limit: MAX_PROCESSES, ..Default::default() };
    let events = managed.session.event_log().read_events(&query, &[NOT_DEBUGGED.to_owned()]).entries;
    events.iter().map(|event| format!("; {}", event.text)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::debug::breakpoints::BreakpointConditions;

    #[test]
    fn the_reason_is_what_is_known_and_yet_only_while_it_can_still_come() {
        let spec = |condition: Option<&str>| BreakpointSpec {
            id: 1,
            kind: BreakpointKind::Line {
                file: PathBuf::from("/w/a.js"),
                named: None,
                line: 3,
                column: None,
                anchor: Default::default(),
                anchor_status: Default::default(),
            },
            conditions: BreakpointConditions {
                condition: condition.map(str::to_owned),
                ..BreakpointConditions::default()
            },
            owner: None,
        };
        let check = |condition: Option<&str>, outcome: BindingStatus, failure: Option<&str>, is_ended, expect: &str| {
            assert_eq!(describe_outcome(&spec(condition), &outcome, failure, is_ended), expect);
        };
        let bound = |line| BindingStatus::Verified { line: Some(line), column: None, note: None };
        check(None, bound(3), None, true, "it was bound, and the line was not reached");
        check(None, bound(4), None, false, "it was moved to line 4; it was bound, and the line was not reached yet");
        check(
            Some("x > 1"),
            bound(3),
            None,
            true,
            "it was bound, and the line was not reached, or not while `x > 1` held",
        );
        check(Some("x >"), bound(3), Some("bad"), true, "its condition cannot be evaluated, and counts as false: bad");
        let pending = || BindingStatus::Pending(Some("no script of it is loaded yet".to_owned()));
        check(None, pending(), None, true, "it was not bound: no script of it was loaded");
        check(None, pending(), None, false, "it was not bound: no script of it is loaded yet");
        check(None, BindingStatus::Unbound("no".to_owned()), None, true, "it was not bound: no");
        check(None, BindingStatus::Pending(None), None, true, "it was not bound: the program has ended before");
    }

    #[test]
    fn a_file_of_another_language_is_not_meant() {
        let row = |name: &str| ADAPTERS.iter().find(|row| row.name == name).unwrap();
        let check = |adapter: &str, file: &str, expect: bool| {
            assert_eq!(may_be_of(&[row(adapter)], Path::new(file)), expect, "{adapter}: {file}");
        };
        check("debugpy", "a.py", true);
        check("debugpy", "a.js", false);
        check("node", "a.ts", true);
        check("node", "a.svelte", true);
        check("java", "A.java", true);
        check("gdb", "a.rs", true);
    }
}
