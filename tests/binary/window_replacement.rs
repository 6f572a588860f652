//! The end of a supervisor in the middle of launching or replacing the window: a window runs afterwards.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Sandbox, eventually, is_alive, kill, wait_for_end};

/// Started by the window's command: where a FIFO is, it says that it runs, and waits until it may go on.
const LAUNCH: &str = r#"
if [ -p .devtools/launching ]; then echo > .devtools/launching; cat .devtools/go; fi
exec node --inspect=127.0.0.1:$1 server.js
"#;

/// Does not end at SIGTERM; where a FIFO is, it says that it was to end.
const SERVER: &str = r#"
const fs = require("fs");
globalThis.answer = 42;
process.on("SIGTERM", () => {
    try { if (fs.statSync(".devtools/closing").isFIFO()) fs.writeFileSync(".devtools/closing", ""); } catch {}
});
setInterval(() => {}, 1000);
"#;

fn sandbox() -> Sandbox {
    let toml = "[window]\nkind = 'command'\ncommand = ['sh', 'launch.sh', '${cdpPort}']\n";
    Sandbox::with(&[("launch.sh", LAUNCH), ("server.js", SERVER), ("devtools.toml", toml)])
}

fn make_fifos(sandbox: &Sandbox, names: &[&str]) {
    let files: Vec<_> = names.iter().map(|name| sandbox.path(".devtools").join(name)).collect();
    assert!(Command::new("mkfifo").args(files).status().unwrap().success());
}

fn remove_fifos(sandbox: &Sandbox, names: &[&str]) {
    names.iter().for_each(|name| fs::remove_file(sandbox.path(".devtools").join(name)).unwrap());
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap_or_else(|| panic!("no window: {status}")) as u32
}

/// Begins to launch or replace the window, and returns when the FIFO `at` was written to.
fn begin(operation: &str, sandbox: &Sandbox, at: &str) -> Child {
    let mut command = sandbox.command([operation]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    fs::read(sandbox.path(".devtools").join(at)).unwrap();
    child
}

/// Returns at once if the supervisor has aborted the launch and exited.
fn let_launch_go_on(sandbox: &Sandbox, supervisor: u32) {
    eventually("the launch may go on, or is aborted", || {
        let go = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(sandbox.path(".devtools/go"));
        (go.is_ok() || !is_alive(supervisor)).then_some(())
    });
}

/// A window runs, it is not `old`, and no other process of the window is left.
fn check_replaced(sandbox: &Sandbox, old: u32, case: &str) {
    let status = sandbox.once_it_answers(sandbox.status());
    assert_eq!(status["state"], "ready", "{case}: {status}");
    assert_ne!(pid(&status), old, "{case}");
    assert!(!is_alive(old), "{case}");
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42, "{case}");
    let windows =
        sandbox.processes().into_iter().filter(|(_, line)| line.contains("server.js") || line.contains("launch.sh"));
    assert_eq!(windows.map(|(pid, _)| pid).collect::<Vec<_>>(), [pid(&status)], "{case}");
}

#[test]
fn a_supervisor_that_is_asked_to_exit_finishes_the_launch() {
    let sandbox = sandbox();
    sandbox.json(&["start"]);
    for case in ["SIGTERM", "SIGINT", "shutdown"] {
        let old = pid(&sandbox.status());
        make_fifos(&sandbox, &["launching", "go"]);
        let mut restart = begin("restart", &sandbox, "launching");
        let (supervisor, socket) = (sandbox.supervisor().unwrap(), sandbox.socket());
        let shutdown = match case {
            "shutdown" => Some(sandbox.command(["shutdown"]).stdout(Stdio::null()).spawn().unwrap()),
            _ => {
                kill(supervisor, if case == "SIGTERM" { Signal::TERM } else { Signal::INT });
                None
            }
        };
        eventually("the supervisor is exiting", || (!socket.exists()).then_some(()));
        let_launch_go_on(&sandbox, supervisor);
        wait_for_end(supervisor);
        restart.wait().unwrap();
        shutdown.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
        remove_fifos(&sandbox, &["launching", "go"]);
        let session = sandbox.session().unwrap_or_else(|| panic!("{case}: there is no session file"));
        assert!(is_alive(session["electronPid"].as_u64().unwrap() as u32), "{case}");
        check_replaced(&sandbox, old, case);
        assert_eq!(sandbox.status()["reconnected"], true, "{case}");
    }
}

#[test]
fn a_replacement_that_a_killed_supervisor_had_begun_is_finished_by_the_next_one() {
    let sandbox = sandbox();
    sandbox.json(&["start"]);
    for (at, fifos) in [("launching", &["launching", "go"][..]), ("closing", &["closing"])] {
        let old = pid(&sandbox.status());
        make_fifos(&sandbox, fifos);
        let mut restart = begin("restart", &sandbox, at);
        let supervisor = sandbox.supervisor().unwrap();
        kill(supervisor, Signal::KILL);
        wait_for_end(supervisor);
        restart.wait().unwrap();
        remove_fifos(&sandbox, fifos);
        check_replaced(&sandbox, old, at);
        // Once: the next supervisor finds the window.
        let supervisor = sandbox.supervisor().unwrap();
        let window = pid(&sandbox.status());
        kill(supervisor, Signal::KILL);
        wait_for_end(supervisor);
        assert_eq!(pid(&sandbox.status()), window);
    }
    // A stop is final: nothing is launched again.
    sandbox.json(&["stop"]);
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn a_first_launch_during_which_the_supervisor_ends_is_finished() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    for signal in [Signal::KILL, Signal::TERM] {
        make_fifos(&sandbox, &["launching", "go"]);
        let mut start = begin("start", &sandbox, "launching");
        let supervisor = sandbox.supervisor().unwrap();
        kill(supervisor, signal);
        if signal == Signal::TERM {
            let_launch_go_on(&sandbox, supervisor);
        }
        wait_for_end(supervisor);
        start.wait().unwrap();
        remove_fifos(&sandbox, &["launching", "go"]);
        check_replaced(&sandbox, 0, &format!("{signal:?}"));
        // Nothing is launched again after it was stopped.
        sandbox.json(&["stop"]);
        sandbox.tether(&["shutdown"]).ok();
        assert_eq!(sandbox.status()["state"], "absent");
    }
    // A launch that is stopped on request is no launch to be finished.
    make_fifos(&sandbox, &["launching", "go"]);
    let mut start = begin("start", &sandbox, "launching");
    sandbox.json(&["stop"]);
    start.wait().unwrap();
    remove_fifos(&sandbox, &["launching", "go"]);
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    assert_eq!(sandbox.status()["state"], "absent");
}
