//! How a program ended, as a result tells it: with which code or by which signal, and what it printed last.

use crate::debug::{ManagedSession, RunState};
use crate::ring::RingQuery;

/// How much of its last output an unsuccessful program's end has.
const LAST_LINES: usize = 12;
const LAST_BYTES: usize = 2000;
/// How many pieces of output are searched for these lines.
const LAST_PIECES: usize = 50;

/// How the program ended; `None`: it has not, or its connection was lost.
pub fn describe_end(managed: &ManagedSession, state: RunState) -> Option<String> {
    if state != RunState::Terminated {
        return None;
    }
    let (code, signal) = (managed.exit_code(), managed.exit_signal());
    let end = match (signal, code) {
        (Some(signal), _) => format!("the program was ended by signal {signal}"),
        (None, Some(code)) => format!("the program has ended with code {code}"),
        (None, None) => "the program has ended".to_owned(),
    };
    let has_failed = signal.is_some() || code.is_some_and(|code| code != 0);
    let output = if has_failed { last_lines(&read_output(managed)) } else { String::new() };
    Some(if output.is_empty() { end } else { format!("{end}; it printed last:\n{output}") })
}

fn read_output(managed: &ManagedSession) -> String {
    let query = RingQuery { limit: LAST_PIECES, ..RingQuery::default() };
    let entries = managed.session.event_log().read_output(&query).entries;
    entries.iter().filter(|it| matches!(it.kind.as_str(), "stdout" | "stderr")).map(|it| it.text.as_str()).collect()
}

fn last_lines(output: &str) -> String {
    let mut lines: Vec<&str> = output.trim_end().lines().rev().take(LAST_LINES).collect();
    lines.reverse();
    let text = lines.join("\n");
    let start = (text.len().saturating_sub(LAST_BYTES)..=text.len()).find(|at| text.is_char_boundary(*at));
    text[start.unwrap_or_default()..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n4_the_last_lines_are_whole_and_bounded() {
        assert_eq!(last_lines("\n"), "");
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        let many: String = (1..=20).map(|line| format!("{line}\n")).collect();
        assert_eq!(last_lines(&many), (9..=20).map(|line| line.to_string()).collect::<Vec<_>>().join("\n"));
        let long = last_lines(&"é".repeat(LAST_BYTES));
        assert!(long.len() <= LAST_BYTES && long.chars().all(|it| it == 'é'), "{}", long.len());
    }
}
