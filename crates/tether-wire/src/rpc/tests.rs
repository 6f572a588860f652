//! Calls, notifications and their ends, between two peers in this process.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

fn spawn_side(stream: DuplexStream) -> (RpcPeer, mpsc::Receiver<RpcIncoming>) {
    let (read, write) = split(stream);
    let (peer, incoming, driver) = open_connection(read, write);
    tokio::spawn(driver);
    (peer, incoming)
}

fn frame(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_call_gets_its_progress_and_its_response() {
    let (ours, theirs) = duplex(64);
    let ((caller, _inbox), (responder, mut requests)) = (spawn_side(ours), spawn_side(theirs));
    let (progress, mut updates) = mpsc::unbounded_channel();
    let call = tokio::spawn(async move { caller.call_with_progress("double", &json!(21), Some(progress)).await });
    let Some(RpcIncoming::Request { id, method, params }) = requests.recv().await else { panic!("no request") };
    assert_eq!(method, "double");
    responder.send_progress(&id, &json!("half way"));
    responder.respond(&id, Ok(json!(params.as_i64().unwrap() * 2))).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap(), json!(42));
    assert_eq!(updates.recv().await, Some(json!("half way")));
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_late_response_is_ignored() {
    let (ours, theirs) = duplex(4096);
    let ((caller, _inbox), (responder, mut requests)) = (spawn_side(ours), spawn_side(theirs));
    {
        let call = caller.call("slow", &Value::Null);
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("there was a response"),
            request = requests.recv() => assert!(matches!(request, Some(RpcIncoming::Request { .. }))),
        }
    }
    let Some(RpcIncoming::Cancel { id, interrupt: false }) = requests.recv().await else { panic!("no cancel") };
    responder.respond(&id, Ok(Value::Null)).await.unwrap();
    let next = tokio::spawn(async move { caller.call("next", &Value::Null).await });
    let Some(RpcIncoming::Request { id, .. }) = requests.recv().await else { panic!("no request") };
    responder.respond(&id, Ok(json!("mine"))).await.unwrap();
    assert_eq!(next.await.unwrap().unwrap(), json!("mine"));
}

#[tokio::test]
async fn a_response_is_flushed_once_the_other_side_has_room_for_it() {
    let (ours, mut theirs) = duplex(8);
    let (responder, _requests) = spawn_side(ours);
    let long = json!("x".repeat(100));
    let mut flushed = tokio::spawn(async move { responder.respond_and_flush(&RpcId::Number(1), Ok(long)).await });
    let mut sent = vec![0; 100];
    tokio::select! {
        _ = &mut flushed => panic!("it was flushed before it was read"),
        read = theirs.read_exact(&mut sent) => drop(read.unwrap()),
    }
    loop {
        tokio::select! {
            flushed = &mut flushed => return flushed.unwrap().unwrap(),
            read = theirs.read(&mut sent) => drop(read.unwrap()),
        }
    }
}

#[tokio::test]
async fn every_pending_call_ends_with_the_connection() {
    let (ours, mut theirs) = duplex(4096);
    let (caller, _inbox) = spawn_side(ours);
    let waiting = tokio::spawn({
        let caller = caller.clone();
        async move { caller.call("never", &Value::Null).await }
    });
    let mut seen = [0; 1];
    theirs.read_exact(&mut seen).await.unwrap();
    theirs.write_all(b"Content-Length: abc\r\n\r\n").await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("\"abc\""), "{error}");
    let error = caller.call("later", &Value::Null).await.unwrap_err();
    assert!(matches!(error, CallError::Closed(_)), "{error}");
}

#[tokio::test]
async fn a_malformed_response_fails_its_call() {
    let (ours, mut theirs) = duplex(4096);
    let (caller, _inbox) = spawn_side(ours);
    for (number, rest) in (1..).zip([
        r#""error":"no object""#,
        r#""error":{"code":"7","message":"x"}"#,
        r#""error":{"code":1},"result":1"#,
        r#""result":1,"result":2"#,
    ]) {
        let waiting = tokio::spawn({
            let caller = caller.clone();
            async move { caller.call("any", &Value::Null).await }
        });
        let mut request = vec![0; 400];
        let _ = theirs.read(&mut request).await.unwrap();
        theirs.write_all(frame(&format!(r#"{{"jsonrpc":"2.0","id":{number},{rest}}}"#)).as_bytes()).await.unwrap();
        let waited = tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await;
        let error = waited.unwrap_or_else(|_| panic!("{rest} leaves its call waiting")).unwrap().unwrap_err();
        assert!(error.to_string().starts_with("the response cannot be read: "), "{rest}: {error}");
    }
}

#[tokio::test]
async fn a_malformed_request_with_the_id_of_a_call_does_not_end_the_call() {
    let (ours, mut theirs) = duplex(4096);
    let (caller, _inbox) = spawn_side(ours);
    let call = tokio::spawn(async move { caller.call("any", &Value::Null).await });
    let mut request = vec![0; 400];
    let _ = theirs.read(&mut request).await.unwrap();
    theirs.write_all(frame(r#"{"id":1,"method":7}"#).as_bytes()).await.unwrap();
    theirs.write_all(frame(r#"{"id":1,"result":"mine"}"#).as_bytes()).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap(), json!("mine"));
}

#[tokio::test]
async fn a_malformed_message_gets_an_error_and_the_next_is_handled() {
    let (ours, mut theirs) = duplex(4096);
    let (_peer, mut requests) = spawn_side(ours);
    for (body, code) in [("{", "-32700"), ("[1]", "-32600"), (r#"{"method":7}"#, "-32600")] {
        theirs.write_all(frame(body).as_bytes()).await.unwrap();
        let mut reply = vec![0; 400];
        let n = theirs.read(&mut reply).await.unwrap();
        assert!(String::from_utf8_lossy(&reply[..n]).contains(code), "{body}");
    }
    theirs.write_all(frame(r#"{"jsonrpc":"2.0","id":"a","method":"x"}"#).as_bytes()).await.unwrap();
    let Some(RpcIncoming::Request { id, .. }) = requests.recv().await else { panic!("no request") };
    assert_eq!(id, RpcId::Text("a".into()));
}

#[tokio::test]
async fn requests_past_the_queue_wait_in_the_stream_and_are_all_answered() {
    let (ours, theirs) = duplex(4096);
    let ((caller, _inbox), (responder, mut requests)) = (spawn_side(ours), spawn_side(theirs));
    let calls: Vec<_> = (0..3 * MAX_INCOMING)
        .map(|number| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.call("echo", &json!(number)).await })
        })
        .collect();
    // The consumer starts when both queues and the stream are full.
    while caller.outbox.capacity() > 0 || requests.len() < MAX_INCOMING {
        tokio::task::yield_now().await;
    }
    let cancelled = tokio::time::timeout(std::time::Duration::ZERO, caller.call("never sent", &Value::Null)).await;
    assert!(cancelled.is_err());
    let consumer = tokio::spawn(async move {
        let mut cancels = 0;
        while let Some(message) = requests.recv().await {
            match message {
                RpcIncoming::Request { id, params, .. } => responder.respond(&id, Ok(params)).await.unwrap(),
                RpcIncoming::Cancel { .. } => cancels += 1,
                RpcIncoming::Notification { .. } => return cancels,
            }
        }
        cancels
    });
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), json!(number));
    }
    caller.notify("end", &Value::Null).await.unwrap();
    assert_eq!(consumer.await.unwrap(), 1);
}
