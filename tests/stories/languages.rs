//! The words of a session in each language, acted on at once: stopped, set, verified, removed, ended, and what was printed.

use serde_json::json;

use crate::programs;
use crate::story::{Story, is_gone, pid, play, session_of};

/// Stops at `STOP` twice, changes a local in between, removes the breakpoint, and reads what the end left.
fn each_word_is_true(story: &mut Story, file: &str, program: &str, adapter: &str) {
    assert_eq!(story.breaks(file, "STOP")["state"], "pending");
    let launch = json!({"program": program, "adapter": adapter, "wait": 60});
    let first = story.call("debug_launch", launch);
    story.is_at(&first, file, "STOP");
    assert_eq!(story.evaluate("amount"), "2");
    // rdbg sets by evaluation, as its refusal says.
    let set = match adapter {
        "rdbg" => story.call("debug_evaluate", json!({"expression": "amount = 30"})),
        _ => story.call("debug_set_variable", json!({"name": "amount", "value": "30"})),
    };
    assert_eq!((set["result"].as_str(), story.evaluate("amount").as_str()), (Some("30"), "30"));
    assert_eq!(story.call("breakpoint_list", json!({}))["breakpoints"][0]["state"], "verified");
    let second = story.resume_to(file, "STOP");
    assert_eq!((&second["stopReason"]["details"]["hitCount"], story.evaluate("order").as_str()), (&json!(2), "2"));
    story.call("breakpoint_remove", json!({"all": true}));
    let ended = story.resume();
    let status = story.cli(&["debug", "status", &session_of(&first)]);
    for told in [&ended, &status] {
        assert_eq!((&told["state"], &told["exitCode"]), (&json!("TERMINATED"), &json!(7)), "{told:#}");
    }
    // js-debug and delve do not name their program's process.
    assert!(first["pid"].is_null() || is_gone(pid(&first)), "{first:#}");
    // Beside the program's own, gdb has remarks.
    let printed: Vec<String> =
        story.printed().lines().filter(|it| it.starts_with("total")).map(str::to_owned).collect();
    assert_eq!(printed, ["total 30", "total 4", "total 6"]);
}

#[test]
fn each_word_of_a_python_session_is_true() {
    play(&["debugpy"], &[("app.py", programs::PYTHON)], |story| {
        each_word_is_true(story, "app.py", "app.py", "debugpy");
    });
}

#[test]
fn each_word_of_a_node_session_is_true() {
    play(&["node"], &[("app.js", programs::NODE)], |story| each_word_is_true(story, "app.js", "app.js", "node"));
}

#[test]
fn each_word_of_a_js_debug_session_is_true() {
    play(&["js-debug"], &[("app.js", programs::NODE)], |story| {
        each_word_is_true(story, "app.js", "app.js", "js-debug");
    });
}

#[test]
fn each_word_of_a_java_session_is_true() {
    play(&["java"], &[("App.java", programs::JAVA)], |story| each_word_is_true(story, "App.java", "App.java", "java"));
}

#[test]
fn each_word_of_an_lldb_session_is_true() {
    play(&["lldb-dap", "cc"], &[("app.c", programs::NATIVE)], |story| {
        story.runs("cc", &["-g", "-O0", "-o", "app", "app.c"]);
        each_word_is_true(story, "app.c", "app", "lldb-dap");
    });
}

#[test]
fn each_word_of_a_gdb_session_is_true() {
    play(&["gdb", "cc"], &[("app.c", programs::NATIVE)], |story| {
        story.runs("cc", &["-g", "-O0", "-o", "app", "app.c"]);
        each_word_is_true(story, "app.c", "app", "gdb");
    });
}

#[test]
fn each_word_of_a_go_session_is_true() {
    play(&["dlv", "go"], &[("main.go", programs::GO), programs::GO_MODULE], |story| {
        story.runs("go", &["build", "-gcflags=all=-N -l", "-o", "app", "."]);
        each_word_is_true(story, "main.go", "app", "dlv");
    });
}

#[test]
fn each_word_of_a_ruby_session_is_true() {
    play(&["rdbg"], &[("app.rb", programs::RUBY)], |story| each_word_is_true(story, "app.rb", "app.rb", "rdbg"));
}
