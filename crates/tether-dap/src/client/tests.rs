//! Scripted adapters over an in-memory duplex, through the real client: every way in which an adapter can fail.

use bytes::BytesMut;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tether_wire::frames::ContentLength;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::codec::Decoder;

use super::*;
use crate::types::*;
use crate::{DapConnection, DapInbox, DapIncoming, LostEvents};

mod connection_end;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// The other side of the connection.
struct ScriptedAdapter {
    stream: DuplexStream,
    unread: BytesMut,
    codec: ContentLength,
    seq: i64,
}

impl ScriptedAdapter {
    /// The next request; `None` when the client has closed.
    async fn request(&mut self) -> Option<Value> {
        loop {
            if let Some(body) = self.codec.decode(&mut self.unread).unwrap() {
                return Some(serde_json::from_slice(&body).unwrap());
            }
            if self.stream.read_buf(&mut self.unread).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn send(&mut self, mut message: Value) {
        self.seq += 1;
        message["seq"] = self.seq.into();
        self.send_bytes(&encode_frame(&message.to_string())).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn respond(&mut self, request: &Value, body: Value) {
        let (seq, command) = (&request["seq"], &request["command"]);
        self.send(json!({"type": "response", "request_seq": seq, "success": true, "command": command, "body": body}))
            .await;
    }

    async fn send_event(&mut self, name: &str, body: Value) {
        self.send(json!({"type": "event", "event": name, "body": body})).await;
    }

    /// Responds to the next `evaluate` with its expression.
    async fn echo_evaluate(&mut self) {
        let request = self.request().await.unwrap();
        let result = request["arguments"]["expression"].clone();
        self.respond(&request, json!({"result": result, "variablesReference": 0})).await;
    }
}

fn encode_frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn connect_adapter() -> (DapClient, DapInbox, JoinHandle<String>, ScriptedAdapter) {
    let (ours, stream) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let (client, inbox, driver) = DapClient::over(DapConnection::over(read, write));
    let adapter = ScriptedAdapter { stream, unread: BytesMut::new(), codec: ContentLength::default(), seq: 0 };
    (client, inbox, tokio::spawn(driver), adapter)
}

async fn evaluate(client: &DapClient, expression: &str) -> Result<String, DapError> {
    let arguments = EvaluateArguments { expression: expression.to_owned(), ..EvaluateArguments::default() };
    Ok(client.request(&arguments, LONG).await?.result)
}

fn pending_count(client: &DapClient) -> usize {
    client.pending_count()
}

#[tokio::test]
async fn responses_reach_their_requests_in_any_order_and_sequence_numbers_rise() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    let script = async {
        let mut requests = Vec::new();
        // More than 64 requests may be pending: that bound is only for messages that are not written yet.
        for number in 1..=200 {
            let request = adapter.request().await.unwrap();
            assert_eq!(request["seq"], number);
            requests.push(request);
        }
        for request in requests.iter().rev() {
            adapter.respond(request, json!({"result": request["arguments"]["expression"]})).await;
        }
    };
    let expressions: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let (results, ()) = tokio::join!(join_all(expressions.iter().map(|text| evaluate(&client, text))), script);
    let results: Vec<String> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(results, expressions);
    assert_eq!(pending_count(&client), 0);
}

#[tokio::test]
async fn requests_have_the_protocols_form_and_responses_are_parsed_leniently() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    let script = async {
        let request = adapter.request().await.unwrap();
        let expect =
            json!({"seq": 1, "type": "request", "command": "stackTrace", "arguments": {"threadId": 7, "levels": 2}});
        assert_eq!(request, expect);
        let source = json!({"path": "/ä.py", "name": null});
        let frames = json!([{"id": 1, "name": "f", "line": 3, "column": 1, "source": source, "new": {}}]);
        adapter.respond(&request, json!({"stackFrames": frames, "totalFrames": null})).await;
        let request = adapter.request().await.unwrap();
        adapter.respond(&request, json!({"stackFrames": "none"})).await;
        let request = adapter.request().await.unwrap();
        assert_eq!(request["command"], "pause");
        adapter.respond(&request, Value::Null).await;
        let request = adapter.request().await.unwrap();
        let error = json!({"id": 1, "format": "thread {id} is running", "variables": {"id": "7"}});
        let refusal = json!({"type": "response", "request_seq": request["seq"], "success": false,
            "command": "next", "message": "notStopped", "body": {"error": error}});
        adapter.send(refusal).await;
    };
    let calls = async {
        let stack = StackTraceArguments { thread_id: 7, levels: Some(2), ..StackTraceArguments::default() };
        let frames = client.request(&stack, LONG).await.unwrap().stack_frames;
        let source = DapSource { path: Some("/ä.py".into()), ..DapSource::default() };
        assert_eq!((frames[0].line, frames[0].source.as_ref()), (3, Some(&source)));
        let error = client.request(&stack, LONG).await.unwrap_err();
        assert!(matches!(&error, DapError::Unexpected { command, .. } if command == "stackTrace"), "{error}");
        client.request(&PauseArguments { thread_id: 7 }, LONG).await.unwrap();
        let error = client.request(&NextArguments { thread_id: 7 }, LONG).await.unwrap_err();
        assert_eq!(error.to_string(), "next failed: thread 7 is running");
        assert!(matches!(&error, DapError::Refused { response, .. } if response.message == "notStopped"));
    };
    tokio::join!(calls, script);
}

#[tokio::test]
async fn launch_is_sent_before_later_requests_and_may_be_responded_to_last() {
    let (client, mut inbox, _running, mut adapter) = connect_adapter();
    let script = async {
        let launch = adapter.request().await.unwrap();
        adapter.send_event("initialized", json!({})).await;
        adapter.send_event("initialized", json!({})).await;
        let done = adapter.request().await.unwrap();
        assert_eq!((&launch["command"], &done["command"]), (&json!("launch"), &json!("configurationDone")));
        assert_eq!(launch["arguments"], json!({"program": "/a b/ü.py"}));
        adapter.respond(&done, Value::Null).await;
        adapter.respond(&launch, Value::Null).await;
    };
    let calls = async {
        let fields = Fields::from_iter([("program".to_owned(), json!("/a b/ü.py"))]);
        let launched = client.send_request(&LaunchArguments(fields)).await.unwrap();
        for _ in 0..2 {
            let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
            assert_eq!(event.read_body::<InitializedEvent>(), Some(InitializedEvent {}));
        }
        client.request(&ConfigurationDoneArguments {}, LONG).await.unwrap();
        launched.response(LONG).await.unwrap();
    };
    tokio::join!(calls, script);
    assert_eq!(pending_count(&client), 0);
}

#[tokio::test]
async fn a_missing_response_times_out_and_late_repeated_and_unknown_ones_are_ignored() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    let started = Instant::now();
    let error = client.request(&DisconnectArguments::default(), SHORT).await.unwrap_err();
    assert_eq!(error, DapError::TimedOut { command: "disconnect".into(), after: SHORT });
    assert!(started.elapsed() >= SHORT && started.elapsed() < LONG);
    assert_eq!(pending_count(&client), 0, "the request is still registered");
    let late = adapter.request().await.unwrap();
    adapter.respond(&late, Value::Null).await;
    adapter.respond(&late, Value::Null).await;
    adapter.send(json!({"type": "response", "request_seq": 999, "success": true, "command": "x"})).await;
    adapter.send(json!({"type": "response", "request_seq": -1, "success": false, "command": "x"})).await;
    let (answer, ()) = tokio::join!(evaluate(&client, "7"), adapter.echo_evaluate());
    assert_eq!(answer.unwrap(), "7");
}

#[tokio::test]
async fn a_dropped_request_is_not_pending_any_more() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    {
        let asking = evaluate(&client, "1");
        let read = tokio::select! {
            _ = asking => panic!("it was not answered"),
            request = adapter.request() => request,
        };
        assert!(read.is_some());
    }
    assert_eq!(pending_count(&client), 0);
    drop(client.send_request(&LaunchArguments::default()).await.unwrap());
    assert_eq!(pending_count(&client), 0);
    adapter.request().await.unwrap();
    let (answer, ()) = tokio::join!(evaluate(&client, "2"), adapter.echo_evaluate());
    assert_eq!(answer.unwrap(), "2");
}

#[tokio::test]
async fn frames_that_are_no_messages_are_ignored() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    let deep = "[".repeat(100_000);
    for garbage in [
        "",
        "}",
        "null",
        "[]",
        "{}",
        "\"text\"",
        "{\"type\": 7}",
        "{\"type\": \"event\"}",
        "{\"type\": \"response\"}",
        "{\"type\": \"response\", \"request_seq\": \"1\"}",
        "{\"type\": \"event\", \"event\": ",
        &deep,
    ] {
        adapter.send_bytes(&encode_frame(garbage)).await;
    }
    adapter.send_bytes(b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc").await;
    let (answer, ()) = tokio::join!(evaluate(&client, "1"), adapter.echo_evaluate());
    assert_eq!(answer.unwrap(), "1");
}

#[tokio::test]
async fn a_message_may_arrive_in_any_pieces() {
    let (client, mut inbox, _running, mut adapter) = connect_adapter();
    let text = "Grüße \u{1F980}\u{1F469}\u{200D}\u{1F4BB}";
    let message = json!({"type": "event", "event": "output", "body": {"output": text}});
    for byte in encode_frame(&message.to_string()) {
        adapter.send_bytes(&[byte]).await;
        // Lets the reader take the byte, so that splits within a character happen.
        tokio::task::yield_now().await;
    }
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<OutputEvent>().unwrap().output, text);
    let (answer, ()) = tokio::join!(evaluate(&client, text), adapter.echo_evaluate());
    assert_eq!(answer.unwrap(), text);
}

#[tokio::test]
async fn a_flood_of_events_delays_no_request_and_drops_only_droppable_events() {
    const FLOOD: u64 = 100_000;
    let (client, mut inbox, _running, mut adapter) = connect_adapter();
    let script = async {
        let request = adapter.request().await.unwrap();
        for number in 0..FLOOD {
            let name = ["output", "loadedSource", "thread", "custom"][(number % 4) as usize];
            adapter.send_event(name, json!({"output": number, "reason": "started", "threadId": number})).await;
        }
        adapter.respond(&request, json!({"result": "answered"})).await;
        adapter.send_event("stopped", json!({"reason": "step"})).await;
    };
    let (answer, ()) = tokio::join!(evaluate(&client, "1"), script);
    assert_eq!(answer.unwrap(), "answered");
    let (mut kept, mut losable, mut lost, mut last) = (0, 0, LostEvents::default(), None);
    loop {
        match inbox.next().await.unwrap() {
            DapIncoming::Event(event) if event.name == "stopped" => break,
            DapIncoming::Lost(gap) => {
                lost = LostEvents {
                    outputs: lost.outputs + gap.outputs,
                    loaded_sources: lost.loaded_sources + gap.loaded_sources,
                }
            }
            DapIncoming::Event(event) => {
                let body: Value = serde_json::from_str(event.body.as_ref().unwrap().get()).unwrap();
                let number = body["threadId"].as_u64();
                assert!(number > last, "{last:?} came before {number:?}");
                last = number;
                if matches!(event.name.as_str(), "output" | "loadedSource") { losable += 1 } else { kept += 1 }
            }
            DapIncoming::Request(request) => panic!("{request:?}"),
        }
    }
    assert_eq!(kept, FLOOD / 2);
    assert_eq!(losable + lost.outputs + lost.loaded_sources, FLOOD / 2);
    assert!(lost.outputs > 0 && lost.outputs.abs_diff(lost.loaded_sources) <= 1, "{lost}");
}

#[tokio::test]
async fn the_consumer_of_events_may_send_requests() {
    let (client, mut inbox, _running, mut adapter) = connect_adapter();
    let consuming = async {
        for number in 0..100 {
            inbox.next().await.unwrap();
            assert_eq!(evaluate(&client, &number.to_string()).await.unwrap(), number.to_string());
        }
    };
    let script = async {
        for _ in 0..100 {
            adapter.send_event("thread", json!({"reason": "started", "threadId": 1})).await;
            adapter.send_event("custom", json!({})).await;
            adapter.echo_evaluate().await;
        }
    };
    let drained = async { tokio::join!(consuming, script) };
    drained.await;
}

#[tokio::test]
async fn every_reverse_request_gets_a_response() {
    let (client, mut inbox, _running, mut adapter) = connect_adapter();
    let reverse_request = |command: &str| json!({"type": "request", "command": command, "arguments": {"request": "launch", "configuration": {"x": 1}}});
    let handling = async {
        let Some(DapIncoming::Request(request)) = inbox.next().await else { panic!("no request") };
        let arguments: StartDebuggingArguments = request.read_arguments().unwrap();
        assert_eq!((request.command.as_str(), &arguments.configuration["x"]), ("startDebugging", &json!(1)));
        assert!(request.read_arguments::<RunInTerminalArguments>().unwrap_err().contains("cwd"));
        request.respond(&EmptyResponse {});
        let Some(DapIncoming::Request(request)) = inbox.next().await else { panic!("no request") };
        drop(request);
        let Some(DapIncoming::Request(request)) = inbox.next().await else { panic!("no request") };
        request.respond_error(crate::ErrorResponse::new("there is no terminal"));
        // The fourth is in the inbox when it is dropped.
        drop(inbox);
    };
    let script = async {
        for command in ["startDebugging", "launchVSCode", "runInTerminal", "startDebugging"] {
            adapter.send(reverse_request(command)).await;
        }
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(adapter.request().await.unwrap());
        }
        // The fifth arrives after the inbox was dropped.
        adapter.send(reverse_request("later")).await;
        answers.push(adapter.request().await.unwrap());
        answers
    };
    let ((), answers) = tokio::join!(handling, script);
    let expect = [
        (1, true, Value::Null),
        (2, false, json!("launchVSCode is not supported here")),
        (3, false, json!("there is no terminal")),
        (4, false, json!("startDebugging is not supported here")),
        (5, false, json!("later is not supported here")),
    ];
    for (answer, (seq, success, message)) in answers.iter().zip(expect) {
        assert_eq!(answer["type"], "response");
        let received = (&answer["request_seq"], &answer["success"], &answer["message"]);
        assert_eq!(received, (&json!(seq), &json!(success), &message));
    }
    drop(client);
}

#[tokio::test]
async fn a_peer_that_reads_nothing_delays_no_request_beyond_its_deadline() {
    let (client, inbox, running, mut adapter) = connect_adapter();
    let big = "x".repeat(100_000);
    let evaluate = EvaluateArguments { expression: big, ..EvaluateArguments::default() };
    for answer in join_all((0..500).map(|_| client.request(&evaluate, SHORT))).await {
        assert!(matches!(answer.unwrap_err(), DapError::TimedOut { .. }));
    }
    assert_eq!(pending_count(&client), 0);
    assert!(!running.is_finished());
    // A peer that only sends requests is disconnected before its responses fill the memory.
    drop(inbox);
    let asking = async {
        while adapter.stream.write_all(&encode_frame(r#"{"seq":1,"type":"request","command":"x"}"#)).await.is_ok() {
            if client.is_closed() {
                break;
            }
        }
    };
    let (reason, ()) = tokio::join!(client.wait_closed(), asking);
    assert!(reason.contains("without reading a response"), "{reason}");
}

#[tokio::test]
async fn a_request_that_is_too_long_is_not_sent() {
    let (client, _inbox, _running, mut adapter) = connect_adapter();
    let error = evaluate(&client, &"x".repeat(64 << 20)).await.unwrap_err();
    assert!(matches!(&error, DapError::Unsendable { command, .. } if command == "evaluate"), "{error}");
    let (answer, ()) = tokio::join!(evaluate(&client, "1"), adapter.echo_evaluate());
    assert_eq!(answer.unwrap(), "1");
}
