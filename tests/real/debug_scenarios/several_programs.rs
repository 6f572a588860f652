//! Several services as one session, a target each; and several sessions that are waited for together.

use serde_json::{Value, json};

use crate::debug_commands::command_sandbox::{CommandSandbox, has_adapter};

const SERVER: &str = "\
import time
count = 0
while True:
    count += 1
    time.sleep(0.05)  # SERVER
";

const CLIENT: &str = "\
let count = 0;
setInterval(() => {
  count += 1; // CLIENT
}, 50);
";

fn stage() -> Option<CommandSandbox> {
    let stage = || CommandSandbox::with(&[("server.py", SERVER), ("client.js", CLIENT)]);
    (has_adapter("debugpy") && has_adapter("js-debug")).then(stage)
}

/// The file in which an answer has stopped.
fn stopped_in(answer: &Value) -> &str {
    answer["stopReason"]["location"]["sourcePath"].as_str().unwrap_or_else(|| panic!("{answer:#}"))
}

#[test]
fn programs_are_one_session_and_are_stopped_inspected_and_ended_together() {
    let Some(stage) = stage() else { return };
    let launched = stage.json(&["debug", "launch", "--programs", "server.py", "client.js"]);
    assert_eq!((&launched["sessionId"], &launched["state"]), (&json!("d1"), &json!("RUNNING")), "{launched:#}");
    assert_eq!(launched["notes"], json!(["d1 has 2 programs: server.py, client.js"]));
    let status = stage.json(&["debug", "status"]);
    let roots: Vec<&Value> = status["targets"].as_array().unwrap().iter().filter(|it| it["parent"].is_null()).collect();
    let shown: Vec<_> =
        roots.iter().map(|it| (it["name"].as_str().unwrap(), it["language"].as_str().unwrap())).collect();
    assert_eq!(shown, [("server.py", "python"), ("client.js", "javascript")], "{status:#}");
    // js-debug does not report the process.
    assert_eq!(roots[0]["pid"], status["pid"], "{status:#}");

    // Each stops in its own target, and the other one runs on.
    for (file, marker) in [("server.py", "SERVER"), ("client.js", "CLIENT")] {
        stage.json(&["break", "set", &stage.at(file, marker)]);
        let stop = stage.json(&["debug", "wait", "60"]);
        assert_eq!((&stop["stopped"], &stop["sessionId"], stopped_in(&stop)), (&json!(true), &json!("d1"), file));
        assert!(stage.value("count").parse::<u64>().is_ok());
        let states = stage.json(&["debug", "status"])["targets"].to_string();
        assert!(states.contains("STOPPED") && states.contains("RUNNING"), "{states}");
        stage.json(&["break", "remove", "--all"]);
        stage.json(&["debug", "continue"]);
    }
    // Restarted together, and one end does not end the session.
    let again = stage.json(&["debug", "launch", "--restart", "d1"]);
    assert_eq!(again["notes"], json!(["d2 has 2 programs: server.py, client.js"]), "{again:#}");
    let status = stage.json(&["debug", "status"]);
    let server = status["targets"][0]["pid"].as_u64().unwrap() as u32;
    crate::support::kill(server, rustix::process::Signal::KILL);
    crate::support::eventually("the end of the server", || {
        let status = stage.json(&["debug", "status"]);
        let first = status["targets"][0]["state"].as_str()?.to_owned();
        assert_eq!((&status["sessionId"], &status["state"]), (&json!("d2"), &json!("RUNNING")), "{status:#}");
        (first != "RUNNING").then_some(())
    });
    let ended = stage.json(&["debug", "stop", "d2"]);
    assert!(["TERMINATED", "DISCONNECTED"].contains(&ended["state"].as_str().unwrap()), "{ended:#}");
    stage.is_quiet();
}

#[test]
fn each_program_of_a_session_says_how_it_ended() {
    let Some(stage) = stage() else { return };
    stage.sandbox.write("fails.py", "raise SystemExit(3)\n");
    stage.sandbox.write("works.js", "setTimeout(() => {}, 300);\n");
    let ended = stage.json(&["debug", "launch", "--programs", "fails.py", "works.js", "--wait", "60"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &json!("TERMINATED")), "{ended:#}");
    let message = ended["message"].as_str().unwrap();
    assert_eq!(message, "fails.py has ended with code 3; works.js has ended with code 0");
    assert_eq!(ended["exitCode"], 3);
    stage.is_quiet();
}

#[test]
fn all_programs_start_or_none() {
    let Some(stage) = stage() else { return };
    stage.sandbox.write("broken.py", "");
    stage.tether(&["debug", "launch", "--programs", "server.py", "none.js"]).fails(2, &["none.js", "No such file"]);
    let args = ["debug", "launch", "--programs", "server.py", "client.js", "--", "x"];
    stage.tether(&args).fails(2, &["each runs without arguments", "a compound of launch.json"]);
    stage.is_quiet();
}

#[test]
fn a_wait_without_an_id_ends_with_the_first_session_that_stops_and_says_which() {
    let Some(stage) = stage() else { return };
    stage.json(&["debug", "launch", "server.py"]);
    stage.json(&["debug", "launch", "client.js"]);
    let none = stage.json(&["debug", "wait", "1"]);
    assert_eq!(none["stopped"], false);
    assert!(none["message"].as_str().unwrap().contains("(of d1, d2)"), "{none:#}");
    assert!(none["waitedMs"].as_u64().unwrap() >= 900, "{none:#}");
    stage.json(&["break", "set", &stage.at("client.js", "CLIENT")]);
    let second = stage.json(&["debug", "wait", "60"]);
    assert_eq!((&second["sessionId"], stopped_in(&second)), (&json!("d2"), "client.js"), "{second:#}");
    stage.json(&["debug", "stop", "d2"]);
    stage.json(&["break", "set", &stage.at("server.py", "SERVER")]);
    let first = stage.json(&["debug", "wait", "60"]);
    assert_eq!((&first["sessionId"], stopped_in(&first)), (&json!("d1"), "server.py"), "{first:#}");
    stage.json(&["debug", "stop", "d1"]);
    stage.is_quiet();
}
