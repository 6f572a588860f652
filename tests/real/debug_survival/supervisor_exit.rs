//! A supervisor that has ended together with the hosts of its sessions: debuggees that listen are attached to again, the rest is
//! reported lost and reaped.

use serde_json::{Value, json};

use crate::debug_survival::surviving_debuggees::{JAVASCRIPT, PYTHON, events, found, line, stop};
use crate::lifecycle::panicking_supervisor::PanickingSupervisor;
use crate::support::listening::Listening;
use crate::support::{Sandbox, eventually, is_alive, run_command};

/// How the supervisor is ended.
#[derive(Debug)]
enum End {
    Killed,
    Panicked(PanickingSupervisor),
    ShutDown,
}

fn end(sandbox: &Sandbox, how: End) {
    match how {
        End::Killed => sandbox.kill_supervisor(),
        End::Panicked(supervisor) => supervisor.panic(),
        End::ShutDown => drop(sandbox.tether(&["shutdown"]).ok()),
    }
    sandbox.kill_session_hosts();
}

fn status(sandbox: &Sandbox, session: &str) -> Value {
    sandbox.json(&["debug", "status", session])
}

fn is_attached_to_again(sandbox: &Sandbox, mut program: Listening, at: &str) {
    let panicking = PanickingSupervisor::start(sandbox);
    sandbox.json(&["break", "set", at]);
    let port = program.port.to_string();
    let attach = ["debug", "attach", &port, "--wait", "60"];
    let language: &[&str] = if at.contains(".py") { &["--language", "python"] } else { &["--language", "javascript"] };
    let attached = sandbox.json(&[&attach, language].concat());
    let (session, stopped_at) = (attached["sessionId"].as_str().unwrap(), line(&attached));
    for end_of_supervisor in [End::Panicked(panicking), End::Killed, End::ShutDown] {
        let how = format!("{end_of_supervisor:?}");
        end(sandbox, end_of_supervisor);
        assert!(program.is_alive(), "{how}");
        let stopped = sandbox.json(&["debug", "wait", "60"]);
        assert_eq!((&stopped["sessionId"], line(&stopped)), (&json!(session), stopped_at), "{how}: {stopped}");
        assert!(stopped["notes"].to_string().contains("attached to again"), "{how}: {stopped}");
        assert_eq!(sandbox.json(&["debug", "evaluate", "1 + 1"])["result"], "2", "{how}");
        let report = events(sandbox, session, "reattached");
        assert!(report.len() == 1 && report[0].contains(session), "{how}: {report:?}");
        // Reported once.
        let again = sandbox.json(&["debug", "wait", "60"]);
        assert!(again.get("notes").is_none(), "{how}: {again}");
        // It has a host of its own again.
        sandbox.kill_supervisor();
        let kept = sandbox.json(&["debug", "wait", "60"]);
        assert_eq!((line(&kept), &kept["notes"]), (stopped_at, &json!(null)), "{how}: {kept}");
        assert_eq!(sandbox.json(&["debug", "evaluate", "2 + 2"])["result"], "4", "{how}");
    }
    // A stopped session does not come back.
    sandbox.json(&["debug", "stop", session]);
    end(sandbox, End::Killed);
    assert_eq!(sandbox.json(&["debug", "status"])["sessions"], json!([]));
    assert!(program.is_alive());
}

#[test]
fn a_python_program_that_listens_is_attached_to_again_under_the_same_id() {
    let Some(debugpy) = found("debugpy") else { return };
    let sandbox = Sandbox::with(&[("app ö.py", PYTHON)]);
    let program = Listening::python(&sandbox, &debugpy, "app ö.py");
    is_attached_to_again(&sandbox, program, &stop("app ö.py", PYTHON));
}

#[test]
fn a_node_program_with_an_inspector_is_attached_to_again_under_the_same_id() {
    let Some(js_debug) = found("js-debug") else { return };
    let sandbox = Sandbox::with(&[("app ö.js", JAVASCRIPT)]);
    let program = Listening::node(&sandbox, js_debug.interpreter.as_ref().unwrap(), "app ö.js");
    is_attached_to_again(&sandbox, program, &stop("app ö.js", JAVASCRIPT));
}

#[test]
fn launched_programs_are_lost_with_the_reason_and_leave_no_process() {
    for (adapter, file, text) in
        [("debugpy", "app.py", PYTHON), ("node", "app.js", JAVASCRIPT), ("js-debug", "app.js", JAVASCRIPT)]
    {
        if found(adapter).is_none() {
            continue;
        }
        let sandbox = Sandbox::with(&[(file, text)]);
        let at = stop(file, text);
        let launched = sandbox.json(&["debug", "launch", file, "--adapter", adapter, "--break", &at, "--wait", "60"]);
        let session = launched["sessionId"].as_str().unwrap();
        end(&sandbox, End::Killed);
        let lost = status(&sandbox, session);
        assert_eq!((&lost["state"], &lost["connected"]), (&json!("DISCONNECTED"), &json!(false)), "{lost}");
        assert_eq!((&lost["name"], &lost["adapter"]), (&json!(file), &json!(adapter)), "{lost}");
        let message = lost["message"].as_str().unwrap();
        assert!(message.starts_with("lost: its session host has ended"), "{message}");
        assert_eq!(sandbox.others(), []);
        assert_eq!(events(&sandbox, session, "lost").len(), 1);
        sandbox.tether(&["debug", "continue"]).fails(2, &["not stopped", "DISCONNECTED"]);
        // It can be launched again under a new id.
        let again = sandbox.json(&["debug", "launch", "--restart", session, "--wait", "60"]);
        assert!(again["sessionId"] != session && again["stopped"] == true, "{again}");
    }
}

#[test]
fn launched_programs_end_with_a_supervisor_that_is_told_to_end_all() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    let launched = sandbox.json(&["debug", "launch", "app.py"]);
    let pid = launched["pid"].as_u64().unwrap() as u32;
    sandbox.tether(&["shutdown", "--all"]).ok();
    assert!(!is_alive(pid));
    assert_eq!(sandbox.json(&["debug", "status"])["sessions"], json!([]));
}

#[test]
fn a_program_that_no_longer_listens_is_lost_with_the_reason() {
    let Some(debugpy) = found("debugpy") else { return };
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    let program = Listening::python(&sandbox, &debugpy, "app.py");
    let port = program.port.to_string();
    let attached = sandbox.json(&["debug", "attach", &port, "--language", "python"]);
    end(&sandbox, End::Killed);
    drop(program);
    let lost = status(&sandbox, attached["sessionId"].as_str().unwrap());
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("could not be attached to again") && message.contains(&port), "{message}");
}

#[test]
fn debuggees_without_supervisor_and_host_are_orphans_and_a_detached_program_is_not() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    let launch = || sandbox.json(&["debug", "launch", "app.py"]);
    let released = launch();
    sandbox.json(&["debug", "stop", "--detach"]);
    let launched = launch();
    let pid = |it: &Value| it["pid"].as_u64().unwrap() as u32;
    end(&sandbox, End::Killed);
    let shown = sandbox.tether(&["doctor", "--reap"]).ok().stdout;
    assert!(shown.contains("has detached from, and keeps running"), "{shown}");
    let ended = run_command(sandbox.command(["doctor", "--reap", "--yes", "--json"])).ok().json();
    let all = ended["orphans"].as_array().unwrap();
    assert!(all.len() == 1 && all[0]["ended"] == true, "{ended}");
    assert_eq!(all[0]["processes"][0]["pid"], launched["pid"]);
    assert!(!is_alive(pid(&launched)) && is_alive(pid(&released)));
    // The next supervisor leaves it running too, and the one after that.
    for _ in 0..2 {
        sandbox.json(&["debug", "status"]);
        sandbox.kill_supervisor();
        assert!(is_alive(pid(&released)));
    }
    crate::support::kill(pid(&released), rustix::process::Signal::KILL);
    crate::support::wait_for_end(pid(&released));
}

/// Killed at several moments of a start: the adapter may not even have executed its program yet.
#[test]
fn nothing_stays_of_a_session_whose_supervisor_is_killed_while_it_begins() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.js", JAVASCRIPT)]);
    let temporary = sandbox.home().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let tether = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("TMPDIR", &temporary).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    for moment in [0, 20, 60, 120, 200, 300, 450] {
        assert!(tether(&["changes"]).status().is_ok() && tether(&["debug", "status"]).status().unwrap().success());
        let mut launch = tether(&["debug", "launch", "app.js"]).spawn().unwrap();
        // A random moment of the start, not a wait for anything.
        std::thread::sleep(std::time::Duration::from_millis(moment));
        sandbox.kill_supervisor();
        launch.wait().unwrap();
        // The front end may have started another one, and its session.
        if sandbox.supervisor().is_some() {
            sandbox.kill_supervisor();
        }
        // What had started by then goes on in its host.
        assert!(tether(&["shutdown", "--all"]).status().unwrap().success());
        let is_left = |line: &str| line.contains("vsDebugServer") || line.contains("app.js");
        crate::support::eventually("neither adapter nor program is left", || {
            (!sandbox.processes().iter().any(|(_, line)| is_left(line))).then_some(())
        });
    }
    assert!(tether(&["debug", "status"]).status().unwrap().success());
    sandbox.tether(&["shutdown"]).ok();
    let left = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(left(&temporary), Vec::<String>::new());
    let state = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    assert!(!left(&state).iter().any(|name| name.starts_with("fence-")), "{:?}", left(&state));
    // A host whose supervisor was killed before it had connected waits for ten seconds.
    eventually("no host is left", || sandbox.processes().is_empty().then_some(()));
}

/// Prints more than a pipe holds within a hundred rounds, and counts them in a file.
const PRINTING: &str = "\
import os, time
count = 0
while True:
    count += 1
    print('x' * 2000, flush=True)
    with open('count.new', 'w') as file: file.write(str(count))
    os.replace('count.new', 'count')
    time.sleep(0.002)
";

#[test]
fn n11_a_detached_program_prints_on_when_its_supervisor_is_gone() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PRINTING)]);
    let launched = sandbox.json(&["debug", "launch", "app.py"]);
    let pid = launched["pid"].as_u64().unwrap() as u32;
    let count = || std::fs::read_to_string(sandbox.path("count")).ok()?.parse::<u64>().ok();
    // debugpy never lets a program go that it is detached from before the first line.
    eventually("it has begun", count);
    sandbox.json(&["debug", "stop", "--detach"]);
    for _ in 0..2 {
        sandbox.kill_supervisor();
        let before = count().unwrap();
        eventually("it prints on", || {
            assert!(is_alive(pid), "it has ended");
            count().filter(|now| *now > before + 100)
        });
        sandbox.json(&["debug", "status"]);
    }
    crate::support::kill(pid, rustix::process::Signal::KILL);
    crate::support::wait_for_end(pid);
    sandbox.tether(&["shutdown"]).ok();
    eventually("the readers of its output have ended", || sandbox.processes().is_empty().then_some(()));
}
