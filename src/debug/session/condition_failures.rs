//! What adapters report about conditions of breakpoints that cannot be evaluated.
//!
//! Some stop there as if the condition were true, others run on as if it were false. Our own adapters send a field with their
//! output; of others only the text says so, in words that are in their rows. Does not depend on breakpoints.

use std::collections::VecDeque;

use tether_base::clipped_text::first_bytes;
use tether_dap::types::{ConditionFailure, OutputEvent};

use crate::adapters::ConditionReport;

/// How many failures are kept.
const MAX_KEPT: usize = 50;
/// How much of one is kept, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// A report that was printed.
struct PrintedFailure {
    report: &'static ConditionReport,
    category: String,
    text: String,
}

enum FailureKind {
    Printed(PrintedFailure),
    /// With all that there is to know.
    Sent(ConditionFailure),
}

struct KeptFailure {
    kind: FailureKind,
    /// The output cursor at its report.
    at: u64,
}

/// The newest failures of a session.
#[derive(Default)]
pub(super) struct ConditionFailures {
    /// Those of the session's adapters.
    reports: Vec<&'static ConditionReport>,
    kept: VecDeque<KeptFailure>,
    /// Whether the newest may continue in the next piece of output: an adapter may send each line by itself.
    is_open: bool,
}

impl ConditionFailures {
    /// Reads the reports of an adapter, too.
    pub fn add_reports(&mut self, reports: &'static [ConditionReport]) {
        let known = std::mem::take(&mut self.reports);
        let new = reports.iter().filter(|report| !known.contains(report));
        self.reports = known.iter().copied().chain(new).collect();
    }

    /// Records a piece of an adapter's output, if it is about a condition. Returns whether the same was recorded just before,
    /// as it is in a loop.
    pub fn record_output(&mut self, at: u64, category: &str, output: &OutputEvent) -> bool {
        if let Some(sent) = output.condition_failure() {
            self.is_open = false;
            let is_same = |last: &&mut KeptFailure| matches!(&last.kind, FailureKind::Sent(known) if *known == sent);
            if let Some(last) = self.kept.back_mut().filter(is_same) {
                last.at = at;
                return true;
            }
            self.keep(FailureKind::Sent(sent), at);
            return false;
        }
        let text = output.output.as_str();
        let found = self.reports.iter().filter_map(|report| Some((report, text.find(report.words)?)));
        let Some((report, found)) = found.min_by_key(|(_, found)| *found) else {
            self.continue_newest(category, text);
            return false;
        };
        let before = text.get(..found).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let text = first_bytes(text.get(start..).unwrap_or_default(), MAX_BYTES);
        let is_same = |last: &&mut KeptFailure| last.printed().is_some_and(|known| known.text == text);
        if let Some(last) = self.kept.back_mut().filter(is_same) {
            (last.at, self.is_open) = (at, false);
            return start == 0;
        }
        let printed = PrintedFailure { report, category: category.to_owned(), text: text.to_owned() };
        self.keep(FailureKind::Printed(printed), at);
        self.is_open = true;
        false
    }

    fn keep(&mut self, kind: FailureKind, at: u64) {
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(KeptFailure { kind, at });
    }

    fn continue_newest(&mut self, category: &str, text: &str) {
        let newest = self.kept.back_mut().and_then(KeptFailure::printed_mut);
        let newest = newest.filter(|last| self.is_open && last.category == category);
        self.is_open = newest.is_some() && !text.trim().is_empty();
        if let Some(last) = newest {
            last.text.push_str(first_bytes(text, MAX_BYTES.saturating_sub(last.text.len())));
        }
    }

    /// Why a condition could not be evaluated since that output cursor. `was_hit`: the program is stopped at its breakpoint.
    pub fn find_reason(&self, condition: &str, since: u64, was_hit: bool) -> Option<String> {
        self.find(since, |failure| match &failure.kind {
            FailureKind::Sent(sent) => sent.condition == condition && (was_hit || !sent.is_stopped),
            FailureKind::Printed(printed) => match printed.report.names_condition {
                true if printed.report.runs_on => printed.is_of(condition),
                true => was_hit && printed.text.contains(condition),
                false => was_hit && !printed.report.runs_on,
            },
        })
    }

    /// As [`ConditionFailures::find_reason`], of a condition that is not known: the program has run on.
    pub fn find_unnamed_reason(&self, since: u64) -> Option<String> {
        let is_unnamed = |printed: &PrintedFailure| printed.report.runs_on && !printed.report.names_condition;
        self.find(since, |failure| failure.printed().is_some_and(is_unnamed))
    }

    fn find(&self, since: u64, is_meant: impl Fn(&KeptFailure) -> bool) -> Option<String> {
        let is_new = |failure: &KeptFailure| failure.at >= since || failure.is_lasting();
        let newest = self.kept.iter().rev().find(|failure| is_new(failure) && is_meant(failure));
        newest.map(KeptFailure::reason)
    }
}

impl KeptFailure {
    fn printed(&self) -> Option<&PrintedFailure> {
        match &self.kind {
            FailureKind::Printed(printed) => Some(printed),
            FailureKind::Sent(_) => None,
        }
    }

    fn printed_mut(&mut self) -> Option<&mut PrintedFailure> {
        match &mut self.kind {
            FailureKind::Printed(printed) => Some(printed),
            FailureKind::Sent(_) => None,
        }
    }

    fn is_lasting(&self) -> bool {
        match &self.kind {
            FailureKind::Printed(printed) => printed.report.is_lasting,
            FailureKind::Sent(sent) => sent.is_lasting,
        }
    }

    fn reason(&self) -> String {
        match &self.kind {
            FailureKind::Printed(printed) => printed.reason(),
            FailureKind::Sent(sent) => sent.reason.clone(),
        }
    }
}

impl PrintedFailure {
    /// Whether its head names exactly this condition. A condition that is set now may be a part of one that failed before.
    fn is_of(&self, condition: &str) -> bool {
        let behind = self.text.split_once(self.report.words).map_or("", |(_, behind)| behind);
        let named = [": ", " \"", " `"].iter().find_map(|begin| behind.strip_prefix(begin));
        let rest = named.and_then(|named| named.strip_prefix(condition));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '"', '`']))
    }

    /// The line that says why: the first below the head that names an error, or the end of the head.
    fn reason(&self) -> String {
        let mut lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let head = lines.next().unwrap_or_default();
        let end = head.split_once(self.report.words).map_or(head, |(_, end)| end).trim_start_matches([':', ' ']);
        if !self.report.names_condition && !end.is_empty() {
            return end.to_owned();
        }
        let below: Vec<&str> = lines.collect();
        let named = below.iter().find(|line| line.contains("rror: ")).or(below.first());
        named.copied().unwrap_or(head).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::ADAPTERS;

    /// None yet, of an adapter's row.
    fn reading(adapter: &str) -> ConditionFailures {
        let mut failures = ConditionFailures::default();
        failures.add_reports(ADAPTERS.iter().find(|row| row.name == adapter).unwrap().quirks.condition_reports);
        failures
    }

    fn recorded(adapter: &str, pieces: &[(&str, &str)]) -> ConditionFailures {
        let mut failures = reading(adapter);
        for (at, (category, text)) in (1..).zip(pieces) {
            failures.record_output(at, category, &OutputEvent::new(category, (*text).to_owned()));
        }
        failures
    }

    #[test]
    fn reports_of_each_adapter_are_read() {
        let check = |adapter: &str, pieces: &[(&str, &str)], condition: &str, was_hit: bool, expect: Option<&str>| {
            let reason = recorded(adapter, pieces).find_reason(condition, 0, was_hit);
            assert_eq!(reason.as_deref(), expect, "{condition} {was_hit}");
        };
        let debugpy = "pydevd: Error while evaluating expression in conditional breakpoint: no such thing\n  File \"<string>\", \
            line 1\n    no such thing\n       ^^^^\nSyntaxError: invalid syntax\n\n";
        check("debugpy", &[("important", debugpy)], "no such thing", false, Some("SyntaxError: invalid syntax"));
        check("debugpy", &[("important", debugpy)], "order == 3", true, None);
        check("debugpy", &[("important", debugpy)], "no such", false, None);
        check("debugpy", &[("important", debugpy)], "such thing", false, None);
        let lldb_dap = [
            ("important", "error: stopped due to an error evaluating condition of breakpoint 1.1: \"nosuch == 3\"\n"),
            ("important", "Couldn't parse conditional expression:\n"),
            ("important", "error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'\n"),
            ("important", "\n"),
            ("important", "error: something else\n"),
        ];
        let reason = "error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'";
        check("lldb-dap", &lldb_dap, "nosuch == 3", true, Some(reason));
        check("lldb-dap", &lldb_dap[..1], "nosuch == 3", true, Some(lldb_dap[0].1.trim()));
        let unparsed = ("stderr", "Could not parse breakpoint condition:\nSyntax error: no such thing\n    ^\n");
        check("codelldb", &[unparsed], "no such thing", true, Some("Syntax error: no such thing"));
        let unevaluated = "Could not evaluate breakpoint condition:\nTraceback (most recent call last):\n  File \"x\", line 1\n\
            Exception: error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'\n    1 | nosuch\n";
        let reason = "Exception: error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'";
        check("codelldb", &[("stderr", unevaluated)], "nosuch == 3", true, Some(reason));
        check("codelldb", &[("stderr", unevaluated)], "nosuch == 3", false, None);
        let refused =
            "Syntax error setting breakpoint with condition \"no such thing\" on line 3: Unexpected identifier\n";
        check("js-debug", &[("stderr", refused)], "no such thing", false, Some(refused.trim()));
        check("js-debug", &[("stderr", refused)], "no such", false, None);
        let refused = "Syntax error setting breakpoint with condition `no such thing`: SyntaxError\n";
        check("js-debug", &[("stderr", refused)], "no such thing", false, Some(refused.trim()));
        let thrown = recorded("js-debug", &[("stderr", "a\nBreakpoint condition error: nosuch is not defined\nb\n")]);
        assert_eq!(thrown.find_reason("nosuch == 3", 0, true), None, "whose it is, is not known");
        assert_eq!(thrown.find_unnamed_reason(0).as_deref(), Some("nosuch is not defined"));
        assert_eq!(thrown.find_unnamed_reason(2), None);
    }

    #[test]
    fn old_reports_count_where_they_last_and_a_repeated_one_is_kept_once() {
        let text = "Error while evaluating expression in conditional breakpoint: x\nSyntaxError: no\n";
        let mut failures = recorded("debugpy", &[("important", text)]);
        assert!(
            failures.record_output(7, "important", &OutputEvent::new("important", text.to_owned()))
                && failures.kept.len() == 1
        );
        let since = |since| failures.find_reason("x", since, true).is_some();
        assert_eq!((since(7), since(8)), (true, false));
        let failures = recorded("codelldb", &[("stderr", "Could not parse breakpoint condition:\nSyntax error: x\n")]);
        assert_eq!((failures.find_reason("x", 9, true).is_some(), failures.find_reason("x", 9, false)), (true, None));
        let mut many = reading("debugpy");
        for number in 0..2 * MAX_KEPT as u64 {
            let long = format!("{text}{number}{}", "é".repeat(MAX_BYTES));
            many.record_output(number, "important", &OutputEvent::new("important", long));
        }
        assert!(
            many.kept.len() == MAX_KEPT && many.kept.iter().all(|it| it.printed().unwrap().text.len() <= MAX_BYTES)
        );
    }

    #[test]
    fn a_failure_that_is_sent_as_a_field_is_of_its_condition() {
        let send = |failures: &mut ConditionFailures, at, condition: &str, is_stopped| {
            let condition = condition.to_owned();
            let failure = ConditionFailure { condition, reason: "no".to_owned(), is_stopped, is_lasting: false };
            let output = OutputEvent::new("stderr", "any words\n".to_owned()).with_condition_failure(&failure);
            failures.record_output(at, "stderr", &output)
        };
        let mut failures = ConditionFailures::default();
        assert!(!send(&mut failures, 1, "a > 1", true));
        assert!(send(&mut failures, 2, "a > 1", true), "the same again");
        assert!(!send(&mut failures, 3, "b", false));
        let reason = |condition: &str, since, was_hit| failures.find_reason(condition, since, was_hit).is_some();
        assert_eq!(
            (reason("a > 1", 2, true), reason("a > 1", 3, true), reason("a > 1", 0, false)),
            (true, false, false)
        );
        assert_eq!((reason("b", 0, false), reason("b", 0, true), reason("a", 0, true)), (true, true, false));
        // What another sends there is none of ours.
        let other = OutputEvent { data: Some(serde_json::json!({"conditionFailure": 3})), ..OutputEvent::default() };
        assert!(!failures.record_output(4, "stderr", &other) && failures.find_unnamed_reason(0).is_none());
    }
}
