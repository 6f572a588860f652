//! Whether a test run has run a test, by what its runner has printed: most end with success though no test was run.
//!
//! Does not depend on how the run is started.

use std::sync::LazyLock;

use regress::Regex;
use serde::{Deserialize, Serialize};

/// What runs a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TestRunner {
    Pytest,
    Cargo,
    Go,
    Node,
    Vitest,
    Jest,
}

/// The colours of a terminal.
static COLOURS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("\x1b\\[[0-9;]*m").ok());

/// The exit codes of pytest when it has collected no test, and when there is none of that name.
const PYTEST_NONE: [i64; 2] = [5, 4];

impl TestRunner {
    /// The command that runs tests by it.
    pub fn command(self) -> &'static str {
        match self {
            TestRunner::Pytest => "pytest",
            TestRunner::Cargo => "cargo test",
            TestRunner::Go => "go test",
            TestRunner::Node => "node --test",
            TestRunner::Vitest => "vitest run",
            TestRunner::Jest => "jest",
        }
    }

    /// Whether its output, or the exit code, shows that it has run no test. Of an output without a summary nothing is known.
    pub fn has_run_none(self, output: &str, exit_code: Option<i64>) -> bool {
        let text = COLOURS.as_ref().map_or_else(|| output.to_owned(), |colours| colours.replace_all(output, ""));
        let lines = || text.lines().rev().map(str::trim);
        let counts = |prefix: &str| lines().find_map(|line| line.strip_prefix(prefix).map(str::trim_start));
        match self {
            TestRunner::Pytest => {
                exit_code.is_some_and(|code| PYTEST_NONE.contains(&code))
                    || lines().find(|line| is_pytest_summary(line)).is_some_and(|line| !has_any(line, &PYTEST_RUN))
            }
            TestRunner::Cargo => lines()
                .find(|line| line.starts_with("test result:"))
                .is_some_and(|line| line.contains(" 0 passed; 0 failed;")),
            TestRunner::Go => lines().any(|line| line.ends_with("testing: warning: no tests to run")),
            TestRunner::Node => {
                let count = |what: &str| ["# ", "ℹ "].iter().find_map(|mark| counts(&format!("{mark}{what} ")));
                let none = |what: &str| count(what) == Some("0");
                none("pass") && none("fail") && count("cancelled").is_none_or(|count| count == "0")
            }
            TestRunner::Vitest => {
                counts("Tests ").is_some_and(|line| !has_any(line, &[" passed", " failed"]))
                    || lines().any(|line| line.starts_with("No test files found"))
            }
            TestRunner::Jest => {
                counts("Tests:").is_some_and(|line| !has_any(line, &[" passed", " failed"]))
                    || lines().any(|line| line.starts_with("No tests found"))
            }
        }
    }
}

/// The outcomes of a test that was run, in pytest's summary.
const PYTEST_RUN: [&str; 5] = [" passed", " failed", " error", " xfailed", " xpassed"];

/// `====== 1 passed in 0.02s ======`, `1 passed in 0.02s`
fn is_pytest_summary(line: &str) -> bool {
    let line = line.trim_matches(['=', ' ']);
    line.rsplit_once(" in ").is_some_and(|(_, time)| time.starts_with(|first: char| first.is_ascii_digit()))
}

fn has_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_tells_whether_a_test_was_run() {
        let check = |runner: TestRunner, output: &str, code: i64, none: bool| {
            assert_eq!(runner.has_run_none(output, Some(code)), none, "{runner:?}: {output}");
        };
        check(TestRunner::Pytest, "===== 1 passed in 0.02s =====\n", 0, false);
        check(TestRunner::Pytest, "===== 1 failed, 2 deselected in 1.02s =====\n", 1, false);
        check(TestRunner::Pytest, "===== 1 skipped in 0.02s =====\n", 0, true);
        check(TestRunner::Pytest, "no tests ran in 0.00s", 5, true);
        check(TestRunner::Pytest, "ERROR: not found: x.py::y", 4, true);
        check(TestRunner::Pytest, "killed", 137, false);
        let cargo =
            |counts: &str| format!("\nrunning 1 test\n\ntest result: ok. {counts} 0 measured; 3 filtered out\n");
        check(TestRunner::Cargo, &cargo("1 passed; 0 failed; 0 ignored;"), 0, false);
        check(TestRunner::Cargo, &cargo("0 passed; 0 failed; 1 ignored;"), 0, true);
        check(TestRunner::Go, "testing: warning: no tests to run\nPASS\n", 0, true);
        check(TestRunner::Go, "PASS\n", 0, false);
        let node =
            |mark: &str, pass: u32| format!("{mark} tests 5\n{mark} pass {pass}\n{mark} fail 0\n{mark} cancelled 0\n");
        check(TestRunner::Node, &node("#", 0), 0, true);
        check(TestRunner::Node, &node("ℹ", 0), 0, true);
        check(TestRunner::Node, &node("\x1b[34mℹ", 0), 0, true);
        check(TestRunner::Node, &node("ℹ", 1), 0, false);
        check(TestRunner::Node, "no summary", 0, false);
        let vitest = "\x1b[2m      Tests \x1b[22m \x1b[1m\x1b[32m1 passed\x1b[39m | \x1b[33m4 skipped\x1b[39m (5)\n";
        check(TestRunner::Vitest, vitest, 0, false);
        check(
            TestRunner::Vitest,
            "\x1b[2m      Tests \x1b[22m \x1b[33m5 skipped\x1b[39m\x1b[90m (5)\x1b[39m\n",
            0,
            true,
        );
        check(TestRunner::Vitest, "\x1b[31mNo test files found, exiting with code 1\n", 1, true);
        check(TestRunner::Jest, "Tests:       4 skipped, 1 passed, 5 total\n", 0, false);
        check(TestRunner::Jest, "Tests:       5 skipped, 5 total\n", 0, true);
        check(TestRunner::Jest, "Tests:       0 total\n", 1, true);
    }
}
