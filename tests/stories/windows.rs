//! Windows: ready, exited, stopped, restarted; their ports and processes.

use rustix::process::Signal;
use serde_json::json;

use crate::story::{Story, can_be_bound, cdp_port, get, is_gone, pid, play, refuses};
use crate::support::{NODE_SERVICE, kill};

const NODE_WINDOW: (&str, &str) = ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n");

pub fn with_service(act: impl Fn(&mut Story)) {
    play(&["node"], &[("server.js", NODE_SERVICE), NODE_WINDOW], act);
}

/// The URL of a file of the workspace is only known once there is one.
pub fn with_page(page: &str, act: impl Fn(&mut Story)) {
    play(&["chromium"], &[("page.html", page)], |story| {
        let folder = story.sandbox.workspace.display().to_string().replace(' ', "%20");
        story
            .sandbox
            .write("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = 'file://{folder}/page.html'\n"));
        story.sandbox.tether(&["trust", "--yes"]).ok();
        act(story);
    });
}

#[test]
fn told_ready_the_port_of_a_service_answers_and_is_of_the_process_that_was_named() {
    with_service(|story| {
        let ready = story.call("window_start", json!({}));
        assert_eq!(ready["state"], "ready", "{ready:#}");
        assert!(get(cdp_port(&ready), "/json/version").contains("node.js"));
        let evaluated = story.call("window_evaluate", json!({"expression": "process.pid"}));
        assert_eq!(evaluated["value"], ready["pid"], "{ready:#}");
    });
}

#[test]
fn told_ready_the_port_of_a_browser_answers_and_lists_the_page() {
    with_page("<title>a page</title>", |story| {
        let ready = story.call("window_start", json!({}));
        assert!(get(cdp_port(&ready), "/json/version").contains("Chrome"));
        assert!(get(cdp_port(&ready), "/json/list").contains("\"type\": \"page\""));
        assert_eq!(story.call("window_evaluate", json!({"expression": "6 * 7"}))["value"], 42);
    });
}

#[test]
fn told_stopped_a_service_is_gone_and_its_port_can_be_bound() {
    with_service(|story| {
        let ready = story.call("window_start", json!({}));
        let stopped = story.call("window_stop", json!({}));
        assert_eq!(stopped["state"], "absent", "{stopped:#}");
        assert!(is_gone(pid(&ready)) && can_be_bound(cdp_port(&ready)));
        story.nothing_runs();
        assert_eq!(story.sandbox.session(), None);
    });
}

#[test]
fn told_stopped_a_browser_refuses_and_none_of_its_processes_is_left() {
    with_page("<title>a page</title>", |story| {
        let ready = story.call("window_start", json!({}));
        story.call("window_stop", json!({}));
        assert!(is_gone(pid(&ready)) && refuses(cdp_port(&ready)));
        story.nothing_runs();
    });
}

#[test]
fn told_that_it_runs_already_a_second_start_names_the_same_window() {
    with_service(|story| {
        let [first, second] = story.agent.send([("window_start", json!({})), ("window_start", json!({}))]);
        let (first, second) = (story.agent.answer(first), story.agent.answer(second));
        let third = story.cli(&["start"]);
        for other in [&second, &third] {
            assert_eq!((&first["pid"], &first["launchId"]), (&other["pid"], &other["launchId"]), "{other:#}");
        }
        assert_eq!(story.call("window_evaluate", json!({"expression": "process.pid"}))["value"], first["pid"]);
    });
}

#[test]
fn told_restarted_the_old_process_is_gone_and_the_new_one_answers() {
    with_service(|story| {
        let old = story.call("window_start", json!({}));
        let new = story.call("window_restart", json!({}));
        assert_eq!(new["generation"].as_u64(), old["generation"].as_u64().map(|it| it + 1), "{new:#}");
        assert!(is_gone(pid(&old)) && pid(&new) != pid(&old));
        assert!(get(cdp_port(&new), "/json/version").contains("node.js"));
        assert_eq!(story.call("window_evaluate", json!({"expression": "process.pid"}))["value"], new["pid"]);
    });
}

#[test]
fn told_ready_right_after_the_window_was_killed_another_one_answers() {
    with_service(|story| {
        let old = story.call("window_start", json!({}));
        kill(pid(&old), Signal::KILL);
        let new = story.call("window_start", json!({}));
        assert_eq!(new["state"], "ready", "{new:#}");
        assert!(pid(&new) != pid(&old), "{new:#}");
        assert!(get(cdp_port(&new), "/json/version").contains("node.js"));
    });
}

#[test]
fn told_that_the_window_has_ended_it_is_exited_by_that_signal_and_can_be_started() {
    with_service(|story| {
        let ready = story.call("window_start", json!({}));
        let cursor = story.cli(&["timeline"])["cursor"].clone();
        let [wait] =
            story.agent.send([("wait_for_any", json!({"kinds": ["windowEnded"], "since": cursor, "timeout": 60}))]);
        kill(pid(&ready), Signal::KILL);
        let told = story.agent.answer(wait);
        assert_eq!(told["events"][0]["kind"], "windowEnded", "{told:#}");
        let status = story.cli(&["status"]);
        assert_eq!(status["state"], "exited", "{status:#}");
        // The start was answered before: the exit has interrupted nothing.
        assert_eq!((&status["exit"]["signal"], status["exit"].get("doing")), (&json!(9), None), "{status:#}");
        assert!(refuses(cdp_port(&ready)));
        let again = story.cli(&["start"]);
        assert!(get(cdp_port(&again), "/json/version").contains("node.js"));
    });
}

#[test]
fn told_a_value_the_console_has_what_the_expression_logged() {
    with_page("<title>a page</title>", |story| {
        story.call("window_start", json!({}));
        for turn in 0..5 {
            let expression = format!("console.log('turn', {turn}), {turn}");
            let calls = [("window_evaluate", json!({"expression": expression}))];
            let [evaluated] = story.agent.send(calls);
            assert_eq!(story.agent.answer(evaluated)["value"], turn);
            let console = story.cli(&["console", "--filter", "turn"]);
            assert!(console.to_string().contains(&format!("turn {turn}")), "{console:#}");
        }
    });
}

#[test]
fn told_that_a_value_was_set_another_front_end_reads_it() {
    with_service(|story| {
        story.call("window_start", json!({}));
        for turn in 0..5 {
            story.call("window_evaluate", json!({"expression": format!("globalThis.answer = {turn}")}));
            assert_eq!(story.cli(&["evaluate", "answer"])["value"], turn);
        }
    });
}

const BUTTON: &str = "<title>a page</title><button onclick=\"this.textContent = 'clicked ' + ++count\">click</button>\
    <input aria-label=name><script>count = 0</script>";

/// The ref of the first element with this role.
fn reference(story: &mut Story, role: &str) -> String {
    let snapshot = story.call("window_snapshot", json!({}))["text"].as_str().unwrap().to_owned();
    let line = snapshot.lines().find(|line| line.contains(&format!(" {role} ")));
    line.unwrap_or_else(|| panic!("{snapshot}")).split_whitespace().next().unwrap().to_owned()
}

#[test]
fn told_that_an_action_is_done_the_page_has_its_effect() {
    with_page(BUTTON, |story| {
        story.call("window_start", json!({}));
        story.sandbox.arrived();
        let (button, name) = (reference(story, "button"), reference(story, "textbox"));
        let actions = json!([{"do": "click", "ref": button}, {"do": "type", "ref": name, "text": "Ada"}]);
        story.call("window_input", json!({"actions": actions}));
        let read = json!({"expression": "document.querySelector('button').textContent"});
        assert_eq!(story.call("window_evaluate", read)["value"], "clicked 1");
        let snapshot = story.call("window_snapshot", json!({}))["text"].to_string();
        assert!(snapshot.contains("clicked 1") && snapshot.contains("Ada"), "{snapshot}");
    });
}

#[test]
fn told_a_ref_it_can_be_acted_on_by_another_front_end() {
    with_page(BUTTON, |story| {
        story.call("window_start", json!({}));
        story.sandbox.arrived();
        let name = reference(story, "button");
        story.cli(&["input", &format!("click {name}")]);
        let read = json!({"expression": "count"});
        assert_eq!(story.call("window_evaluate", read)["value"], 1);
    });
}
