//! Tests of the rendered debug results.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::api::{OPERATIONS, OperationGroup};
use crate::frontends::render::render_text;

fn stop() -> Value {
    json!({
        "type": "BREAKPOINT_HIT", "threadId": 1, "threadName": "MainThread",
        "location": {"methodName": "total", "lineNumber": 22, "sourcePath": "app.py"}, "details": {"breakpointId": 1},
    })
}

fn samples() -> Vec<(&'static str, Value, &'static str)> {
    let running = json!({"sessionId": "s1", "stopped": false, "state": "RUNNING", "waitedMs": 2001,
                         "message": "no stop within 2 s"});
    let exited = json!({"sessionId": "s1", "stopped": false, "state": "TERMINATED", "waitedMs": 3, "exitCode": 3});
    let gone = json!({"sessionId": "s1", "stopped": false, "state": "DISCONNECTED", "waitedMs": 3,
                      "message": "the adapter ended (signal 9)"});
    let stepped = json!({"sessionId": "s1", "stopped": true, "state": "STOPPED", "waitedMs": 1, "stopReason": {
        "type": "STEP_COMPLETE", "threadId": 4,
        "location": {"className": "Order", "methodName": "<init>", "lineNumber": 3}}});
    let full = json!({
        "sessionId": "s1", "stopped": true, "state": "STOPPED", "waitedMs": 12, "stopReason": stop(),
        "adapter": "debugpy", "pid": 7, "runtime": "/usr/bin/python3.11",
        "alsoStopped": [{"type": "USER_SUSPEND", "threadName": "worker"}],
        "snapshot": {
            "frames": [{"frameId": 2, "name": "total", "file": "app.py", "line": 22, "column": 1},
                       {"frameId": 3, "name": "<module>", "file": "app.py", "line": 30, "column": 5}],
            "locals": [{"name": "sum", "value": "3", "type": "int"},
                       {"name": "order", "value": "Order()", "variablesReference": 5}],
            "source": {"file": "app.py", "line": 22, "text": "  21  sum = 3\n→ 22  return sum\n"},
            "output": "order 1\n",
            "cut": ["4 more frames: `tether debug stack`"],
        },
        "breakpoints": [{"breakpointId": 1, "state": "verified", "file": "app.py", "line": 22},
                        {"breakpointId": 2, "state": "unbound", "file": "app.py", "line": 99, "message": "no code there"}],
        "notes": ["it is 2 s old"],
    });
    let set = json!({"breakpointId": 1, "state": "verified", "file": "app.py", "line": 22, "condition": "x > 3",
                     "hitCondition": ">=2", "hitCount": 4});
    let watched = json!({"breakpointId": 2, "state": "pending", "expression": "Order.total", "access": "write"});
    let list = json!({
        "breakpoints": [set, watched,
            {"breakpointId": 3, "state": "pending", "function": "main", "logMessage": "at {x}"},
            {"breakpointId": 4, "state": "unbound", "file": "b.py", "line": 3, "drift": "lost", "message": "deleted"}],
        "exceptions": {"caught": false, "uncaught": true, "class": "ValueError", "filters": ["raised"]},
    });
    let none = json!({"breakpoints": [], "exceptions": {"caught": false, "uncaught": false}});
    vec![
        (
            "debug/launch",
            full.clone(),
            "session s1 (debugpy, pid 7, python3.11)\n\
            s1 stopped: breakpoint 1 at app.py:22 in total(), thread MainThread\nalso stopped: paused, thread worker\n  \
            21  sum = 3\n→ 22  return sum\nlocals:\n  sum = 3\n  order = Order() [ref 5]\nframes:\n  \
            #2 total() at app.py:22\n  #3 <module> at app.py:30:5\noutput:\n    | order 1\n… 4 more frames: `tether debug stack`\n\
            note: it is 2 s old\nbreakpoint 2 at app.py:99: unbound (no code there)",
        ),
        (
            "debug/attach",
            json!({"sessionId": "s2", "stopped": false, "state": "RUNNING", "waitedMs": 0, "adapter": "js-debug"}),
            "session s2 (js-debug)\ns2 is running",
        ),
        ("debug/wait_for_stop", running, "s1 is running: no stop within 2 s"),
        ("debug/continue", exited, "s1 has ended with code 3"),
        ("debug/pause", gone, "s1 is disconnected: the adapter ended (signal 9)"),
        ("debug/step", stepped, "s1 stopped: step in Order.<init>, line 3, thread 4"),
        (
            "debug/run_to",
            json!({"sessionId": "s1", "stopped": true, "state": "STOPPED", "stopReason": {
            "type": "EXCEPTION", "details": {"exceptionType": "ValueError", "exceptionMessage": "bad\nvalue"}}}),
            "s1 stopped: exception ValueError: bad\n    | value",
        ),
        ("debug/status", json!({"sessions": []}), "no debug session: `tether debug launch PROGRAM` begins one"),
        (
            "debug/stop",
            json!({"sessionId": "s1", "state": "TERMINATED", "message": "stopped as asked"}),
            "s1 has ended: stopped as asked",
        ),
        (
            "debug/probe",
            json!({"stopped": true, "state": "TERMINATED", "waitedMs": 240, "stopReason": stop(),
            "frames": [], "locals": [], "values": [{"expression": "a.b", "result": "3"},
                {"expression": "c", "error": "NameError: c"}]}),
            "stopped: breakpoint 1 at app.py:22 in total(), thread MainThread (after 240 ms)\na.b = 3\nc: NameError: c",
        ),
        (
            "breakpoint/set",
            list["breakpoints"][0].clone(),
            "breakpoint 1 at app.py:22: verified, if x > 3, at hits >=2, hit 4 ×",
        ),
        ("watchpoint/set", list["breakpoints"][1].clone(), "watchpoint 2 on Order.total: pending, when it is written"),
        (
            "breakpoint/list",
            list,
            "breakpoint 1 at app.py:22: verified, if x > 3, at hits >=2, hit 4 ×\n\
            watchpoint 2 on Order.total: pending, when it is written\nbreakpoint 3 in main: pending, logs \"at {x}\"\n\
            breakpoint 4 at b.py:3: unbound, lost: its line is gone (deleted)\n\
            exceptions that stop: uncaught ones, of class ValueError, filters raised",
        ),
        ("breakpoint/remove", none.clone(), "no breakpoints"),
        ("breakpoint/export", none.clone(), "no breakpoints"),
        ("breakpoint/import", none.clone(), "no breakpoints"),
        (
            "breakpoint/exceptions",
            json!({"caught": false, "uncaught": false, "known": ["raised", "uncaught"]}),
            "exceptions: none stops the program\n  filters there are: raised, uncaught",
        ),
        (
            "debug/stack",
            json!({"frames": [{"frameId": 1, "name": "main(int)", "sourceReference": 4, "line": 2},
            {"frameId": 2, "name": "start", "line": 0}], "truncated": "3 more: startFrame 2"}),
            "  #1 main(int), line 2 of source 4\n  #2 start()\n… 3 more: startFrame 2",
        ),
        (
            "debug/variables",
            json!({"variables": [{"name": "a", "value": "1\n2"}], "scopes": [{"name": "Globals", "variablesReference": 9}]}),
            "  a = 1\n    | 2\nGlobals [ref 9]",
        ),
        ("debug/evaluate", json!({"result": "'x'", "type": "str"}), "'x'"),
        ("debug/set_variable", json!({"result": "{}", "variablesReference": 3}), "{} [ref 3]"),
        ("debug/source", json!({"file": "app.py", "line": 2, "text": "  1  a\n→ 2  b\n"}), "app.py\n  1  a\n→ 2  b"),
        (
            "debug/output",
            json!({"cursor": 5, "dropped": 2, "entries": [
            {"at": 1, "category": "stdout", "text": "a"}, {"at": 1, "category": "stdout", "text": "b\n"},
            {"at": 1, "category": "stderr", "text": "c"}, {"at": 1, "category": "stdout", "text": "d"}]}),
            "ab\n[stderr] c\nd\n2 dropped, cursor 5",
        ),
        (
            "debug/events",
            json!({"cursor": 1, "dropped": 0, "entries": [
            {"at": 1, "event": "threadStarted", "text": "worker", "threadId": 3}]}),
            "[threadStarted] worker (thread 3)\ncursor 1",
        ),
    ]
}

#[test]
fn every_debug_result_reads_as_sentences() {
    let samples = samples();
    for (method, answer, expect) in &samples {
        assert_eq!(render_text(method, answer), *expect, "{method}");
    }
    let reported: HashSet<_> = samples.iter().map(|(method, ..)| *method).collect();
    let all = OPERATIONS.iter().filter(|row| row.group == OperationGroup::Debug).map(|row| row.method);
    assert_eq!(reported, all.collect::<HashSet<_>>());
}

#[test]
fn the_state_of_a_session_tells_its_threads_targets_and_exception() {
    let mut session = json!({
        "sessionId": "s1", "name": "app.js", "adapter": "js-debug", "connected": true, "vmName": "Node 20",
        "state": "STOPPED", "stopReason": stop(), "startedAt": u64::MAX, "pid": 7, "stale": true,
        "suspendedThreads": [{"threadId": 1, "name": "MainThread"},
                             {"threadId": 2, "name": "worker", "stopReason": {"type": "USER_SUSPEND"}}],
        "runningThreads": [{"threadId": 3, "name": "io"}],
        "targets": [{"name": "app.js", "state": "STOPPED"}, {"name": "worker.js", "state": "RUNNING"}],
        "exception": {"class": "TypeError", "message": "x is undefined", "stack": "at a\nat b\n"},
    });
    let reported = "s1 app.js (js-debug, Node 20, pid 7, up 0 ms) stopped: breakpoint 1 at app.py:22 in total(), thread MainThread\n  \
        TypeError: x is undefined\n    | at a\n    | at b\n  suspended thread 1 MainThread\n  suspended thread 2 worker: paused\n  \
        running thread 3 io\n  target app.js: is stopped\n  target worker.js: is running\n  \
        note: a source file has changed since it began: `restart` of launch runs the new code";
    assert_eq!(render_text("debug/status", &session), reported);
    session["runningThreads"] = (0..30).map(|id| json!({"threadId": id, "name": "t"})).collect();
    assert!(render_text("debug/status", &session).contains("… and 20 more running threads"));

    let ended = json!({"sessionId": "s2", "name": "b.py", "adapter": "debugpy", "connected": false, "startedAt": 1,
                       "state": "TERMINATED", "exitCode": 0, "endedAt": u64::MAX});
    let both = json!({"sessions": [ended, ended]});
    let line = "s2 b.py (debugpy, ended 0 ms ago) has ended with code 0";
    assert_eq!(render_text("debug/status", &both), format!("{line}\n{line}"));
}

#[test]
fn each_type_of_stop_has_its_words() {
    let check = |kind: &str, details: Value, expect: &str| {
        let answer = json!({"sessionId": "", "stopped": true, "state": "STOPPED",
                            "stopReason": {"type": kind, "details": details}});
        assert_eq!(render_text("debug/step", &answer), format!("stopped: {expect}"));
    };
    check("BREAKPOINT_HIT", json!({}), "a breakpoint");
    check("BREAKPOINT_HIT", json!({"breakpointId": 3, "hitCount": 2}), "breakpoint 3 (hit 2)");
    check("STEP_COMPLETE", json!({}), "step");
    check("EXCEPTION", json!({}), "exception");
    check("EXCEPTION", json!({"text": "SIGSEGV"}), "exception SIGSEGV");
    check("WATCHPOINT_ACCESS", json!({"fieldName": "total"}), "total was read");
    check(
        "WATCHPOINT_MODIFY",
        json!({"fieldName": "total", "oldValue": "1", "newValue": "2"}),
        "total was written (1 → 2)",
    );
    check("WATCHPOINT_MODIFY", json!({}), "a watched value was written");
    check("METHOD_ENTRY", json!({}), "a method begins");
    check("METHOD_EXIT", json!({}), "a method ends");
    check("VM_START", json!({}), "the VM has started");
    check("VM_DEATH", json!({}), "the VM ends");
    check("USER_SUSPEND", json!({}), "paused");
    check("ENTRY", json!({}), "entry");
}
