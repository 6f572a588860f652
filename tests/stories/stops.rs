//! Stops: where the program is, what can be read there, steps, pauses, waits, probes.

use serde_json::{Value, json};

use crate::programs::{NODE, NODE_LOOP, PYTHON, PYTHON_LOOP};
use crate::story::{Story, has_ended, pid, play, session_of, stop_line};
use crate::support::is_alive;

/// What the program has counted. It may be paused while Node itself begins: there is no `globalThis` then.
const NODE_TURNS: &str = "typeof globalThis === 'undefined' ? 0 : globalThis.turns ?? 0";

/// Stopped in `total()`.
fn stopped(story: &mut Story, file: &str) -> Value {
    story.breaks(file, "STOP");
    story.launch_to(file, "STOP")
}

#[test]
fn told_where_a_step_ended_the_program_is_there() {
    play(&["node"], &[("app.js", NODE)], |story| {
        story.breaks("app.js", "CALL");
        story.launch_to("app.js", "CALL");
        let inside = story.call("debug_step", json!({"kind": "into", "wait": 60}));
        assert_eq!(inside["stopReason"]["location"]["methodName"], "total", "{inside:#}");
        assert_eq!(story.evaluate("typeof order + order"), "'number1'");
        let next = story.call("debug_step", json!({"kind": "over", "wait": 60}));
        story.is_at(&next, "app.js", "STOP");
        assert_eq!(story.evaluate("amount"), "2");
        let out = story.call("debug_step", json!({"kind": "out", "wait": 60}));
        assert_eq!(stop_line(&out), Some(story.line("app.js", "CALL")), "{out:#}");
        assert!(story.call("debug_source", json!({}))["text"].as_str().unwrap().contains("→"));
    });
}

#[test]
fn told_paused_the_stack_can_be_read_and_told_running_the_program_moves_on() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| {
        story.call("debug_launch", json!({"program": "turns.js"}));
        let mut last = 0;
        for _ in 0..3 {
            let paused = story.call("debug_pause", json!({"wait": 60}));
            assert_eq!(
                (&paused["stopped"], &paused["stopReason"]["type"]),
                (&json!(true), &json!("USER_SUSPEND")),
                "{paused:#}"
            );
            assert!(!story.call("debug_stack", json!({}))["frames"].as_array().unwrap().is_empty());
            let turns: u64 = story.evaluate(NODE_TURNS).parse().unwrap();
            assert!(turns >= last, "{turns} {last}");
            last = turns + 1;
            story.call("debug_continue", json!({"wait": 0.1}));
        }
    });
}

#[test]
fn told_running_after_a_resume_a_wait_never_returns_the_stop_before() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        story.breaks("turns.py", "TURN");
        let stop = story.launch("turns.py");
        let mut turns: u64 = story.evaluate("turns").parse().unwrap();
        assert_eq!(stop["stopReason"]["details"]["hitCount"], turns, "{stop:#}");
        for _ in 0..5 {
            story.call("debug_continue", json!({}));
            let stop = story.call("wait_for_stop", json!({"timeout": 60}));
            turns += 1;
            assert_eq!(stop["stopReason"]["details"]["hitCount"], turns, "{stop:#}");
            assert_eq!(story.evaluate("turns"), turns.to_string());
        }
    });
}

#[test]
fn told_the_stop_by_two_pipelined_calls_both_name_one_that_the_resume_led_to() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        story.breaks("turns.py", "TURN");
        story.launch("turns.py");
        for turns in 2..7 {
            let [resume, evaluate] =
                story.agent.send([("debug_continue", json!({"wait": 60})), ("wait_for_stop", json!({"timeout": 60}))]);
            let resumed = story.agent.answer(resume);
            assert_eq!(resumed["stopReason"]["details"]["hitCount"], turns, "{resumed:#}");
            // Sent before the answer to the resume: the stop before it, or the one after.
            let hits = story.agent.answer(evaluate)["stopReason"]["details"]["hitCount"].as_u64().unwrap();
            assert!(hits == turns || hits == turns - 1, "{hits} {turns}");
            assert_eq!(story.evaluate("turns"), turns.to_string());
        }
    });
}

#[test]
fn told_that_nothing_stopped_in_time_the_program_runs_and_can_be_paused() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        story.breaks("turns.py", "TURN");
        let launched = story.launch_to("turns.py", "TURN");
        story.call("breakpoint_remove", json!({"all": true}));
        story.call("debug_continue", json!({}));
        let waited = story.call("wait_for_stop", json!({"timeout": 0.2}));
        assert_eq!((&waited["stopped"], &waited["state"]), (&json!(false), &json!("RUNNING")), "{waited:#}");
        assert!(is_alive(pid(&launched)));
        let paused = story.call("debug_pause", json!({"wait": 60}));
        assert_eq!(paused["stopped"], true, "{paused:#}");
        assert!(story.evaluate("turns").parse::<u64>().is_ok());
    });
}

#[test]
fn told_that_it_has_run_to_a_line_it_is_there_and_no_breakpoint_is_left() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "CALL");
        story.launch("app.py");
        story.call("breakpoint_remove", json!({"all": true}));
        let place = story.at("app.py", "STOP");
        let stop = story.call("debug_run_to", json!({"file": place, "wait": 60}));
        story.is_at(&stop, "app.py", "STOP");
        assert_eq!(story.evaluate("amount"), "2");
        assert_eq!(story.call("breakpoint_list", json!({}))["breakpoints"], json!([]));
        has_ended(&story.resume(), 7);
    });
}

#[test]
fn told_a_frame_and_a_reference_they_can_be_read_by_another_front_end() {
    let text = "function show(order) {\n  return order.items.length; // STOP\n}\nconst name = 'outer';\nconsole.log(show({ items: [1, 2, 3] }), name);\n";
    play(&["node"], &[("app.js", text)], |story| {
        let stop = stopped(story, "app.js");
        let order = stop["snapshot"]["locals"].as_array().unwrap().iter().find(|it| it["name"] == "order").unwrap();
        let inside = story.cli(&["debug", "variables", "--in", &order["variablesReference"].to_string()]);
        assert!(inside["variables"].to_string().contains("items"), "{inside:#}");
        let outer = stop["snapshot"]["frames"][1]["frameId"].to_string();
        assert_eq!(story.cli(&["debug", "evaluate", "name", "--frame", &outer])["result"], "'outer'");
    });
}

#[test]
fn told_a_reference_of_a_stop_that_is_over_it_is_refused_and_the_new_one_can_be_read() {
    let text = "for (const order of [{ id: 1 }, { id: 2 }]) {\n  console.log(order.id); // STOP\n}\n";
    play(&["node"], &[("app.js", text)], |story| {
        let reference = |stop: &Value| {
            let locals = stop["snapshot"]["locals"].as_array().unwrap().clone();
            locals.iter().find(|it| it["name"] == "order").unwrap()["variablesReference"].clone()
        };
        let first = reference(&stopped(story, "app.js"));
        let second = reference(&story.resume());
        let inside = story.call("debug_variables", json!({"variablesReference": second}));
        assert_eq!(inside["variables"][0]["value"], "2", "{inside:#}");
        if first != second {
            let [old] = story.agent.send([("debug_variables", json!({"variablesReference": first}))]);
            let old = story.agent.result(old);
            assert!(old["isError"] == true, "a reference of the stop before: {old:#}");
        }
    });
}

#[test]
fn told_a_value_with_an_effect_the_next_value_has_it_and_so_has_the_program() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        stopped(story, "app.py");
        story.call(
            "debug_evaluate",
            json!({"expression": "globals().update(total=lambda order: 100)", "context": "repl"}),
        );
        assert_eq!(story.evaluate("globals()['total'](1)"), "100");
        let ended = story.resume();
        has_ended(&ended, 7);
        assert_eq!(story.printed(), "total 2\ntotal 100\ntotal 100\n");
    });
}

#[test]
fn told_the_values_of_a_probe_nothing_of_it_is_left() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let at = story.at("app.py", "STOP");
        for _ in 0..2 {
            let probed = story.call("debug_probe", json!({"at": at, "expressions": ["amount + 1"], "timeout": 60}));
            story.nothing_runs();
            assert_eq!(probed["values"][0]["result"], "3", "{probed:#}");
            assert_eq!(story.call("breakpoint_list", json!({}))["breakpoints"], json!([]));
            assert_eq!(story.call("debug_status", json!({}))["sessions"], json!([]));
        }
    });
}

#[test]
fn told_that_variables_were_left_out_the_rest_can_be_read_and_none_is_missing() {
    let text = "const all = Array.from({ length: 230 }, (_, at) => at * 2);\nconsole.log(all.length); // STOP\n";
    play(&["node"], &[("app.js", text)], |story| {
        let stop = stopped(story, "app.js");
        let locals = stop["snapshot"]["locals"].as_array().unwrap();
        let reference = locals.iter().find(|it| it["name"] == "all").unwrap()["variablesReference"].clone();
        let mut values = Vec::new();
        loop {
            let page = story
                .call("debug_variables", json!({"variablesReference": reference, "start": values.len(), "count": 100}));
            let numbers = page["variables"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| it["name"].as_str().unwrap().parse::<usize>().is_ok());
            values.extend(numbers.map(|it| it["value"].as_str().unwrap().parse::<u64>().unwrap()));
            if page.get("truncated").is_none() {
                break;
            }
        }
        assert_eq!(values, (0..230).map(|at| at * 2).collect::<Vec<u64>>());
    });
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
fn told_two_threads_are_stopped_each_can_be_inspected_and_continued_alone() {
    play(&["node"], &[("workers.js", WORKERS)], |story| {
        story.breaks("workers.js", "MAIN");
        story.breaks("workers.js", "WORKER");
        story.launch("workers.js");
        let both = crate::support::eventually("two stops", || {
            let told = story.call("wait_for_stop", json!({"timeout": 60}));
            told["alsoStopped"].is_array().then_some(told)
        });
        for stop in [&both["stopReason"], &both["alsoStopped"][0]] {
            let stack = story.call("debug_stack", json!({"threadId": stop["threadId"]}));
            assert_eq!(stack["frames"][0]["line"], stop["location"]["lineNumber"], "{stack:#}");
        }
        let other = both["alsoStopped"][0]["threadId"].clone();
        story.call("debug_continue", json!({"threadId": other}));
        let left = story.call("wait_for_stop", json!({"timeout": 60}));
        assert_eq!(left["stopReason"]["threadId"], both["stopReason"]["threadId"], "{left:#}");
    });
}

#[test]
fn told_a_stop_by_wait_for_any_its_session_is_stopped_there_for_everyone() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "STOP");
        let cursor = story.cli(&["timeline"])["cursor"].clone();
        let wait = json!({"kinds": ["stopped"], "since": cursor, "timeout": 60});
        let [wait, launch] = story.agent.send([("wait_for_any", wait), ("debug_launch", json!({"program": "app.py"}))]);
        let told = story.agent.answer(wait);
        let session = told["events"][0]["sessionId"].as_str().unwrap_or_else(|| panic!("{told:#}")).to_owned();
        assert_eq!(story.cli(&["debug", "evaluate", "amount", "--session", &session])["result"], "2");
        let status = story.cli(&["debug", "status", &session]);
        story.is_at(&status, "app.py", "STOP");
        assert_eq!(session_of(&story.agent.answer(launch)), session);
    });
}
