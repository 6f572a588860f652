//! Scripted peers over an in-memory duplex, with the real client: late responses, invalid messages, floods, timeouts,
//! ends.

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode};

use super::*;
use crate::types::{CloseBrowser, GetTargets};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

/// The other side of the connection, speaking WebSocket.
struct Peer(WebSocketStream<DuplexStream>);

impl Peer {
    async fn request(&mut self) -> Value {
        match self.0.next().await.unwrap().unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn send(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Responds to the next request with its own parameters.
    async fn echo(&mut self) {
        let request = self.request().await;
        self.send(json!({"id": request["id"], "result": request["params"]})).await;
    }
}

async fn connected() -> (CdpClient, JoinHandle<String>, Peer) {
    let (client, running, raw) = raw().await;
    (client, running, Peer(WebSocketStream::from_raw_socket(raw, Role::Server, None).await))
}

async fn raw() -> (CdpClient, JoinHandle<String>, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let config = WebSocketConfig::default().max_message_size(Some(1 << 20)).max_frame_size(Some(1 << 20));
    let socket = WebSocketStream::from_raw_socket(ours, Role::Client, Some(config)).await;
    let (client, connection) = CdpClient::from_websocket(socket, Box::new(|_| {}));
    (client, tokio::spawn(connection), theirs)
}

async fn call_echo(client: &CdpClient, number: u64) -> Result<Value, CdpError> {
    let answer = client.call_raw(None, "Test.echo", &json!({"number": number}), LONG).await?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

fn pending_count(client: &CdpClient) -> usize {
    client.connection.pending.len()
}

#[tokio::test]
async fn responses_reach_their_callers_in_any_order() {
    let (client, _running, mut peer) = connected().await;
    let script = async {
        let mut requests = Vec::new();
        for _ in 0..100 {
            requests.push(peer.request().await);
        }
        for request in requests.iter().rev() {
            peer.send(json!({"id": request["id"], "result": request["params"]})).await;
        }
    };
    let calls = futures_util::future::join_all((0..100).map(|number| call_echo(&client, number)));
    let (answers, ()) = tokio::join!(calls, script);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), json!({"number": number}));
    }
    assert_eq!(pending_count(&client), 0);
}

#[tokio::test]
async fn commands_and_results_have_the_shape_of_the_protocol() {
    let (client, _running, mut peer) = connected().await;
    let script = async {
        let request = peer.request().await;
        assert_eq!(request, json!({"id": 1, "method": "Target.getTargets", "params": {}, "sessionId": "S1"}));
        let info = json!({"targetId": "T", "type": "page", "title": "t", "url": "u", "attached": false});
        peer.send(json!({"id": 1, "result": {"targetInfos": [info]}, "sessionId": "S1"})).await;
        let request = peer.request().await;
        assert_eq!(request, json!({"id": 2, "method": "Target.getTargets", "params": {}}));
        peer.send(json!({"id": 2, "result": {"targetInfos": "none"}})).await;
        peer.request().await;
        peer.send(json!({"id": 3, "error": {"code": -32000, "message": "no"}})).await;
        peer.request().await;
        peer.send(json!({"id": 4})).await;
    };
    let calls = async {
        let targets = client.call(Some("S1"), &GetTargets {}, LONG).await.unwrap();
        assert_eq!(targets.target_infos[0].kind, "page");
        let unexpected = client.call(None, &GetTargets {}, LONG).await.unwrap_err();
        assert!(matches!(unexpected, CdpError::Unexpected { .. }), "{unexpected}");
        let refused = client.call(None, &GetTargets {}, LONG).await.unwrap_err();
        let expect = CdpError::ErrorResponse { method: "Target.getTargets".into(), code: -32000, message: "no".into() };
        assert_eq!(refused, expect);
        client.call(None, &CloseBrowser {}, LONG).await.unwrap();
    };
    tokio::join!(calls, script);
}

#[tokio::test]
async fn a_malformed_response_fails_its_command() {
    let (client, _running, mut peer) = connected().await;
    let script = async {
        for malformed in [json!({"error": "no object"}), json!({"error": {"code": "x"}}), json!({"sessionId": 7})] {
            let id = peer.request().await["id"].clone();
            let mut response = malformed.as_object().unwrap().clone();
            response.insert("id".to_owned(), id);
            peer.send(response.into()).await;
        }
    };
    let calls = async {
        for number in 0..3 {
            let error = call_echo(&client, number).await.unwrap_err().to_string();
            assert!(error.contains("the response cannot be read"), "{error}");
        }
    };
    tokio::join!(calls, script);
}

#[tokio::test]
async fn a_missing_response_times_out_and_a_late_one_is_ignored() {
    let (client, _running, mut peer) = connected().await;
    let started = Instant::now();
    let error = client.call(None, &GetTargets {}, SHORT).await.unwrap_err();
    assert_eq!(error, CdpError::TimedOut { what: "Target.getTargets".into(), after: SHORT });
    assert!(started.elapsed() >= SHORT && started.elapsed() < LONG);
    assert_eq!(pending_count(&client), 0, "the request is still pending");
    let late = peer.request().await;
    peer.send(json!({"id": late["id"], "result": {"targetInfos": []}})).await;
    let (answer, ()) = tokio::join!(call_echo(&client, 7), peer.echo());
    assert_eq!(answer.unwrap(), json!({"number": 7}));
}

#[tokio::test]
async fn invalid_messages_are_ignored() {
    let (client, _running, mut peer) = connected().await;
    let deep = "[".repeat(100_000);
    for garbage in [
        "",
        "}",
        "null",
        "[]",
        "{}",
        "\"text\"",
        "{\"id\": \"x\"}",
        "{\"id\": -1}",
        "{\"id\": 999, \"result\": {}}",
        "{\"method\": 7}",
        "{\"id\": 1, \"result\": ",
        "{\"method\": \"A.b\", \"params\": 5}",
        "{\"error\": {}}",
        &deep,
    ] {
        peer.0.send(Message::text(garbage)).await.unwrap();
    }
    peer.0.send(Message::binary(vec![0xff; 100])).await.unwrap();
    peer.0.send(Message::Ping(vec![1].into())).await.unwrap();
    let script = async {
        // Reader and writer are separate: either may be first.
        for _ in 0..2 {
            match peer.0.next().await.unwrap().unwrap() {
                Message::Pong(bytes) => assert_eq!(bytes, vec![1]),
                Message::Text(text) => {
                    let request: Value = serde_json::from_str(&text).unwrap();
                    peer.send(json!({"id": request["id"], "result": request["params"]})).await;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    let (answer, ()) = tokio::join!(call_echo(&client, 1), script);
    assert_eq!(answer.unwrap(), json!({"number": 1}));
}

#[tokio::test]
async fn a_flood_of_events_delays_no_command_and_losses_are_counted() {
    const FLOOD: u64 = 100_000;
    let (client, _running, mut peer) = connected().await;
    let mut slow = client.subscribe();
    let mut other = client.subscribe();
    let script = async {
        for number in 0..FLOOD {
            peer.send(json!({"method": "Test.event", "params": {"number": number}, "sessionId": "S"})).await;
        }
        peer.echo().await;
    };
    let (answer, ()) = tokio::join!(call_echo(&client, 1), script);
    answer.unwrap();
    assert_eq!(slow.next().await.unwrap().unwrap_err(), EventsLost(FLOOD - EVENT_BACKLOG as u64));
    let first = slow.next().await.unwrap().unwrap();
    assert_eq!(first.session.as_deref(), Some("S"));
    let params: Value = first.parse_as("Test.event").unwrap();
    assert_eq!(params, json!({"number": FLOOD - EVENT_BACKLOG as u64}));
    assert!(first.parse_as::<Value>("Test.other").is_none());
    drop((client, peer));
    // Buffered events can still be read after the end.
    while other.next().await.is_some() {}
}

#[tokio::test]
async fn a_subscriber_may_send_commands_while_events_arrive() {
    let (client, _running, mut peer) = connected().await;
    let mut events = client.subscribe();
    let listening = async {
        for number in 0..100 {
            events.next().await.unwrap().unwrap();
            assert_eq!(call_echo(&client, number).await.unwrap(), json!({"number": number}));
        }
    };
    let script = async {
        for _ in 0..100 {
            peer.send(json!({"method": "Test.event", "params": {}})).await;
            peer.echo().await;
        }
    };
    tokio::join!(listening, script);
}

#[tokio::test]
async fn every_kind_of_end_reaches_callers_and_subscribers_with_its_reason() {
    type End = Box<dyn FnOnce(Peer) -> futures_util::future::BoxFuture<'static, ()>>;
    let check = async |end: End, expect: &str| {
        let (client, running, mut peer) = connected().await;
        let mut events = client.subscribe();
        let acting = async {
            peer.request().await;
            end(peer).await;
        };
        let (answer, event, reason, ()) =
            tokio::join!(call_echo(&client, 1), events.next(), client.wait_closed(), acting);
        let error = answer.unwrap_err();
        assert!(matches!(error, CdpError::Closed(_)) && error.to_string().contains(expect), "{expect:?}: {error}");
        assert!(event.is_none() && reason.contains(expect), "{expect:?}: {reason}");
        assert_eq!(running.await.unwrap(), reason);
        // The same error afterwards.
        assert!(client.is_closed());
        assert_eq!(call_echo(&client, 2).await.unwrap_err(), error);
        assert!(client.subscribe().next().await.is_none());
        assert_eq!(pending_count(&client), 0);
    };
    check(Box::new(|peer| Box::pin(async { drop(peer) })), "without closing handshake").await;
    let frame = CloseFrame { code: CloseCode::Away, reason: "browser quits".into() };
    let closing = |mut peer: Peer| async move { peer.0.close(Some(frame)).await.unwrap() };
    check(Box::new(move |peer| Box::pin(closing(peer))), "browser quits").await;
    let huge = |mut peer: Peer| async move { drop(peer.0.send(Message::text("x".repeat(2 << 20))).await) };
    check(Box::new(move |peer| Box::pin(huge(peer))), "too long").await;
}

#[tokio::test]
async fn a_partial_or_invalid_frame_ends_the_connection_with_a_reason() {
    for bytes in [&[0x81_u8, 0x7e, 0xff][..], &[0x81, 0x05, b'{'], &[0xff; 64], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let (client, _running, mut raw) = raw().await;
        raw.write_all(bytes).await.unwrap();
        drop(raw);
        let error = call_echo(&client, 1).await.unwrap_err();
        assert!(matches!(&error, CdpError::Closed(reason) if !reason.is_empty()), "{error}");
    }
}

#[tokio::test]
async fn a_peer_that_does_not_read_delays_no_caller_beyond_the_deadline() {
    let (client, running, raw) = raw().await;
    let big = json!({"text": "x".repeat(100_000)});
    let calls = (0..500).map(|_| client.call_raw(None, "Test.big", &big, SHORT));
    for answer in futures_util::future::join_all(calls).await {
        assert!(matches!(answer.unwrap_err(), CdpError::TimedOut { .. }));
    }
    assert_eq!(pending_count(&client), 0);
    assert!(!running.is_finished());
    drop(raw);
    client.wait_closed().await;
}

#[tokio::test]
async fn dropping_the_last_client_ends_the_connection_and_dropping_the_connection_ends_the_clients() {
    let check = async |leave: fn(CdpClient), expect: &str| {
        let (client, running, mut peer) = connected().await;
        drop(client.clone());
        assert!(!client.is_closed());
        leave(client);
        // Data that the peer still sends is read, so that it receives a close and no reset.
        for _ in 0..1000 {
            peer.send(json!({"method": "Test.late", "params": {"text": "x".repeat(1000)}})).await;
        }
        assert_eq!(peer.0.next().await.unwrap().unwrap(), Message::Close(None));
        assert!(peer.0.next().await.is_none());
        drop(peer);
        assert_eq!(running.await.unwrap(), expect);
    };
    check(drop, "it is no longer used").await;
    check(|client| client.close(), "it was closed by us").await;

    let (client, running, _peer) = connected().await;
    let (answer, ()) = tokio::join!(call_echo(&client, 1), async { running.abort() });
    assert_eq!(answer.unwrap_err(), CdpError::Closed("it was closed by us".into()));
}

#[tokio::test]
async fn send_nowait_delivers_even_when_the_queue_is_full() {
    let (client, _running, mut peer) = connected().await;
    let count = QUEUE_LENGTH as u64 + 6;
    (0..count).for_each(|_| client.send_nowait(Some("S1"), &CloseBrowser {}));
    for id in 1..=count {
        let request = peer.request().await;
        assert_eq!(request, json!({"id": id, "method": "Browser.close", "params": {}, "sessionId": "S1"}));
    }
}

#[tokio::test]
async fn mutated_messages_are_dispatched_without_a_panic() {
    let (client, _running, _raw) = raw().await;
    let samples: [&[u8]; 4] = [
        br#"{"id":1,"result":{"value":[1,2,{"a":null}]},"sessionId":"s"}"#,
        br#"{"id":2,"error":{"code":-32000,"message":"no","data":"x"}}"#,
        br#"{"method":"Runtime.consoleAPICalled","params":{"type":"log","args":[{"type":"string","value":"a"}]}}"#,
        br#"{"method":"Target.attachedToTarget","params":{"sessionId":"s","targetInfo":{"targetId":"t"}}}"#,
    ];
    let mut events = client.subscribe();
    let (mut dispatched, mut decoded) = (0, 0);
    tether_wire::mutation::check_mutations(&samples, 30_000, |bytes| {
        client.connection.dispatch_message(&String::from_utf8_lossy(bytes));
        decoded += crate::fuzz_messages::decode_message(bytes);
        let next = futures_util::FutureExt::now_or_never(events.next());
        dispatched += usize::from(matches!(next, Some(Some(Ok(_)))));
    });
    assert!(dispatched > 50, "most mutations are no events: {dispatched}");
    assert!(decoded > 50, "most mutations are no structs: {decoded}");
    assert_eq!(pending_count(&client), 0);
}
