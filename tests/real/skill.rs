//! The commands of the skill document, the README and the book with the real debugpy: their output is what they show.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::requirements::installed_tool;
use crate::support::{Sandbox, run_command};
use regress::Regex;

fn skill() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/skills/tether-debug")
}

/// The commands of a text, each with its shown output.
fn transcripts(text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands = blocks.flat_map(|block| block.strip_prefix("$ ").unwrap().split("\n$ "));
    let command = |it: &str| {
        let (line, output) = it.split_once('\n').unwrap_or((it, ""));
        (line.to_owned(), output.trim_end().to_owned())
    };
    commands.map(command).collect()
}

/// Replaces what differs in each run.
fn redacted(text: &str) -> String {
    const CHANGING: &[(&str, &str)] = &[
        (r"0x[0-9a-f]+", "0x…"),
        (r"\bpid \d+", "pid …"),
        (r", python3\.\d+\)", ", python3)"),
        (r"\bcursor \d+", "cursor …"),
        (r"\[ref \d+\]", "[ref …]"),
        (r"#\d+ ", "#… "),
        (r"\d+(\.\d+)? (ms|s)\b", "… ms"),
    ];
    let redact = |text: String, (pattern, with): &(&str, &str)| Regex::new(pattern).unwrap().replace_all(&text, with);
    CHANGING.iter().fold(text.trim_end().to_owned(), redact)
}

/// Whether a text matches what is shown; `…` in a line matches any text, as a whole line any lines or none.
fn matches_expected(text: &str, text_read: &str) -> bool {
    fn lines(text: &[&str], text_read: &[&str]) -> bool {
        match text_read.split_first() {
            None => text.is_empty(),
            Some((&"…", rest)) => (0..=text.len()).any(|skipped| lines(&text[skipped..], rest)),
            Some((first, rest)) => text.split_first().is_some_and(|(it, more)| line(it, first) && lines(more, rest)),
        }
    }
    fn line(text: &str, text_read: &str) -> bool {
        match text_read.split_once('…') {
            None => text == text_read,
            Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
                let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
                ends.into_iter().any(|at| line(&rest[at..], after))
            }),
        }
    }
    lines(&text.lines().collect::<Vec<_>>(), &text_read.lines().collect::<Vec<_>>())
}

#[test]
fn the_commands_of_the_skill_print_what_it_shows() {
    let tools = tether_base::xdg::data_dir().unwrap().join("tools");
    if !["debugpy", "pytest"].into_iter().all(|tool| installed_tool(tool).is_some()) {
        return;
    }
    let sandbox = Sandbox::new();
    for entry in fs::read_dir(skill().join("example")).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), sandbox.path(&entry.file_name().to_string_lossy())).unwrap();
        }
    }
    std::os::unix::fs::symlink(tools.join("pytest"), sandbox.path(".venv")).unwrap();
    sandbox.tether(&["trust", "--programs", "--yes"]).ok();
    let all = transcripts(&fs::read_to_string(skill().join("SKILL.md")).unwrap());
    assert!(all.len() > 20, "{all:?}");
    for (line, text_read) in all {
        check_output(&sandbox, &line, &text_read);
    }
}

fn check_output(sandbox: &Sandbox, line: &str, text_read: &str) {
    let printed = redacted(&shell(sandbox, line));
    let is_shown = matches_expected(&printed, &redacted(text_read));
    assert!(is_shown, "$ {line}\n{printed}\n--- but the document says:\n{text_read}");
}

/// From the first breakpoint to the end of the session.
fn debugging_transcript(document: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let commands = transcripts(&text).into_iter().skip_while(|(line, _)| !line.starts_with("tether break orders.py"));
    let until_stop: Vec<_> = commands.take_while(|(line, _)| line.starts_with("tether ")).collect();
    assert!(until_stop.len() >= 4, "{document}: {until_stop:?}");
    until_stop
}

#[test]
fn the_debugging_commands_of_the_readme_and_the_book_do_what_they_show() {
    if installed_tool("debugpy").is_none() {
        return;
    }
    for document in ["docs/src/debugging.md", "README.md"] {
        let sandbox = Sandbox::new();
        fs::copy(skill().join("example/orders.py"), sandbox.path("orders.py")).unwrap();
        for (line, text_read) in debugging_transcript(document) {
            match text_read.is_empty() {
                // The README shows no output.
                true => shell_status(&sandbox, &line),
                false => check_output(&sandbox, &line, &text_read),
            }
        }
    }
}

/// Panics unless the command line succeeds.
fn shell_status(sandbox: &Sandbox, line: &str) {
    let printed = shell(sandbox, &format!("{line} && echo succeeded"));
    assert!(printed.ends_with("succeeded\n"), "$ {line}\n{printed}");
}

/// The output of a command line in a shell with the real `tether` on PATH.
fn shell(sandbox: &Sandbox, line: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_tether")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{line} 2>&1")]).current_dir(&sandbox.workspace);
    command.envs(sandbox.variables()).env("PATH", path.unwrap());
    run_command(command).stdout
}

#[test]
fn the_skills_header_is_valid() {
    // Source: <https://agentskills.io/specification>
    let text = fs::read_to_string(skill().join("SKILL.md")).unwrap();
    let header = text.strip_prefix("---\n").and_then(|rest| rest.split("\n---\n").next()).unwrap();
    let value = |key: &str| header.lines().find_map(|line| line.strip_prefix(&format!("{key}: "))).unwrap();
    assert_eq!(value("name"), skill().file_name().unwrap().to_str().unwrap());
    assert!((1..=1024).contains(&value("description").len()));
    assert!((1..=500).contains(&value("compatibility").len()));
    assert!(text.lines().count() < 500);
}

#[test]
fn an_ellipsis_matches_any_text() {
    for (text, text_read, expect) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a\nb\nc", "a\n…\nc", true),
        ("a\nc", "a\n…\nc", true),
        ("c", "…\nc\n…", true),
        ("a\nb\nc", "a…", false),
        ("a\nb\nc", "a\n…\nd", false),
        ("a\nb\na\nb", "a\n…\nb", true),
        ("it ended: well", "it ended…", true),
        ("['/x/a.py', 1]", "['…a.py', …]", true),
        ("a c b c d", "a…c", false),
    ] {
        assert_eq!(matches_expected(text, text_read), expect, "{text:?} {text_read:?}");
    }
    assert_eq!(
        redacted("pid 17, at 0x7f (after 2.5 s)\n  #2 f() [ref 7]\n"),
        "pid …, at 0x… (after … ms)\n  #… f() [ref …]"
    );
}
