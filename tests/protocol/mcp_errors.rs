//! Malformed and early MCP requests: each gets a response.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};
use crate::support::raw_mcp::RawMcp;

#[test]
fn every_line_gets_a_response_and_the_next_one_is_read() {
    let sandbox = crate::support::node();
    let mut raw = RawMcp::start(&sandbox);
    let long = vec![b'x'; 20 * 1024 * 1024];
    let deep = "[".repeat(100_000);
    for (line, code) in [
        (&b"no json"[..], -32700),
        (&b"\xff\xfe\xfd"[..], -32700),
        (deep.as_bytes(), -32700),
        (&long[..], -32600),
        (&br#"{"jsonrpc": "1.0", "id": 5}"#[..], -32600),
        (&br#"{"jsonrpc": "2.0", "id": 6, "method": "no/such"}"#[..], -32601),
        (&br#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "no_such_tool"}}"#[..], -32602),
    ] {
        let answer = raw.exchange(line);
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let listed = raw.exchange(br#"{"jsonrpc": "2.0", "id": "list", "method": "tools/list"}"#);
    assert_eq!(listed["id"], "list");
    raw.leave();
}

#[test]
fn ten_thousand_pipelined_requests_are_all_answered() {
    const REQUESTS: u64 = 10_000;
    let sandbox = crate::support::node();
    let RawMcp { mut child, mut stdin, stdout } = RawMcp::start(&sandbox);
    // A walk over the workspace takes longer than reading a request.
    let params = json!({"name": "window_changes", "arguments": {}});
    let request = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string() + "\n";
    let pipelined: String = (1..=REQUESTS).map(request).collect();
    let writer = std::thread::spawn(move || {
        stdin.write_all(pipelined.as_bytes()).unwrap();
        stdin
    });
    let (lines, responses) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut missing: std::collections::BTreeSet<u64> = (1..=REQUESTS).collect();
    while !missing.is_empty() {
        let Ok(line) = responses.recv_timeout(crate::support::TEST_TIMEOUT) else {
            let _ = child.kill();
            panic!("{} of {REQUESTS} requests have no response", missing.len());
        };
        let response: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(response["result"]["isError"], false, "{response}");
        assert!(missing.remove(&response["id"].as_u64().unwrap()), "a second response: {response}");
    }
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
    reader.join().unwrap().unwrap();
}

#[test]
fn a_last_line_without_a_newline_is_answered_before_exit() {
    let sandbox = crate::support::node();
    let mut raw = RawMcp::start(&sandbox);
    raw.stdin.write_all(br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#).unwrap();
    drop(raw.stdin);
    let mut answer = String::new();
    raw.stdout.read_line(&mut answer).unwrap();
    assert!(answer.contains("window_status"), "{answer:?}");
    assert!(raw.child.wait().unwrap().success());
}

#[tokio::test]
async fn wrong_arguments_are_an_error_that_names_them() {
    let sandbox = crate::support::node();
    let agent = McpClient::start(&sandbox).await;
    for (tool, arguments, words) in [
        ("window_evaluate", json!({}), "missing field `expression`"),
        ("window_evaluate", json!({"expression": 7}), "`expression` must be a string, and 7 is an integer"),
        ("window_evaluate", json!({"expresion": "1"}), "unknown field `expresion`"),
        ("window_start", json!({"rebuild": "maybe"}), "`rebuild` must be \"auto\" or \"always\" or \"never\""),
        ("window_start", json!({"config": "Run Extension"}), "cannot find the launch configuration \"Run Extension\""),
        ("window_status", json!({"x": 1}), "it takes none"),
        ("window_changes", json!({"path": "../../etc/passwd"}), "outside"),
    ] {
        let result = agent.ask(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}");
        assert!(text(&result).contains(words), "{words:?} is not in {}", text(&result));
    }
    agent.leave().await;
}

/// An agent cannot run commands: it is told of tools.
#[tokio::test]
async fn hints_name_tools_over_mcp_and_commands_on_the_command_line() {
    let sandbox = crate::support::node();
    let agent = McpClient::start(&sandbox).await;
    for (tool, arguments, hint) in [
        ("window_evaluate", json!({"expression": "1"}), "`window_start` starts it"),
        ("debug_stack", json!({}), "`debug_launch {\"program\":\"PROGRAM\"}` starts one"),
        ("breakpoint_remove", json!({"breakpointId": 7}), "`breakpoint_list` lists them"),
    ] {
        let result = agent.ask(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}");
        let text = text(&result);
        assert!(text.contains(hint) && !text.contains("`tether "), "{hint:?} is not in {text}");
    }
    agent.leave().await;
    sandbox.tether(&["evaluate", "1"]).fails(3, &["`tether start` starts it"]);
    sandbox.tether(&["debug", "stack"]).fails(3, &["`tether debug launch PROGRAM` starts one"]);
    sandbox.tether(&["break", "remove", "7"]).fails(3, &["`tether break list` lists them"]);
}

/// Some clients send every value as a text.
#[tokio::test]
async fn a_number_is_taken_as_text_and_a_step_is_over_the_line() {
    let sandbox = crate::support::node();
    let agent = McpClient::start(&sandbox).await;
    agent.call("window_start", json!({})).await;
    let answered = agent.call("window_evaluate", json!({"expression": "answer", "timeoutMs": "20000"})).await;
    assert_eq!(answered["value"], 42);
    let result = agent.ask("debug_step", json!({})).await;
    let text = text(&result);
    assert!(!text.contains("missing field"), "{text}");
    agent.leave().await;
}

#[tokio::test]
async fn debug_source_reads_the_workspace_only_when_nothing_else_is_named() {
    let sandbox = crate::support::node();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "SECRET\n").unwrap();
    std::os::unix::fs::symlink(&secret, sandbox.path("link.js")).unwrap();
    std::os::unix::fs::symlink(outside.path(), sandbox.path("folder")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("server.js"), sandbox.path("inside.js")).unwrap();
    let climbing = format!("{}{}", "../".repeat(20), secret.display());
    let agent = McpClient::start(&sandbox).await;
    for file in [secret.to_str().unwrap(), "link.js", "folder/secret.txt", &climbing] {
        let result = agent.ask("debug_source", json!({"file": file})).await;
        assert_eq!(result.is_error, Some(true), "{file}");
        let text = text(&result);
        assert!(text.contains("outside of the workspace") && !text.contains("SECRET"), "{file}: {text}");
    }
    for file in ["server.js", "inside.js", "./server.js"] {
        let shown = agent.call("debug_source", json!({"file": file})).await;
        assert!(shown["text"].as_str().unwrap().contains("http"), "{file}: {shown}");
    }
    agent.leave().await;
}

#[tokio::test]
async fn mcp_cannot_grant_trust() {
    let sandbox = Sandbox::new();
    sandbox.write("server.js", crate::support::NODE_SERVICE);
    sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n");
    let agent = McpClient::start(&sandbox).await;
    let result = agent.ask("window_start", json!({})).await;
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("tether trust"), "{}", text(&result));
    agent.leave().await;
}

#[tokio::test]
async fn a_path_is_explained_by_the_rule_and_the_line_that_decided() {
    let sandbox = crate::support::node();
    sandbox.write(".devtoolsignore", "# ours\nout/\n!dist\n");
    let agent = McpClient::start(&sandbox).await;
    for (path, tracked, rule, line) in [
        ("out/a.js", false, json!("out/"), json!(2)),
        ("dist/a.js", true, json!("!dist"), json!(3)),
        ("node_modules/x/a.js", false, json!("node_modules"), Value::Null),
        ("src/a.js", true, Value::Null, Value::Null),
    ] {
        let reported = agent.call("window_changes", json!({"path": path})).await;
        assert_eq!(
            (&reported["tracked"], &reported["rule"], &reported["line"]),
            (&json!(tracked), &rule, &line),
            "{path}: {reported}"
        );
    }
    agent.leave().await;
}

#[test]
fn a_client_that_sends_a_progress_token_receives_progress() {
    let sandbox = crate::support::node_with_build("cat .devtools/go");
    std::fs::create_dir(sandbox.path(".devtools")).unwrap();
    let go = sandbox.path(".devtools/go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut raw = RawMcp::start(&sandbox);
    let params = json!({"name": "window_start", "arguments": {}, "_meta": {"progressToken": "p"}});
    raw.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string().as_bytes());
    let mut read = || {
        let mut line = String::new();
        raw.stdout.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let reported = read();
    assert_eq!(
        (&reported["method"], &reported["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p"))
    );
    assert!(reported["params"]["message"].as_str().unwrap().starts_with("building: sh -c"), "{reported}");
    // The build ends only after this.
    drop(std::fs::OpenOptions::new().write(true).open(&go).unwrap());
    let answer = loop {
        let message = read();
        if message["id"] == 1 {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress");
    };
    assert_eq!(sandbox.once_it_answers(answer["result"]["structuredContent"].clone())["state"], "ready");
    raw.leave();
}
