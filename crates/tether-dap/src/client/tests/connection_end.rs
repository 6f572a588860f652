//! Every way in which a connection ends, and what is still read and written then.

use super::*;

#[tokio::test]
async fn every_kind_of_connection_end_ends_all_waits_with_its_reason() {
    let check = async |bytes: &[u8], closes: bool, expect: &str| {
        let (client, mut inbox, running, mut adapter) = connect_adapter();
        let acting = async {
            adapter.request().await.unwrap();
            adapter.send_bytes(bytes).await;
            // A malformed frame must be reported while the stream is still open.
            (!closes).then_some(adapter)
        };
        let (answer, incoming, reason, adapter) =
            tokio::join!(evaluate(&client, "1"), inbox.next(), client.wait_closed(), acting);
        let error = answer.unwrap_err();
        assert!(matches!(error, DapError::Closed(_)) && error.to_string().contains(expect), "{expect:?}: {error}");
        assert!(incoming.is_none() && reason.contains(expect), "{expect:?}: {reason}");
        drop(adapter);
        assert_eq!(running.await.unwrap(), reason);
        // Later calls fail with the same reason.
        assert!(client.is_closed());
        assert_eq!(evaluate(&client, "2").await.unwrap_err(), error);
        assert!(inbox.next().await.is_none());
        assert_eq!(pending_count(&client), 0);
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
async fn events_before_the_end_can_still_be_read() {
    let (client, mut inbox, running, mut adapter) = connect_adapter();
    adapter.send_event("exited", json!({"exitCode": 3})).await;
    adapter.send_event("terminated", Value::Null).await;
    drop(adapter);
    running.await.unwrap();
    assert!(client.is_closed());
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<ExitedEvent>(), Some(ExitedEvent { exit_code: 3, ..ExitedEvent::default() }));
    let Some(DapIncoming::Event(event)) = inbox.next().await else { panic!("no event") };
    assert_eq!(event.read_body::<TerminatedEvent>(), Some(TerminatedEvent::default()));
    assert!(inbox.next().await.is_none());
}

#[tokio::test]
async fn queued_messages_are_written_on_close_and_the_peers_are_still_read() {
    let check = async |leave: fn(DapClient), expect: &str| {
        let (client, inbox, running, mut adapter) = connect_adapter();
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
            adapter.send_event("output", json!({"output": "x".repeat(10_000)})).await;
        }
        assert_eq!(read, 50);
        drop(adapter);
        assert_eq!(running.await.unwrap(), expect);
    };
    check(drop, "its last handle was dropped").await;
    check(|client| client.close(), "it was closed by us").await;

    let (client, _inbox, running, _adapter) = connect_adapter();
    let (answer, ()) = tokio::join!(evaluate(&client, "1"), async { running.abort() });
    assert_eq!(answer.unwrap_err(), DapError::Closed("it was closed by us".into()));
}

#[tokio::test]
async fn a_driver_that_is_never_polled_closes_the_connection() {
    let (ours, _theirs) = DapConnection::pair();
    let (client, mut inbox, driver) = DapClient::over(ours);
    let (answer, ()) = tokio::join!(evaluate(&client, "1"), async { drop(driver) });
    assert!(matches!(answer.unwrap_err(), DapError::Closed(_)));
    assert!(inbox.next().await.is_none());
}
