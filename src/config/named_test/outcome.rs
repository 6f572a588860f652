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
    Unittest,
    Django,
    Cargo,
    Go,
    Node,
    Vitest,
    Jest,
    Mocha,
    Playwright,
    Rspec,
    /// And test-unit.
    Minitest,
    Junit,
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
            TestRunner::Unittest => "python -m unittest",
            TestRunner::Django => "manage.py test",
            TestRunner::Cargo => "cargo test",
            TestRunner::Go => "go test",
            TestRunner::Node => "node --test",
            TestRunner::Vitest => "vitest run",
            TestRunner::Jest => "jest",
            TestRunner::Mocha => "mocha",
            TestRunner::Playwright => "playwright test",
            TestRunner::Rspec => "rspec",
            TestRunner::Minitest => "minitest",
            TestRunner::Junit => "JUnit's console launcher",
        }
    }

    /// What names a test as the runner does, for readers.
    pub fn name_example(self) -> &'static str {
        match self {
            TestRunner::Pytest => "`tests/test_a.py::TestX::test_b`",
            TestRunner::Unittest | TestRunner::Django => "`tests.test_a.TestX.test_b`",
            TestRunner::Cargo => "`orders::tests::adds`",
            TestRunner::Go => "`TestTwice/a_lot`",
            TestRunner::Rspec => "`Orders#twice adds`, or `spec/orders_spec.rb:12`",
            TestRunner::Minitest => "`OrdersTest#test_adds`",
            TestRunner::Junit => "`com.example.OrdersTest#adds`",
            _ => "`orders > adds`",
        }
    }

    /// Whether its output, or the exit code, shows that it has run no test. Of an output without a summary nothing is known.
    pub fn has_run_none(self, output: &str, exit_code: Option<i64>) -> bool {
        let text = without_colours(output);
        let lines = || text.lines().rev().map(str::trim);
        let counts = |prefix: &str| lines().find_map(|line| line.strip_prefix(prefix).map(str::trim_start));
        match self {
            TestRunner::Pytest => {
                exit_code.is_some_and(|code| PYTEST_NONE.contains(&code))
                    || lines().find(|line| is_pytest_summary(line)).is_some_and(|line| !has_any(line, &PYTEST_RUN))
            }
            TestRunner::Unittest | TestRunner::Django => {
                let run = counts("Ran ").and_then(first_number);
                let skipped = lines().find_map(|line| first_number(line.split_once("skipped=")?.1)).unwrap_or(0);
                run.is_some_and(|run| run <= skipped)
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
            TestRunner::Mocha => {
                let is_failing = |line: &str| line.ends_with(" failing");
                lines().any(|line| line.starts_with("0 passing (")) && !lines().any(is_failing)
            }
            TestRunner::Playwright => {
                let is_count = |line: &str, words: &[&str]| first_number(line).is_some() && has_any(line, words);
                lines().any(|line| line.ends_with("No tests found"))
                    || lines().any(|line| is_count(line, &[" skipped", " did not run"]))
                        && !lines().any(|line| is_count(line, &[" passed", " failed", " flaky", " interrupted"]))
            }
            TestRunner::Rspec => lines().find(|line| line.contains(" example")).is_some_and(|line| {
                first_number(line).is_some_and(|count| count <= count_of(line, " pending") && !line.contains(" error"))
            }),
            TestRunner::Minitest => {
                let summary = lines().find(|line| has_any(line, &[" runs, ", " tests, "]));
                summary.is_some_and(|line| {
                    first_number(line)
                        .is_some_and(|count| count <= count_of(line, " skip") + count_of(line, " omission"))
                })
            }
            TestRunner::Junit => lines()
                .find(|line| line.contains(" tests started "))
                .is_some_and(|line| first_number(line.trim_start_matches(['[', ' '])) == Some(0)),
        }
    }

    /// What its output says to be missing, and the command that installs that.
    pub fn missing_package(self, output: &str) -> Option<MissingPackage> {
        let text = without_colours(output);
        let line = |part: &str| text.lines().rev().find(|line| line.contains(part)).map(|line| line.trim().to_owned());
        let missing = |because: String, install: String| Some(MissingPackage { because, install });
        match self {
            TestRunner::Pytest => missing(line("No module named pytest")?, "python -m pip install pytest".to_owned()),
            TestRunner::Django => {
                let because = line("No module named 'django'").or_else(|| line("Couldn't import Django."))?;
                missing(because, "python -m pip install Django".to_owned())
            }
            TestRunner::Minitest => {
                missing(line("cannot load such file -- minitest")?, "gem install minitest".to_owned())
            }
            TestRunner::Rspec => {
                let because = line("cannot load such file -- rspec").or_else(|| line("command not found: rspec"))?;
                missing(because, "gem install rspec".to_owned())
            }
            _ => None,
        }
    }
}

/// A runner that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPackage {
    /// The line that says so.
    pub because: String,
    /// The command that installs it.
    pub install: String,
}

fn without_colours(output: &str) -> String {
    COLOURS.as_ref().map_or_else(|| output.to_owned(), |colours| colours.replace_all(output, ""))
}

/// The number with which a text begins.
fn first_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The number before a word: `1` of `2 runs, 1 skips`.
fn count_of(line: &str, word: &str) -> u64 {
    let before = line.split_once(word).map(|(before, _)| before);
    before.and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
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
        check(TestRunner::Unittest, "Ran 1 test in 0.000s\n\nOK\n", 0, false);
        check(TestRunner::Unittest, "Ran 0 tests in 0.000s\n\nOK\n", 0, true);
        check(TestRunner::Unittest, "Ran 1 test in 0.000s\n\nOK (skipped=1)\n", 0, true);
        check(
            TestRunner::Django,
            "Found 2 test(s).\nRan 2 tests in 0.1s\n\nFAILED (failures=1, skipped=1)\n",
            1,
            false,
        );
        check(TestRunner::Mocha, "\n  0 passing (1ms)\n", 0, true);
        check(TestRunner::Mocha, "\n  0 passing (1ms)\n  1 failing\n", 1, false);
        check(TestRunner::Mocha, "\n  1 passing (1ms)\n", 0, false);
        check(TestRunner::Playwright, "Error: No tests found\n", 1, true);
        check(TestRunner::Playwright, "  1 skipped\n", 0, true);
        check(TestRunner::Playwright, "  1 skipped\n  1 passed (1.2s)\n", 0, false);
        check(TestRunner::Rspec, "1 example, 0 failures\n", 0, false);
        check(TestRunner::Rspec, "0 examples, 0 failures\n", 0, true);
        check(TestRunner::Rspec, "1 example, 0 failures, 1 pending\n", 0, true);
        check(TestRunner::Rspec, "0 examples, 0 failures, 1 error occurred outside of examples\n", 1, false);
        check(TestRunner::Minitest, "1 runs, 1 assertions, 0 failures, 0 errors, 0 skips\n", 0, false);
        check(TestRunner::Minitest, "1 runs, 0 assertions, 0 failures, 0 errors, 1 skips\n", 0, true);
        check(TestRunner::Minitest, "0 tests, 0 assertions, 0 failures, 0 errors, 0 pendings, 0 omissions\n", 0, true);
        check(TestRunner::Junit, "[         0 tests started       ]\n", 0, true);
        check(TestRunner::Junit, "[         1 tests started       ]\n", 0, false);
    }

    #[test]
    fn a_runner_that_is_not_installed_is_named_with_the_command_that_installs_it() {
        let check = |runner: TestRunner, output: &str, install: Option<&str>| {
            assert_eq!(runner.missing_package(output).map(|it| it.install).as_deref(), install, "{output}");
        };
        check(TestRunner::Pytest, "/usr/bin/python3: No module named pytest\n", Some("python -m pip install pytest"));
        check(TestRunner::Pytest, "No module named 'app'\n", None);
        check(
            TestRunner::Minitest,
            "in `require': cannot load such file -- minitest/autorun (LoadError)\n",
            Some("gem install minitest"),
        );
    }
}
