//! Misbehaving programs and invalid requests: each gets a result or an error, and nothing hangs or is left running.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

const SPINS: &str = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.01)  # SPIN\n# a comment\n";

#[test]
fn a_program_that_exits_before_its_breakpoint_reports_its_exit() {
    let Some(stage) =
        ScenarioSandbox::with("debugpy", "short.py", "def never():\n    return 1  # NEVER\n\nprint('short')\n")
    else {
        return;
    };
    stage.breaks("NEVER");
    let ended = stage.json(&["debug", "launch", "short.py", "--wait", "60"]);
    assert_eq!((ended["stopped"].as_bool(), ended["state"].as_str()), (Some(false), Some("TERMINATED")), "{ended}");
    assert_eq!(ended["exitCode"], 0);
    stage.nothing_is_left();
    // The ended session stays readable; operations that need a running program are errors.
    assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("short"));
    stage
        .sandbox
        .tether(&["debug", "continue"])
        .fails(2, &["the program is not stopped", "TERMINATED", "tether debug launch"]);
    stage.sandbox.tether(&["debug", "evaluate", "1"]).fails(2, &["not stopped", "TERMINATED"]);
}

#[test]
fn a_crash_is_reported_and_leaves_no_process() {
    let text = "import os, time\ntime.sleep(0.3)\nos.abort()\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "crash.py", text) else { return };
    stage.json(&["debug", "launch", "crash.py"]);
    let ended = stage.json(&["debug", "wait", "60"]);
    assert_eq!(ended["stopped"], false, "{ended}");
    assert_eq!(ended["state"], "DISCONNECTED");
    assert!(ended["message"].as_str().unwrap().contains("ended by signal 6"), "{ended}");
    stage.nothing_is_left();
}

#[test]
fn a_program_that_forks_is_debugged_and_its_child_is_no_orphan() {
    let text = "import os, time\nchild = os.fork()\nif child == 0:\n    while True:\n        time.sleep(0.01)\nvalue = 1\nprint(value)  # PARENT\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "forks.py", text) else { return };
    stage.breaks("PARENT");
    let stopped = stage.json(&["debug", "launch", "forks.py", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "PARENT");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_hundred_megabytes_of_output_are_bounded_and_the_dropped_count_is_reported() {
    let text = "import sys\nline = 'x' * 999 + '\\n'\nfor number in range(100_000):\n    sys.stdout.write(line)\nprint('the end')  # END\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "floods.py", text) else { return };
    stage.breaks("END");
    let stopped = stage.json(&["debug", "launch", "floods.py", "--wait", "110"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "END");
    assert!(stopped["snapshot"]["output"].as_str().unwrap().len() < 10_000);
    assert!(stopped["snapshot"]["cut"].to_string().contains("`tether debug output`"), "{}", stopped["snapshot"]["cut"]);
    let output = stage.json(&["debug", "output", "--limit", "1", "--since", "1"]);
    assert!(output["dropped"].as_u64().unwrap() > 0 || output["more"].as_u64().unwrap() > 0, "{output}");
    let supervisor = stage.sandbox.supervisor().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 200 * 1024, "the supervisor took {peak} kB");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_million_elements_are_read_page_by_page() {
    let text = "const big = Array.from({ length: 1_000_000 }, (_, at) => at * 2);\nconsole.log(big.length); // STOP\n";
    let Some(stage) = ScenarioSandbox::with("js-debug", "big.js", text) else { return };
    stage.breaks("STOP");
    let stopped = stage.json(&["debug", "launch", "big.js", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    let big = stage.json(&["debug", "variables", "big"])["variables"][0]["variablesReference"].to_string();
    let read = |more: &[&str]| {
        let answer = stage.json(&[&["debug", "variables", "--in", &big], more].concat());
        let variables = answer["variables"].as_array().unwrap().iter();
        let report = variables.map(|it| format!("{}={}", it["name"].as_str().unwrap(), it["value"].as_str().unwrap()));
        (report.collect::<Vec<_>>().join(" "), answer["truncated"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(read(&["--count", "2"]), ("0=0 1=2".to_owned(), "999999 more: start 2".to_owned()));
    let (middle, _) = read(&["--start", "500000", "--count", "2"]);
    assert_eq!(middle, "500000=1000000 500001=1000002");
    let (end, left) = read(&["--start", "999999", "--count", "10"]);
    assert!(end.starts_with("999999=1999998 length=1000000") && left.is_empty(), "{end} {left}");
    assert_eq!(read(&["700000", "length"]).0, "700000=1400000 length=1000000");
    stage.sandbox.tether(&["debug", "variables", "--in", &big, "1000000"]).fails(3, &["no variable `1000000`"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn an_evaluation_that_never_ends_has_a_deadline_and_the_session_can_be_stopped() {
    let text = "def spin():\n    while True:\n        pass\n\nprint('here')  # STOP\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "endless.py", text) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "endless.py", "--wait", "60"]);
    // A reference of a target that does not exist.
    let never = (1u64 << 40).to_string();
    stage.sandbox.tether(&["debug", "set", "spin", "1", "--in", &never]).fails(3, &["there is no value", &never]);
    let begun = Instant::now();
    stage
        .sandbox
        .tether(&["debug", "evaluate", "spin()"])
        .fails(124, &["cannot evaluate `spin()`", "no response to evaluate within"]);
    assert!(begun.elapsed() < Duration::from_secs(60));
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn invalid_requests_are_refused_with_the_valid_ones() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "spins.py", SPINS) else { return };
    stage
        .sandbox
        .tether(&["debug", "status", "d9"])
        .fails(3, &["there is no debug session \"d9\"", "tether debug launch"]);
    stage.sandbox.tether(&["debug", "step"]).fails(3, &["there is no debug session"]);
    stage.sandbox.tether(&["debug", "launch", "none.py"]).fails(2, &["none.py", "No such file"]);
    stage.sandbox.tether(&["debug", "launch"]).fails(2, &[]);
    stage.sandbox.tether(&["break", "set", "none.py:1"]).fails(2, &["none.py"]);
    stage.sandbox.tether(&["break", "set", "spins.py:99"]).fails(2, &["line 99", "it has 5 lines"]);
    stage.sandbox.tether(&["break", "set", "spins.py"]).fails(2, &["has no line number"]);
    stage.sandbox.tether(&["break", "remove", "77"]).fails(3, &["no such breakpoint", "tether break list"]);
    stage.sandbox.write("notes.xyz", "?");
    stage.sandbox.tether(&["debug", "launch", "notes.xyz"]).fails(2, &["no adapter debugs .xyz", "languages"]);

    stage.json(&["debug", "launch", "spins.py"]);
    for control in [&["debug", "step"][..], &["debug", "continue"], &["debug", "stack"], &["debug", "variables"]] {
        stage.sandbox.tether(control).fails(2, &["the program is not stopped", "RUNNING", "tether debug pause"]);
    }
    // A comment has no code to stop at: debugpy takes the line before. The program passes there all the time.
    let comment = stage.json(&["break", "set", "spins.py:5", "--condition", "False"]);
    assert_eq!((&comment["state"], &comment["line"]), (&json!("verified"), &json!(4)), "{comment}");
    stage.json(&["break", "remove", "--all"]);
    // An invalid condition does not stop, and is reported.
    stage.json(&["break", "set", &stage.at("SPIN"), "--condition", "no such thing"]);
    let why = "the condition `no such thing` of breakpoint 2 cannot be evaluated, and counts as false: SyntaxError";
    let reported = "nothing stopped within 1s; debugpy reports: pydevd: Error while evaluating expression in conditional breakpoint: no such thing";
    for _ in 0..2 {
        crate::support::eventually("each wait reports it", || {
            let waited = stage.json(&["debug", "wait", "1"]);
            assert_eq!((&waited["stopped"], &waited["state"]), (&json!(false), &json!("RUNNING")), "{waited}");
            let message = waited["message"].as_str().unwrap();
            // debugpy may have reported it before this wait.
            assert!(["nothing stopped within 1s", reported].contains(&message), "{waited}");
            // The program may not have come to the breakpoint yet.
            waited["notes"].to_string().contains(why).then_some(())
        });
    }
    stage.json(&["debug", "stop"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn of_two_clients_that_step_at_once_one_steps_and_a_stop_in_the_middle_of_a_start_undoes_it() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "spins.py", SPINS) else { return };
    stage.breaks("SPIN");
    stage.json(&["debug", "launch", "spins.py", "--wait", "60"]);
    stage.json(&["break", "remove", "--all"]);
    for _ in 0..10 {
        let both: Vec<_> = (0..2)
            .map(|_| {
                let command = stage.sandbox.command(["--json", "debug", "step", "over", "--wait", "60"]);
                std::thread::spawn(move || run_command(command))
            })
            .collect();
        let run_command: Vec<_> = both.into_iter().map(|thread| thread.join().unwrap()).collect();
        for it in &run_command {
            // The slower request may arrive after the step has ended, and steps again.
            assert!(it.code == 0 || it.stdout.contains("the program is not stopped"), "{it:?}");
        }
        assert!(run_command.iter().any(|it| it.code == 0), "{run_command:?}");
    }
    stage.json(&["debug", "stop"]);
    let mut starting = stage.sandbox.command(["--json", "debug", "launch", "spins.py", "--wait", "60"]);
    let mut starting =
        starting.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    starting.kill().unwrap();
    starting.wait().unwrap();
    crate::support::eventually("it is undone, or can be stopped", || {
        let status: Value = stage.json(&["debug", "status"]);
        if status["sessionId"].is_string() {
            stage.json(&["debug", "stop"]);
        }
        stage.others().is_empty().then_some(())
    });
}

#[test]
fn columns_are_counted_in_utf_16_also_behind_astral_characters() {
    let text = "function f() {\n  return 1; // STOP\n}\nconst words = '😀😀'; f();\n";
    let Some(stage) = ScenarioSandbox::with("js-debug", "😀 ästral.js", text) else { return };
    stage.breaks("STOP");
    let stopped = stage.json(&["debug", "launch", "😀 ästral.js", "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    let caller = &stopped["snapshot"]["frames"][1];
    let column = text.lines().nth(3).unwrap().split("f()").next().unwrap().encode_utf16().count() + 1;
    assert_eq!((caller["line"].as_u64(), caller["column"].as_u64()), (Some(4), Some(column as u64)), "{stopped:#}");
    stage.json(&["debug", "stop"]);
}
