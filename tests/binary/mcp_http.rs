//! `tether mcp --http`: several clients on the loopback, each with the token; nobody else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Sandbox, wait_for_end};

/// A server, and what it has printed.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Server {
        let mut command = sandbox.command([&["mcp", "--json", "--http"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let url = printed["url"].as_str().unwrap();
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        Server { child, port: port.parse().unwrap(), token: printed["token"].as_str().unwrap().to_owned() }
    }

    /// One request on a connection of its own; returns the status, the head and the body.
    fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers.iter().copied().chain((!has_host).then_some(("Host", host.as_str()))) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> (u16, String, String) {
        let given = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        self.exchange("POST", "/mcp", &[&given, headers].concat(), &message.to_string())
    }

    fn end(mut self) {
        crate::support::kill(self.child.id(), rustix::process::Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn initialize() -> Value {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// The message with this id in a stream of events.
fn message(body: &str, id: u64) -> Value {
    let mut data = body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    data.find(|message| message["id"] == id).unwrap_or_else(|| panic!("{body}"))
}

/// A session of a client.
struct Session<'a> {
    server: &'a Server,
    bearer: String,
    id: String,
}

impl Session<'_> {
    fn open(server: &Server) -> Session<'_> {
        let bearer = format!("Bearer {}", server.token);
        let (status, head, body) = server.post(&[("Authorization", &bearer)], &initialize());
        assert_eq!(
            (status, message(&body, 0)["result"]["serverInfo"]["name"].as_str()),
            (200, Some("tether")),
            "{body}"
        );
        let id = head.lines().find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        let session = Session { server, bearer, id: id.unwrap() };
        let (status, ..) = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(status, 202);
        session
    }

    fn post(&self, body: &Value) -> (u16, String, String) {
        self.server.post(&[("Authorization", &self.bearer), ("Mcp-Session-Id", &self.id)], body)
    }

    fn call(&self, method: &str, params: Value) -> Value {
        let (status, _, body) = self.post(&json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}));
        assert_eq!(status, 200, "{body}");
        message(&body, 5)
    }
}

#[test]
fn several_clients_have_sessions_of_their_own() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let (first, second) = (Session::open(&server), Session::open(&server));
    assert_ne!(first.id, second.id);
    for session in [&first, &second] {
        let listed = session.call("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let file = include_str!("../../src/frontends/mcp/tool_list.json");
        assert_eq!(json!(tools), serde_json::from_str::<Value>(file).unwrap());
        let status = session.call("tools/call", json!({"name": "window_status", "arguments": {}}));
        assert_eq!(status["result"]["structuredContent"]["state"], "absent", "{status}");
    }
    // One that leaves does not end the other.
    let (status, ..) =
        server.exchange("DELETE", "/mcp", &[("Authorization", &first.bearer), ("Mcp-Session-Id", &first.id)], "");
    assert!((200..300).contains(&status), "{status}");
    assert_eq!(first.post(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).0, 404);
    assert_eq!(second.call("ping", json!({}))["result"], json!({}));
    let supervisor = sandbox.supervisor().unwrap();
    server.end();
    sandbox.tether(&["shutdown"]).ok();
    wait_for_end(supervisor);
}

#[test]
fn who_has_no_token_or_comes_from_elsewhere_is_refused() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let wrong = format!("Bearer {}0", &server.token[..server.token.len() - 1].replace('0', "1"));
    for headers in [&[][..], &[("Authorization", wrong.as_str())], &[("Authorization", "Bearer ")]] {
        let (status, head, body) = server.post(headers, &initialize());
        assert!(status == 401 && head.to_lowercase().contains("www-authenticate: bearer"), "{headers:?}: {head}");
        assert!(body.contains("tether mcp --http"), "{body}");
    }
    let bearer = format!("Bearer {}", server.token);
    let with = |name, value| [("Authorization", bearer.as_str()), (name, value)];
    assert_eq!(server.post(&with("Origin", "http://evil.example"), &initialize()).0, 403);
    assert_eq!(server.post(&with("Host", "evil.example"), &initialize()).0, 403);
    assert_eq!(server.exchange("GET", "/", &[], "").0, 404);
    assert_eq!(server.post(&with("X", "y"), &json!("no message")).0 / 100, 4);
    // Not a byte is read of what is too long.
    let long = "x".repeat(17 << 20);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        long.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || drop(writer.write_all(long.as_bytes())));
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 413");
    drop(stream);
    writing.join().unwrap();
    server.end();
    assert_eq!(sandbox.supervisor(), None, "nobody was let in");
}

#[test]
fn the_token_stays_and_a_port_that_is_taken_is_named() {
    let sandbox = Sandbox::new();
    let first = Server::start(&sandbox, &[]);
    let port = first.port.to_string();
    sandbox.tether(&["mcp", "--http", &port]).fails(1, &[&format!("port {port}"), "--http 0"]);
    let token = first.token.clone();
    first.end();
    let again = Server::start(&sandbox, &[&port]);
    assert_eq!((again.token.as_str(), again.port.to_string()), (token.as_str(), port));
    again.end();
    let state = sandbox.home().join("state");
    let files = ignore::WalkBuilder::new(&state).build().flatten().filter(|it| it.file_name() == "mcp-token");
    let modes: Vec<u32> = files.map(|it| it.metadata().unwrap().permissions().mode() & 0o777).collect();
    assert_eq!(modes, [0o600]);
}

#[test]
fn a_model_with_little_room_finds_the_tools_that_it_needs() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--tools", "search"]);
    let session = Session::open(&server);
    let tools = session.call("tools/list", json!({}))["result"]["tools"].clone();
    assert!(tools.to_string().len() <= 3 << 10, "{tools}");
    let tool = |name: &str, arguments: Value| {
        let answer = session.call("tools/call", json!({"name": name, "arguments": arguments}));
        answer["result"].clone()
    };
    let found = tool("tool_search", json!({"query": "list breakpoints"}));
    let lines = found["content"][0]["text"].as_str().unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "breakpoint_list", "{lines}");
    let listed = tool("tool_call", json!({"name": first["name"]}));
    assert_eq!(listed["structuredContent"]["breakpoints"], json!([]), "{listed}");
    let refused = tool("tool_call", json!({"name": "breakpoint_set", "arguments": "{\"file\": 1}"}));
    assert_eq!(refused["isError"], true, "{refused}");
    let status = tool("window_status", json!({}));
    assert_eq!(status["structuredContent"]["state"], "absent");
    server.end();
    sandbox.tether(&["shutdown"]).ok();
}
