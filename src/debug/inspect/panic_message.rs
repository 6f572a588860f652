//! The message of a Rust panic: no adapter reports it, but the program has printed it.

use std::path::Path;

/// How many lines of a message are taken.
const MAX_LINES: usize = 10;

/// The newest message that was printed for a panic on that line of a file: the lines below
/// `thread 'main' (7) panicked at src/main.rs:4:33:`.
pub fn find_panic_message(output: &str, file: &str, line: i64) -> Option<String> {
    let name = Path::new(file).file_name()?.to_str()?;
    let ends: Vec<String> = [format!("/{name}:{line}:"), format!(" {name}:{line}:")].into();
    let mut found = None;
    let mut lines = output.lines().peekable();
    while let Some(head) = lines.next() {
        let Some((_, place)) = head.split_once(" panicked at ") else { continue };
        if !ends.iter().any(|end| format!(" {place}").contains(end)) {
            continue;
        }
        let mut message: Vec<&str> = Vec::new();
        while let Some(line) = lines.next_if(|line| message.len() < MAX_LINES && !is_end(line)) {
            message.push(line.trim_end());
        }
        found = Some(message.join("\n"));
    }
    found.filter(|message| !message.is_empty())
}

/// Whether the default hook prints this line below a message.
fn is_end(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("stack backtrace:") || line.starts_with("note: run with")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_message_of_its_line_is_found() {
        let output = "1\r\n\nthread 'main' (7) panicked at src/main.rs:4:33:\r\nindex out of bounds: the len is 0\r\n\
            note: run with `RUST_BACKTRACE=1` to display a backtrace\n\
            thread 'two' panicked at other/main.rs:4:5:\nassertion `left == right` failed\n  left: 1\n right: 2\nstack backtrace:\n\
            thread 'main' panicked at lib.rs:9:1:\nlate";
        let check = |file: &str, line: i64, expect: Option<&str>| {
            assert_eq!(find_panic_message(output, file, line).as_deref(), expect, "{file}:{line}");
        };
        check("/w/src/main.rs", 4, Some("assertion `left == right` failed\n  left: 1\n right: 2"));
        check("/w/src/lib.rs", 9, Some("late"));
        check("/w/src/main.rs", 5, None);
        check("/w/src/ain.rs", 4, None);
        check("", 4, None);
    }
}
