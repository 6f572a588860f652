//! What adapters print about conditions of breakpoints that cannot be evaluated.
//!
//! Debuggers of native programs and ours of Java stop there as if the condition were true, debugpy and js-debug run on as if it were false;
//! either way only their output says so. rdbg and gdb say nothing. Does not depend on breakpoints.

use std::collections::VecDeque;

use tether_base::clipped_text::first_bytes;
use tether_java::CONDITION_FAILURE as JAVA_CONDITION_FAILURE;

/// How many failures are kept.
const MAX_KEPT: usize = 50;
/// How much of one is kept, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// How an adapter begins to report a failure.
struct FailureHead {
    words: &'static str,
    /// Whether the report has the text of the condition.
    names_condition: bool,
    /// Whether it is reported once, when the breakpoint is set.
    is_lasting: bool,
    /// Whether the program runs on. If not, it is stopped.
    runs_on: bool,
}

const UNNAMED: FailureHead = FailureHead { words: "", names_condition: false, is_lasting: false, runs_on: false };
const NAMED: FailureHead = FailureHead { names_condition: true, ..UNNAMED };

const HEADS: [FailureHead; 7] = [
    // debugpy
    FailureHead { words: "Error while evaluating expression in conditional breakpoint", runs_on: true, ..NAMED },
    // js-debug and our Node adapter: what they refuse, and what they catch in the program
    FailureHead { words: "Syntax error setting breakpoint with condition", is_lasting: true, runs_on: true, ..NAMED },
    FailureHead { words: "Breakpoint condition error", runs_on: true, ..UNNAMED },
    // lldb-dap, behind the stop
    FailureHead { words: "error evaluating condition of breakpoint", ..NAMED },
    // CodeLLDB
    FailureHead { words: "Could not parse breakpoint condition", is_lasting: true, ..NAMED },
    FailureHead { words: "Could not evaluate breakpoint condition", ..UNNAMED },
    // Our Java adapter
    FailureHead { words: JAVA_CONDITION_FAILURE, ..UNNAMED },
];

struct ConditionFailure {
    head: &'static FailureHead,
    category: String,
    /// The output cursor at its report.
    at: u64,
    text: String,
}

/// The newest failures of a session.
#[derive(Default)]
pub(super) struct ConditionFailures {
    kept: VecDeque<ConditionFailure>,
    /// Whether the newest may go on in the next piece of output: lldb-dap sends each line by itself.
    is_open: bool,
}

impl ConditionFailures {
    /// Records a piece of an adapter's output, if it is about a condition. Returns whether the same was recorded just before,
    /// as it is in a loop.
    pub fn record_output(&mut self, at: u64, category: &str, text: &str) -> bool {
        let heads = HEADS.iter().filter_map(|head| Some((head, text.find(head.words)?)));
        let Some((head, found)) = heads.min_by_key(|(_, found)| *found) else {
            self.continue_newest(category, text);
            return false;
        };
        let before = text.get(..found).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let report = first_bytes(text.get(start..).unwrap_or_default(), MAX_BYTES);
        if let Some(last) = self.kept.back_mut().filter(|last| last.text == report) {
            (last.at, self.is_open) = (at, false);
            return start == 0;
        }
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(ConditionFailure { head, category: category.to_owned(), at, text: report.to_owned() });
        self.is_open = true;
        false
    }

    fn continue_newest(&mut self, category: &str, text: &str) {
        let newest = self.kept.back_mut().filter(|last| self.is_open && last.category == category);
        self.is_open = newest.is_some() && !text.trim().is_empty();
        if let Some(last) = newest {
            last.text.push_str(first_bytes(text, MAX_BYTES.saturating_sub(last.text.len())));
        }
    }

    /// Why a condition could not be evaluated since that output cursor. `was_hit`: the program is stopped at its breakpoint.
    pub fn find_reason(&self, condition: &str, since: u64, was_hit: bool) -> Option<String> {
        self.find(since, |failure| match failure.head.names_condition {
            true if failure.head.runs_on => failure.is_of(condition),
            true => was_hit && failure.text.contains(condition),
            false => was_hit && !failure.head.runs_on,
        })
    }

    /// As [`ConditionFailures::find_reason`], of a condition that is not known: the program has run on.
    pub fn find_unnamed_reason(&self, since: u64) -> Option<String> {
        self.find(since, |failure| failure.head.runs_on && !failure.head.names_condition)
    }

    fn find(&self, since: u64, is_meant: impl Fn(&ConditionFailure) -> bool) -> Option<String> {
        let is_new = |failure: &ConditionFailure| failure.at >= since || failure.head.is_lasting;
        let newest = self.kept.iter().rev().find(|failure| is_new(failure) && is_meant(failure));
        newest.map(ConditionFailure::reason)
    }
}

impl ConditionFailure {
    /// Whether its head names exactly this condition. A condition that is set now may be a part of one that failed before.
    fn is_of(&self, condition: &str) -> bool {
        let behind = self.text.split_once(self.head.words).map_or("", |(_, behind)| behind);
        let named = [": ", " \"", " `"].iter().find_map(|begin| behind.strip_prefix(begin));
        let rest = named.and_then(|named| named.strip_prefix(condition));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '"', '`']))
    }

    /// The line that says why: the first below the head that names an error, or the end of the head.
    fn reason(&self) -> String {
        let mut lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let head = lines.next().unwrap_or_default();
        let end = head.split_once(self.head.words).map_or(head, |(_, end)| end).trim_start_matches([':', ' ']);
        if !self.head.names_condition && !end.is_empty() {
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

    fn recorded(pieces: &[(&str, &str)]) -> ConditionFailures {
        let mut failures = ConditionFailures::default();
        for (at, (category, text)) in (1..).zip(pieces) {
            failures.record_output(at, category, text);
        }
        failures
    }

    #[test]
    fn n5_reports_of_each_adapter_are_read() {
        let check = |pieces: &[(&str, &str)], condition: &str, was_hit: bool, expect: Option<&str>| {
            let reason = recorded(pieces).find_reason(condition, 0, was_hit);
            assert_eq!(reason.as_deref(), expect, "{condition} {was_hit}");
        };
        let debugpy = "pydevd: Error while evaluating expression in conditional breakpoint: no such thing\n  File \"<string>\", \
            line 1\n    no such thing\n       ^^^^\nSyntaxError: invalid syntax\n\n";
        check(&[("important", debugpy)], "no such thing", false, Some("SyntaxError: invalid syntax"));
        check(&[("important", debugpy)], "order == 3", true, None);
        check(&[("important", debugpy)], "no such", false, None);
        check(&[("important", debugpy)], "such thing", false, None);
        let lldb_dap = [
            ("important", "error: stopped due to an error evaluating condition of breakpoint 1.1: \"nosuch == 3\"\n"),
            ("important", "Couldn't parse conditional expression:\n"),
            ("important", "error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'\n"),
            ("important", "\n"),
            ("important", "error: something else\n"),
        ];
        let reason = "error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'";
        check(&lldb_dap, "nosuch == 3", true, Some(reason));
        check(&lldb_dap[..1], "nosuch == 3", true, Some(lldb_dap[0].1.trim()));
        let unparsed = ("stderr", "Could not parse breakpoint condition:\nSyntax error: no such thing\n    ^\n");
        check(&[unparsed], "no such thing", true, Some("Syntax error: no such thing"));
        let unevaluated = "Could not evaluate breakpoint condition:\nTraceback (most recent call last):\n  File \"x\", line 1\n\
            Exception: error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'\n    1 | nosuch\n";
        let reason = "Exception: error: <user expression 0>:1:1: use of undeclared identifier 'nosuch'";
        check(&[("stderr", unevaluated)], "nosuch == 3", true, Some(reason));
        check(&[("stderr", unevaluated)], "nosuch == 3", false, None);
        let refused =
            "Syntax error setting breakpoint with condition \"no such thing\" on line 3: Unexpected identifier\n";
        check(&[("stderr", refused)], "no such thing", false, Some(refused.trim()));
        check(&[("stderr", refused)], "no such", false, None);
        let refused = "Syntax error setting breakpoint with condition `no such thing`: SyntaxError\n";
        check(&[("stderr", refused)], "no such thing", false, Some(refused.trim()));
        let java = format!("{JAVA_CONDITION_FAILURE}there is no `nosuch`\n");
        check(&[("important", &java)], "nosuch == 3", true, Some("there is no `nosuch`"));
        check(&[("important", &java)], "nosuch == 3", false, None);
        let thrown = recorded(&[("stderr", "a\nBreakpoint condition error: nosuch is not defined\nb\n")]);
        assert_eq!(thrown.find_reason("nosuch == 3", 0, true), None, "whose it is, is not known");
        assert_eq!(thrown.find_unnamed_reason(0).as_deref(), Some("nosuch is not defined"));
        assert_eq!(thrown.find_unnamed_reason(2), None);
    }

    #[test]
    fn n5_old_reports_count_where_they_last_and_a_repeated_one_is_kept_once() {
        let text = "Error while evaluating expression in conditional breakpoint: x\nSyntaxError: no\n";
        let mut failures = recorded(&[("important", text)]);
        assert!(failures.record_output(7, "important", text) && failures.kept.len() == 1);
        let since = |since| failures.find_reason("x", since, true).is_some();
        assert_eq!((since(7), since(8)), (true, false));
        let failures = recorded(&[("stderr", "Could not parse breakpoint condition:\nSyntax error: x\n")]);
        assert_eq!((failures.find_reason("x", 9, true).is_some(), failures.find_reason("x", 9, false)), (true, None));
        let mut many = ConditionFailures::default();
        for number in 0..2 * MAX_KEPT as u64 {
            many.record_output(number, "important", &format!("{text}{number}{}", "é".repeat(MAX_BYTES)));
        }
        assert!(many.kept.len() == MAX_KEPT && many.kept.iter().all(|it| it.text.len() <= MAX_BYTES));
    }
}
