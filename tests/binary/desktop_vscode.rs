//! A desktop VS Code window with a stand-in for its launcher, since no desktop VS Code can be installed for tests.
//! Real are the process behind the exited launcher, its Chromium, its inspector, its identity.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::requirements::has_program;
use crate::support::{CommandOutput, Sandbox, carrying, is_alive, kill, run_command, wait_for_end};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A workspace with an extension, and this script as the launcher of VS Code.
fn with_launcher(launcher: &str, settings: &str) -> Option<Sandbox> {
    if !["node", "chromium"].into_iter().all(has_program) {
        return None;
    }
    let sandbox = Sandbox::new();
    let code = sandbox.home().join("bin/code");
    fs::create_dir(code.parent().unwrap()).unwrap();
    fs::write(&code, launcher).unwrap();
    fs::set_permissions(&code, fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.write("extension.js", "exports.activate = () => {};");
    sandbox.write("package.json", r#"{"name": "x", "version": "0.0.1", "engines": {"vscode": "^1.80.0"}}"#);
    let record = json!(record(&sandbox));
    let toml = format!(
        "[window]\nkind = \"extension-host\"\nvscode = {}\ntimeout = \"120s\"\n{settings}\n\
         [window.env]\nDISPLAY = \":77\"\nSTAND_IN_RECORD = {record}\n",
        json!(code)
    );
    sandbox.write("devtools.toml", &toml);
    sandbox.tether(&["trust", "--yes"]).ok();
    Some(sandbox)
}

const STAND_IN: &str = include_str!("../fixtures/desktop/code");

fn record(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join("record")
}

/// The launcher's arguments, one entry per start.
fn starts(sandbox: &Sandbox) -> Vec<Value> {
    let text = fs::read_to_string(record(sandbox)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn start(sandbox: &Sandbox) -> CommandOutput {
    let mut command = sandbox.command(["start", "--json"]);
    // As in a terminal of VS Code.
    command.env("VSCODE_IPC_HOOK", "/x").env("ELECTRON_RUN_AS_NODE", "1");
    run_command(command)
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim().to_owned()
}

#[test]
fn the_program_behind_the_launcher_is_the_window_from_its_start_to_its_stop() {
    let Some(sandbox) = with_launcher(STAND_IN, "args = [\"--disable-extensions\"]") else { return };
    let started = sandbox.once_it_answers(start(&sandbox).ok().json());
    let pid = started["pid"].as_u64().unwrap() as u32;
    assert_eq!((started["state"].as_str(), name_of(pid).as_str()), (Some("ready"), "chromium"));
    let session = sandbox.session().unwrap();
    assert_eq!(session["inspectorPort"], started["inspectorPort"]);
    let title = || sandbox.json(&["evaluate", "document.title"])["value"].clone();
    assert_eq!(title(), "[Extension Development Host] stand-in");

    let [launch] = &starts(&sandbox)[..] else { panic!("it was not started once: {:?}", starts(&sandbox)) };
    let args: Vec<&str> = launch["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(args.last(), sandbox.workspace.to_str().as_ref());
    for arg in [
        format!("--user-data-dir={}", session["userDataDir"].as_str().unwrap()),
        format!("--inspect-extensions={}", session["inspectorPort"]),
        format!("--extensionDevelopmentPath={}", sandbox.workspace.display()),
        "--remote-debugging-port=0".into(),
        "--disable-extensions".into(),
    ] {
        assert!(args.contains(&arg.as_str()), "{arg} is not in {args:?}");
    }
    let env = launch["env"].as_object().unwrap();
    assert!(!env.contains_key("VSCODE_IPC_HOOK") && !env.contains_key("ELECTRON_RUN_AS_NODE"), "{env:?}");

    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    let again = sandbox.status();
    assert_eq!((again["pid"].as_u64(), again["reconnected"].as_bool()), (Some(u64::from(pid)), Some(true)));
    assert_eq!(title(), "[Extension Development Host] stand-in");

    sandbox.tether(&["stop"]).ok();
    let launch_id = session["launchId"].as_str().unwrap();
    assert!(!is_alive(pid) && carrying("DEVTETHER_LAUNCH_ID", launch_id).is_empty());
    assert!(!PathBuf::from(session["userDataDir"].as_str().unwrap()).exists() && sandbox.session().is_none());
}

#[test]
fn the_exit_of_a_window_that_is_not_our_child_is_noticed() {
    let Some(sandbox) = with_launcher(STAND_IN, "") else { return };
    let pid = start(&sandbox).ok().json()["pid"].as_u64().unwrap() as u32;
    kill(pid, Signal::KILL);
    wait_for_end(pid);
    // An early exit without a known code counts as a crash.
    let reported = || ["crashed", "exited"].contains(&sandbox.status()["state"].as_str()?).then_some(());
    crate::support::eventually("the end is told", reported);
}

#[test]
fn a_launcher_that_starts_nothing_is_an_error_with_its_last_output() {
    let check = |script: &str, words: &[&str]| {
        let Some(sandbox) = with_launcher(script, "") else { return };
        let since = std::time::Instant::now();
        sandbox.tether(&["start"]).fails(1, words);
        assert!(since.elapsed().as_secs() < 60, "it waited for what could not come");
        assert!(sandbox.session().is_none());
    };
    check(
        "#!/bin/sh\necho no such display >&2; exit 3\n",
        &["VS Code ended before it had opened", "code 3", "no such display"],
    );
    check("#!/bin/sh\nexit 0\n", &["VS Code ended before it had opened its debugging port", "without any output"]);
    let crashing = "#!/bin/sh\nfor i; do case $i in --user-data-dir=*) d=${i#*=};; esac; done\n\
                    mkdir -p \"$d/logs/1\"; echo 'the GPU is gone' > \"$d/logs/1/main.log\"; sh -c 'exit 9' & exit 0\n";
    check(crashing, &["ended before it had opened", "its log ends with", "the GPU is gone"]);
}

#[test]
fn a_window_without_our_environment_is_refused_and_ended() {
    let hiding = STAND_IN.replace("process.env.STAND_IN_DROPS_ENVIRONMENT", "true");
    let Some(sandbox) = with_launcher(&hiding, "") else { return };
    sandbox
        .tether(&["start"])
        .fails(1, &["cannot find the process of the launched VS Code", "set `vscode` to the real one"]);
    let args = starts(&sandbox)[0]["args"].clone();
    let data = args
        .as_array()
        .unwrap()
        .iter()
        .find_map(|arg| arg.as_str()?.strip_prefix("--user-data-dir="))
        .unwrap()
        .to_owned();
    let port = args
        .as_array()
        .unwrap()
        .iter()
        .find_map(|arg| arg.as_str()?.strip_prefix("--inspect-extensions="))
        .unwrap()
        .to_owned();
    let naming = |text: &str| {
        let all = procfs::process::all_processes().unwrap().flatten().map(|process| process.pid as u32);
        let line = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        all.filter(|&pid| String::from_utf8_lossy(&line(pid)).contains(text) && is_alive(pid)).collect::<Vec<_>>()
    };
    // The stand-in's inspector is a separate program; a real extension host exits with its VS Code.
    naming(&format!("--inspect=127.0.0.1:{port}")).into_iter().for_each(|pid| kill(pid, Signal::KILL));
    // They are killed; the kernel reaps them asynchronously.
    naming(&data).into_iter().for_each(wait_for_end);
    assert_eq!(naming(&data), [0; 0]);
}

#[test]
fn without_a_desktop_vs_code_code_server_is_suggested() {
    let web = ["`kind = \"web-extension-host\"`", "`tether adapters install code-server`"];
    let check = |settings: &str, code: i32, words: &[&str]| {
        let sandbox = Sandbox::with(&[
            ("package.json", "{}"),
            ("devtools.toml", &format!("[window]\nkind = \"extension-host\"\n{settings}")),
        ]);
        let mut command = sandbox.command(["start"]);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        run_command(command).fails(code, words);
    };
    if tether_tools::desktop_vscode::find_launcher(None, std::env::var_os("PATH").as_deref()).is_none() {
        check("", 6, &[&["cannot find a desktop VS Code", "VSCodium (`codium`)", "set `vscode ="], &web[..]].concat());
    }
    check("vscode = \"no/code\"", 6, &[&["no/code is not a program", "correct `vscode`"], &web[..]].concat());
    check("vscode = \"/bin/true\"", 2, &[&["without a visible window", "there is no display"], &web[..]].concat());
    check("vscode = \"/bin/true\"\nheadless = true\nenv = { DISPLAY = \":1\" }", 2, &["`headless` is set"]);
    let display = "vscode = \"/bin/true\"\nenv = { DISPLAY = \":1\" }\n";
    check(
        &format!("{display}args = [\"--user-data-dir=/mine\"]"),
        2,
        &["cannot start VS Code with `--user-data-dir=/mine`"],
    );
    check(&format!("{display}extension = \"nowhere\""), 2, &["cannot load the extension", "no package.json"]);
}
