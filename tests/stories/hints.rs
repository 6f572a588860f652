//! Errors name what helps: a hint is run as it is printed, and helps.

use serde_json::json;

use crate::programs::{NATIVE, NODE, NODE_LOOP, PYTHON, PYTHON_LOOP};
use crate::story::{has_ended, play, session_of};
use crate::support::NODE_SERVICE;
use crate::windows::with_service;

/// The commands between backquotes of a text, in their order.
fn commands(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The call of a tool that a text names between backquotes: its name, and its arguments.
fn tool_call(text: &str, tool: &str) -> serde_json::Value {
    let all = commands(text);
    let found = all.iter().find_map(|it| it.strip_prefix(tool)).unwrap_or_else(|| panic!("{tool} is not in {text}"));
    if found.trim().is_empty() { json!({}) } else { serde_json::from_str(found).unwrap() }
}

#[test]
fn told_that_commands_are_not_trusted_the_command_that_is_named_lets_them_run() {
    play(&["node"], &[("server.js", NODE_SERVICE)], |story| {
        story
            .sandbox
            .write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n[build]\ncommand = ['true']\n");
        let text = story.refused("window_start", json!({}), "not trusted");
        let trust = commands(&text)
            .into_iter()
            .find(|it| it.starts_with("tether trust") || it.contains(" trust"))
            .unwrap_or_else(|| panic!("{text}"));
        story.runs_hint(&format!("{trust} --yes")).ok();
        assert_eq!(story.call("window_start", json!({}))["state"], "ready");
    });
}

#[test]
fn told_to_pause_a_running_program_the_pause_lets_its_values_be_read() {
    play(&["node"], &[("turns.js", NODE_LOOP)], |story| {
        story.call("debug_launch", json!({"program": "turns.js"}));
        let text = story.refused("debug_step", json!({"kind": "over"}), "not stopped");
        let pause = tool_call(&text, "debug_pause");
        assert_eq!(story.call("debug_pause", pause)["stopped"], true);
        assert!(!story.call("debug_stack", json!({}))["frames"].as_array().unwrap().is_empty());
        let failed = story.sandbox.tether(&["debug", "continue"]);
        failed.ok();
        let failed = story.sandbox.tether(&["debug", "variables"]);
        assert_ne!(failed.code, 0, "{failed:?}");
        let hint = commands(&failed.stderr);
        story.runs_hint(&hint[0]).ok();
        story.sandbox.tether(&["debug", "variables"]).ok();
    });
}

#[test]
fn told_that_there_is_no_session_the_launch_that_is_named_starts_one() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let failed = story.sandbox.tether(&["debug", "continue"]).fails(3, &["there is no debug session"]);
        let launch = commands(&failed.stderr)[0].replace("PROGRAM", "app.py");
        story.breaks("app.py", "STOP");
        story.runs_hint(&format!("{launch} --wait 60")).ok();
        assert_eq!(story.evaluate("amount"), "2");
    });
}

#[test]
fn told_that_there_is_no_window_the_start_that_is_named_starts_one() {
    with_service(|story| {
        let text = story.refused("debug_attach", json!({"window": "extensionHost"}), "no window");
        story.call("window_start", tool_call(&text, "window_start"));
        story.call("debug_attach", json!({"window": "extensionHost"}));
        assert_eq!(story.call("debug_status", json!({}))["state"], "RUNNING");
    });
}

#[test]
fn told_to_attach_to_another_part_of_the_window_that_part_can_be_attached_to() {
    with_service(|story| {
        story.call("window_start", json!({}));
        let failed = story.sandbox.tether(&["debug", "attach", "--window", "page"]);
        assert_ne!(failed.code, 0, "{failed:?}");
        story.runs_hint(&commands(&failed.stderr)[0]).ok();
        let text = story.refused("debug_attach", json!({"window": "page"}), "it has none");
        let named = tool_call(&text, "debug_attach");
        story.call("debug_attach", named);
    });
}

#[test]
fn told_how_a_c_source_is_built_the_command_builds_it_and_the_program_stops() {
    play(&["lldb-dap", "cc"], &[("avg.c", NATIVE)], |story| {
        story.breaks("avg.c", "STOP");
        let failed = story.sandbox.tether(&["debug", "launch", "avg.c"]);
        assert_ne!(failed.code, 0, "{failed:?}");
        let hints = commands(&failed.stderr);
        story.runs_hint(&hints[0]).ok();
        story.runs_hint(&format!("{} --wait 60", hints[1])).ok();
        assert_eq!(story.evaluate("amount"), "2");
    });
}

#[test]
fn told_how_a_cpp_source_is_built_the_command_builds_it_and_the_program_stops() {
    play(&["lldb-dap", "c++"], &[("average of.cpp", NATIVE)], |story| {
        story.breaks("average of.cpp", "STOP");
        let text = story.refused("debug_launch", json!({"program": "average of.cpp"}), "it is a source");
        let build = commands(&text)[0].clone();
        story.runs_hint(&build).ok();
        let mut launch = tool_call(&text, "debug_launch");
        launch["wait"] = json!(60);
        let stop = story.call("debug_launch", launch);
        story.is_at(&stop, "average of.cpp", "STOP");
        assert_eq!(story.evaluate("amount"), "2");
    });
}

#[test]
fn told_to_name_one_of_several_sessions_each_that_is_named_answers() {
    play(&["debugpy", "node"], &[("app.py", PYTHON), ("app.js", NODE)], |story| {
        story.breaks("app.py", "STOP");
        story.breaks("app.js", "STOP");
        let sessions = ["app.py", "app.js"].map(|program| session_of(&story.launch(program)));
        let text = story.refused("debug_evaluate", json!({"expression": "amount"}), "name one of");
        for session in &sessions {
            assert!(text.contains(session.as_str()), "{text}");
            let value = story.call("debug_evaluate", json!({"expression": "amount", "sessionId": session}));
            assert_eq!(value["result"], "2");
        }
    });
}

#[test]
fn told_that_a_session_has_ended_the_launch_that_is_named_starts_the_next() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        has_ended(&story.launch("app.py"), 7);
        let failed = story.sandbox.tether(&["debug", "continue"]);
        assert!(failed.code != 0 && failed.stderr.contains("not stopped"), "{failed:?}");
        story.breaks("app.py", "STOP");
        let launch = commands(&failed.stderr)[0].replace("PROGRAM", "app.py");
        story.runs_hint(&format!("{launch} --wait 60")).ok();
        assert_eq!(story.evaluate("amount"), "2");
    });
}

#[test]
fn told_that_there_is_no_such_variable_the_command_that_is_named_lists_them() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        story.breaks("app.py", "STOP");
        story.launch("app.py");
        let failed = story.sandbox.tether(&["debug", "variables", "amuont"]);
        assert_ne!(failed.code, 0, "{failed:?}");
        let listed = story.runs_hint(&commands(&failed.stderr)[1]).ok();
        assert!(listed.stdout.contains("amount") && listed.stdout.contains("order"), "{listed:?}");
    });
}

#[test]
fn told_what_is_wrong_in_the_configuration_its_correction_starts_the_window() {
    play(&["node"], &[("server.js", NODE_SERVICE)], |story| {
        story.sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogramm = 'server.js'\n");
        let text = story.refused("window_start", json!({}), "programm");
        assert!(text.contains("devtools.toml") && text.contains("program"), "{text}");
        story.sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n");
        story.sandbox.tether(&["trust", "--yes"]).ok();
        assert_eq!(story.call("window_start", json!({}))["state"], "ready");
    });
}

#[test]
fn told_that_a_configuration_is_missing_each_name_that_is_listed_can_be_launched() {
    let launch = r#"{"configurations": [
        {"name": "Python one", "type": "debugpy", "request": "launch", "program": "app.py"},
        {"name": "Node two", "type": "node", "request": "launch", "program": "app.js"}
    ]}"#;
    play(&["debugpy", "node"], &[("app.py", PYTHON), ("app.js", NODE), (".vscode/launch.json", launch)], |story| {
        let text = story.refused("debug_launch", json!({"config": "Python two"}), "Python one");
        for name in ["Python one", "Node two"] {
            assert!(text.contains(name), "{text}");
            let untrusted = story.refused("debug_launch", json!({"config": name}), "not trusted");
            let trust = commands(&untrusted).remove(0);
            story.runs_hint(&format!("{trust} --yes")).ok();
            has_ended(&story.call("debug_launch", json!({"config": name, "wait": 60})), 7);
        }
    });
}

#[test]
fn told_that_no_file_describes_a_window_the_file_that_init_writes_starts_one() {
    let package =
        r#"{"name": "service", "version": "1.0.0", "main": "server.js", "scripts": {"start": "node server.js"}}"#;
    play(&["node"], &[("server.js", NODE_SERVICE), ("package.json", package)], |story| {
        let text = story.refused("window_start", json!({}), "cannot tell what to launch");
        let init = commands(&text).into_iter().find(|it| it == "tether init").unwrap_or_else(|| panic!("{text}"));
        story.runs_hint(&init).ok();
        story.sandbox.tether(&["trust", "--yes"]).ok();
        assert_eq!(story.call("window_start", json!({}))["state"], "ready");
        assert_eq!(story.call("window_evaluate", json!({"expression": "answer"}))["value"], 42);
    });
}

#[test]
fn told_how_to_wake_a_supervisor_that_does_not_respond_the_command_wakes_it() {
    play(&["debugpy"], &[("turns.py", PYTHON_LOOP)], |story| {
        story.call("debug_launch", json!({"program": "turns.py"}));
        let host = story.sandbox.session_hosts()[0];
        crate::support::kill(host, rustix::process::Signal::STOP);
        let failed = story.sandbox.tether(&["debug", "pause"]);
        let waking = commands(&failed.stderr).into_iter().find(|it| it.starts_with("kill -CONT"));
        let waking = waking.unwrap_or_else(|| {
            crate::support::kill(host, rustix::process::Signal::CONT);
            panic!("{failed:?}")
        });
        assert!(waking.ends_with(&host.to_string()), "{waking}");
        story.runs_hint(&waking).ok();
        assert_eq!(story.call("debug_pause", json!({"wait": 60}))["stopped"], true);
    });
}

#[test]
fn told_that_a_value_cannot_be_set_the_expression_that_is_named_sets_it() {
    play(&["rdbg"], &[("app.rb", crate::programs::RUBY)], |story| {
        story.breaks("app.rb", "STOP");
        story.launch("app.rb");
        let set = json!({"name": "amount", "value": "30"});
        let text = story.refused("debug_set_variable", set, "cannot set variables");
        story.call("debug_evaluate", tool_call(&text, "debug_evaluate"));
        assert_eq!(story.evaluate("amount"), "30");
    });
}
