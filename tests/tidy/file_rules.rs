//! Habits of a single file: its header, its length, nothing unfinished, no sleeping, no unexplained `unsafe`.
//!
//! Read from tokens, so that comments and strings never count, and code for other platforms does.

use proc_macro2::{TokenStream, TokenTree};

use crate::paths::mentions;
use crate::sources::File;

const LONGEST: usize = 500;

/// Where waiting for a span of time is the point, and why; each must still be needed.
const SLEEPERS: &[(&str, &str)] = &[
    ("src/adapters/connect.rs", "nothing tells that somebody listens on a socket that is there"),
    ("src/adapters/node/module_announcements.rs", "nothing tells that Node's own start has ended"),
    ("src/debug/host/recover.rs", "nothing tells that a program has noticed the end of its last debugger"),
    ("src/debug/inspect/threads.rs", "nothing tells when an adapter that has refused a pause would grant it"),
    ("src/frontends/mcp.rs", "stdin has ended: answers in flight get a moment, raced against the end of all of them"),
    ("src/process/process_handle.rs", "nothing tells that a process was reaped by its parent"),
    ("src/supervisor/busy_times.rs", "it measures: the counters of the runtime are read each millisecond"),
    ("src/supervisor/notifications.rs", "a page that floods its console must not flood its readers"),
    ("src/supervisor/server.rs", "out of file descriptors: nothing tells when there are some again"),
    ("src/window/launch/readiness.rs", "nothing tells that somebody listens on a port"),
];

pub fn header(file: &File) -> Vec<String> {
    let good = file.text.starts_with("//! ");
    if good { Vec::new() } else { vec![format!("{}:1: starts with no `//!` that says what it owns", file.path)] }
}

pub fn length(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines <= LONGEST { Vec::new() } else { vec![format!("{}: {lines} lines, more than {LONGEST}", file.path)] }
}

/// `todo!`, `unimplemented!`, `dbg!`, and tests that are switched off.
pub fn unfinished(file: &File) -> Vec<String> {
    let tokens = match flat(file) {
        Ok(tokens) => tokens,
        Err(unreadable) => return vec![unreadable],
    };
    let pairs = tokens.windows(2).filter_map(|pair| match (pair[0].text.as_str(), pair[1].text.as_str()) {
        (name @ ("todo" | "unimplemented" | "dbg"), "!") => Some((pair[0].line, format!("{name}!"))),
        ("[", "ignore") => Some((pair[1].line, "#[ignore]".to_owned())),
        _ => None,
    });
    pairs.map(|(line, what)| format!("{}:{line}: {what} is left in", file.path)).collect()
}

/// Awaiting a sleep, or blocking in one. A sleep that races an event in a `select!` is a deadline, and may stay.
pub fn sleeps(file: &File) -> Vec<String> {
    let (found, stream) = match (mentions(file), file.text.parse::<TokenStream>()) {
        (Ok(found), Ok(stream)) => (found, stream),
        (found, _) => return vec![found.err().unwrap_or_else(|| format!("{}: is not Rust", file.path))],
    };
    let blocks = |path: &[String]| path.ends_with(&["thread".to_owned(), "sleep".to_owned()]);
    let mut lines: Vec<usize> = found.iter().filter(|found| blocks(&found.segments)).map(|found| found.line).collect();
    awaited_sleeps(stream, &mut lines);
    match (SLEEPERS.iter().any(|(path, _)| *path == file.path), lines.is_empty()) {
        (true, true) => vec![format!("{}: sleeps no more: take it off the list of SLEEPERS", file.path)],
        (true, false) => Vec::new(),
        (false, _) => {
            lines.iter().map(|line| format!("{}:{line}: sleeps; await what it waits for", file.path)).collect()
        }
    }
}

/// The lines with `sleep(…).await` or `sleep_until(…).await`, at any depth.
fn awaited_sleeps(stream: TokenStream, lines: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    for window in tokens.windows(4) {
        if let [TokenTree::Ident(call), TokenTree::Group(_), TokenTree::Punct(_), TokenTree::Ident(then)] = window
            && (call == "sleep" || call == "sleep_until")
            && then == "await"
        {
            lines.push(call.span().start().line);
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            awaited_sleeps(group.stream(), lines);
        }
    }
}

/// An `unsafe` needs a comment with `SAFETY` (or, for a declaration, `# Safety`) directly above its statement.
pub fn unexplained_unsafe(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().map(str::trim_start).collect();
    match flat(file) {
        Ok(tokens) => tokens
            .iter()
            .filter(|token| token.text == "unsafe" && !explained(&lines[..token.line]))
            .map(|token| format!("{}:{}: unsafe without a SAFETY comment", file.path, token.line))
            .collect(),
        Err(unreadable) => vec![unreadable],
    }
}

/// `lines` end with the line of the `unsafe`. Its statement may have begun up to three lines above.
fn explained(lines: &[&str]) -> bool {
    let is_comment = |line: &&&str| line.starts_with("//");
    let says_why = |line: &&str| line.contains("SAFETY") || line.contains("# Safety");
    let code = lines.iter().rev().take_while(|line| !is_comment(line)).count();
    let comment = lines.iter().rev().skip(code).take_while(is_comment);
    lines.last().is_some_and(says_why) || (code <= 4 && comment.copied().any(|line| says_why(&line)))
}

struct Token {
    text: String,
    line: usize,
}

/// All tokens in order, the delimiters of groups included.
fn flat(file: &File) -> Result<Vec<Token>, String> {
    let stream: TokenStream = file.text.parse().map_err(|error| format!("{}: {error}", file.path))?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for token in stream {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                let text = group.to_string().chars().next().map(String::from).unwrap_or_default();
                into.push(Token { text, line });
                flatten(group.stream(), into);
            }
            other => into.push(Token { text: other.to_string(), line }),
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
    fn five_hundred_lines_are_the_limit() {
        check(length, &"\n".repeat(500), true);
        check(length, &"\n".repeat(501), false);
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_not_in_words() {
        for (code, holds) in [
            ("fn f() { todo!() }", false),
            ("fn f() { a!(unimplemented!(\"later\")) }", false),
            ("fn f() { dbg!(1); }", false),
            ("#[test]\n#[ignore]\nfn f() {}", false),
            ("#[test]\n#[ignore = \"slow\"]\nfn f() {}", false),
            ("// todo!() is not allowed\nfn f() { \"dbg!\"; ignore(); }", true),
        ] {
            check(unfinished, code, holds);
        }
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

    #[test]
    fn unsafe_is_explained_directly_above_its_statement() {
        for (code, holds) in [
            ("fn f() { unsafe { g() } }", false),
            ("// SAFETY: g has no preconditions.\nfn f() { unsafe { g() } }", true),
            (
                "fn f() {\n    // SAFETY: checked above,\n    // and so sound.\n    let x =\n        unsafe { g() };\n}",
                true,
            ),
            (
                "// SAFETY: too far away.\nfn f() {\n    a();\n    b();\n    c();\n    d();\n    unsafe { g() }\n}",
                false,
            ),
            ("// fast\nfn f() { unsafe { g() } }", false),
            ("unsafe impl Send for S {}", false),
            ("/// # Safety\n/// Call it once.\nunsafe fn f() {}", true),
        ] {
            check(unexplained_unsafe, code, holds);
        }
    }
}
