//! Scripted adapters over an in-memory duplex, through the real client: every way in which one can misbehave.

use bytes::BytesMut;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::codec::Decoder;

use super::*;
use crate::dap::types::*;
use crate::dap::{DapIncoming, LostEvents};
use crate::wire::frames::ContentLength;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// The other side of the connection.
struct Adapter {
    stream: DuplexStream,
    unread: BytesMut,
    codec: ContentLength,
    seq: i64,
}

impl Adapter {
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

    async fn say(&mut self, mut message: Value) {
        self.seq += 1;
        message["seq"] = self.seq.into();
        self.raw(&frame(&message.to_string())).await;
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, body: Value) {
        let (seq, command) = (&request["seq"], &request["command"]);
        self.say(json!({"type": "response", "request_seq": seq, "success": true, "command": command, "body": body}))
            .await;
    }

    async fn event(&mut self, name: &str, body: Value) {
        self.say(json!({"type": "event", "event": name, "body": body})).await;
    }

    /// Answers the next evaluation with its own expression.
    async fn echo(&mut self) {
        let request = self.request().await.unwrap();
        let result = request["arguments"]["expression"].clone();
        self.answer(&request, json!({"result": result, "variablesReference": 0})).await;
    }
}

fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn connected() -> (DapClient, DapInbox, JoinHandle<String>, Adapter) {
    let (ours, stream) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(ours);
    let (client, inbox, driver) = DapClient::over(DapConnection::over(read, write));
    let adapter = Adapter { stream, unread: BytesMut::new(), codec: ContentLength::default(), seq: 0 };
    (client, inbox, tokio::spawn(driver), adapter)
}

async fn ask(client: &DapClient, expression: &str) -> Result<String, DapError> {
    let evaluate = EvaluateArguments { expression: expression.to_owned(), ..EvaluateArguments::default() };
    Ok(client.request(&evaluate, LONG).await?.result)
}

fn waiting(client: &DapClient) -> usize {
    client.0.pending_count()
}

#[tokio::test]
async fn answers_find_their_callers_in_any_order_and_numbers_rise() {
    let (client, _inbox, _running, mut adapter) = connected();
    let script = async {
        let mut requests = Vec::new();
        // More would wait for an answer to none of them: 64 may be on their way, and all of these are read.
        for number in 1..=200 {
            let request = adapter.request().await.unwrap();
            assert_eq!(request["seq"], number);
            requests.push(request);
        }
        for request in requests.iter().rev() {
            adapter.answer(request, json!({"result": request["arguments"]["expression"]})).await;
        }
    };
    let asked: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let (answers, ()) = tokio::join!(join_all(asked.iter().map(|text| ask(&client, text))), script);
    let answers: Vec<String> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, asked);
    assert_eq!(waiting(&client), 0);
}

#[tokio::test]
async fn requests_have_the_protocols_shape_and_answers_are_read_leniently() {
    let (client, _inbox, _running, mut adapter) = connected();
    let script = async {
        let request = adapter.request().await.unwrap();
        let expect =
            json!({"seq": 1, "type": "request", "command": "stackTrace", "arguments": {"threadId": 7, "levels": 2}});
        assert_eq!(request, expect);
        let source = json!({"path": "/ä.py", "name": null});
        let frames = json!([{"id": 1, "name": "f", "line": 3, "column": 1, "source": source, "new": {}}]);
        adapter.answer(&request, json!({"stackFrames": frames, "totalFrames": null})).await;
        let request = adapter.request().await.unwrap();
        adapter.answer(&request, json!({"stackFrames": "none"})).await;
        let request = adapter.request().await.unwrap();
        assert_eq!(request["command"], "pause");
        adapter.answer(&request, Value::Null).await;
        let request = adapter.request().await.unwrap();
        let error = json!({"id": 1, "format": "thread {id} is running", "variables": {"id": "7"}});
        let refusal = json!({"type": "response", "request_seq": request["seq"], "success": false,
            "command": "next", "message": "notStopped", "body": {"error": error}});
        adapter.say(refusal).await;
    };
    let calls = async {
        let stack = StackTraceArguments { thread_id: 7, levels: Some(2), ..StackTraceArguments::default() };
        let frames = client.request(&stack, LONG).await.unwrap().stack_frames;
        let source = DapSource { path: Some("/ä.py".into()), ..DapSource::default() };
        assert_eq!((frames[0].line, frames[0].source.as_ref()), (3, Some(&source)));
        let error = client.request(&stack, LONG).await.unwrap_err();
        assert!(matches!(&error, DapError::Unexpected { command, .. } if command == "stackTrace"), "{error}");
        client.request(&PauseArguments { thread_id: 7 }, LONG).await.unwrap();
        let error =
            client.request(&NextArguments { thread_id: 7, ..NextArguments::default() }, LONG).await.unwrap_err();
        assert_eq!(error.to_string(), "next failed: thread 7 is running");
        assert!(matches!(&error, DapError::Refused { response, .. } if response.message == "notStopped"));
    };
    tokio::join!(calls, script);
}

#[tokio::test]
async fn launch_is_on_its_way_before_what_follows_and_answered_when_it_likes() {
    let (client, mut inbox, _running, mut adapter) = connected();
    let script = async {
        let launch = adapter.request().await.unwrap();
        adapter.event("initialized", json!({})).await;
        adapter.event("initialized", json!({})).await;
        let done = adapter.request().await.unwrap();
        assert_eq!((&launch["command"], &done["command"]), (&json!("launch"), &json!("configurationDone")));
        assert_eq!(launch["arguments"], json!({"program": "/a b/ü.py"}));
        adapter.answer(&done, Value::Null).await;
        adapter.answer(&launch, Value::Null).await;
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
    assert_eq!(waiting(&client), 0);
}

#[tokio::test]
async fn silence_ends_with_the_deadline_and_late_double_and_unknown_answers_do_no_harm() {
    let (client, _inbox, _running, mut adapter) = connected();
    let started = Instant::now();
    let error = client.request(&DisconnectArguments::default(), SHORT).await.unwrap_err();
    assert_eq!(error, DapError::TimedOut { command: "disconnect".into(), after: SHORT });
    assert!(started.elapsed() >= SHORT && started.elapsed() < LONG);
    assert_eq!(waiting(&client), 0, "the slot was not forgotten");
    let late = adapter.request().await.unwrap();
    adapter.answer(&late, Value::Null).await;
    adapter.answer(&late, Value::Null).await;
    adapter.say(json!({"type": "response", "request_seq": 999, "success": true, "command": "x"})).await;
    adapter.say(json!({"type": "response", "request_seq": -1, "success": false, "command": "x"})).await;
    let (answer, ()) = tokio::join!(ask(&client, "7"), adapter.echo());
    assert_eq!(answer.unwrap(), "7");
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nothing_behind() {
    let (client, _inbox, _running, mut adapter) = connected();
    {
        let asking = ask(&client, "1");
        let read = tokio::select! {
            _ = asking => panic!("it was not answered"),
            request = adapter.request() => request,
        };
        assert!(read.is_some());
    }
    assert_eq!(waiting(&client), 0);
    drop(client.send_request(&LaunchArguments::default()).await.unwrap());
    assert_eq!(waiting(&client), 0);
    adapter.request().await.unwrap();
    let (answer, ()) = tokio::join!(ask(&client, "2"), adapter.echo());
    assert_eq!(answer.unwrap(), "2");
}

#[tokio::test]
async fn whole_frames_of_garbage_are_nobodys_and_the_connection_goes_on() {
    let (client, _inbox, _running, mut adapter) = connected();
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
        adapter.raw(&frame(garbage)).await;
    }
    adapter.raw(b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc").await;
    let (answer, ()) = tokio::join!(ask(&client, "1"), adapter.echo());
    assert_eq!(answer.unwrap(), "1");
}

#[tokio::test]
async fn a_message_may_come_in_any_pieces() {
    let (client, mut inbox, _running, mut adapter) = connected();
    let text = "Grüße \u{1F980}\u{1F469}\u{200D}\u{1F4BB}";
    let message = json!({"type": "event", "event": "output", "body": {"output": text}});
    for byte in frame(&message.to_string()) {
        adapter.raw(&[byte]).await;
        // Until the reader has taken it: every split inside of a character is really one.
        tokio::task::yield_now().await;
    }
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<OutputEvent>().unwrap().output, text);
    let (answer, ()) = tokio::join!(ask(&client, text), adapter.echo());
    assert_eq!(answer.unwrap(), text);
}

#[tokio::test]
async fn every_kind_of_end_wakes_everyone_with_its_reason() {
    let check = async |bytes: &[u8], closes: bool, expect: &str| {
        let (client, mut inbox, running, mut adapter) = connected();
        let acting = async {
            adapter.request().await.unwrap();
            adapter.raw(bytes).await;
            // What goes wrong must be seen without the end of the stream, where it can be.
            (!closes).then_some(adapter)
        };
        let (answer, incoming, reason, adapter) =
            tokio::join!(ask(&client, "1"), inbox.next(), client.wait_closed(), acting);
        let error = answer.unwrap_err();
        assert!(matches!(error, DapError::Closed(_)) && error.to_string().contains(expect), "{expect:?}: {error}");
        assert!(incoming.is_none() && reason.contains(expect), "{expect:?}: {reason}");
        drop(adapter);
        assert_eq!(running.await.unwrap(), reason);
        // And afterwards.
        assert!(client.is_closed());
        assert_eq!(ask(&client, "2").await.unwrap_err(), error);
        assert!(inbox.next().await.is_none());
        assert_eq!(waiting(&client), 0);
    };
    check(b"", true, "the peer closed it").await;
    check(b"usage: adapter [-h]\r\n\r\n", false, "no Content-Length").await;
    check(b"Content-Length: abc\r\n\r\n{}", false, "\"abc\"").await;
    check(b"Content-Length: 1073741824\r\n\r\n{", false, "1073741824").await;
    check(b"Content-Length: 100\r\n\r\n{\"seq\":1", true, "middle of a frame").await;
    check(b"Content-Len", true, "middle of a frame").await;
    check(&[b'x'; 9000], false, "longer than").await;
    check(&[0xff, 0xfe, b'\r', b'\n', b'\r', b'\n'], false, "not ASCII").await;
}

#[tokio::test]
async fn what_came_before_the_end_can_still_be_read() {
    let (client, mut inbox, running, mut adapter) = connected();
    adapter.event("exited", json!({"exitCode": 3})).await;
    adapter.event("terminated", Value::Null).await;
    drop(adapter);
    running.await.unwrap();
    assert!(client.is_closed());
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<ExitedEvent>(), Some(ExitedEvent { exit_code: 3 }));
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<TerminatedEvent>(), Some(TerminatedEvent { restart: None }));
    assert!(inbox.next().await.is_none());
}

#[tokio::test]
async fn a_flood_of_events_delays_no_request_and_loses_only_what_may_be_lost() {
    const FLOOD: u64 = 100_000;
    let (client, mut inbox, _running, mut adapter) = connected();
    let script = async {
        let request = adapter.request().await.unwrap();
        for number in 0..FLOOD {
            let name = ["output", "loadedSource", "thread", "custom"][(number % 4) as usize];
            adapter.event(name, json!({"output": number, "reason": "started", "threadId": number})).await;
        }
        adapter.answer(&request, json!({"result": "answered"})).await;
        adapter.event("stopped", json!({"reason": "step"})).await;
    };
    let (answer, ()) = tokio::join!(ask(&client, "1"), script);
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
            DapIncoming::Request(asked) => panic!("{asked:?}"),
        }
    }
    assert_eq!(kept, FLOOD / 2);
    assert_eq!(losable + lost.outputs + lost.loaded_sources, FLOOD / 2);
    assert!(lost.outputs > 0 && lost.outputs.abs_diff(lost.loaded_sources) <= 1, "{lost}");
}

#[tokio::test]
async fn a_consumer_may_ask_while_events_rain() {
    let (client, mut inbox, _running, mut adapter) = connected();
    let consuming = async {
        for number in 0..100 {
            inbox.next().await.unwrap();
            assert_eq!(ask(&client, &number.to_string()).await.unwrap(), number.to_string());
        }
    };
    let script = async {
        for _ in 0..100 {
            adapter.event("thread", json!({"reason": "started", "threadId": 1})).await;
            adapter.event("custom", json!({})).await;
            adapter.echo().await;
        }
    };
    let drained = async { tokio::join!(consuming, script) };
    drained.await;
}

#[tokio::test]
async fn every_request_of_the_adapter_is_answered_whoever_handles_it() {
    let (client, mut inbox, _running, mut adapter) = connected();
    let ask_back = |command: &str| json!({"type": "request", "command": command, "arguments": {"request": "launch", "configuration": {"x": 1}}});
    let handling = async {
        let Some(DapIncoming::Request(asked)) = inbox.next().await else { panic!("no request") };
        let wanted: StartDebuggingArguments = asked.read_arguments().unwrap();
        assert_eq!((asked.command.as_str(), &wanted.configuration["x"]), ("startDebugging", &json!(1)));
        assert!(asked.read_arguments::<RunInTerminalArguments>().unwrap_err().contains("cwd"));
        asked.respond(&EmptyResponse {});
        let Some(DapIncoming::Request(asked)) = inbox.next().await else { panic!("no request") };
        drop(asked);
        let Some(DapIncoming::Request(asked)) = inbox.next().await else { panic!("no request") };
        asked.respond_error(crate::dap::ErrorResponse::new("there is no terminal"));
        // Asked before, handled by nobody.
        drop(inbox);
    };
    let script = async {
        for command in ["startDebugging", "launchVSCode", "runInTerminal", "startDebugging"] {
            adapter.say(ask_back(command)).await;
        }
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(adapter.request().await.unwrap());
        }
        // And one that comes when nobody is left.
        adapter.say(ask_back("later")).await;
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
        let told = (&answer["request_seq"], &answer["success"], &answer["message"]);
        assert_eq!(told, (&json!(seq), &json!(success), &message));
    }
    drop(client);
}

#[tokio::test]
async fn a_peer_that_reads_nothing_holds_nobody_beyond_the_deadline() {
    let (client, inbox, running, mut adapter) = connected();
    let big = "x".repeat(100_000);
    let evaluate = EvaluateArguments { expression: big, ..EvaluateArguments::default() };
    for answer in join_all((0..500).map(|_| client.request(&evaluate, SHORT))).await {
        assert!(matches!(answer.unwrap_err(), DapError::TimedOut { .. }));
    }
    assert_eq!(waiting(&client), 0);
    assert!(!running.is_finished());
    // Nor does one that asks on and on, here with nobody who handles it, heap up answers.
    drop(inbox);
    let asking = async {
        while adapter.stream.write_all(&frame(r#"{"seq":1,"type":"request","command":"x"}"#)).await.is_ok() {
            if client.is_closed() {
                break;
            }
        }
    };
    let (reason, ()) = tokio::join!(client.wait_closed(), asking);
    assert!(reason.contains("without reading a response"), "{reason}");
}

#[tokio::test]
async fn what_is_too_long_is_not_sent_and_ends_nothing() {
    let (client, _inbox, _running, mut adapter) = connected();
    let error = ask(&client, &"x".repeat(64 << 20)).await.unwrap_err();
    assert!(matches!(&error, DapError::Unsendable { command, .. } if command == "evaluate"), "{error}");
    let (answer, ()) = tokio::join!(ask(&client, "1"), adapter.echo());
    assert_eq!(answer.unwrap(), "1");
}

#[tokio::test]
async fn what_was_said_before_closing_arrives_and_what_the_peer_still_says_is_read() {
    let check = async |leave: fn(DapClient), expect: &str| {
        let (client, inbox, running, mut adapter) = connected();
        for number in 0..50 {
            let expression = format!("{number}{}", "x".repeat(10_000));
            drop(client.send_request(&EvaluateArguments { expression, ..EvaluateArguments::default() }).await.unwrap());
        }
        drop(client.clone());
        leave(client);
        drop(inbox);
        let mut read = 0;
        while adapter.request().await.is_some() {
            read += 1;
            adapter.event("output", json!({"output": "x".repeat(10_000)})).await;
        }
        assert_eq!(read, 50);
        drop(adapter);
        assert_eq!(running.await.unwrap(), expect);
    };
    check(drop, "its last handle was dropped").await;
    check(|client| client.close(), "it was closed by us").await;

    let (client, _inbox, running, _adapter) = connected();
    let (answer, ()) = tokio::join!(ask(&client, "1"), async { running.abort() });
    assert_eq!(answer.unwrap_err(), DapError::Closed("it was closed by us".into()));
}

#[tokio::test]
async fn a_driver_that_never_runs_wakes_everyone() {
    let (ours, _theirs) = DapConnection::pair();
    let (client, mut inbox, driver) = DapClient::over(ours);
    let (answer, ()) = tokio::join!(ask(&client, "1"), async { drop(driver) });
    assert!(matches!(answer.unwrap_err(), DapError::Closed(_)));
    assert!(inbox.next().await.is_none());
}
