//! Builds that fail, hang, fork, flood or loop, and concurrent requests for a build: real `tether`, real Node window.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Sandbox, is_alive, kill, node_with_build, wait_for_end};
use rustix::process::Signal;
use serde_json::json;

/// The PID that a program of the test has written.
fn pid_in(sandbox: &Sandbox, file: &str) -> u32 {
    fs::read_to_string(sandbox.path(file)).unwrap().trim().parse().unwrap()
}

#[test]
fn a_failed_build_is_the_error_and_the_old_window_stays() {
    let sandbox = node_with_build("test ! -e broken || { echo 'src/a.ts(3,1): error TS1005' >&2; exit 2; }");
    let started = sandbox.json(&["start"]);
    sandbox.write("broken", "");
    sandbox.tether(&["evaluate", "answer"]).fails(4, &["code 2", "src/a.ts(3,1): error TS1005", "hint:"]);
    let status = sandbox.once_it_answers(sandbox.status());
    assert_eq!(status["pid"], started["pid"]);
    assert_eq!(status["state"], "stale");
    assert_eq!(status["lastBuild"]["ok"], false);
    assert!(status["lastBuild"]["durationMs"].as_u64().unwrap() > 0, "{status}");
    // Once fixed, the next operation builds and swaps.
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.write("server.js", &crate::support::NODE_SERVICE.replace("42", "43"));
    let answer = sandbox.json(&["evaluate", "answer"]);
    assert_eq!(answer["value"], 43);
    assert_eq!(answer["refreshed"]["because"], "server.js was modified");
    assert!(!is_alive(started["pid"].as_u64().unwrap() as u32));
}

#[test]
fn a_build_that_fails_at_the_start_leaves_no_window() {
    let sandbox = node_with_build("echo no; exit 1");
    sandbox.tether(&["start"]).fails(4, &["code 1", "no"]);
    assert_eq!(sandbox.status()["state"], "absent");
    assert_eq!(sandbox.session(), None);
}

#[test]
fn a_build_whose_program_is_missing_says_which() {
    let sandbox = Sandbox::with(&[
        ("server.js", ""),
        ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['no-such-compiler']\n"),
    ]);
    sandbox.tether(&["start"]).fails(6, &["no-such-compiler", "devtools.toml"]);
}

#[test]
fn a_build_that_hangs_is_stopped_with_its_whole_group() {
    let sandbox =
        node_with_build("trap '' TERM; sleep 1000 & echo $! > .devtools/child; echo $$ > .devtools/leader; wait; wait");
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    let toml = fs::read_to_string(sandbox.path("devtools.toml")).unwrap();
    // Long enough for the shell to set its trap on a busy machine.
    sandbox.write("devtools.toml", &format!("{toml}timeout = '3s'\n"));
    sandbox.tether(&["start"]).fails(4, &["did not end within 3s", "timeout"]);
    for file in [".devtools/child", ".devtools/leader"] {
        wait_for_end(pid_in(&sandbox, file));
    }
}

#[test]
fn a_daemon_that_holds_the_pipe_does_not_hold_the_build() {
    let sandbox = node_with_build("mkdir -p .devtools; setsid sleep 1000 & echo $! > .devtools/daemon");
    let requested = Instant::now();
    let started = sandbox.json(&["start"]);
    assert!(requested.elapsed() < Duration::from_secs(60));
    assert_eq!(sandbox.once_it_answers(started.clone())["state"], "ready");
    let daemon = pid_in(&sandbox, ".devtools/daemon");
    assert!(started["notes"].to_string().contains(&daemon.to_string()), "{started}");
    kill(daemon, Signal::KILL);
}

#[test]
fn a_gigabyte_of_output_is_read_and_only_its_end_is_kept() {
    let sandbox = node_with_build("head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo the end");
    let started = sandbox.json(&["start"]);
    let tail = started["lastBuild"]["tail"].as_str().unwrap();
    assert!(tail.ends_with("the end") && tail.len() < 100_000, "{} bytes", tail.len());
}

#[test]
fn a_build_that_touches_tracked_files_is_stopped_after_two_rounds_and_explained() {
    builds_its_own("touch gen/stamp.js", 2);
}

/// It could be a user who saves in each round, so one more round is allowed.
#[test]
fn a_build_that_writes_something_else_each_time_is_stopped_after_three_rounds_and_explained() {
    builds_its_own("date +%N > gen/stamp.js", 3);
}

fn builds_its_own(writes: &str, rounds: usize) {
    let sandbox = node_with_build(&format!("mkdir -p .devtools gen; {writes}; echo x >> .devtools/rounds"));
    let started = sandbox.json(&["start"]);
    assert_eq!(fs::read_to_string(sandbox.path(".devtools/rounds")).unwrap(), "x\n".repeat(rounds));
    let notes = started["notes"].to_string();
    assert!(notes.contains("gen/stamp.js") && notes.contains("`/gen/stamp.js`"), "{notes}");
    // No operation builds again until another file changes.
    assert_eq!(sandbox.json(&["evaluate", "answer"]).get("refreshed"), None);
    sandbox.write("other.js", "");
    assert_eq!(sandbox.json(&["evaluate", "answer"])["refreshed"]["because"], "other.js was added");
    assert_eq!(sandbox.json(&["evaluate", "answer"]).get("refreshed"), None);
}

#[test]
fn a_command_that_changes_during_the_build_is_not_run_in_its_next_round() {
    let sandbox =
        node_with_build("mkdir -p .devtools; echo x >> .devtools/rounds; sed -i 's/echo x/echo y/' devtools.toml");
    sandbox.tether(&["start"]).fails(5, &["tether trust"]);
    assert_eq!(fs::read_to_string(sandbox.path(".devtools/rounds")).unwrap(), "x\n");
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn an_edit_during_the_build_is_built_before_the_swap() {
    // Each round waits for its own FIFO, which synchronises build and test.
    let sandbox =
        node_with_build("cd .devtools; echo x >> rounds; cat go$(wc -l < rounds) > /dev/null; cat ../src.txt >> built");
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    sandbox.write("src.txt", "one\n");
    let fifos = ["go1", "go2"].map(|name| sandbox.path(".devtools").join(name));
    assert!(std::process::Command::new("mkfifo").args(&fifos).status().unwrap().success());
    let mut start = sandbox.command(["start", "--json"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    // Opening the FIFO for writing blocks until the build reads it: the build has begun.
    let first = fs::OpenOptions::new().write(true).open(&fifos[0]).unwrap();
    sandbox.write("src.txt", "two\n");
    drop(first);
    drop(fs::OpenOptions::new().write(true).open(&fifos[1]).unwrap());
    assert!(start.wait().unwrap().success());
    assert_eq!(fs::read_to_string(sandbox.path(".devtools/built")).unwrap(), "two\ntwo\n");
    assert_eq!(sandbox.once_it_answers(sandbox.status())["state"], "ready");
}

#[test]
fn ten_clients_at_once_share_one_build_and_one_window() {
    let sandbox = node_with_build("mkdir -p .devtools; echo x >> .devtools/rounds; sleep 0.2");
    sandbox.json(&["start"]);
    sandbox.write("a.js", "1");
    let clients: Vec<_> = (0..10)
        .map(|_| {
            sandbox.command(["evaluate", "process.pid", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let answers: Vec<serde_json::Value> =
        clients.into_iter().map(|it| serde_json::from_slice(&it.wait_with_output().unwrap().stdout).unwrap()).collect();
    let pid = &sandbox.status()["pid"];
    assert!(answers.iter().all(|answer| answer["value"] == *pid), "{answers:?}");
    assert_eq!(fs::read_to_string(sandbox.path(".devtools/rounds")).unwrap(), "x\nx\n");
}

#[test]
fn a_restart_builds_only_when_requested() {
    let sandbox = node_with_build("mkdir -p .devtools; echo x >> .devtools/rounds");
    let rounds = || fs::read_to_string(sandbox.path(".devtools/rounds")).unwrap().lines().count();
    let check = |arguments: &[&str], builds: usize| {
        let before = (rounds(), sandbox.status()["pid"].clone());
        let status = sandbox.json(arguments);
        assert_eq!((rounds() - before.0, status["pid"] != before.1), (builds, true), "{arguments:?}");
    };
    sandbox.json(&["start"]);
    check(&["restart"], 0);
    check(&["restart", "--rebuild", "always"], 1);
    check(&["restart", "--rebuild", "never"], 0);
    check(&["start", "--rebuild", "always"], 1);
    sandbox.write("a.js", "");
    // The change is still known: the next request that may build does.
    check(&["restart", "--rebuild", "never"], 0);
    assert_eq!(sandbox.status()["stale"], true);
    check(&["restart"], 1);
    assert_eq!(sandbox.status()["stale"], false);
    assert_eq!(sandbox.json(&["start"])["generation"], json!(7));
    assert_eq!(rounds(), 4);
}
