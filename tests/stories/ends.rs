//! Ends: codes, signals, what is left of a program, its output, and sessions that are over.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::programs::{NODE, NODE_LOOP, PYTHON, PYTHON_LOOP};
use crate::story::{Story, can_be_bound, get, has_ended, is_gone, pid, play, session_of};
use crate::support::{is_alive, kill, wait_for_end};

/// Serves HTTP, has a child, and says its port and both process ids.
const SERVER: &str = "\
const { spawn } = require('node:child_process');
const child = spawn('sleep', ['600'], { stdio: 'ignore' });
const server = require('node:http').createServer((_, response) => response.end('hello'));
server.listen(0, '127.0.0.1', () => {
  globalThis.port = server.address().port;
  globalThis.pids = [process.pid, child.pid];
  console.log('listens'); // LISTENS
});
";

/// A server that is stopped once it listens: its port, and the ids of its two processes.
fn serving(story: &mut Story) -> (u16, [u32; 2]) {
    story.breaks("server.js", "LISTENS");
    let stop = story.launch_to("server.js", "LISTENS");
    let port = story.evaluate("globalThis.port").parse().unwrap();
    let pids = story.evaluate("globalThis.pids.join()");
    let pids: Vec<u32> = pids.trim_matches('\'').split(',').map(|it| it.parse().unwrap()).collect();
    assert_eq!(pids[0], pid(&stop), "{stop:#}");
    (port, [pids[0], pids[1]])
}

#[test]
fn told_that_a_session_has_ended_its_program_and_its_child_are_gone_and_the_port_can_be_bound() {
    play(&["node"], &[("server.js", SERVER)], |story| {
        let (port, pids) = serving(story);
        story.call("breakpoint_remove", json!({"all": true}));
        story.call("debug_continue", json!({"wait": 0.05}));
        assert_eq!(get(port, "/"), "hello");
        let ended = story.call("debug_stop", json!({}));
        assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{pids:?}");
        assert!(can_be_bound(port));
        story.nothing_runs();
        fs::remove_file(story.sandbox.path("server.js")).unwrap();
    });
}

#[test]
fn told_that_a_stopped_program_was_detached_it_runs_on_and_answers() {
    play(&["node"], &[("server.js", SERVER)], |story| {
        let (port, [program, child]) = serving(story);
        let ended = story.call("debug_stop", json!({"detach": true}));
        assert_eq!(get(port, "/"), "hello", "{ended:#}");
        assert!(is_alive(program) && is_alive(child));
        kill(program, Signal::KILL);
        kill(child, Signal::KILL);
        wait_for_end(program);
    });
}

#[test]
fn told_an_exit_code_it_is_the_programs_for_each_front_end() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let ended = story.launch("app.js");
        has_ended(&ended, 7);
        assert!(is_gone(pid(&ended)));
        let session = session_of(&ended);
        for told in
            [story.cli(&["debug", "status", &session]), story.cli(&["debug", "wait", "60", "--session", &session])]
        {
            has_ended(&told, 7);
        }
        assert_eq!(story.printed(), "total 2\ntotal 4\ntotal 6\n");
    });
}

#[test]
fn told_that_a_signal_ended_the_program_it_has_no_code_and_is_gone() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| {
        let launched = story.call("debug_launch", json!({"program": "turns.js"}));
        let [wait] = story.agent.send([("wait_for_stop", json!({"timeout": 60}))]);
        kill(pid(&launched), Signal::KILL);
        let told = story.agent.answer(wait);
        assert_eq!(
            (&told["stopped"], &told["state"], told.get("exitCode")),
            (&json!(false), &json!("TERMINATED"), None),
            "{told:#}"
        );
        assert!(told["message"].as_str().unwrap().contains("was ended by signal 9"), "{told:#}");
        assert!(is_gone(pid(&launched)));
        story.nothing_runs();
    });
}

#[test]
fn told_disconnected_or_terminated_a_killed_python_program_and_its_adapter_are_gone() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        let launched = story.call("debug_launch", json!({"program": "turns.py"}));
        kill(pid(&launched), Signal::KILL);
        let told = story.call("wait_for_stop", json!({"timeout": 60}));
        assert!(["TERMINATED", "DISCONNECTED"].contains(&told["state"].as_str().unwrap()), "{told:#}");
        assert!(told["message"].as_str().unwrap().contains("was ended by signal 9"), "{told:#}");
        assert!(is_gone(pid(&launched)));
        story.nothing_runs();
        // The next one is not in its way.
        story.breaks("turns.py", "TURN");
        story.launch_to("turns.py", "TURN");
    });
}

#[test]
fn told_that_it_has_ended_each_byte_of_its_output_can_be_read() {
    let text = "import sys\nfor line in range(3000):\n    print('line', line)\nprint('end \\u00e4 \\t \\\\ \"')\nsys.exit(3)\n";
    play(&["debugpy"], &[("prints.py", text)], |story| {
        let ended = story.call("debug_launch", json!({"program": "prints.py", "wait": 60, "budget": 0}));
        has_ended(&ended, 3);
        let mut expected: String = (0..3000).map(|line| format!("line {line}\n")).collect();
        expected += "end ä \t \\ \"\n";
        let printed = story.printed();
        assert!(
            printed == expected,
            "{} bytes of {}: {}",
            printed.len(),
            expected.len(),
            printed.chars().rev().take(99).collect::<String>()
        );
    });
}

#[test]
fn told_that_it_has_ended_the_output_of_a_node_program_is_complete_in_both_streams() {
    let text = "for (let line = 0; line < 2000; line++) { console.log('out', line); console.error('err', line); }\nprocess.exitCode = 3;\n";
    play(&["node"], &[("prints.js", text)], |story| {
        has_ended(&story.launch("prints.js"), 3);
        let lines = |word: &str| (0..2000).map(|line| format!("{word} {line}\n")).collect::<String>();
        let (out, err) = (story.output("stdout"), story.output("stderr"));
        assert!(out == lines("out") && err == lines("err"), "{} and {} bytes", out.len(), err.len());
    });
}

#[test]
fn told_that_a_session_has_ended_it_can_be_launched_again_by_its_id() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let first = story.call("debug_launch", json!({"program": "app.py", "args": ["more"], "wait": 60}));
        has_ended(&first, 7);
        story.breaks("app.py", "ARGUED");
        let again = story.call("debug_launch", json!({"restart": session_of(&first), "wait": 60}));
        story.is_at(&again, "app.py", "ARGUED");
        assert_eq!(story.evaluate("sys.argv[1]"), "'more'");
    });
}

#[test]
fn told_twice_in_one_write_to_end_both_answers_are_true() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        let launched = story.call("debug_launch", json!({"program": "turns.py"}));
        let session = session_of(&launched);
        let stop = || ("debug_stop", json!({"sessionId": session}));
        let [first, second] = story.agent.send([stop(), stop()]);
        for id in [first, second] {
            let told = story.agent.answer(id);
            assert_eq!(told["state"], "TERMINATED", "{told:#}");
            assert!(is_gone(pid(&launched)));
        }
        story.nothing_runs();
    });
}

#[test]
fn told_the_end_by_a_wait_that_another_front_end_has_caused_it_is_true() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        let launched = story.call("debug_launch", json!({"program": "turns.py"}));
        let [wait] = story.agent.send([("wait_for_stop", json!({"timeout": 60}))]);
        let stopping = story.sandbox.command(["debug", "stop"]).stdout(std::process::Stdio::null()).spawn();
        let told = story.agent.answer(wait);
        assert_eq!((&told["stopped"], &told["state"]), (&json!(false), &json!("TERMINATED")), "{told:#}");
        assert!(is_gone(pid(&launched)));
        assert!(stopping.unwrap().wait().unwrap().success());
    });
}

/// Attaches to a program that listens, whose process goes on; twice, at once.
fn is_attached_to_twice(story: &mut Story, file: &str, arguments: &Value, program: u32) {
    for _ in 0..2 {
        let set = story.breaks(file, "TURN");
        let mut attach = arguments.clone();
        attach["wait"] = json!(60);
        let stop = story.call("debug_attach", attach);
        story.is_at(&stop, file, "TURN");
        let before: u64 = story.evaluate("turns").parse().unwrap();
        story.call("breakpoint_remove", json!({"breakpointId": set["breakpointId"]}));
        let ended = story.call("debug_stop", json!({}));
        assert!(is_alive(program), "{ended:#}");
        // It runs on by itself.
        story.call("debug_attach", arguments.clone());
        story.breaks(file, "TURN");
        story.call("wait_for_stop", json!({"timeout": 60}));
        assert!(story.evaluate("turns").parse::<u64>().unwrap() > before);
        story.call("breakpoint_remove", json!({"all": true}));
        story.call("debug_stop", json!({}));
    }
}

#[test]
fn told_that_an_attached_node_program_was_let_go_it_can_be_attached_to_again() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| {
        let program = story.listening_node("turns.js");
        is_attached_to_twice(
            story,
            "turns.js",
            &json!({"port": program.port, "language": "javascript"}),
            program.pid(),
        );
    });
}

#[test]
fn told_that_an_attached_python_program_was_let_go_it_can_be_attached_to_again() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        let program = story.listening_python("turns.py");
        is_attached_to_twice(story, "turns.py", &json!({"port": program.port, "language": "python"}), program.pid());
    });
}

const FAMILY: &str = "\
const { fork } = require('node:child_process');
if (process.argv[2] === 'child') {
  console.log('child', process.pid); // CHILD
} else {
  fork(__filename, ['child']).on('exit', (code) => console.log('child ended', code));
}
";

#[test]
fn told_a_stop_in_a_child_the_pid_is_the_childs_and_the_end_is_of_both() {
    play(&["node"], &[("family.js", FAMILY)], |story| {
        story.breaks("family.js", "CHILD");
        let stop = story.launch_to("family.js", "CHILD");
        let child: u32 = story.evaluate("process.pid").parse().unwrap();
        let thread = stop["stopReason"]["threadName"].as_str().unwrap();
        assert!(thread.ends_with(&format!("[{child}]")), "{stop:#}");
        assert!(is_alive(child) && child != pid(&stop));
        let ended = story.resume();
        has_ended(&ended, 0);
        assert!(is_gone(child) && is_gone(pid(&stop)));
        assert!(story.printed().contains("child ended 0"));
    });
}
