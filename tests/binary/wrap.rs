//! `tether wrap`: the client's connection stays, while the server behind it is built, restarted, broken and mended.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::support::wrap_client::WrapClient;
use crate::support::{Sandbox, TEST_TIMEOUT, eventually, is_alive};

const SERVER: &str = include_str!("wrapped_server.mjs");

fn version(version: u32) -> String {
    SERVER.replace("VERSION = 1", &format!("VERSION = {version}"))
}

const NODE: [&str; 2] = ["node", "server.mjs"];

fn nothing_is_left(sandbox: &Sandbox) {
    eventually("the servers have ended", || {
        sandbox.processes().iter().all(|(_, command)| !command.contains("server.mjs")).then_some(())
    });
}

#[test]
fn each_edit_is_answered_by_the_next_request_over_the_same_connection() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    assert_eq!(client.text("version"), "1");
    for edit in 2..=12 {
        sandbox.write("server.mjs", &version(edit));
        assert_eq!(client.text("version"), edit.to_string());
        assert_eq!(client.text("level"), "warning", "what the client has set is told again");
    }
    // The list of tools is the same: nothing was said of it.
    assert!(client.kept.is_empty(), "{:?}", client.kept);
    sandbox.write("server.mjs", &version(13).replace("[\"version\"]", "[\"version\", \"level\"]"));
    assert_eq!(client.text("version"), "13");
    client.find(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(client.call("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 2);
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_call_in_flight_is_finished_by_the_server_that_has_it() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let file = sandbox.path(".devtools-release");
    let slow = client.send("tools/call", json!({"name": "slow", "arguments": {"file": file}}));
    // Sent behind it, and answered: the slow one has begun.
    assert_eq!(client.text("version"), "1");
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    let asking = client.send("tools/call", json!({"name": "ask"}));
    let asked = client.find(|message| message["method"] == "roots/list");
    client.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///r"}]}}));
    let answer = client.response(asking);
    assert_eq!(answer["result"]["content"][0]["text"], "2 file:///r", "{answer}");
    fs::write(&file, "").unwrap();
    assert_eq!(client.response(slow)["result"]["content"][0]["text"], "1", "the old server has finished it");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_server_that_crashes_is_said_once_and_started_by_the_next_request() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let crashed = client.tool("crash");
    let error = &crashed["error"];
    assert!(error["message"].as_str().unwrap().contains("exited with code 3"), "{crashed}");
    assert_eq!(error["data"]["lastLines"], "it went wrong", "{crashed}");
    assert_eq!((client.text("version").as_str(), client.text("level").as_str()), ("1", "warning"));
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_server_that_does_not_come_up_leaves_the_old_one_and_is_tried_again_after_an_edit() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    sandbox.write("server.mjs", "console.error('no such thing'); process.exit(2);");
    let kept = client.tool("version");
    assert_eq!(kept["result"]["content"][0]["text"], "1", "{kept}");
    let note = kept["result"]["_meta"]["tether/note"].as_str().unwrap();
    assert!(note.contains("exited with code 2") && note.contains("no such thing"), "{note}");
    let logged = client.find(|message| message["method"] == "notifications/message");
    assert!(logged["params"]["data"].as_str().unwrap().contains("no such thing"), "{logged}");
    // The same broken text is not started again.
    assert_eq!(client.tool("version")["result"].get("_meta"), None);
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn the_build_runs_first_and_one_that_fails_keeps_the_server() {
    let build =
        "[build]\ncommand = ['sh', '-c', 'mkdir -p out; cp source.mjs out/server.mjs; node --check out/server.mjs']\n";
    let sandbox = Sandbox::new();
    for (file, text) in [("source.mjs", SERVER), ("devtools.toml", build), (".gitignore", "out/\n")] {
        sandbox.write(file, text);
    }
    let refused = sandbox.tether(&["wrap", "--", "node", "out/server.mjs"]);
    refused.fails(5, &["not trusted", "tether trust"]);
    sandbox.tether(&["trust", "--yes"]).ok();
    let mut client = WrapClient::ready(&sandbox, &["node", "out/server.mjs"]);
    sandbox.write("source.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    sandbox.write("source.mjs", "this is (");
    let kept = client.tool("version");
    assert_eq!(kept["result"]["content"][0]["text"], "2", "{kept}");
    assert!(kept["result"]["_meta"]["tether/note"].as_str().unwrap().contains("SyntaxError"), "{kept}");
    sandbox.write("source.mjs", &version(3));
    assert_eq!(client.text("version"), "3");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn what_cannot_be_wrapped_is_named() {
    let sandbox = Sandbox::with(&[("server.mjs", "console.log('hello'); setInterval(() => {}, 1000);")]);
    sandbox.tether(&["wrap"]).fails(2, &["COMMAND"]);
    sandbox.tether(&["wrap", "--", "no-such-server"]).fails(6, &["no-such-server"]);
    let mut client = WrapClient::start(&sandbox, &NODE);
    // What is no message is not passed on: the next line is the answer to one.
    writeln!(client.stdin.as_mut().unwrap(), "hello").unwrap();
    let refused = client.find(|_| true);
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null));
    client.send("initialize", json!({}));
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn ten_thousand_requests_at_once_are_all_answered_once() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let first = client.last + 1;
    let mut stdin = client.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in first..first + 10_000 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "version"}});
            writeln!(stdin, "{call}").unwrap();
        }
        stdin
    });
    for id in first..first + 10_000 {
        let answer = client.messages.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("1")));
    }
    client.stdin = Some(writer.join().unwrap());
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn ids_and_tokens_of_both_sides_are_kept_apart_over_a_restart() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let talk = |client: &mut WrapClient| {
        client.send("tools/call", json!({"name": "talk", "_meta": {"progressToken": "t"}}));
        client.find(|message| message["method"] == "sampling/createMessage")
    };
    let old = talk(&mut client);
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    let new = talk(&mut client);
    let token = |asked: &Value| asked["params"]["_meta"]["progressToken"].clone();
    assert_ne!((&old["id"], token(&old)), (&new["id"], token(&new)), "both servers have used 1");
    for asked in [&new, &old] {
        let params = json!({"progressToken": token(asked), "progress": 0.5});
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        let cancelled = client.find(|message| message["method"] == "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    }
    let answers = [client.last - 2, client.last].map(|id| client.response(id)["result"]["content"][0]["text"].clone());
    assert_eq!(answers, ["1 1 0.5", "2 1 0.5"]);
    assert_eq!(client.kept.iter().filter(|it| it["params"]["progressToken"] == "t").count(), 2, "{:?}", client.kept);
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_cancelled_call_is_cancelled_where_it_runs_and_holds_no_server() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let hanging = client.send("tools/call", json!({"name": "hang"}));
    let first = client.text("version");
    let server = |sandbox: &Sandbox| {
        let is_server = |(_, line): &(u32, String)| line.starts_with("node ");
        sandbox.processes().into_iter().filter(is_server).map(|(pid, _)| pid).collect::<Vec<_>>()
    };
    let before = server(&sandbox);
    sandbox.write("server.mjs", &version(2));
    assert_eq!((first.as_str(), client.text("version").as_str()), ("1", "2"));
    assert!(before.iter().all(|pid| is_alive(*pid)), "the old server still has a call");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hanging}});
    client.write(&cancel);
    // It went to the old server, not to the new one.
    assert_eq!(client.text("cancelled"), "nothing");
    eventually("the old server has ended", || before.iter().all(|pid| !is_alive(*pid)).then_some(()));
    let hanging = client.send("tools/call", json!({"name": "hang"}));
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hanging}}));
    assert_eq!(client.text("cancelled"), format!("{hanging} in 2"));
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_server_that_never_answers_initialize_is_named_with_its_last_lines() {
    let silent = "console.error('thinking'); process.stdin.resume();";
    let sandbox = Sandbox::with(&[("server.mjs", silent)]);
    let mut client = WrapClient::start_with(&sandbox, &["--start-timeout", "1s"], &NODE);
    let refused = client.call("initialize", json!({}));
    let error = &refused["error"];
    assert!(error["message"].as_str().unwrap().contains("has not answered within 1s"), "{refused}");
    assert_eq!(error["data"]["lastLines"], "thinking", "{refused}");
    // Mended, it is started by the next try of the client.
    sandbox.write("server.mjs", SERVER);
    let mut client = client.handshake();
    assert_eq!(client.text("version"), "1");
    // A new one that is silent leaves the old one.
    sandbox.write("server.mjs", silent);
    let kept = client.tool("version");
    let note = kept["result"]["_meta"]["tether/note"].as_str().unwrap();
    assert!(note.contains("has not answered `initialize` within 1s") && note.contains("thinking"), "{note}");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn what_a_server_prints_to_stdout_before_its_handshake_is_named() {
    let sandbox = Sandbox::with(&[("server.mjs", &format!("console.log('Server \\x1b[1mready');\n{SERVER}"))]);
    let mut client = WrapClient::start(&sandbox, &NODE);
    client.call("initialize", json!({}));
    let listed = client.call("tools/list", json!({}));
    let note = listed["result"]["_meta"]["tether/note"].as_str().unwrap_or_else(|| panic!("{listed}"));
    assert!(note.contains("no message: Server \\u{1b}[1mready") && note.contains("prints to stderr"), "{note}");
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_client_that_closes_in_the_middle_leaves_nothing() {
    let build = "[build]\ncommand = ['sh', '-c', 'test -e go || sleep 600']\n";
    let sandbox = Sandbox::with(&[("server.mjs", SERVER), ("go", ""), ("devtools.toml", build)]);
    // With a call that is never answered.
    let mut client = WrapClient::ready(&sandbox, &NODE);
    client.send("tools/call", json!({"name": "hang"}));
    client.leave();
    nothing_is_left(&sandbox);
    // With a call that is answered soon.
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let id = client.send("tools/call", json!({"name": "version"}));
    drop(client.stdin.take());
    assert_eq!(client.response(id)["result"]["content"][0]["text"], "1");
    assert!(client.child.wait().unwrap().success());
    nothing_is_left(&sandbox);
    // During a build.
    let mut client = WrapClient::ready(&sandbox, &NODE);
    fs::remove_file(sandbox.path("go")).unwrap();
    client.send("tools/call", json!({"name": "version", "_meta": {"progressToken": 1}}));
    let told = client.find(|message| message["method"] == "notifications/progress");
    assert!(told["params"]["message"].as_str().unwrap().contains("go was removed"), "{told}");
    client.leave();
    nothing_is_left(&sandbox);
    assert!(sandbox.processes().iter().all(|(_, line)| !line.contains("sleep 600")), "{:?}", sandbox.processes());
    // By a signal, which its server does not get.
    sandbox.write("go", "");
    let mut client = WrapClient::ready(&sandbox, &NODE);
    client.send("tools/call", json!({"name": "hang"}));
    crate::support::kill(client.child.id(), rustix::process::Signal::TERM);
    client.child.wait().unwrap();
    nothing_is_left(&sandbox);
}

#[test]
fn lines_that_are_no_messages_are_refused_and_the_next_one_is_answered() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    for (line, code) in
        [(&b"{}"[..], -32600), (b"[1]", -32600), (b"\xff\xfe", -32700), (b"{\"id\":{},\"method\":\"x\"}", -32600)]
    {
        client.stdin.as_mut().unwrap().write_all(&[line, b"\n\r\n"].concat()).unwrap();
        let refused = client.find(|message| message.get("error").is_some());
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(code), &Value::Null), "{refused}");
    }
    let long = client.stdin.as_mut().unwrap();
    for _ in 0..17 {
        long.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    long.write_all(b"\n").unwrap();
    let refused = client.find(|message| message.get("error").is_some());
    assert!(refused["error"]["message"].as_str().unwrap().contains("longer than"), "{refused}");
    assert_eq!(client.text("version"), "1");
    client.leave();
    nothing_is_left(&sandbox);
}

/// Messages of 100 MB in all, to a server that reads slowly, and from it: neither side is held in memory.
#[test]
fn memory_stays_bounded_whatever_is_pipelined() {
    let sandbox = Sandbox::with(&[("server.mjs", SERVER)]);
    let mut client = WrapClient::ready(&sandbox, &NODE);
    let status =
        |client: &WrapClient| procfs::process::Process::new(client.child.id() as i32).unwrap().status().unwrap();
    let before = status(&client).vmrss.unwrap();
    let filler = "x".repeat(10_000);
    let first = client.last + 1;
    let mut stdin = client.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in first..first + 10_000 {
            let params = json!({"name": "echo", "arguments": {"text": filler}});
            writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
                .unwrap();
        }
        stdin
    });
    for id in first..first + 10_000 {
        let answer = client.messages.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(
            (&answer["id"], answer["result"]["content"][0]["text"].as_str().unwrap().len()),
            (&json!(id), 10_000)
        );
    }
    let grown = status(&client).vmhwm.unwrap() - before;
    println!("{before} kB, and {grown} kB more at most");
    assert!(grown <= 16 << 10, "{grown} kB more than {before} kB");
    client.stdin = Some(writer.join().unwrap());
    client.leave();
    nothing_is_left(&sandbox);
}

#[test]
fn a_build_that_writes_tracked_files_does_not_restart_for_ever() {
    let build = "[build]\ncommand = ['sh', '-c', 'date +%N > generated.txt']\n";
    let sandbox = Sandbox::with(&[("server.mjs", SERVER), ("devtools.toml", build)]);
    let starts = sandbox.home().join("starts");
    let script = format!("echo $$ >> '{}'; exec node server.mjs", starts.display());
    let mut client = WrapClient::ready(&sandbox, &["sh", "-c", &script]);
    let count = || fs::read_to_string(&starts).unwrap().lines().count();
    for _ in 0..5 {
        client.text("version");
    }
    let settled = count();
    for _ in 0..5 {
        client.text("version");
    }
    assert_eq!(count(), settled, "the build's own file is no edit");
    sandbox.write("server.mjs", &version(2));
    assert_eq!(client.text("version"), "2");
    client.leave();
    nothing_is_left(&sandbox);
}
