//! Runs `cargo test`, passes its output on, and repeats the messages of the tests that failed in the error: they would else be
//! thousands of lines above the end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xshell::Cmd;

/// How many failed tests the error has.
const MAX_TESTS: usize = 12;

/// How many of the last lines of a failed test's output it has.
const MAX_LINES: usize = 30;

/// How long a line of them may be.
const MAX_CHARS: usize = 400;

/// How long the output may stay open behind the end of the tests: a process that they have left behind may hold it.
const GRACE: Duration = Duration::from_secs(5);

/// Runs the tests to their end. Errors: the exit status, with the last lines of each test that failed.
pub fn run_tests(command: Cmd<'_>) -> Result<()> {
    run_with_grace(command, GRACE)
}

fn run_with_grace(command: Cmd<'_>, grace: Duration) -> Result<()> {
    println!("$ {command}");
    let mut command = Command::from(command);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start the tests")?;
    let output = child.stdout.take().context("the tests have no output")?;
    let (lines, received) = mpsc::channel();
    thread::spawn(move || pass_on(output, &lines));
    let mut failures = Failures::default();
    let status = loop {
        match received.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => failures.take_line(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break child.wait()?,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let Some(status) = child.try_wait()? else { continue };
                while let Ok(line) = received.recv_timeout(grace) {
                    failures.take_line(&line);
                }
                break status;
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    bail!("the tests failed: {status}{}", failures.summarize());
}

/// Prints each line and sends it, until the output or the receiver ends.
fn pass_on(output: impl Read, lines: &mpsc::Sender<String>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // Whoever reads ours may have gone; the tests go on.
        let _ = std::io::stdout().lock().write_all(&line);
        if lines.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
            return;
        }
        line.clear();
    }
}

/// What the test harness reports of the tests that failed: the output of each, headed by `---- NAME stdout ----`; then a line
/// `failures:` and their names.
#[derive(Default)]
struct Failures {
    tests: Vec<(String, VecDeque<String>)>,
    in_outputs: bool,
}

impl Failures {
    fn take_line(&mut self, line: &str) {
        if line == "failures:" || line.starts_with("test result:") {
            self.in_outputs = false;
        } else if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.tests.push((name.to_owned(), VecDeque::new()));
            self.in_outputs = true;
        } else if let (true, Some((_, lines))) = (self.in_outputs, self.tests.last_mut()) {
            if line.is_empty() {
                return;
            }
            if lines.len() == MAX_LINES {
                lines.pop_front();
            }
            lines.push_back(line.chars().take(MAX_CHARS).collect());
        }
    }

    fn summarize(&self) -> String {
        let mut text = String::new();
        for (name, lines) in self.tests.iter().take(MAX_TESTS) {
            text.push_str(&format!("\n  {name}"));
            lines.iter().for_each(|line| text.push_str(&format!("\n    {line}")));
        }
        if let Some(more) = self.tests.len().checked_sub(MAX_TESTS).filter(|more| *more > 0) {
            text.push_str(&format!("\n  and {more} more tests"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_failed_tests_is_repeated() {
        let mut failures = Failures::default();
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nthread 'b' panicked at x.rs:1:2:\n\
                      left\n\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed\n---- c stdout ----\nfailures:\n";
        output.lines().for_each(|line| failures.take_line(line));
        assert!(failures.summarize().starts_with("\n  b\n    thread 'b' panicked at x.rs:1:2:\n    left\n"));
    }

    #[test]
    fn the_last_lines_of_a_long_output_are_kept() {
        let mut failures = Failures::default();
        failures.take_line("failures:");
        failures.take_line("---- long stdout ----");
        (0..100).for_each(|line| failures.take_line(&format!("line {line}")));
        let summary = failures.summarize();
        assert!(
            summary.contains("line 99") && !summary.contains("line 69\n") && summary.contains("line 70"),
            "{summary}"
        );
    }

    #[test]
    fn a_process_that_holds_the_output_is_not_waited_for() {
        let sh = xshell::Shell::new().unwrap();
        let script = "sleep 600 & echo failures:; echo '---- held stdout ----'; echo $!; exit 3";
        let failed = run_with_grace(xshell::cmd!(sh, "sh -c {script}"), Duration::from_millis(200)).unwrap_err();
        let failed = failed.to_string();
        let held = failed.lines().last().and_then(|pid| rustix::process::Pid::from_raw(pid.trim().parse().ok()?));
        rustix::process::kill_process(held.unwrap(), rustix::process::Signal::KILL).unwrap();
        assert!(failed.contains("exit status: 3") && failed.contains("\n  held\n"), "{failed}");
    }
}
