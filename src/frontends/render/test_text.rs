//! Renders the results of a test run: a line for each test, then the counts.

use tether_base::display_text::{mark_breaks, mark_lines};

use super::ResultText;
use super::text_format::{duration_text, notes_text};
use crate::api::extension_tests::{TestReport, TestResult, TestState};

/// How many frames of a failure are shown.
const MAX_FRAMES: usize = 3;

impl ResultText for TestReport {
    fn text(&self) -> String {
        let width = self.tests.iter().map(|test| test.duration_ms.to_string().len()).max().unwrap_or(1);
        let tests = self.tests.iter().map(|test| test_lines(test, width)).collect::<String>();
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!("({count} more are left out)\n"),
        };
        let errors = self.errors.iter().map(|error| format!("error: {}\n", mark_breaks(error))).collect::<String>();
        let output = match self.output.is_empty() {
            true => String::new(),
            false => format!("printed last:\n{}\n", mark_lines(&self.output)),
        };
        let counts = format!("{} passed, {} failed, {} pending", self.passed, self.failed, self.pending);
        let took = duration_text(self.duration_ms);
        format!("{tests}{left_out}{errors}{output}{counts} in {took}{}", notes_text(&self.notes))
    }
}

fn test_lines(test: &TestResult, width: usize) -> String {
    let state = match test.state {
        TestState::Passed => "pass",
        TestState::Failed => "FAIL",
        TestState::Pending => "skip",
    };
    let config = test.config.as_ref().map(|config| format!("{config}: ")).unwrap_or_default();
    let mut lines = format!("{state} {:>width$} ms  {config}{}\n", test.duration_ms, test.name);
    if let Some(error) = &test.error {
        lines += &format!("{}\n", mark_lines(error));
        let frames = test.stack.iter().take(MAX_FRAMES).map(|frame| format!("{}\n", mark_lines(frame)));
        lines.extend(frames);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_a_line_and_a_failed_one_has_its_reason() {
        let test = |name: &str, state, duration_ms| TestResult {
            name: name.to_owned(),
            state,
            duration_ms,
            ..TestResult::default()
        };
        let failed = TestResult {
            error: Some("AssertionError: 1 == 2\nsecond line".to_owned()),
            stack: vec!["at Context.<anonymous> (src/a.test.ts:3:5)".to_owned()],
            ..test("Suite > b", TestState::Failed, 120)
        };
        let report = TestReport {
            passed: 1,
            failed: 1,
            duration_ms: 1_200,
            tests: vec![test("Suite > a", TestState::Passed, 3), failed],
            output: "a line".to_owned(),
            ..TestReport::default()
        };
        let expect = "pass   3 ms  Suite > a\nFAIL 120 ms  Suite > b\n    | AssertionError: 1 == 2\n    | second line\n    | at \
                      Context.<anonymous> (src/a.test.ts:3:5)\nprinted last:\n    | a line\n1 passed, 1 failed, 0 pending in 1.2 s";
        assert_eq!(report.text(), expect);
    }
}
