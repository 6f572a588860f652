//! Scripted editors through the real `tether rpc`: every form of a call, garbage, the end of either side, requests in both
//! directions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::editor_client::EditorClient;
use crate::support::{Sandbox, node};

fn editor() -> Value {
    json!({"name": "test", "version": "9.9", "role": "editor"})
}

#[test]
fn every_operation_passes_in_each_form_of_parameters() {
    let sandbox = node();
    let mut client = EditorClient::start(&sandbox, json!([editor()]));
    for params in [json!({}), json!([]), json!([{}]), Value::Null] {
        assert_eq!(client.call("window/status", params)["state"], "absent");
    }
    let started = client.call("window/start", json!([{}]));
    assert_eq!(sandbox.once_it_answers(started)["state"], "ready");
    assert_eq!(client.call("window/evaluate", json!({"expression": "answer"}))["value"], 42);
    // An editor is notified without asking for it.
    assert!(client.incoming("window/didChangeState")["params"]["state"].is_string());
    client.fails("window/evaluate", json!({"expression": 7}), -32602, &["`expression` must be a string"]);
    client.fails("no/such", json!({}), -32602, &["there is no method", "hint: there are:"]);
    client.fails("debug/stack", json!({}), -32001, &["there is no debug session", "hint: "]);
    assert!(client.leave().success());
}

#[test]
fn stdins_end_ends_it_within_a_second_and_requests_in_flight_are_answered() {
    let sandbox = node();
    let mut client = EditorClient::start(&sandbox, editor());
    let id = client.send("window/status", json!({}));
    drop(client.stdin.take());
    assert_eq!(client.response(id)["result"]["state"], "absent");
    assert!(client.leave().success());
    // One that waits for a minute is not waited for.
    let mut client = EditorClient::start(&sandbox, editor());
    client.send("debug/wait_for_stop", json!({"sessionId": "none", "timeout": 60}));
    let began = Instant::now();
    assert!(client.leave().success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Without any message.
    assert!(EditorClient::spawn(&sandbox, &[]).leave().success());
}

#[test]
fn what_is_no_message_is_an_error_and_the_next_one_is_handled() {
    let sandbox = node();
    let mut client = EditorClient::spawn(&sandbox, &[]);
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    client.write(&frame("{"));
    assert_eq!(client.next()["error"]["code"], -32700);
    client.fails("window/status", json!({}), -32602, &["first message must be `initialize`", "`window/status`"]);
    client.fails("initialize", json!({"role": "boss"}), -32602, &["role"]);
    client.call("initialize", editor());
    for (body, code) in [("{", -32700), ("[1]", -32600), (r#"{"method": 7}"#, -32600)] {
        client.write(&frame(body));
        let reply = client.next();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(code)), "{body}: {reply}");
    }
    assert_eq!(client.call("window/status", json!({}))["state"], "absent");
    client.write(b"hello\r\n\r\n");
    let reply = client.next();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(-32700)), "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("Content-Length"), "{reply}");
    assert_eq!(client.leave().code(), Some(2));
}

#[test]
fn the_supervisors_exit_is_an_error_of_each_request_in_flight() {
    let sandbox = crate::support::node_with_build("cat .devtools/go");
    std::fs::create_dir(sandbox.path(".devtools")).unwrap();
    let go = sandbox.path(".devtools/go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut client = EditorClient::start(&sandbox, editor());
    let starting = client.send("window/start", json!({}));
    client.incoming("window/didChangeState");
    crate::support::kill(sandbox.supervisor().unwrap(), rustix::process::Signal::KILL);
    let error = client.response(starting)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("the supervisor has exited") && error.contains("run it again"), "{error}");
    assert_eq!(client.child.wait().unwrap().code(), Some(1));
    // The next one starts a supervisor anew.
    let client = EditorClient::start(&sandbox, editor());
    assert!(client.leave().success());
}

#[test]
fn an_editor_of_another_version_leaves_the_supervisor_as_it_is() {
    let sandbox = node();
    sandbox.status();
    let supervisor = sandbox.supervisor().unwrap();
    let info = json!({"request": {"clientInfo": {"name": "E", "version": "99.0.0"}, "projectInfo": {"rootDir": "/"}}});
    let client = EditorClient::start(&sandbox, info);
    assert!(client.leave().success());
    assert_eq!(sandbox.supervisor(), Some(supervisor));
}

#[test]
fn a_request_to_the_host_is_passed_on_to_it() {
    let sandbox = Sandbox::new();
    let mut caller = EditorClient::start(&sandbox, editor());
    let no_host = ["no VS Code with the tether extension", "install the tether extension"];
    caller.fails("host/runTask", json!({"name": "build"}), -32001, &no_host);
    let mut host = EditorClient::start(&sandbox, json!({"name": "code", "role": "host"}));
    for (method, params, result) in [
        ("host/runTask", json!({"name": "build"}), json!({"exitCode": 0})),
        ("host/executeCommand", json!({"command": "a.b", "args": [1]}), json!({"value": "x"})),
    ] {
        let id = caller.send(method, params.clone());
        let asked = host.incoming(method);
        assert_eq!(asked["params"], params);
        host.respond(&asked, result.clone());
        assert_eq!(caller.response(id)["result"], result);
    }
    let id = caller.send("host/runTask", json!({"name": "build"}));
    let asked = host.incoming("host/runTask");
    host.respond_with_error(&asked, "there is no task build");
    let error = caller.response(id)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("there is no task build"), "{error}");
    // One that dies with a request is an error of that request.
    let id = caller.send("host/runTask", json!({"name": "build"}));
    host.incoming("host/runTask");
    host.die();
    let error = caller.response(id)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("was not answered by code"), "{error}");
}

#[test]
fn the_host_learns_of_a_window_that_is_gone_but_not_of_one_that_is_replaced() {
    let sandbox = node();
    let mut host = EditorClient::start(&sandbox, json!({"name": "code", "role": "host"}));
    let pid = |status: &Value| status["pid"].as_u64().unwrap() as u32;
    let window = pid(&host.call("window/start", json!({})));
    crate::support::kill(window, rustix::process::Signal::KILL);
    crate::support::wait_for_end(window);
    let window = pid(&host.call("window/start", json!({})));
    assert!(host.hears_nothing_of("host/stopServer", Duration::from_secs(4)));
    crate::support::kill(window, rustix::process::Signal::KILL);
    let asked = host.incoming("host/stopServer");
    assert!(asked["params"]["reason"].as_str().unwrap().contains("closed"), "{asked}");
    host.respond(&asked, json!({"stopped": true}));
    assert!(host.leave().success());
}

#[test]
fn the_window_bridge_runs_commands_and_reads_output() {
    let sandbox = node();
    sandbox.tether(&["output"]).fails(3, &["there is no debug window", "`tether start`"]);
    let launch_id = sandbox.json(&["start"])["launchId"].as_str().unwrap().to_owned();
    // A bridge of an earlier window is not the one.
    let bridge = |id: &str| json!({"name": "window", "version": "99.0.0", "role": "windowBridge", "launchId": id});
    let _stale = EditorClient::start(&sandbox, bridge("another"));
    // The command waits for the bridge of the window that was just launched.
    let command =
        sandbox.command(["command", "a.b", "1", "text", "--json"]).stdout(std::process::Stdio::piped()).spawn();
    let mut bridge = EditorClient::start(&sandbox, bridge(&launch_id));
    let asked = bridge.incoming("window/command");
    assert_eq!(asked["params"], json!({"command": "a.b", "args": [1, "text"]}));
    bridge.respond(&asked, json!({"value": {"x": 1}}));
    let output = command.unwrap().wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["value"], &result["generation"]), (&json!({"x": 1}), &json!(1)), "{result}");

    let reading =
        |arguments: &'static [&'static str]| sandbox.command(arguments).stdout(std::process::Stdio::piped()).spawn();
    let command = reading(&["output", "My Log", "--since", "7"]);
    let asked = bridge.incoming("window/output");
    assert_eq!(asked["params"], json!({"channel": "My Log", "since": 7}));
    bridge.respond(&asked, json!({"channel": "My Log", "text": "one\ntwo\n", "cursor": 15, "dropped": 0}));
    let text = String::from_utf8(command.unwrap().wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(text, "one\ntwo\ncursor 15\n");
    let command = reading(&["output"]);
    let asked = bridge.incoming("window/output");
    let editors = json!([{"label": "a.ts", "isActive": true, "isDirty": true, "uri": "file:///a.ts"}]);
    bridge.respond(&asked, json!({"channels": [{"name": "My Log", "bytes": 8, "modifiedAt": 1}], "editors": editors}));
    let text = String::from_utf8(command.unwrap().wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(text, "channel My Log (8 bytes)\neditor a.ts (active, unsaved): file:///a.ts\n");
    assert!(bridge.leave().success());
}
