//! Front ends and supervisors come and go: what one was told, the next one acts on.

use rustix::process::Signal;
use serde_json::json;

use crate::agent::Agent;
use crate::programs::{NODE, NODE_LOOP, PYTHON, PYTHON_LOOP};
use crate::story::{Story, cdp_port, get, has_ended, is_gone, pid, play, session_of, stop_line};
use crate::support::rpc_client::RpcClient;
use crate::support::{eventually, is_alive, kill};
use crate::windows::with_service;

fn stopped(story: &mut Story, file: &str) -> String {
    story.breaks(file, "STOP");
    session_of(&story.launch_to(file, "STOP"))
}

#[test]
fn told_a_session_by_one_front_end_another_one_steps_it_at_once() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let session = stopped(story, "app.js");
        assert_eq!(story.cli(&["debug", "evaluate", "amount", "--session", &session])["result"], "2");
        let mut other = Agent::start(&story.sandbox);
        let step = other.call("debug_step", json!({"sessionId": session, "kind": "out", "wait": 60}));
        // The first one looks at where the other has gone.
        let status = story.call("debug_status", json!({"sessionId": session}));
        assert_eq!(stop_line(&status), stop_line(&step), "{status:#}");
        assert_eq!(status["stopReason"]["type"], "STEP_COMPLETE", "{status:#}");
    });
}

#[test]
fn told_that_a_program_is_attached_to_already_both_front_ends_have_one_session() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| {
        let program = story.listening_node("turns.js");
        let port = program.port.to_string();
        let first = story.call("debug_attach", json!({"port": program.port, "language": "javascript"}));
        let second = story.cli(&["debug", "attach", &port, "--language", "javascript"]);
        assert_eq!(session_of(&first), session_of(&second), "{second:#}");
        assert!(second["notes"].to_string().contains("is attached to it already"), "{second:#}");
        story.call("debug_stop", json!({"sessionId": session_of(&first)}));
        let third = story.call("debug_attach", json!({"port": program.port, "language": "javascript"}));
        assert_ne!(session_of(&first), session_of(&third), "{third:#}");
    });
}

#[test]
fn told_a_stop_by_an_agent_that_was_killed_the_next_one_finds_it_and_goes_on() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let session = stopped(story, "app.py");
        story.replace_agent();
        let status = story.call("debug_status", json!({}));
        assert_eq!(status["sessionId"], session, "{status:#}");
        story.is_at(&status, "app.py", "STOP");
        assert_eq!(story.evaluate("amount"), "2");
        story.call("breakpoint_remove", json!({"all": true}));
        has_ended(&story.resume(), 7);
    });
}

#[test]
fn told_a_stop_before_the_supervisor_was_killed_it_is_the_same_stop_for_the_same_agent() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let session = stopped(story, "app.js");
        for amount in ["20", "30"] {
            story.sandbox.kill_supervisor();
            story.call("debug_set_variable", json!({"name": "amount", "value": amount}));
            story.sandbox.kill_supervisor();
            assert_eq!(story.evaluate("amount"), amount);
            let status = story.cli(&["debug", "status", &session]);
            story.is_at(&status, "app.js", "STOP");
        }
        story.call("breakpoint_remove", json!({"all": true}));
        has_ended(&story.resume(), 7);
        assert_eq!(story.printed(), "total 30\ntotal 4\ntotal 6\n");
    });
}

#[test]
fn told_the_stop_by_a_wait_over_which_the_supervisor_was_killed_it_is_there() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        let session = session_of(&story.call("debug_launch", json!({"program": "turns.py"})));
        let [wait] = story.agent.send([("wait_for_stop", json!({"timeout": 60}))]);
        story.sandbox.kill_supervisor();
        story.cli(&["break", "set", &story.at("turns.py", "TURN")]);
        let stop = story.agent.answer(wait);
        story.is_at(&stop, "turns.py", "TURN");
        assert_eq!(stop["sessionId"], session, "{stop:#}");
        assert!(story.evaluate("turns").parse::<u64>().is_ok());
    });
}

#[test]
fn told_that_a_session_is_lost_with_its_host_its_program_is_gone_and_can_be_launched_again() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "STOP");
        let stop = story.launch("app.py");
        story.sandbox.kill_session_hosts();
        let told = eventually("it is told lost", || {
            let told = story.call("debug_status", json!({"sessionId": session_of(&stop)}));
            told["message"].as_str()?.starts_with("lost: its session host").then_some(told)
        });
        assert_eq!((&told["state"], &told["connected"]), (&json!("DISCONNECTED"), &json!(false)), "{told:#}");
        assert!(is_gone(pid(&stop)), "{told:#}");
        story.nothing_runs();
        let again = story.call("debug_launch", json!({"restart": session_of(&stop), "wait": 60}));
        story.is_at(&again, "app.py", "STOP");
    });
}

#[test]
fn told_that_the_supervisor_is_shut_down_it_is_gone_and_the_stop_is_kept() {
    play(&["node"], &[("app.js", NODE)], |story| {
        stopped(story, "app.js");
        let supervisor = story.sandbox.supervisor().unwrap();
        story.sandbox.tether(&["shutdown"]).ok();
        assert!(is_gone(supervisor));
        assert_eq!(story.evaluate("amount"), "2");
        assert_ne!(story.sandbox.supervisor(), Some(supervisor));
    });
}

#[test]
fn told_that_all_is_shut_down_the_program_and_the_hosts_are_gone() {
    play(&["node"], &[("app.js", NODE)], |story| {
        story.breaks("app.js", "STOP");
        let program = pid(&story.launch("app.js"));
        story.sandbox.tether(&["shutdown", "--all"]).ok();
        assert!(is_gone(program));
        story.nothing_runs();
        assert_eq!(story.sandbox.session_hosts(), [0; 0]);
        assert_eq!(story.call("debug_status", json!({}))["sessions"], json!([]));
    });
}

#[test]
fn told_that_the_supervisor_was_upgraded_another_one_has_the_window_and_the_stop() {
    play(
        &["node"],
        &[
            ("app.js", NODE),
            ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'turns.js'\n"),
            ("turns.js", NODE_LOOP),
        ],
        |story| {
            let window = story.call("window_start", json!({}));
            stopped(story, "app.js");
            let supervisor = story.sandbox.supervisor().unwrap();
            story.sandbox.tether(&["upgrade", "--now"]).ok();
            assert!(is_gone(supervisor) && is_alive(pid(&window)));
            assert_eq!(story.evaluate("amount"), "2");
            let status = story.call("window_status", json!({}));
            assert_eq!((&status["pid"], &status["state"]), (&window["pid"], &json!("ready")), "{status:#}");
            assert!(get(cdp_port(&status), "/json/version").contains("node.js"));
        },
    );
}

#[test]
fn told_removed_by_a_second_front_end_the_resume_of_the_first_one_in_the_same_moment_passes() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        stopped(story, "app.py");
        let mut other = Agent::start(&story.sandbox);
        other.call("breakpoint_remove", json!({"all": true}));
        let ended = story.resume();
        has_ended(&ended, 7);
        assert_eq!(story.printed(), "total 2\ntotal 4\ntotal 6\n");
    });
}

#[test]
fn told_one_id_for_the_same_line_by_two_agents_at_once_there_is_one_breakpoint() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let mut other = Agent::start(&story.sandbox);
        let place = story.at("app.js", "STOP");
        let [first] = story.agent.send([("breakpoint_set", json!({"file": place}))]);
        let [second] = other.send([("breakpoint_set", json!({"file": place}))]);
        let ids = [story.agent.answer(first)["breakpointId"].clone(), other.answer(second)["breakpointId"].clone()];
        assert_eq!(ids[0], ids[1]);
        let listed = story.cli(&["break", "list"]);
        assert_eq!(listed["breakpoints"].as_array().unwrap().len(), 1, "{listed:#}");
        assert_eq!(story.launch("app.js")["stopReason"]["details"]["breakpointId"], ids[0]);
    });
}

#[test]
fn told_that_breakpoints_were_exported_another_workspace_takes_all_of_them() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let place = story.at("app.js", "STOP");
        story.call("breakpoint_set", json!({"file": place, "condition": "order === 2"}));
        story.breaks("app.js", "END");
        story.cli(&["break", "export", "saved.json"]);
        story.call("breakpoint_remove", json!({"all": true}));
        story.cli(&["break", "import", "saved.json"]);
        story.launch_to("app.js", "STOP");
        assert_eq!(story.evaluate("order"), "2");
        story.resume_to("app.js", "END");
    });
}

#[test]
fn told_what_was_called_the_timeline_has_it_with_its_caller() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let session = stopped(story, "app.py");
        let timeline = story.cli(&["timeline", "--limit", "1000"]);
        let events = timeline["events"].as_array().unwrap();
        for kind in ["sessionStarted", "stopped", "called"] {
            assert!(events.iter().any(|it| it["kind"] == kind), "{kind}: {timeline:#}");
        }
        story.call("debug_stop", json!({}));
        let ended = story.cli(&["timeline", "--kinds", "sessionEnded"]);
        assert!(ended["events"].to_string().contains(&session), "{ended:#}");
    });
}

#[test]
fn told_a_socket_an_editor_reads_the_agents_stop_from_it() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let session = stopped(story, "app.js");
        let mut editor = RpcClient::connect(&story.sandbox);
        let calls = [
            editor.send("debug/evaluate", json!({"sessionId": session, "expression": "amount"})),
            editor.send("debug/status", json!({"sessionId": session})),
            editor.send("breakpoint/list", json!({})),
        ];
        let [value, status, list] = calls.map(|id| editor.response(id)["result"].clone());
        assert_eq!(value["result"], "2", "{value}");
        story.is_at(&status, "app.js", "STOP");
        assert_eq!(list["breakpoints"][0]["state"], "verified", "{list}");
    });
}

#[test]
fn told_a_window_by_one_supervisor_the_next_one_reconnects_to_the_same() {
    with_service(|story| {
        let ready = story.call("window_start", json!({}));
        story.call("window_evaluate", json!({"expression": "globalThis.kept = 'kept'"}));
        for _ in 0..2 {
            story.sandbox.kill_supervisor();
            let again = story.call("window_start", json!({}));
            assert_eq!((&again["pid"], &again["generation"]), (&ready["pid"], &ready["generation"]), "{again:#}");
            assert_eq!(again["reconnected"], true, "{again:#}");
            assert_eq!(story.call("window_evaluate", json!({"expression": "kept"}))["value"], "kept");
        }
        kill(pid(&ready), Signal::TERM);
    });
}

#[test]
fn told_that_the_window_was_replaced_the_session_that_follows_it_stops_in_its_new_code() {
    play(
        &["node"],
        &[("turns.js", NODE_LOOP), ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'turns.js'\n")],
        |story| {
            let old = story.call("window_start", json!({}));
            let session = session_of(&story.call("debug_attach", json!({"window": "extensionHost"})));
            story.sandbox.write("turns.js", &NODE_LOOP.replace("turns += 1", "turns += 2"));
            let new = story.call("window_restart", json!({}));
            assert!(pid(&new) != pid(&old), "{new:#}");
            story.breaks("turns.js", "TURN");
            let stop = story.call("wait_for_stop", json!({"timeout": 60}));
            story.is_at(&stop, "turns.js", "TURN");
            assert_eq!(stop["sessionId"], session, "{stop:#}");
            let turns: u64 = story.evaluate("turns").parse().unwrap();
            assert_eq!(turns % 2, 0, "of the new code");
            story.call("breakpoint_remove", json!({"all": true}));
            story.call("debug_stop", json!({}));
        },
    );
}
