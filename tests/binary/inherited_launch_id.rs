//! A launch id is inherited by everything that is started from inside a window or a build: it alone ends no process.

use std::fs;
use std::os::unix::process::CommandExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::requirements::is_root;
use crate::support::{NODE_SERVICE, Sandbox, carrying, eventually, is_alive, kill, node, run_command, wait_for_end};

const LAUNCH_ID: &str = "DEVTETHER_LAUNCH_ID";
const LAUNCH_SESSION: &str = "DEVTETHER_LAUNCH_SESSION";

/// A shell command that leaves a process without its tree and session, as `tmux new -d` does, and its PID in a file.
fn leave(file: &str) -> String {
    format!("mkdir -p .devtools; (setsid sleep 1000 > /dev/null 2>&1 & echo $! > .devtools/{file})")
}

/// A window that leaves a daemon and keeps a child, and a build that leaves a daemon.
fn with_daemons() -> Sandbox {
    let child = "require('child_process').spawn('sleep', ['1001'], {stdio: 'ignore', detached: true});";
    let daemon = format!("require('child_process').execSync({});", serde_json::json!(leave("window")));
    let toml = "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['sh', 'build.sh']\n";
    Sandbox::with(&[
        ("server.js", &format!("{daemon}{child}{NODE_SERVICE}")),
        ("build.sh", &leave("build")),
        ("devtools.toml", toml),
    ])
}

fn daemon(sandbox: &Sandbox, file: &str) -> u32 {
    let text = || fs::read_to_string(sandbox.path(&format!(".devtools/{file}"))).ok()?.trim().parse().ok();
    eventually("the daemon's PID is there", text)
}

fn kill_supervisor(sandbox: &Sandbox) {
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
}

/// Ended with the test, also when it fails.
struct Daemons(Vec<u32>);

impl Drop for Daemons {
    fn drop(&mut self) {
        for pid in &self.0 {
            kill(*pid, Signal::KILL);
            wait_for_end(*pid);
        }
    }
}

#[test]
fn a_program_that_inherited_the_launch_id_is_not_ended() {
    let (sandbox, other) = (with_daemons(), node());
    let window = sandbox.json(&["start"])["pid"].as_u64().unwrap().to_string();
    let daemons = Daemons(vec![daemon(&sandbox, "window"), daemon(&sandbox, "build")]);
    let all_alive = |when: &str| assert!(daemons.0.iter().all(|pid| is_alive(*pid)), "{when}");
    let launch = sandbox.session().unwrap()["launchId"].as_str().unwrap().to_owned();
    let child = || carrying(LAUNCH_ID, &launch).into_iter().any(|(_, line)| line == "sleep 1001");
    assert!(child());

    // The supervisor of another workspace, started by a terminal inside the window.
    let mut start = other.command(["start"]);
    start.env(LAUNCH_ID, &launch).env(LAUNCH_SESSION, &window);
    run_command(start).ok();
    let supervisor = other.supervisor().unwrap();
    let environment = procfs::process::Process::new(supervisor as i32).unwrap().environ().unwrap();
    assert!([LAUNCH_ID, LAUNCH_SESSION].iter().all(|name| !environment.contains_key(std::ffi::OsStr::new(name))));

    kill_supervisor(&sandbox);
    sandbox.status();
    all_alive("a supervisor that was killed");
    let shown = run_command(sandbox.command(["doctor", "--reap", "--yes", "--json"])).ok().json();
    all_alive("doctor --reap --yes");
    for pid in &daemons.0 {
        assert!(shows_detached(&shown, *pid), "{pid}: {shown}");
    }
    let shown = sandbox.tether(&["doctor", "--reap"]).ok().stdout;
    assert!(shown.contains("left alone (`kill PID` ends one)"), "{shown}");

    sandbox.json(&["restart"]);
    let again = daemon(&sandbox, "window");
    let daemons = Daemons([&daemons.0[..], &[again, daemon(&sandbox, "build")]].concat());
    sandbox.json(&["stop"]);
    assert!(!child(), "a child in a session of its own ends with the window");
    assert!(daemons.0.iter().all(|pid| is_alive(*pid)) && is_alive(supervisor), "stop");
    assert_eq!(other.once_it_answers(other.status())["state"], "ready");
}

fn shows_detached(report: &Value, pid: u32) -> bool {
    let launches = ["orphans", "leftAlone"].into_iter().filter_map(|key| report[key].as_array()).flatten();
    launches.filter_map(|launch| launch["detached"].as_array()).flatten().any(|it| it["pid"] == pid)
}

/// With the ids of our window in its environment, and in its session: root may end it, and must not.
#[test]
fn a_process_of_another_user_with_the_launch_id_is_not_ended() {
    if !is_root() {
        return;
    }
    let sandbox = node();
    let window = sandbox.json(&["start"])["pid"].as_u64().unwrap();
    let launch = sandbox.session().unwrap()["launchId"].as_str().unwrap().to_owned();
    let mut command = std::process::Command::new("sleep");
    command.arg("1002").env(LAUNCH_ID, &launch).uid(65534).gid(65534).current_dir("/");
    let mut sleep = command.spawn().unwrap();
    eventually("its environment is there", || (!carrying(LAUNCH_ID, &launch).is_empty()).then_some(()));
    // A session of its own, and its number in its environment: all that ties a process to the launch, but for its user.
    let mut tied = std::process::Command::new("setsid");
    tied.args(["sh", "-c", &format!("{LAUNCH_SESSION}=$$ exec sleep 1003")]).env(LAUNCH_ID, &launch);
    let mut tied = tied.uid(65534).gid(65534).current_dir("/").spawn().unwrap();
    let session = tied.id().to_string();
    eventually("its session is there", || (!carrying(LAUNCH_SESSION, &session).is_empty()).then_some(()));
    sandbox.json(&["stop"]);
    assert!(!is_alive(window as u32));
    for child in [&mut sleep, &mut tied] {
        assert!(child.try_wait().unwrap().is_none(), "another user's process was ended");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
