//! Hit conditions have one meaning: where an adapter means something else by one, its hits are counted here.
//!
//! Such a breakpoint is sent without the hit condition: each stop at it is counted, and the program continues at those that the
//! condition does not ask for. Pure.

use std::borrow::Cow;

use tether_backend::hit_condition::HitCondition;

use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec};
use crate::adapters::{HitCounting, Quirks};

/// The hit condition of a breakpoint. `None`: it has none. Errors: it is none, as a sentence.
pub fn hit_condition(conditions: &BreakpointConditions) -> Result<Option<HitCondition>, String> {
    conditions.hit_condition.as_deref().map(HitCondition::parse).transpose()
}

/// The text by which an adapter counts as we do. `None`: its hits are counted here, or it has no hit condition.
fn adapter_text(conditions: &BreakpointConditions, counting: HitCounting) -> Option<String> {
    let condition = hit_condition(conditions).ok().flatten()?;
    counting.text(condition, conditions.condition.is_some())
}

/// Why the conditions of a breakpoint cannot be obeyed with an adapter.
pub fn refusal_reason(conditions: &BreakpointConditions, quirks: &Quirks) -> Option<String> {
    let is_conditional = conditions.condition.is_some() || conditions.hit_condition.is_some();
    if quirks.logs_always && is_conditional && conditions.log_message.is_some() {
        return Some("this adapter has no log points with conditions".to_owned());
    }
    let hits = match hit_condition(conditions) {
        Ok(hits) => hits?,
        Err(reason) => return Some(reason),
    };
    let is_counted_here = quirks.hit_counting.text(hits, conditions.condition.is_some()).is_none();
    (is_counted_here && conditions.log_message.is_some())
        .then(|| "this adapter cannot count the hits of a log point: use a condition".to_owned())
}

/// The breakpoint as an adapter is sent it: without what is counted here, and without a column that the adapter ignores.
pub fn as_sent<'a>(spec: &'a BreakpointSpec, quirks: &Quirks) -> Cow<'a, BreakpointSpec> {
    let has_ignored_column = quirks.ignores_columns && spec.column().is_some();
    if spec.conditions.hit_condition.is_none() && !has_ignored_column {
        return Cow::Borrowed(spec);
    }
    let mut sent = spec.clone();
    sent.conditions.hit_condition = adapter_text(&spec.conditions, quirks.hit_counting);
    if let BreakpointKind::Line { column, .. } = &mut sent.kind {
        column.take_if(|_| has_ignored_column);
    }
    Cow::Owned(sent)
}

/// The hit condition of a breakpoint, where its hits are counted here.
pub fn counted_here(spec: &BreakpointSpec, counting: HitCounting) -> Option<HitCondition> {
    let hits = hit_condition(&spec.conditions).ok().flatten()?;
    adapter_text(&spec.conditions, counting).is_none().then_some(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_sent_what_it_counts_as_we_do() {
        let check = |counting, hits: &str, condition: Option<&str>, sent: Option<&str>| {
            let spec = BreakpointSpec {
                id: 1,
                kind: BreakpointKind::Function { name: "f".into() },
                conditions: BreakpointConditions {
                    condition: condition.map(str::to_owned),
                    hit_condition: Some(hits.to_owned()),
                    log_message: None,
                },
                owner: None,
            };
            let quirks = Quirks { hit_counting: counting, ..Quirks::default() };
            assert_eq!(as_sent(&spec, &quirks).conditions.hit_condition.as_deref(), sent, "{counting:?}: {hits}");
            assert_eq!(counted_here(&spec, counting).is_none(), sent.is_some(), "{counting:?}: {hits}");
        };
        check(HitCounting::All, "3", None, Some("== 3"));
        check(HitCounting::All, ">=3", Some("x"), Some("> 2"));
        check(HitCounting::WithoutCondition, "%3", None, Some("% 3"));
        check(HitCounting::WithoutCondition, "%3", Some("x"), None);
        check(HitCounting::FromOnly, ">= 3", None, Some("3"));
        check(HitCounting::FromOnly, "> 3", None, Some("4"));
        check(HitCounting::FromOnly, "3", None, None);
        check(HitCounting::FromOnly, "<3", None, None);
        check(HitCounting::None, ">= 3", None, None);
    }

    #[test]
    fn an_adapter_that_ignores_columns_is_sent_none() {
        let kind = BreakpointKind::Line {
            file: "/a.py".into(),
            named: None,
            line: 3,
            column: Some(5),
            anchor: Default::default(),
            anchor_status: Default::default(),
        };
        let spec = BreakpointSpec { id: 1, kind, conditions: BreakpointConditions::default(), owner: None };
        for (ignores_columns, column) in [(true, None), (false, Some(5))] {
            let quirks = Quirks { ignores_columns, ..Quirks::default() };
            assert_eq!(as_sent(&spec, &quirks).column(), column);
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let check = |hits: &str, log: Option<&str>, hit_counting, expect: Option<&str>| {
            let quirks = Quirks { hit_counting, ..Quirks::default() };
            let conditions = BreakpointConditions {
                condition: None,
                hit_condition: Some(hits.to_owned()),
                log_message: log.map(str::to_owned),
            };
            assert_eq!(refusal_reason(&conditions, &quirks).as_deref(), expect, "{hits}");
        };
        check("3", None, HitCounting::None, None);
        check("3", Some("x"), HitCounting::All, None);
        let log = "this adapter cannot count the hits of a log point: use a condition";
        check("3", Some("x"), HitCounting::None, Some(log));
        check("often", None, HitCounting::All, Some("`often` is not a hit condition: write `3`, `>= 3` or `% 3`"));
    }
}
