//! One supervisor per workspace, whatever the workspace's path and file system.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use crate::support::{CommandOutput, NODE_SERVICE, Sandbox, is_alive, kill, run_command, wait_for_end};
use devtether::api::protocol::InitializeParams;
use rustix::process::Signal;
use serde_json::{Value, json};

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap_or_else(|| panic!("no window: {status}")) as u32
}

fn supervisors(sandbox: &Sandbox) -> usize {
    sandbox.processes().iter().filter(|(_, line)| line.contains(" supervise ")).count()
}

#[test]
fn a_hundred_starts_at_once_make_one_supervisor_and_one_window() {
    let sandbox = crate::support::node();
    let ask = || sandbox.command(["start", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let clients: Vec<Child> = (0..100).map(|_| ask()).collect();
    let answers: Vec<Value> =
        clients.into_iter().map(|it| serde_json::from_slice(&it.wait_with_output().unwrap().stdout).unwrap()).collect();
    assert!(answers.iter().all(|answer| pid(answer) == pid(&answers[0])));
    assert_eq!(supervisors(&sandbox), 1);
    let log = sandbox.tether(&["logs", "-n", "100000"]).ok().stdout;
    assert_eq!(log.matches(" listens ").count(), 1, "{log}");
}

#[test]
fn environments_that_differ_in_both_folders_have_one_supervisor() {
    let sandbox = crate::support::node();
    let elsewhere = |name: &str| {
        let folder = sandbox.home().join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        folder
    };
    let (state, run) = (elsewhere("other state"), elsewhere("other run"));
    let command = |index: usize| {
        let mut command = sandbox.command(["start", "--json"]);
        if index % 2 == 1 {
            command.env("XDG_STATE_HOME", &state).env("XDG_RUNTIME_DIR", &run).env("HOME", &state);
        }
        command
    };
    let clients: Vec<Child> = (0..20).map(|it| command(it).stdout(Stdio::piped()).spawn().unwrap()).collect();
    let answers: Vec<Value> =
        clients.into_iter().map(|it| serde_json::from_slice(&it.wait_with_output().unwrap().stdout).unwrap()).collect();
    assert!(answers.iter().all(|answer| pid(answer) == pid(&answers[0])), "{answers:?}");
    assert_eq!(supervisors(&sandbox), 1);
    // After its death the other environment finds the window, and this one its supervisor.
    let old = sandbox.processes().into_iter().find(|(_, line)| line.contains(" supervise ")).unwrap().0;
    kill(old, Signal::KILL);
    wait_for_end(old);
    for index in [1, 0, 1] {
        assert_eq!(pid(&run_command(command(index)).ok().json()), pid(&answers[0]));
        assert_eq!(supervisors(&sandbox), 1);
    }
}

#[test]
fn a_stale_socket_is_no_obstacle() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let old = sandbox.supervisor().unwrap();
    kill(old, Signal::KILL);
    wait_for_end(old);
    let folder = sandbox.home().join("run/devtether");
    let socket = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    assert!(socket.exists(), "it was left behind");
    assert_eq!(pid(&sandbox.status()), window);
    // Nor is a file at its path.
    sandbox.tether(&["shutdown"]).ok();
    fs::write(&socket, "no socket").unwrap();
    assert_eq!(pid(&sandbox.status()), window);
}

#[test]
fn a_frozen_supervisor_is_an_error_with_a_hint() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let frozen = sandbox.supervisor().unwrap();
    kill(frozen, Signal::STOP);
    let word = format!("kill -9 {frozen}");
    sandbox.tether(&["status"]).fails(124, &["does not respond", &word]);
    kill(frozen, Signal::KILL);
    wait_for_end(frozen);
    assert_eq!(pid(&sandbox.status()), window);
}

#[test]
fn the_same_workspace_through_a_link_has_the_same_supervisor() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let link = sandbox.home().join("link");
    symlink(&sandbox.workspace, &link).unwrap();
    let status = sandbox.json(&["status", "--workspace", link.to_str().unwrap()]);
    assert_eq!(pid(&status), window);
    assert_eq!(supervisors(&sandbox), 1);
}

#[test]
fn two_workspaces_have_two_supervisors_and_a_copy_does_not_take_the_others_window() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let copy = sandbox.home().join("copy");
    assert!(Command::new("cp").arg("-r").arg(&sandbox.workspace).arg(&copy).status().unwrap().success());
    let in_copy = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.current_dir(&copy);
        run_command(command)
    };
    assert_eq!(in_copy(&["status", "--json"]).json()["state"], "absent");
    assert!(copy.join(".devtools/session.json.stale").exists());
    in_copy(&["trust", "--yes"]).ok();
    let other = pid(&in_copy(&["start", "--json"]).ok().json());
    assert_ne!(other, window);
    assert_eq!(supervisors(&sandbox), 2);
    in_copy(&["stop"]).ok();
    assert!(is_alive(window) && !is_alive(other));
    in_copy(&["shutdown"]).ok();
}

#[test]
fn status_and_stop_work_in_a_deleted_workspace() {
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let elsewhere = sandbox.home().join("elsewhere");
    fs::rename(&sandbox.workspace, &elsewhere).unwrap();
    let of_deleted = |arguments: &[&str]| {
        let mut command =
            sandbox.command(arguments.iter().copied().chain(["--workspace", sandbox.workspace.to_str().unwrap()]));
        command.current_dir("/");
        run_command(command)
    };
    let status = of_deleted(&["status", "--json"]).ok().json();
    assert_eq!(pid(&status), window);
    assert!(status["notes"].to_string().contains("work space"), "{status}");
    of_deleted(&["stop"]).ok();
    assert!(!is_alive(window));
    of_deleted(&["shutdown"]).ok();
    // No supervisor is running, and none can be started.
    of_deleted(&["status"]).fails(2, &["cannot be a workspace", "work space"]);
    fs::rename(&elsewhere, &sandbox.workspace).unwrap();
}

#[tokio::test]
async fn a_newer_front_end_drains_an_older_supervisor_and_the_window_stays() {
    use devtether::supervisor::connect::{IfNotRunning, connect};
    use devtether::supervisor::paths::SupervisorPaths;
    let sandbox = crate::support::node();
    let window = pid(&sandbox.json(&["start"]));
    let old = sandbox.supervisor().unwrap();
    // The library reads its folders from this process's environment, which other threads share, so the socket path is
    // passed instead.
    let mut place = SupervisorPaths::of_workspace(&sandbox.workspace).unwrap();
    let state = fs::read_dir(sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    place.lock = state.join("supervisor.lock");
    place.socket = fs::read_dir(sandbox.home().join("run/devtether")).unwrap().next().unwrap().unwrap().path();
    let newer = InitializeParams { name: "test".into(), version: "99.0.0".into(), ..InitializeParams::default() };
    assert!(connect(&place, &newer, IfNotRunning::Skip).await.unwrap().is_none(), "it has ended itself");
    assert!(!is_alive(old) && is_alive(window));
    let status = sandbox.status();
    assert_eq!((pid(&status), &status["reconnected"]), (window, &json!(true)));
}

/// Runs a shell script as root of its own mount namespace, with the variables `$tether` and `$WORKSPACE`.
fn in_namespace(sandbox: &Sandbox, script: &str) -> Option<CommandOutput> {
    let possible = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        crate::support::requirements::report_missing("`unshare -Urm` fails: no mount namespaces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-euc", script]).current_dir("/").stdin(Stdio::null());
    command.envs(sandbox.variables()).env("WORKSPACE", &sandbox.workspace).env("tether", env!("CARGO_BIN_EXE_tether"));
    Some(run_command(command))
}

/// On a file system without space or write access the window starts, a note names what could not be written, and the
/// next supervisor finds the window.
fn on_a_disk(mount: &str, words: &[&str]) {
    let sandbox = crate::support::node();
    let script = format!(
        r#"
        mkdir -p "$WORKSPACE"; files=$(mktemp -d); cp "$WORKSPACE"/* "$files"
        mount -t tmpfs -o size=64k tmpfs "$WORKSPACE"; cp "$files"/* "$WORKSPACE"; rm -r "$files"
        {mount}
        cd "$WORKSPACE"
        "$tether" start --json >&2
        kill -9 $(sed 's/.*"pid":\([0-9]*\).*/\1/' "$XDG_STATE_HOME"/devtether/*/supervisor.lock)
        "$tether" status --json
        "$tether" stop --json
        "$tether" shutdown
        "#
    );
    let Some(run_command) = in_namespace(&sandbox, &script) else { return };
    let run_command = run_command.ok();
    let answers: Vec<Value> = run_command.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let started: Value = serde_json::from_str(run_command.stderr.lines().last().unwrap()).unwrap();
    let notes = started["notes"].to_string();
    assert!(words.iter().all(|word| notes.contains(word)), "{started}");
    assert_eq!((pid(&answers[0]), &answers[0]["reconnected"]), (pid(&started), &json!(true)));
    assert_eq!(answers[1]["state"], "absent");
}

#[test]
fn a_read_only_workspace_has_a_window_that_is_found_again() {
    on_a_disk("mount -o remount,ro \"$WORKSPACE\"", &["Read-only file system"]);
}

#[test]
fn a_full_disk_has_a_window_that_is_found_again() {
    on_a_disk("cat /dev/zero > \"$WORKSPACE/node_modules\" 2>/dev/null || true", &["No space left on device"]);
}

#[test]
fn no_session_file_makes_us_signal_or_connect_to_another_process() {
    let sandbox = crate::support::node();
    let started = sandbox.json(&["start"]);
    let ours = sandbox.session().unwrap();
    sandbox.json(&["stop"]);
    assert!(!is_alive(pid(&started)));
    let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let with = |name: &str, value: Value| {
        let mut session = ours.clone();
        session[name] = value;
        session.to_string()
    };
    let check = |content: String, reason: &str| {
        sandbox.tether(&["shutdown"]).ok();
        let _ = fs::remove_file(sandbox.path(".devtools/session.json.stale"));
        sandbox.write(".devtools/session.json", &content);
        assert_eq!(sandbox.status()["state"], "absent", "{reason}");
        let log = sandbox.tether(&["logs"]).ok().stdout;
        let line = log.lines().rev().find(|line| line.contains("session.json")).unwrap_or_default().to_owned();
        assert!(line.contains(reason), "{reason:?} is not in {line}");
        assert!(sandbox.path(".devtools/session.json.stale").exists() && sandbox.session().is_none(), "{reason}");
    };
    check(String::new(), "not a session file");
    check(ours.to_string()[..100].to_owned(), "not a session file");
    check(format!("{}{}", ours, " ".repeat(100_000)), "bytes, more than");
    check(with("cdpPort", json!("9222")), "not a session file");
    check(with("version", json!(2)), "newer schema 2");
    check(ours.to_string(), "its window has ended");
    check(with("electronPid", json!(victim.id())), "reused");
    let ticks = procfs::process::Process::new(victim.id() as i32).unwrap().stat().unwrap().starttime;
    let mut session = ours.clone();
    session["electronPid"] = json!(victim.id());
    session["pidStartTicks"] = json!(ticks);
    check(session.to_string(), "does not carry the launch id");
    for impossible in [json!(0), json!(-1), json!(1)] {
        check(with("electronPid", impossible), "session.json");
    }
    check(with("bootId", json!("another")), "before this machine was started");
    check(with("cdpPort", json!(port)), "its window has ended");
    assert_eq!(victim.try_wait().unwrap(), None, "the victim lives");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody has connected to the victim's port");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn no_workspace_and_wrong_settings_are_errors() {
    let sandbox = Sandbox::new();
    sandbox.tether(&["status", "--workspace", "no/such/folder"]).fails(2, &["no/such/folder", "--workspace"]);
    sandbox.tether(&["start"]).fails(2, &["what to launch", "`tether init`", "launch.json"]);
    sandbox.write("devtools.toml", "[window]\nkin = 'node'\n");
    sandbox.tether(&["start"]).fails(2, &["devtools.toml", "line 2", "kind"]);
    sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n");
    sandbox.write("server.js", NODE_SERVICE);
    sandbox.tether(&["start"]).fails(5, &["not trusted", "tether trust"]);
    sandbox.tether(&["trust"]).fails(5, &["nothing was trusted", "--yes"]);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.tether(&["start"]).ok();
    // One more byte needs new consent, and the running window stays.
    let window = pid(&sandbox.status());
    sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\nargs = ['x']\n");
    sandbox.tether(&["evaluate", "answer"]).fails(5, &["window.args: [\"x\"]"]);
    assert_eq!(pid(&sandbox.status()), window);
    sandbox.tether(&["frobnicate"]).fails(2, &["frobnicate"]);
}

#[test]
fn changed_watch_settings_count_as_a_change() {
    let sandbox = crate::support::node();
    sandbox.json(&["start"]);
    let toml = fs::read_to_string(sandbox.path("devtools.toml")).unwrap();
    sandbox.write("devtools.toml", &format!("{toml}[watch]\nconfirm = 'content'\n"));
    assert_eq!(sandbox.status()["changes"][0]["path"], "devtools.toml");
    assert_eq!(sandbox.json(&["evaluate", "answer"])["refreshed"]["because"], "devtools.toml was modified");
    // With confirm = "content" a touched file is no change, an edited one is.
    sandbox.write("server.js", NODE_SERVICE);
    assert_eq!(sandbox.once_it_answers(sandbox.status())["state"], "ready");
    sandbox.write("server.js", &NODE_SERVICE.replace("42", "43"));
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
    // A broken file is an error, and the window stays.
    let window = pid(&sandbox.status());
    sandbox
        .write("devtools.toml", "[watch]\nroot = 'no/such/folder'\n[window]\nkind = 'node'\nprogram = 'server.js'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.tether(&["evaluate", "answer"]).fails(2, &["no/such/folder", "[watch] root"]);
    assert_eq!(pid(&sandbox.status()), window);
}
