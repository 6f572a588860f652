//! The report of a window that exited without being stopped: how, and what it printed last.

use std::time::Duration;

use tether_process::ProcessExit;

use super::page::ConsoleMessage;

/// How many lines of output a report has.
pub const LAST_LINES: usize = 20;
/// How many console messages a report has.
const LAST_MESSAGES: usize = 10;
/// How many of these messages are reserved for errors.
const LAST_ERRORS: usize = 5;
/// How many of the newest console messages are searched for errors.
pub const MAX_SEARCHED: usize = 2000;

/// No user closes a window so soon after its launch.
const MIN_UPTIME: Duration = Duration::from_secs(10);

/// How a window exited without being stopped.
#[derive(Clone, Debug)]
pub struct WindowExit {
    pub exit: ProcessExit,
    /// Epoch milliseconds.
    pub at_ms: u64,
    /// Since its launch.
    pub uptime: Duration,
    /// The calls that the exit interrupted, each in one line.
    pub interrupted_calls: Vec<String>,
    /// The last console messages.
    pub console: Vec<String>,
    /// The last lines of output.
    pub output: String,
}

impl WindowExit {
    /// The exit code, unless the process was killed by a signal or its status is unknown.
    pub fn code(&self) -> Option<i32> {
        match self.exit {
            ProcessExit::Code(code) => Some(code),
            ProcessExit::Signal(_) | ProcessExit::Unknown => None,
        }
    }

    /// The signal that killed the process, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.exit {
            ProcessExit::Signal(signal) => Some(signal),
            ProcessExit::Code(_) | ProcessExit::Unknown => None,
        }
    }

    /// Whether no user would close a window like this. The exit status of a process that was not our child is unknown:
    /// it counts as closed by the user if it ran for a while.
    pub fn is_crash(&self) -> bool {
        match self.exit {
            ProcessExit::Code(code) => code != 0,
            ProcessExit::Signal(_) => true,
            ProcessExit::Unknown => self.uptime < MIN_UPTIME,
        }
    }

    /// All of it as text.
    pub fn describe(&self) -> String {
        let mut text = format!("it ended by itself: {}", self.exit);
        for call in &self.interrupted_calls {
            text.push_str(&format!("\nwhile {call}"));
        }
        for line in self.console.iter().map(String::as_str).chain(self.output.lines()) {
            text.push('\n');
            text.push_str(line);
        }
        text
    }
}

/// The messages for [`WindowExit::console`].
pub fn format_last_messages(messages: Vec<ConsoleMessage>) -> Vec<String> {
    let selected = select_last_messages(messages);
    selected.iter().map(|message| format!("[{}] {}", message.level, message.text)).collect()
}

/// The newest errors and the newest other messages, in their order.
fn select_last_messages(messages: Vec<ConsoleMessage>) -> Vec<ConsoleMessage> {
    let is_error = |at: &usize| matches!(messages[*at].level.as_str(), "error" | "exception");
    let errors: Vec<usize> = (0..messages.len()).rev().filter(is_error).take(LAST_ERRORS).collect();
    let mut left = LAST_MESSAGES - errors.len();
    let mut selected: Vec<ConsoleMessage> = Vec::new();
    for (at, message) in messages.into_iter().enumerate().rev() {
        if errors.contains(&at) {
            selected.push(message);
        } else if left > 0 {
            left -= 1;
            selected.push(message);
        }
    }
    selected.reverse();
    selected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::page::ConsoleSource;

    #[test]
    fn errors_are_selected_however_many_messages_follow_them() {
        let message = |at: u64, level: &str| {
            let (level, text) = (level.to_owned(), at.to_string());
            ConsoleMessage { at, source: ConsoleSource::Page, level, text, location: None }
        };
        let mut messages = vec![message(0, "log"), message(1, "error"), message(2, "exception")];
        messages.extend((3..50).map(|at| message(at, "log")));
        let selected: Vec<u64> = select_last_messages(messages).iter().map(|it| it.at).collect();
        assert_eq!(selected, [1, 2, 42, 43, 44, 45, 46, 47, 48, 49]);
        let few = select_last_messages(vec![message(0, "log"), message(1, "error")]);
        assert_eq!(few.iter().map(|it| it.at).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn an_unknown_exit_status_is_a_crash_only_soon_after_the_launch() {
        let check = |exit: ProcessExit, uptime: u64, expect: bool| {
            let uptime = Duration::from_secs(uptime);
            let exited = WindowExit {
                exit,
                at_ms: 0,
                uptime,
                interrupted_calls: vec![],
                console: vec![],
                output: String::new(),
            };
            assert_eq!(exited.is_crash(), expect, "{exit:?} {uptime:?}");
        };
        check(ProcessExit::Code(0), 1, false);
        check(ProcessExit::Code(1), 99, true);
        check(ProcessExit::Signal(11), 99, true);
        check(ProcessExit::Unknown, 99, false);
        check(ProcessExit::Unknown, 1, true);
    }
}
