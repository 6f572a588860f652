//! M3 for Python: the children of a program that was launched directly, without debugpy's adapter, are targets of its session.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::requirements::installed_tool;
use crate::support::scenario_sandbox::{Running, ScenarioSandbox};
use crate::support::{eventually, is_alive, run_command};

/// Runs three pieces of work in two children, in the way that its first argument names.
const POOLS: &str = "\
import concurrent.futures as futures
import multiprocessing
import sys

def work(number):
    twice = number * 2
    return twice  # STOP

if __name__ == '__main__':
    how = sys.argv[1]
    if how == 'executor':
        with futures.ProcessPoolExecutor(2) as pool:
            print(how, list(pool.map(work, [1, 2, 3])))
    else:
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(how, pool.map(work, [1, 2, 3], chunksize=1))
            pool.close()
            pool.join()
";

fn targets(status: &Value) -> &Vec<Value> {
    status["targets"].as_array().unwrap()
}

/// The last answer of a session whose stops are continued from until its end; `visit` is called at each.
fn continue_to_end(stage: &ScenarioSandbox, launched: Value, mut visit: impl FnMut(&Value)) -> Value {
    let mut answer = launched;
    while answer["stopped"] == true {
        visit(&answer);
        answer = stage.json(&["debug", "continue", "--wait", "100"]);
    }
    answer
}

fn pool_is_debugged(how: &str) {
    let Some(stage) = ScenarioSandbox::with("debugpy", "pools.py", POOLS) else { return };
    stage.breaks("STOP");
    let launched = stage.json(&["debug", "launch", "pools.py", "--wait", "100", "--", how]);
    let mut seen = BTreeSet::new();
    let ended = continue_to_end(&stage, launched, |stop| {
        stage.check(stop, "BREAKPOINT_HIT", "STOP");
        seen.insert(ScenarioSandbox::local(stop, "twice").to_owned());
        let status = stage.json(&["debug", "status"]);
        let stopped = targets(&status).iter().find(|target| target["state"] == "STOPPED").unwrap();
        assert_ne!((&stopped["parent"], &stopped["pid"]), (&Value::Null, &status["pid"]), "a child: {status:#}");
        assert_eq!((targets(&status)[0]["parent"].is_null(), &targets(&status)[0]["state"]), (true, &json!("RUNNING")));
    });
    assert_eq!(seen, ["2", "4", "6"].map(str::to_owned).into(), "{ended:#}");
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    let printed = stage.json(&["debug", "output"]).to_string();
    assert!(printed.contains(&format!("{how} [2, 4, 6]")), "{printed}");
    stage.nothing_is_left();
}

#[test]
fn a_breakpoint_in_a_spawned_worker_is_hit() {
    pool_is_debugged("spawn");
}

#[test]
fn a_breakpoint_in_a_forked_worker_is_hit() {
    pool_is_debugged("fork");
}

#[test]
fn a_breakpoint_in_a_worker_of_an_executor_is_hit() {
    pool_is_debugged("executor");
}

#[test]
fn children_without_breakpoints_end_as_without_a_debugger() {
    for how in ["spawn", "fork", "executor"] {
        let Some(stage) = ScenarioSandbox::with("debugpy", "pools.py", POOLS) else { return };
        let ended = stage.json(&["debug", "launch", "pools.py", "--wait", "100", "--", how]);
        assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
        stage.nothing_is_left();
    }
}

#[test]
fn a_stop_ends_the_children_too() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "pools.py", POOLS) else { return };
    stage.breaks("STOP");
    let stop = stage.json(&["debug", "launch", "pools.py", "--wait", "100", "--", "fork"]);
    stage.check(&stop, "BREAKPOINT_HIT", "STOP");
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
    assert_eq!(stage.others(), []);
}

/// The parent ends at once; the child replaces itself by another program, then that by one that is not Python.
const HEIRS: &str = "\
import os
import sys

if len(sys.argv) > 1:
    heir = sys.argv[1]
    print(heir)  # STOP
    os.execv('/bin/sh', ['sh', '-c', 'sleep 0.3; echo last'])
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, __file__, 'an heir'])
";

#[test]
fn a_child_that_outlives_its_parent_and_a_program_that_replaces_it_are_debugged_to_their_end() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "heirs.py", HEIRS) else { return };
    stage.breaks("STOP");
    let stop = stage.json(&["debug", "launch", "heirs.py", "--wait", "100"]);
    stage.check(&stop, "BREAKPOINT_HIT", "STOP");
    assert_eq!(ScenarioSandbox::local(&stop, "heir"), "'an heir'");
    let ended = stage.json(&["debug", "continue", "--wait", "100"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    let printed = stage.json(&["debug", "output"]).to_string();
    assert!(printed.contains("an heir") && printed.contains("last"), "it ended before its last program: {printed}");
    stage.nothing_is_left();
}

const STARTS_CHILDREN: &str = "\
import os
import subprocess
import sys
import time

while True:
    time.sleep(0.05)  # TICK
    if os.path.exists('detached'):
        done = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True)
        if (child := os.fork()) == 0:
            os._exit(5)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with open('result.new', 'w') as file:
            file.write(f'{done.stdout.strip()} {done.returncode} {code}')
        os.rename('result.new', 'result')
        time.sleep(600)
";

#[test]
fn a_program_that_is_detached_from_starts_children_as_without_a_debugger() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "starts.py", STARTS_CHILDREN) else { return };
    stage.breaks("TICK");
    let stop = stage.json(&["debug", "launch", "starts.py", "--wait", "100"]);
    stage.check(&stop, "BREAKPOINT_HIT", "TICK");
    let pid = stop["pid"].as_u64().unwrap() as u32;
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["debug", "stop", "--detach"]);
    stage.sandbox.write("detached", "");
    let result = eventually("its children", || std::fs::read_to_string(stage.sandbox.path("result")).ok());
    assert_eq!((result.as_str(), is_alive(pid)), ("42 0 5", true));
    crate::support::kill(pid, rustix::process::Signal::KILL);
    crate::support::wait_for_end(pid);
    stage.nothing_is_left();
}

#[test]
fn a_process_that_was_attached_to_starts_children_as_before() {
    let Some(found) = crate::support::scenario_sandbox::found("debugpy") else { return };
    for stops in [false, true] {
        let Some(stage) = ScenarioSandbox::with("debugpy", "starts.py", STARTS_CHILDREN) else { return };
        let mut command = std::process::Command::new(found.interpreter.as_ref().unwrap());
        command.arg("starts.py").current_dir(&stage.sandbox.workspace).envs(stage.sandbox.variables());
        let running = Running(command.spawn().unwrap());
        let pid = running.0.id();
        stage.json(&["debug", "attach", "--pid", &pid.to_string(), "--adapter", "debugpy"]);
        if stops {
            assert_eq!(stage.json(&["debug", "pause", "--wait", "60"])["stopped"], true);
        }
        let stopped = stage.json(&["debug", "stop", "--detach"]);
        assert!(stopped["message"].is_null(), "{stopped:#}");
        stage.sandbox.write("detached", "");
        let result = eventually("its children", || std::fs::read_to_string(stage.sandbox.path("result")).ok());
        assert_eq!((result.as_str(), is_alive(pid)), ("42 0 5", true));
        drop(running);
        stage.nothing_is_left();
    }
}

const FLASK: &str = "\
from flask import Flask

app = Flask(__name__)

@app.route('/')
def hello():
    word = 'one'
    return word  # STOP

app.run(port=0, use_reloader=True)
";

/// The cursor behind the words, once the program has printed them since a cursor; and what follows them.
fn printed(stage: &ScenarioSandbox, since: u64, words: &str) -> (String, u64) {
    eventually(words, || {
        let output = stage.json(&["debug", "output", "--since", &since.to_string()]);
        let text: String = output["entries"].as_array()?.iter().filter_map(|entry| entry["text"].as_str()).collect();
        let (_, rest) = text.split_once(words)?;
        let next = rest.split_whitespace().next().unwrap_or_default().to_owned();
        Some((next, output["cursor"].as_u64()?))
    })
}

/// The answer of the server.
fn get(at: &str) -> String {
    let mut answer = String::new();
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Stops in the server's answer to a request, lets it answer, and returns the process that has stopped.
fn stops_in_answer(stage: &ScenarioSandbox, at: &str, word: &str) -> u64 {
    let asked = at.to_owned();
    let answer = std::thread::spawn(move || get(&asked));
    let stop = stage.json(&["debug", "wait", "100"]);
    stage.check(&stop, "BREAKPOINT_HIT", "STOP");
    assert_eq!(ScenarioSandbox::local(&stop, "word"), format!("'{word}'"));
    let status = stage.json(&["debug", "status"]);
    let stopped = targets(&status).iter().find(|target| target["state"] == "STOPPED").unwrap();
    assert_eq!(stopped["parent"], 0, "the reloader has started it: {status:#}");
    stage.json(&["debug", "continue"]);
    assert!(answer.join().unwrap().ends_with(word));
    stopped["pid"].as_u64().unwrap()
}

#[test]
fn breakpoints_are_hit_in_the_child_of_flasks_reloader_and_in_the_next_one() {
    let (Some(stage), Some(environment)) =
        (ScenarioSandbox::with("debugpy", "server.py", FLASK), installed_tool("flask"))
    else {
        return;
    };
    symlink(environment, stage.sandbox.path(".venv")).unwrap();
    run_command(stage.sandbox.command(["trust", "--programs", "--yes"])).ok();
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "server.py"]);
    let (at, _) = printed(&stage, 0, "Running on http://");
    let first = stops_in_answer(&stage, &at, "one");
    let (_, cursor) = printed(&stage, 0, "Restarting with");
    stage.sandbox.write("server.py", &FLASK.replace("'one'", "'two'"));
    // The reloader keeps the socket: who asks now waits for the next child.
    printed(&stage, cursor, "Restarting with");
    assert_ne!(stops_in_answer(&stage, &at, "two"), first);
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
    stage.nothing_is_left();
}
