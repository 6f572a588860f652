//! A window that runs, but cannot be verified: it is kept, the doubt is shown, and nothing is started beside it.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Sandbox, eventually, is_alive, kill, node, wait_for_end};

/// Both session files of a sandbox.
fn session_files(sandbox: &Sandbox) -> [PathBuf; 2] {
    [sandbox.path(".devtools/session.json"), state_folder(sandbox).join(".devtools/session.json")]
}

fn state_folder(sandbox: &Sandbox) -> PathBuf {
    let mut folders = fs::read_dir(sandbox.home().join("state/devtether")).unwrap().filter_map(Result::ok);
    folders.next().expect("a state folder").path()
}

fn change_sessions(sandbox: &Sandbox, field: &str, value: &Value) -> Value {
    let mut before = Value::Null;
    for file in session_files(sandbox) {
        let mut session: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        before = session[field].take();
        session[field] = value.clone();
        fs::write(&file, session.to_string()).unwrap();
    }
    before
}

fn end_supervisor(sandbox: &Sandbox, signal: Signal) {
    let supervisor = sandbox.supervisor().expect("a supervisor runs");
    kill(supervisor, signal);
    wait_for_end(supervisor);
}

fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().expect("a window") as u32
}

#[test]
fn a_window_whose_proof_fails_is_neither_ended_nor_replaced() {
    let sandbox = node();
    let window = pid(&sandbox.json(&["start"]));
    for (field, value, why) in [
        ("version", json!(99), "newer schema 99"),
        ("browserId", json!("00000000-0000-4000-8000-000000000000"), "is answered by browser"),
        ("cdpPort", json!(1), "is not listened on by process"),
    ] {
        end_supervisor(&sandbox, Signal::KILL);
        let before = change_sessions(&sandbox, field, &value);
        let status = sandbox.status();
        assert_eq!(status["state"], "unverified", "{status}");
        assert!(status["notes"].to_string().contains(why), "{status}");
        for command in [&["start"][..], &["restart"], &["evaluate", "answer"]] {
            sandbox.tether(command).fails(1, &["cannot tell whether the window", why, "`tether stop`"]);
        }
        assert!(is_alive(window), "{field}");
        // Once the doubt is gone, the same supervisor finds it again.
        change_sessions(&sandbox, field, &before);
        assert_eq!(pid(&sandbox.json(&["start"])), window, "{field}");
        assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42, "{field}");
    }
    // The user decides: then it is ended.
    end_supervisor(&sandbox, Signal::KILL);
    change_sessions(&sandbox, "version", &json!(99));
    assert_eq!(sandbox.status()["state"], "unverified");
    assert_eq!(sandbox.json(&["stop"])["state"], "absent");
    assert!(!is_alive(window));
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
}

#[test]
fn a_supervisor_without_free_descriptors_ends_no_window() {
    let sandbox = node();
    let window = pid(&sandbox.json(&["start"]));
    let log = state_folder(&sandbox).join("supervisor.log");
    let searches = || fs::read_to_string(&log).unwrap_or_default().matches("supervisor has ended").count();
    end_supervisor(&sandbox, Signal::KILL);
    for limit in 8..32 {
        let before = searches();
        let supervise = sandbox.command(["supervise"]);
        let program = supervise.get_program().to_owned();
        let limited = format!("ulimit -n {limit}; exec \"$0\" supervise");
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(limited).arg(program).current_dir(&sandbox.workspace).envs(sandbox.variables());
        let mut supervisor = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the search ends, or the supervisor", || {
            (searches() > before || supervisor.try_wait().unwrap().is_some()).then_some(())
        });
        let _ = supervisor.kill();
        supervisor.wait().unwrap();
        assert!(is_alive(window), "with {limit} descriptors");
    }
    assert_eq!(pid(&sandbox.json(&["start"])), window);
    let session = sandbox.session().expect("its file is kept, or written again");
    assert_eq!(session["electronPid"], window);
}
