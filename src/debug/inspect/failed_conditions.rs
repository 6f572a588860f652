//! Which conditions of breakpoints could not be evaluated, as the adapter reports it with a stop or while the program runs.

use crate::debug::breakpoints::{BindingStatus, BreakpointSpec};
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::stop::ThreadStop;

/// A condition that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCondition {
    /// The breakpoint's id, and the condition as it is set. Several, where the adapter does not say which of them it was.
    pub candidates: Vec<(u32, String)>,
    /// As the adapter says it.
    pub reason: String,
    /// Whether the program is stopped there nevertheless: the condition counts as true.
    pub was_hit: bool,
}

/// The conditions that have failed since the program was resumed. `stop`: where it is stopped now.
pub fn failed_conditions(session: &DebugSession, stop: Option<&ThreadStop>) -> Vec<FailedCondition> {
    let since = session.shared.with_state(|state| state.resumed_output);
    let stored = session.shared.breakpoints.current();
    let condition = |spec: &BreakpointSpec| Some((spec.id, spec.conditions.condition.clone()?));
    let conditions: Vec<(u32, String)> = stored.breakpoints.iter().filter_map(condition).collect();
    let mut failed = Vec::new();
    for (id, condition) in &conditions {
        let stop = stop.filter(|stop| stop.hits.iter().any(|(hit, _)| hit == id));
        let in_stop = stop.and_then(|stop| stop.condition_failure.clone());
        let reason = in_stop.or_else(|| session.event_log().condition_failure(condition, since, stop.is_some()));
        let candidates = vec![(*id, condition.clone())];
        failed.extend(reason.map(|reason| FailedCondition { candidates, reason, was_hit: stop.is_some() }));
    }
    // What is not bound is not evaluated.
    let is_bound = |(id, _): &(u32, String)| {
        matches!(session.shared.with_state(|state| state.bindings.outcome(*id)), BindingStatus::Verified { .. })
    };
    let conditions: Vec<(u32, String)> = conditions.into_iter().filter(is_bound).collect();
    let unnamed = session.event_log().unnamed_condition_failure(since).filter(|_| !conditions.is_empty());
    failed.extend(unnamed.map(|reason| FailedCondition { candidates: conditions, reason, was_hit: false }));
    failed
}
