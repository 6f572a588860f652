//! Breakpoints of several owners in one place: an adapter gets each place and condition once, since many keep only one.
//!
//! A breakpoint without conditions stops wherever one with conditions would, and so stands for it. A log point stops
//! nowhere, and stays. Pure.

use std::borrow::Borrow;

use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec};

/// One breakpoint as it is sent, and all that it stands for.
#[derive(Debug)]
pub struct MergedBreakpoint<'a> {
    /// Where and when it stops.
    pub sent: &'a BreakpointSpec,
    /// The ids of those that it stands for.
    pub ids: Vec<u32>,
}

/// Merges breakpoints of one kind, in the order of the first of each.
pub fn merge_specs<'a>(specs: &'a [impl Borrow<BreakpointSpec>]) -> Vec<MergedBreakpoint<'a>> {
    let mut merged: Vec<MergedBreakpoint<'a>> = Vec::new();
    for spec in specs.iter().map(Borrow::borrow) {
        match merged.iter_mut().find(|it| is_same_place(it.sent, spec) && covers_both(it.sent, spec).is_some()) {
            Some(same) => {
                same.sent = covers_both(same.sent, spec).unwrap_or(same.sent);
                same.ids.push(spec.id);
            }
            None => merged.push(MergedBreakpoint { sent: spec, ids: vec![spec.id] }),
        }
    }
    merged
}

fn is_same_place(one: &BreakpointSpec, other: &BreakpointSpec) -> bool {
    match (&one.kind, &other.kind) {
        (BreakpointKind::Line { line: a, column: at_a, .. }, BreakpointKind::Line { line: b, column: at_b, .. }) => {
            (a, at_a) == (b, at_b)
        }
        (one, other) => one.function_name().is_some() && one.function_name() == other.function_name(),
    }
}

/// The one of both that stops whenever either does.
fn covers_both<'a>(one: &'a BreakpointSpec, other: &'a BreakpointSpec) -> Option<&'a BreakpointSpec> {
    let always = BreakpointConditions::default();
    let logs = |spec: &BreakpointSpec| spec.conditions.log_message.is_some();
    match (one, other) {
        _ if one.conditions == other.conditions => Some(one),
        _ if logs(one) || logs(other) => None,
        _ if one.conditions == always => Some(one),
        _ if other.conditions == always => Some(other),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tether_base::line_anchor::{AnchorStatus, LineAnchor};

    use super::*;

    fn spec(id: u32, line: u32, condition: &str, log: &str) -> BreakpointSpec {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (condition, log_message) = (text(condition), text(log));
        let (anchor, anchor_status) = (LineAnchor::default(), AnchorStatus::Kept);
        BreakpointSpec {
            id,
            kind: BreakpointKind::Line { file: "/a".into(), named: None, line, column: None, anchor, anchor_status },
            conditions: BreakpointConditions { condition, log_message, hit_condition: None },
            owner: None,
        }
    }

    #[test]
    fn one_place_is_sent_once_for_each_condition_that_counts() {
        let check = |specs: &[BreakpointSpec], expect: &[(u32, &[u32])]| {
            let all: Vec<&BreakpointSpec> = specs.iter().collect();
            let merged = merge_specs(&all);
            let found: Vec<(u32, &[u32])> = merged.iter().map(|it| (it.sent.id, it.ids.as_slice())).collect();
            assert_eq!(found, expect);
        };
        check(&[spec(1, 2, "", ""), spec(2, 3, "", ""), spec(3, 2, "", "")], &[(1, &[1, 3]), (2, &[2])]);
        check(&[spec(1, 2, "x", ""), spec(2, 2, "", "")], &[(2, &[1, 2])]);
        check(&[spec(1, 2, "", ""), spec(2, 2, "x", "")], &[(1, &[1, 2])]);
        check(&[spec(1, 2, "x", ""), spec(2, 2, "y", ""), spec(3, 2, "x", "")], &[(1, &[1, 3]), (2, &[2])]);
        check(&[spec(1, 2, "", "hi"), spec(2, 2, "", ""), spec(3, 2, "", "hi")], &[(1, &[1, 3]), (2, &[2])]);
    }
}
