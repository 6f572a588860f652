//! From the events of the test runner to the report of a run.

use std::path::{Path, PathBuf};

use tether_base::clipped_text::first_chars;

use crate::api::extension_tests::{TestReport, TestResult, TestState};
use crate::window::test_host::{TestEvent, TestFailure};

/// How many tests a report lists; failed ones beyond them only count.
const MAX_TESTS: usize = 500;
/// How much of what was printed is kept, in characters.
const MAX_OUTPUT: usize = 4_000;
const MAX_MESSAGE: usize = 2_000;
/// How many names an error lists.
const MAX_NAMES: usize = 20;

/// Collects the results of several hosts.
pub struct ReportBuilder {
    workspace: PathBuf,
    report: TestReport,
    output: String,
    /// Of the host that runs; `None`: it is the only one.
    config: Option<String>,
    /// Whether a host has run, or had, tests of the wanted name.
    has_matched: bool,
    unknown: Vec<String>,
}

impl ReportBuilder {
    /// Without results. Paths are shown relative to the workspace.
    pub fn new(workspace: &Path) -> ReportBuilder {
        let (workspace, report) = (workspace.to_owned(), TestReport::default());
        ReportBuilder {
            workspace,
            report,
            output: String::new(),
            config: None,
            has_matched: false,
            unknown: Vec::new(),
        }
    }

    /// The results from now on are those of this configuration.
    pub fn begin(&mut self, config: Option<String>) {
        self.config = config;
    }

    /// Takes up an event.
    pub fn add(&mut self, event: TestEvent) {
        match event {
            TestEvent::Begin { .. } => {}
            TestEvent::Total { tests } => self.has_matched |= tests > 0,
            TestEvent::Output { text } => {
                self.output += &text;
                self.output += "\n";
                let cut = self.output.chars().count().saturating_sub(MAX_OUTPUT);
                self.output = self.output.chars().skip(cut).collect();
            }
            TestEvent::Unknown { titles, .. } => self.unknown.extend(titles),
            TestEvent::Test { titles, state, duration_ms, error, .. } => {
                self.add_test(titles.join(" > "), &state, duration_ms, error);
            }
            TestEvent::End { ok, error } => {
                let has_failures = self.report.failed > 0;
                if let Some(error) = error.filter(|_| !ok && !has_failures) {
                    self.add_error(&error);
                }
            }
        }
    }

    fn add_test(&mut self, name: String, state: &str, duration_ms: f64, error: Option<TestFailure>) {
        let state = match state {
            "passed" => TestState::Passed,
            "pending" => TestState::Pending,
            _ => TestState::Failed,
        };
        *match state {
            TestState::Passed => &mut self.report.passed,
            TestState::Failed => &mut self.report.failed,
            TestState::Pending => &mut self.report.pending,
        } += 1;
        if self.report.tests.len() >= MAX_TESTS {
            self.report.left_out += 1;
            let quiet = self.report.tests.iter().position(|it| it.state != TestState::Failed);
            match quiet.filter(|_| state == TestState::Failed) {
                Some(at) => drop(self.report.tests.remove(at)),
                None => return,
            }
        }
        let (message, stack) = error.map(|it| self.shown_failure(&it)).unzip();
        self.report.tests.push(TestResult {
            name,
            state,
            duration_ms: duration_ms.max(0.0) as u64,
            error: message,
            stack: stack.unwrap_or_default(),
            config: self.config.clone(),
        });
    }

    /// The run of the present configuration has failed as a whole.
    pub fn add_error(&mut self, failure: &TestFailure) {
        let (message, stack) = self.shown_failure(failure);
        let of = self.config.as_ref().map(|config| format!("{config}: ")).unwrap_or_default();
        let at = stack.first().map(|frame| format!(" ({frame})")).unwrap_or_default();
        self.report.errors.push(format!("{of}{message}{at}"));
    }

    fn shown_failure(&self, failure: &TestFailure) -> (String, Vec<String>) {
        let prefix = format!("{}/", self.workspace.display());
        let frames = failure.frames.iter().map(|frame| frame.replace(&prefix, "")).collect();
        (first_chars(&failure.message, MAX_MESSAGE).to_owned(), frames)
    }

    /// The names that there are, where the wanted one is none of them.
    pub fn unknown_names(&self) -> Option<String> {
        let is_unknown = !self.has_matched && !self.unknown.is_empty();
        let more = self.unknown.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let names = self.unknown.iter().take(MAX_NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        is_unknown.then(|| names + &more)
    }

    /// The report.
    pub fn finish(mut self, duration_ms: u64, notes: Vec<String>) -> TestReport {
        self.report.ok = self.report.failed == 0 && self.report.errors.is_empty();
        if !self.report.ok {
            self.report.output = self.output.trim_end().to_owned();
        }
        TestReport { duration_ms, notes, ..self.report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, state: &str, error: Option<TestFailure>) -> TestEvent {
        let (titles, state) = (vec!["Suite".to_owned(), name.to_owned()], state.to_owned());
        TestEvent::Test { titles, state, duration_ms: 3.4, file: None, error }
    }

    #[test]
    fn results_are_counted_and_paths_are_relative() {
        let mut builder = ReportBuilder::new(Path::new("/ws"));
        builder.begin(None);
        builder.add(TestEvent::Total { tests: 3 });
        builder.add(test("a", "passed", None));
        builder.add(test("b", "pending", None));
        let frames = vec!["at Context.<anonymous> (/ws/src/a.test.ts:3:5)".to_owned()];
        builder.add(test("c", "failed", Some(TestFailure { message: "1 != 2".to_owned(), frames })));
        builder.add(TestEvent::Output { text: "printed".to_owned() });
        let message = "1 test failed".to_owned();
        builder.add(TestEvent::End { ok: false, error: Some(TestFailure { message, frames: vec![] }) });
        let report = builder.finish(9, vec![]);
        assert_eq!((report.ok, report.passed, report.failed, report.pending), (false, 1, 1, 1));
        assert_eq!((report.errors.len(), report.output.as_str()), (0, "printed"));
        let failed = report.tests.last().unwrap();
        assert_eq!(
            (failed.name.as_str(), failed.stack[0].as_str()),
            ("Suite > c", "at Context.<anonymous> (src/a.test.ts:3:5)")
        );
    }

    #[test]
    fn a_run_that_fails_without_a_failed_test_says_why() {
        let mut builder = ReportBuilder::new(Path::new("/ws"));
        builder.begin(Some("unit".to_owned()));
        let frames = vec!["at /ws/out/a.test.js:1:1".to_owned()];
        let error = Some(TestFailure { message: "Cannot find module 'x'".to_owned(), frames });
        builder.add(TestEvent::End { ok: false, error });
        let report = builder.finish(1, vec![]);
        assert_eq!(report.errors, ["unit: Cannot find module 'x' (at out/a.test.js:1:1)"]);
        assert!(!report.ok);
    }

    #[test]
    fn many_results_are_bounded_and_a_failed_one_stays() {
        let mut builder = ReportBuilder::new(Path::new("/ws"));
        builder.begin(None);
        (0..=MAX_TESTS).for_each(|n| builder.add(test(&n.to_string(), "passed", None)));
        builder.add(test("bad", "failed", None));
        let report = builder.finish(1, vec![]);
        assert_eq!((report.tests.len(), report.passed, report.left_out), (MAX_TESTS, MAX_TESTS as u64 + 1, 2));
        assert_eq!(report.tests.last().unwrap().name, "Suite > bad");
    }

    #[test]
    fn a_name_is_unknown_only_where_no_configuration_has_it() {
        let unknown = |titles: &[&str]| TestEvent::Unknown {
            titles: titles.iter().map(|it| (*it).to_owned()).collect(),
            total: titles.len() as u64,
        };
        let mut builder = ReportBuilder::new(Path::new("/ws"));
        builder.add(unknown(&["Suite > a"]));
        builder.add(TestEvent::Total { tests: 0 });
        assert_eq!(builder.unknown_names().as_deref(), Some("\"Suite > a\""));
        builder.add(TestEvent::Total { tests: 1 });
        assert_eq!(builder.unknown_names(), None);
    }
}
