//! `tether completions` and `tether man`, with the installed shells and `man`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{CommandOutput, Sandbox, run_command};

/// Runs a program. `None`, reported, when it is not installed.
fn run(program: &str, arguments: &[&str], input: &Path) -> Option<CommandOutput> {
    if !crate::support::requirements::has_program(program) {
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments).arg(input).env("MANWIDTH", "100").stdin(Stdio::null());
    Some(run_command(command))
}

#[test]
fn every_shell_has_completions_that_name_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.tether(&["completions", shell]).ok().stdout;
        for word in ["screenshot", "evaluate", "adapters", "doctor", "run-to", "watch", "--workspace", "--condition"] {
            let word = if shell == "fish" { word.trim_start_matches("--") } else { word };
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    sandbox.tether(&["completions", "tcsh"]).fails(2, &["tcsh", "bash"]);
}

#[test]
fn bash_completes_what_is_typed() {
    let sandbox = Sandbox::new();
    let script = sandbox.home().join("tether.bash");
    fs::write(&script, sandbox.tether(&["completions", "bash"]).ok().stdout).unwrap();
    let complete = |words: &str| {
        let ask = format!(
            "source \"$1\" || exit 9; complete -p tether >/dev/null || exit 8; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); cur=${{COMP_WORDS[$COMP_CWORD]}}; \
             $(complete -p tether | sed 's/.*-F \\([^ ]*\\).*/\\1/') tether \"$cur\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let answer = run("bash", &["--norc", "-c", &ask, "bash"], &script).expect("bash is everywhere").ok().stdout;
        answer.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete("tether scr"), ["screenshot"]);
    assert_eq!(complete("tether adapters ins"), ["install"]);
    assert_eq!(complete("tether debug la"), ["launch"]);
    assert_eq!(complete("tether debug step in"), ["into"]);
    assert_eq!(complete("tether break rem"), ["remove"]);
    assert_eq!(complete("tether break --cond"), ["--condition"]);
    assert_eq!(complete("tether doctor --r"), ["--reap"]);
    let starts = complete("tether st");
    assert!(["start", "status", "stop"].iter().all(|verb| starts.contains(&(*verb).to_owned())), "{starts:?}");
}

#[test]
fn the_manual_has_a_page_for_each_command_that_man_can_show() {
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join("man pages");
    let listed = sandbox.tether(&["man", folder.to_str().unwrap()]).ok().stdout;
    let mut pages: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let mut report: Vec<_> = listed.lines().map(std::path::PathBuf::from).collect();
    report.sort();
    assert_eq!(report, pages);
    let names = ["tether.1", "tether-start.1", "tether-doctor.1", "tether-adapters-install.1", "tether-debug-run-to.1"];
    for name in names.into_iter().chain(["tether-break.1", "tether-break-set.1", "tether-probe.1"]) {
        assert!(pages.contains(&folder.join(name)), "{name} is not in {pages:?}");
    }
    if let Some(shown) = run("man", &["--warnings", "-P", "cat", "-l"], &folder.join("tether-doctor.1")) {
        assert!(shown.code == 0 && shown.stderr.is_empty() && shown.stdout.contains("--reap"), "{shown:?}");
    }
    if let Some(shown) = run("man", &["--warnings", "-P", "cat", "-l"], &folder.join("tether-debug-launch.1")) {
        assert!(shown.code == 0 && shown.stderr.is_empty() && shown.stdout.contains("--stop-on-entry"), "{shown:?}");
    }
    if let Some(shown) = run("groff", &["-man", "-Tutf8", "-ww", "-P-cbou"], &folder.join("tether.1")) {
        assert!(shown.code == 0 && shown.stderr.is_empty() && shown.stdout.contains("SUBCOMMANDS"), "{shown:?}");
        let words = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("NAME tether - Keeps the window under development alive"), "{words}");
    }
    let page = sandbox.tether(&["man"]).ok().stdout;
    assert!(page.contains(".TH tether 1"), "{page}");
    fs::write(sandbox.home().join("file"), "").unwrap();
    sandbox
        .tether(&["man", sandbox.home().join("file").to_str().unwrap()])
        .fails(1, &["cannot write the manual pages"]);
}
