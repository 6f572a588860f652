//! Breakpoints: verified, removed, unbound, conditions, hits, log points, functions, exceptions, data.

use serde_json::json;

use crate::programs::{NODE, NODE_LOOP, PYTHON, PYTHON_LOOP};
use crate::story::{Story, has_ended, pid, play, session_of, stop_line};
use crate::support::is_alive;

/// Launches a program that turns, without a breakpoint, and waits until it is up.
fn turning(story: &mut Story, program: &str) -> String {
    let launched = story.call("debug_launch", json!({"program": program}));
    assert!(is_alive(pid(&launched)), "{launched:#}");
    session_of(&launched)
}

/// Told `verified` of a running program, the next pass stops there; told removed, none does.
fn turns(story: &mut Story, file: &str) {
    turning(story, file);
    for _ in 0..3 {
        let set = story.breaks(file, "TURN");
        assert_eq!(set["state"], "verified", "{set:#}");
        let stop = story.call("wait_for_stop", json!({"timeout": 60}));
        story.is_at(&stop, file, "TURN");
        assert_eq!(stop["stopReason"]["details"]["breakpointId"], set["breakpointId"], "{stop:#}");
        let before: u64 = story.evaluate("turns").parse().unwrap();
        let removed = story.call("breakpoint_remove", json!({"breakpointId": set["breakpointId"]}));
        assert_eq!(removed["breakpoints"], json!([]), "{removed:#}");
        let running = story.call("debug_continue", json!({"wait": 0.1}));
        assert_eq!((&running["stopped"], &running["state"]), (&json!(false), &json!("RUNNING")), "{running:#}");
        story.call("debug_pause", json!({"wait": 60}));
        let after: u64 = story.evaluate("turns").parse().unwrap();
        assert!(after > before + 1, "it has passed the line: {before} {after}");
        story.call("debug_continue", json!({}));
    }
}

#[test]
fn told_verified_the_next_pass_of_a_node_program_stops_and_told_removed_none_does() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| turns(story, "turns.js"));
}

#[test]
fn told_verified_the_next_pass_of_a_python_program_stops_and_told_removed_none_does() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| turns(story, "turns.py"));
}

#[test]
fn told_that_a_line_was_not_reached_it_stops_there_once_the_program_takes_that_way() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let set = story.breaks("app.js", "ARGUED");
        let ended = story.launch("app.js");
        has_ended(&ended, 7);
        let told = &ended["notReached"];
        assert_eq!(
            (told[0]["breakpointId"].as_u64(), told.as_array().unwrap().len()),
            (set["breakpointId"].as_u64(), 1)
        );
        assert_eq!(told[0]["reason"], "it was bound, and the line was not reached", "{told:#}");
        let stop = story.call("debug_launch", json!({"program": "app.js", "args": ["more"], "wait": 60}));
        story.is_at(&stop, "app.js", "ARGUED");
    });
}

#[test]
fn told_that_a_file_was_not_loaded_it_stops_there_once_the_program_loads_it() {
    let files = [
        ("app.js", "if (process.argv[2]) require('./' + process.argv[2]);\n"),
        ("other.js", "globalThis.x = 1; // OTHER\n"),
    ];
    play(&["node"], &files, |story| {
        story.breaks("other.js", "OTHER");
        let ended = story.launch("app.js");
        has_ended(&ended, 0);
        let reason = ended["notReached"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("it was not bound: neither this file nor a script"), "{reason}");
        let stop = story.call("debug_launch", json!({"program": "app.js", "args": ["other.js"], "wait": 60}));
        story.is_at(&stop, "other.js", "OTHER");
    });
}

#[test]
fn told_that_the_condition_did_not_hold_another_one_that_holds_stops() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let place = story.at("app.py", "STOP");
        story.call("breakpoint_set", json!({"file": place, "condition": "amount > 100"}));
        let ended = story.launch("app.py");
        has_ended(&ended, 7);
        assert!(ended["notReached"][0]["reason"].as_str().unwrap().contains("`amount > 100` held"), "{ended:#}");
        story.call("breakpoint_set", json!({"file": place, "condition": "amount > 3"}));
        story.launch_to("app.py", "STOP");
        assert_eq!(story.evaluate("amount"), "4");
    });
}

#[test]
fn told_a_hit_count_it_is_the_pass_that_was_asked_for() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let place = story.at("app.py", "STOP");
        story.call("breakpoint_set", json!({"file": place, "hitCondition": "3"}));
        story.launch_to("app.py", "STOP");
        assert_eq!(story.evaluate("order"), "3");
        has_ended(&story.resume(), 7);
    });
}

#[test]
fn told_a_hit_count_of_a_counted_condition_it_is_that_pass() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let place = story.at("app.js", "STOP");
        story.call("breakpoint_set", json!({"file": place, "condition": "order !== 2", "hitCondition": ">=2"}));
        story.launch_to("app.js", "STOP");
        assert_eq!(story.evaluate("order"), "3", "the second pass at which the condition holds");
        has_ended(&story.resume(), 7);
    });
}

#[test]
fn told_that_a_hit_condition_is_bad_nothing_was_set_and_the_form_that_is_named_works() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let place = story.at("app.js", "STOP");
        let text = story.refused(
            "breakpoint_set",
            json!({"file": place, "hitCondition": "often"}),
            "write `3`, `>= 3` or `% 3`",
        );
        assert_eq!(story.call("breakpoint_list", json!({}))["breakpoints"], json!([]), "{text}");
        for (form, order) in [("3", "3"), (">= 3", "3"), ("% 3", "3")] {
            story.call("breakpoint_set", json!({"file": place, "hitCondition": form}));
            story.launch_to("app.js", "STOP");
            assert_eq!(story.evaluate("order"), order, "{form}");
            story.call("debug_stop", json!({}));
        }
    });
}

#[test]
fn told_that_the_program_has_ended_its_log_points_have_printed_each_pass_and_stopped_none() {
    play(&["node"], &[("app.js", NODE)], |story| {
        let place = story.at("app.js", "STOP");
        story.call("breakpoint_set", json!({"file": place, "logMessage": "order {order} is {amount}"}));
        has_ended(&story.launch("app.js"), 7);
        let logged = story.output("console");
        let lines: Vec<&str> = logged.lines().collect();
        assert_eq!(lines, ["order 1 is 2", "order 2 is 4", "order 3 is 6"]);
    });
}

#[test]
fn told_verified_by_another_front_end_the_first_ones_next_step_of_the_program_stops_there() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "CALL");
        story.launch_to("app.py", "CALL");
        let set = story.cli(&["break", "set", &story.at("app.py", "STOP")]);
        assert_eq!(set["state"], "verified", "{set:#}");
        story.resume_to("app.py", "STOP");
        story.cli(&["break", "remove", "--all"]);
        has_ended(&story.resume(), 7);
    });
}

#[test]
fn told_that_a_function_is_verified_the_program_stops_in_it() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "CALL");
        story.launch("app.py");
        let set = story.call("breakpoint_set", json!({"function": "total"}));
        assert_eq!(set["state"], "verified", "{set:#}");
        let stop = story.resume();
        assert_eq!(stop["stopReason"]["location"]["methodName"], "total", "{stop:#}");
        assert_eq!(story.evaluate("order"), "1");
    });
}

#[test]
fn told_where_a_breakpoint_lies_the_program_stops_on_that_line() {
    play(&["node"], &[("app.js", NODE)], |story| {
        // The line after it begins a function's body; the empty places of a file have no code.
        let set = story.call("breakpoint_set", json!({"file": "app.js:1"}));
        let stop = story.launch("app.js");
        let listed = story.call("breakpoint_list", json!({}))["breakpoints"][0].clone();
        assert_eq!(
            (&listed["breakpointId"], listed["line"].as_u64()),
            (&set["breakpointId"], stop_line(&stop)),
            "{stop:#}"
        );
    });
}

#[test]
fn told_twenty_breakpoints_in_one_write_the_list_has_all_of_them() {
    play(&["node"], &[("app.js", &"let x = 1;\n".repeat(20))], |story| {
        let calls: [_; 20] =
            std::array::from_fn(|at| ("breakpoint_set", json!({"file": format!("app.js:{}", at + 1)})));
        let mut ids: Vec<u64> =
            story.agent.send(calls).map(|id| story.agent.answer(id)["breakpointId"].as_u64().unwrap()).to_vec();
        let listed = story.cli(&["break", "list"]);
        let mut lines: Vec<u64> =
            listed["breakpoints"].as_array().unwrap().iter().map(|it| it["line"].as_u64().unwrap()).collect();
        lines.sort_unstable();
        ids.sort_unstable();
        assert_eq!((lines, ids), ((1..=20).collect(), (1..=20).collect()), "{listed:#}");
    });
}

const RAISES: &str = "\
def careful():
    try:
        raise ValueError('caught')  # CAUGHT
    except ValueError:
        pass

careful()
raise KeyError('uncaught')  # UNCAUGHT
";

#[test]
fn told_which_exceptions_stop_the_program_stops_at_those_and_at_no_other() {
    play(&["debugpy"], &[("raises.py", RAISES)], |story| {
        story.call("breakpoint_exceptions", json!({"uncaught": true}));
        let stop = story.launch_to("raises.py", "UNCAUGHT");
        assert_eq!(stop["stopReason"]["details"]["exceptionType"], "KeyError", "{stop:#}");
        story.call("debug_stop", json!({}));
        story.call("breakpoint_exceptions", json!({"caught": true, "class": "ValueError"}));
        let stop = story.launch_to("raises.py", "CAUGHT");
        assert_eq!(stop["stopReason"]["details"]["exceptionMessage"], "caught", "{stop:#}");
        has_ended(&story.resume(), 1);
    });
}

const WRITES: &str = "\
const order = { total: 1 };
console.log(order.total); // START
order.other = 5;
order.total = 2; // WRITE
console.log(order.total);
";

#[test]
fn told_that_a_property_is_watched_its_next_write_stops_with_both_values() {
    play(&["node"], &[("writes.js", WRITES)], |story| {
        story.breaks("writes.js", "START");
        story.launch("writes.js");
        let set = story.call("watchpoint_set", json!({"expression": "order.total"}));
        assert_eq!(set["state"], "verified", "{set:#}");
        let stop = story.resume();
        let details = &stop["stopReason"]["details"];
        assert_eq!(stop["stopReason"]["type"], "WATCHPOINT_MODIFY", "{stop:#}");
        assert_eq!((&details["oldValue"], &details["newValue"]), (&json!("1"), &json!("2")), "{stop:#}");
        has_ended(&story.resume(), 0);
        assert_eq!(story.printed(), "1\n2\n");
    });
}
