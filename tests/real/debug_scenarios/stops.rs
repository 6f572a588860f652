//! S1–S8, E2, E4, E5: stop reasons and waits for a stop.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::listening_with_debugpy;
use crate::support::scenario_sandbox::{ScenarioSandbox, found};

const LOOP: &str = "\
import time

def total(order):
    result = order * 2
    return result  # RETURN

def main():
    number = 0
    while number < 3000:
        value = total(number)  # CALL
        number += 1  # AFTER
    print(value)

main()
";

/// A program that waits for its debugger.
fn listening(stage: &ScenarioSandbox) -> (crate::support::scenario_sandbox::Running, String) {
    let debugpy = found("debugpy").unwrap();
    let command = listening_with_debugpy(&debugpy, &stage.sandbox.path(stage.file), true);
    let (running, line) = stage.starts(command, "port ");
    let port = line.strip_prefix("port ").unwrap().to_owned();
    (running, port)
}

#[test]
fn a_breakpoint_in_a_loop_is_hit_each_time_and_steps_advance() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "äpp.py", LOOP) else { return };
    let set = stage.breaks("CALL");
    assert_eq!(set["state"], "pending");
    let (mut running, port) = listening(&stage);
    let attached = stage.json(&["debug", "attach", &port, "--language", "python", "--wait", "60"]);
    stage.check(&attached, "BREAKPOINT_HIT", "CALL");
    let status = stage.json(&["debug", "status"]);
    stage.check(&status, "BREAKPOINT_HIT", "CALL");
    assert_eq!(status["stopReason"]["details"]["breakpointId"], set["breakpointId"]);
    assert_eq!(status["stopReason"]["details"]["hitCount"], 1);
    assert_eq!(ScenarioSandbox::local(&attached, "number"), "0");
    let again = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&again, "BREAKPOINT_HIT", "CALL");
    assert_eq!(
        (again["stopReason"]["details"]["hitCount"].as_u64(), ScenarioSandbox::local(&again, "number")),
        (Some(2), "1")
    );

    let over = stage.json(&["debug", "step", "over", "--wait", "60"]);
    stage.check(&over, "STEP_COMPLETE", "AFTER");
    stage.json(&["debug", "continue", "--wait", "60"]);
    let into = stage.json(&["debug", "step", "into", "--wait", "60"]);
    assert_eq!(into["stopReason"]["type"], "STEP_COMPLETE");
    assert_eq!(into["stopReason"]["location"]["methodName"], "total");
    let out = stage.json(&["debug", "step", "out", "--wait", "60"]);
    assert_eq!(out["stopReason"]["location"]["methodName"], "main");
    // The attached program is detached and keeps running.
    let ended = stage.json(&["debug", "stop"]);
    assert_eq!(ended["state"], "TERMINATED");
    assert!(running.0.wait().unwrap().success(), "it was let go, and run_command to its end");
}

const SLEEPS: &str = "\
import time
time.sleep(1)
print('slept')  # STOP
while True:
    time.sleep(0.01)  # SPIN
";

#[test]
fn a_wait_ends_with_the_stop_or_in_time_or_at_once() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "sleeps.py", SLEEPS) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "sleeps.py"]);
    let waited = stage.json(&["debug", "wait", "60"]);
    stage.check(&waited, "BREAKPOINT_HIT", "STOP");
    assert!(waited["waitedMs"].as_u64().unwrap() < 60_000);
    let at_once = stage.json(&["debug", "wait", "60"]);
    stage.check(&at_once, "BREAKPOINT_HIT", "STOP");
    assert!(at_once["waitedMs"].as_u64().unwrap() < 1_000, "{at_once}");
    stage.json(&["debug", "continue"]);
    let begun = Instant::now();
    let in_vain = stage.json(&["debug", "wait", "2"]);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert_eq!((in_vain["stopped"].as_bool(), in_vain["state"].as_str()), (Some(false), Some("RUNNING")));
    assert!(in_vain["waitedMs"].as_u64().unwrap() >= 2_000 && in_vain["message"].is_string(), "{in_vain}");
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
    assert_eq!(stage.others(), []);
}

const RAISES: &str = "\
def careful():
    try:
        raise KeyError('other')
    except KeyError:
        pass
    try:
        raise ValueError('caught')  # CAUGHT
    except ValueError:
        pass

careful()
raise ValueError('uncaught')  # UNCAUGHT
";

#[test]
fn exceptions_of_a_class_stop_caught_and_uncaught_with_class_message_and_stack() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "raises.py", RAISES) else { return };
    stage.json(&["break", "exceptions", "--caught", "--uncaught", "--class", "ValueError"]);
    let caught = stage.json(&["debug", "launch", "raises.py", "--wait", "60"]);
    stage.check(&caught, "EXCEPTION", "CAUGHT");
    let details = &caught["stopReason"]["details"];
    assert_eq!(
        (details["exceptionType"].as_str(), details["exceptionMessage"].as_str()),
        (Some("ValueError"), Some("caught"))
    );
    let exception = stage.json(&["debug", "status"])["exception"].clone();
    assert_eq!((exception["class"].as_str(), exception["message"].as_str()), (Some("ValueError"), Some("caught")));
    assert!(exception["stack"].as_str().unwrap().contains("careful"), "{exception}");
    let uncaught = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&uncaught, "EXCEPTION", "UNCAUGHT");
    assert_eq!(uncaught["stopReason"]["details"]["exceptionMessage"], "uncaught");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

const SHARED: &str = "\
#include <stdio.h>
int shared = 1;
int reads(void) { return shared + 1; } // READ
int main(void) {
  int sum = 0;
  for (int number = 0; number < 3; number++) { // START
    sum += reads();
    shared = sum; // WRITE
  }
  printf(\"%d\\n\", sum);
  return 0;
}
";

#[test]
fn a_watchpoint_stops_on_reads_or_on_writes_with_the_old_and_the_new_value() {
    let Some(stage) = ScenarioSandbox::with("lldb-dap", "shared.c", SHARED) else { return };
    if !crate::support::requirements::has_hardware_watchpoints() {
        return;
    }
    let built = std::process::Command::new("cc")
        .args(["-g", "-O0", "-o", "shared", "shared.c"])
        .current_dir(&stage.sandbox.workspace)
        .status();
    assert!(built.unwrap().success());
    stage.breaks("START");
    let launched = stage.json(&["debug", "launch", "shared", "--adapter", "lldb-dap", "--wait", "60"]);
    stage.check(&launched, "BREAKPOINT_HIT", "START");
    stage.json(&["break", "remove", "--all"]);
    let watch = stage.json(&["break", "watch", "shared", "--access", "write"]);
    assert_eq!(watch["state"], "verified", "{watch}");
    let written = stage.json(&["debug", "continue", "--wait", "60"]);
    let details = &written["stopReason"]["details"];
    assert_eq!(written["stopReason"]["type"], "WATCHPOINT_MODIFY", "{written}");
    assert_eq!(details["fieldName"], "shared");
    assert_eq!((details["oldValue"].as_str(), details["newValue"].as_str()), (Some("1"), Some("2")), "{written}");
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["break", "watch", "shared", "--access", "read"]);
    let read = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(read["stopReason"]["type"], "WATCHPOINT_ACCESS", "{read}");
    assert_eq!(read["stopReason"]["details"]["fieldName"], "shared");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

const THREADS: &str = "\
import threading, time

def work(name):
    print(name, flush=True)

for number in range(3):
    thread = threading.Thread(target=work, args=(f'worker {number}',))
    thread.start()
    thread.join()
print('all done', flush=True)
while True:
    time.sleep(0.01)
";

#[test]
fn monitoring_does_not_stop_and_its_events_are_read_once_or_peeked_at() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "threads.py", THREADS) else { return };
    stage.json(&["debug", "launch", "threads.py"]);
    crate::support::eventually("output", || {
        let printed = stage.json(&["debug", "output"])["entries"].to_string();
        printed.contains("all done").then_some(())
    });
    let started = |answer: &Value| {
        let entries = answer["entries"].as_array().unwrap();
        entries.iter().filter(|it| it["event"] == "threadStarted").count()
    };
    let first = stage.json(&["debug", "events"]);
    assert!(started(&first) >= 3, "{first}");
    // Without a cursor events are peeked at; with it each is returned once.
    assert_eq!(started(&stage.json(&["debug", "events"])), started(&first));
    let cursor = first["cursor"].to_string();
    assert_eq!(started(&stage.json(&["debug", "events", "--since", &cursor])), 0);
    assert_eq!(stage.json(&["debug", "status"])["state"], "RUNNING");
    stage.json(&["debug", "stop"]);
}

const WORKERS: &str = "\
const { Worker, isMainThread, workerData } = require('node:worker_threads');
if (isMainThread) {
  const both = new Int32Array(new SharedArrayBuffer(4));
  new Worker(__filename, { workerData: both });
  Atomics.wait(both, 0, 0);
  console.log('main'); // MAIN
} else {
  Atomics.store(workerData, 0, 1);
  Atomics.notify(workerData, 0);
  console.log('worker'); // WORKER
}
";

#[test]
fn several_threads_stop_the_first_is_primary_and_all_are_listed() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "workers.js", WORKERS) else { return };
    stage.breaks("MAIN");
    stage.breaks("WORKER");
    stage.json(&["debug", "launch", "workers.js", "--wait", "60"]);
    let both = crate::support::eventually("two stops", || {
        let status = stage.json(&["debug", "status"]);
        let stopped: Vec<Value> = status["suspendedThreads"].as_array().unwrap().clone();
        let own: Vec<Value> = stopped.iter().filter(|it| it["stopReason"].is_object()).cloned().collect();
        (own.len() == 2).then_some((status, own))
    });
    let (status, threads) = both;
    let mut lines: Vec<u64> =
        threads.iter().map(|it| it["stopReason"]["location"]["lineNumber"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [stage.line("MAIN"), stage.line("WORKER")]);
    let waited = stage.json(&["debug", "wait", "1"]);
    assert_eq!(waited["stopReason"]["threadId"], status["stopReason"]["threadId"], "the first stays primary");
    assert_eq!(waited["alsoStopped"].as_array().unwrap().len(), 1);
    // Each thread resumes separately.
    let other = waited["alsoStopped"][0]["threadId"].to_string();
    stage.json(&["debug", "continue", "--thread", &other]);
    stage.check(&stage.json(&["debug", "status"]), "BREAKPOINT_HIT", {
        let primary = waited["stopReason"]["location"]["lineNumber"].as_u64().unwrap();
        if primary == stage.line("MAIN") { "MAIN" } else { "WORKER" }
    });
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

#[test]
fn a_step_into_native_code_comes_back_as_a_stop() {
    let text = "words = ['b', 'a']\nwords.sort()  # NATIVE\nprint(words)  # AFTER\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "native.py", text) else { return };
    stage.breaks("NATIVE");
    stage.json(&["debug", "launch", "native.py", "--wait", "60"]);
    stage.check(&stage.json(&["debug", "step", "into", "--wait", "60"]), "STEP_COMPLETE", "AFTER");
    stage.json(&["debug", "stop"]);
}

#[test]
fn a_program_that_is_launched_suspended_stops_at_its_entry_and_resuming_starts_it() {
    for (adapter, file, text) in [
        ("debugpy", "entry.py", "print('begun')  # FIRST\nprint('up')\n"),
        ("node", "entry.js", "console.log('begun'); // FIRST\nconsole.log('up');\n"),
    ] {
        let Some(stage) = ScenarioSandbox::with(adapter, file, text) else { continue };
        let launched = stage.json(&["debug", "launch", file, "--stop-on-entry", "--wait", "60"]);
        stage.check(&launched, "ENTRY", "FIRST");
        let ended = stage.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "{ended}");
        assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("up"));
    }
}

const BUNDLE: &str = "\
var __defProp = Object.defineProperty;
var __copyProps = (to, from) => to;
function parse(name) {
  const path = name + '.json';
  throw new Error(path); // THROW
}
try { parse('missing'); } catch (error) { console.log('caught'); }
console.log('end'); // END
";

#[test]
fn frames_of_node_are_one_line_and_helpers_of_a_bundler_are_no_locals() {
    let Some(stage) = ScenarioSandbox::with("js-debug", "bundle.js", BUNDLE) else { return };
    stage.json(&["break", "exceptions", "--caught"]);
    let thrown = stage.json(&["debug", "launch", "bundle.js", "--wait", "60"]);
    stage.check(&thrown, "EXCEPTION", "THROW");
    let frames = thrown["snapshot"]["frames"].as_array().unwrap();
    // Below the user's two frames is what loads a program.
    let counts: Vec<u64> = frames.iter().map(|frame| frame["folded"].as_u64().unwrap_or_default()).collect();
    assert!(counts.len() == 3 && counts[..2] == [0, 0] && counts[2] > 2, "{thrown:#}");
    assert_eq!(frames[2]["name"], "Node", "{thrown:#}");
    let text = stage.sandbox.tether(&["debug", "wait"]).ok().stdout;
    assert!(text.contains(" frames of Node\n") && !text.contains("node_internals"), "{text}");
    // At the top of the module, where its helpers are locals.
    stage.json(&["break", "exceptions", "--caught=false"]);
    let end = stage.json(&["debug", "run-to", &stage.at("END"), "--wait", "60"]);
    let locals = end["snapshot"]["locals"].to_string();
    assert!(!locals.contains("__defProp") && !locals.contains("__copyProps"), "{end:#}");
    assert!(end["snapshot"]["cut"].to_string().contains("2 helpers of the bundler"), "{end:#}");
    stage.json(&["debug", "stop"]);
}

const THROWS: &str = "\
#include <stdexcept>
int total(int order) {
  int amount = order * 2;
  throw std::runtime_error(\"no\"); // THROW
}
int main() {
  try { total(21); } catch (const std::exception &) { return 3; }
}
";

#[test]
fn an_exception_shows_the_first_line_of_the_users_code_and_a_failure_says_its_code() {
    let Some(stage) = ScenarioSandbox::with("lldb-dap", "throws.cpp", THROWS) else { return };
    let mut compiler = std::process::Command::new("c++");
    compiler.args(["-g", "-O0", "-o", "throws", "throws.cpp"]).current_dir(&stage.sandbox.workspace);
    assert!(compiler.status().unwrap().success());
    stage.json(&["break", "exceptions", "--caught"]);
    let thrown = stage.json(&["debug", "launch", "throws", "--adapter", "lldb-dap", "--wait", "60"]);
    stage.check(&thrown, "EXCEPTION", "THROW");
    assert_eq!(ScenarioSandbox::local(&thrown, "amount"), "42");
    let snapshot = &thrown["snapshot"];
    assert!(snapshot["source"]["text"].as_str().unwrap().contains("→ 4"), "{thrown:#}");
    let frames = snapshot["frames"].as_array().unwrap();
    assert_eq!((&frames[0]["folded"], &frames[0]["name"]), (&json!(1), &json!("the C runtime")), "{thrown:#}");
    assert_eq!(frames[1]["frameId"], snapshot["frameId"], "{thrown:#}");
    stage.json(&["break", "exceptions", "--caught=false"]);
    let ended = stage.json(&["debug", "run-to", &stage.at("THROW"), "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(3)), "{ended:#}");
    let message = ended["message"].as_str().unwrap();
    let line = stage.line("THROW");
    assert_eq!(message, format!("throws.cpp:{line} was never reached: the program has ended with code 3"));
    stage.nothing_is_left();
}

#[test]
fn the_end_of_a_program_that_fails_has_its_last_output() {
    let text = "import sys\nprint('before')\nsys.exit('no coffee')  # END\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "fails.py", text) else { return };
    let ended = stage.json(&["debug", "launch", "fails.py", "--wait", "60"]);
    // Of two pipes, in whatever order they are read.
    let message = ended["message"].as_str().unwrap();
    let (end, printed) = message.split_once('\n').unwrap();
    assert_eq!(end, "the program has ended with code 1; it printed last:", "{ended:#}");
    assert!(printed.contains("before") && printed.contains("no coffee"), "{ended:#}");
    let killed = "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n";
    stage.sandbox.write("fails.py", killed);
    let ended = stage.json(&["debug", "launch", "fails.py", "--wait", "60"]);
    assert!(ended["message"].as_str().unwrap().contains("signal 9"), "{ended:#}");
    stage.nothing_is_left();
}

#[test]
fn a_breakpoint_may_be_on_one_of_several_places_of_a_line() {
    let text = "const twice = (n) => n * 2;\nconst all = [1, 2].map((n) => twice(n)).map((n) => n + 1); // LINE\nconsole.log(all);\n";
    let Some(stage) = ScenarioSandbox::with("js-debug", "app.js", text) else { return };
    let column = text.lines().nth(1).unwrap().find("n + 1").unwrap() + 1;
    let set = stage.json(&["break", "set", &format!("app.js:2:{column}")]);
    assert_eq!((&set["line"], &set["column"]), (&json!(2), &json!(column)), "{set}");
    let stopped = stage.json(&["debug", "launch", "app.js", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "LINE");
    assert_eq!(ScenarioSandbox::local(&stopped, "n"), "2", "in the second function: {stopped:#}");
    let bound = &stopped["snapshot"]["frames"][0]["column"];
    assert!(bound.as_u64().unwrap() >= column as u64, "{stopped:#}");
    let listed = stage.json(&["break", "list"])["breakpoints"][0].clone();
    assert_eq!((&listed["state"], &listed["column"]), (&json!("verified"), bound), "{listed}");
    stage.json(&["debug", "stop"]);
}

#[test]
fn the_log_tells_of_sessions_and_front_ends() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "äpp.py", LOOP) else { return };
    let id = stage.breaks("CALL")["breakpointId"].clone();
    let launched = stage.json(&["debug", "launch", "äpp.py", "--wait", "60"]);
    let session = launched["sessionId"].as_str().unwrap();
    stage.json(&["debug", "step", "over", "--wait", "60"]);
    let running = stage.json(&["debug", "continue"]);
    stage.json(&["debug", "wait", "60"]);
    assert!(running["message"].as_str().is_none_or(|text| text.contains("`tether debug wait`")), "{running}");
    stage.json(&["debug", "stop"]);
    assert!(launched["pid"].is_u64() && launched.get("adapterPid").is_none(), "it is the program's: {launched}");
    let log = stage.sandbox.tether(&["logs"]).ok().stdout;
    let at = format!("äpp.py:{}", stage.line("CALL"));
    for line in [
        format!("{session}: äpp.py begins, with debugpy"),
        format!("{session}: stopped: breakpoint {id} at "),
        at,
        format!("{session}: continues"),
        format!("{session}: stopped: step"),
        format!("{session}: ended"),
        "front end connected".to_owned(),
        "front end disconnected: the peer closed it".to_owned(),
    ] {
        assert!(log.contains(&line), "{line:?} is not in {log}");
    }
}
