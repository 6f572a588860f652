//! Which launch configuration is used by the next launch.

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn a_configuration_whose_start_fails_is_not_the_choice_of_the_next_relaunch() {
    let sandbox = Sandbox::new();
    let configuration = |name: &str| json!({"name": name, "type": "node", "program": "server.js", "env": {"ANSWER": name}, "preLaunchTask": name});
    let launch = json!({"configurations": [configuration("one"), configuration("two")]});
    sandbox.write(".vscode/launch.json", &launch.to_string());
    let task = |label: &str, command: &str| json!({"label": label, "type": "shell", "command": command});
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task("one", "true"), task("two", "exit 1")]}).to_string());
    let service = "globalThis.answer = process.env.ANSWER; setInterval(() => {}, 1000);";
    sandbox.write("server.js", service);
    for name in ["one", "two"] {
        sandbox.tether(&["trust", "--yes", "--config", name]).ok();
    }
    let one = sandbox.json(&["start"]);
    sandbox.tether(&["start", "--config", "two"]).fails(4, &[]);
    assert_eq!(sandbox.status()["pid"], one["pid"], "the old window stays");
    // A relaunch, also by another supervisor.
    for edit in ["\n", "\n\n"] {
        sandbox.write("server.js", &format!("{service}{edit}"));
        let reported = sandbox.json(&["evaluate", "answer"]);
        assert_eq!((&reported["value"], reported["refreshed"].is_object()), (&json!("one"), true), "{reported}");
        sandbox.tether(&["shutdown"]).ok();
    }
}
