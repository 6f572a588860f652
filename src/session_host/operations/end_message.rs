//! How a program ended, as a result tells it: with which code or by which signal, and what it printed last. A test run
//! that has run no test is an error.

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::ring::RingQuery;

use crate::config::TestRunner;
use crate::debug::{ManagedSession, ProgramEnd};
use crate::vocabulary::RunState;

/// How much of its last output an unsuccessful program's end has.
const LAST_LINES: usize = 12;
const LAST_BYTES: usize = 2000;
/// How many exceptions of tasks are named.
const MAX_LOST_EXCEPTIONS: usize = 5;
/// How many pieces of output are searched for these lines.
const LAST_PIECES: usize = 50;

/// What Node itself prints while it is debugged.
const NODE_LINES: [&str; 2] = ["Debugger attached.", "Waiting for the debugger to disconnect..."];

/// In the note on a program of the workspace that was passed over.
const NOT_TRUSTED: &str = "is not trusted";

/// How the program ended; `None`: it has not, or its connection was lost.
pub fn describe_end(managed: &ManagedSession, state: RunState) -> Option<String> {
    if state != RunState::Terminated {
        return None;
    }
    let ends = managed.program_ends();
    let end = match ends.as_slice() {
        [only] => format!("the program {}", describe_program_end(only)),
        several => {
            let each = several.iter().map(|end| format!("{} {}", end.name, describe_program_end(end)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    let has_failed = ends.iter().any(|end| end.signal.is_some() || end.code.is_some_and(|code| code != 0));
    if !has_failed {
        return Some(end);
    }
    let output = read_output(managed);
    Some(match (managed.request.is_test_run, last_lines(&output)) {
        (_, last) if last.is_empty() => end,
        (false, last) => format!("{end}; it printed last:\n{last}"),
        (true, last) => match last_lines(&without_runner_lines(&output)) {
            short if short.is_empty() || short == last => format!("{end}; it printed last:\n{last}"),
            short => format!("{end}; it printed last, without its runner's frames and counts:\n{short}"),
        },
    })
}

/// The exceptions of tasks whose result nobody has asked for: a program may end with success after them.
pub fn lost_exception_notes(managed: &ManagedSession, state: RunState) -> Vec<String> {
    let report = managed.adapter.quirks.lost_exception_report.filter(|_| state == RunState::Terminated);
    report.map_or_else(Vec::new, |report| find_lost_exceptions(&read_output(managed), report))
}

/// Each report is followed by Python's traceback, whose first line without indentation is the exception.
fn find_lost_exceptions(output: &str, report: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = output.lines();
    while lines.by_ref().any(|line| line.trim_end() == report) {
        let mut place = None;
        let mut traceback = lines.by_ref().skip_while(|line| !line.starts_with("Traceback ")).skip(1);
        let exception = traceback.find(|line| {
            let at = line.trim_start().strip_prefix("File \"").and_then(|rest| rest.split_once("\", line "));
            place = at
                .map(|(file, line)| format!("{file}:{}", line.split(',').next().unwrap_or_default()))
                .or(place.take());
            !line.starts_with(' ')
        });
        if found.len() < MAX_LOST_EXCEPTIONS
            && let Some(exception) = exception
        {
            let at = place.map_or_else(String::new, |place| format!(" at {place}"));
            found.push(format!("a task has raised an exception that nobody has retrieved: {exception}{at}"));
        }
    }
    found
}

/// Errors: the session has run a test by its name, and its end shows that no test was run.
pub fn require_test_run(runner: Option<TestRunner>, managed: &ManagedSession, state: RunState) -> Result<()> {
    let Some(runner) = runner.filter(|_| state == RunState::Terminated) else { return Ok(()) };
    let was_stopped = managed.program_ends().iter().any(|end| end.was_stopped);
    let output = read_output(managed);
    if was_stopped {
        return Ok(());
    }
    if let Some(missing) = runner.missing_package(&output).filter(|_| managed.exit_code() != Some(0)) {
        let error = Error::new(ErrorKind::MissingTool, format!("cannot run `{}`", runner.command()));
        let error = error.because(missing.because);
        return Err(match &managed.note {
            // The environment of the workspace, which was not used, has it.
            Some(note) if note.contains(NOT_TRUSTED) => error.hint(note.clone()),
            _ => error.hint(format!("`{}` installs it", missing.install)),
        });
    }
    if !runner.has_run_none(&output, managed.exit_code()) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::NotFound, format!("the test {:?} was not run", managed.request.name));
    let error =
        error.because(format!("`{}` has run no test; it printed last:\n{}", runner.command(), last_lines(&output)));
    let example = runner.name_example();
    Err(error.hint(format!("name it as its runner prints it, such as {example}; one that is skipped does not run")))
}

fn describe_program_end(end: &ProgramEnd) -> String {
    match (end.signal, end.code) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(code)) => format!("has ended with code {code}"),
        (None, None) if end.was_stopped => "is no longer debugged".to_owned(),
        // Its exit is known to its parent only, which is not us.
        (None, None) => "has ended; its exit code is unknown".to_owned(),
    }
}

fn read_output(managed: &ManagedSession) -> String {
    let query = RingQuery { limit: LAST_PIECES, ..RingQuery::default() };
    let entries = managed.session.event_log().read_output(&query).entries;
    entries.iter().filter(|it| matches!(it.kind.as_str(), "stdout" | "stderr")).map(|it| it.text.as_str()).collect()
}

/// The output of a test run, without what would push the failure out of its last lines.
fn without_runner_lines(output: &str) -> String {
    output.lines().filter(|line| !is_runner_line(line)).fold(String::new(), |text, line| text + line + "\n")
}

/// A frame of a test runner or of the runtime, or a count of JUnit's: `[         1 tests failed          ]`.
fn is_runner_line(line: &str) -> bool {
    let line = line.trim();
    let frame = line.strip_prefix("at ").unwrap_or(line);
    let is_of_node =
        line.starts_with("at ") && ["(node:", "node:internal", "/node_modules/"].iter().any(|it| line.contains(it));
    let is_of_java =
        frame.ends_with(')') && ["org.junit.", "java.base/", "jdk.internal."].iter().any(|it| frame.starts_with(it));
    let count = line.strip_prefix("[ ").and_then(|rest| rest.strip_suffix(" ]")).map(str::trim_start);
    let is_count = count.is_some_and(|count| count.starts_with(|first: char| first.is_ascii_digit()));
    is_of_node || is_of_java || is_count || line == "[...]"
}

fn last_lines(output: &str) -> String {
    let own = output.trim_end().lines().rev().filter(|line| !NODE_LINES.contains(&line.trim_end()));
    let mut lines: Vec<&str> = own.take(LAST_LINES).collect();
    lines.reverse();
    let text = lines.join("\n");
    let start = (text.len().saturating_sub(LAST_BYTES)..=text.len()).find(|at| text.is_char_boundary(*at));
    text[start.unwrap_or_default()..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_says_how_or_that_this_is_unknown() {
        let check = |code, signal, was_stopped, expect: &str| {
            let end = ProgramEnd { name: "x".to_owned(), code, signal, was_stopped };
            assert_eq!(describe_program_end(&end), expect);
        };
        check(Some(3), None, false, "has ended with code 3");
        check(None, Some(9), false, "was ended by signal 9");
        check(None, None, false, "has ended; its exit code is unknown");
        check(None, None, true, "is no longer debugged");
    }

    #[test]
    fn an_exception_of_a_task_is_the_end_of_its_traceback() {
        let report = "Task exception was never retrieved";
        let one = |name: &str| {
            format!(
                "{report}\nfuture: <Task>\nTraceback (most recent call last):\n  File \"/w/a.py\", line 2, in outer\n    bad()\n  \
                 File \"/w/a.py\", line 3, in bad\n    raise {name}\n{name}: lost\n"
            )
        };
        let note =
            |name: &str| format!("a task has raised an exception that nobody has retrieved: {name}: lost at /w/a.py:3");
        let output = format!("before\n{}between\n{}after\n", one("ValueError"), one("KeyError"));
        assert_eq!(find_lost_exceptions(&output, report), [note("ValueError"), note("KeyError")]);
        assert_eq!(find_lost_exceptions("Traceback\n", report), [""; 0]);
        assert_eq!(find_lost_exceptions(&format!("{report}\n"), report), [""; 0]);
    }

    #[test]
    fn frames_and_counts_of_a_runner_hide_no_failure() {
        let check = |line: &str, expect: bool| assert_eq!(is_runner_line(line), expect, "{line}");
        check("    => org.opentest4j.AssertionFailedError: expected: <1> but was: <2>", false);
        check("       org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:39)", true);
        check("       com.example.OrdersTest.adds(OrdersTest.java:9)", false);
        check("       java.base/java.lang.reflect.Method.invoke(Method.java:580)", true);
        check("       [...]", true);
        check("[         1 tests failed          ]", true);
        check("[1, 2] is not [1]", false);
        check("      at Context.<anonymous> (test/orders.test.js:5:12)", false);
        check("      at process.processImmediate (node:internal/timers:505:21)", true);
        check("      at Runnable.run (/w/node_modules/mocha/lib/runnable.js:370:5)", true);
        assert_eq!(without_runner_lines("a\n[ 1 tests failed ]\nb\n"), "a\nb\n");
    }

    #[test]
    fn the_last_lines_are_whole_and_bounded() {
        assert_eq!(last_lines("\n"), "");
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        assert_eq!(last_lines("a\nDebugger attached.\nb\nWaiting for the debugger to disconnect...\n"), "a\nb");
        let many: String = (1..=20).map(|line| format!("{line}\n")).collect();
        assert_eq!(last_lines(&many), (9..=20).map(|line| line.to_string()).collect::<Vec<_>>().join("\n"));
        let long = last_lines(&"é".repeat(LAST_BYTES));
        assert!(long.len() <= LAST_BYTES && long.chars().all(|it| it == 'é'), "{}", long.len());
    }
}
