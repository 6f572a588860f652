//! Freshness: an edit is in the next answer, a failed build is the error, and what changed is named.

use std::fs;

use serde_json::json;

use crate::story::{Story, is_gone, pid, play};
use crate::support::{NODE_SERVICE, is_alive};
use crate::windows::with_page;

/// Each build adds a line to a file that is not tracked; it fails while there is a file `broken`.
const BUILT: &str = "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['sh', '-c', \
    'mkdir -p .devtools; echo x >> .devtools/builds; test ! -e broken || { echo \"src/a.ts(3,1): error\" >&2; exit 2; }']\n";

fn with_build(act: impl Fn(&mut Story)) {
    play(&["node"], &[("server.js", NODE_SERVICE), ("devtools.toml", BUILT)], |story| {
        story.call("window_start", json!({}));
        act(story);
    });
}

/// The next version of the service.
fn edit(story: &Story, answer: u32) {
    story.sandbox.write("server.js", &NODE_SERVICE.replace("42", &answer.to_string()));
}

fn builds(story: &Story) -> usize {
    fs::read_to_string(story.sandbox.path(".devtools/builds")).unwrap().lines().count()
}

#[test]
fn told_a_value_after_an_edit_it_is_of_the_new_code_and_the_file_is_named() {
    with_build(|story| {
        for answer in 43..46 {
            edit(story, answer);
            let told = story.call("window_evaluate", json!({"expression": "answer"}));
            assert_eq!(
                (&told["value"], &told["refreshed"]["because"]),
                (&json!(answer), &json!("server.js was modified"))
            );
        }
        // Nothing has changed since.
        assert_eq!(story.cli(&["evaluate", "answer"]).get("refreshed"), None);
    });
}

#[test]
fn told_the_title_after_an_edit_of_a_page_it_is_the_new_one() {
    with_page("<title>0</title>", |story| {
        story.call("window_start", json!({}));
        story.sandbox.arrived();
        for version in ["1", "2", "3"] {
            story.sandbox.write("page.html", &format!("<title>{version}</title>"));
            let told = story.call("window_evaluate", json!({"expression": "document.title"}));
            assert_eq!(told["value"], version, "{told:#}");
            assert_eq!(told["refreshed"]["because"], "page.html was modified", "{told:#}");
        }
    });
}

#[test]
fn told_that_the_build_failed_the_old_window_runs_and_a_fix_is_taken_up() {
    with_build(|story| {
        let old = story.call("window_status", json!({}));
        story.sandbox.write("broken", "");
        story.refused("window_evaluate", json!({"expression": "answer"}), "src/a.ts(3,1): error");
        assert!(is_alive(pid(&old)));
        let status = story.cli(&["status"]);
        assert_eq!((&status["pid"], &status["lastBuild"]["ok"]), (&old["pid"], &json!(false)), "{status:#}");
        fs::remove_file(story.sandbox.path("broken")).unwrap();
        edit(story, 43);
        assert_eq!(story.call("window_evaluate", json!({"expression": "answer"}))["value"], 43);
        assert!(is_gone(pid(&old)));
    });
}

#[test]
fn told_that_it_is_stale_the_list_of_changes_is_complete() {
    with_build(|story| {
        fs::create_dir(story.sandbox.path("src")).unwrap();
        let files: Vec<String> = (0..40).map(|number| format!("src/{number}.js")).collect();
        files.iter().for_each(|file| story.sandbox.write(file, "1"));
        fs::remove_file(story.sandbox.path("devtools.toml")).unwrap();
        let told = story.call("window_changes", json!({}));
        let changed = told["changed"].as_array().unwrap();
        assert_eq!((&told["stale"], &told["total"]), (&json!(true), &json!(41)), "{told:#}");
        assert_eq!(changed.len(), 41, "{told:#}");
        assert!(files.iter().all(|file| changed.iter().any(|it| it["path"] == *file)), "{told:#}");
        story.sandbox.write("devtools.toml", BUILT);
    });
}

#[test]
fn told_that_it_is_fresh_the_edit_was_of_an_ignored_file_and_the_rule_is_named() {
    with_build(|story| {
        story.sandbox.write("dist/server.js", "1");
        let told = story.call("window_status", json!({}));
        assert_eq!((&told["stale"], &told["state"]), (&json!(false), &json!("ready")), "{told:#}");
        let why = story.call("window_changes", json!({"path": "dist/server.js"}));
        assert_eq!(why["tracked"], false, "{why:#}");
        // As the rule says.
        story.sandbox.write(".devtoolsignore", "!dist\n");
        story.sandbox.write("dist/server.js", "2");
        let told = story.call("window_changes", json!({}));
        assert!(told["changed"].to_string().contains("dist/server.js"), "{told:#}");
    });
}

#[test]
fn told_that_a_refresh_is_done_another_front_end_sees_the_new_code_without_a_build() {
    with_build(|story| {
        let cursor = story.cli(&["timeline"])["cursor"].clone();
        let wait = json!({"kinds": ["windowLaunched"], "since": cursor, "timeout": 60});
        edit(story, 43);
        let [waiting, evaluating] =
            story.agent.send([("wait_for_any", wait), ("window_evaluate", json!({"expression": "1"}))]);
        let told = story.agent.answer(waiting);
        assert_eq!(told["events"][0]["kind"], "windowLaunched", "{told:#}");
        let other = story.cli(&["evaluate", "answer"]);
        assert_eq!((&other["value"], other.get("refreshed")), (&json!(43), None), "{other:#}");
        story.agent.answer(evaluating);
        assert_eq!(builds(story), 2);
    });
}

#[test]
fn told_values_after_one_edit_three_pipelined_calls_and_another_front_end_share_a_build() {
    with_build(|story| {
        edit(story, 43);
        let call = || ("window_evaluate", json!({"expression": "answer"}));
        let calls = story.agent.send([call(), call(), call()]);
        assert_eq!(story.cli(&["evaluate", "answer"])["value"], 43);
        for id in calls {
            assert_eq!(story.agent.answer(id)["value"], 43);
        }
        assert_eq!(builds(story), 2);
    });
}

#[test]
fn told_a_value_after_a_save_by_rename_it_is_of_the_new_code() {
    with_build(|story| {
        for answer in 43..46 {
            story.sandbox.write(".devtools/new", &NODE_SERVICE.replace("42", &answer.to_string()));
            fs::rename(story.sandbox.path(".devtools/new"), story.sandbox.path("server.js")).unwrap();
            assert_eq!(story.call("window_evaluate", json!({"expression": "answer"}))["value"], answer);
        }
    });
}

#[test]
fn told_that_a_file_was_removed_it_is_named_and_the_next_answer_is_without_it() {
    play(
        &["node"],
        &[
            (
                "server.js",
                "globalThis.parts = require('fs').readdirSync(__dirname + '/parts');setInterval(() => {}, 1000);",
            ),
            ("parts/one.js", ""),
            ("parts/two.js", ""),
            ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n"),
        ],
        |story| {
            story.call("window_start", json!({}));
            fs::remove_file(story.sandbox.path("parts/one.js")).unwrap();
            let told = story.call("window_changes", json!({}));
            assert_eq!(
                (&told["newest"]["path"], &told["newest"]["kind"]),
                (&json!("parts/one.js"), &json!("removed")),
                "{told:#}"
            );
            assert_eq!(story.cli(&["evaluate", "parts"])["value"], json!(["two.js"]));
        },
    );
}

#[test]
fn told_a_value_after_an_edit_that_kept_size_and_time_it_is_of_the_new_code() {
    with_build(|story| {
        let file = story.sandbox.path("server.js");
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        edit(story, 43);
        fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
        let told = story.call("window_evaluate", json!({"expression": "answer"}));
        assert_eq!(
            (&told["value"], &told["refreshed"]["because"]),
            (&json!(43), &json!("server.js was modified")),
            "{told:#}"
        );
    });
}
