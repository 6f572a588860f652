//! `tether doctor`: findings, problems, and which processes `--reap` ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{CommandOutput, Sandbox, is_alive, kill, node, run_command, wait_for_end};
use devtether::supervisor::paths::SupervisorPaths;
use rustix::process::Signal;
use serde_json::Value;

/// The one finding of this level whose text has all of these words.
fn finding(report: &Value, level: &str, words: &[&str]) -> Value {
    let all = report["findings"].as_array().unwrap();
    let fits = |found: &&Value| {
        let text = format!("{} {}", found["what"], found["hints"]);
        found["level"] == level && words.iter().all(|word| text.contains(word))
    };
    let found: Vec<&Value> = all.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{level} with {words:?} in {all:#?}");
    found[0].clone()
}

fn doctor(sandbox: &Sandbox) -> CommandOutput {
    run_command(sandbox.command(["doctor", "--json"]))
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap() as u32
}

/// Kills the supervisor; its window keeps running.
fn kill_supervisor(sandbox: &Sandbox) {
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
}

/// The state folder of its only workspace.
fn state_of(sandbox: &Sandbox) -> PathBuf {
    fs::read_dir(sandbox.home().join("state/devtether")).unwrap().flatten().next().unwrap().path()
}

#[test]
fn a_healthy_workspace_has_no_problems_before_and_while_its_window_runs() {
    let sandbox = node();
    let before = doctor(&sandbox).ok().json();
    assert_eq!((before["ok"].as_bool(), before["problems"].as_u64()), (Some(true), Some(0)));
    finding(&before, "ok", &["its window is of kind node"]);
    finding(&before, "ok", &["is trusted"]);
    finding(&before, "ok", &["no supervisor runs"]);
    finding(&before, "ok", &["node for javascript", "/node"]);
    assert!(sandbox.supervisor().is_none(), "looking starts nothing");

    let window = pid(&sandbox.json(&["start"]));
    // A page that does not respond in time is read again.
    let during = crate::support::eventually("the page answers", || {
        Some(doctor(&sandbox).ok().json()).filter(|it| !it.to_string().contains("the window is unresponsive"))
    });
    finding(&during, "ok", &["the supervisor is process", &sandbox.supervisor().unwrap().to_string()]);
    finding(&during, "ok", &["the window is ready", &format!("process {window}"), "CDP port", "inspector port"]);
    let reported = sandbox.tether(&["doctor"]).ok().stdout;
    assert!(reported.starts_with("workspace\n  ok ") && reported.contains("\nrunning\n"), "{reported}");
}

#[test]
fn what_the_window_needs_and_is_missing_is_a_problem_with_the_command_that_brings_it() {
    let sandbox =
        Sandbox::with(&[("package.json", "{}"), ("devtools.toml", "[window]\nkind = \"web-extension-host\"\n")]);
    let missing = |set: &[(&str, &str)], code: i32| {
        let mut command = sandbox.command(["doctor", "--json"]);
        command.env("DEVTETHER_DATA_DIR", sandbox.home().join("nothing")).envs(set.iter().copied());
        let found = run_command(command);
        assert_eq!(found.code, code, "{found:?}");
        found.json()
    };
    let report = missing(&[], 1);
    finding(&report, "problem", &["code-server is missing", "tether adapters install code-server"]);
    finding(&report, "problem", &["node24 is missing", "tether adapters install node24"]);
    let report = missing(&[("PATH", "/nowhere")], 1);
    finding(&report, "problem", &["chromium", "apt-get install chromium"]);
    finding(&report, "warning", &["git", "apt-get install git"]);

    sandbox.write("devtools.toml", "[window]\nkind = \"node\"\nnode = \"n\"\nprogram = \"x\"\n");
    let report = missing(&[], 0);
    finding(&report, "warning", &["code-server is missing", "tether adapters install code-server"]);
    finding(&report, "warning", &["this has changed since you agreed", "tether trust"]);
}

#[test]
fn settings_and_folders_that_are_wrong_are_problems() {
    let sandbox = node();
    let fails = |words: &[&str]| {
        let found = doctor(&sandbox);
        assert_eq!(found.code, 1, "{found:?}");
        finding(&found.json(), "problem", words);
    };
    sandbox.write("devtools.toml", "[window]\nkid = 1");
    fails(&["devtools.toml", "line 2", "unknown field"]);
    sandbox.write("devtools.toml", "[window]\nkind = \"node\"\nprogram = \"server.js\"\n");
    let open = |folder: &str, mode| {
        let folder = sandbox.home().join(folder);
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    };
    open("config/devtether", 0o777);
    fails(&["config/devtether", "can be written by others"]);
    open("config/devtether", 0o700);
    doctor(&sandbox).ok();
    open("run/devtether", 0o755);
    fails(&["run/devtether", "its mode is 755", "chmod 700"]);
    open("run/devtether", 0o700);
    sandbox.write(".devtoolsignore", "[broken\n");
    let mut command = sandbox.command(["doctor", "--workspace", "/nowhere/at/all"]);
    command.env_remove("NO_COLOR");
    let reported = run_command(command);
    assert!(
        reported.code == 1 && reported.stdout.contains("/nowhere/at/all") && reported.stdout.contains("1 problem"),
        "{reported:?}"
    );
}

#[test]
fn a_window_without_a_supervisor_is_found_and_never_reaped() {
    let sandbox = node();
    let window = pid(&sandbox.json(&["start"]));
    kill_supervisor(&sandbox);
    let report = doctor(&sandbox).ok().json();
    finding(&report, "ok", &["a window runs", &format!("process {window}"), "connected to it again"]);
    let reaped = run_command(sandbox.command(["doctor", "--reap", "--yes", "--json"])).ok().json();
    assert_eq!(reaped["orphans"], serde_json::json!([]));
    assert!(reaped["leftAlone"].to_string().contains("is the window of"), "{reaped}");
    // `git clean -fdx` removed the file; the next supervisor still finds the window.
    fs::remove_file(sandbox.path(".devtools/session.json")).unwrap();
    finding(&doctor(&sandbox).ok().json(), "ok", &["a window runs", &format!("process {window}")]);
    let reaped = run_command(sandbox.command(["doctor", "--reap", "--yes", "--json"])).ok().json();
    assert_eq!(reaped["orphans"], serde_json::json!([]));
    let again = sandbox.status();
    assert_eq!((pid(&again), again["reconnected"].as_bool()), (window, Some(true)));
}

#[test]
fn a_session_file_of_an_exited_window_is_reported_as_stale() {
    let sandbox = node();
    let window = pid(&sandbox.json(&["start"]));
    kill_supervisor(&sandbox);
    kill(window, Signal::KILL);
    wait_for_end(window);
    finding(&doctor(&sandbox).ok().json(), "ok", &["session.json is stale", "its window has ended"]);
    let path = sandbox.path(".devtools/session.json");
    let other = fs::read_to_string(&path).unwrap().replacen("bootId\": \"", "bootId\": \"another", 1);
    let other = other.replacen("bootId\":\"", "bootId\":\"another", 1);
    fs::write(&path, other).unwrap();
    finding(&doctor(&sandbox).ok().json(), "ok", &["session.json is stale", "before this machine was started"]);
    fs::write(&path, "{").unwrap();
    finding(&doctor(&sandbox).ok().json(), "warning", &["session.json is stale", "not a session file"]);
}

#[test]
fn orphans_are_listed_and_only_they_are_ended_with_consent() {
    let (sandbox, other, supervised) = (node(), node(), node());
    let orphan = pid(&sandbox.json(&["start"]));
    let launch = sandbox.session().unwrap()["launchId"].as_str().unwrap().to_owned();
    kill_supervisor(&sandbox);
    fs::remove_file(sandbox.path(".devtools/session.json")).unwrap();
    fs::remove_file(state_of(&sandbox).join(".devtools/session.json")).unwrap();
    // Folders like another user's, and the window of a running supervisor.
    let stranger = pid(&other.json(&["start"]));
    let kept = pid(&supervised.json(&["start"]));

    finding(&doctor(&sandbox).ok().json(), "warning", &["processes 1, launches 1", "tether doctor --reap"]);
    let shown = sandbox.tether(&["doctor", "--reap"]).ok().stdout;
    assert!(shown.contains(&format!("launch {launch} is an orphan")) && shown.contains("--reap --yes"), "{shown}");
    assert!(is_alive(orphan), "it was only shown");
    sandbox.tether(&["doctor", "--yes"]).fails(2, &["--reap"]);

    let ended = run_command(sandbox.command(["doctor", "--reap", "--yes", "--json"])).ok().json();
    let [one] = &ended["orphans"].as_array().unwrap()[..] else { panic!("{ended}") };
    assert_eq!((one["launchId"].as_str(), one["ended"].as_bool()), (Some(&*launch), Some(true)));
    assert_eq!(one["processes"][0]["pid"], orphan);
    assert!(!is_alive(orphan) && is_alive(stranger) && is_alive(kept));
    assert!(!state_of(&sandbox).join(format!("window-{launch}")).exists(), "its scratch folder is left");
    let shown = sandbox.tether(&["doctor", "--reap"]).ok().stdout;
    assert!(!shown.contains(&launch), "{shown}");
}

#[test]
fn a_supervisor_of_another_version_is_reported_and_left_running() {
    let sandbox = node();
    sandbox.json(&["start"]);
    let supervisor = sandbox.supervisor().unwrap();
    let state = fs::read_dir(sandbox.home().join("state/devtether")).unwrap().flatten().next().unwrap().path();
    let lock = SupervisorPaths::workspace_lock_of(&state).unwrap();
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replace(env!("CARGO_PKG_VERSION"), "0.0.1")).unwrap();
    finding(&doctor(&sandbox).ok().json(), "warning", &["is version 0.0.1", "replaces an older one"]);
    assert!(is_alive(supervisor));
    fs::write(&lock, text).unwrap();
}

#[test]
fn a_supervisor_whose_binary_was_replaced_is_reported() {
    let sandbox = node();
    let program = sandbox.home().join("tether");
    let install = || {
        let fresh = sandbox.home().join("tether.new");
        crate::support::copy_program(env!("CARGO_BIN_EXE_tether").as_ref(), &fresh);
        fs::rename(fresh, &program).unwrap();
    };
    install();
    let mut start = std::process::Command::new(&program);
    start.args(["start"]).current_dir(&sandbox.workspace).envs(sandbox.variables());
    run_command(start).ok();
    install();
    finding(&doctor(&sandbox).ok().json(), "warning", &["its program has been replaced", "tether shutdown"]);
}

#[test]
fn programs_are_probed_outside_of_the_workspace_whose_files_could_change_what_they_do() {
    let probed = "import sys\nprint('99.0 of the workspace')\n";
    let sandbox =
        Sandbox::with(&[("pip.py", probed), ("ensurepip.py", "def version(): return '99.0'\n"), ("venv.py", "")]);
    // npm reads it to its end, or for ever.
    rustix::fs::mknodat(rustix::fs::CWD, sandbox.path(".npmrc"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut command = sandbox.command(["doctor", "--json"]);
    command.current_dir(sandbox.path(""));
    let output = crate::support::run_command(command);
    let text = &output.stdout;
    assert!(!text.contains("99.0"), "{text}");
    let tools: Vec<&str> = text.split('"').filter(|part| part.starts_with("npm ")).collect();
    assert!(!text.contains("has not ended"), "{text}");
    assert!(tools.iter().any(|it| it.starts_with("npm ") && it.contains('(')), "npm was probed: {text}");
}
