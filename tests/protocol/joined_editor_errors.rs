//! Editors that break the protocol, or go away in the middle of it: each error names its cause, and nothing is left.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use devtether::debug::SessionRegistry;
use devtether::debug::join::{SessionChoice, SessionStart, serve_editor};
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tether_base::error::Error;
use tether_dap::DapConnection;
use tether_wire::frames::ContentLength;
use tokio::io::{DuplexStream, duplex, split};
use tokio::task::JoinHandle;
use tokio_util::codec::Framed;

const DEADLINE: Duration = Duration::from_secs(60);

/// Not a `DapClient`: what that sends is recorded, and must be valid.
struct Editor {
    sessions: SessionRegistry,
    stream: Framed<DuplexStream, ContentLength>,
    last_seq: i64,
    /// Responses that were received before they were waited for, by the number of their request.
    responses: HashMap<i64, Value>,
    serving: JoinHandle<()>,
    workspace: tempfile::TempDir,
}

impl Editor {
    /// An editor whose every `launch` and `attach` fails.
    fn connect() -> Editor {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.py"), "a\nb\nc\n").unwrap();
        let (sessions, driver) =
            SessionRegistry::open(None, workspace.path(), "protocol".to_owned(), |_| Default::default());
        tokio::spawn(driver);
        let (ours, theirs) = duplex(1 << 16);
        let (read, write) = split(theirs);
        let open = |start: SessionStart| {
            let word = match start {
                SessionStart::Launch(_) => "launch",
                SessionStart::Attach(_) => "attach",
                SessionStart::Join(_) => "join",
            };
            async move { Err(Error::usage(format!("cannot {word} anything"))) }.boxed()
        };
        let choice = SessionChoice::ByEditor(Box::new(open));
        let serving = tokio::spawn(serve_editor(DapConnection::over(read, write), sessions.clone(), choice));
        let stream = Framed::new(ours, ContentLength::default());
        Editor { sessions, stream, last_seq: 0, responses: HashMap::new(), serving, workspace }
    }

    async fn send(&mut self, command: &str, arguments: Value) -> i64 {
        self.last_seq += 1;
        let request = json!({"seq": self.last_seq, "type": "request", "command": command, "arguments": arguments});
        self.stream.send(Bytes::from(request.to_string())).await.unwrap();
        self.last_seq
    }

    /// The body of a response, or its whole text if it is an error.
    async fn response(&mut self, seq: i64) -> Result<Value, String> {
        let response = loop {
            if let Some(response) = self.responses.remove(&seq) {
                break response;
            }
            let frame = tokio::time::timeout(DEADLINE, self.stream.next()).await.expect("no response");
            let message: Value = serde_json::from_slice(&frame.expect("it has closed").unwrap()).unwrap();
            if let Some(seq) = message["request_seq"].as_i64() {
                self.responses.insert(seq, message);
            }
        };
        if response["success"] == true { Ok(response["body"].clone()) } else { Err(response.to_string()) }
    }

    async fn request(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        let seq = self.send(command, arguments).await;
        self.response(seq).await
    }

    async fn refused(&mut self, command: &str, arguments: Value, words: &str) {
        let error = self.request(command, arguments).await.unwrap_err();
        assert!(error.contains(words), "{command}: {error}");
    }

    /// Closes the connection; nothing of the editor may be left.
    async fn ends(self) {
        drop(self.stream);
        tokio::time::timeout(DEADLINE, self.serving).await.expect("it does not end").unwrap();
        assert!(self.sessions.current_breakpoints().breakpoints.is_empty());
    }
}

#[tokio::test]
async fn each_wrong_request_is_refused_with_its_cause() {
    let mut editor = Editor::connect();
    editor.refused("threads", json!({}), "the first request must be `initialize`").await;
    editor.refused("initialize", json!({"linesStartAt1": false}), "lines and columns start at 1").await;
    editor.refused("initialize", json!({"pathFormat": "uri"}), "named by their paths").await;
    let able = editor.request("initialize", json!({"clientName": "x".repeat(10_000)})).await.unwrap();
    assert_eq!((&able["supportsConfigurationDoneRequest"], &able["supportsLogPoints"]), (&json!(true), &json!(true)));
    editor.refused("next", json!({"threadId": 1}), "`launch` or `attach` comes first").await;
    editor.refused("readMemory", json!({}), "comes first").await;
    editor.refused("setBreakpoints", json!({"source": 7}), "setBreakpoints: ").await;
    editor.refused("setFunctionBreakpoints", json!([]), "setFunctionBreakpoints: ").await;
    editor.refused("setExceptionBreakpoints", json!({"filters": "all"}), "setExceptionBreakpoints: ").await;
    editor.refused("attach", json!([1]), "attach: ").await;
    editor.refused("attach", json!({"sessionId": "d7"}), "cannot join anything").await;
    let launch = editor.send("launch", json!({"program": "a.py"})).await;
    editor.refused("attach", json!({}), "has its session already").await;
    editor.request("configurationDone", json!({})).await.unwrap();
    assert!(editor.response(launch).await.unwrap_err().contains("cannot launch anything"));
    editor.ends().await;
}

#[tokio::test]
async fn breakpoints_are_answered_one_by_one_and_go_with_the_editor() {
    let mut editor = Editor::connect();
    editor.request("initialize", json!({})).await.unwrap();
    let file = editor.workspace.path().join("a.py");
    let lines = json!([{"line": 2}, {"line": 99}, {"line": 2, "condition": "x"}, {"line": 3, "condition": ""}]);
    let set = editor.request("setBreakpoints", json!({"source": {"path": file}, "breakpoints": lines})).await.unwrap();
    let set = set["breakpoints"].as_array().unwrap();
    assert_eq!((set.len(), &set[0]["id"], &set[0]["line"]), (4, &json!(1), &json!(2)));
    assert!(set[1]["message"].as_str().unwrap().contains("it has 3 lines"), "{set:?}");
    assert!(set.iter().all(|it| it["verified"] == false), "no program runs: {set:?}");
    let none = json!({"source": {"sourceReference": 4}, "breakpoints": [{"line": 1}]});
    let set = editor.request("setBreakpoints", none).await.unwrap();
    assert!(set["breakpoints"][0]["message"].as_str().unwrap().contains("this source has none"), "{set}");
    editor
        .refused("setBreakpoints", json!({"source": {"path": file}, "breakpoints": [{"line": -1}]}), "no such lines")
        .await;
    editor.request("setFunctionBreakpoints", json!({"breakpoints": [{"name": "f"}]})).await.unwrap();
    let list = editor.sessions.current_breakpoints();
    assert_eq!(list.breakpoints.len(), 4, "{list:?}");
    assert!(list.breakpoints.iter().all(|spec| spec.owner.as_ref().is_some_and(|it| it.name.starts_with("editor "))));
    editor.ends().await;
}

#[tokio::test]
async fn an_editor_that_never_reads_or_sends_garbage_ends_only_itself() {
    use tokio::io::AsyncWriteExt;
    let workspace = tempfile::tempdir().unwrap();
    let (sessions, driver) =
        SessionRegistry::open(None, workspace.path(), "garbage".to_owned(), |_| Default::default());
    tokio::spawn(driver);
    let frame = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let flood = frame(r#"{"seq": 1, "type": "request", "command": "initialize"}"#).repeat(5000);
    for sent in ["Content-Length: abc\r\n\r\n{}".to_owned(), frame("[1, 2"), frame("{}"), flood] {
        let (ours, theirs) = duplex(1 << 16);
        let (read, write) = split(theirs);
        let open = |_: SessionStart| async { Err(Error::usage("no session")) }.boxed();
        let choice = SessionChoice::ByEditor(Box::new(open));
        let serving = tokio::spawn(serve_editor(DapConnection::over(read, write), sessions.clone(), choice));
        let (unread, mut ours) = split(ours);
        // Fails once the server has closed.
        let _ = ours.write_all(sent.as_bytes()).await;
        drop((unread, ours));
        tokio::time::timeout(DEADLINE, serving).await.expect("it does not end").unwrap();
    }
}
