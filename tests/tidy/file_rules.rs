//! Habits of a single file: its header, and no sleeping.

use crate::sources::File;

/// Where waiting for a span of time is the point, and why; each must still be needed.
const SLEEPERS: &[(&str, &str)] = &[
    ("src/adapters/connect.rs", "nothing tells that somebody listens on a socket that is there"),
    ("crates/tether-node/src/module_announcements.rs", "nothing tells that Node's own start has ended"),
    ("crates/tether-node/src/attached_program.rs", "nothing tells that a program has been started again"),
    ("crates/tether-node/src/port_watch.rs", "nothing tells that somebody listens on a port"),
    ("crates/tether-base/src/file_lock.rs", "the kernel has no lock that is waited for in bounded time"),
    ("src/debug/host/reconnect.rs", "nothing tells that a program can be connected to again"),
    ("src/debug/host/recover.rs", "nothing tells that a program has noticed the end of its last debugger"),
    ("src/debug/inspect/threads.rs", "nothing tells when an adapter that has refused a pause would grant it"),
    ("src/frontends/mcp.rs", "stdin has ended: answers in flight get a moment, raced against the end of all of them"),
    ("crates/tether-process/src/process_handle.rs", "nothing tells that a process was reaped by its parent"),
    ("src/supervisor/busy_times.rs", "it measures: the counters of the runtime are read each millisecond"),
    ("src/supervisor/notifications.rs", "a page that floods its console must not flood its readers"),
    ("src/supervisor/timeline_records.rs", "a flood of edits or console errors must not flood the timeline"),
    ("src/session_host/server.rs", "out of file descriptors: nothing tells when there are some again"),
    ("src/supervisor/server.rs", "out of file descriptors: nothing tells when there are some again"),
    ("src/window/recorded_launch.rs", "nothing tells that a full disk has room again"),
    ("src/window/launch/readiness.rs", "nothing tells that somebody listens on a port"),
];

pub fn header(file: &File) -> Vec<String> {
    let good = file.text.starts_with("//! ");
    if good { Vec::new() } else { vec![format!("{}:1: starts with no `//!` that says what it owns", file.path)] }
}

/// Awaiting a sleep, or blocking in one. A sleep that races an event in a `select!` is a deadline, and may stay.
pub fn sleeps(file: &File) -> Vec<String> {
    let is_sleep = |line: &&str| {
        let awaited = ["sleep(", "sleep_until("].iter().any(|call| line.contains(call)) && line.contains(".await");
        (awaited || line.contains("thread::sleep")) && !line.trim_start().starts_with("//")
    };
    let lines: Vec<usize> =
        file.text.lines().enumerate().filter(|(_, line)| is_sleep(line)).map(|(at, _)| at + 1).collect();
    match (SLEEPERS.iter().any(|(path, _)| *path == file.path), lines.is_empty()) {
        (true, true) => vec![format!("{}: sleeps no more: take it off the list of SLEEPERS", file.path)],
        (true, false) => Vec::new(),
        (false, _) => {
            lines.iter().map(|line| format!("{}:{line}: sleeps; await what it waits for", file.path)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&File) -> Vec<String>, code: &str, holds: bool) {
        let found = rule(&File::of("src/wire/frame.rs", code));
        assert_eq!(found.is_empty(), holds, "{code}: {found:?}");
    }

    #[test]
    fn a_header_is_the_first_thing_in_a_file() {
        check(header, "//! Owns frames.\n", true);
        check(header, "// Owns frames.\n", false);
        check(header, "use a::b;\n//! late\n", false);
        check(header, "", false);
    }

    #[test]
    fn sleeping_is_found_and_a_deadline_is_not_sleeping() {
        for (code, holds) in [
            ("fn f() { std::thread::sleep(d) }", false),
            ("use std::thread; fn f() { thread::sleep(d) }", false),
            ("use std::thread::sleep;", false),
            ("use tokio::time::sleep; async fn f() { sleep(d).await }", false),
            ("async fn f() { tokio::time::sleep_until(d).await; }", false),
            ("async fn f() { select! { () = tokio::time::sleep(d) => {} () = ended() => {} } }", true),
            ("async fn f() { select! { () = ended() => { sleep(d).await } } }", false),
            ("use tokio::time::timeout; fn sleep() {}", true),
        ] {
            check(sleeps, code, holds);
        }
    }
}
