//! Malformed and early MCP requests: each gets a response.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};

/// A `tether mcp` driven line by line, without a client library.
struct Raw {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Raw {
    fn start(sandbox: &Sandbox) -> Raw {
        let mut child = sandbox.command(["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut raw = Raw { child, stdin, stdout };
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let initialized = raw.exchange(
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string().as_bytes(),
        );
        assert_eq!(initialized["result"]["serverInfo"]["name"], "tether");
        raw.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().as_bytes());
        raw
    }

    fn say(&mut self, line: &[u8]) {
        self.stdin.write_all(line).and_then(|()| self.stdin.write_all(b"\n")).unwrap();
    }

    fn exchange(&mut self, line: &[u8]) -> Value {
        self.say(line);
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    fn leave(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn every_line_gets_a_response_and_the_next_one_is_read() {
    let sandbox = crate::support::node();
    let mut raw = Raw::start(&sandbox);
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
fn a_last_line_without_a_newline_is_answered_before_exit() {
    let sandbox = crate::support::node();
    let mut raw = Raw::start(&sandbox);
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
        ("window_evaluate", json!({"expression": 7}), "expected a string"),
        ("window_evaluate", json!({"expresion": "1"}), "unknown field `expresion`"),
        ("window_start", json!({"rebuild": "maybe"}), "unknown variant `maybe`"),
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
        let told = agent.call("window_changes", json!({"path": path})).await;
        assert_eq!((&told["tracked"], &told["rule"], &told["line"]), (&json!(tracked), &rule, &line), "{path}: {told}");
    }
    agent.leave().await;
}

#[test]
fn a_client_that_sends_a_progress_token_receives_progress() {
    let sandbox = crate::support::node_with_build("cat .devtools/go");
    std::fs::create_dir(sandbox.path(".devtools")).unwrap();
    let go = sandbox.path(".devtools/go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut raw = Raw::start(&sandbox);
    let params = json!({"name": "window_start", "arguments": {}, "_meta": {"progressToken": "p"}});
    raw.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string().as_bytes());
    let mut read = || {
        let mut line = String::new();
        raw.stdout.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let told = read();
    assert_eq!((&told["method"], &told["params"]["progressToken"]), (&json!("notifications/progress"), &json!("p")));
    assert!(told["params"]["message"].as_str().unwrap().starts_with("building: sh -c"), "{told}");
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
