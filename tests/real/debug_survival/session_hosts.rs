//! Debug sessions in hosts of their own: whatever becomes of the supervisor, a paused program stays where it is, and the next
//! supervisor, an outstanding wait and a joined editor find it there.

use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::adapter_features::debuggees::{self, Subject};
use crate::debug_survival::surviving_debuggees::{JAVASCRIPT, PYTHON, line, stop};
use crate::lifecycle::panicking_host::PanickingHosts;
use crate::support::scenario_sandbox::found;
use crate::support::{Sandbox, eventually, is_alive, kill, run_command, wait_for_end};

/// How often the supervisor is killed, for each adapter.
const REPEATS: &str = "DEVTETHER_TEST_KILLS";

fn kills() -> usize {
    std::env::var(REPEATS).ok().and_then(|count| count.parse().ok()).unwrap_or(2)
}

/// Launches the program of an adapter's language, to its stop in the loop.
fn launch(sandbox: &Sandbox, subject: &Subject) -> Value {
    let at = format!("{}:{}", subject.source.display(), subject.line("CALL"));
    let program = subject.program.to_str().unwrap();
    let launch = ["debug", "launch", program, "--adapter", subject.adapter, "--break", &at, "--wait", "120"];
    sandbox.json(&launch)
}

/// Kills the supervisor at a stop, and replaces it, again and again: the same process at the same line, with its locals; the
/// next continue stops again.
fn a_stop_outlives_the_supervisor(subject: Option<Subject>) {
    let Some(subject) = subject else { return };
    let adapter = subject.adapter;
    for _ in 0..kills().div_ceil(4) {
        let sandbox = Sandbox::new();
        let stopped = launch(&sandbox, &subject);
        assert_eq!(line(&stopped), u64::from(subject.line("CALL")), "{adapter}: {stopped}");
        let session = stopped["sessionId"].as_str().unwrap();
        let pid = stopped["pid"].as_u64();
        // The loop calls the function five times.
        for number in 0..kills().min(4) {
            match number % 2 {
                0 => sandbox.kill_supervisor(),
                _ => assert_ne!(sandbox.json(&["upgrade"])["pid"], Value::Null),
            }
            let value = sandbox.json(&["debug", "evaluate", "number"]);
            assert_eq!(
                value["result"].as_str().map(|it| it.trim_end()),
                Some(number.to_string().as_str()),
                "{adapter}: {value}"
            );
            let status = &sandbox.json(&["debug", "status", session]);
            assert_eq!((&status["state"], status["pid"].as_u64()), (&json!("STOPPED"), pid), "{adapter}: {status}");
            let stopped_in = status["stopReason"]["location"]["lineNumber"].as_u64();
            assert_eq!(stopped_in, Some(u64::from(subject.line("CALL"))), "{adapter}: {status}");
            let again = sandbox.json(&["debug", "continue", "--wait", "120"]);
            assert_eq!((&again["stopped"], line(&again)), (&json!(true), u64::from(subject.line("CALL"))), "{adapter}");
        }
        sandbox.json(&["debug", "stop"]);
        assert!(pid.is_none_or(|pid| !is_alive(pid as u32)), "{adapter}: {pid:?} has been left");
    }
}

macro_rules! outlives {
    ($($test:ident: $subject:expr,)*) => {
        $(#[test]
        fn $test() {
            a_stop_outlives_the_supervisor($subject);
        })*
    };
}

outlives! {
    a_stop_of_debugpy_outlives_the_supervisor: debuggees::of("debugpy"),
    a_stop_of_node_outlives_the_supervisor: debuggees::of("node"),
    a_stop_of_js_debug_outlives_the_supervisor: debuggees::of("js-debug"),
    a_stop_of_rdbg_outlives_the_supervisor: debuggees::of("rdbg"),
    a_stop_of_delve_outlives_the_supervisor: debuggees::of("dlv"),
    a_stop_of_lldb_dap_outlives_the_supervisor: debuggees::of("lldb-dap"),
    a_stop_of_codelldb_outlives_the_supervisor: debuggees::of("codelldb"),
    a_stop_of_gdb_outlives_the_supervisor: debuggees::of("gdb"),
    a_stop_of_java_outlives_the_supervisor: debuggees::of("java"),
    a_stop_of_rust_in_lldb_dap_outlives_the_supervisor: debuggees::in_rust("lldb-dap"),
    a_stop_of_rust_in_codelldb_outlives_the_supervisor: debuggees::in_rust("codelldb"),
    a_stop_of_rust_in_gdb_outlives_the_supervisor: debuggees::in_rust("gdb"),
}

fn spawn_json(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    let mut command = sandbox.command([&["--json"], arguments].concat());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_wait_goes_on_over_a_killed_supervisor_and_is_answered_with_the_stop_that_comes_later() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    sandbox.json(&["debug", "launch", "app.py"]);
    for _ in 0..kills() {
        let connected = || sandbox.supervisor_log().matches("front end connected").count();
        let before = connected();
        let waiting = spawn_json(&sandbox, &["debug", "wait", "60"]);
        eventually("the wait is there", || (connected() > before).then_some(()));
        sandbox.kill_supervisor();
        eventually("the wait has started the next supervisor", || sandbox.supervisor());
        sandbox.json(&["break", "set", &stop("app.py", PYTHON)]);
        let answered = waiting.wait_with_output().unwrap();
        let answered: Value = serde_json::from_slice(&answered.stdout).unwrap();
        assert_eq!(answered["stopped"], true, "{answered}");
        sandbox.json(&["break", "remove", "--all"]);
        sandbox.json(&["debug", "continue"]);
    }
}

#[test]
fn a_session_of_several_programs_outlives_the_supervisor() {
    if found("debugpy").is_none() || found("node").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON), ("app.js", JAVASCRIPT)]);
    for (file, text) in [("app.py", PYTHON), ("app.js", JAVASCRIPT)] {
        sandbox.json(&["break", "set", &stop(file, text)]);
    }
    let launched = sandbox.json(&["debug", "launch", "--programs", "app.py", "app.js"]);
    let session = launched["sessionId"].as_str().unwrap();
    let stopped_targets = || {
        let status = sandbox.json(&["debug", "status", session]);
        let targets = status["targets"].as_array().unwrap().clone();
        let pids: Vec<Value> =
            targets.iter().filter(|it| it["state"] == "STOPPED").map(|it| it["pid"].clone()).collect();
        (pids.len() == 2).then_some(pids)
    };
    let before = eventually("both are stopped", stopped_targets);
    for _ in 0..kills() {
        sandbox.kill_supervisor();
        assert_eq!(stopped_targets(), Some(before.clone()));
        sandbox.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(eventually("both stop again", stopped_targets), before);
    }
    sandbox.json(&["debug", "stop", session]);
    assert!(before.iter().all(|pid| !is_alive(pid.as_u64().unwrap() as u32)));
    assert_eq!(sandbox.others(), []);
}

#[test]
fn what_may_have_had_an_effect_is_not_repeated() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON)]);
    sandbox.json(&["debug", "launch", "app.py", "--break", &stop("app.py", PYTHON), "--wait", "60"]);
    sandbox.json(&["break", "remove", "--all"]);
    let continuing = spawn_json(&sandbox, &["debug", "continue", "--wait", "60"]);
    eventually("it runs", || (sandbox.json(&["debug", "status"])["state"] == "RUNNING").then_some(()));
    sandbox.kill_supervisor();
    let answered = continuing.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&answered.stdout).into_owned();
    assert!(text.contains("it was not repeated"), "{text}");
    assert_eq!(sandbox.json(&["debug", "status"])["state"], "RUNNING");
}

#[test]
fn a_host_that_ends_takes_its_own_session_only_and_the_reason_is_named() {
    if found("debugpy").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.py", PYTHON), ("other.py", PYTHON)]);
    let launch = |file: &str| sandbox.json(&["debug", "launch", file, "--break", &stop(file, PYTHON), "--wait", "60"]);
    let first = launch("app.py");
    let [host] = sandbox.session_hosts()[..] else { panic!("{:?}", sandbox.session_hosts()) };
    let second = launch("other.py");
    kill(host, Signal::KILL);
    wait_for_end(host);
    let words = format!("its session host, process {host}, has ended: signal: 9");
    eventually("it is lost, with the reason", || {
        let status = sandbox.json(&["debug", "status", first["sessionId"].as_str().unwrap()]);
        assert!(matches!(status["state"].as_str(), Some("STOPPED" | "DISCONNECTED")), "{status}");
        (status["message"].as_str().is_some_and(|message| message.contains(&words))).then_some(())
    });
    let pid = first["pid"].as_u64().unwrap() as u32;
    eventually("what was launched for it is ended", || (!is_alive(pid)).then_some(()));
    let stopped = sandbox.json(&["debug", "wait", "10", "--session", second["sessionId"].as_str().unwrap()]);
    assert_eq!((&stopped["stopped"], line(&stopped)), (&json!(true), line(&second)));
    // It can be launched again.
    let again = sandbox.json(&["debug", "launch", "--restart", first["sessionId"].as_str().unwrap(), "--wait", "60"]);
    assert_eq!(again["stopped"], true, "{again}");
}

#[test]
fn a_host_that_answers_nothing_is_named_and_its_program_stays_where_it_is() {
    if found("node").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.js", JAVASCRIPT)]);
    let at = stop("app.js", JAVASCRIPT);
    let launched = sandbox.json(&["debug", "launch", "app.js", "--adapter", "node", "--break", &at, "--wait", "60"]);
    let pid = launched["pid"].as_u64().unwrap() as u32;
    let [host] = sandbox.session_hosts()[..] else { panic!("{:?}", sandbox.session_hosts()) };
    kill(host, Signal::STOP);
    let words = format!("process {host} has answered nothing");
    sandbox.tether(&["debug", "evaluate", "total"]).fails(124, &[&words, &format!("kill -CONT {host}")]);
    let listed = sandbox.json(&["debug", "status"]);
    assert_eq!(listed["state"], "STOPPED", "{listed}");
    assert!(listed["message"].as_str().unwrap().contains(&words), "{listed}");
    // The next supervisor does not end what it cannot reach.
    sandbox.kill_supervisor();
    let status = sandbox.json(&["debug", "status", "d1"]);
    assert_eq!(status["state"], "DISCONNECTED", "{status}");
    assert!(status["message"].as_str().unwrap().contains(&words), "{status}");
    assert!(is_alive(pid));
    kill(host, Signal::CONT);
    let back = eventually("it is there again", || {
        Some(sandbox.json(&["debug", "status", "d1"])).filter(|status| status["state"] == "STOPPED")
    });
    assert_eq!((line(&back), back["pid"].as_u64()), (line(&launched), Some(u64::from(pid))));
    sandbox.json(&["debug", "evaluate", "total"]);
}

#[test]
fn a_session_that_could_not_be_stored_is_found_by_its_host() {
    if found("node").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.js", JAVASCRIPT)]);
    let at = stop("app.js", JAVASCRIPT);
    let launch = ["debug", "launch", "app.js", "--adapter", "node", "--break", &at, "--wait", "60"];
    let launched = sandbox.json(&launch);
    sandbox.kill_supervisor();
    let mut states = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap().flatten();
    let state = states.find(|state| state.path().is_dir()).unwrap().path();
    std::fs::remove_file(state.join(".devtools/sessions.json")).unwrap();
    for _ in 0..2 {
        let status = sandbox.json(&["debug", "status", "d1"]);
        assert_eq!(
            (&status["state"], &status["pid"], line(&status)),
            (&json!("STOPPED"), &launched["pid"], line(&launched))
        );
        // The next one finds it stored.
        sandbox.kill_supervisor();
    }
    assert_eq!(sandbox.json(&launch)["sessionId"], "d2");
    ["d1", "d2"].iter().for_each(|id| drop(sandbox.json(&["debug", "stop", id])));
}

#[test]
fn a_host_that_panics_takes_its_own_session_only_and_the_panic_is_named() {
    if found("node").is_none() {
        return;
    }
    let sandbox = crate::support::node();
    ["app.js", "other.js"].iter().for_each(|file| sandbox.write(file, JAVASCRIPT));
    let hosts = PanickingHosts::start(&sandbox);
    let window = sandbox.json(&["start"])["pid"].clone();
    let launch = |file: &str| {
        let at = stop(file, JAVASCRIPT);
        sandbox.json(&["debug", "launch", file, "--adapter", "node", "--break", &at, "--wait", "60"])
    };
    let first = launch("app.js");
    let [host] = PanickingHosts::running(&sandbox)[..] else { panic!("there is one host") };
    let second = launch("other.js");
    hosts.panic(host);
    eventually("the panic is named", || {
        let status = sandbox.json(&["debug", "status", first["sessionId"].as_str().unwrap()]);
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        message
            .contains("it panicked, ")
            .then_some(())
            .filter(|()| message.contains("the test has told this host to panic"))
    });
    let stopped = sandbox.json(&["debug", "wait", "10", "--session", second["sessionId"].as_str().unwrap()]);
    assert_eq!((&stopped["stopped"], line(&stopped)), (&json!(true), line(&second)));
    assert_eq!(sandbox.json(&["status"])["pid"], window, "the window is unharmed");
    sandbox.json(&["debug", "stop", second["sessionId"].as_str().unwrap()]);
    sandbox.json(&["stop"]);
}

#[test]
fn a_host_without_a_supervisor_is_shown_by_the_doctor_and_ended_by_shutdown_all() {
    if found("node").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("app.js", JAVASCRIPT)]);
    let launched = sandbox.json(&["debug", "launch", "app.js", "--adapter", "node"]);
    let pid = launched["pid"].as_u64().unwrap() as u32;
    sandbox.tether(&["shutdown"]).ok();
    assert!(is_alive(pid) && sandbox.supervisor().is_none());
    let shown = run_command(sandbox.command(["doctor", "--reap"])).ok().stdout;
    assert!(shown.contains("is a debug session of") && shown.contains("`tether shutdown --all` ends it"), "{shown}");
    let host = sandbox.session_hosts()[0];
    sandbox.tether(&["shutdown", "--all"]).ok();
    wait_for_end(pid);
    wait_for_end(host);
    assert_eq!(sandbox.json(&["debug", "status"])["sessions"], json!([]));
}
